# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the launch files have in common; only they import this module, and with it launch."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    OpaqueFunction,
    RegisterEventHandler,
    TimerAction,
)
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from kernel_constrained.topics import FIGURES
from launch import (  # type: ignore[attr-defined]  # our folder has its name
    LaunchContext,
    LaunchDescription,
)

PACKAGE = 'kernel_constrained'

RECORD = {
    'record': ('false', 'true to record what goes in and comes out with `ros2 bag record`'),
    'record_to': ('', 'folder to record to; rosbag2 names one by the time where empty'),
}

ESTIMATES = ('estimate', *(f'filter_node/{name}' for name in FIGURES))

# Model file of a node on a robot.
MODEL_ON_ROBOT = ('', 'model file: to go on with, if it is there, and to save to at the end')

# A robot in a namespace has its transforms there, as those of Nav2 do.
TRANSFORMS = ('tf', 'tf_static')

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


def there(*names: str) -> OpaqueFunction:
    """End with an error where a launch argument of ``names`` is no file, before anything starts.

    Launch itself only warns, and a node would run with its defaults.
    """

    def look(context: LaunchContext) -> None:
        for name in names:
            path = LaunchConfiguration(name).perform(context)
            if not Path(path).is_file():
                raise FileNotFoundError(f'{name}:={path} is no file; give a YAML file')

    return OpaqueFunction(function=look)


def learning_node(
    executable: str, parameters: list[Any], go_on: bool = False, **options: Any
) -> OpaqueFunction:
    """Start a node that learns; it saves to the file of argument ``model`` where one is given.

    Parameters
    ----------
    executable
        The node.
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
                package=PACKAGE, executable=executable, output='screen', parameters=given,
                **options,
            )
        ]  # fmt: skip

    return OpaqueFunction(function=start)


def arguments_on_robot(
    kind: str, topics: dict[str, tuple[str, str]], **others: tuple[str, str]
) -> dict[str, tuple[str, str]]:
    """Return the launch arguments of a node on a robot, each with its default and what it means.

    Parameters
    ----------
    kind
        ``config/KIND.yaml`` is the default.
    topics
        Names of its topics, each with its default and what it means.
    others
        What it has beside these.
    """
    return {
        'config': (config_file(f'{kind}.yaml'), f'parameters of the {kind} (a YAML file)'),
        'namespace': ('', 'namespace of the nodes and of every relative topic'),
        **topics,
        **others,
        'use_sim_time': ('false', 'true to take the time from /clock'),
        **RECORD,
    }


def arguments_of_rviz(kind: str) -> dict[str, tuple[str, str]]:
    """Return the launch arguments of RViz; ``config/KIND.rviz`` is the default."""
    return {
        'rviz': ('false', 'true to start RViz (package rviz2)'),
        'rviz_config': (config_file(f'{kind}.rviz'), 'what RViz shows'),
    }


def options_on_robot(topics: Iterable[str]) -> dict[str, Any]:
    """Return the options of a ``Node`` whose namespace, clock and topics are launch arguments."""
    return {
        'namespace': LaunchConfiguration('namespace'),
        'remappings': [(name, LaunchConfiguration(name)) for name in topics],
    }


def rviz_beside(topics: Iterable[str]) -> Node:
    """Start RViz beside a node whose ``topics`` are launch arguments, where one says so.

    Put this and :func:`recorder_beside` before the node: where one is not installed, launch ends
    there, and leaves what it has started running.
    """
    options = options_on_robot(topics)
    options['remappings'] += [(f'/{name}', name) for name in TRANSFORMS]
    return Node(
        package='rviz2',
        executable='rviz2',
        arguments=['-d', LaunchConfiguration('rviz_config')],
        parameters=[{'use_sim_time': LaunchConfiguration('use_sim_time')}],
        condition=IfCondition(LaunchConfiguration('rviz')),
        **options,
    )


def recorder_beside(topics: Sequence[str], outputs: Sequence[str]) -> OpaqueFunction:
    """Record beside a node, where an argument says so.

    Parameters
    ----------
    topics
        Those that are launch arguments.
    outputs
        Those that are recorded beside them.
    """

    def record(context: LaunchContext) -> list[ExecuteProcess]:
        heard = [LaunchConfiguration(name).perform(context) for name in topics]
        return recorder(
            context,
            [*heard, *TRANSFORMS, *(f'/{name}' for name in TRANSFORMS)],
            LaunchConfiguration('namespace').perform(context),
            IfCondition(LaunchConfiguration('use_sim_time')).evaluate(context),
            outputs,
        )

    return OpaqueFunction(function=record)


def recorder(
    context: LaunchContext,
    inputs: Sequence[str],
    namespace: str = '',
    sim_time: bool = False,
    outputs: Sequence[str] = ESTIMATES,
) -> list[ExecuteProcess]:
    """Record what a node hears and says, where argument ``record`` says so.

    Parameters
    ----------
    context
        Where the launch arguments are.
    inputs
        Topics that it hears.
    namespace
        That of the node and of every relative topic.
    sim_time
        Whether the time of receipt is that of /clock.
    outputs
        What it says, beside its diagnostics; by default what the filter says.
    """
    if not recording(context):
        return []
    topics = [*inputs, *outputs, '/diagnostics']
    folder = LaunchConfiguration('record_to').perform(context)
    command = ['ros2', 'bag', 'record', '-s', 'mcap', *(['-o', folder] if folder else [])]
    command += ['--use-sim-time'] if sim_time else []
    command += ['--topics', *dict.fromkeys(absolute(topic, namespace) for topic in topics)]
    return [ExecuteProcess(cmd=command, output='screen')]


def recording(context: LaunchContext) -> bool:
    """Whether argument ``record`` is true."""
    return IfCondition(LaunchConfiguration('record')).evaluate(context)


def absolute(topic: str, namespace: str) -> str:
    """Name of a topic as nodes in a namespace mean it."""
    if topic.startswith('/'):
        return topic
    return '/'.join(['', *filter(None, (namespace.strip('/'), topic))])


def replay_description(
    data: str, inputs: Sequence[str], arguments: dict[str, tuple[str, str, str]]
) -> LaunchDescription:
    """Describe a replay through the filter that shuts down when it is through.

    Parameters
    ----------
    data
        ``config/filter_DATA.yaml`` and ``config/replay_DATA.yaml`` are the defaults.
    inputs
        What is replayed, to be recorded where that is wanted.
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
        **RECORD,
    }
    parameters = {
        parameter: LaunchConfiguration(name) for name, (parameter, *_) in arguments.items()
    }

    def start(context: LaunchContext) -> list[Any]:
        recorders = recorder(context, inputs)
        replay_node = Node(
            package=PACKAGE, executable='replay_node', output='screen', emulate_tty=True,
            # The filter listens, and so does the recorder.
            parameters=[LaunchConfiguration('replay_config'), parameters,
                        {'subscribers': 1 + len(recorders)}],
        )  # fmt: skip
        # What was published last needs a moment to be recorded.
        end = TimerAction(
            period=1.0 if recorders else 0.0,
            actions=[EmitEvent(event=Shutdown(reason='replayed'))],
        )
        gone = EmitEvent(event=Shutdown(reason='nothing is recorded any more'))
        return [
            *recorders,
            replay_node,
            RegisterEventHandler(OnProcessExit(target_action=replay_node, on_exit=[end])),
            *(
                RegisterEventHandler(OnProcessExit(target_action=process, on_exit=[gone]))
                for process in recorders
            ),
        ]

    return LaunchDescription(
        [
            *declared({name: given[1:] for name, given in arguments.items()} | others),
            there('filter_config', 'replay_config'),
            learning_node('filter_node', [LaunchConfiguration('filter_config')]),
            OpaqueFunction(function=start),
        ]
    )
