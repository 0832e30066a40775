# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Replay scans and trusted poses through the filter, in lockstep; ends when it is through."""

from kernel_constrained.nodes.launching import replay_description


def generate_launch_description():
    """Start the filter and the replay; shut down when the replay ends."""
    return replay_description(
        'scans',
        ('scan', 'pose'),
        {'bag': ('source', 'killian', 'rosbag2, CARMEN log or g2o file to replay')},
    )
