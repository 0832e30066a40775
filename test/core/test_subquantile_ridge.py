# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Ridge regression on subsets, and both ways to minimise the subquantile over function and set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from kernel_constrained.core import Gaussian, Polynomial
from kernel_constrained.core.subquantile.features import (
    gram_matrix,
    kernel_diagonal,
    KernelFeatures,
    median_bandwidth,
)
from kernel_constrained.core.subquantile.ridge import SubsetRidge
from kernel_constrained.core.subquantile.selection import (
    alternate,
    descend,
    largest_eigenvalue,
    objective,
    projected,
    smallest,
)

RIDGE = 1e-2


def made_problem(seed=0, samples=60, features=7, radius=np.inf):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((samples, features))
    y = z @ rng.standard_normal(features) + 2.0 + 0.1 * rng.standard_normal(samples)
    y[:: samples // 8] += 5.0
    return SubsetRidge(z, y, radius)


def direct_fit(problem, weights, ridge):
    """Solve the normal equations anew."""
    z, penalty = problem.features, np.eye(problem.features.shape[1])
    penalty[-1, -1] = 0.0
    system = (z * weights[:, None]).T @ z + ridge * weights.sum() * penalty
    return np.linalg.solve(system, z.T @ (weights * problem.targets))


def made_mask(seed, samples=60, share=0.7):
    return np.random.default_rng(seed).random(samples) < share


# -- features -------------------------------------------------------------------------------


@pytest.mark.parametrize('kernel', [Gaussian(1.3), Polynomial(2, 1.0), Polynomial(1, 0.0)])
def test_features_reproduce_the_kernel_where_there_are_enough(kernel):
    x = np.random.default_rng(0).standard_normal((40, 3))
    features = KernelFeatures.of(kernel, x, 40, 0.0, np.random.default_rng(1))
    assert np.allclose(features(x) @ features(x).T, kernel(x, x), atol=1e-6)
    assert features.count <= 40


def test_features_of_a_polynomial_kernel_are_no_more_than_its_dimension():
    x = np.random.default_rng(0).standard_normal((100, 3))
    assert KernelFeatures.of(Polynomial(2, 1.0), x, 100, 0.0, np.random.default_rng(0)).count == 10


@pytest.mark.parametrize('change', ['far sample', 'units'])
def test_features_of_a_polynomial_kernel_span_what_is_small_beside_the_largest(change):
    x = np.random.default_rng(0).standard_normal((300, 2))
    if change == 'far sample':
        x[0] = 100.0, 0.0
    else:
        x[:, 0] *= 30.0
    kernel = Polynomial(2, 1.0)
    features = KernelFeatures.of(kernel, x, 100, 1e-4, np.random.default_rng(0))
    assert features.count == 6
    left = kernel_diagonal(kernel, x) - np.sum(features(x) ** 2, axis=1)
    assert np.median(left) < 1e-4


def test_small_kernels_are_spanned_to_the_tolerated_share_of_themselves():
    x = 1e-4 * np.random.default_rng(0).standard_normal((100, 3))
    features = KernelFeatures.of(Polynomial(1, 0.0), x, 100, 1e-4, np.random.default_rng(0))
    assert features.count == 3


def test_features_leave_at_most_the_tolerated_share_of_the_trace():
    x = np.random.default_rng(0).standard_normal((300, 2))
    kernel = Gaussian(1.0)
    for tolerance in (1e-1, 1e-2, 1e-4):
        z = KernelFeatures.of(kernel, x, 300, tolerance, np.random.default_rng(0))(x)
        left = 1.0 - np.sum(z**2) / len(x)
        assert 0.0 <= left <= tolerance
    assert z.shape[1] > 10


@pytest.mark.parametrize('tolerance', [1e-1, 1e-2, 1e-4])
def test_features_are_no_more_than_the_tolerated_share_needs(tolerance):
    x = np.random.default_rng(0).standard_normal((300, 2))
    made = KernelFeatures.of(Gaussian(1.0), x, 300, tolerance, np.random.default_rng(0))
    one_less = KernelFeatures.of(Gaussian(1.0), x, made.count - 1, 0.0, np.random.default_rng(0))
    assert np.array_equal(one_less.landmarks, made.landmarks[:-1])
    assert 1.0 - np.sum(one_less(x) ** 2) / len(x) > tolerance


def test_features_are_at_most_as_many_as_asked_for_and_the_same_for_a_seed():
    x = np.random.default_rng(0).standard_normal((300, 5))
    first, second = (
        KernelFeatures.of(Gaussian(1.0), x, 20, 0.0, np.random.default_rng(3)) for _ in range(2)
    )
    assert first.count == 20
    assert np.array_equal(first.landmarks, second.landmarks)


def test_copies_of_one_point_make_one_feature():
    x = np.ones((50, 2))
    features = KernelFeatures.of(Gaussian(1.0), x, 50, 0.0, np.random.default_rng(0))
    assert features.count == 1
    assert np.allclose(features(x), 1.0)


@pytest.mark.parametrize('kernel', [Gaussian(0.7), Polynomial(3, 0.5)])
def test_gram_matrix_by_products_is_the_kernels_own(kernel):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((20, 4)), rng.standard_normal((30, 4)) + 1.0
    assert np.allclose(gram_matrix(kernel, a, b), kernel(a, b), rtol=1e-10, atol=1e-12)
    assert np.allclose(kernel_diagonal(kernel, a), np.diag(kernel(a, a)))


def test_default_bandwidth_is_the_median_distance():
    x = np.random.default_rng(0).standard_normal((80, 3))
    distances = np.linalg.norm(x[:, None] - x, axis=2)[np.triu_indices(80, 1)]
    assert median_bandwidth(x, np.random.default_rng(0)) == pytest.approx(np.median(distances))
    assert median_bandwidth(np.ones((10, 2)), np.random.default_rng(0)) == 1.0
    assert median_bandwidth(np.ones((1, 2)), np.random.default_rng(0)) == 1.0


@pytest.mark.parametrize('origin', [1e6, 1e9])
def test_default_bandwidth_is_the_same_far_from_the_origin(origin):
    x = np.random.default_rng(0).standard_normal((80, 3))
    here, there = (median_bandwidth(x + o, np.random.default_rng(1)) for o in (0.0, origin))
    assert there == pytest.approx(here, rel=1e-6)


def test_one_sample_far_away_leaves_bandwidth_and_distances_as_they_are():
    x = np.random.default_rng(0).standard_normal((80, 2))
    bandwidth = median_bandwidth(x, np.random.default_rng(1))
    x[0] = 1e10
    assert median_bandwidth(x, np.random.default_rng(1)) == pytest.approx(bandwidth, rel=0.1)
    kernel = Gaussian(bandwidth)
    assert np.allclose(gram_matrix(kernel, x, x[1:]), kernel(x, x[1:]), rtol=1e-10, atol=1e-12)


def test_inputs_as_close_as_no_bandwidth_may_be_have_the_least():
    x = 1e-14 * np.random.default_rng(0).standard_normal((30, 2))
    assert Gaussian(median_bandwidth(x, np.random.default_rng(0))) == Gaussian(1e-12)


# -- ridge ----------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=6))
def test_fits_of_one_subset_after_another_are_as_if_each_were_the_first(seeds):
    problem = made_problem()
    for seed in seeds:
        kept = made_mask(seed)
        fitted = problem.fit(kept, RIDGE)
        assert np.allclose(fitted, direct_fit(problem, kept.astype(float), RIDGE), atol=1e-8)


def test_weighted_fit_solves_the_weighted_normal_equations():
    problem = made_problem()
    weights = np.random.default_rng(1).random(60)
    fitted = problem.fit_weighted(weights, RIDGE)
    assert np.allclose(fitted, direct_fit(problem, weights, RIDGE), atol=1e-9)


def test_left_out_residual_is_that_of_the_fit_without_the_sample():
    problem, kept = made_problem(), made_mask(4)
    residuals = problem.left_out_residuals(problem.fit(kept, RIDGE), kept)
    for i in range(60):
        others = kept.copy()
        others[i] = False
        # the ridge of a fit is relative to its samples: the same absolute one for both
        ridge = RIDGE * kept.sum() / others.sum()
        without = direct_fit(problem, others.astype(float), ridge)
        expected = problem.targets[i] - problem.features[i] @ without
        assert residuals[i] == pytest.approx(expected, rel=1e-7)


def test_left_out_residual_of_a_weighted_fit_likewise():
    problem, weights = made_problem(), np.random.default_rng(1).random(60)
    residuals = problem.left_out_residuals(problem.fit_weighted(weights, RIDGE), weights)
    for i in (0, 17, 59):
        others = weights.copy()
        others[i] = 0.0
        without = direct_fit(problem, others, RIDGE * weights.sum() / others.sum())
        expected = problem.targets[i] - problem.features[i] @ without
        assert residuals[i] == pytest.approx(expected, rel=1e-7)


def test_fit_in_a_ball_is_the_best_of_the_ball():
    free = made_problem()
    kept = made_mask(2)
    radius = 0.5 * np.linalg.norm(free.fit(kept, RIDGE)[:-1])
    bound = SubsetRidge(free.features[:, :-1], free.targets, radius)
    fitted = bound.fit(kept, RIDGE)
    assert np.linalg.norm(fitted[:-1]) == pytest.approx(radius)
    best = minimize(
        lambda a: objective(free, a, kept, RIDGE), fitted * 0.5, method='SLSQP',
        constraints={'type': 'ineq', 'fun': lambda a: radius**2 - a[:-1] @ a[:-1]},
        options={'ftol': 1e-14, 'maxiter': 500},
    )  # fmt: skip
    assert np.allclose(fitted, best.x, atol=1e-4)


def test_fewer_features_change_a_fit_by_no_more_than_what_the_ridge_had_left_of_them():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((200, 30)) * np.geomspace(1.0, 1e-4, 30)
    problem = SubsetRidge(z, z[:, 0] + 0.1 * rng.standard_normal(200))
    few, rotation = problem.condensed(np.arange(200), RIDGE)
    assert few.features.shape[1] < 20
    everything = np.ones(200, dtype=bool)
    difference = problem.features @ (
        rotation @ few.fit(everything, RIDGE) - problem.fit(everything, RIDGE)
    )
    assert np.abs(difference).max() < 0.03


# -- minimisation ---------------------------------------------------------------------------


def test_alternation_descends_to_a_set_that_its_own_fit_keeps():
    problem = made_problem()
    found = alternate(problem, made_mask(1), RIDGE, 100)
    assert len(found.objective) > 1
    assert np.all(np.diff(found.objective) <= 1e-12)
    again = smallest(problem.residuals(found.coefficients) ** 2, int(found.kept.sum()))
    assert np.array_equal(again, found.kept)
    assert np.allclose(
        found.coefficients, direct_fit(problem, found.kept.astype(float), RIDGE), atol=1e-8
    )


@pytest.mark.parametrize('accelerated', [False, True])
def test_gradient_reaches_what_alternation_reaches_from_the_same_start(accelerated):
    problem = made_problem()
    start = problem.fit(np.ones(60, dtype=bool), RIDGE)
    kept = smallest(problem.residuals(start) ** 2, 51)
    exact = alternate(problem, kept, RIDGE, 100)
    found = descend(problem, start, 51, RIDGE, 5000, 1e-10, accelerated)
    assert found.objective[-1] == pytest.approx(exact.objective[-1], rel=1e-6)
    assert np.array_equal(found.kept, exact.kept)


def test_a_gradient_step_is_as_long_as_the_largest_curvature_allows():
    made = made_problem()
    problem = SubsetRidge(3.0 * made.features[:, :-1], made.targets)
    z, y = problem.features, problem.targets
    kept = np.argsort(y**2)[:45]
    gradient = -2.0 / 45 * z[kept].T @ y[kept]
    curvature = 2.0 * (np.linalg.eigvalsh(z.T @ z)[-1] / 45 + RIDGE)
    found = descend(problem, np.zeros(8), 45, RIDGE, 1, 0.0, accelerated=False)
    assert found.coefficients == pytest.approx(-gradient / curvature, rel=0.05)


def test_plain_gradient_never_raises_the_objective():
    found = descend(made_problem(), np.zeros(8), 45, RIDGE, 300, 0.0, accelerated=False)
    assert np.all(np.diff(found.objective) <= 1e-12)


def test_momentum_takes_fewer_steps_where_the_ridge_is_small():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((200, 20)) * np.geomspace(1.0, 0.03, 20)
    problem = SubsetRidge(z, z @ rng.standard_normal(20) * 10.0)
    steps = [
        len(descend(problem, np.zeros(21), 200, 1e-6, 20000, 1e-8, fast).objective)
        for fast in (False, True)
    ]
    assert steps[1] < 0.2 * steps[0]


def test_gradient_stays_in_the_ball():
    problem = made_problem(radius=0.4)
    found = descend(problem, np.zeros(8), 45, RIDGE, 2000, 1e-12, accelerated=False)
    assert np.linalg.norm(found.coefficients[:-1]) == pytest.approx(0.4)
    exact = problem.fit(found.kept, RIDGE)
    assert np.allclose(found.coefficients, exact, atol=1e-6)


def test_projection_leaves_the_intercept_and_what_is_inside():
    inside = np.array([0.3, 0.4, 9.0])
    assert np.array_equal(projected(inside, 0.5), inside)
    assert np.allclose(projected(np.array([3.0, 4.0, 9.0]), 0.5), [0.3, 0.4, 9.0])


def test_largest_eigenvalue_is_met_from_above():
    z = np.random.default_rng(0).standard_normal((100, 12))
    true = np.linalg.eigvalsh(z.T @ z)[-1]
    assert true <= largest_eigenvalue(z) <= 1.05 * true
