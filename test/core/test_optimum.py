# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The default mode, with its default settings, against the optimum of the convex program.

Kernel, regularisation and constraint belong to the problem; nothing else is set.
"""

from typing import NamedTuple

import numpy as np
import optimum
import pytest

from kernel_constrained.core import (
    conditional_value_at_risk,
    CVaR,
    Expectation,
    Gaussian,
    PrimalDualLearner,
)
from kernel_constrained.offline.reproduction.optimum import lidar_problem, Problem

# Not `importorskip`: where launch_testing is installed, that would skip the folder.
pytestmark = pytest.mark.skipif(optimum.cp is None, reason='cvxpy is not installed')

SEEDS = 20


class Case(NamedTuple):
    """A problem, how far below the free CVaR the bound lies, and how long it is streamed."""

    problem: Problem
    ratio: float
    epochs: int


CASES = {
    'lidar': Case(lidar_problem(1e-3), 0.97, 200),
    'skewed noise, 5 % gross outliers': Case(optimum.skewed(), 0.9, 200),
    'two inputs': Case(optimum.square(), 0.95, 200),
}
SECOND_ORDER = {
    **CASES,
    "lidar, the paper's lambda, 20 epochs": Case(lidar_problem(1e-5), 0.97, 20),
}


def learn(problem, constraint, seed, epochs, **settings):
    learner = PrimalDualLearner(
        Gaussian(problem.bandwidth), constraint=constraint, regularization=problem.regularization,
        **settings,
    )  # fmt: skip
    return learner.partial_fit(*problem.epochs(epochs, seed))


def bound_below_the_free_optimum(case):
    """Return (tolerance, optimum under it, free optimum)."""
    free = optimum.optimum_of(case.problem)
    tolerance = case.ratio * free.cvar(case.problem, 0.9)
    return tolerance, optimum.optimum_of(case.problem, [(0.9, tolerance)]), free


def assert_reaches_the_optimum(case, step):
    """Objective within 2 %, CVaR within 1 % of the bound, dual within a factor 2: medians."""
    problem = case.problem
    tolerance, best, free = bound_below_the_free_optimum(case)
    assert best.objective > free.objective * 1.001, 'the bound must bind, or this tests nothing'
    results = []
    for seed in range(SEEDS):
        learner = learn(problem, CVaR(0.9, tolerance), seed, case.epochs, step=step)
        results.append((problem.objective(learner) / best.objective - 1,
                        conditional_value_at_risk(problem.losses(learner), 0.9) / tolerance,
                        learner.dual_variable_ / best.dual_variables[0]))  # fmt: skip
    gap, cvar, dual = np.median(results, axis=0)
    print(f'{step}: gap {gap:.2%}, CVaR/gamma {cvar:.4f}, dual/mu* {dual:.2f}')
    assert abs(gap) <= 0.02
    assert cvar <= 1.01
    assert 0.5 <= dual <= 2.0


@pytest.mark.parametrize('name', CASES)
def test_gradient_steps_reach_the_constrained_optimum(name):
    assert_reaches_the_optimum(CASES[name], 'gradient')


@pytest.mark.parametrize('name', SECOND_ORDER)
def test_recursive_steps_reach_the_constrained_optimum(name):
    assert_reaches_the_optimum(SECOND_ORDER[name], 'recursive')


@pytest.mark.parametrize('step', ['gradient', 'recursive'])
def test_unconstrained_learner_reaches_kernel_ridge_regression(step):
    problem = lidar_problem(1e-3)
    free = optimum.optimum_of(problem)
    learner = learn(problem, None, 0, 200, step=step)
    assert problem.objective(learner) / free.objective - 1 <= 0.005
    assert np.abs(learner.predict(problem.x) - free.prediction).max() <= 0.02


@pytest.mark.parametrize('step', ['gradient', 'recursive'])
def test_the_constraint_bends_the_curve_towards_the_outliers(step):
    case = CASES['skewed noise, 5 % gross outliers']
    tolerance, best, free = bound_below_the_free_optimum(case)
    held = learn(case.problem, CVaR(0.9, tolerance), 0, 100, step=step).predict(case.problem.x)
    bent = best.prediction - free.prediction
    assert bent.mean() > 0.1
    assert np.abs(held - best.prediction).mean() < 0.2 * bent.mean()


@pytest.mark.parametrize('step', ['gradient', 'recursive'])
def test_two_levels_of_cvar_hold_at_once(step):
    """Each of the two binds: neither alone would keep the other."""
    problem = optimum.square()
    free = optimum.optimum_of(problem)
    levels = [(0.9, 0.97 * free.cvar(problem, 0.9)), (0.5, 0.985 * free.cvar(problem, 0.5))]
    best = optimum.optimum_of(problem, levels)
    assert (best.dual_variables > 0.02).all()
    learner = learn(problem, [CVaR(*level) for level in levels], 0, 200, step=step)
    losses = problem.losses(learner)
    assert problem.objective(learner) / best.objective - 1 == pytest.approx(0.0, abs=0.02)
    for alpha, gamma in levels:
        assert conditional_value_at_risk(losses, alpha) <= gamma * 1.01
    assert learner.dual_variable_.shape == (2,)
    assert learner.violation_.shape == (2,)


@pytest.mark.parametrize('step', ['gradient', 'recursive'])
def test_expectation_constraint_reaches_its_optimum(step):
    problem = optimum.skewed()._replace(regularization=0.3)
    free = optimum.optimum_of(problem)
    gamma = 0.95 * free.cvar(problem, 0.0)
    best = optimum.optimum_of(problem, [(0.0, gamma)])
    learner = learn(problem, Expectation(gamma), 0, 200, step=step)
    assert problem.objective(learner) / best.objective - 1 == pytest.approx(0.0, abs=0.02)
    assert problem.losses(learner).mean() <= gamma * 1.01
    assert 0.5 <= learner.dual_variable_ / best.dual_variables[0] <= 2.0


@pytest.mark.parametrize('step', ['gradient', 'recursive'])
@pytest.mark.parametrize('scale', [2.0**-10, 2.0**10])
def test_the_units_of_inputs_and_targets_make_no_difference(step, scale):
    """Scaled by a power of two everything is the same to the last bit."""
    problem = lidar_problem(1e-3)
    x, y = problem.epochs(20, 0)
    plain = learn(problem, CVaR(0.9, 0.0366), 0, 20, step=step)
    scaled = PrimalDualLearner(
        Gaussian(problem.bandwidth * scale), constraint=CVaR(0.9, 0.0366 * scale**2),
        regularization=1e-3, step=step,
    ).partial_fit(x * scale, y * scale)  # fmt: skip
    assert np.array_equal(scaled.predict(problem.x * scale), plain.predict(problem.x) * scale)
    assert scaled.dual_variable_ == plain.dual_variable_
