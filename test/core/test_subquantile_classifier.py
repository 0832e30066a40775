# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The trimmed classifier: its optimum, what it keeps, and what it says of bad input."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from kernel_constrained.core import Gaussian, Polynomial, SubquantileClassifier

RIDGE = 1e-3


def wave(count, seed, sharpness=6.0):
    """Points on a square, of two classes with a wave between them."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (count, 2))
    height = sharpness * (x[:, 1] - 0.5 * np.sin(3.0 * x[:, 0]))
    return x, (rng.uniform(size=count) < expit(height)).astype(int)


def blobs(count, seed, classes=4):
    """Points around corners, a class each, hardly overlapping."""
    rng = np.random.default_rng(seed)
    angles = 2.0 * np.pi * np.arange(classes) / classes
    y = rng.integers(classes, size=count)
    centres = 2.0 * np.column_stack([np.cos(angles), np.sin(angles)])
    return centres[y] + 0.4 * rng.standard_normal((count, 2)), y


def mislabelled(y, share, seed, only=None):
    """Return labels of which a share, of one class if it is given, is the next class."""
    rng = np.random.default_rng(seed)
    rows = np.arange(len(y)) if only is None else np.flatnonzero(y == only)
    rows = rng.choice(rows, round(share * len(y)), replace=False)
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rows] = True
    return np.where(wrong, (y + 1) % (y.max() + 1), y), wrong


def classifier(**more):
    return SubquantileClassifier(**{'kernel': Gaussian(1.0), 'regularization': RIDGE, **more})


def features_of(model, x):
    return np.column_stack([model.features_(x), np.ones(len(x))])


def binary_objective(weights, z, signs, ridge):
    """Return mean logistic loss and ridge, and the gradient."""
    margins = signs * (z @ weights)
    slope = -signs * expit(-margins) / len(z)
    value = np.mean(np.logaddexp(0.0, -margins)) + ridge * weights @ weights
    return value, z.T @ slope + 2.0 * ridge * weights


# -- optima ---------------------------------------------------------------------------------


def test_two_classes_are_the_logistic_optimum_on_the_kept():
    x, y = wave(200, 0)
    y, _ = mislabelled(y, 0.1, 1)
    model = classifier(corruption=0.1).fit(x, y)
    z, signs = features_of(model, x)[model.kept_], (2.0 * y - 1.0)[model.kept_]
    best = minimize(
        binary_objective, np.zeros(z.shape[1]), (z, signs, RIDGE), jac=True, tol=1e-12
    ).x
    assert 0 < (~model.kept_).sum() <= 20
    assert z @ np.append(model.coef_, model.intercept_) == pytest.approx(z @ best, abs=1e-4)


def test_several_classes_are_the_softmax_optimum_on_the_kept():
    x, y = blobs(150, 0, classes=3)
    y, _ = mislabelled(y, 0.1, 1)
    model = classifier(corruption=0.1).fit(x, y)
    z, labels = features_of(model, x)[model.kept_], y[model.kept_]
    rows = np.arange(len(labels))

    def objective(flat):
        weights = flat.reshape(-1, 3)
        scores = z @ weights
        total = logsumexp(scores, axis=1)
        slope = np.exp(scores - total[:, None])
        slope[rows, labels] -= 1.0
        value = np.mean(total - scores[rows, labels]) + RIDGE * flat @ flat
        return value, (z.T @ slope / len(z) + 2.0 * RIDGE * weights).ravel()

    best = minimize(objective, np.zeros(3 * z.shape[1]), jac=True, tol=1e-12).x.reshape(-1, 3)
    assert z @ np.vstack([model.coef_, model.intercept_]) == pytest.approx(z @ best, abs=1e-4)


def test_without_corruption_it_is_scikit_learn_s_logistic_regression_on_the_features():
    linear = pytest.importorskip('sklearn.linear_model')
    x, y = wave(200, 2)
    model = classifier(corruption=0.0).fit(x, y)
    z = features_of(model, x)
    other = linear.LogisticRegression(
        C=0.5 / (RIDGE * len(x)), fit_intercept=False, tol=1e-10, max_iter=10000
    ).fit(z, y)
    assert model.kept_.all()
    assert model.outliers_.size == 0
    assert model.decision_function(x) == pytest.approx(other.decision_function(z), abs=1e-4)
    assert model.predict_proba(x) == pytest.approx(other.predict_proba(z), abs=1e-4)


def test_a_polynomial_separates_classes_beside_a_sample_that_is_far_away():
    rng = np.random.default_rng(0)
    x, test = rng.standard_normal((300, 2)), rng.standard_normal((200, 2))
    x[0] = 100.0, 0.0
    y = x @ (1.0, 2.0) > 0.0
    y[0] = False
    model = SubquantileClassifier(Polynomial(2, 1.0), corruption=0.1).fit(x, y)
    assert model.score(test, test @ (1.0, 2.0) > 0.0) > 0.98


def test_the_ball_gives_the_constrained_optimum():
    x, y = wave(150, 3)
    free = classifier(corruption=0.0).fit(x, y)
    norm = np.linalg.norm(np.append(free.coef_, free.intercept_))
    model = classifier(corruption=0.0, radius=0.3 * norm).fit(x, y)
    z, signs = features_of(model, x), 2.0 * y - 1.0
    best = minimize(
        binary_objective, np.zeros(z.shape[1]), (z, signs, RIDGE), jac=True, method='SLSQP',
        constraints={'type': 'ineq', 'fun': lambda w: (0.3 * norm) ** 2 - w @ w,
                     'jac': lambda w: -2.0 * w},
        options={'maxiter': 500, 'ftol': 1e-14},
    ).x  # fmt: skip
    found = np.append(model.coef_, model.intercept_)
    assert np.linalg.norm(found) == pytest.approx(0.3 * norm, rel=1e-6)
    value, _ = binary_objective(found, z, signs, RIDGE)
    assert value == pytest.approx(binary_objective(best, z, signs, RIDGE)[0], rel=1e-6)


# -- solvers --------------------------------------------------------------------------------


@pytest.mark.parametrize('start', ['path', 'zero'])
@pytest.mark.parametrize('make', [wave, blobs])
def test_the_objective_of_the_alternating_solver_never_rises(make, start):
    x, y = make(300, 4)
    y, _ = mislabelled(y, 0.2, 5)
    model = classifier(corruption=0.2, start=start, refine=False).fit(x, y)
    # from zero, the first fit is to all samples, which is another objective
    history = np.array(model.objective_)[1 if start == 'zero' else 0 :]
    assert model.n_iter_ == len(model.objective_) < model.max_iterations
    assert np.all(np.diff(history) <= 1e-9)


def test_the_objective_is_that_of_the_function_and_the_kept():
    x, y = wave(200, 6)
    y, _ = mislabelled(y, 0.2, 7)
    model = classifier(corruption=0.2, refine=False).fit(x, y)
    z, signs = features_of(model, x)[model.kept_], (2.0 * y - 1.0)[model.kept_]
    value, _ = binary_objective(np.append(model.coef_, model.intercept_), z, signs, RIDGE)
    assert model.kept_.sum() == 160
    assert model.objective_[-1] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize('seed', range(4))
def test_at_the_end_no_sample_is_better_than_a_kept_one_of_its_label(seed):
    x, y = wave(200, seed, sharpness=3.0)
    y, _ = mislabelled(y, 0.3, seed + 30)
    model = classifier(corruption=0.3, refine=False).fit(x, y)
    losses = np.logaddexp(0.0, -(2.0 * y - 1.0) * model.decision_function(x))
    for label in (0, 1):
        of_label = y == label
        assert losses[of_label & model.kept_].max() <= losses[of_label & ~model.kept_].min()


@pytest.mark.parametrize('acceleration', [False, True])
@pytest.mark.parametrize('radius', [np.inf, 3.0])
@pytest.mark.parametrize('make', [wave, blobs])
def test_the_gradient_ends_where_the_alternating_solver_does(make, radius, acceleration):
    x, y = make(200, 8)
    y, _ = mislabelled(y, 0.1, 9)
    alike = {'corruption': 0.1, 'refine': False, 'radius': radius, 'regularization': 1e-2}
    exact = classifier(**alike).fit(x, y)
    steps = classifier(
        **alike, solver='gradient', acceleration=acceleration, max_iterations=20000,
        tolerance=1e-7,
    ).fit(x, y)  # fmt: skip
    assert steps.n_iter_ < 20000
    assert np.array_equal(steps.kept_, exact.kept_)
    assert steps.objective_[-1] == pytest.approx(exact.objective_[-1], rel=1e-6)
    assert steps.decision_function(x) == pytest.approx(exact.decision_function(x), abs=5e-3)


@pytest.mark.parametrize('ridge', [0.1, 0.5, 2.0])
def test_plain_steps_are_short_enough_for_a_large_ridge(ridge):
    x, y = wave(100, 8)
    alike = {'corruption': 0.0, 'regularization': ridge}
    steps = classifier(**alike, solver='gradient', acceleration=False, tolerance=1e-7).fit(x, y)
    assert np.diff(steps.objective_).max() <= 1e-12
    exact = classifier(**alike).fit(x, y)
    assert steps.decision_function(x) == pytest.approx(exact.decision_function(x), abs=1e-5)


def test_momentum_needs_fewer_steps():
    x, y = wave(200, 8)
    alike = {'solver': 'gradient', 'start': 'zero', 'corruption': 0.1, 'max_iterations': 5000}
    plain, accelerated = (classifier(**alike, acceleration=a).fit(x, y) for a in (False, True))
    assert accelerated.n_iter_ < 0.5 * plain.n_iter_


def test_the_gradient_stays_in_the_ball():
    x, y = wave(200, 10)
    for most in (1, 3, 100):
        model = classifier(
            solver='gradient', start='zero', refine=False, radius=0.4, max_iterations=most
        ).fit(x, y)
        assert np.linalg.norm(np.append(model.coef_, model.intercept_)) <= 0.4 * (1 + 1e-12)


def test_as_published_exactly_the_stated_share_is_dropped():
    x, y = wave(200, 11)
    model = classifier(corruption=0.25, solver='gradient', start='zero', refine=False).fit(x, y)
    losses = np.logaddexp(0.0, -(2.0 * y - 1.0) * model.decision_function(x))
    assert model.kept_.sum() == 150
    assert losses[model.kept_].max() <= losses[~model.kept_].min()
    assert np.all(np.diff(losses[model.outliers_]) <= 0.0)


# -- wrong labels ---------------------------------------------------------------------------


@pytest.mark.parametrize('corruption', [0.2, None])
@pytest.mark.parametrize('seed', range(3))
def test_wrong_labels_are_found_and_few_others_dropped(seed, corruption):
    x, y = blobs(400, seed)
    given, wrong = mislabelled(y, 0.2, seed + 50)
    model = classifier(corruption=corruption).fit(x, given)
    assert np.mean(~model.kept_[wrong]) >= 0.95
    assert np.mean(~model.kept_[~wrong]) <= 0.02
    assert model.score(x, y) >= 0.99


def test_no_more_than_the_stated_share_is_dropped():
    x, y = blobs(400, 26)
    y, wrong = mislabelled(y, 0.2, 27)
    model = classifier(corruption=0.05).fit(x, y)
    assert (~model.kept_).sum() == 20
    assert wrong[model.outliers_].mean() >= 0.95


@pytest.mark.parametrize('seed', range(3))
def test_a_class_that_is_often_mislabelled_is_not_let_go_of(seed):
    x, y = wave(400, seed, sharpness=20.0)
    keep = np.flatnonzero((y == 1) | (np.random.default_rng(seed).uniform(size=len(y)) < 0.6))
    x, y = x[keep], y[keep]
    given, wrong = mislabelled(y, 0.42 * np.mean(y == 0), seed + 60, only=0)
    test_x, test_y = wave(2000, seed + 100, sharpness=20.0)
    trimmed = classifier(corruption=0.2).fit(x, given).score(test_x, test_y)
    plain = classifier(corruption=0.0).fit(x, given).score(test_x, test_y)
    clean = classifier(corruption=0.0).fit(x[~wrong], y[~wrong]).score(test_x, test_y)
    assert trimmed > 0.5 * (plain + clean)
    assert trimmed > clean - 0.03


def test_random_labels_that_are_right_stay():
    x, y = blobs(600, 12)
    rng = np.random.default_rng(13)
    touched = rng.uniform(size=len(y)) < 0.3
    given = np.where(touched, rng.integers(4, size=len(y)), y)
    model = classifier(corruption=0.3).fit(x, given)
    lucky = touched & (given == y)
    assert lucky.sum() > 20
    assert np.mean(model.kept_[lucky]) >= 0.9
    assert np.mean(~model.kept_[given != y]) >= 0.9


@pytest.mark.parametrize('share', [0.0, 0.1, 0.2, 0.3])
@pytest.mark.parametrize('make', [wave, blobs])
def test_the_share_of_wrong_labels_is_estimated(make, share):
    x, y = make(500, 14)
    given, _ = mislabelled(y, share, 15)
    model = classifier(corruption=None).fit(x, given)
    assert model.corruption_ == pytest.approx(share, abs=0.05)


def test_clean_data_lose_next_to_nothing_where_the_share_is_estimated():
    x, y = wave(500, 16)
    test_x, test_y = wave(2000, 17)
    model = classifier(corruption=None).fit(x, y)
    plain = classifier(corruption=0.0).fit(x, y)
    assert np.mean(~model.kept_) <= 0.02
    assert 1.0 - model.score(test_x, test_y) <= 1.05 * (1.0 - plain.score(test_x, test_y))


# -- conventions ----------------------------------------------------------------------------


def test_labels_may_be_strings():
    x, y = blobs(120, 18, classes=3)
    names = np.array(['wall', 'door', 'person'])
    model, numbers = classifier().fit(x, names[y]), classifier()
    assert list(model.classes_) == sorted(names)
    assert set(model.predict(x)) <= set(names)
    assert model.predict_proba(x).sum(axis=1) == pytest.approx(np.ones(len(x)))
    order = np.argsort(names)
    assert np.array_equal(model.classes_[np.argsort(order)[numbers.fit(x, y).predict(x)]],
                          names[numbers.predict(x)])  # fmt: skip


def test_the_same_data_give_the_same_model():
    x, y = blobs(200, 19)
    y, _ = mislabelled(y, 0.1, 20)
    first, second = classifier().fit(x, y), classifier().fit(x, y)
    assert np.array_equal(first.coef_, second.coef_)
    assert np.array_equal(first.kept_, second.kept_)


def test_other_kernels_and_the_default_one_are_learned_with():
    x, y = wave(200, 21)
    assert classifier(kernel=Polynomial(3, 1.0)).fit(x, y).score(x, y) > 0.8
    assert classifier(kernel=None).fit(x, y).score(x, y) > 0.8


def test_polynomial_of_degree_one_is_linear():
    x, y = wave(200, 22)
    model = classifier(kernel=Polynomial(1, 0.0)).fit(x, y)
    values = model.decision_function(np.array([[0.0, 0.0], [0.5, -0.5], [1.0, -1.0]]))
    assert values[2] - values[1] == pytest.approx(values[1] - values[0])


def test_a_class_of_a_single_sample_can_be_learned_from():
    x, y = blobs(60, 23, classes=2)
    y = np.where(np.arange(60) == 7, 2, y)
    model = classifier(corruption=0.3).fit(x, y)
    assert list(model.classes_) == [0, 1, 2]


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (lambda x, y: (x, np.zeros(len(y))), 'two classes.*one class: 0'),
        (lambda x, y: (np.where(x > 0.9, np.nan, x), y), 'Input X contains NaN'),
        (lambda x, y: (x, np.where(y > 0, np.nan, 0.0)), 'Input y contains NaN.*labels'),
        (lambda x, y: (x, x[:, 0]), 'continuous.*SubquantileRegressor'),
        (lambda x, y: (x, y[1:]), 'X has 50, y has 49'),
    ],
)
def test_bad_samples_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        classifier().fit(*change(*wave(50, 24)))


@pytest.mark.parametrize(
    ('parameters', 'message'),
    [
        ({'corruption': 0.5}, 'corruption must be .* below 0.5'),
        ({'kernel': 'gaussian'}, 'kernel must be a Gaussian'),
        ({'solver': 'newton'}, 'solver'),
        ({'regularization': 0.0}, 'regularization'),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        classifier(**parameters).fit(*wave(50, 25))


def test_prediction_before_learning_is_refused():
    with pytest.raises(ValueError, match='not fitted yet'):
        classifier().predict(np.zeros((1, 2)))


@pytest.mark.filterwarnings('ignore:Estimator SubquantileClassifier does not inherit')
def test_scikit_learn_s_own_checks_pass():
    checks = pytest.importorskip('sklearn.utils.estimator_checks')
    checks.check_estimator(SubquantileClassifier(), on_skip=None)
