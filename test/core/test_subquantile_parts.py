# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Small parts of Subquantile Minimization, each by what defines it."""

import numpy as np
import pytest

from kernel_constrained.core import Gaussian, SubquantileRegressor
from kernel_constrained.core.subquantile import SubquantileLearner, window_layout
from kernel_constrained.core.subquantile.features import KernelFeatures, median_bandwidth
from kernel_constrained.core.subquantile.labels import balanced, folds_of
from kernel_constrained.core.subquantile.refinement import keep_the_rare, RARE, Refined
from kernel_constrained.core.subquantile.ridge import SubsetRidge
from kernel_constrained.core.subquantile.starts import ordinary_start


def test_balanced_weights_give_each_class_the_same_and_what_is_dropped_none():
    labels = np.array([0, 0, 0, 1, 1, 2, 2])
    kept = np.array([True, True, True, True, False, False, False])
    weights = balanced(labels, kept, 3)
    assert weights == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1.0, 0.0, 0.0, 0.0])


def test_each_fold_has_as_many_of_each_class_as_another():
    labels = np.repeat([0, 1], [23, 12])
    fold = folds_of(labels, 2)
    for label in (0, 1):
        counts = np.bincount(fold[labels == label], minlength=5)
        assert len(counts) == 5
        assert np.ptp(counts) <= 1


def test_what_is_smoothed_is_read_from_the_kept_alone():
    rng = np.random.default_rng(0)
    problem = SubsetRidge(rng.standard_normal((40, 3)), rng.standard_normal(40))
    values, kept = rng.standard_normal(40), rng.random(40) < 0.6
    smooth = problem.smoothed(values, kept, 0.1)
    other = SubsetRidge(problem.features[:, :-1], values)
    assert smooth == pytest.approx(values - other.residuals(other.fit(kept, 0.1)))
    values[~kept] += 100.0
    assert problem.smoothed(values, kept, 0.1) == pytest.approx(smooth)


def test_samples_all_at_the_origin_have_a_bandwidth_too():
    assert median_bandwidth(np.zeros((10, 2)), np.random.default_rng(0)) == 1.0


def test_variances_of_the_window_are_those_of_fits_without_the_sample():
    """As a start anew, here after 20 samples, finds them: ``h / (1 - h)`` with the leverage h."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.0, 1.0, (20, 1))
    y = np.sin(2.0 * x) + 0.05 * rng.standard_normal((20, 1))
    learner = SubquantileLearner(
        Gaussian(0.8), corruption=0.0, novelty=0.05, window=40, regularization=0.05
    )
    learner.partial_fit(x, y)
    assert learner.kept_.all()
    assert 1 < learner.model_order_ <= 6
    ring = learner._ring[learner._ring_row(window_layout.VARIANCE), :20]
    features = learner.kernel(x, learner.dictionary_)
    gram = learner.kernel(learner.dictionary_, learner.dictionary_)
    # the samples before an atom know nothing of it: their own coordinates
    triangle = np.linalg.cholesky(gram)
    coordinates = np.linalg.solve(triangle, features.T).T
    first = [int(np.flatnonzero((x == atom).all(axis=1))[0]) for atom in learner.dictionary_]
    for j, sample in enumerate(first):
        coordinates[:sample, j] = 0.0
    system = coordinates.T @ coordinates + 0.5 * 0.05 * 40 * np.eye(len(gram))
    leverage = np.sum(coordinates * np.linalg.solve(system, coordinates.T).T, axis=1)
    assert ring == pytest.approx(leverage / (1.0 - leverage), rel=1e-6)


@pytest.mark.parametrize('share', [0.0, 0.1])
def test_the_estimated_share_is_what_is_dropped_beyond_what_is_rare(share):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (120, 1))
    y = np.sin(3.0 * x[:, 0]) + 0.1 * rng.standard_normal(120)
    y[: round(share * 120)] += 5.0
    model = SubquantileRegressor(Gaussian(0.5), corruption=None).fit(x, y)
    dropped = 1.0 - model.kept_.mean()
    assert model.corruption_ == pytest.approx(max((dropped - RARE) / (1.0 - RARE), 0.0))
    assert abs(dropped - share) < 0.03


def test_ordinary_samples_are_those_within_three_deviations():
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((300, 2)), rng.standard_normal(300)
    noise[:30] = 8.0
    ordinary = ordinary_start(SubsetRidge(x, x.sum(axis=1) + noise), np.ones(300), 1e-3)
    assert not ordinary[:30].any()
    assert ordinary[30:].mean() > 0.98


def test_the_solver_is_the_one_that_was_asked_for():
    """Alternation is done after a few fits; gradient steps are many, and short at the end."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (80, 1))
    y = np.sin(3.0 * x[:, 0]) + 0.1 * rng.standard_normal(80)
    settings = {'kernel': Gaussian(0.5), 'corruption': 0.1, 'start': 'zero', 'refine': False}
    steps = {
        solver: SubquantileRegressor(**settings, solver=solver).fit(x, y).n_iter_
        for solver in ('alternating', 'gradient')
    }
    assert steps['alternating'] < 20 < steps['gradient']


def test_a_function_too_large_for_the_ball_ends_on_its_sphere_in_units_of_the_targets():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (80, 1))
    y = 20.0 * np.sin(3.0 * x[:, 0]) + rng.standard_normal(80)
    free = SubquantileRegressor(Gaussian(0.5), corruption=0.0).fit(x, y)
    radius = 0.5 * np.linalg.norm(free.coef_)
    held = SubquantileRegressor(Gaussian(0.5), corruption=0.0, radius=radius).fit(x, y)
    assert np.linalg.norm(held.coef_) == pytest.approx(radius)


@pytest.mark.parametrize('rare', [True, False])
def test_what_was_dropped_is_kept_if_it_predicts_one_another(rare):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (300, 2))
    y = x[:, 0] + 0.1 * rng.standard_normal(300)
    dropped = np.arange(300) < 30
    if rare:  # of a place of its own, where the function is another
        x[dropped] += (0.0, 4.0)
        y[dropped] += 2.0
    else:
        y[dropped] = 2.0 * rng.standard_normal(30)
    features = KernelFeatures.of(Gaussian(1.0), x, 50, 1e-6, rng)(x)
    problem = SubsetRidge(features, y)
    coefficients = problem.fit(~dropped, 1e-3)
    found = Refined(coefficients, ~dropped, problem.residuals(coefficients), np.zeros(300), 0.1)
    after = keep_the_rare(problem, found, 1e-3)
    assert after.kept.all() == rare
    assert after.corruption == (0.0 if rare else 0.1)
    everything = np.ones(300, dtype=bool)
    expected = problem.fit(everything, 1e-3) if rare else coefficients
    np.testing.assert_allclose(after.coefficients, expected)
