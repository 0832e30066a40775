# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The regressor that leaves corrupted samples out: what a person relies on."""

import numpy as np
import pytest

from kernel_constrained.core import Gaussian, Polynomial, SubquantileRegressor

KERNEL = Gaussian(0.8)


def truth(x):
    return np.sin(2.0 * x[:, 0]) + 0.5 * np.cos(3.0 * x[:, 1])


def made_samples(seed=0, samples=300, noise=0.2):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, (samples, 2))
    return x, truth(x) + noise * rng.standard_normal(samples), rng


def corrupted(kind, share, seed=0, samples=300):
    """Make samples of which the first ``share`` is wrong; inputs, targets, how many."""
    x, y, rng = made_samples(seed, samples)
    count = round(share * samples)
    wrong = slice(0, count)
    if kind == 'shifted':
        y[wrong] += 4.0
    elif kind == 'random':
        y[wrong] = rng.uniform(-4.0, 4.0, count)
    elif kind == 'swapped':
        y[wrong] = np.random.default_rng(seed + 1).permutation(y)[wrong]
    elif kind == 'far':
        x[wrong], y[wrong] = 10.0 + 0.1 * x[wrong], 5.0
    elif kind == 'crowd':
        x[wrong], y[wrong] = 0.5 + 0.05 * x[wrong], -4.0
    return x, y, count


def error(model, seed=99):
    """Mean squared distance from the truth, in variances of the truth."""
    x, _, _ = made_samples(seed, 1000)
    return float(np.mean((model.predict(x) - truth(x)) ** 2) / truth(x).var())


def plain(x, y, **more):
    return SubquantileRegressor(KERNEL, corruption=0.0, **more).fit(x, y)


def test_without_corruption_it_is_kernel_ridge_regression():
    x, y, _ = made_samples(samples=80)
    ridge = 1e-2
    model = SubquantileRegressor(KERNEL, corruption=0.0, regularization=ridge, max_features=80)
    gram = KERNEL(x, x)
    # stationary: (K + n ridge) weights + intercept = y, and the weights sum to zero
    system = np.block(
        [[gram + 80 * ridge * np.eye(80), np.ones((80, 1))], [np.ones((1, 80)), np.zeros((1, 1))]]
    )
    solution = np.linalg.solve(system, np.append(y, 0.0))
    new = np.random.default_rng(5).uniform(-2.0, 2.0, (50, 2))
    expected = KERNEL(new, x) @ solution[:-1] + solution[-1]
    assert np.allclose(model.fit(x, y).predict(new), expected, atol=5e-3)
    assert model.kept_.all()
    assert len(model.outliers_) == 0


def test_polynomial_kernel_of_degree_one_is_linear_regression():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 3))
    y = x @ [1.0, -2.0, 0.5] + 3.0 + 0.01 * rng.standard_normal(200)
    y[:40] += 20.0
    model = SubquantileRegressor(Polynomial(1, 0.0), corruption=0.2, regularization=1e-8)
    new = rng.standard_normal((20, 3))
    assert np.allclose(model.fit(x, y).predict(new), new @ [1.0, -2.0, 0.5] + 3.0, atol=0.02)
    assert set(model.outliers_) == set(range(40))


@pytest.mark.parametrize('kind', ['shifted', 'random', 'far', 'crowd'])
@pytest.mark.parametrize('share', [0.1, 0.2, 0.3])
def test_error_is_near_that_of_the_clean_samples_alone(kind, share):
    x, y, count = corrupted(kind, share)
    model = SubquantileRegressor(KERNEL, corruption=share).fit(x, y)
    assert error(model) < 1.6 * error(plain(x[count:], y[count:])) + 0.003


@pytest.mark.parametrize('kind', ['shifted', 'random'])
def test_plain_ridge_is_much_worse(kind):
    x, y, _ = corrupted(kind, 0.2)
    model = SubquantileRegressor(KERNEL, corruption=0.2).fit(x, y)
    assert error(plain(x, y)) > 3.0 * error(model)


def test_gross_outliers_are_found_and_clean_samples_stay():
    x, y, count = corrupted('shifted', 0.2)
    model = SubquantileRegressor(KERNEL, corruption=0.2).fit(x, y)
    assert not model.kept_[:count].any()
    assert model.kept_[count:].mean() > 0.97


def test_outliers_are_those_not_kept_and_the_worst_is_first():
    x, y, _ = corrupted('random', 0.2)
    y[7] = 100.0
    model = SubquantileRegressor(KERNEL, corruption=0.2).fit(x, y)
    assert np.array_equal(np.sort(model.outliers_), np.flatnonzero(~model.kept_))
    assert model.outliers_[0] == 7


def test_overstated_corruption_costs_little():
    x, y, _ = corrupted('shifted', 0.1)
    stated = [error(SubquantileRegressor(KERNEL, corruption=c).fit(x, y)) for c in (0.1, 0.3)]
    assert stated[1] < 1.3 * stated[0]


def test_noise_that_grows_is_not_taken_for_corruption():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 1.0, (400, 1))
    y = np.sin(6.0 * x[:, 0]) + (0.05 + 0.4 * x[:, 0]) * rng.standard_normal(400)
    model = SubquantileRegressor(Gaussian(0.3), corruption=0.2).fit(x, y)
    assert model.kept_.mean() > 0.94


@pytest.mark.parametrize('share', [0.0, 0.1, 0.3])
def test_corruption_is_estimated_where_none_is_given(share):
    x, y, _ = corrupted('shifted', share)
    model = SubquantileRegressor(KERNEL, corruption=None).fit(x, y)
    assert model.corruption_ == pytest.approx(share, abs=0.03)
    assert error(model) < 1.3 * error(plain(*made_samples()[:2])) + 0.003


def test_as_published_it_drops_exactly_the_stated_share_and_descends():
    x, y, _ = corrupted('shifted', 0.2)
    model = SubquantileRegressor(
        KERNEL, corruption=0.2, solver='gradient', start='zero', refine=False,
        regularization=1e-2, max_iterations=300,
    ).fit(x, y)  # fmt: skip
    assert len(model.outliers_) == 60
    assert np.all(np.diff(model.objective_) <= 1e-12)
    assert model.n_iter_ == len(model.objective_)


@pytest.mark.parametrize('start', ['search', 'path', 'huber', 'zero'])
@pytest.mark.parametrize('solver', ['alternating', 'gradient'])
def test_each_start_and_solver_finds_shifted_targets(start, solver):
    x, y, _ = corrupted('shifted', 0.1)
    model = SubquantileRegressor(KERNEL, corruption=0.1, solver=solver, start=start).fit(x, y)
    assert error(model) < 0.05


def test_function_stays_in_the_ball():
    x, y, _ = made_samples()
    norm = np.linalg.norm(plain(x, y).coef_)
    for solver in ('alternating', 'gradient'):
        model = SubquantileRegressor(KERNEL, radius=0.5 * norm, solver=solver, refine=False)
        assert np.linalg.norm(model.fit(x, y).coef_) <= 0.5 * norm * (1.0 + 1e-9)


@pytest.mark.parametrize('kernel', [Polynomial(1, 0.0), Polynomial(2, 1.0)])
def test_a_polynomial_is_fitted_beside_a_sample_that_is_far_away(kernel):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 2))
    y = x @ (1.0, 2.0) + 0.01 * rng.standard_normal(300)
    test = rng.standard_normal((200, 2))
    x[0], y[0] = (100.0, 0.0), 0.0
    predicted = SubquantileRegressor(kernel, corruption=0.1).fit(x, y).predict(test)
    assert np.abs(predicted - test @ (1.0, 2.0)).max() < 0.02


def test_a_polynomial_is_fitted_whatever_the_units_of_a_column_are():
    x = np.random.default_rng(0).standard_normal((300, 2))
    for kernel, unit in ((Polynomial(2, 1.0), 30.0), (Polynomial(1, 0.0), 1000.0)):
        scaled = x * (unit, 1.0)
        model = SubquantileRegressor(kernel, corruption=0.1).fit(scaled, x[:, 1])
        assert model.score(scaled, x[:, 1]) > 0.999


def test_units_of_the_targets_do_not_matter():
    x, y, _ = corrupted('random', 0.2)
    model = SubquantileRegressor(KERNEL, corruption=0.2).fit(x, y)
    scaled = SubquantileRegressor(KERNEL, corruption=0.2).fit(x, 1e6 * y - 5e7)
    assert np.array_equal(model.kept_, scaled.kept_)
    assert np.allclose(scaled.predict(x), 1e6 * model.predict(x) - 5e7, atol=10.0)


def test_times_since_1970_are_inputs_like_any_others():
    times = np.linspace(0.0, 600.0, 400)[:, None]
    wave = np.sin(times[:, 0] / 60.0)
    here, there = (
        SubquantileRegressor().fit(times[::2] + start, wave[::2]).score(times + start, wave)
        for start in (0.0, 1.7e9)
    )
    assert there == pytest.approx(here, abs=1e-4)
    assert here > 0.95


def test_two_fits_are_the_same_and_the_data_stay_as_they_were():
    x, y, _ = corrupted('random', 0.2)
    before = x.copy(), y.copy()
    first, second = (SubquantileRegressor(corruption=0.2).fit(x, y).predict(x) for _ in range(2))
    assert np.array_equal(first, second)
    assert np.array_equal(x, before[0])
    assert np.array_equal(y, before[1])


def test_many_samples_are_searched_by_some_and_fitted_by_all():
    x, y, count = corrupted('shifted', 0.3, samples=3000)
    model = SubquantileRegressor(KERNEL, corruption=0.3).fit(x, y)
    assert model.kept_[:count].mean() < 0.01
    assert error(model) < 1.3 * error(plain(x[count:], y[count:]))


@pytest.mark.parametrize('y', [np.zeros(40), np.arange(40) % 2 * 1.0])
def test_targets_without_noise_are_fitted(y):
    x = np.random.default_rng(0).standard_normal((40, 2))
    model = SubquantileRegressor(corruption=0.2).fit(x, y)
    assert np.isfinite(model.predict(x)).all()


@pytest.mark.parametrize('share', [-0.1, 0.5, 1.0, float('nan')])
def test_impossible_corruption_is_refused(share):
    with pytest.raises(ValueError, match=r'corruption must be .* 0 to below 0.5'):
        SubquantileRegressor(corruption=share).fit(np.ones((3, 1)), np.ones(3))


def test_unknown_solver_start_and_kernel_are_refused():
    for wrong in ({'solver': 'newton'}, {'start': 'lucky'}, {'kernel': 'rbf'}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            SubquantileRegressor(**wrong).fit(np.ones((3, 1)), np.ones(3))


def test_numbers_that_are_not_finite_are_named():
    x, y, _ = made_samples(samples=20)
    y[3] = np.nan
    with pytest.raises(ValueError, match=r'y contains NaN or infinity.*index 3'):
        SubquantileRegressor().fit(x, y)
    y[3], x[4, 1] = 0.0, np.inf
    with pytest.raises(ValueError, match=r'X contains NaN or infinity.*index \(4, 1\)'):
        SubquantileRegressor().fit(x, y)


def test_prediction_before_a_fit_says_so():
    with pytest.raises(ValueError, match='call fit first'):
        SubquantileRegressor().predict(np.ones((1, 1)))


def test_scikit_learn_accepts_it():
    checks = pytest.importorskip('sklearn.utils.estimator_checks')
    checks.check_estimator(SubquantileRegressor())
