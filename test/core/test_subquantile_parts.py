# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Small parts of Subquantile Minimization, each by what defines it."""

import math

import numpy as np
import pytest

from kernel_constrained.core import Gaussian, SubquantileRegressor
from kernel_constrained.core.online import NO_TRACE
from kernel_constrained.core.subquantile import (
    regression,
    starts,
    SubquantileLearner,
    window_layout,
    window_steps,
)
from kernel_constrained.core.subquantile.features import KernelFeatures, median_bandwidth
from kernel_constrained.core.subquantile.labels import (
    balanced,
    confusion_of,
    folds_of,
    probability_right,
)
from kernel_constrained.core.subquantile.refinement import (
    corrupted_density,
    keep_the_rare,
    local_scales,
    MEDIAN_ABSOLUTE,
    RARE,
    Refined,
)
from kernel_constrained.core.subquantile.ridge import SubsetRidge
from kernel_constrained.core.subquantile.starts import (
    huber_fit,
    ordinary_start,
    weighted_quantile,
)


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


def test_a_class_is_mislabelled_as_often_as_its_clear_samples_and_as_all_are():
    """To those of a class as many samples as there are classes are added, of the rate of all."""
    clear = np.repeat([0, 1, 2], [20, 10, 10])
    label = clear.copy()
    label[[0, 1, 2, 3]] = 1
    label[35] = 0
    scores = 2.0 * np.eye(3)[clear]
    half = np.concatenate([np.arange(10), [20, 21, 22, 23, 24], [31, 32, 33, 34, 35]])
    scores[half, clear[half]] = 9.0  # these are the clear ones
    counts = np.array([[6, 4, 0], [0, 5, 0], [1, 0, 4]])
    wrong = 5 / 20
    rate = np.full((3, 3), wrong / 2) + (1.0 - 1.5 * wrong) * np.eye(3)
    expected = (counts + 3 * rate) / (counts.sum(axis=1, keepdims=True) + 3)
    assert confusion_of(scores, np.eye(3)[label]) == pytest.approx(expected)


def test_where_scores_say_nothing_a_label_is_right_as_often_as_labels_like_it_are():
    """Bayes's rule: classes are equally likely, labels are not."""
    confusion = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0]])
    right = probability_right(np.zeros((3, 3)), np.eye(3), confusion)
    assert right == pytest.approx([0.9 / 1.1, 0.7 / 0.8, 1.0 / 1.1])


def test_what_is_smoothed_is_read_from_the_kept_alone():
    rng = np.random.default_rng(0)
    problem = SubsetRidge(rng.standard_normal((40, 3)), rng.standard_normal(40))
    values, kept = rng.standard_normal(40), rng.random(40) < 0.6
    smooth = problem.smoothed(values, kept, 0.1)
    other = SubsetRidge(problem.features[:, :-1], values)
    assert smooth == pytest.approx(values - other.residuals(other.fit(kept, 0.1)))
    values[~kept] += 100.0
    assert problem.smoothed(values, kept, 0.1) == pytest.approx(smooth)


@pytest.mark.parametrize('unit', [1e-8, 1.0, 1e8])
def test_the_median_bandwidth_is_in_units_of_the_inputs(unit):
    x = np.random.default_rng(0).standard_normal((30, 2))
    expected = median_bandwidth(x, np.random.default_rng(1))
    assert median_bandwidth(unit * x, np.random.default_rng(1)) == pytest.approx(unit * expected)


def test_samples_all_at_the_origin_have_a_bandwidth_too():
    assert median_bandwidth(np.zeros((10, 2)), np.random.default_rng(0)) == 1.0


def window_after_its_start():
    """Return a window of 20 samples that were all kept, and their coordinates and targets.

    The samples before an atom know nothing of it: coordinates of their own.
    """
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.0, 1.0, (20, 1))
    y = np.sin(2.0 * x) + 0.05 * rng.standard_normal((20, 1))
    learner = SubquantileLearner(
        Gaussian(0.8), corruption=0.0, novelty=0.05, window=40, regularization=0.05
    )
    learner.partial_fit(x, y)
    assert learner.kept_.all()
    assert 1 < learner.model_order_ <= 6
    gram = learner.kernel(learner.dictionary_, learner.dictionary_)
    features = learner.kernel(x, learner.dictionary_)
    coordinates = np.linalg.solve(np.linalg.cholesky(gram), features.T).T
    first = [int(np.flatnonzero((x == atom).all(axis=1))[0]) for atom in learner.dictionary_]
    for j, sample in enumerate(first):
        coordinates[:sample, j] = 0.0
    return learner, coordinates, y[:, 0]


def ridge_and_leverage(coordinates):
    """Return the ridge, the matrix of the normal equations and the leverages."""
    ridge = 0.5 * 0.05 * 40
    system = coordinates.T @ coordinates + ridge * np.eye(coordinates.shape[1])
    leverage = np.sum(coordinates * np.linalg.solve(system, coordinates.T).T, axis=1)
    return ridge, system, leverage


def test_variances_of_the_window_are_those_of_fits_without_the_sample():
    """As a start anew, here after 20 samples, finds them: ``h / (1 - h)`` with the leverage h."""
    learner, coordinates, _ = window_after_its_start()
    _, _, leverage = ridge_and_leverage(coordinates)
    ring = learner._ring[learner._ring_row(window_layout.VARIANCE), :20]
    assert ring == pytest.approx(leverage / (1.0 - leverage), rel=1e-6)


def test_scores_of_the_window_are_squared_errors_of_fits_without_the_sample_over_their_variance():
    """``r / (1 - h)``, squared; noise, what is not known in the span, and what lies beside it."""
    learner, coordinates, y = window_after_its_start()
    ridge, system, leverage = ridge_and_leverage(coordinates)
    residuals = y - coordinates @ np.linalg.solve(system, coordinates.T @ y)
    beside = np.maximum(1.0 - np.sum(coordinates**2, axis=1), 0.0)
    variance = 1.0 + leverage / (1.0 - leverage) + beside / ridge
    ring = learner._ring[learner._ring_row(window_layout.SCORE), :20]
    assert ring == pytest.approx((residuals / (1.0 - leverage)) ** 2 / variance, rel=1e-5)


def test_numbers_are_checked_once_a_call_and_not_after_each_look_at_the_window():
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 1))
    y = np.sin(3.0 * x)
    learner = SubquantileLearner(Gaussian(0.5), window=20).partial_fit(x[:50], y[:50])
    x[199] = np.nan
    for done, ended in ((0, window_layout.NOT_FINITE), (50, window_layout.LOOK)):
        after = window_steps.window_stream(*learner._arrays, x, y, NO_TRACE, done)
        assert learner._state[window_layout.STATUS] == ended
        assert (after > done) == (ended == window_layout.LOOK)


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


def test_a_weighted_quantile_is_that_of_samples_that_are_there_so_often():
    values, times = np.array([3.0, 1.0, 2.0, 5.0]), np.array([2, 4, 1, 3])
    often = np.sort(np.repeat(values, times))
    for share in (0.05, 0.35, 0.45, 0.65, 0.95):
        expected = often[math.ceil(share * 10) - 1]
        assert weighted_quantile(values, times.astype(float), share) == expected


def test_a_huber_fit_weighs_samples_by_its_own_residuals():
    """Those beyond a deviation by the inverse of their size: where its gradient is zero."""
    rng = np.random.default_rng(3)
    x, weights = rng.standard_normal((200, 2)), rng.uniform(0.5, 1.0, 200)
    y = x.sum(axis=1) + 0.1 * rng.standard_normal(200)
    y[:30] += 10.0
    problem = SubsetRidge(x, y)
    found = huber_fit(problem, weights, 1e-3, 0.2)
    sizes = np.abs(problem.residuals(found))
    order = np.argsort(sizes)
    below = np.cumsum(weights[order]) / weights.sum()
    deviation = sizes[order][np.searchsorted(below, 0.5 * 0.8)] / MEDIAN_ABSOLUTE
    again = problem.fit_weighted(weights * np.minimum(deviation / sizes, 1.0), 1e-3)
    assert np.linalg.norm(again - found) < 0.01 * np.linalg.norm(found)
    plain = problem.fit_weighted(weights, 1e-3)
    assert np.linalg.norm(found - (1.0, 1.0, 0.0)) < 0.2 * np.linalg.norm(plain - (1.0, 1.0, 0.0))


def test_a_huber_fit_of_what_is_fitted_exactly_is_done():
    problem = SubsetRidge(np.random.default_rng(0).standard_normal((20, 2)), np.zeros(20))
    assert huber_fit(problem, np.ones(20), 1e-3, 0.2) == pytest.approx(np.zeros(3))


def test_ordinary_samples_are_those_within_three_deviations():
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((300, 2)), rng.standard_normal(300)
    noise[:30] = 8.0
    ordinary = ordinary_start(SubsetRidge(x, x.sum(axis=1) + noise), np.ones(300), 1e-3)
    assert not ordinary[:30].any()
    assert ordinary[30:].mean() > 0.98


def test_what_corrupted_samples_are_like_is_a_density():
    """Of function 0 residuals are the targets: over all of them it adds up to one."""
    targets = 30.0 * np.linspace(-1.0, 1.0, 20001) ** 5
    likely = corrupted_density(targets, targets, np.zeros(20001), 0.1)
    total = 0.5 * np.sum(np.diff(targets) * (likely[1:] + likely[:-1]))
    assert total == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize('unit', [1e-3, 1e3])
def test_densities_and_scales_are_in_units_of_the_targets(unit):
    rng = np.random.default_rng(0)
    x, residuals = rng.standard_normal((60, 2)), rng.standard_normal(60)
    residuals *= np.where(x[:, 0] > 0.0, 8.0, 0.1)
    targets, honest = x[:, 0] + residuals, rng.uniform(0.3, 1.0, 60)
    one, other = (
        (
            corrupted_density(u * targets, u * residuals, honest, u),
            local_scales(SubsetRidge(x, u * targets), u * residuals, honest, u, 1e-3),
        )
        for u in (1.0, unit)
    )
    assert other[0] == pytest.approx(one[0] / unit)
    assert other[1] == pytest.approx(one[1] * unit)
    assert one[1].max() <= 3.0
    assert one[1].min() >= 1 / 3
    assert np.ptp(one[1]) > 1.0


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


@pytest.mark.parametrize(('stated', 'corruption'), [(True, 0.3), (False, None)])
def test_a_share_that_is_stated_is_believed_in_the_search(stated, corruption, monkeypatch):
    told = []

    def search(*arguments):
        told.append(arguments[-1])
        return starts.search(*arguments)

    monkeypatch.setattr(regression, 'search', search)
    x = np.random.default_rng(0).standard_normal((60, 1))
    SubquantileRegressor(Gaussian(1.0), corruption=corruption).fit(x, np.sin(x[:, 0]))
    assert told == [stated]


@pytest.mark.parametrize('start', ['search', 'path', 'huber', 'zero'])
def test_without_refinement_it_ends_with_samples_that_their_own_fit_keeps(start):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (120, 1))
    y = np.sin(3.0 * x[:, 0]) + 0.2 * rng.standard_normal(120)
    y[:12] += 5.0
    settings = dict(corruption=0.25, start=start, refine=False)
    model = SubquantileRegressor(Gaussian(0.5), **settings).fit(x, y)
    sizes = np.abs(y - model.predict(x))
    assert model.kept_.sum() == 90
    assert sizes[model.kept_].max() <= sizes[~model.kept_].min()


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
