# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Write any recording as a rosbag2."""

import argparse
import sys
from pathlib import Path

from kernel_constrained.bags import open_recording, RecordingError, write_bag


def main(argv: list[str] | None = None) -> int:
    """Convert the source that is named."""
    parser = argparse.ArgumentParser(
        prog='python -m kernel_constrained convert',
        description='Write a rosbag2, CARMEN log, g2o file, lidar or killian as a rosbag2.',
    )
    parser.add_argument('source', help='what to read')
    parser.add_argument(
        'destination', type=Path, help='what to write: NAME.mcap, NAME.db3, or a folder (mcap)'
    )
    arguments = parser.parse_args(argv)
    try:
        with open_recording(arguments.source) as recording:
            for warning in recording.warnings:
                print(f'warning: {warning}', file=sys.stderr)
            counts = write_bag(recording, arguments.destination)
    except RecordingError as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    for topic, count in sorted(counts.items()):
        print(f'{topic}: {count} messages')
    return 0
