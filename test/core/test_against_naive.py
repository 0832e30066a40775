# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled learner against the naive reference: same dictionary, same predictions."""

import numpy as np
import pytest
from naive import NaiveLearner, NaiveRecursive

from kernel_constrained.core import CVaR, Expectation, Gaussian, Polynomial, PrimalDualLearner


def stream(seed, n, outputs=1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2))
    y = np.sin(3 * x[:, :1]) * np.cos(2 * x[:, 1:]) + 0.1 * rng.standard_normal((n, outputs))
    y[:, 1:] *= 0.3
    return x, y


def same_dictionary(learner, naive):
    return {tuple(a) for a in learner.dictionary_} == {tuple(a) for a in naive.atoms}


def worst_difference(learner, naive):
    x = np.random.default_rng(99).uniform(-1, 1, (300, 2))
    return np.abs(learner.predict(x) - naive.predict(x)).max()


def learn_both(settings, x, y, constraints=()):
    learner = PrimalDualLearner(
        **settings, constraint=list(constraints) or None, step='gradient'
    ).partial_fit(x, y)
    naive = NaiveLearner(**settings, constraints=constraints)
    for sample, target in zip(x, y, strict=True):
        naive.step(sample, target)
    return learner, naive


@pytest.mark.parametrize(
    ('step_size', 'parsimony', 'regularization'),
    [(0.2, 1.25, 1e-4), (0.2, 0.5, 1e-4), (0.25, 0.6, 1e-3), (0.1, 1.0, 1e-5)],
)
@pytest.mark.parametrize('outputs', [1, 3])
@pytest.mark.parametrize('batch_size', [1, 4])
def test_paper_mode_equals_naive_reference(
    step_size, parsimony, regularization, outputs, batch_size
):
    x, y = stream(0, 200, outputs)
    settings = {
        'kernel': Gaussian(0.3), 'step_size': step_size, 'parsimony': parsimony,
        'regularization': regularization, 'mode': 'paper', 'batch_size': batch_size,
    }  # fmt: skip
    constraints = [CVaR(0.9, 0.05), CVaR(0.6, 0.01)]
    learner, naive = learn_both(settings, x, y, constraints)
    assert same_dictionary(learner, naive)
    assert 5 < learner.model_order_ < 150, 'the case must compress, or it tests nothing'
    assert worst_difference(learner, naive) <= 1e-10
    assert learner.dual_variable_ == pytest.approx(naive.mu, rel=1e-9)


@pytest.mark.parametrize('parsimony', [0.3, 1.0])
@pytest.mark.parametrize('tolerance', [0.02, 0.2])
@pytest.mark.parametrize('outputs', [1, 2])
@pytest.mark.parametrize('batch_size', [1, 5])
def test_default_mode_equals_naive_reference(parsimony, tolerance, outputs, batch_size):
    x, y = stream(1, 150, outputs)
    settings = {
        'kernel': Gaussian(0.3), 'step_size': 0.3, 'parsimony': parsimony, 'regularization': 1e-4,
        'mode': 'default', 'dual_step_size': 0.3, 'decay_after': 100.0, 'batch_size': batch_size,
    }  # fmt: skip
    constraints = [CVaR(0.8, tolerance), Expectation(tolerance / 4)]
    learner, naive = learn_both(settings, x, y, constraints)
    assert same_dictionary(learner, naive)
    assert 5 < learner.model_order_ < 140, 'the case must compress, or it tests nothing'
    assert worst_difference(learner, naive) <= 1e-10
    assert learner.dual_variable_ == pytest.approx(naive.mean_mu * [0.2, 1.0], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize('mode', ['paper', 'default'])
def test_polynomial_kernel_equals_naive_reference(mode):
    x, y = stream(2, 120)
    settings = {
        'kernel': Polynomial(3, 0.5), 'step_size': 0.02, 'parsimony': 60.0, 'regularization': 1e-4,
        'mode': mode, 'decay_after': np.inf,
    }  # fmt: skip
    learner, naive = learn_both(settings, x, y)
    assert same_dictionary(learner, naive)
    assert worst_difference(learner, naive) <= 1e-9


@pytest.mark.parametrize('window', [np.inf, 60.0])
@pytest.mark.parametrize('max_order', [12, 1000])
@pytest.mark.parametrize('outputs', [1, 2])
def test_recursive_step_equals_textbook_least_squares(window, max_order, outputs):
    x, y = stream(4, 250, outputs)
    learner = PrimalDualLearner(
        Gaussian(0.6), step='recursive', novelty=0.02, regularization=1e-3,
        averaging_window=window, max_model_order=max_order,
    ).partial_fit(x, y)  # fmt: skip
    naive = NaiveRecursive(Gaussian(0.6), 0.02, 1e-3, window, max_order)
    for sample, target in zip(x, y, strict=True):
        naive.step(sample, target)
    assert same_dictionary(learner, naive)
    assert learner.model_order_ == min(max_order, learner.model_order_) < 60
    assert worst_difference(learner, naive) <= 1e-9
    covariance = covariance_of(learner)
    assert np.array_equal(covariance, covariance.T), 'forgetting would blow a difference up'


def covariance_of(learner):
    order = learner.model_order_
    return learner.to_parts()[1]['factors'][1, :order, :order]


def test_removal_errors_stay_within_the_budget():
    """|f after - f before|_H of each compression is at most P eta^2, by the Gram matrix."""
    x, y = stream(3, 120)
    learner = PrimalDualLearner(Gaussian(0.3), step_size=0.3, parsimony=0.5, mode='paper')
    budget = 0.5 * 0.3**2
    for i in range(len(x)):
        if i:
            atoms, weights = learner.dictionary_, (1 - 0.3 * 1e-5) * learner.weights_
            newcomer = -2 * 0.3 * (learner.predict(x[i : i + 1]) - y[i])
        else:
            atoms, weights, newcomer = np.empty((0, 2)), np.empty((0, 1)), 2 * 0.3 * y[:1]
        atoms = np.vstack([atoms, x[i]])
        weights = np.vstack([weights, newcomer])
        learner.partial_fit(x[i : i + 1], y[i : i + 1])
        everything = np.vstack([atoms, learner.dictionary_])
        difference = np.vstack([weights, -learner.weights_])
        squared = np.sum(difference * (learner.kernel(everything, everything) @ difference))
        assert squared <= budget**2 * (1 + 1e-6) + 1e-12
    assert learner.overspent_ == 0
