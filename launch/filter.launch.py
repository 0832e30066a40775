# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Run the filter on a robot or in a simulation; show and record what it does where wanted."""

from launch.actions import OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from kernel_constrained.nodes.launching import (
    config_file,
    declared,
    filter_node,
    RECORD,
    recorder,
)
from launch import LaunchDescription

TOPICS = {
    'scan': ('scan', 'topic of the scans (LaserScan)'),
    'range': ('range', 'topic of the ranges (Range), where input.type is range'),
    'pose': ('pose', 'topic of the trusted pose, of the type that pose.type names'),
}

# A robot in a namespace has its transforms there, as those of Nav2 do.
TRANSFORMS = ('tf', 'tf_static')


def generate_launch_description():
    """Start the filter, with RViz and a recorder beside it; their end leaves the filter alone."""
    arguments = {
        'config': (config_file('filter.yaml'), 'parameters of the filter (a YAML file)'),
        'namespace': ('', 'namespace of the nodes and of every relative topic'),
        **TOPICS,
        'model': ('', 'model file: to go on with, if it is there, and to save to at the end'),
        'use_sim_time': ('false', 'true to take the time from /clock'),
        'rviz': ('false', 'true to start RViz (package rviz2)'),
        'rviz_config': (config_file('filter.rviz'), 'what RViz shows'),
        **RECORD,
    }
    value = {name: LaunchConfiguration(name) for name in arguments}
    time = {'use_sim_time': value['use_sim_time']}
    remappings = [(name, value[name]) for name in TOPICS]

    def record(context):
        given = {name: value[name].perform(context) for name in (*TOPICS, 'namespace')}
        return recorder(
            context,
            [*(given[name] for name in TOPICS), *TRANSFORMS, *(f'/{t}' for t in TRANSFORMS)],
            given['namespace'],
            IfCondition(value['use_sim_time']).evaluate(context),
        )

    return LaunchDescription(
        [
            *declared(arguments),
            # RViz first: where it is not installed, launch ends here with nothing left running.
            Node(
                package='rviz2',
                executable='rviz2',
                namespace=value['namespace'],
                arguments=['-d', value['rviz_config']],
                parameters=[time],
                remappings=[*remappings, *((f'/{name}', name) for name in TRANSFORMS)],
                condition=IfCondition(value['rviz']),
            ),
            # Before the filter too, for the same reason.
            OpaqueFunction(function=record),
            filter_node(
                [value['config'], time],
                go_on=True,
                namespace=value['namespace'],
                remappings=remappings,
            ),
        ]
    )
