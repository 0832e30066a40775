# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Write any recording as a rosbag2."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from tqdm import tqdm

from kernel_constrained.bags import (
    Message,
    open_recording,
    Recording,
    RecordingError,
    write_bag,
)

WRITTEN, NOTHING_WRITTEN, WRITTEN_WITH_LOSSES = 0, 1, 3


def main(argv: list[str] | None = None) -> int:
    """Convert the source that is named."""
    parser = argparse.ArgumentParser(
        prog='python -m kernel_constrained convert',
        description='Write a rosbag2, CARMEN log, g2o file, lidar or killian as a rosbag2.',
        epilog='Exit code 0: all is written; 1: nothing is; 3: written, but something was lost.',
    )
    parser.add_argument('source', help='what to read')
    parser.add_argument(
        'destination', type=Path, help='what to write: NAME.mcap, NAME.db3, or a folder (mcap)'
    )
    parser.add_argument('--topics', nargs='+', metavar='TOPIC', help='what to keep; all without')
    arguments = parser.parse_args(argv)
    try:
        with open_recording(arguments.source) as recording:
            return _convert(recording, arguments.destination, arguments.topics)
    except (RecordingError, OSError) as error:
        print(f'error: {error}', file=sys.stderr)
        return NOTHING_WRITTEN


def _convert(recording: Recording, destination: Path, topics: list[str] | None) -> int:
    total = sum(recording.topics[name].count for name in recording.select(topics))

    def progress(messages: Iterable[Message]) -> Iterable[Message]:
        return tqdm(messages, total=total, unit=' messages', disable=None)

    counts = write_bag(recording, destination, topics=topics, progress=progress)
    for warning in recording.warnings:
        print(f'warning: {warning}', file=sys.stderr)
    for loss in recording.losses:
        print(f'lost: {loss}', file=sys.stderr)
    for topic, count in sorted(counts.items()):
        print(f'{topic}: {count} messages')
    return WRITTEN_WITH_LOSSES if recording.losses else WRITTEN
