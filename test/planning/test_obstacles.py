# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The way out of obstacles, against walking along the line in small steps."""

import numpy as np
import pytest
from truth import discs

from kernel_constrained.planning.obstacles import deepest, shorter_way_out

REACH = 4.0


def depth_of(position, o):
    gradient = np.empty(2)
    return deepest(position, o.points, o.points.shape[1], o.keep, o, gradient), gradient


def way_out(position, o, reach=REACH):
    """Return what is found, and depth and gradient before."""
    depth, gradient = depth_of(position, o)
    turned, scratch = 0.5 * gradient, (np.empty(o.points.shape[1]), np.empty(o.points.shape[1]))
    return shorter_way_out(position, depth, turned, o, reach, *scratch), turned, depth, gradient


def walked(position, axis, o, step=1e-3):
    """Return how far it is until nothing is touched, by steps."""
    steps = range(int(REACH / step))
    return next((k * step for k in steps if depth_of(position + k * step * axis, o)[0] <= 0), None)


def test_way_out_is_the_shorter_one_of_the_two_that_are_walked():
    rng, checked = np.random.default_rng(0), 0
    for position in rng.uniform(0.0, 4.0, (60, 2)):
        o = discs(rng.uniform(0.0, 4.0, (2, 6)), 0.8)
        o = o._replace(low=np.full(2, -0.5), high=np.full(2, 4.5))  # no way out but inside
        found, turned, depth, gradient = way_out(position, o)
        if depth <= 0.0:
            continue
        lengths = [walked(position, side * gradient, o) for side in (-1.0, 1.0)]
        ways = [length for length in lengths if length is not None]
        if ways:
            assert found == pytest.approx(min(ways), abs=2e-3)
            side = 1.0 if lengths[0] == min(ways) else -1.0
            np.testing.assert_allclose(turned, side * gradient, atol=1e-9)
            checked += 1
    assert checked > 20


def test_way_out_leads_past_the_second_disc_where_it_overlaps():
    o = discs(np.array([[0.0, 0.0], [0.9, -0.7]]), 1.0)
    found, turned, depth, _ = way_out(np.array([0.0, 0.05]), o)
    assert found == pytest.approx(1.75)
    assert depth == pytest.approx(0.25)
    assert turned[1] == pytest.approx(1.0)  # out is downwards


def test_depth_stays_where_no_way_out_is_near():
    o = discs(np.array([[0.0], [0.0]]), 9.0)
    found, turned, depth, gradient = way_out(np.array([0.5, 0.0]), o)
    assert found == depth == pytest.approx(8.5)
    np.testing.assert_allclose(turned, 0.5 * gradient)


def test_nothing_changes_outside():
    o = discs(np.array([[0.0], [0.0]]), 1.0)
    found, turned, depth, gradient = way_out(np.array([2.0, 0.0]), o)
    assert found == depth == pytest.approx(-1.0)
    np.testing.assert_array_equal(turned, 0.5 * gradient)
