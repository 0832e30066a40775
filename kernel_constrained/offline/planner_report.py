# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A drive with the planner, read from its recording, and what became of it in a table."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.bags import decode, decode_input, Message, open_recording, RecordingError
from kernel_constrained.perception.geometry import Pose
from kernel_constrained.perception.messages import pose_of, stamp_of
from kernel_constrained.planning.polyline import length_of, resampled
from kernel_constrained.planning.robot import farthest_from_path
from kernel_constrained.planning.worlds import World

Array = npt.NDArray[np.float64]
Stamps = npt.NDArray[np.int64]

SECOND = 1e9

# Two paths are the same where they are no further apart, metres: each is published at positions
# of its own, between which it is straight.
SAME = 5e-3

# Distance between the places at which paths are held against the world, metres.
FINE = 1e-2

NOTHING: Array = np.empty((0, 2))

STATUS = 'planner_node: status'

# Figures in it, by how their names begin.
BY_TIME = 'P(collision) at a random time, at most'
BY_LENGTH = 'P(collision) at a random place, at most'
LATENCIES = ('latency, median', 'latency, 99 %')


class Step(NamedTuple):
    """A scan, and what was planned from it; lengths in metres.

    Attributes
    ----------
    stamp : int
        Nanoseconds.
    pose : Pose
        Where the robot believed it was.
    returns : (n, 2)
        End points of the beams that met something.
    outline : (beams, 2)
        How far each beam came.
    path : (k, 2)
        What was published, proven and seen; empty if nothing was.
    rest : (m, 2)
        What was planned beyond it.
    latency : float
        Seconds from the receipt of the scan to that of the path, by the recorder's clock; NaN
        without a path.
    """

    stamp: int
    pose: Pose
    returns: Array
    outline: Array
    path: Array
    rest: Array
    latency: float

    @property
    def whole(self) -> Array:
        """Path and rest in one, (k + m - 1, 2): the rest begins where the path ends."""
        return np.concatenate((self.path, self.rest[1:]))


class Drive(NamedTuple):
    """What was recorded of a drive.

    Attributes
    ----------
    steps : tuple of Step
        Scan by scan.
    stamps : (t,)
        Of where the robot truly was, nanoseconds.
    positions : (t, 2)
        Where that was, metres.
    statuses : tuple of dict
        Diagnostics of the planner, one after the other.
    """

    steps: tuple[Step, ...]
    stamps: Stamps
    positions: Array
    statuses: tuple[dict[str, str], ...]

    @property
    def planned(self) -> list[Step]:
        """Return the steps with a path."""
        return [step for step in self.steps if len(step.path)]

    def seconds(self, stamps: Any) -> Any:
        """Seconds from the first scan to stamps."""
        return (stamps - self.steps[0].stamp) / SECOND

    def stated(self, name: str) -> list[float]:
        """Figures of the diagnostics whose name begins like this, in their order."""
        return [
            float(value) for status in self.statuses for key, value in status.items()
            if key.startswith(name)
        ]  # fmt: skip


# -- reading ------------------------------------------------------------------------------------


class DriveReader:
    """Collects the messages of a drive by their topics and stamps."""

    def __init__(self) -> None:
        self.scans: dict[int, tuple[Any, int]] = {}
        self.poses: dict[int, Pose] = {}
        self.truth: dict[int, Pose] = {}
        self.paths: dict[int, tuple[Array, int]] = {}
        self.rests: dict[int, Array] = {}
        self.statuses: list[dict[str, str]] = []

    def take(self, message: Message) -> None:
        """Take a message; topics that say nothing of a drive are left alone."""
        topic = message.topic.lstrip('/')
        if topic == 'scan':
            scan = decode_input(message)
            self.scans[stamp_of(scan)] = scan, message.stamp
        elif topic in ('pose', 'simulate/true_pose'):
            pose = decode_input(message)
            (self.poses if topic == 'pose' else self.truth)[stamp_of(pose)] = pose_of(pose)
        elif topic == 'plan':
            plan = decode(message)
            path = positions(stamped.pose.position for stamped in plan.poses)
            self.paths[stamp_of(plan)] = path, message.stamp
        elif topic == 'planner_node/markers':
            for marker in decode(message).markers:
                if marker.ns == 'undecided':
                    self.rests[stamp_of(marker)] = positions(marker.points)
        elif topic == 'diagnostics':
            for status in decode(message).status:
                if status.name == STATUS:
                    self.statuses.append({entry.key: entry.value for entry in status.values})

    def steps(self) -> Iterator[Step]:
        """Yield what was recorded, scan by scan."""
        for stamp in sorted(self.scans.keys() & self.poses.keys()):
            scan, received = self.scans[stamp]
            path, planned = self.paths.get(stamp, (NOTHING, math.nan))
            rest, pose = self.rests.get(stamp, NOTHING), self.poses[stamp]
            latency = (planned - received) / SECOND
            yield Step(stamp, pose, *seen_from(scan, pose), path, rest, latency)


def positions(points: Iterable[Any]) -> Array:
    """Return x and y of points, (n, 2)."""
    return np.array([(p.x, p.y) for p in points], dtype=np.float64).reshape(-1, 2)


def seen_from(scan: Any, pose: Pose) -> tuple[Array, Array]:
    """Return the end points (n, 2) of a scan, and how far each beam came (beams, 2).

    The sensor sits at the robot's centre. Beams of which nothing is known are left out.
    """
    ranges = np.asarray(scan.ranges, dtype=np.float64)
    bearings = pose.yaw + scan.angle_min + scan.angle_increment * np.arange(len(ranges))
    along = np.column_stack((np.cos(bearings), np.sin(bearings)))
    here, known = np.array([pose.x, pose.y]), ~np.isnan(ranges)
    met = known & (ranges >= scan.range_min) & (ranges <= scan.range_max)
    came = np.clip(ranges, 0.0, scan.range_max)[:, None]
    return here + came[met] * along[met], here + came[known] * along[known]


def read_drive(path: Path) -> Drive:
    """Read a drive from its recording.

    Raises
    ------
    RecordingError
        Where it holds no scan with a pose, or not where the robot truly was.
    """
    reader = DriveReader()
    with open_recording(path) as recording:
        for message in recording.messages():
            reader.take(message)
    steps = tuple(reader.steps())
    if not steps or not reader.truth:
        raise RecordingError(
            f'{path}: {len(reader.scans)} scans, {len(reader.poses)} poses and '
            f'{len(reader.truth)} true poses in it; was the simulator running?'
        )
    stamps = sorted(reader.truth)
    truth = np.array([(reader.truth[stamp].x, reader.truth[stamp].y) for stamp in stamps])
    return Drive(steps, np.array(stamps), truth, tuple(reader.statuses))


# -- judging ------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What became of a drive; metres, seconds, shares from 0 to 1.

    Attributes
    ----------
    reached : bool
        Whether the robot came to the goal.
    duration, length : float
        Of the drive.
    clearances : (t,)
        Between the robot's disc and the nearest obstacle, wherever the robot was.
    by_time, by_length : float
        Shares of time and way in collision.
    scans, planned : int
        Scans, and those of them that a path was published for.
    kept : float
        Share of the paths that are the path before; NaN where there are no two.
    narrowest : float
        Smallest true clearance on any path that was published; infinite without one.
    moved, unproven : int
        Motions from scan to scan; those without a path of that scan, or away from it.
    astray : float
        Largest distance of the robot from its path.
    """

    reached: bool
    duration: float
    length: float
    clearances: Array
    by_time: float
    by_length: float
    scans: int
    planned: int
    kept: float
    narrowest: float
    moved: int
    unproven: int
    astray: float

    @property
    def collided(self) -> bool:
        """Whether the robot ever touched an obstacle."""
        return bool(self.clearances.min() < 0.0)

    @property
    def good(self) -> bool:
        """Whether it came to the goal, touched nothing, and moved along proven paths only."""
        return self.reached and not self.collided and not self.unproven


def judge(drive: Drive, world: World, goal_distance: float, tracking: float) -> Outcome:
    """Hold a drive against the world as it truly is.

    Parameters
    ----------
    drive
        What was recorded.
    world
        Where it was, and nothing moved but the robot.
    goal_distance
        From the goal at which it is reached, metres.
    tracking
        From its path at which the robot is still on it, metres.
    """
    clearances, planned = world.clearance(drive.positions), drive.planned
    taken, went = np.diff(drive.stamps), np.hypot(*np.diff(drive.positions, axis=0).T)
    touched = clearances[1:] < 0.0
    gaps = np.array(list(motions(drive)))
    return Outcome(
        reached=math.dist(drive.positions[-1], world.goal) <= goal_distance,
        duration=float(drive.seconds(drive.stamps[-1])),
        length=float(went.sum()),
        clearances=clearances,
        by_time=float(taken[touched].sum() / max(taken.sum(), 1)),
        by_length=float(went[touched].sum() / max(went.sum(), 1e-9)),
        scans=len(drive.steps),
        planned=len(planned),
        kept=kept_share(planned),
        narrowest=min((narrowest(step.path, world) for step in planned), default=math.inf),
        moved=len(gaps),
        unproven=int((gaps > tracking).sum()),
        astray=float(gaps.max(initial=0.0)),
    )


def motions(drive: Drive) -> Iterator[float]:
    """Yield how far beside its path the robot came in each motion from scan to scan, metres.

    The path is that of the scan before the motion; it is infinitely far away where there is none.
    """
    begins = np.searchsorted(drive.stamps, [step.stamp for step in drive.steps])
    ends = [*begins[1:], len(drive.stamps) - 1]
    for step, begin, end in zip(drive.steps, begins, ends):
        places = drive.positions[begin : end + 1]
        if len(places) and (places != places[0]).any():
            yield farthest_from_path(places, step.path) if len(step.path) > 1 else math.inf


def kept_share(planned: list[Step]) -> float:
    """Return the share of paths that, with what is planned beyond them, lie on the one before."""
    pairs = [
        farthest_from_path(after.whole, before.whole) <= SAME
        for before, after in zip(planned, planned[1:])
    ]
    return float(np.mean(pairs)) if pairs else math.nan


def narrowest(path: Array, world: World) -> float:
    """Return the smallest true clearance along a path (k, 2), metres."""
    places = resampled(path, math.ceil(length_of(path) / FINE) + 1)
    return float(world.clearance(places).min())


# -- the table ----------------------------------------------------------------------------------


def format_table(drive: Drive, outcome: Outcome) -> str:
    """Lay out what became of a drive as lines of text."""
    when = drive.seconds(drive.stamps[outcome.clearances.argmin()])
    rows = {
        'goal': 'reached' if outcome.reached else 'NOT REACHED',
        'drive': f'{outcome.length:.2f} m in {outcome.duration:.1f} s',
        'smallest clearance': f'{outcome.clearances.min():.3f} m, at {when:.1f} s'
        + (' (COLLIDED)' if outcome.collided else ''),
        'in collision, share of time': beside_bound(outcome.by_time, drive.stated(BY_TIME)),
        'in collision, share of way': beside_bound(outcome.by_length, drive.stated(BY_LENGTH)),
        'scans with a path': f'{outcome.planned} of {outcome.scans}',
        'paths kept from scan to scan': f'{100.0 * outcome.kept:.0f} %',
        'smallest clearance on a path': f'{outcome.narrowest:.3f} m',
        'motions on an unproven path': f'{outcome.unproven} of {outcome.moved}; off the path by '
        f'{1e3 * outcome.astray:.1f} mm at most',
        'from scan to path, over DDS': over_dds(drive),
        'of that in the planner': in_planner(drive),
    }
    width = max(map(len, rows))
    return '\n'.join(f'{name:<{width}}  {text}' for name, text in rows.items())


def beside_bound(share: float, bounds: list[float]) -> str:
    """Say a realised share and the largest of the bounds that were stated."""
    if not bounds:
        return f'{share:.4f} (no bound was stated)'
    return f'{share:.4f}, stated at most {max(bounds):.4f} (the largest of {len(bounds)} bounds)'


def over_dds(drive: Drive) -> str:
    """Say how long it took from a scan to its path, as one saw it who received both."""
    found = [1e3 * step.latency for step in drive.planned]
    if not found:
        return 'no path'
    middle, late = np.quantile(found, [0.5, 0.95])
    return f'median {middle:.1f} ms, 95 % within {late:.1f} ms'


def in_planner(drive: Drive) -> str:
    """Say how long it took the planner, by its own clock."""
    stated = [drive.stated(name)[-1:] for name in LATENCIES]
    if not all(stated):
        return 'not stated'
    (middle,), (late,) = stated
    return f'median {1e3 * middle:.1f} ms, 99 % within {1e3 * late:.1f} ms'
