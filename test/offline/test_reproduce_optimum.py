# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The optimum that learners are held against, by its own conditions and by cvxpy's."""

from pathlib import Path

import numpy as np
import pytest

from kernel_constrained.core import conditional_value_at_risk, Gaussian
from kernel_constrained.offline.reproduction.optimum import (
    features_of,
    lidar_problem,
    optimum_of,
)

CORE = str(Path(__file__).resolve().parents[1] / 'core')

# Lambda, alpha, and the bound over what it bounds at the free optimum.
CASES = [
    (0.1, 0.9, 0.8),
    (0.1, 0.0, 0.8),
    (1e-3, 0.9, 0.97),
    (1e-5, 0.9, 0.97),
    (1e-5, 0.99, 0.97),
]


@pytest.mark.parametrize(('regularization', 'significance', 'ratio'), CASES)
def test_the_optimum_is_that_of_an_interior_point_solver(
    monkeypatch, regularization, significance, ratio
):
    pytest.importorskip('cvxpy', reason='cvxpy is not installed')
    monkeypatch.syspath_prepend(CORE)
    import optimum as interior

    problem = lidar_problem(regularization)
    free = optimum_of(problem)
    bound = (significance, ratio * free.cvar(problem, significance))
    ours, theirs = optimum_of(problem, bound), interior.optimum_of(problem, [bound])
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-5)
    assert ours.objective > free.objective
    assert ours.dual_variables == pytest.approx(theirs.dual_variables, rel=2e-3)
    assert ours.prediction == pytest.approx(theirs.prediction, abs=2e-3)
    assert free.prediction == pytest.approx(interior.optimum_of(problem).prediction, abs=2e-3)


@pytest.mark.parametrize(('regularization', 'significance', 'ratio'), CASES)
def test_the_optimum_keeps_its_bound_and_no_more(regularization, significance, ratio):
    problem = lidar_problem(regularization)
    gamma = ratio * optimum_of(problem).cvar(problem, significance)
    best = optimum_of(problem, (significance, gamma))
    assert best.cvar(problem, significance) == pytest.approx(gamma, rel=1e-5)


def test_a_bound_that_is_kept_anyway_changes_nothing():
    problem = lidar_problem(1e-3)
    free, bounded = optimum_of(problem), optimum_of(problem, (0.99, 0.8))
    assert bounded.objective == pytest.approx(free.objective, rel=1e-9)
    assert bounded.dual_variables == pytest.approx([0.0], abs=1e-6)


def test_a_bound_that_no_function_keeps_is_refused():
    problem = lidar_problem(1e-3)
    same = problem._replace(x=np.zeros_like(problem.x))  # no function tells the samples apart
    least = conditional_value_at_risk((problem.y - np.median(problem.y)) ** 2, 0.9)
    with pytest.raises(ArithmeticError, match='is there a function that keeps the bound'):
        optimum_of(same, (0.9, 0.1 * least))


def test_features_reproduce_the_kernel():
    x = lidar_problem(1e-3).x
    gram = Gaussian(0.04)(x, x)
    features = features_of(gram)
    assert features @ features.T == pytest.approx(gram, abs=1e-8)
    assert features.shape[1] < len(x) / 2
