# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Replay scans and trusted poses through the filter, in lockstep; ends when it is through."""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch.actions import DeclareLaunchArgument, EmitEvent, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration, PythonExpression
from launch_ros.actions import Node

from launch import LaunchDescription

CONFIG = Path(get_package_share_directory('kernel_constrained')) / 'config'

ARGUMENTS = {
    'filter_config': (str(CONFIG / 'filter_scans.yaml'), 'parameters of the filter'),
    'replay_config': (str(CONFIG / 'replay_scans.yaml'), 'parameters of the replay'),
    'rate': ('0.0', 'speed in recorded time, 0 for as fast as the filter answers'),
    'bag': ('killian', 'rosbag2, CARMEN log or g2o file to replay'),
    'model': ('', 'file to save the learned model to at the end, empty for none'),
}


def generate_launch_description():
    """Start the filter and the replay; shut down when the replay ends."""
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in ARGUMENTS.items()
    ]
    value = {name: LaunchConfiguration(name) for name in ARGUMENTS}
    filter_node = Node(
        package='kernel_constrained',
        executable='filter_node',
        output='screen',
        parameters=[
            value['filter_config'],
            {
                'model.path': value['model'],
                'model.save_at_end': PythonExpression(["'", value['model'], "' != ''"]),
            },
        ],
    )
    replay_node = Node(
        package='kernel_constrained',
        executable='replay_node',
        output='screen',
        emulate_tty=True,
        parameters=[
            value['replay_config'],
            {'source': value['bag'], 'rate': value['rate']},
        ],
    )
    end = RegisterEventHandler(
        OnProcessExit(target_action=replay_node, on_exit=[EmitEvent(event=Shutdown())])
    )
    return LaunchDescription([*arguments, filter_node, replay_node, end])
