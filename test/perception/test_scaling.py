# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Offset and scale from the range that numbers have had."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_constrained.perception.scaling import Scaling, SLACK


def fresh(count=2, floor=0.0, **more):
    return Scaling(np.zeros(count), np.ones(count), np.full(count, floor), **more)


def spread(*ranges, count=1001):
    """Return values (count, k) spread evenly over each of the ranges."""
    return np.stack([np.linspace(low, high, count) for low, high in ranges], axis=1)


def ends(scaling):
    low, high = scaling.offset - scaling.half_width, scaling.offset + scaling.half_width
    return list(zip(low.tolist(), high.tolist()))


def test_middle_of_the_range_becomes_0_and_a_quarter_of_its_width_1():
    scaling = fresh().between(np.array([2.0, -5.0]), np.array([6.0, 5.0]))
    assert scaling.scaled(np.array([4.0, 0.0])).tolist() == [0.0, 0.0]
    values = np.array([[6.0, -5.0], [5.0, 2.5]])
    assert scaling.scaled(values).tolist() == [[2.0, -2.0], [1.0, 1.0]]


def test_fixed_scaling_is_the_offset_and_scale_given():
    scaling = Scaling.fixed(np.array([1.0, 2.0]), np.array([10.0, 0.1]))
    assert scaling.scaled(np.array([21.0, 1.9])) == pytest.approx([2.0, -1.0])


def test_range_of_values_leaves_the_outermost_out():
    scaling = fresh().of(spread((0.0, 100.0), (-50.0, 50.0)))
    assert ends(scaling) == [pytest.approx((2.0, 98.0)), pytest.approx((-48.0, 48.0))]


@pytest.mark.parametrize('count', [10, 25, 50, 100, 1000])
@pytest.mark.parametrize('wild', [1e6, -1e6, 1e300])
def test_a_single_outlier_moves_no_range_however_few_values_there_are(count, wild):
    values = spread((1.0, 2.0), (1.0, 2.0), count=count)
    values[count // 2, 0] = wild
    learned = fresh().of(values)
    for low, high in ends(learned):
        assert 0.999 < low < 1.25
        assert 1.75 < high < 2.001
    assert learned.widened(values) is learned


def test_range_stays_where_values_exceed_it_by_little():
    def exceeding(share):
        return spread((-4.0 * share, 4.0 + 4.0 * share), (-8.0 * share, 8.0 + 8.0 * share))

    scaling = fresh().between(np.array([0.0, 0.0]), np.array([4.0, 8.0]))
    # The slack is a share of the width; a few of the values lie beyond.
    assert scaling.widened(exceeding(1.0 * SLACK)) is scaling
    assert scaling.widened(exceeding(1.2 * SLACK)) is not scaling
    assert scaling.widened(np.ones((3, 2))) is scaling, 'and never shrinks'


@pytest.mark.parametrize('column', [0, 1])
@pytest.mark.parametrize('sign', [-1.0, 1.0])
def test_range_is_widened_to_what_exceeds_it_and_no_side_shrinks(column, sign):
    scaling = fresh().between(np.array([-2.0, -2.0]), np.array([2.0, 2.0]))
    values = np.zeros((1001, 2))
    values[:, column] = sign * np.linspace(0.0, 10.0, 1001)
    widened = scaling.widened(values)
    seen = (-2.0, 9.8) if sign > 0 else (-9.8, 2.0)
    expected = [(-2.0, 2.0), (-2.0, 2.0)]
    expected[column] = pytest.approx(seen)
    assert ends(widened) == expected
    assert widened.widened(values) is widened


def test_slack_is_measured_in_scales_so_that_noise_on_a_narrow_range_widens_nothing():
    scaling = fresh(floor=1.0).between(np.array([3.0, 3.0]), np.array([3.0, 3.0]))
    assert scaling.widened(spread((2.1, 3.9), (3.0, 3.0))) is scaling
    assert scaling.widened(spread((-1.0, 7.0), (3.0, 3.0))) is not scaling


def test_scale_is_never_below_its_floor():
    scaling = Scaling(np.zeros(2), np.array([0.0, 8.0]), np.array([0.5, 0.5]))
    assert scaling.scale.tolist() == [0.5, 4.0]
    assert scaling.between(np.zeros(2), np.zeros(2)).scale.tolist() == [0.5, 0.5]


def test_scale_is_at_least_its_share_of_what_all_are():
    half_width = np.array([0.0, 2.0, 2.0, 14.0])
    scaling = Scaling(np.zeros(4), half_width, np.zeros(4), smallest_share=0.5)
    common = 0.5 * np.sqrt(np.mean((half_width / 2) ** 2))
    assert scaling.scale == pytest.approx([common, common, common, 7.0])
    assert scaling.between(-half_width, 3 * half_width).smallest_share == 0.5


@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2),
    low=st.floats(-1e6, 1e6),
    width=st.floats(0, 1e6),
)
def test_scaled_and_original_are_inverse(values, low, width):
    scaling = fresh(floor=0.01).between(np.array([low, 0.0]), np.array([low + width, 1.0]))
    assert scaling.original(scaling.scaled(np.array(values))) == pytest.approx(values, abs=1e-6)


@given(st.lists(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=30), min_size=1, max_size=8))
def test_widened_range_contains_all_it_contained_before(batches):
    scaling = fresh(1, floor=0.1)
    for batch in batches:
        ((low, high),) = ends(scaling)
        scaling = scaling.widened(np.array(batch)[:, None])
        ((new_low, new_high),) = ends(scaling)
        assert new_low <= low + 1e-9
        assert new_high >= high - 1e-9


def test_scaling_is_restored_from_its_array_with_floor_and_share_of_the_configuration():
    learned = fresh(floor=0.3, smallest_share=0.5).of(spread((0.0, 1.0), (5.0, 50.0)))
    restored = fresh(floor=0.3, smallest_share=0.5).restored(learned.to_array())
    assert restored.scale.tolist() == learned.scale.tolist()
    assert restored.offset.tolist() == learned.offset.tolist()
    assert restored.smallest_share == 0.5


@pytest.mark.parametrize('shape', [(2, 3), (3, 2), (2,), (2, 2, 1)])
def test_array_of_another_shape_is_no_scaling(shape):
    with pytest.raises(ValueError, match='a scaling has shape'):
        fresh().restored(np.zeros(shape))
