# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Messages into the planner, whoever decoded them; plans come out as soon as they can."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.perception.config import mounting_of
from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.perception.messages import (
    checked_frame,
    covariance_of,
    pose_of,
    positions_of,
    reading_of,
    stamp_of,
)
from kernel_constrained.perception.pairing import Pair, SECOND
from kernel_constrained.perception.prompt import PromptPairing
from kernel_constrained.perception.scan import Scan
from kernel_constrained.perception.unusable import Unusable
from kernel_constrained.planning import maps
from kernel_constrained.planning.node_config import PlannerNodeConfig
from kernel_constrained.planning.planner import Plan, Planner

Array = npt.NDArray[np.float64]

# What to do about scans that are too old when they come.
AGED = 'see scan.max_age; a simulation or recording needs use_sim_time'


@attrs.frozen(eq=False)
class Arrival:
    """A scan that has come.

    Attributes
    ----------
    scan
        What the sensor saw.
    mounting
        Where it sits, None where that is fixed.
    at
        ``time.perf_counter()`` then.
    """

    scan: Scan
    mounting: Mounting | None
    at: float


@attrs.frozen(eq=False)
class Planned:
    """A plan, and what it took.

    Attributes
    ----------
    plan
        What the planner says of a scan.
    pose
        Of the robot at the scan's time.
    arrived
        ``time.perf_counter()`` when the scan came.
    seconds
        That planning took.
    """

    plan: Plan
    pose: Pose
    arrived: float
    seconds: float


class PlannerIntake:
    """Checks messages and hands what they say to a planner.

    Parameters
    ----------
    planner
        What plans.
    config
        What is expected of the messages.
    now
        Returns the time by the clock that stamps are of, nanoseconds.
    refuse
        Told of messages that were taken and could not be used in the end: ``refuse(kind, why)``.
    mounting
        From the frame of a scan to where its sensor is mounted, or None where that is fixed.

    Attributes
    ----------
    frames : dict of str to str
        Frame of the messages used so far, for ``'scan'`` and ``'pose'``.
    newest_scan : int or None
        Stamp of the newest scan that has come, used or not.
    age_on_arrival : float
        How old it was then, seconds.
    newest_planned : int or None
        Stamp of the newest scan that was planned from.
    """

    def __init__(
        self,
        planner: Planner,
        config: PlannerNodeConfig,
        now: Callable[[], int],
        refuse: Callable[[str, Unusable], None],
        mounting: Callable[[str], Mounting] | None = None,
    ) -> None:
        self.planner, self.config = planner, config
        self.frames: dict[str, str] = {}
        self.newest_scan: int | None = None
        self.age_on_arrival = 0.0
        self.newest_planned: int | None = None
        self._now, self._refuse, self._mounting = now, refuse, mounting
        self._covariance: Array | None = None
        self._wanted: Array | None = None
        self._track = 0
        # What came before the frame of the path was known, the newest last.
        self._held: dict[str, Any] = {}
        self.pairing: PromptPairing[Arrival] = PromptPairing(
            config.pairing.max_gap, config.pairing.queue_size, config.pose.max_jump,
            config.pose.max_age,
        )  # fmt: skip

    def reconfigure(self, config: PlannerNodeConfig) -> None:
        """Take run-time parameters; what a sensor mounted elsewhere saw is forgotten."""
        moved = config.mounting != self.config.mounting
        self.config = self.planner.config = config
        self.pairing.max_jump = config.pose.max_jump
        if moved:
            self.planner.mounting = mounting_of(config.mounting)
            self.planner.reset()

    # -- the moment -------------------------------------------------------------------------

    def scan(self, message: Any) -> None:
        """Take a LaserScan; :meth:`plans` says what comes of it.

        Raises
        ------
        Unusable
            It has no stamp, is too old, twice, or in the wrong frame.
        """
        arrived = time.perf_counter()
        stamp = self.newest_scan = stamp_of(message)
        self.age_on_arrival = self.age(stamp)
        self._check_age(stamp)
        frame = checked_frame(message, self.config.input.frame_id, self.frames.get('scan'))
        sensor = message.header.frame_id
        mounting = None if self._mounting is None else self._mounting(sensor)
        scan = reading_of(message)
        assert isinstance(scan, Scan)
        self.pairing.add_scan(stamp, Arrival(scan, mounting, arrived))
        self.frames['scan'] = frame

    def pose(self, message: Any) -> None:
        """Take a pose; :meth:`plans` says what comes of it.

        Raises
        ------
        Unusable
            It has no stamp, is no pose, twice, late, or in the wrong frame.
        """
        stamp, pose = stamp_of(message), pose_of(message)
        covariance = covariance_of(message)
        frame = checked_frame(message, self.config.pose.frame_id, self.frames.get('pose'))
        self.pairing.add_pose(stamp, pose)
        self._covariance = covariance
        self.frames['pose'] = frame
        self._use_held()

    def plans(self) -> Iterator[Planned]:
        """Plan from the scans whose pose is known by now, oldest first."""
        for pair in self.pairing.pairs():
            try:
                yield self._planned(pair)
            except Unusable as error:
                self._refuse('scan', error)

    def _planned(self, pair: Pair[Arrival]) -> Planned:
        begun = time.perf_counter()
        self._check_age(pair.stamp)
        back = self.newest_planned is not None and pair.stamp <= self.newest_planned
        if back or pair.track != self._track:  # what was seen before is elsewhere now
            self.planner.reset()
        self.newest_planned, self._track = pair.stamp, pair.track
        if pair.scan.mounting is not None:
            self.planner.mounting = pair.scan.mounting
        plan = self.planner.plan(pair.stamp, pair.scan.scan, pair.pose, self._covariance)
        seconds = time.perf_counter() - begun
        if self.age(pair.stamp) > self.config.scan.max_age:
            raise Unusable('planned too late', f'it took {seconds:.3g} s')
        return Planned(plan, pair.pose, pair.scan.at, seconds)

    # -- what is wanted and what is known ---------------------------------------------------

    def reference(self, message: Any) -> None:
        """Take a Path to stay near; an empty one takes back what was wanted.

        Raises
        ------
        Unusable
            It is in the wrong frame or holds what is no position.
        """
        if not self._hold('reference', message):
            self._want(positions_of(message, self.config.reference.dimensions))

    def goal(self, message: Any) -> None:
        """Take a PoseStamped to go to, whatever its heading; raises as :meth:`reference`."""
        if not self._hold('goal_pose', message):
            self._want(positions_of(message, self.config.reference.dimensions))

    def map(self, message: Any) -> None:
        """Take an OccupancyGrid of known obstacles; raises as :meth:`reference`."""
        if not self._hold('map', message):
            self.planner.set_map(maps.from_message(message))

    def _want(self, points: Array) -> None:
        """Hand on what is new: the same again, as some send it, must not begin a new path."""
        if self._wanted is not None and np.array_equal(points, self._wanted):
            return
        if len(points):
            self.planner.set_reference(points)
        else:
            self.planner.reference = None
        self._wanted = points

    def _hold(self, kind: str, message: Any) -> bool:
        """Keep a message until the frame of the path is known; refuse one in another frame."""
        if not (self.config.pose.frame_id or 'pose' in self.frames):
            self._held.pop(kind, None)
            self._held[kind] = message
            return True
        checked_frame(message, self.config.pose.frame_id, self.frames.get('pose'))
        return False

    def _use_held(self) -> None:
        use = {'reference': self.reference, 'goal_pose': self.goal, 'map': self.map}
        for kind, message in list(self._held.items()):
            del self._held[kind]
            try:
                use[kind](message)
            except Unusable as error:
                self._refuse(kind, error)

    # -- checks -----------------------------------------------------------------------------

    @property
    def path_frame(self) -> str:
        """Frame of the path: that of the pose; empty where it is not known yet."""
        return self.config.pose.frame_id.lstrip('/') or self.frames.get('pose', '')

    def age(self, stamp: int) -> float:
        """Return how old a stamp is, seconds."""
        return (self._now() - stamp) / SECOND

    def _check_age(self, stamp: int) -> None:
        """Refuse a scan that the world may have changed since."""
        age, allowed = self.age(stamp), self.config.scan.max_age
        if age > allowed:
            raise Unusable(
                'scan too old', f"{age:.3g} s by the node's clock, at most {allowed:g} s: {AGED}"
            )
        if -age > allowed:
            raise Unusable(
                'scan from the future', f"{-age:.3g} s by the node's clock: set the clocks alike"
            )
