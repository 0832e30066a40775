# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Proofs of curvature and speed against many samples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_constrained.core.trajectory import basis_of
from kernel_constrained.planning.limits import within_limits

DENSE = np.linspace(0.0, 1.0, 4001)
INF = math.inf


def drawn(seed, dimensions=2):
    """Return a path of 10 m that bends but does not stop."""
    rng, basis = np.random.default_rng(seed), basis_of((0.1, 0.15, 0.2)[seed % 3])
    weights = 10.0 ** rng.uniform(-2.5, -0.5) * rng.standard_normal((dimensions, basis.count))
    goal = np.zeros(dimensions)
    goal[0] = 10.0
    return basis.trajectory(weights, np.zeros(dimensions), goal)


def highest(trajectory, since=0.0):
    """Return the largest curvature and speed among many samples."""
    times = since + (1.0 - since) * DENSE
    speed = np.linalg.norm(trajectory.derivative(times), axis=1)
    return trajectory.curvature(times).max(), speed.max()


@settings(deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]), st.sampled_from([0.0, 0.3, 0.9]))
def test_bounds_are_proven_exactly_where_they_hold(seed, dimensions, since):
    trajectory = drawn(seed, dimensions)
    curvature, speed = highest(trajectory, since)
    assert within_limits(trajectory, 1.01 * curvature + 1e-9, INF, since)
    assert within_limits(trajectory, INF, 1.01 * speed, since)
    assert within_limits(trajectory, 1.01 * curvature + 1e-9, 1.01 * speed, since)
    assert not within_limits(trajectory, 0.999 * curvature, INF, since)
    assert not within_limits(trajectory, INF, 0.999 * speed, since)
    assert not within_limits(trajectory, 0.999 * curvature, 1.01 * speed, since)


def test_what_holds_ahead_is_proven_though_it_did_not_before():
    basis = basis_of(0.1)
    weights = np.zeros((2, basis.count))
    weights[1, 3] = 1.0  # a bump that is passed at a quarter of the time
    trajectory = basis.trajectory(weights, np.zeros(2), np.array([10.0, 0.0]))
    before, after = highest(trajectory)[0], highest(trajectory, 0.7)[0]
    assert after < 0.1 * before
    assert within_limits(trajectory, 1.01 * after, INF, 0.7)
    assert not within_limits(trajectory, 1.01 * after, INF, 0.0)


def test_nothing_is_asked_of_a_path_without_bounds():
    assert within_limits(drawn(5), INF, INF)


def test_straight_way_bends_not_at_all_and_has_one_speed():
    basis = basis_of(0.2)
    straight = basis.trajectory(np.zeros((2, basis.count)), np.zeros(2), np.array([3.0, 4.0]))
    assert within_limits(straight, 1e-9, 5.0 + 1e-9)
    assert not within_limits(straight, 1e-9, 5.0 - 1e-9)


@pytest.mark.parametrize('curvature', [1.0, 1e6])
def test_path_that_turns_back_on_itself_has_no_bounded_curvature(curvature):
    basis = basis_of(0.2)
    weights = np.zeros((2, basis.count))
    weights[0] = basis.fit(np.sin(np.pi * basis.times)[:, None] * np.array([2.0, 0.0]))[0]
    there_and_back = basis.trajectory(weights, np.zeros(2), np.zeros(2))
    assert not within_limits(there_and_back, curvature, INF)
    assert within_limits(there_and_back, INF, 100.0)
