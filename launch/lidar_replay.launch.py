# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Replay the LIDAR table through the filter, in lockstep; ends when it is through."""

from kernel_constrained.nodes.launching import replay_description


def generate_launch_description():
    """Start the filter and the replay; shut down when the replay ends."""
    return replay_description(
        'lidar',
        ('range', 'pose'),
        {
            'epochs': ('lidar.epochs', '10', 'how often the training pairs are shown'),
            'seed': ('lidar.seed', '0', 'seed of the split and of the shuffles'),
        },
    )
