# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The planner node's parameters: those of the planner, those every node has, and what fits."""

from pathlib import Path

import pytest

from kernel_constrained.configuration import (
    ConfigurationError,
    fields,
    from_flat,
    read_parameter_file,
)
from kernel_constrained.perception.node_config import FilterNodeConfig
from kernel_constrained.planning.config import PlannerConfig
from kernel_constrained.planning.node_config import PlannerNodeConfig

FILE = Path(__file__).resolve().parents[2] / 'config' / 'planner.yaml'


def test_it_has_every_parameter_of_the_planner_with_its_default():
    own = dict(fields(PlannerNodeConfig))
    for name, field in fields(PlannerConfig):
        assert own[name].default == field.default
        assert own[name].metadata == field.metadata


def test_what_the_nodes_share_means_the_same():
    own, of_filter = dict(fields(PlannerNodeConfig)), dict(fields(FilterNodeConfig))
    shared = {
        'autostart', 'executor', 'input.frame_id', 'mounting.source', 'mounting.base_frame',
        'mounting.yaw', 'pose.type', 'pose.frame_id', 'pose.max_jump', 'pairing.max_gap',
        'diagnostics.stale_after',
    }  # fmt: skip
    for name in shared:
        assert own[name].metadata == of_filter[name].metadata
        assert own[name].default == of_filter[name].default


def test_the_example_file_is_taken_as_it_is():
    given = read_parameter_file(FILE, '/planner_node')
    config = from_flat(PlannerNodeConfig, given)
    assert len(given) > 20
    assert config.robot.radius == given['robot.radius']


def test_what_the_example_file_has_commented_out_is_taken_too(tmp_path):
    text = FILE.read_text(encoding='utf-8').replace('\n    # ', '\n    ')
    (tmp_path / 'all.yaml').write_text(text, encoding='utf-8')
    given = read_parameter_file(tmp_path / 'all.yaml', '/planner_node')
    config = from_flat(PlannerNodeConfig, given)
    assert config.obstacles.circles == ('2.0 3.5 0.4',)
    assert config.workspace.x_max == 10.0
    assert config.limits.curvature == 2.0


@pytest.mark.parametrize(
    ('name', 'value', 'allowed'),
    [
        ('pose.max_age', -0.1, 'a number from 0 to 10'),
        ('reference.dimensions', 4, 'an integer from 2 to 3'),
        ('pose.type', 'Pose', 'one of PoseStamped'),
        ('scan.max_age', float('nan'), 'a number of at least 0'),
        ('robot.radius', 0.0, 'a number from 0.001 to 1000'),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_by_name(name, value, allowed):
    with pytest.raises(ConfigurationError, match=f'{name} must be {allowed}'):
        from_flat(PlannerNodeConfig, {name: value})
