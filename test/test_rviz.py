# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The RViz configurations: what they name exists in RViz and in the nodes.

RViz says nothing of a topic nobody publishes, and of a wrong name only once it is started.
"""

from pathlib import Path

import pytest
import yaml

from kernel_constrained.configuration import fields
from kernel_constrained.perception.node_config import FilterNodeConfig
from kernel_constrained.planning.node_config import PlannerNodeConfig

CONFIG = Path(__file__).resolve().parents[1] / 'config'
FILES = sorted(CONFIG.glob('*.rviz'))

# Message types of the displays that we use: rviz_default_plugins/plugins_description.xml.
DISPLAYS = {
    'Grid': None,
    'LaserScan': 'LaserScan',
    'Map': 'OccupancyGrid',
    'MarkerArray': 'MarkerArray',
    'Odometry': 'Odometry',
    'Path': 'Path',
    'Pose': 'PoseStamped',
    'PoseWithCovariance': 'PoseWithCovarianceStamped',
    'TF': None,
}
TOOLS = {'FocusCamera', 'Measure', 'MoveCamera', 'Select', 'SetGoal'}
POLICIES = {
    'History Policy': {'Keep Last'},
    'Reliability Policy': {'Best Effort', 'Reliable'},
    'Durability Policy': {'Volatile', 'Transient Local'},
}
SENSORS = {'scan', 'pose'}


def read(path):
    return yaml.safe_load(path.read_text())['Visualization Manager']


@pytest.fixture(params=FILES, ids=[path.stem for path in FILES])
def shown(request):
    return read(request.param)


@pytest.fixture
def of_filter():
    return read(CONFIG / 'filter.rviz')


@pytest.fixture
def of_planner():
    return read(CONFIG / 'planner.rviz')


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


def poses(config):
    """Return the displays of a pose, of which that of the default type is shown."""
    types = dict(fields(config))['pose.type'].metadata['choices']
    return {('pose', kind, kind == config().pose.type) for kind in types}


def test_displays_tools_and_view_are_plugins_of_rviz(shown):
    assert {plugin(display) for display in shown['Displays']} <= set(DISPLAYS)
    assert {plugin(tool) for tool in shown['Tools']} <= TOOLS
    assert plugin(shown['Views']['Current']) == 'TopDownOrtho'
    assert shown['Global Options']['Fixed Frame'] == 'map'
    names = [display['Name'] for display in shown['Displays']]
    assert len(set(names)) == len(names)


def test_topics_are_those_of_the_filter_relative_and_of_its_types(of_filter):
    assert topics(of_filter) == {
        ('scan', 'LaserScan', True),
        *poses(FilterNodeConfig),
        ('estimate', 'PoseWithCovarianceStamped', True),
    }


def test_topics_are_those_of_the_planner_relative_and_of_its_types(of_planner):
    assert topics(of_planner) == {
        ('scan', 'LaserScan', True),
        *poses(PlannerNodeConfig),
        ('map', 'OccupancyGrid', True),
        ('reference', 'Path', True),
        ('plan', 'Path', False),
        ('planner_node/markers', 'MarkerArray', True),
    }


def test_sensor_data_are_taken_best_effort_so_that_any_publisher_fits(shown):
    for topic in (display['Topic'] for display in shown['Displays'] if 'Topic' in display):
        assert all(topic[policy] in allowed for policy, allowed in POLICIES.items())
        wanted = 'Best Effort' if topic['Value'] in SENSORS else 'Reliable'
        assert topic['Reliability Policy'] == wanted
        wanted = 'Transient Local' if topic['Value'] == 'map' else 'Volatile'
        assert topic['Durability Policy'] == wanted


def test_estimate_shows_its_covariance_in_a_colour_of_its_own(of_filter):
    by_name = {display['Name']: display for display in of_filter['Displays']}
    covariance = by_name['Estimate']['Covariance']
    assert covariance['Value'] is covariance['Position']['Value'] is True
    assert by_name['Estimate']['Color'] != by_name['Trusted pose']['Color']


def test_goals_are_sent_where_the_planner_listens(of_planner):
    (tool,) = [tool for tool in of_planner['Tools'] if plugin(tool) == 'SetGoal']
    assert tool['Topic']['Value'] == 'goal_pose'
    assert tool['Topic']['Reliability Policy'] == 'Reliable'


@pytest.mark.parametrize('path', FILES, ids=[path.stem for path in FILES])
def test_file_needs_no_merge_keys_which_the_yaml_reader_of_rviz_lacks(path):
    assert '<<' not in path.read_text()
