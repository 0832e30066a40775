# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings: rosbag2, CARMEN logs, g2o pose graphs and the LIDAR table, without middleware.

Everything that can be replayed is a :class:`Recording` of serialised messages in one defined
order; :func:`open_recording` makes one from what a person names.
"""

from kernel_constrained.bags.cdr import decode_input, pose_bytes, range_bytes, scan_bytes
from kernel_constrained.bags.g2o import killian_path
from kernel_constrained.bags.lidar_table import LidarRecording, LidarRow
from kernel_constrained.bags.opening import open_recording
from kernel_constrained.bags.recording import Message, Recording, RecordingError, Topic
from kernel_constrained.bags.serialization import decode
from kernel_constrained.bags.writing import BagWriter, write_bag

__all__ = [
    'BagWriter',
    'LidarRecording',
    'LidarRow',
    'Message',
    'Recording',
    'RecordingError',
    'Topic',
    'decode',
    'decode_input',
    'killian_path',
    'open_recording',
    'pose_bytes',
    'range_bytes',
    'scan_bytes',
    'write_bag',
]
