# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Run the filter on a robot or in a simulation; show and record what it does where wanted."""

from launch.substitutions import LaunchConfiguration

from kernel_constrained.nodes.launching import (
    arguments_on_robot,
    beside_robot,
    declared,
    ESTIMATES,
    filter_node,
    options_on_robot,
)
from launch import LaunchDescription

TOPICS = {
    'scan': ('scan', 'topic of the scans (LaserScan)'),
    'range': ('range', 'topic of the ranges (Range), where input.type is range'),
    'pose': ('pose', 'topic of the trusted pose, of the type that pose.type names'),
}
MODEL = ('', 'model file: to go on with, if it is there, and to save to at the end')


def generate_launch_description():
    """Start the filter, with RViz and a recorder beside it; their end leaves the filter alone."""
    time = {'use_sim_time': LaunchConfiguration('use_sim_time')}
    return LaunchDescription(
        [
            *declared(arguments_on_robot('filter', TOPICS, model=MODEL)),
            *beside_robot(list(TOPICS), ESTIMATES),
            filter_node(
                [LaunchConfiguration('config'), time], go_on=True, **options_on_robot(TOPICS)
            ),
        ]
    )
