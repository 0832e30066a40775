# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the launch files have in common; only they import this module, and with it launch."""

from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory
from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import (  # type: ignore[attr-defined]  # our folder has its name
    LaunchContext,
    LaunchDescription,
)

PACKAGE = 'kernel_constrained'

MODEL = {'model': ('', 'file to save the learned model to at the end, empty for none')}


def config_file(name: str) -> str:
    """Path of an installed file of ``config/``."""
    return str(Path(get_package_share_directory(PACKAGE)) / 'config' / name)


def declared(arguments: dict[str, tuple[str, str]]) -> list[DeclareLaunchArgument]:
    """Declare launch arguments, each with its default and what it means."""
    return [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in arguments.items()
    ]


def filter_node(parameters: list[Any], go_on: bool = False, **options: Any) -> OpaqueFunction:
    """Start the filter; it saves to the file of argument ``model`` where one is given.

    Parameters
    ----------
    parameters
        Parameter files and dictionaries; those of ``model`` come after them.
    go_on
        Whether to begin with the model in the file, if there is one.
    options
        Of the ``Node`` action.
    """

    def start(context: LaunchContext) -> list[Node]:
        path = LaunchConfiguration('model').perform(context)
        model = {
            'model.path': ParameterValue(path, value_type=str),
            'model.save_at_end': True,
            'model.load_at_start': 'if_present' if go_on else 'never',
        }
        given = [*parameters, model] if path else parameters
        return [
            Node(
                package=PACKAGE, executable='filter_node', output='screen', parameters=given,
                **options,
            )
        ]  # fmt: skip

    return OpaqueFunction(function=start)


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
    arguments = {
        'rate': ('rate', '0.0', 'speed in recorded time, 0 for as fast as the filter answers'),
        **arguments,
    }
    others = {
        'filter_config': (config_file(f'filter_{data}.yaml'), 'parameters of the filter'),
        'replay_config': (config_file(f'replay_{data}.yaml'), 'parameters of the replay'),
        **MODEL,
    }
    replay_node = Node(
        package=PACKAGE, executable='replay_node', output='screen', emulate_tty=True,
        parameters=[LaunchConfiguration('replay_config'), {
            parameter: LaunchConfiguration(name) for name, (parameter, *_) in arguments.items()
        }],
    )  # fmt: skip
    end = OnProcessExit(target_action=replay_node, on_exit=[EmitEvent(event=Shutdown())])
    return LaunchDescription(
        [
            *declared({name: given[1:] for name, given in arguments.items()} | others),
            filter_node([LaunchConfiguration('filter_config')]),
            replay_node,
            RegisterEventHandler(end),
        ]
    )
