# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Losses other than the squared one: what is learned, what is returned, what is refused."""

from typing import NamedTuple

import numpy as np
import pytest

from kernel_constrained.core import (
    conditional_value_at_risk,
    CVaR,
    Gaussian,
    PrimalDualLearner,
)
from kernel_constrained.core.losses import LOSSES

BINARY = ('logistic', 'hinge')
SEVERAL = ('multiclass_hinge', 'softmax')
SPREAD = 0.8


class Draw(NamedTuple):
    """Samples of a mixture of Gaussians on a circle, and what the best classifier says."""

    x: np.ndarray
    label: np.ndarray
    best_label: np.ndarray
    probability: np.ndarray

    def accuracy(self, label):
        return np.mean(label == self.label)


def mixture(loss, n, seed):
    classes = 4 if LOSSES[loss].several else 2
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(classes) / classes
    centres = 1.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    label = rng.integers(classes, size=n)
    x = centres[label] + SPREAD * rng.standard_normal((n, 2))
    density = np.exp(-0.5 * ((x[:, None] - centres) ** 2).sum(axis=2) / SPREAD**2)
    best = density.argmax(axis=1)
    if not LOSSES[loss].several:
        label, best = 2 * label - 1, 2 * best - 1
    return Draw(x, label.astype(float), best, density / density.sum(axis=1, keepdims=True))


def learner(loss, **settings):
    classes = 4 if LOSSES[loss].several else 2
    return PrimalDualLearner(Gaussian(1.0), loss=loss, classes=classes, **settings)


def assert_same_state(before, after):
    assert before[0] == after[0]
    assert before[1].keys() == after[1].keys()
    assert all(np.array_equal(before[1][k], after[1][k]) for k in before[1])


@pytest.mark.parametrize('loss', BINARY + SEVERAL)
def test_accuracy_comes_within_two_points_of_the_best_classifier(loss):
    train, test = mixture(loss, 4000, 0), mixture(loss, 3000, 1)
    fitted = learner(loss).partial_fit(train.x, train.label)
    best = test.accuracy(test.best_label)
    assert 0.8 < best < 0.99, 'the blobs must overlap, or this tests nothing'
    assert test.accuracy(fitted.predict(test.x)) >= best - 0.02
    assert fitted.model_order_ < 120


@pytest.mark.parametrize('mode', ['paper', 'penalty'])
@pytest.mark.parametrize('loss', BINARY + SEVERAL)
def test_the_published_modes_learn_to_classify_under_a_constraint(loss, mode):
    train, test = mixture(loss, 4000, 0), mixture(loss, 3000, 1)
    fitted = learner(loss, mode=mode, step_size=0.1, constraint=CVaR(0.9, 3.0))
    trace = fitted.prequential(train.x, train.label)
    assert test.accuracy(fitted.predict(test.x)) >= test.accuracy(test.best_label) - 0.06
    assert trace.dual_variable.max() > 0.0
    assert np.isfinite(fitted.decision_function(test.x)).all()


@pytest.mark.parametrize('loss', BINARY + SEVERAL)
def test_predictions_are_labels_and_decisions_are_scores(loss):
    draw = mixture(loss, 500, 0)
    fitted = learner(loss).partial_fit(draw.x, draw.label)
    scores, labels = fitted.decision_function(draw.x), fitted.predict(draw.x)
    assert labels.shape == (500,)
    assert set(labels) == set(draw.label)
    assert scores.shape == ((500, 4) if loss in SEVERAL else (500,))
    assert scores == pytest.approx(fitted.kernel(draw.x, fitted.dictionary_) @ fitted.weights_)
    expected = scores.argmax(axis=1) if loss in SEVERAL else np.sign(scores)
    assert np.array_equal(labels, expected)


@pytest.mark.parametrize('loss', BINARY + SEVERAL)
def test_the_trace_holds_the_scores_and_their_loss(loss):
    draw = mixture(loss, 300, 0)
    trace = learner(loss).prequential(draw.x, draw.label)
    scores = trace.prediction
    assert scores.shape == ((300, 4) if loss in SEVERAL else (300,))
    if loss in SEVERAL:
        own = scores[np.arange(300), draw.label.astype(int)]
        others = np.where(np.arange(4) == draw.label[:, None], -np.inf, scores).max(axis=1)
    expected = {
        'logistic': lambda: np.logaddexp(0.0, -draw.label * scores),
        'hinge': lambda: np.maximum(0.0, 1.0 - draw.label * scores),
        'multiclass_hinge': lambda: np.maximum(0.0, 1.0 + others - own),
        'softmax': lambda: np.logaddexp.reduce(scores, axis=1) - own,
    }
    assert trace.loss == pytest.approx(expected[loss](), abs=1e-12)


def test_probabilities_that_the_softmax_scores_imply_are_those_of_the_mixture():
    train, test = mixture('softmax', 4000, 0), mixture('softmax', 3000, 1)
    scores = learner('softmax').partial_fit(train.x, train.label).decision_function(test.x)
    implied = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    assert np.abs(implied - test.probability).mean() < 0.03
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (implied >= low) & (implied < low + 0.2)
        came_true = (np.arange(4) == test.label[:, None])[inside]
        assert came_true.mean() == pytest.approx(implied[inside].mean(), abs=0.08)


@pytest.mark.parametrize(
    ('loss', 'wrong', 'message'),
    [
        *((loss, 0.0, rf'labels of loss {loss} are -1 and 1 \(got 0\)') for loss in BINARY),
        *((loss, 2.0, rf'labels of loss {loss} are -1 and 1 \(got 2\)') for loss in BINARY),
        *((loss, 4.0, rf'labels of loss {loss} are 0 to 3 \(got 4\)') for loss in SEVERAL),
        *((loss, -1.0, rf'labels of loss {loss} are 0 to 3 \(got -1\)') for loss in SEVERAL),
        *((loss, 1.5, rf'labels of loss {loss} are 0 to 3 \(got 1\.5\)') for loss in SEVERAL),
    ],
)
@pytest.mark.parametrize('batch_size', [1, 4])
def test_a_wrong_label_is_named_and_nothing_is_learned(loss, wrong, message, batch_size):
    draw = mixture(loss, 50, 0)
    labels = draw.label.copy()
    labels[30] = wrong
    fitted = learner(loss, batch_size=batch_size)
    for call in (fitted.partial_fit, fitted.prequential):
        before = fitted.to_parts()
        with pytest.raises(ValueError, match=message):
            call(draw.x, labels)
        assert_same_state(before, fitted.to_parts())
        fitted.partial_fit(draw.x, draw.label)  # the first call has been refused, now a later one
    assert fitted.samples_ == 100


@pytest.mark.parametrize('loss', BINARY + SEVERAL)
def test_labels_in_several_columns_are_refused(loss):
    draw = mixture(loss, 50, 0)
    fitted = learner(loss)
    with pytest.raises(ValueError, match=r'labels must have shape \(n,\)'):
        fitted.partial_fit(draw.x, np.stack([draw.label, draw.label], axis=1))
    fitted.partial_fit(draw.x, draw.label)
    with pytest.raises(ValueError, match=r'y must have 1 columns \(got 2\)'):
        fitted.partial_fit(draw.x, np.stack([draw.label, draw.label], axis=1))


def multiclass_hinge_cvar(fitted, draw):
    scores, rows = fitted.decision_function(draw.x), np.arange(len(draw.x))
    own = scores[rows, draw.label.astype(int)]
    others = np.where(np.arange(4) == draw.label[:, None], -np.inf, scores).max(axis=1)
    return conditional_value_at_risk(np.maximum(0.0, 1.0 + others - own), 0.9)


def test_a_cvar_constraint_lowers_the_tail_of_the_multiclass_hinge_to_its_bound():
    draw = mixture('multiclass_hinge', 500, 0)
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.permutation(500) for _ in range(40)])

    def learn(constraint):
        fitted = learner('multiclass_hinge', regularization=0.01, constraint=constraint)
        return fitted.partial_fit(draw.x[rows], draw.label[rows])

    free = multiclass_hinge_cvar(learn(None), draw)
    held = learn(CVaR(0.9, 0.9 * free))
    assert held.dual_variable_ > 0.05
    assert multiclass_hinge_cvar(held, draw) <= 0.9 * free * 1.02
    slack = learn(CVaR(0.9, 1.5 * free))
    assert slack.dual_variable_ < 0.01
    assert multiclass_hinge_cvar(slack, draw) == pytest.approx(free, rel=0.05)


@pytest.mark.parametrize('loss', ['huber', 'absolute'])
@pytest.mark.parametrize('mode', ['default', 'paper', 'penalty'])
@pytest.mark.parametrize('outlier', [8.0, 1e6])
def test_gross_outliers_pull_the_robust_losses_less_than_the_squared_one(loss, mode, outlier):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (6000, 1))
    truth = np.sin(4 * x[:, 0])
    y = truth + 0.05 * rng.standard_normal(6000)
    y[rng.random(6000) < 0.1] = outlier

    def error(loss):
        fitted = PrimalDualLearner(
            Gaussian(0.3), loss=loss, huber_threshold=0.1, step='gradient', step_size=0.1,
            mode=mode,
        )  # fmt: skip
        return np.sqrt(np.mean((fitted.partial_fit(x, y).predict(x) - truth) ** 2))

    assert error('squared') > 0.5
    assert error(loss) < 0.15
