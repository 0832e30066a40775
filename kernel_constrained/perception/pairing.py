# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Pairing scans with trusted poses by stamp, whatever order they arrive in."""

import bisect
import math
from typing import Any, Generic, TypeVar

import attrs

from kernel_constrained.perception.geometry import interpolated, Pose
from kernel_constrained.perception.unusable import Unusable

T = TypeVar('T')

SECOND = 1_000_000_000

# A stamp this far behind the newest is a clock that jumped (a looped bag), not a late message; one
# this far ahead may be wrong.
JUMP = SECOND

# After a wrong stamp the clock is back within so many messages.
GLITCH = 10


def check_jump(stamp: int, newest: int) -> None:
    """Raise :class:`Unusable` where a stamp that is not newer is no clock that jumped."""
    behind = newest - stamp
    if behind == 0:
        raise Unusable('duplicate stamp', f'{stamp} ns')
    if behind < JUMP:
        raise Unusable('late', f'{behind / 1e6:.0f} ms behind the newest')


@attrs.frozen
class Pair(Generic[T]):
    """A scan and the trusted pose at its stamp.

    Pairs of the same ``track`` have poses between which there was no jump.
    """

    stamp: int
    scan: T
    pose: Pose
    track: int


class Stamps:
    """The stamps of a stream, a few of which may be wrong: seconds ahead of the others or behind.

    Attributes
    ----------
    newest : int or None
        The newest one of this pass.
    """

    def __init__(self) -> None:
        self.newest: int | None = None
        self._leapt_from, self._since_leap = 0, GLITCH

    def leaps_at(self, stamp: int) -> bool:
        """Whether the clock leaps to a stamp, and may be wrong from there on."""
        if self.newest is None or self._since_leap < GLITCH:
            return False
        return not 0 < stamp - self.newest <= JUMP

    def take(self, stamp: int) -> None:
        """Take note of a stamp."""
        if self.newest is not None and self.leaps_at(stamp):
            self._leapt_from, self._since_leap = self.newest, 0
        self._since_leap += 1
        self.newest = stamp

    def resumes_at(self, stamp: int) -> bool:
        """Whether a stamp goes on where the clock leapt from a few messages ago."""
        if self.newest is None or self._since_leap >= GLITCH or stamp <= self._leapt_from:
            return False
        return stamp <= self.newest or self.newest <= self._leapt_from

    def resume(self) -> None:
        """Forget the stamps since the leap."""
        self.newest, self._since_leap = self._leapt_from, GLITCH


class Stream(Stamps, Generic[T]):
    """What has come of one kind and waits for the other.

    Attributes
    ----------
    stamps, items : list
        Oldest first.
    next_pass : Stream or None
        After the clock has jumped back, until the other kind's does: what came since.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.stamps: list[int] = []
        self.items: list[T] = []
        self.next_pass: Stream[T] | None = None

    @property
    def now(self) -> 'Stream[T]':
        """Where the newest item is: here, or in the next pass."""
        return self.next_pass or self

    def append(self, stamp: int, item: T) -> int:
        """Take an item; return how many of the oldest had to go for it."""
        self.take(stamp)
        self.stamps.append(stamp)
        self.items.append(item)
        return self.drop(len(self.stamps) - self.size)

    def drop(self, count: int) -> int:
        """Forget the oldest; return how many."""
        count = max(count, 0)
        del self.stamps[:count], self.items[:count]
        return count

    def forget_from(self, stamp: int) -> int:
        """Forget what came since the leap, as the stream resumes at a stamp; return how many."""
        place = bisect.bisect_left(self.stamps, stamp)
        forgotten = len(self.stamps) - place
        del self.stamps[place:], self.items[place:]
        self.resume()
        return forgotten

    def begin_next_pass(self) -> int:
        """Go on with what came since the jump; return how many of before are forgotten."""
        forgotten, following = len(self.stamps), self.next_pass or Stream(self.size)
        self.stamps, self.items, self.newest = following.stamps, following.items, following.newest
        self.next_pass, self._since_leap = None, GLITCH
        return forgotten


class Pairing(Generic[T]):
    """Two bounded queues, joined by stamp.

    A scan is paired with the pose of its own stamp, or with the interpolation of the two poses
    around it where these are at most ``max_gap`` apart and no jump.

    A stream that goes back in time by a second or more is a bag that begins again: what follows
    waits until the other stream has gone back too, and what the other still sends of the pass
    before is paired with that. That holds for streams that are less than the length of the bag
    apart, but a second. Where the other is at the same time without a jump, the clock was
    wrong before; and where the stream had leapt ahead just before, only those stamps were.

    Parameters
    ----------
    max_gap
        Largest distance in time between two poses to interpolate between, in seconds.
    queue_size
        Scans and poses that wait for each other; the oldest goes when one more comes.
    max_jump
        Distance between two poses beyond which the robot was moved, or the pose corrected, m.

    Attributes
    ----------
    jumps : int
        How often the clock jumped back.
    pose_jumps : int
        How often the pose jumped.
    unpaired : int
        Scans that no pose was found for.
    """

    def __init__(self, max_gap: float, queue_size: int, max_jump: float = math.inf) -> None:
        self.max_gap = round(max_gap * SECOND) if math.isfinite(max_gap) else math.inf
        self.queue_size = queue_size
        self.max_jump = max_jump
        self.jumps = self.pose_jumps = self.unpaired = 0
        self._newest_pose: Pose | None = None
        self._scans: Stream[T] = Stream(self.queue_size)
        self._poses: Stream[tuple[Pose, int]] = Stream(self.queue_size)

    def add_scan(self, stamp: int, scan: T) -> None:
        """Take a scan; ``stamp`` in nanoseconds.

        Raises
        ------
        Unusable
            Where the stamp was there before or is older than the newest.
        """
        self._add(self._scans, self._poses, stamp, scan)

    def add_pose(self, stamp: int, pose: Pose) -> None:
        """Take a trusted pose; raises like :meth:`add_scan`."""
        newest = self._poses.now.newest
        last = self._newest_pose if newest is not None and stamp > newest else None
        track = self.pose_jumps
        if last is not None and math.hypot(pose.x - last.x, pose.y - last.y) > self.max_jump:
            track += 1
        self._add(self._poses, self._scans, stamp, (pose, track))
        self._newest_pose, self.pose_jumps = pose, track

    @property
    def waiting(self) -> int:
        """Count the scans that wait for a pose."""
        scans = self._scans
        return len(scans.stamps) + (len(scans.next_pass.stamps) if scans.next_pass else 0)

    def pairs(self) -> list[Pair[T]]:
        """Return the pairs that are complete, oldest first, each once."""
        scans, poses = self._scans, self._poses
        complete: list[Pair[T]] = []
        while scans.stamps and poses.stamps and scans.stamps[0] <= poses.stamps[-1]:
            stamp, scan = scans.stamps[0], scans.items[0]
            scans.drop(1)
            found = self._pose_at(stamp)
            if found is None:
                self.unpaired += 1
            else:
                complete.append(Pair(stamp, scan, *found))
        return complete

    def _pose_at(self, stamp: int) -> tuple[Pose, int] | None:
        """Pose and track at a stamp that is no newer than the newest pose, or None."""
        stamps, poses = self._poses.stamps, self._poses.items
        after = bisect.bisect_left(stamps, stamp)
        if stamps[after] == stamp:
            return poses[after]
        if after == 0:
            return None
        gap = stamps[after] - stamps[after - 1]
        (before, track), (pose, track_after) = poses[after - 1], poses[after]
        if gap > self.max_gap or track != track_after:
            return None
        return interpolated(before, pose, (stamp - stamps[after - 1]) / gap), track

    def _add(self, stream: Stream[Any], other: Stream[Any], stamp: int, item: Any) -> None:
        """Put an item where it belongs: in this pass, or in the one after a jump."""
        current, waiting = stream.now, other.next_pass
        beside = waiting and waiting.newest is not None and stamp <= waiting.newest + JUMP
        if current.newest is not None and stamp <= current.newest:
            if stamp == current.newest or not beside:
                check_jump(stamp, current.newest)
            self._jump_back(stream, other, stamp)
        self._forget(stream, stream.now.append(stamp, item))
        if beside and other.next_pass:  # no jump here: the other's was wrong, or not seen here
            self._forget(other, other.begin_next_pass())
            self._forget(stream, stream.drop(len(stream.stamps) - 1))  # may be of before

    def _jump_back(self, stream: Stream[Any], other: Stream[Any], stamp: int) -> None:
        """Account for a clock that went back to ``stamp``."""
        if other.next_pass:  # it went back before: both begin the next pass
            self._forget(stream, stream.begin_next_pass())
            self._forget(other, other.begin_next_pass())
            return
        self.jumps += 1
        if stream.now.resumes_at(stamp):
            self._forget(stream, stream.now.forget_from(stamp))
            return
        if stream.next_pass:  # again, and the other did not: that pass had no partner
            self._forget(stream, len(stream.next_pass.stamps))
        stream.next_pass = Stream(self.queue_size)
        if other.newest is None:  # nothing to wait for
            self._forget(stream, stream.begin_next_pass())

    def _forget(self, stream: Stream[Any], count: int) -> None:
        """Count the scans among what was forgotten."""
        if stream is self._scans:
            self.unpaired += count
