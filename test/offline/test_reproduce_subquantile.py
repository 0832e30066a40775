# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The second paper at small size, and the claims that the page makes."""

from types import SimpleNamespace

import attrs
import numpy as np
import pytest

from kernel_constrained.data import load_lidar
from kernel_constrained.offline.reproduction import subquantile
from kernel_constrained.offline.reproduction import subquantile_convergence as convergence
from kernel_constrained.offline.reproduction import subquantile_errors as errors
from kernel_constrained.offline.reproduction import subquantile_tails as tails
from kernel_constrained.offline.reproduction.subquantile_convergence import (
    ALTERNATING,
    Course,
    course_of,
    NESTEROV,
    PLAIN,
    PROBLEMS,
)
from kernel_constrained.offline.reproduction.subquantile_data import (
    grid,
    KERNEL,
    samples_of,
    SHIFT,
    truth,
)
from kernel_constrained.offline.reproduction.subquantile_errors import (
    errors_of,
    ORACLE,
    OURS,
    PUBLISHED,
)
from kernel_constrained.offline.reproduction.subquantile_tails import (
    BOUNDED,
    case_of,
    CLEAN,
    EXACT,
    FAR,
    FREE,
    RIDGE,
    SHIFTED,
    SMOOTH,
    TRIMMED,
)

# -- data ---------------------------------------------------------------------------------------


def test_the_function_has_unit_deviation_and_samples_scatter_about_it():
    assert truth()(grid()).std() == pytest.approx(1.0)
    samples = samples_of('shifted', 2000, 0)
    errors = samples.y - truth()(samples.X)
    assert samples.corrupted.sum() == 400
    assert errors[~samples.corrupted].std() == pytest.approx(0.2, rel=0.1)
    assert errors[samples.corrupted].mean() == pytest.approx(SHIFT, rel=0.02)


def test_random_targets_have_nothing_to_do_with_the_function():
    samples = samples_of('random', 2000, 0)
    wrong = samples.corrupted
    assert abs(np.corrcoef(samples.y[wrong], truth()(samples.X[wrong]))[0, 1]) < 0.15


def test_flipped_labels_are_wrong_where_others_are_right():
    samples = samples_of('flipped', 2000, 0)
    right = samples.y == (truth()(samples.X) > 0)
    assert set(samples.y) == {0.0, 1.0}
    assert right[~samples.corrupted].mean() > 0.85
    assert right[samples.corrupted].mean() < 0.15


# -- convergence --------------------------------------------------------------------------------


def test_rate_and_steps_of_a_geometric_course_are_its_factor():
    course = Course(0.5 ** np.arange(60), 0.0, 4.0, 0)
    assert course.rate == pytest.approx(0.5)
    assert course.steps_to(1 / 8) == 4


def test_condition_number_is_that_of_the_samples_kept():
    """Covariance diag(4, 1) without the third: curvatures 2 * 4 + 2 * 0.5, and 2 * 1."""
    learner = SimpleNamespace(
        features_=lambda X: X, kept_=np.array([True, True, False]), regularization=0.5
    )
    samples = SimpleNamespace(X=np.array([[2.0], [-2.0], [50.0]]))
    number = convergence.condition_number(PROBLEMS['squared'], learner, samples)
    assert number == pytest.approx(9.0 / 2.0)


@pytest.mark.parametrize('loss', PROBLEMS)
def test_gradient_steps_converge_linearly_at_nearly_two_over_kappa(loss):
    shares = []
    for ridge in PROBLEMS[loss].ridges[:2]:
        course = course_of(loss, ridge, PLAIN, 0)
        shares.append((1.0 - course.rate) * course.kappa / 2.0)
        halfway = course.steps_to(1e-6), course.steps_to(1e-8), course.steps_to(1e-10)
        assert halfway[2] - halfway[1] == pytest.approx(halfway[1] - halfway[0], rel=0.15)
    assert all(0.7 <= share <= 1.05 for share in shares)


@pytest.mark.parametrize('loss', PROBLEMS)
def test_momentum_takes_fewer_steps_and_alternating_a_few_rounds(loss):
    ridge = PROBLEMS[loss].ridges[1]
    plain, momentum, rounds = (
        course_of(loss, ridge, solver, 1).steps_to(1e-6)
        for solver in (PLAIN, NESTEROV, ALTERNATING)
    )
    assert rounds <= 10 < 4 * momentum < plain


def test_shifted_targets_are_all_dropped_from_no_function_on():
    assert course_of('squared', 0.01, NESTEROV, 0).corrupted == 0


# -- error against samples ----------------------------------------------------------------------


def test_the_leading_part_of_an_eigenfunction_is_its_norm():
    values, vectors = errors.eigenfunctions()
    assert errors.leading_part(KERNEL(grid(), grid()) @ vectors[:, 3]) == pytest.approx(values[3])


def test_what_is_off_the_first_eigenfunctions_has_no_leading_part():
    _, vectors = errors.eigenfunctions()
    difference = np.random.default_rng(0).normal(size=len(vectors))
    difference -= vectors @ (vectors.T @ difference)
    assert errors.leading_part(difference) == pytest.approx(0.0, abs=1e-12)


def test_errors_of_no_function_are_norms_of_the_truth():
    centres, weights = truth()
    nothing = SimpleNamespace(
        predict=lambda X: np.zeros(len(X)),
        features_=lambda X: np.zeros((len(X), 1)),
        coef_=np.zeros(1),
    )
    error = errors.error_of(nothing)
    assert error.mean_square == pytest.approx(np.mean(truth()(grid()) ** 2))
    assert error.whole == pytest.approx(weights @ KERNEL(centres, centres) @ weights)
    assert 0.8 * error.whole < error.leading <= error.whole


def test_the_distance_from_the_truth_itself_is_nothing():
    centres, weights = truth()
    lower = np.linalg.cholesky(KERNEL(centres, centres))
    itself = SimpleNamespace(
        features_=lambda X: np.linalg.solve(lower, KERNEL(centres, X)).T, coef_=lower.T @ weights
    )
    assert errors.squared_distance(itself) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize('kind', errors.KINDS)
def test_trimmed_the_error_falls_faster_than_the_theorem_says_and_untrimmed_it_hardly_does(kind):
    counts = (100, 400, 1600)
    found = np.array([[errors_of(kind, n, seed) for seed in range(3)] for n in counts])
    slopes = {
        method: errors.slope_of(counts, found[:, :, number], 'mean_square').value
        for number, method in enumerate(errors.METHODS)
    }
    assert all(slopes[method] < -0.5 for method in (OURS, PUBLISHED, ORACLE))
    assert slopes[errors.PLAIN] > slopes[OURS] + 0.2
    last = dict(zip(errors.METHODS, np.median(found[-1, :, :, 0], axis=0), strict=True))
    assert last[OURS] < 1.4 * last[ORACLE]
    assert last[errors.PLAIN] > 10 * last[OURS]


# -- bound or trim ------------------------------------------------------------------------------


def test_a_fifth_of_the_targets_is_corrupted_unless_they_are_clean():
    targets = load_lidar().logratio
    clean, none = tails.corrupt(targets, CLEAN, 0)
    assert not none.any()
    assert (clean == targets).all()
    shifted, some = tails.corrupt(targets, SHIFTED, 0)
    assert some.sum() == round(0.2 * len(targets))
    assert shifted - targets == pytest.approx(np.where(some, tails.SHIFT, 0.0))


@pytest.fixture(scope='module')
def smooth():
    return {kind: [case_of(SMOOTH, kind, seed) for seed in range(3)] for kind in (CLEAN, SHIFTED)}


def median_cvar(members, method):
    return np.median([case.fits[method].cvar for case in members])


def test_clean_data_is_better_bounded_than_trimmed(smooth):
    members = smooth[CLEAN]
    assert median_cvar(members, BOUNDED) < median_cvar(members, RIDGE)
    assert median_cvar(members, RIDGE) < median_cvar(members, TRIMMED)
    assert median_cvar(members, TRIMMED) < median_cvar(members, EXACT)
    for case in members:
        assert case.fits[BOUNDED].over_bound < 1.05 < case.fits[RIDGE].over_bound
        dropped = tails.lidar_inputs()[case.rows, 0][~case.fits[EXACT].kept]
        assert (dropped > FAR).mean() > 0.85


def test_corrupted_data_is_better_trimmed_than_bounded(smooth):
    members = smooth[SHIFTED]
    for trimmed in (EXACT, TRIMMED):
        assert median_cvar(members, trimmed) < 0.8 * median_cvar(members, RIDGE)
    assert median_cvar(members, RIDGE) < median_cvar(members, BOUNDED)
    for case in members:
        dropped = ~case.fits[TRIMMED].kept
        assert dropped[case.corrupted].mean() > 0.9


def test_a_model_free_to_follow_loses_little_by_trimming_clean_data():
    case = case_of(FREE, CLEAN, 0)
    assert (~case.fits[TRIMMED].kept).mean() < 0.05
    assert case.fits[TRIMMED].losses.mean() < 1.1 * case.fits[RIDGE].losses.mean()


# -- all of it ----------------------------------------------------------------------------------


def test_run_writes_the_figures_and_a_row_for_each_measurement(tmp_path, monkeypatch):
    for loss, problem in PROBLEMS.items():
        monkeypatch.setitem(PROBLEMS, loss, attrs.evolve(problem, ridges=(0.3, 0.1, 0.03)))
    rows = subquantile.run(tmp_path, (100, 200, 400), 1)
    for name in ('subquantile_convergence', 'subquantile_errors', 'subquantile_tails'):
        assert (tmp_path / f'{name}.png').read_bytes().startswith(b'\x89PNG')
    assert [
        sum(word in row.what for row in rows) for word in ('loss, lambda', 'error', 'LIDAR')
    ] == [6, 8, 24]
    assert 'factor 0.75 per step: 48 steps' in rows[0].paper
    assert 'factor 0.5 per step: 20 steps' in rows[3].paper
    dropped = [row for row in rows if 'rows dropped' in row.remark]
    assert len(dropped) == 12
    assert all('subquantile' in row.what for row in dropped)
