# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Run the filter on a robot or in a simulation; show and record what it does where wanted."""

from launch.substitutions import LaunchConfiguration

from kernel_constrained.nodes.launching import (
    arguments_of_rviz,
    arguments_on_robot,
    declared,
    ESTIMATES,
    learning_node,
    MODEL_ON_ROBOT,
    options_on_robot,
    recorder_beside,
    rviz_beside,
    there,
)
from launch import LaunchDescription

TOPICS = {
    'scan': ('scan', 'topic of the scans (LaserScan)'),
    'range': ('range', 'topic of the ranges (Range), where input.type is range'),
    'pose': ('pose', 'topic of the trusted pose, of the type that pose.type names'),
}


def generate_launch_description():
    """Start the filter, with RViz and a recorder beside it; their end leaves the filter alone."""
    time = {'use_sim_time': LaunchConfiguration('use_sim_time')}
    return LaunchDescription(
        [
            *declared(arguments_on_robot('filter', TOPICS, model=MODEL_ON_ROBOT)),
            *declared(arguments_of_rviz('filter')),
            there('config'),
            rviz_beside(TOPICS),
            recorder_beside(list(TOPICS), ESTIMATES),
            learning_node(
                'filter_node',
                [LaunchConfiguration('config'), time],
                go_on=True,
                **options_on_robot(TOPICS),
            ),
        ]
    )
