# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The SVM experiment: its data, what is measured of a function, and the figures at small size."""

import numpy as np
import pytest

from kernel_constrained.core import conditional_value_at_risk
from kernel_constrained.offline.reproduction import svm
from kernel_constrained.offline.reproduction.svm_draws import draw_of
from kernel_constrained.offline.reproduction.svm_runs import (
    compare,
    curve_of,
    EQ23,
    FREE,
    HELD,
    hinge_losses,
    learned,
    margins,
    METHODS,
    outcome_of,
    PENALTY,
    POLK,
    tolerance_of,
)

SMALL = (400, 300)


def test_the_data_are_those_of_the_paper():
    draw = draw_of(3, 0.2)
    assert draw.x.shape == (5000, 2)
    assert draw.test_x.shape == (2500, 2)
    assert draw.order.shape == (15000,)
    for epoch in np.split(draw.order, 3):
        assert np.array_equal(np.sort(epoch), np.arange(5000))
    assert np.bincount(draw.label.astype(int)) == pytest.approx(np.full(5, 1000), abs=100)
    for label in range(5):
        x, centres = draw.x[draw.label == label], draw.means[label]
        nearest = np.min(np.sum((x[:, None] - centres) ** 2, axis=2), axis=1)
        assert nearest.mean() <= 2 * 0.2 * 1.1, 'samples lie around the centres of their class'
        assert x.mean(axis=0) == pytest.approx(centres.mean(axis=0), abs=0.15)


def test_centres_lie_around_the_unit_circle():
    means = np.array([draw_of(seed, 0.2, 1, 1).means for seed in range(400)])
    angle = 2 * np.pi * np.arange(5) / 5
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert means.mean(axis=(0, 2)) == pytest.approx(places, abs=0.12)
    assert (means - places[None, :, None]).var() == pytest.approx(1.0, abs=0.05)


def test_the_posterior_is_what_labels_come_true_by_and_nothing_beats_it():
    draw = draw_of(3, 0.2, 100, 20000)
    posterior = draw.posterior(draw.test_x)
    assert posterior.sum(axis=1) == pytest.approx(np.ones(20000))
    for low in (0.4, 0.6, 0.8):
        best = posterior.max(axis=1)
        inside = (best >= low) & (best < low + 0.2)
        true = posterior.argmax(axis=1)[inside] == draw.test_label[inside]
        assert true.mean() == pytest.approx(best[inside].mean(), abs=0.03)
    assert draw.posterior(np.array([[1e3, 1e3]])).sum() == pytest.approx(1.0)
    assert draw.best_accuracy == pytest.approx(posterior.max(axis=1).mean(), abs=0.015)


def test_losses_and_margins_by_hand():
    scores = np.array([[2.0, 0.5, 0.0], [0.2, 0.5, 0.0]])
    assert hinge_losses(scores, np.array([0.0, 0.0])) == pytest.approx([0.0, 1.3])
    assert margins(scores) == pytest.approx([1.5, 0.3])
    assert scores[0, 0] == 2.0, 'the scores are left as they were'


def test_a_bound_lies_below_the_tail_but_not_below_that_of_the_function_0():
    assert tolerance_of(0.2, 1.8) == pytest.approx(1.62)
    assert tolerance_of(0.04, 1.8) == pytest.approx(1.48)
    assert tolerance_of(0.04, 0.5) == 1.0


def test_what_is_measured_of_a_function_is_true_of_it():
    draw = draw_of(1, 0.2, *SMALL)
    learner = learned(draw, FREE, np.nan)
    outcome = outcome_of(learner, draw)
    gram = learner.kernel(draw.x, learner.dictionary_) @ learner.weights_
    losses = hinge_losses(gram, draw.label)
    norm = np.trace(
        learner.weights_.T
        @ learner.kernel(learner.dictionary_, learner.dictionary_)
        @ learner.weights_
    )
    assert outcome.objective == pytest.approx(losses.mean() + 0.5e-4 * norm)
    assert outcome.cvar == pytest.approx(conditional_value_at_risk(losses, 0.9))
    assert outcome.accuracy == np.mean(learner.predict(draw.test_x) == draw.test_label)
    certainty = draw.posterior(draw.test_x).max(axis=1)
    sure = certainty > 0.9
    confident = margins(learner.decision_function(draw.test_x)) >= 1
    assert outcome.confident_sure == (np.sum(confident & sure), np.sum(sure))
    assert outcome.confident_unsure[1] == np.sum(certainty < 0.7)
    assert outcome.confident_wrong[1] == np.sum(confident)


def test_the_bound_lowers_the_tail_and_keeps_away_from_overlap_where_polk_does_not():
    draw = draw_of(0, 0.2)
    result = compare(draw, 0)
    free, held, polk = (result.outcomes[method] for method in (FREE, HELD, POLK))
    assert result.binds
    assert set(result.outcomes) == set(METHODS)
    assert held.cvar <= 1.01 * result.tolerance < free.cvar
    assert held.accuracy >= draw.best_accuracy - 0.02
    assert polk.cvar > 1.05 * result.tolerance
    assert held.confident_unsure[0] < polk.confident_unsure[0]


def test_a_curve_ends_where_the_run_ends():
    draw = draw_of(1, 0.2, *SMALL)
    for method in (HELD, EQ23, PENALTY):
        curve, outcome = (
            curve_of(draw, method, 1.5, {}, 6),
            outcome_of(learned(draw, method, 1.5), draw),
        )
        assert np.array_equal(curve.samples, np.arange(200, 1201, 200))
        assert curve.objective[-1] == outcome.objective
        assert curve.cvar[-1] == outcome.cvar
        assert curve.order[-1] == outcome.order
        assert curve.test_error[-1] == pytest.approx(1 - outcome.accuracy)


def test_the_experiment_draws_its_figures_and_answers_every_claim(tmp_path, monkeypatch):
    monkeypatch.setattr(svm, 'MANY', 5)
    rows = svm.run(tmp_path, draws=2, train=400, test=300)
    for name in ('svm.png', 'svm_surfaces.png'):
        assert (tmp_path / name).read_bytes().startswith(b'\x89PNG')
    said = ' '.join(row.what for row in rows)
    for claim in ('(1a)', '(1b)', 'gamma = 2', '(1c)', '(23)', 'penalty', 'accuracy', 'margin'):
        assert claim in said
    assert all(row.measured for row in rows)
