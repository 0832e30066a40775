# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Targets: what is estimated, in which unit, and back."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_constrained.perception.config import AXES, TargetConfig, TARGETS
from kernel_constrained.perception.geometry import Pose
from kernel_constrained.perception.targets import Target

POSE = Pose(4.0, -2.0, 1.5, math.pi / 6)
BEFORE = Pose(4.0, -3.0, 1.0, math.pi / 2)
SCALES = dict(position_scale=2.0, yaw_scale=0.5, position_offset=1.0, clip=1e6, scaling='fixed')


def target(**settings):
    return Target(TargetConfig(**{**SCALES, **settings}))


# settings, components, quantity in SI units, the same in scales
KINDS = [
    ({'type': 'axis', 'axis': 'x'}, ('x',), [4.0], [1.5]),
    ({'type': 'axis', 'axis': 'y'}, ('y',), [-2.0], [-1.5]),
    ({'type': 'axis', 'axis': 'z'}, ('z',), [1.5], [0.25]),
    (
        {'type': 'axis', 'axis': 'yaw'}, ('cos_yaw', 'sin_yaw'),
        [math.sqrt(0.75), 0.5], [math.sqrt(3.0), 1.0],
    ),
    (
        {'type': 'motion'}, ('forward', 'left', 'yaw'),
        [1.0, 0.0, -math.pi / 3], [0.0, 0.0, -2 * math.pi / 3],
    ),
    (
        {'type': 'pose'}, ('x', 'y', 'cos_yaw', 'sin_yaw'),
        [4.0, -2.0, math.sqrt(0.75), 0.5], [1.5, -1.0, math.sqrt(3.0), 1.0],
    ),
]  # fmt: skip


@pytest.mark.parametrize(('settings', 'components', 'quantity', 'normalised'), KINDS)
def test_target_is_the_quantity_chosen_in_its_scale(settings, components, quantity, normalised):
    chosen = target(**settings)
    assert chosen.components == components
    assert chosen.quantity(POSE, BEFORE) == pytest.approx(quantity, abs=1e-12)
    assert chosen.normalised(np.array(quantity)) == pytest.approx(normalised, abs=1e-12)
    assert chosen.denormalised(np.array(normalised)) == pytest.approx(quantity, abs=1e-12)


def test_kinds_above_are_all_there_are():
    assert {settings['type'] for settings, *_ in KINDS} == set(TARGETS)
    assert {settings.get('axis') for settings, *_ in KINDS} - {None} == set(AXES)


@pytest.mark.parametrize('kind', TARGETS)
def test_only_motion_needs_the_pose_before(kind):
    chosen = target(type=kind)
    assert chosen.needs_previous == (kind == 'motion')
    if chosen.needs_previous:
        with pytest.raises(ValueError, match='motion needs the pose at the previous scan'):
            chosen.quantity(POSE, None)
    else:
        assert chosen.quantity(POSE, None).tolist() == chosen.quantity(POSE, BEFORE).tolist()


@pytest.mark.parametrize('kind', TARGETS)
@given(numbers=st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4))
def test_normalised_and_denormalised_are_inverse_where_nothing_is_cut_off(kind, numbers):
    chosen = target(type=kind)
    quantity = np.array(numbers[: len(chosen.components)])
    chosen.range = chosen.range.between(quantity - 3.0, quantity + 1.0)
    assert chosen.denormalised(chosen.normalised(quantity)) == pytest.approx(quantity, abs=1e-9)


def test_targets_are_cut_off_at_clip_scales_about_the_offset():
    chosen = target(type='motion', clip=3.0)
    far = np.array([1e3, -1e3, 1e3])
    assert chosen.normalised(far).tolist() == [3.0, -3.0, 3.0]
    assert chosen.denormalised(chosen.normalised(far)).tolist() == [7.0, -6.0, 1.5]


def test_learned_range_moves_the_zero_and_the_cut_and_leaves_the_unit_of_the_loss():
    chosen = target(type='pose', clip=3.0, scaling='learned')
    low, high = np.array([90.0, -8.0, -1.0, -1.0]), np.array([110.0, -4.0, 1.0, 1.0])
    chosen.range = chosen.range.between(low, high)
    middle = np.array([100.0, -6.0, 0.0, 0.0])
    assert chosen.normalised(middle).tolist() == [0.0] * 4
    assert chosen.normalised(middle + chosen.scale) == pytest.approx([1.0] * 4)
    # a quarter of the ranges: 5 m, 1 m, 0.5, 0.5
    far = np.array([3.0 * 5.0 / 2.0, 3.0 * 1.0 / 2.0, 3.0, 3.0])
    assert chosen.normalised(middle + 1e3) == pytest.approx(far)
    assert chosen.normalised(middle - 1e3) == pytest.approx(-far)
    assert chosen.normalised(middle + 1e3, cut=False).max() > 500


def test_range_that_has_no_width_still_lets_a_tenth_of_a_scale_through():
    chosen = target(type='axis', clip=4.0, scaling='learned')
    chosen.range = chosen.range.between(np.array([7.0]), np.array([7.0]))
    assert chosen.normalised(np.array([8.0])) == pytest.approx([0.4])


def test_before_anything_is_seen_learned_and_fixed_scaling_are_the_same():
    for kind in TARGETS:
        fixed, learned = (target(type=kind, clip=3.0, scaling=s) for s in ('fixed', 'learned'))
        quantities = np.random.default_rng(0).normal(0, 9, (20, len(fixed.components)))
        assert fixed.normalised(quantities).tolist() == learned.normalised(quantities).tolist()


@pytest.mark.parametrize('kind', [{'type': 'pose'}, {'type': 'axis', 'axis': 'yaw'}])
def test_heading_does_not_jump_where_the_angle_does(kind):
    chosen = target(**kind)
    before, after = (
        chosen.normalised(chosen.quantity(POSE._replace(yaw=yaw), None))
        for yaw in (math.pi - 1e-6, -math.pi + 1e-6)
    )
    assert before == pytest.approx(after, abs=1e-5)
