# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The default mode against the optimum of the convex program."""

import numpy as np
import pytest
from optimum import constrained_optimum

from kernel_constrained.core import conditional_value_at_risk, CVaR, Gaussian, PrimalDualLearner
from kernel_constrained.data import lidar_split, load_lidar

pytest.importorskip('cvxpy', reason='cvxpy is not installed')

REGULARIZATION = 1e-3


@pytest.fixture(scope='module')
def lidar():
    table = load_lidar()
    train = lidar_split(seed=0).train
    x = ((table.range - 390) / 330)[train, None]
    return x, table.logratio[train]


def learn(x, y, constraint, seed, epochs=200):
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(len(x)) for _ in range(epochs)])
    learner = PrimalDualLearner(
        Gaussian(0.04), constraint=constraint, step_size=0.2, parsimony=0.005,
        regularization=REGULARIZATION, decay_after=2000,
    ).partial_fit(x[order], y[order])  # fmt: skip
    losses = (learner.predict(x) - y) ** 2
    return learner, losses, losses.mean() + REGULARIZATION / 2 * learner.squared_norm_


def test_constrained_learner_reaches_the_constrained_optimum(lidar):
    """Objective within 2 %, CVaR within 1 % of the bound, dual variable within a factor 2."""
    x, y = lidar
    gram = Gaussian(0.04)(x, x)
    free = constrained_optimum(gram, y, REGULARIZATION)
    tolerance = 0.97 * free.cvar
    optimum = constrained_optimum(gram, y, REGULARIZATION, 0.9, tolerance)
    assert optimum.dual_variable > 0.01, 'the constraint must bind, or this tests nothing'
    results = []
    for seed in range(5):
        learner, losses, objective = learn(x, y, CVaR(0.9, tolerance), seed)
        results.append((objective / optimum.objective - 1,
                        conditional_value_at_risk(losses, 0.9) / tolerance,
                        learner.dual_variable_ / optimum.dual_variable))  # fmt: skip
    gap, cvar, dual = np.median(results, axis=0)
    assert gap <= 0.02
    assert cvar <= 1.01
    assert 0.5 <= dual <= 2.0


def test_unconstrained_learner_reaches_kernel_ridge_regression(lidar):
    x, y = lidar
    gram = Gaussian(0.04)(x, x)
    free = constrained_optimum(gram, y, REGULARIZATION)
    _, losses, objective = learn(x, y, None, seed=0)
    assert objective / free.objective - 1 <= 0.01
    assert conditional_value_at_risk(losses, 0.9) == pytest.approx(free.cvar, rel=0.03)


def test_the_constraint_lowers_the_tail_that_the_free_learner_has(lidar):
    x, y = lidar
    free = conditional_value_at_risk(learn(x, y, None, seed=0)[1], 0.9)
    bound = 0.97 * free
    held = conditional_value_at_risk(learn(x, y, CVaR(0.9, bound), seed=0)[1], 0.9)
    assert held <= bound * 1.01 < free
