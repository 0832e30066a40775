# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What can be chosen of a replay."""

import math
from typing import Any

import attrs

from kernel_constrained.bags.opening import open_recording
from kernel_constrained.bags.recording import Recording
from kernel_constrained.configuration import ConfigurationError, group, parameter


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
    remap: tuple[str, ...] = parameter(
        (), 'topics to publish under another name, each as recorded:=published'
    )
    rate: float = parameter(
        1.0, 'speed in recorded time, 0 for as fast as lockstep or ceiling allow', low=0.0,
        high=1e6, runtime=True,
    )  # fmt: skip
    ceiling: float = parameter(
        2000.0, 'most messages to publish without lockstep', unit='1/s', low=1.0, runtime=True
    )
    loop: bool = parameter(False, 'whether to begin again at the end')
    start_offset: float = parameter(
        0.0, 'where to begin in the recording', unit='s', low=0.0, high=1e9
    )
    duration: float = parameter(math.inf, 'how much to play', unit='s', low=1e-9)
    start_paused: bool = parameter(False, 'whether to wait for ~/resume or ~/play_next')
    seek_to: float = parameter(
        0.0, 'where ~/seek goes, from the start of the recording', unit='s', low=0.0, runtime=True
    )
    clock: bool = parameter(False, 'whether to publish the recorded time on /clock')
    clock_frequency: float = parameter(
        40.0, 'how often, beside once before each message; not at rate 0 and in lockstep',
        unit='Hz', low=0.1, high=1000.0,
    )  # fmt: skip
    lockstep: bool = parameter(
        False, 'whether each message waits until the consumer has dealt with the one before'
    )
    answer_topic: str = parameter(
        'filter_node/processed', 'where the consumer says that it has dealt with a message'
    )
    answer_timeout: float = parameter(
        60.0, 'how long to wait for an answer in lockstep, and for subscribers to take the rest',
        unit='s', low=0.1,
    )  # fmt: skip
    wait_timeout: float = parameter(
        5.0, 'how long to wait for subscribers before playing', unit='s', low=0.0
    )
    subscribers: int = parameter(
        1, 'how many to wait for, on one topic or in lockstep on each', low=1
    )
    executor: str = parameter(
        'single',
        'rclpy executor; events takes less of the processor',
        choices=('single', 'events'),
    )
    lidar: LidarConfig = group(LidarConfig)
    log: LogConfig = group(LogConfig)

    def __attrs_post_init__(self) -> None:
        self.renamed()

    def open(self) -> Recording:
        """Open the source, with the options that are its own."""
        options: dict[str, Any] = {}
        if self.source == 'lidar':
            options = attrs.asdict(self.lidar)
        elif self.log.range_max > 0.0:
            options = attrs.asdict(self.log)
        return open_recording(self.source, **options)

    def renamed(self) -> dict[str, str]:
        """Return ``remap`` as {recorded name without leading slash: name to publish}.

        Raises
        ------
        ConfigurationError
            Where an entry is not of the form ``recorded:=published``, or one name has two.
        """
        names: dict[str, str] = {}
        for entry in self.remap:
            old, arrow, new = entry.partition(':=')
            if not (old and arrow and new) or ':=' in new:
                raise ConfigurationError(
                    f'remap must hold entries like /scan:=/front/scan (got {entry!r})'
                )
            if (other := names.setdefault(old.lstrip('/'), new)) != new:
                raise ConfigurationError(f'remap gives {old} two names: {other} and {new}')
        return names

    def outputs(self, recording: Recording) -> dict[str, str]:
        """Return {topic of the recording: name to publish it under} of what is to be played.

        A recorded /clock is left out where ``clock`` publishes one.

        Raises
        ------
        RecordingError
            Where ``topics`` or ``remap`` name what the recording does not hold.
        """
        chosen = [one for name in self.topics for one in recording.select([name])]
        renamed = {
            one: new for old, new in self.renamed().items() for one in recording.select([old])
        }
        names = {name: renamed.get(name, name) for name in chosen or recording.topics}
        if self.clock:
            names = {name: new for name, new in names.items() if new.lstrip('/') != 'clock'}
        return names

    @property
    def whole(self) -> bool:
        """Whether the recording is played once and in full."""
        return not self.loop and self.start_offset == 0.0 and self.duration == math.inf
