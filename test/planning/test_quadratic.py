# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Multipliers of half-planes, against non-negative least squares by scipy."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from kernel_constrained.planning.quadratic import cholesky_solve, multipliers

TIMES, SOFTNESS = 24, 1e-4
ACTIVE = 20


def response_of(rng):
    """Make a positive semidefinite response of few degrees of freedom, like that of a path."""
    values = rng.standard_normal((TIMES, 8))
    return values @ values.T / 8.0


def solved(response, normal, excess, force=None):
    """Return the forces, and by how much each constraint is exceeded then."""
    force = np.zeros(2 * TIMES) if force is None else force.copy()
    shift, matrix = np.empty((TIMES, normal.shape[1])), np.empty((ACTIVE, ACTIVE))
    count = multipliers(
        response, SOFTNESS, normal, excess, force, shift, np.empty(ACTIVE, np.int64), matrix,
        np.empty(ACTIVE), np.empty(ACTIVE),
    )  # fmt: skip
    assert count == (force > 0.0).sum()
    return force, excess - (normal * np.repeat(shift, 2, axis=0)).sum(1)


def matrix_of(response, normal):
    at = np.arange(2 * TIMES) // 2
    return response[np.ix_(at, at)] * (normal @ normal.T) + SOFTNESS * np.eye(2 * TIMES)


@pytest.mark.parametrize('seed', range(12))
@pytest.mark.parametrize('dimensions', [2, 3])
def test_multipliers_are_those_of_non_negative_least_squares(seed, dimensions):
    rng = np.random.default_rng(seed)
    response = response_of(rng)
    normal = rng.standard_normal((2 * TIMES, dimensions))
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    excess = rng.uniform(-1.0, 0.2, 2 * TIMES)
    lower = np.linalg.cholesky(matrix_of(response, normal))
    best, _ = nnls(lower.T, solve_triangular(lower, excess, lower=True))
    q = matrix_of(response, normal)
    force, left = solved(response, normal, excess)
    value, least = (0.5 * f @ q @ f - excess @ f for f in (force, best))
    assert value == pytest.approx(least, rel=1e-3, abs=1e-6)
    assert (force >= 0.0).all()
    # Violated by no more than the tolerance and what its softness yields to the force.
    assert (left - SOFTNESS * force).max() < 2e-4


def test_beginning_at_other_forces_ends_at_the_same():
    rng = np.random.default_rng(5)
    response, normal = response_of(rng), rng.standard_normal((2 * TIMES, 2))
    excess = rng.uniform(-1.0, 0.3, 2 * TIMES)
    cold, _ = solved(response, normal, excess)
    begin = np.where(rng.random(2 * TIMES) < 0.3, rng.uniform(0.0, 5.0, 2 * TIMES), 0.0)
    warm, _ = solved(response, normal, excess, begin)
    q = matrix_of(response, normal)
    values = [0.5 * f @ q @ f - excess @ f for f in (cold, warm)]
    assert values[0] == pytest.approx(values[1], rel=1e-3)


def test_what_is_not_exceeded_needs_no_force_and_what_is_not_there_gets_none():
    rng = np.random.default_rng(6)
    response, normal = response_of(rng), rng.standard_normal((2 * TIMES, 2))
    force, _ = solved(response, normal, np.full(2 * TIMES, -0.1), np.ones(2 * TIMES))
    assert not force.any()
    force, _ = solved(response, normal, np.full(2 * TIMES, -np.inf), np.ones(2 * TIMES))
    assert not force.any()


def test_half_planes_that_contradict_each_other_share_the_violation():
    response, normal = np.eye(TIMES), np.zeros((2 * TIMES, 2))
    normal[0], normal[1] = [0.0, 1.0], [0.0, -1.0]
    excess = np.full(2 * TIMES, -np.inf)
    excess[:2] = 0.1, 0.3
    force, left = solved(response, normal, excess)
    np.testing.assert_allclose(left[:2], [0.2, 0.2], atol=1e-4)
    np.testing.assert_allclose(force[:2] * SOFTNESS, 0.2, rtol=1e-3)


def test_more_contacts_than_there_is_room_for_are_left_out():
    rng = np.random.default_rng(7)
    normal = np.zeros((2 * TIMES, 2))
    normal[::2, 0] = 1.0
    excess = np.where(np.arange(2 * TIMES) % 2 == 0, rng.uniform(0.1, 1.0, 2 * TIMES), -np.inf)
    force, _ = solved(np.eye(TIMES), normal, excess)
    assert (force > 0.0).sum() == ACTIVE
    assert force[np.argmax(excess)] > 0.0


def test_cholesky_solves():
    rng = np.random.default_rng(8)
    half = rng.standard_normal((7, 7))
    matrix, right, solution = half @ half.T + np.eye(7), rng.standard_normal(7), np.empty(7)
    exact = np.linalg.solve(matrix, right)
    cholesky_solve(matrix.copy(), right, 7, solution)
    np.testing.assert_allclose(solution, exact, rtol=1e-10)
