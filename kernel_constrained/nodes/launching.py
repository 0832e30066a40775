# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the launch files have in common; only they import this module, and with it launch."""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch.actions import DeclareLaunchArgument, EmitEvent, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration, PythonExpression
from launch_ros.actions import Node

from launch import LaunchDescription  # type: ignore[attr-defined]  # our folder has its name

PACKAGE = 'kernel_constrained'


def replay_description(data: str, arguments: dict[str, tuple[str, str, str]]) -> LaunchDescription:
    """Describe a replay through the filter that shuts down when it is through.

    Parameters
    ----------
    data
        ``config/filter_DATA.yaml`` and ``config/replay_DATA.yaml`` are the defaults.
    arguments
        Launch arguments beside those that every replay has: for each name the replay node's
        parameter that it sets, its default and what it means.
    """
    config = Path(get_package_share_directory(PACKAGE)) / 'config'
    arguments = {
        'rate': ('rate', '0.0', 'speed in recorded time, 0 for as fast as the filter answers'),
        **arguments,
    }
    others = {
        'filter_config': (str(config / f'filter_{data}.yaml'), 'parameters of the filter'),
        'replay_config': (str(config / f'replay_{data}.yaml'), 'parameters of the replay'),
        'model': ('', 'file to save the learned model to at the end, empty for none'),
    }
    declared = {name: rest for name, (_, *rest) in arguments.items()} | others
    value = {name: LaunchConfiguration(name) for name in declared}
    filter_node = Node(
        package=PACKAGE, executable='filter_node', output='screen',
        parameters=[value['filter_config'], {
            'model.path': value['model'],
            'model.save_at_end': PythonExpression(["'", value['model'], "' != ''"]),
        }],
    )  # fmt: skip
    replay_node = Node(
        package=PACKAGE, executable='replay_node', output='screen', emulate_tty=True,
        parameters=[value['replay_config'], {
            parameter: value[name] for name, (parameter, *_) in arguments.items()
        }],
    )  # fmt: skip
    end = OnProcessExit(target_action=replay_node, on_exit=[EmitEvent(event=Shutdown())])
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=description)
                for name, (default, description) in declared.items()
            ),
            filter_node,
            replay_node,
            RegisterEventHandler(end),
        ]
    )
