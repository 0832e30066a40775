# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The RViz configuration: what it names exists in RViz and in the filter node.

RViz says nothing of a topic nobody publishes, and of a wrong name only once it is started.
"""

from pathlib import Path

import pytest
import yaml

from kernel_constrained.configuration import fields
from kernel_constrained.perception.config import FilterNodeConfig

FILE = Path(__file__).resolve().parents[1] / 'config' / 'filter.rviz'

# Message types of the displays that we use: rviz_default_plugins/plugins_description.xml.
DISPLAYS = {
    'Grid': None,
    'LaserScan': 'LaserScan',
    'Odometry': 'Odometry',
    'Pose': 'PoseStamped',
    'PoseWithCovariance': 'PoseWithCovarianceStamped',
    'TF': None,
}
TOOLS = {'FocusCamera', 'Measure', 'MoveCamera', 'Select'}
POLICIES = {
    'History Policy': {'Keep Last'},
    'Reliability Policy': {'Best Effort', 'Reliable'},
    'Durability Policy': {'Volatile'},
}


@pytest.fixture(scope='module')
def shown():
    return yaml.safe_load(FILE.read_text())['Visualization Manager']


def plugin(item):
    package, name = item['Class'].split('/')
    assert package == 'rviz_default_plugins'
    return name


def topics(shown):
    """Topic, message type and whether it is shown, of every display that has a topic."""
    return {
        (display['Topic']['Value'], DISPLAYS[plugin(display)], display['Enabled'])
        for display in shown['Displays']
        if 'Topic' in display
    }


def test_displays_tools_and_view_are_plugins_of_rviz(shown):
    assert {plugin(display) for display in shown['Displays']} <= set(DISPLAYS)
    assert {plugin(tool) for tool in shown['Tools']} <= TOOLS
    assert plugin(shown['Views']['Current']) == 'TopDownOrtho'
    assert shown['Global Options']['Fixed Frame'] == 'map'


def test_topics_are_those_of_the_filter_relative_and_of_its_types(shown):
    pose = dict(fields(FilterNodeConfig))['pose.type'].metadata['choices']
    default = FilterNodeConfig().pose.type
    assert topics(shown) == {
        ('scan', 'LaserScan', True),
        *(('pose', kind, kind == default) for kind in pose),
        ('estimate', 'PoseWithCovarianceStamped', True),
    }


def test_sensor_data_are_taken_best_effort_so_that_any_publisher_fits(shown):
    for topic in (display['Topic'] for display in shown['Displays'] if 'Topic' in display):
        assert all(topic[policy] in allowed for policy, allowed in POLICIES.items())
        wanted = 'Reliable' if topic['Value'] == 'estimate' else 'Best Effort'
        assert topic['Reliability Policy'] == wanted


def test_estimate_shows_its_covariance_in_a_colour_of_its_own(shown):
    by_name = {display['Name']: display for display in shown['Displays']}
    assert len(by_name) == len(shown['Displays'])
    covariance = by_name['Estimate']['Covariance']
    assert covariance['Value'] is covariance['Position']['Value'] is True
    assert by_name['Estimate']['Color'] != by_name['Trusted pose']['Color']


def test_file_needs_no_merge_keys_which_the_yaml_reader_of_rviz_lacks():
    assert '<<' not in FILE.read_text()
