# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Run the classifier on a robot or in a simulation; record what it does where that is wanted."""

from launch.substitutions import LaunchConfiguration

from kernel_constrained.nodes.launching import (
    arguments_on_robot,
    declared,
    learning_node,
    MODEL_ON_ROBOT,
    options_on_robot,
    recorder_beside,
    there,
)
from kernel_constrained.topics import CLASSIFIER_FIGURES
from launch import LaunchDescription

TOPICS = {
    'scan': ('scan', 'topic of the scans (LaserScan)'),
    'label': ('label', 'topic of the labels (String)'),
    'label_estimate': ('label_estimate', 'topic of the label that a scan is estimated to have'),
}
SAID = ('label_scores', *(f'classifier_node/{name}' for name in CLASSIFIER_FIGURES))


def generate_launch_description():
    """Start the classifier, with a recorder beside it, whose end leaves it alone."""
    time = {'use_sim_time': LaunchConfiguration('use_sim_time')}
    return LaunchDescription(
        [
            *declared(arguments_on_robot('classifier', TOPICS, model=MODEL_ON_ROBOT)),
            there('config'),
            recorder_beside(list(TOPICS), SAID),
            learning_node(
                'classifier_node', [LaunchConfiguration('config'), time], go_on=True,
                **options_on_robot(TOPICS),
            ),
        ]
    )  # fmt: skip
