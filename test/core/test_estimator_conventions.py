# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's conventions, as a person meets them: refusals, names, scores, tags."""

import sys

import numpy as np
import pytest

from kernel_constrained.core import Gaussian, SubquantileClassifier, SubquantileRegressor
from kernel_constrained.core.subquantile.estimator import NotFittedError
from kernel_constrained.core.subquantile.features import KernelFeatures

BOTH = pytest.mark.parametrize('cls', [SubquantileRegressor, SubquantileClassifier])


def samples(count=30):
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (count, 2))
    return x, (x[:, 0] > 0.0) * 1.0


class Frame:
    """What is asked of a data frame."""

    def __init__(self, values, columns):
        self.values, self.columns, self.shape = values, columns, values.shape

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


class Sparse:
    def toarray(self):
        return np.zeros((3, 1))


@BOTH
def test_the_parameters_shown_are_those_that_are_not_at_their_defaults(cls):
    assert repr(cls()) == f'{cls.__name__}()'
    assert repr(cls(corruption=0.2)) == f'{cls.__name__}(corruption=0.2)'
    with pytest.raises(
        ValueError, match=r"Invalid parameter 'depth'.*there are kernel, corruption"
    ):
        cls().set_params(depth=2)
    assert cls().set_params(corruption=0.3).get_params()['corruption'] == 0.3


@BOTH
def test_numbers_are_taken_as_the_type_they_have_to_be_and_stay_as_they_were_given(cls):
    x, y = samples()
    given = {
        'corruption': '0.2', 'regularization': '1e-2', 'radius': '5', 'max_features': 12.0,
        'max_iterations': '50', 'tolerance': np.float32(0.25), 'random_state': 3.0,
    }  # fmt: skip
    same = {
        'corruption': 0.2, 'regularization': 0.01, 'radius': 5.0, 'max_features': 12,
        'max_iterations': 50, 'tolerance': 0.25, 'random_state': 3,
    }  # fmt: skip
    model = cls(**given).fit(x, y)
    assert np.array_equal(model.predict(x), cls(**same).fit(x, y).predict(x))
    assert all(model.get_params()[name] is value for name, value in given.items())


@BOTH
@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('corruption', 'half'),
        ('corruption', [0.1]),
        ('corruption', 10**400),
        ('regularization', 'small'),
        ('radius', None),
        ('max_features', 12.5),
        ('random_state', 'lucky'),
        ('refine', 1),
        ('kernel', Gaussian),
    ],
)
def test_a_parameter_that_cannot_have_its_value_is_named(cls, name, value):
    with pytest.raises(ValueError, match=f'^{name} must be .*got '):
        cls(**{name: value}).fit(*samples())


@BOTH
@pytest.mark.parametrize(
    ('change', 'error', 'message'),
    [
        (lambda x, y: (x[:1], y[:1]), ValueError, r'1 sample\(s\).*minimum of 2'),
        (lambda x, y: (x[:0], y[:0]), ValueError, r'0 sample\(s\)'),
        (lambda x, y: (x[:, :0], y), ValueError, r'0 feature\(s\)'),
        (lambda x, y: (x[:, 0], y), ValueError, 'Expected 2D array, got 1D'),
        (lambda x, y: (x, np.stack([y, y], axis=1)), ValueError, r'y should be a 1d array'),
        (lambda x, y: (x, np.float64(1.0)), ValueError, r'y should be a 1d array'),
        (lambda x, y: (x, None), ValueError, 'requires y to be passed'),
        (lambda x, y: (x + 1j, y), ValueError, 'Complex data not supported: X'),
        (lambda x, y: (x, y + 1j), ValueError, 'Complex data not supported: y'),
        (lambda x, y: (Sparse(), y), TypeError, 'Sparse data was passed for X'),
        (lambda x, y: (x, Sparse()), TypeError, 'Sparse data was passed for y'),
    ],
)
def test_samples_that_cannot_be_learned_from_are_named(cls, change, error, message):
    with pytest.raises(error, match=message):
        cls().fit(*change(*samples()))


def test_a_label_that_is_no_class_is_named():
    x, y = samples()
    y[[4, 9]] = 0.75, 2.25
    with pytest.raises(ValueError, match=r'continuous.*\(got 0\.75\)'):
        SubquantileClassifier().fit(x, y)


def test_the_first_number_that_is_not_finite_is_named():
    x, y = samples()
    x[[7, 9], [1, 0]] = np.nan
    with pytest.raises(ValueError, match=r'X .*: 2 of 60 numbers, .* index \(7, 1\)$'):
        SubquantileRegressor().fit(x, y)
    y[[3, 8, 9]] = np.inf
    with pytest.raises(ValueError, match=r'y .*: 3 of 30 numbers, .* index 3$'):
        SubquantileRegressor().fit(samples()[0], y)


@BOTH
def test_errors_are_those_of_scikit_learn_where_it_is_in_use(cls, monkeypatch):
    theirs = pytest.importorskip('sklearn.exceptions', reason='scikit-learn is not installed')
    with pytest.raises(theirs.NotFittedError, match='not fitted'):
        cls().predict(samples()[0])
    monkeypatch.delitem(sys.modules, 'sklearn.exceptions')
    with pytest.raises(NotFittedError, match='not fitted'):
        cls().predict(samples()[0])


@BOTH
def test_a_column_of_targets_is_taken_with_a_warning(cls):
    x, y = samples()
    with pytest.warns(UserWarning, match='column-vector y'):
        model = cls(Gaussian(1.0)).fit(x, y[:, None])
    assert np.array_equal(model.predict(x), cls(Gaussian(1.0)).fit(x, y).predict(x))


@BOTH
def test_columns_are_checked_by_number_and_by_name(cls):
    x, y = samples()
    model = cls(Gaussian(1.0)).fit(Frame(x, ['a', 'b']), y)
    assert model.n_features_in_ == 2
    assert list(model.feature_names_in_) == ['a', 'b']
    assert np.array_equal(model.predict(Frame(x, ['a', 'b'])), model.predict(x))
    with pytest.raises(ValueError, match=r"\['a', 'b'\], in this order \(got \['b', 'a'\]\)"):
        model.predict(Frame(x, ['b', 'a']))
    with pytest.raises(ValueError, match=r'X has 3 features, but .* is expecting 2'):
        model.predict(np.zeros((1, 3)))
    assert not hasattr(model.fit(x, y), 'feature_names_in_')
    assert not hasattr(model.fit(Frame(x, [0, 1]), y), 'feature_names_in_')


def refit(model, targets, error):
    """Fit three columns where two were learned, which fails; check that nothing has changed."""
    x, y = samples()
    model.fit(Frame(x, ['a', 'b']), y)
    before, predicted = dict(vars(model)), model.predict(x)
    with pytest.raises(error):
        model.fit(np.ones((len(targets), 3)), targets)
    assert vars(model) == before
    assert np.array_equal(model.predict(x), predicted)


@BOTH
def test_a_fit_that_fails_leaves_what_was_learned_before(cls):
    refit(cls(Gaussian(1.0)), [0.0, 1.0, 0.0, 1.0, np.nan], ValueError)


def test_labels_of_one_class_leave_what_was_learned_before():
    refit(SubquantileClassifier(Gaussian(1.0)), np.ones(5), ValueError)


@BOTH
def test_a_fit_that_is_interrupted_leaves_what_was_learned_before(cls, monkeypatch):
    def interrupted(features, inputs):
        if inputs.shape[1] == 3:
            raise KeyboardInterrupt
        return called(features, inputs)

    called = KernelFeatures.__call__
    monkeypatch.setattr(KernelFeatures, '__call__', interrupted)
    refit(cls(Gaussian(1.0)), [0.0, 1.0, 0.0, 1.0, 0.0], KeyboardInterrupt)


@BOTH
def test_an_estimator_whose_only_fit_failed_is_not_fitted(cls):
    x, y = samples()
    model = cls()
    with pytest.raises(ValueError, match='NaN or infinity'):
        model.fit(x, y * np.nan)
    with pytest.raises(ValueError, match='not fitted'):
        model.predict(x)
    assert not hasattr(model, 'n_features_in_')


def test_scores_are_the_share_of_right_labels_and_r_squared():
    x, y = samples()
    y[3] = 1.0 - y[3]
    classifier = SubquantileClassifier(Gaussian(1.0), corruption=0.1).fit(x, y)
    assert classifier.score(x, y) == np.mean(classifier.predict(x) == y) < 1.0
    regressor = SubquantileRegressor(Gaussian(1.0), corruption=0.0).fit(x, y)
    unexplained = np.sum((y - regressor.predict(x)) ** 2) / np.sum((y - y.mean()) ** 2)
    assert regressor.score(x, y) == pytest.approx(1.0 - unexplained)
    assert 0.05 < unexplained < 0.95


def test_probabilities_are_those_of_the_functions():
    x, y = samples()
    two = SubquantileClassifier(Gaussian(1.0)).fit(x, y)
    scores = two.decision_function(x)
    assert two.predict_proba(x)[:, 1] == pytest.approx(1.0 / (1.0 + np.exp(-scores)))
    three = SubquantileClassifier(Gaussian(1.0)).fit(x, y + (x[:, 1] > 0.0))
    scores, chances = three.decision_function(x), three.predict_proba(x)
    assert chances.sum(axis=1) == pytest.approx(np.ones(30))
    assert np.log(chances[:, 1:] / chances[:, :1]) == pytest.approx(scores[:, 1:] - scores[:, :1])


def test_tags_say_what_kind_of_estimator_it_is():
    pytest.importorskip('sklearn.utils', reason='scikit-learn is not installed')
    tags = SubquantileClassifier().__sklearn_tags__()
    assert (tags.estimator_type, tags.regressor_tags) == ('classifier', None)
    assert tags.classifier_tags is not None
    tags = SubquantileRegressor().__sklearn_tags__()
    assert (tags.estimator_type, tags.classifier_tags) == ('regressor', None)
    assert tags.regressor_tags is not None
