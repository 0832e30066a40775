# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Subquantile Minimization of a stream: what is kept, what is dropped, what is learned."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_constrained import model_file
from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.core import DivergenceError, Gaussian, Polynomial
from kernel_constrained.core.subquantile import SubquantileLearner

NOISE = 0.1


def samples(count, share=0.0, outputs=1, seed=0):
    """Return inputs, targets of which a share is corrupted, clean targets, and which are."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (count, 2))
    phases = np.arange(outputs)
    truth = np.sin(3.0 * x[:, :1] + phases) * np.cos(2.0 * x[:, 1:])
    y = truth + NOISE * rng.standard_normal(truth.shape)
    bad = rng.uniform(size=count) < share
    y[bad] += 1.5
    return x, y, truth, bad


def learner(**more):
    return SubquantileLearner(**{**dict(kernel=Gaussian(0.6), novelty=0.05, window=400), **more})


def ridge(fitted, x, y):
    """Ridge regression on samples by the dictionary of a learner, at some test points."""
    atoms, at = fitted.dictionary_, samples(50, seed=99)[0]
    gram = fitted.kernel(atoms, atoms) + 1e-10 * np.eye(len(atoms))
    cross = fitted.kernel(x, atoms)
    weight = 0.5 * max(fitted.regularization, 1e-9) * fitted.window
    weights = np.linalg.solve(cross.T @ cross + weight * gram, cross.T @ y)
    return fitted.kernel(at, atoms) @ weights, fitted.predict(at)


# -- what is learned ----------------------------------------------------------------------------


@pytest.mark.parametrize('outputs', [1, 3])
@pytest.mark.parametrize('kernel', [Gaussian(0.6), Polynomial(3, 1.0)], ids=['gauss', 'poly'])
def test_it_is_ridge_regression_on_what_is_kept_of_the_window(outputs, kernel):
    x, y, _, _ = samples(1500, 0.2, outputs)
    fitted = learner(kernel=kernel, window=300, regularization=1e-4).partial_fit(x[:900], y[:900])
    order = fitted.model_order_
    for end in range(900, 1500, 40):  # starts anew among them
        fitted.partial_fit(x[end : end + 40], y[end : end + 40])
        kept = fitted.kept_
        newest = slice(end + 40 - 300, end + 40)
        expected, found = ridge(fitted, x[newest][kept], y[newest][kept])
        assert fitted.model_order_ == order, 'atoms are known to all of the window'
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert 0.7 < kept.mean() < 0.9


def test_without_corruption_allowed_it_keeps_every_sample():
    x, y, _, _ = samples(900, 0.2)
    fitted = learner(corruption=0.0, window=300).partial_fit(x, y)
    assert fitted.kept_.all()
    assert fitted.rejected_ == 0
    assert fitted.threshold_ == math.inf
    expected, found = ridge(fitted, x[-300:], y[-300:])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_there_is_room_for_many_atoms():
    x, y, _, _ = samples(300)
    settings = dict(kernel=Gaussian(0.1), corruption=0.0, window=300, regularization=1e-4)
    fitted = learner(**settings).partial_fit(x, y).partial_fit(x, y)
    assert fitted.model_order_ > 128
    expected, found = ridge(fitted, x, y)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_dictionary_at_its_cap_goes_on_with_the_atoms_that_are_worth_most():
    x, y, truth, bad = samples(3000, 0.2)
    moved = x + np.array([4.0, 0.0])
    fitted = learner(max_model_order=20).partial_fit(x, y)
    known = fitted.dictionary_
    assert (known[:, 0] < 1.1).all()
    trace = fitted.prequential(moved, y)  # the same, elsewhere
    assert fitted.model_order_ == trace.model_order.max() == 20
    assert fitted.overspent_ >= 15
    assert (fitted.dictionary_[:, 0] > 2.9).mean() > 0.8
    late = np.arange(3000) >= 2000
    assert np.mean((trace.prediction - truth)[late] ** 2) < 0.05 * truth.var()
    assert (~trace.kept)[late & bad].mean() > 0.95


# -- who is dropped -----------------------------------------------------------------------------


@pytest.mark.parametrize('corruption', [0.5, 0.3])
@pytest.mark.parametrize('share', [0.1, 0.2, 0.3])
def test_gross_outliers_are_found_and_clean_samples_stay(share, corruption):
    x, y, truth, bad = samples(3000, share)
    fitted = learner(window=500, corruption=corruption)
    trace = fitted.prequential(x, y)
    late = np.arange(3000) >= 1000
    assert (~trace.kept)[late & bad].mean() >= 0.95
    assert (~trace.kept)[late & ~bad].mean() <= 0.03
    assert abs(fitted.corruption_ - bad[-500:].mean()) < 0.03
    assert np.mean((trace.prediction - truth)[late] ** 2) < 0.3 * NOISE**2
    assert fitted.rejected_ == (~trace.kept).sum()
    dropped = ~fitted.kept_
    assert dropped[bad[-500:]].mean() >= 0.95
    assert fitted.dropped_share_ == pytest.approx(dropped.mean())


def test_clean_samples_are_hardly_dropped_where_nothing_is_corrupted():
    x, y, _, _ = samples(3000)
    all_kept = learner(window=500, corruption=0.0).prequential(x, y)
    trace = learner(window=500).prequential(x, y)
    assert (~trace.kept).mean() <= 0.03
    late = slice(1000, None)
    errors = [np.mean((t.prediction - y)[late] ** 2) for t in (trace, all_kept)]
    assert errors[0] < 1.02 * errors[1]


def test_noise_that_differs_from_place_to_place_is_no_corruption():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1.0, 1.0, (4000, 1))
    deviation = np.where(x[:, 0] > 0.0, 0.3, 0.03)
    trace = learner(kernel=Gaussian(0.2), window=1000).prequential(
        x, np.sin(3.0 * x[:, 0]) + deviation * rng.standard_normal(4000)
    )
    late = np.arange(4000) >= 2000
    for half in (x[:, 0] > 0.1, x[:, 0] < -0.1):
        assert (~trace.kept)[late & half].mean() < 0.04


def test_no_more_is_dropped_than_is_allowed():
    x, y, _, _ = samples(3000, 0.3)
    fitted = learner(window=500, corruption=0.1).partial_fit(x, y)
    assert fitted.dropped_share_ < 0.13


def test_a_sample_is_kept_or_dropped_with_all_its_targets():
    x, y, _, _ = samples(2000, outputs=3)
    bad = np.arange(2000) % 5 == 0
    y[bad, 1] += 1.5
    trace = learner().prequential(x, y)
    late = np.arange(2000) >= 1000
    assert (~trace.kept)[late & bad].mean() > 0.95
    assert (~trace.kept)[late & ~bad].mean() < 0.03


def test_rejected_is_what_loses_more_than_the_threshold():
    x, y, _, _ = samples(1500, 0.2)
    trace = learner().prequential(x, y[:, 0])
    assert (trace.kept == (trace.loss <= trace.threshold)).all()
    np.testing.assert_allclose(trace.loss, (trace.prediction - y[:, 0]) ** 2)
    assert np.isinf(trace.threshold[:20]).all(), 'at first nothing is known'


def test_where_nothing_was_learned_a_large_error_is_no_outlier():
    x, y, _, _ = samples(1000)
    fitted = learner().partial_fit(x, y)
    elsewhere = x[:100] + np.array([10.0, 0.0])
    kept = fitted.prequential(elsewhere, y[:100] + 1.0).kept
    assert kept.mean() > 0.95


def test_a_wrong_beginning_is_forgotten_by_starting_anew():
    x, y, truth, _ = samples(1200)
    y[:40] += 3.0  # all of the first samples, then none
    fitted = learner(window=1000).partial_fit(x, y)
    assert np.mean((fitted.predict(x) - truth) ** 2) < 0.3 * NOISE**2


def test_what_was_rejected_is_re_admitted_when_the_world_has_changed():
    x, y, truth, _ = samples(4000)
    y[1500:] += 1.0
    fitted = learner(window=400)
    trace = fitted.prequential(x, y)
    assert trace.kept[1500:1540].mean() < 0.2, 'at first it looks corrupted'
    assert trace.kept[3000:].mean() > 0.95
    assert np.mean((fitted.predict(x) - truth - 1.0) ** 2) < 0.3 * NOISE**2


# -- samples in, samples out --------------------------------------------------------------------


def parts(fitted):
    header, arrays = fitted.to_parts()
    return header, {name: array.tolist() for name, array in arrays.items()}


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(1, 700), min_size=1, max_size=6), st.integers(1, 2), st.integers(5, 60)
)
def test_splitting_a_stream_into_calls_changes_nothing(cuts, outputs, most):
    x, y, _, _ = samples(1200, 0.2, outputs)
    whole = learner(window=150, max_model_order=most)
    trace = whole.prequential(x, y)
    split = learner(window=150, max_model_order=most)
    begin, predictions = 0, []
    for end in [*np.cumsum(cuts).tolist(), 1200]:
        if begin < min(end, 1200):
            predictions.append(split.prequential(x[begin:end], y[begin:end]).prediction)
            begin = min(end, 1200)
    assert parts(split) == parts(whole)
    assert np.concatenate(predictions).tolist() == trace.prediction.tolist()


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(1, 500), window=st.integers(20, 300), share=st.sampled_from([0.0, 0.2, 0.5]),
    corruption=st.sampled_from([0.0, 0.1, 0.5]), seed=st.integers(0, 5),
)  # fmt: skip
def test_the_books_of_the_window_are_right(count, window, share, corruption, seed):
    x, y, _, _ = samples(count, share, seed=seed)
    fitted = learner(window=window, corruption=corruption, max_model_order=30)
    trace = fitted.prequential(x, y)
    assert len(fitted.kept_) == min(count, window)
    assert fitted.samples_ == count
    assert fitted.rejected_ == (~trace.kept).sum() <= count
    assert 0.0 <= fitted.corruption_ <= 0.5
    assert np.isfinite(fitted.predict(x)).all()
    assert fitted.loss_ == trace.loss[-1]
    assert fitted.threshold_ == trace.threshold[-1]


def test_predictions_are_those_of_weights_and_dictionary():
    x, y, _, _ = samples(600, 0.1)
    fitted = learner().partial_fit(x, y[:, 0])
    expected = fitted.kernel(x[:20], fitted.dictionary_) @ fitted.weights_
    np.testing.assert_allclose(fitted.predict(x[:20]), expected, atol=1e-8)
    values, support = fitted.predict_with_support(np.array([[0.0, 0.0], [50.0, 0.0]]))
    assert support[0] > 0.9
    assert support[1] == values[1] == 0.0


@pytest.mark.parametrize('bad', [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize('begun', [False, True])
def test_numbers_that_are_not_finite_are_refused_and_nothing_is_learned(bad, begun):
    x, y, _, _ = samples(60)
    fitted = learner()
    if begun:
        fitted.partial_fit(x, y)
    before = parts(fitted)
    for wrong_x, wrong_y in ((x.copy(), y), (x, y.copy())):
        (wrong_x if wrong_x is not x else wrong_y)[30] = bad
        with pytest.raises(ValueError, match='numbers that are not finite'):
            fitted.partial_fit(wrong_x, wrong_y)
    assert parts(fitted) == before


def test_a_loss_beyond_all_numbers_ends_the_stream_before_it():
    x, y, _, _ = samples(60)
    y[30] = 1e150
    fitted = learner()
    with pytest.raises(DivergenceError, match='loss of sample 30 of 60 is beyond 1e200'):
        fitted.partial_fit(x, y)
    assert fitted.samples_ == 30


def test_an_absurd_target_before_anything_is_known_is_forgotten():
    x, y, truth, _ = samples(400)
    y[10] = 1e60
    fitted = learner().partial_fit(x, y)
    assert np.mean((fitted.predict(x) - truth) ** 2) < 0.3 * NOISE**2


def test_shapes_that_do_not_fit_are_said():
    x, y, _, _ = samples(30)
    with pytest.raises(ValueError, match='nothing has been learned yet'):
        learner().predict(x)
    fitted = learner().partial_fit(x, y)
    with pytest.raises(ValueError, match='X must have 2 columns'):
        fitted.partial_fit(x[:, :1], y)
    with pytest.raises(ValueError, match='y must have shape'):
        fitted.partial_fit(x, y[:3])
    with pytest.raises(ValueError, match='y must have 1 columns'):
        fitted.partial_fit(x, np.hstack([y, y]))


# -- parameters and files -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'corruption': 0.6}, 'corruption must be a number from 0 to 0.5'),
        ({'window': 5}, 'window must be an integer from 20 to 100000'),
        ({'novelty': 0.0}, 'novelty must be a number'),
        ({'kernel': 'gaussian'}, 'kernel must be a Gaussian or a Polynomial'),
    ],
)
def test_wrong_parameters_are_named(given, message):
    with pytest.raises(ConfigurationError, match=message):
        SubquantileLearner(**given)


def test_the_share_that_may_be_dropped_can_change_while_it_learns():
    x, y, _, _ = samples(2400, 0.2)
    fitted = learner(corruption=0.0).partial_fit(x[:800], y[:800])
    assert fitted.dropped_share_ == 0.0
    fitted.set_parameters(corruption=0.4)
    fitted.partial_fit(x[800:2400], y[800:2400])
    assert 0.15 < fitted.dropped_share_ < 0.25
    with pytest.raises(ConfigurationError, match='window cannot be changed while learning'):
        fitted.set_parameters(corruption=0.1, window=30)
    with pytest.raises(ConfigurationError, match='corruption must be'):
        fitted.set_parameters(corruption=1.0)
    assert fitted.corruption == 0.4


@pytest.mark.parametrize('count', [0, 10, 333, 1000])
def test_a_learner_from_a_file_goes_on_bit_for_bit(count, tmp_path):
    x, y, _, _ = samples(2000, 0.2)
    fitted = learner(max_model_order=15, window=300)
    if count:
        fitted.partial_fit(x[:count], y[:count])
    fitted.save(tmp_path / 'model.npz')
    loaded = SubquantileLearner.load(tmp_path / 'model.npz')
    assert parts(loaded) == parts(fitted)
    traces = [one.prequential(x[count:], y[count:]) for one in (fitted, loaded)]
    assert traces[0].prediction.tolist() == traces[1].prediction.tolist()
    assert traces[0].kept.tolist() == traces[1].kept.tolist()
    assert parts(loaded) == parts(fitted)


def test_a_file_of_another_kind_is_refused(tmp_path):
    model_file.write(tmp_path / 'model.npz', 'other', {}, {})
    with pytest.raises(model_file.ModelFileError, match='holds a other, expected a'):
        SubquantileLearner.load(tmp_path / 'model.npz')


def test_warming_up_learns_nothing():
    fitted = learner().warm_up(3, 2)
    assert fitted.samples_ == fitted.model_order_ == 0
