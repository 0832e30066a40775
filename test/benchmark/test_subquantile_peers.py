# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Peers of the trimmed learners do what their papers say of the simplest cases."""

import numpy as np
import pytest

pytest.importorskip('sklearn', reason='scikit-learn comes with the extra "benchmark"')

from subquantile_corruption import (
    CLASSIFICATION_KINDS,
    corrupt,
    REGRESSION_KINDS,
    SHARES,
    SWAPPED,
)
from subquantile_peers import (
    BOTH,
    evenly,
    oracle,
    outlier_scores,
    plain,
    Problem,
    REGRESSION_PEERS,
    sever,
    SOFTMAX,
    SQUARED,
    tilted,
)

SMALL = 1e-9


def problem_of(z, y, clean=None, share=0.1, ridge=SMALL):
    clean = np.ones(len(y), dtype=bool) if clean is None else clean
    return Problem(z, y, ridge, share, clean, np.random.default_rng(0))


def mean_estimation(bad=20):
    """Twenty of a hundred points around 0 are at 10: the mean-estimation example of tilting."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal(100)
    y[:bad] = 10.0 + 0.1 * rng.standard_normal(bad)
    return np.ones((100, 1)), y, np.arange(100) >= bad


def attacked_regression(bad=0.1, size=400, columns=10):
    """Clean rows y = z w, and rows that cancel the gradient at 0 with the target -1.

    It is the attack of SEVER's experiments on regression.
    """
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(columns)
    z = rng.standard_normal((size, columns))
    y = z @ weights + 0.1 * rng.standard_normal(size)
    count = round(bad * size)
    direction = z.T @ y / count
    spread = np.linalg.norm(direction) * rng.standard_normal((count, columns))
    z_bad = direction + spread / (10.0 * np.sqrt(columns))
    clean = np.arange(size + count) < size
    return np.vstack([z, z_bad]), np.concatenate([y, -np.ones(count)]), clean, weights


def test_a_tilt_of_almost_zero_is_the_mean():
    z, y, _ = mean_estimation()
    assert tilted(problem_of(z, y), [-1e-9]).weights[0] == pytest.approx(y.mean(), abs=1e-3)


def test_a_negative_tilt_moves_the_mean_from_the_outliers_to_the_others():
    z, y, clean = mean_estimation()
    assert y.mean() > 1.8
    # Every tilt that is stronger gives up more of the outliers.
    found = [tilted(problem_of(z, y), [tilt]).weights[0] for tilt in (-1e-3, -1e-2, -1e-1)]
    assert y.mean() > found[0] > found[1] > found[2]
    assert tilted(problem_of(z, y)).weights[0] == pytest.approx(y[clean].mean(), abs=0.1)


def test_a_very_negative_tilt_makes_the_least_loss_as_small_as_it_can_be():
    z, y, _ = mean_estimation()
    weights = tilted(problem_of(z, y), [-1e4]).weights
    assert SQUARED.losses(z, y, weights).min() < 1e-9


def test_each_round_of_tilting_lowers_the_tilted_risk():
    z, y, _ = mean_estimation()
    tilt, risk = -0.05, lambda w: np.log(np.mean(np.exp(-0.05 * SQUARED.losses(z, y, w)))) / -0.05
    assert risk(tilted(problem_of(z, y), [tilt]).weights) < risk(plain(problem_of(z, y)).weights)


def test_sever_solves_the_attacked_regression_where_least_squares_fails():
    z, y, clean, weights = attacked_regression()
    # A share of 0.1 of the clean rows is 0.091 of all.
    problem = problem_of(z, y, share=0.1)
    fit = sever(problem)
    distance = np.linalg.norm(weights)
    assert np.linalg.norm(plain(problem).weights - weights) > 0.5 * distance
    assert np.linalg.norm(fit.weights - weights) < 0.05 * distance
    assert not fit.kept[~clean].any()


def test_sever_leaves_everything_in_where_nothing_is_corrupted():
    z, y, clean, _ = attacked_regression()
    problem = problem_of(z[clean], y[clean], share=0.0)
    assert sever(problem).kept.all()
    np.testing.assert_allclose(sever(problem).weights, plain(problem).weights)


@pytest.mark.parametrize('shape', [(30, 8), (8, 30)])
def test_outlier_scores_are_of_the_first_singular_vector(shape):
    gradients = np.random.default_rng(0).standard_normal(shape)
    u, values, _ = np.linalg.svd(gradients - gradients.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(outlier_scores(gradients), (values[0] * u[:, 0]) ** 2)


@pytest.mark.parametrize('name', REGRESSION_PEERS)
def test_every_peer_for_regression_finds_a_clean_plane(name):
    z, y, clean, weights = attacked_regression()
    found = REGRESSION_PEERS[name](problem_of(z[clean], y[clean], share=0.1)).weights
    assert np.linalg.norm(found - weights) < 0.1 * np.linalg.norm(weights)


@pytest.mark.parametrize('name', [*BOTH, 'Huber'])
def test_a_ridge_shrinks_with_every_peer_about_as_it_does_plainly(name):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((2000, 5))
    y = z @ np.ones(5) + 2.0 * rng.standard_normal(2000)
    shrunk, free = (
        np.linalg.norm(REGRESSION_PEERS[name](problem_of(z, y, share=0.0, ridge=ridge)).weights)
        for ridge in (0.3, SMALL)
    )
    assert shrunk / free == pytest.approx(1.0 / 1.3, abs=0.18)


@pytest.mark.parametrize('classes', [2, 3])
@pytest.mark.parametrize('name', BOTH)
def test_every_peer_for_classes_finds_clean_ones(name, classes):
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=300)
    z = np.c_[np.ones(300), 4.0 * np.eye(3)[y] + rng.standard_normal((300, 3))]
    weights = BOTH[name](problem_of(z, y, ridge=1e-3)).weights
    assert np.mean((z @ weights).argmax(axis=1) == y) > 0.95


def test_two_classes_cost_what_one_logistic_function_does():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((50, 3))
    y = (z[:, 0] + rng.standard_normal(50) > 0.0).astype(int)
    weights = SOFTMAX.fit(z, y, 0.01, evenly(np.ones(50)))
    f = weights[:, 1] - weights[:, 0]
    margins = (2 * y - 1) * (z @ f)
    gradient = z.T @ (-(2 * y - 1) / (1.0 + np.exp(margins))) / 50 + 2 * 0.01 * f
    assert np.abs(gradient).max() < 3e-4


@pytest.mark.parametrize('loss', [SQUARED, SOFTMAX])
def test_gradients_are_those_of_the_losses(loss):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((6, 3))
    if loss is SQUARED:
        y, weights, factor = rng.standard_normal(6), rng.standard_normal(3), 2.0
    else:
        y, weights, factor = np.arange(6) % 3, rng.standard_normal((3, 3)), 1.0
    step = 1e-4 * rng.standard_normal(weights.shape)
    change = loss.losses(z, y, weights + step) - loss.losses(z, y, weights - step)
    np.testing.assert_allclose(
        factor * loss.gradients(z, y, weights) @ (2.0 * step.ravel()), change, rtol=1e-5
    )


def test_the_oracle_learns_from_clean_rows_only():
    z, y, clean, weights = attacked_regression()
    fit = oracle(problem_of(z, y, clean))
    assert np.linalg.norm(fit.weights - weights) < 0.05 * np.linalg.norm(weights)


@pytest.mark.parametrize('share', SHARES)
@pytest.mark.parametrize(
    ('kind', 'classes'),
    [*((k, False) for k in REGRESSION_KINDS), *((k, True) for k in CLASSIFICATION_KINDS)],
)
def test_exactly_the_share_is_corrupted_and_nothing_else(kind, classes, share):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((54, 3))
    y = rng.integers(3, size=54) if classes else rng.standard_normal(54)
    before = x.copy(), y.copy()
    shown = corrupt(x, y, kind, share, rng)
    assert shown.mask.sum() == round(share * 54)
    np.testing.assert_array_equal(shown.x[~shown.mask], x[~shown.mask])
    np.testing.assert_array_equal(shown.y[~shown.mask], y[~shown.mask])
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y, before[1])
    if share and kind not in ('features', 'random', 'leverage far', 'leverage cluster'):
        assert (shown.y != y)[shown.mask].all()


def test_swapped_poses_take_the_targets_that_they_make():
    x, y = np.zeros((20, 1)), np.arange(20.0)
    shown = corrupt(x, y, SWAPPED, 0.25, np.random.default_rng(0), swapped=-y - 1.0)
    assert shown.mask.sum() == 5
    np.testing.assert_array_equal(shown.y, np.where(shown.mask, -y - 1.0, y))
