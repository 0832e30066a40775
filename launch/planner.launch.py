# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Run the planner on a robot or in a simulation; show and record what it does where wanted."""

from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from kernel_constrained.nodes.launching import (
    arguments_of_rviz,
    arguments_on_robot,
    declared,
    options_on_robot,
    PACKAGE,
    recorder_beside,
    rviz_beside,
    there,
)
from launch import LaunchDescription

TOPICS = {
    'scan': ('scan', 'topic of the scans (LaserScan)'),
    'pose': ('pose', 'topic of the pose, of the type that pose.type names'),
    'reference': ('reference', 'topic of the path to stay near (Path)'),
    'goal_pose': ('goal_pose', 'topic of the goal (PoseStamped)'),
    'map': ('map', 'topic of known obstacles (OccupancyGrid)'),
    'plan': ('plan', 'topic of the proven path (Path)'),
}


def generate_launch_description():
    """Start the planner, with RViz and a recorder beside it, whose end leaves it alone."""
    return LaunchDescription(
        [
            *declared(arguments_on_robot('planner', TOPICS)),
            *declared(arguments_of_rviz('planner')),
            there('config'),
            rviz_beside(TOPICS),
            recorder_beside(list(TOPICS), ['planner_node/markers']),
            Node(
                package=PACKAGE,
                executable='planner_node',
                output='screen',
                parameters=[
                    LaunchConfiguration('config'),
                    {'use_sim_time': LaunchConfiguration('use_sim_time')},
                ],
                **options_on_robot(TOPICS),
            ),
        ]
    )
