# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Pairing scans with poses for what cannot wait: a pose that is hardly older will do."""

import bisect

from kernel_constrained.perception.geometry import interpolated, Pose
from kernel_constrained.perception.pairing import Pair, Pairing, SECOND, T


class PromptPairing(Pairing[T]):
    """Pairs a scan as :class:`Pairing` does, or at once where the newest pose is hardly older.

    Such a pose is moved on at the speed that the robot had before it, where that is known: from a
    pose that was before it by at least as long as the scan is after it, and by at most
    ``max_gap``.

    Parameters
    ----------
    max_gap, queue_size, max_jump
        As :class:`Pairing` has them.
    max_age
        How much older than a scan the newest pose may be, in seconds; a newer scan waits.
    """

    def __init__(
        self, max_gap: float, queue_size: int, max_jump: float, max_age: float
    ) -> None:  # fmt: skip
        super().__init__(max_gap, queue_size, max_jump)
        self.max_age = round(max_age * SECOND)

    def pairs(self) -> list[Pair[T]]:
        """Return the pairs that are complete or do not wait, oldest first, each once."""
        complete = super().pairs()
        scans, poses = self._scans, self._poses
        while scans.stamps and poses.stamps and scans.stamps[0] <= poses.stamps[-1] + self.max_age:
            stamp, scan = scans.stamps[0], scans.items[0]
            scans.drop(1)
            complete.append(Pair(stamp, scan, *self._pose_after_newest(stamp)))
        return complete

    def _pose_after_newest(self, stamp: int) -> tuple[Pose, int]:
        """Pose and track at a stamp that is newer than the newest pose."""
        stamps, poses = self._poses.stamps, self._poses.items
        newest, track = poses[-1]
        ahead = stamp - stamps[-1]
        # Two poses closer together than that would make too much of their noise.
        before = bisect.bisect_right(stamps, stamps[-1] - ahead) - 1
        if before < 0:
            return newest, track
        (pose, track_before), gap = poses[before], stamps[-1] - stamps[before]
        if gap > self.max_gap or track_before != track:
            return newest, track
        return interpolated(pose, newest, 1.0 + ahead / gap), track
