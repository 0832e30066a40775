# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Pairing scans with trusted poses by stamp, whatever order they arrive in."""

import bisect
import math
from collections import deque
from typing import Generic, TypeVar

import attrs

from kernel_constrained.perception.geometry import interpolated, Pose
from kernel_constrained.perception.unusable import Unusable

T = TypeVar('T')

SECOND = 1_000_000_000

# A stamp this far behind the newest is a clock that jumped (a looped bag), not a late message.
JUMP = SECOND


@attrs.frozen
class Pair(Generic[T]):
    """A scan and the trusted pose at its stamp."""

    stamp: int
    scan: T
    pose: Pose


class Pairing(Generic[T]):
    """Two bounded queues, joined by stamp.

    A scan is paired with the pose of its own stamp, or with the interpolation of the two poses
    around it where these are at most ``max_gap`` apart.

    Parameters
    ----------
    max_gap
        Largest distance in time between two poses to interpolate between, in seconds.
    queue_size
        Scans and poses that wait for each other; the oldest goes when one more comes.
    """

    def __init__(self, max_gap: float, queue_size: int) -> None:
        self.max_gap = round(max_gap * SECOND) if math.isfinite(max_gap) else math.inf
        self.queue_size = queue_size
        self.jumps = 0
        self.unpaired = 0
        self._scans: deque[tuple[int, T]] = deque()
        self._stamps: list[int] = []
        self._poses: list[Pose] = []
        self._newest_scan: int | None = None
        self._newest_pose: int | None = None

    def add_scan(self, stamp: int, scan: T) -> None:
        """Take a scan; ``stamp`` in nanoseconds.

        Raises
        ------
        Unusable
            Where the stamp was there before or is older than the newest.
        """
        self._newest_scan = self._checked(stamp, self._newest_scan)
        self._scans.append((stamp, scan))
        if len(self._scans) > self.queue_size:
            self._scans.popleft()
            self.unpaired += 1

    def add_pose(self, stamp: int, pose: Pose) -> None:
        """Take a trusted pose; raises like :meth:`add_scan`."""
        self._newest_pose = self._checked(stamp, self._newest_pose)
        self._stamps.append(stamp)
        self._poses.append(pose)
        if len(self._stamps) > self.queue_size:
            del self._stamps[0], self._poses[0]

    def clear(self) -> None:
        """Forget what waits and the newest stamps."""
        self.unpaired += len(self._scans)
        self._scans.clear()
        self._stamps.clear()
        self._poses.clear()
        self._newest_scan = self._newest_pose = None

    def pairs(self) -> list[Pair[T]]:
        """Return the pairs that are complete, oldest first, each once."""
        complete: list[Pair[T]] = []
        while self._scans and self._stamps and self._scans[0][0] <= self._stamps[-1]:
            stamp, scan = self._scans.popleft()
            pose = self._pose_at(stamp)
            if pose is None:
                self.unpaired += 1
            else:
                complete.append(Pair(stamp, scan, pose))
        return complete

    def _pose_at(self, stamp: int) -> Pose | None:
        """Pose at a stamp that is no newer than the newest pose, or None across a gap."""
        after = bisect.bisect_left(self._stamps, stamp)
        if self._stamps[after] == stamp:
            return self._poses[after]
        if after == 0:
            return None
        gap = self._stamps[after] - self._stamps[after - 1]
        if gap > self.max_gap:
            return None
        share = (stamp - self._stamps[after - 1]) / gap
        return interpolated(self._poses[after - 1], self._poses[after], share)

    def _checked(self, stamp: int, newest: int | None) -> int:
        """Return the stamp if it is newer than the newest, after clearing where time jumped."""
        if newest is None or stamp > newest:
            return stamp
        if stamp == newest:
            raise Unusable('duplicate stamp')
        if newest - stamp < JUMP:
            raise Unusable('late')
        self.clear()
        self.jumps += 1
        return stamp
