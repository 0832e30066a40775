# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What can be chosen of a replay, and when each of its messages is due."""

from collections.abc import Iterator
from typing import Any

import attrs

from kernel_constrained.bags.opening import open_recording
from kernel_constrained.bags.recording import Message, Recording
from kernel_constrained.configuration import group, parameter


@attrs.frozen
class LidarConfig:
    """The LIDAR table as a source."""

    seed: int = parameter(0, 'seed of the split and of the shuffles', low=0)
    epochs: int = parameter(10, 'how often the training pairs are shown', low=1)
    evaluate_epochs: bool = parameter(
        False, 'whether every point is asked for without a pose after each epoch'
    )


@attrs.frozen
class LogConfig:
    """A robot log (CARMEN, g2o) as a source."""

    range_max: float = parameter(
        0.0, 'range at and beyond which there is no return, 0 to find it', unit='m', low=0.0
    )


@attrs.frozen
class ReplayConfig:
    """All that can be chosen of a replay."""

    source: str = parameter('lidar', 'rosbag2, CARMEN log, g2o file, lidar or killian')
    topics: tuple[str, ...] = parameter((), 'topics to play, none for all')
    rate: float = parameter(
        1.0, 'speed in recorded time, 0 for as fast as lockstep or 2000/s allow', low=0.0
    )
    loop: bool = parameter(False, 'whether to begin again at the end')
    start_offset: float = parameter(0.0, 'where to begin in the recording', unit='s', low=0.0)
    duration: float = parameter(float('inf'), 'how much to play', unit='s', low=0.0)
    clock: bool = parameter(False, 'whether to publish the stamps on /clock')
    lockstep: bool = parameter(
        False, 'whether each message waits until the consumer has dealt with the one before'
    )
    answer_topic: str = parameter(
        'filter_node/processed', 'where the consumer says that it has dealt with a message'
    )
    answer_timeout: float = parameter(
        60.0, 'how long to wait for an answer in lockstep', unit='s', low=0.1
    )
    wait_timeout: float = parameter(
        5.0, 'how long to wait for a subscriber before playing', unit='s', low=0.0
    )
    executor: str = parameter('single', 'executor', choices=('single', 'events'))
    lidar: LidarConfig = group(LidarConfig)
    log: LogConfig = group(LogConfig)

    def open(self) -> Recording:
        """Open the source, with the options that are its own."""
        options: dict[str, Any] = {}
        if self.source == 'lidar':
            options = attrs.asdict(self.lidar)
        elif self.log.range_max > 0.0:
            options = attrs.asdict(self.log)
        return open_recording(self.source, **options)

    def messages(self, recording: Recording) -> Iterator[Message]:
        """Yield what is to be played of a recording, for ever where ``loop`` is set.

        Raises
        ------
        RecordingError
            At the call, where the recording has no such topic.
        """
        chosen = self.topics or None, self.start_offset, self.duration
        first = recording.messages(*chosen)

        def passes() -> Iterator[Message]:
            yield from first
            while self.loop:
                yield from recording.messages(*chosen)

        return passes()

    @property
    def whole(self) -> bool:
        """Whether the recording is played once and in full."""
        return not self.loop and self.start_offset == 0.0 and self.duration == float('inf')


class Pace:
    """When each message is due, in seconds of a clock that the caller reads.

    Parameters
    ----------
    rate
        Recorded seconds per second; 0 for as fast as ``ceiling`` allows.
    ceiling
        Messages per second at rate 0.
    """

    def __init__(self, rate: float, ceiling: float) -> None:
        self.rate = rate
        self.ceiling = ceiling
        self._count = 0
        self._newest = 0
        self._origin: tuple[float, int] | None = None

    def delay(self, stamp: int, now: float) -> float:
        """Seconds from ``now`` until a message is due, at most 0 for now; asked again while more.

        Time begins with the first message, and again with each that is older than the one before
        (a loop).
        """
        if self._origin is None or (self.rate > 0.0 and stamp < self._newest):
            self._origin = (now, stamp)
        self._newest = stamp
        begun, first = self._origin
        if self.rate > 0.0:
            return begun + (stamp - first) * 1e-9 / self.rate - now
        return begun + self._count / self.ceiling - now

    def sent(self) -> None:
        """Count a message that was published."""
        self._count += 1
