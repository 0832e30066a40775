# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Mini-batches: how the stream is cut into calls makes no difference, nor does a file between."""

import numpy as np
import pytest

from kernel_constrained.core import CVaR, DivergenceError, Gaussian, PrimalDualLearner

MODES = ('default', 'paper', 'penalty')


def stream(n=600, seed=0, loss='squared'):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2))
    truth = np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1])
    if loss == 'softmax':
        return x, np.digitize(truth, [-0.3, 0.3]).astype(float)
    return x, truth + 0.1 * rng.standard_normal(n)


def learner(**settings):
    defaults = dict(
        kernel=Gaussian(0.3), constraint=CVaR(0.9, 0.03), step='gradient', step_size=0.3,
        parsimony=0.1, batch_size=4, classes=3,
    )  # fmt: skip
    return PrimalDualLearner(**{**defaults, **settings})


def assert_same_state(first, second):
    assert first[0] == second[0]
    assert first[1].keys() == second[1].keys()
    for name in first[1]:
        assert np.array_equal(first[1][name], second[1][name]), name


def feed(fitted, x, y, sizes):
    """Learn in calls of the given sizes, and what is left in one more."""
    edges = np.cumsum([0, *sizes])
    for start, end in zip(edges, [*edges[1:], len(x)], strict=True):
        fitted.partial_fit(x[start:end], y[start:end])
    return fitted


@pytest.mark.parametrize('loss', ['squared', 'softmax'])
@pytest.mark.parametrize('mode', MODES)
def test_how_the_stream_is_cut_into_calls_makes_no_difference_to_the_last_bit(mode, loss):
    x, y = stream(loss=loss)
    settings = {'mode': mode, 'loss': loss, 'step_size': 0.1}
    at_once = learner(**settings).partial_fit(x, y)
    assert at_once.model_order_ > 8
    for sizes in ([7, 1, 100, 3, 2, 0, 6], [1] * 600, [599], [4] * 150):
        assert_same_state(at_once.to_parts(), feed(learner(**settings), x, y, sizes).to_parts())


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('waiting', [1, 2, 3])
def test_waiting_samples_survive_a_file_and_learning_goes_on_bit_for_bit(tmp_path, mode, waiting):
    x, y = stream()
    first = learner(mode=mode, step_size=0.1).partial_fit(x[: 300 + waiting], y[: 300 + waiting])
    first.save(tmp_path / 'model.npz')
    second = PrimalDualLearner.load(tmp_path / 'model.npz')
    assert second.samples_ == 300 + waiting
    assert_same_state(first.to_parts(), second.to_parts())
    for start, end in ((300 + waiting, 304), (304, 600)):
        first.partial_fit(x[start:end], y[start:end])
        second.partial_fit(x[start:end], y[start:end])
        assert_same_state(first.to_parts(), second.to_parts())
    whole = learner(mode=mode, step_size=0.1).partial_fit(x, y)
    assert_same_state(second.to_parts(), whole.to_parts())


@pytest.mark.parametrize('mode', MODES)
def test_samples_of_a_batch_that_is_not_full_wait(mode):
    x, y = stream()
    fitted = learner(mode=mode, step_size=0.1).partial_fit(x[:400], y[:400])
    before = fitted.predict(x)
    for i in range(400, 403):
        fitted.partial_fit(x[i : i + 1], y[i : i + 1])
        assert np.array_equal(fitted.predict(x), before)
        assert fitted.samples_ == i + 1, 'they count at once'
    fitted.partial_fit(x[403:404], y[403:404])
    assert not np.array_equal(fitted.predict(x), before)


def test_a_batch_steps_along_the_mean_of_its_samples():
    """From nothing, ``f = sum_b eta 2 y_b k(x_b, .) / B``, in paper mode without a constraint."""
    x, y = stream(4)
    fitted = learner(mode='paper', constraint=None, step_size=0.1, parsimony=0.0)
    fitted.partial_fit(x, y)
    expected = 0.1 * 2.0 * y / 4.0
    assert np.array_equal(fitted.dictionary_, x)
    assert fitted.weights_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize('mode', MODES)
def test_a_batch_of_one_is_the_default(mode):
    x, y = stream()
    settings = dict(kernel=Gaussian(0.3), constraint=CVaR(0.9, 0.03), step='gradient', mode=mode)
    explicit = PrimalDualLearner(**settings, batch_size=1, step_size=0.1).partial_fit(x, y)
    default = PrimalDualLearner(**settings, step_size=0.1).partial_fit(x, y)
    assert_same_state(explicit.to_parts(), default.to_parts())


def test_batches_learn_the_function_behind_the_noise():
    x, y = stream(8000)
    truth = np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1])
    fitted = learner(constraint=None).partial_fit(x, y)
    assert np.mean((fitted.predict(x) - truth) ** 2) < 0.002


@pytest.mark.parametrize('batch_size', [4, 32])
@pytest.mark.parametrize('mode', MODES)
def test_the_order_cap_is_honoured_after_every_batch(mode, batch_size):
    x, y = stream()
    capped = learner(
        mode=mode, step_size=0.1, parsimony=0.0, max_model_order=12, batch_size=batch_size
    )
    trace = capped.prequential(x, y)
    assert trace.model_order.max() == capped.model_order_ == 12
    assert capped.overspent_ > 0
    assert np.isfinite(capped.predict(x)).all()


@pytest.mark.parametrize('batch_size', [3, 64, 100])
def test_arrays_grow_with_the_dictionary_whatever_the_batch(batch_size):
    """Several times over, also where a batch is larger than the arrays at first."""
    x, y = stream(1200)
    settings = {
        'kernel': Gaussian(0.03), 'parsimony': 0.0, 'batch_size': batch_size, 'mode': 'paper',
        'constraint': None, 'step_size': 0.1, 'regularization': 0.0,
    }  # fmt: skip
    fitted = feed(learner(**settings), x, y, [50, 1, 400])
    learned = 1200 - 1200 % batch_size
    assert fitted.model_order_ == learned > 1000
    assert {tuple(a) for a in fitted.dictionary_} == {tuple(a) for a in x[:learned]}
    weights = np.zeros(learned)
    gram = fitted.kernel(x[:learned], x[:learned])
    for start in range(0, learned, batch_size):
        rows = slice(start, start + batch_size)
        weights[rows] = 0.2 * (y[rows] - gram[rows] @ weights) / batch_size
    assert fitted.weights_ == pytest.approx(weights, rel=1e-9, abs=1e-12)
    factor = fitted.to_parts()[1]['factors'][0]
    gram = fitted.kernel(fitted.dictionary_, fitted.dictionary_) + 1e-10 * np.eye(learned)
    assert np.abs(factor.T @ factor @ gram - np.eye(learned)).max() <= 1e-8


@pytest.mark.parametrize('mode', MODES)
def test_the_trace_is_kept_sample_by_sample(mode):
    x, y = stream(203)
    settings = {'mode': mode, 'step_size': 0.1}
    trace = learner(**settings).prequential(x, y)
    singly = learner(**settings)
    for i in range(len(x)):
        before = singly.predict(x[i : i + 1])[0] if i else 0.0
        singly.partial_fit(x[i : i + 1], y[i : i + 1])
        assert trace.prediction[i] == before, 'bit for bit'
        assert trace.model_order[i] == singly.model_order_
        assert trace.dual_variable[i] == singly.dual_variable_
    assert trace.loss == pytest.approx((trace.prediction - y) ** 2)
    assert trace.model_order[:3].tolist() == [0, 0, 0], 'the first batch is not full yet'
    assert (np.diff(trace.model_order)[np.arange(1, 203) % 4 != 3] == 0).all()


@pytest.mark.parametrize(
    ('x', 'y', 'message'),
    [
        ([[0.0, np.nan]], [1.0], 'X holds 1 numbers that are not finite'),
        ([[0.0, 0.0], [0.0, 1.0]], [1.0, np.inf], 'y holds 1 numbers that are not finite'),
    ],
)
@pytest.mark.parametrize('waiting', [0, 2])
def test_a_refused_sample_in_the_middle_of_a_batch_changes_nothing(x, y, message, waiting):
    good = stream(200 + waiting)
    refused, spared = learner().partial_fit(*good), learner().partial_fit(*good)
    with pytest.raises(ValueError, match=message):
        refused.partial_fit(x, y)
    with pytest.raises(ValueError, match=message):
        refused.prequential(x, y)
    assert_same_state(refused.to_parts(), spared.to_parts())
    more = stream(101, seed=1)
    assert_same_state(refused.partial_fit(*more).to_parts(), spared.partial_fit(*more).to_parts())


@pytest.mark.parametrize('waiting', [0, 2])
def test_a_sample_whose_loss_is_beyond_numbers_leaves_no_trace_in_the_batch(waiting):
    good, x = stream(200 + waiting), stream()[0]
    refused, spared = learner().partial_fit(*good), learner().partial_fit(*good)
    with pytest.raises(DivergenceError, match='the loss of sample 0 of 1 is beyond 1e200'):
        refused.partial_fit([[0.0, 1.0]], [1e150])
    assert refused.samples_ == 200 + waiting
    assert np.array_equal(refused.predict(x), spared.predict(x))
    more = stream(101, seed=1)
    assert_same_state(refused.partial_fit(*more).to_parts(), spared.partial_fit(*more).to_parts())


def test_one_refused_sample_refuses_its_whole_call():
    x, y = stream(10)
    fitted = learner().partial_fit(*stream(202, seed=1))
    before = fitted.to_parts()
    y[7] = np.nan
    with pytest.raises(ValueError, match='y holds 1 numbers'):
        fitted.partial_fit(x, y)
    assert_same_state(before, fitted.to_parts())
