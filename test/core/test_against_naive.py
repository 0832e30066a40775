# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled learner against the naive reference: same dictionary, same predictions."""

import numpy as np
import pytest
from naive import NaiveLearner

from kernel_constrained.core import CVaR, Gaussian, Polynomial, PrimalDualLearner


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


@pytest.mark.parametrize(
    ('step_size', 'parsimony', 'regularization'),
    [(0.2, 1.25, 1e-4), (0.2, 0.5, 1e-4), (0.3, 0.6, 1e-3), (0.1, 1.0, 1e-5)],
)
@pytest.mark.parametrize('outputs', [1, 3])
def test_paper_mode_equals_naive_reference(step_size, parsimony, regularization, outputs):
    x, y = stream(0, 200, outputs)
    settings = dict(
        kernel=Gaussian(0.3), step_size=step_size, parsimony=parsimony,
        regularization=regularization, constraint=CVaR(0.9, 0.05), mode='paper',
    )  # fmt: skip
    learner = PrimalDualLearner(**settings).partial_fit(x, y)
    naive = NaiveLearner(**settings)
    for sample, target in zip(x, y, strict=True):
        naive.step(sample, target)
    assert same_dictionary(learner, naive)
    assert 5 < learner.model_order_ < 150, 'the case must compress, or it tests nothing'
    assert worst_difference(learner, naive) <= 1e-10
    assert learner.dual_variable_ == pytest.approx(naive.mu, rel=1e-9)


@pytest.mark.parametrize('parsimony', [0.3, 1.0])
@pytest.mark.parametrize('tolerance', [0.02, 0.2])
@pytest.mark.parametrize('outputs', [1, 2])
def test_default_mode_equals_naive_reference(parsimony, tolerance, outputs):
    x, y = stream(1, 150, outputs)
    settings = dict(
        kernel=Gaussian(0.3), step_size=0.3, parsimony=parsimony, regularization=1e-4,
        constraint=CVaR(0.8, tolerance), mode='default', dual_step_size=0.3,
    )  # fmt: skip
    learner = PrimalDualLearner(**settings).partial_fit(x, y)
    naive = NaiveLearner(**settings)
    for sample, target in zip(x, y, strict=True):
        naive.step(sample, target)
    assert same_dictionary(learner, naive)
    assert worst_difference(learner, naive) <= 1e-10
    assert learner.dual_variable_ == pytest.approx(naive.mu * 0.2, rel=1e-9, abs=1e-12)


def test_polynomial_kernel_equals_naive_reference():
    x, y = stream(2, 120)
    settings = dict(kernel=Polynomial(3, 0.5), step_size=0.02, parsimony=30.0, regularization=1e-4)
    learner = PrimalDualLearner(**settings, mode='paper').partial_fit(x, y)
    naive = NaiveLearner(**settings)
    for sample, target in zip(x, y, strict=True):
        naive.step(sample, target)
    assert same_dictionary(learner, naive)
    assert worst_difference(learner, naive) <= 1e-9


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
