# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A class that appears while a learner runs: the others go on as they were."""

import numpy as np
import pytest

from kernel_constrained.core import CVaR, Gaussian, PrimalDualLearner


def blobs(n, classes, seed=0):
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(classes) / 4
    label = rng.integers(classes, size=n)
    centre = 2.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return centre[label] + 0.5 * rng.standard_normal((n, 2)), label.astype(float)


def learner(classes=2, **settings):
    given = {'constraint': CVaR(0.9, 1.5), 'decay_after': np.inf, 'averaging_window': 300.0}
    return PrimalDualLearner(
        Gaussian(1.0), loss='multiclass_hinge', classes=classes, **given | settings
    )


@pytest.mark.parametrize('mode', ['default', 'paper', 'penalty'])
def test_old_classes_keep_their_scores_and_new_ones_begin_at_zero(mode):
    x, y = blobs(300, 2)
    fitted = learner(mode=mode, step_size=0.1).partial_fit(x, y)
    more = fitted.with_classes(4)
    before, after = fitted.decision_function(x), more.decision_function(x)
    assert np.array_equal(after[:, :2], before)
    assert np.array_equal(after[:, 2:], np.zeros((300, 2)))
    assert (more.samples_, more.dual_variable_) == (300, fitted.dual_variable_)
    assert np.array_equal(more.recent_losses_, fitted.recent_losses_)


def test_what_the_old_classes_learn_next_is_as_if_there_were_no_new_ones():
    """Scores of two classes are opposite, so that the highest of the two is never below zero."""
    x, y = blobs(300, 2)
    apart, known = learner(), learner()
    apart.partial_fit(x[:200], y[:200])
    more = apart.with_classes(3).partial_fit(x[200:], y[200:])
    known.partial_fit(x, y)
    lead = known.decision_function(x)
    assert more.decision_function(x)[:, :2] == pytest.approx(lead, abs=0.3)
    assert np.array_equal(more.predict(x), known.predict(x))


def test_a_new_class_is_learned_and_the_old_ones_are_not_forgotten():
    fitted = learner().partial_fit(*blobs(500, 2))
    fitted = fitted.with_classes(4).partial_fit(*blobs(1500, 4, seed=1))
    x, y = blobs(500, 4, seed=2)
    assert np.mean(fitted.predict(x) == y) > 0.97


@pytest.mark.parametrize('waiting', [1, 3])
def test_samples_of_a_batch_that_is_not_full_wait_on(waiting):
    x, y = blobs(40 + waiting, 2)
    fitted = learner(batch_size=4).partial_fit(x, y)
    more = fitted.with_classes(3)
    rest = blobs(4 - waiting, 2, seed=1)
    fitted.partial_fit(*rest)
    more.partial_fit(*rest)
    assert more.samples_ == 44
    order = fitted.model_order_
    assert np.array_equal(more.dictionary_[:order], fitted.dictionary_)
    assert more.decision_function(x)[:, :2] == pytest.approx(fitted.decision_function(x), abs=0.2)


def test_classes_are_added_while_the_first_batch_waits_and_there_is_no_atom():
    x, y = blobs(8, 2)
    fitted = learner(batch_size=8).partial_fit(x[:3], y[:3])
    more = fitted.with_classes(3).partial_fit(x[3:], y[3:])
    assert (fitted.model_order_, more.samples_) == (0, 8)
    assert more.model_order_ == fitted.partial_fit(x[3:], y[3:]).model_order_ > 0


def test_a_learner_that_has_seen_nothing_gets_its_classes_too():
    x, y = blobs(100, 4)
    more = learner().with_classes(4).partial_fit(x, y)
    given = learner(classes=4).partial_fit(x, y)
    assert np.array_equal(more.decision_function(x), given.decision_function(x))


def test_classes_are_not_taken_back_nor_given_to_a_regression():
    with pytest.raises(ValueError, match='multiclass_hinge with 3 classes cannot go on with 2'):
        learner(classes=3).with_classes(2)
    with pytest.raises(ValueError, match='loss squared'):
        PrimalDualLearner(Gaussian(1.0)).with_classes(3)
