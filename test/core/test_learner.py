# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What a person relies on: shapes, refusals, files, bounded memory, published figures."""

import subprocess
import sys

import numpy as np
import pytest

from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.core import (
    conditional_value_at_risk,
    CVaR,
    DivergenceError,
    Expectation,
    Gaussian,
    Polynomial,
    PrimalDualLearner,
)
from kernel_constrained.core import stream as stream_module
from kernel_constrained.data import lidar_split, load_lidar
from kernel_constrained.model_file import ModelFileError


def stream(n=600, seed=0, outputs=None):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2))
    y = np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1])
    y = y if outputs is None else np.stack([y * (c + 1) for c in range(outputs)], axis=1)
    return x, y + 0.1 * rng.standard_normal(y.shape)


VARIANTS = pytest.mark.parametrize(
    'variant',
    [{'step': 'recursive'}, {'step': 'gradient'}, {'mode': 'paper'}, {'mode': 'penalty'}],
    ids=lambda variant: next(iter(variant.values())),
)


def learner(**settings):
    defaults = dict(kernel=Gaussian(0.3), constraint=CVaR(0.9, 0.03), step_size=0.3, parsimony=0.1)
    return PrimalDualLearner(**{**defaults, **settings})


PAPER = {'mode': 'paper', 'step_size': 0.1, 'parsimony': 0.008}


def lidar_run(seed, settings):
    table, split = load_lidar(), lidar_split(seed)
    x, y = ((table.range - 390) / 330)[:, None], table.logratio
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(split.train) for _ in range(10)])
    paper = PrimalDualLearner(
        kernel=Gaussian(bandwidth=0.04), loss='squared',
        constraint=CVaR(significance=0.99, tolerance=0.8),
        regularization=1e-5, dual_regularization=1e-5, **settings,
    ).partial_fit(x[rows], y[rows])  # fmt: skip
    train = (paper.predict(x[split.train]) - y[split.train]) ** 2
    test = (paper.predict(x[split.test]) - y[split.test]) ** 2
    return train.mean(), test.mean(), paper.model_order_, conditional_value_at_risk(train, 0.99)


@pytest.mark.parametrize('settings', [{}, {'step': 'gradient'}, PAPER], ids=str)
def test_lidar_reaches_the_figures_of_the_paper(settings):
    results = np.array([lidar_run(seed, settings) for seed in range(20)])
    for train, test, order, cvar in (np.median(results, axis=0), results[0]):
        assert train <= 0.0065
        assert test <= 0.0090
        assert order <= 45
        assert cvar <= 0.8


@pytest.mark.parametrize('outputs', [None, 1, 3])
def test_predictions_and_weights_have_the_shape_of_the_targets(outputs):
    x, y = stream(outputs=outputs)
    fitted = learner().partial_fit(x, y)
    assert fitted.predict(x).shape == y.shape
    order = fitted.model_order_
    assert fitted.dictionary_.shape == (order, 2)
    assert fitted.weights_.shape == (order, *y.shape[1:])
    assert fitted.predict(x) == pytest.approx(
        fitted.kernel(x, fitted.dictionary_) @ fitted.weights_
    )
    assert np.mean((fitted.predict(x) - y) ** 2) < 0.1 * np.mean(y**2)


@VARIANTS
def test_one_call_and_sample_by_sample_are_the_same_bit_for_bit(variant):
    x, y = stream(outputs=2)
    at_once = learner(step_size=0.1, **variant).partial_fit(x, y)
    singly = learner(step_size=0.1, **variant)
    for i in range(len(x)):
        singly.partial_fit(x[i : i + 1], y[i : i + 1])
    assert np.array_equal(at_once.dictionary_, singly.dictionary_)
    assert np.array_equal(at_once.weights_, singly.weights_)
    assert at_once.dual_variable_ == singly.dual_variable_
    assert at_once.violation_ == singly.violation_


@VARIANTS
def test_prequential_predicts_each_sample_before_it_is_learned(variant):
    x, y = stream(200)
    trace = learner(step_size=0.1, **variant).prequential(x, y)
    singly = learner(step_size=0.1, **variant).partial_fit(x[:1], y[:1])
    for i in range(1, len(x)):
        assert trace.prediction[i] == singly.predict(x[i : i + 1])[0], 'bit for bit'
        singly.partial_fit(x[i : i + 1], y[i : i + 1])
        assert trace.model_order[i] == singly.model_order_
        assert trace.dual_variable[i] == singly.dual_variable_
    assert trace.loss == pytest.approx((trace.prediction - y) ** 2)


@pytest.mark.parametrize('kernel', [Gaussian(0.3), Polynomial(2, 1.0)])
@VARIANTS
@pytest.mark.parametrize('constraint', [CVaR(0.9, 5.0), [CVaR(0.9, 5.0), Expectation(5.0)]])
def test_save_and_load_go_on_bit_for_bit(tmp_path, kernel, variant, constraint):
    x, y = stream(outputs=2)
    first = learner(kernel=kernel, step_size=0.05, constraint=constraint, **variant).partial_fit(
        x[:300], y[:300]
    )
    first.save(tmp_path / 'model.npz')
    second = PrimalDualLearner.load(tmp_path / 'model.npz')
    assert np.array_equal(first.predict(x), second.predict(x))
    first.partial_fit(x[300:], y[300:])
    second.partial_fit(x[300:], y[300:])
    assert np.array_equal(first.dictionary_, second.dictionary_)
    assert np.array_equal(first.weights_, second.weights_)
    assert np.array_equal(first.violation_, second.violation_)
    assert np.array_equal(first.dual_variable_, second.dual_variable_)
    assert first.constraint == second.constraint


def test_a_learner_that_has_seen_nothing_can_be_saved(tmp_path):
    learner().save(tmp_path / 'empty.npz')
    x, y = stream(50)
    loaded = PrimalDualLearner.load(tmp_path / 'empty.npz').partial_fit(x, y)
    assert np.array_equal(loaded.predict(x), learner().partial_fit(x, y).predict(x))


def test_a_damaged_or_foreign_model_file_is_refused_by_name(tmp_path):
    x, y = stream(50)
    path = tmp_path / 'model.npz'
    learner().partial_fit(x, y).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFileError, match=r'model\.npz is no model file or is damaged'):
        PrimalDualLearner.load(path)
    with pytest.raises(ModelFileError, match='does not exist'):
        PrimalDualLearner.load(tmp_path / 'absent.npz')
    np.savez(path, a=np.zeros(3))
    with pytest.raises(ModelFileError, match='no model file'):
        PrimalDualLearner.load(path)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    x, y = stream(50)
    path = tmp_path / 'model.npz'
    fitted = learner().partial_fit(x, y)
    fitted.save(path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError('no space left on device')

    monkeypatch.setattr(np, 'savez', full)
    with pytest.raises(OSError, match='no space'):
        fitted.partial_fit(x, y).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ['model.npz']


@pytest.mark.parametrize(
    ('x', 'y', 'message'),
    [
        ([[0.0, np.nan]], [1.0], 'X holds 1 numbers that are not finite'),
        ([[0.0, 1.0]], [np.inf], 'y holds 1 numbers that are not finite'),
        ([[0.0]], [1.0], r'X must have 2 columns, as what was learned from \(got 1\)'),
        ([0.0, 1.0], [1.0], r'X must have shape \(n, p\)'),
        ([[0.0, 1.0]], [1.0, 2.0], r'y must have shape \(1,\)'),
        ([[0.0, 1.0]], [[1.0, 2.0]], r'y must have 1 columns \(got 2\)'),
        ([[0.0, 1.0]], [1e150], 'beyond 1e200'),
    ],
)
@VARIANTS
def test_bad_samples_are_refused_before_anything_changes(variant, x, y, message):
    good = stream(100)
    fitted = learner(step_size=0.1, **variant).partial_fit(*good)
    before = fitted.to_parts()
    with pytest.raises((ValueError, DivergenceError), match=message):
        fitted.partial_fit(x, y)
    after = fitted.to_parts()
    assert before[0] == after[0]
    assert all(np.array_equal(before[1][k], after[1][k]) for k in before[1])


def test_the_first_samples_are_refused_too_and_leave_nothing_behind():
    fresh = learner()
    with pytest.raises(ValueError, match='holds 1 numbers that are not finite'):
        fresh.partial_fit([[0.0, np.nan]], [1.0])
    fresh.partial_fit([[0.0]], [[1.0, 2.0]])  # other shapes than those refused


def test_read_only_and_foreign_arrays_are_taken_without_compiling_again():
    x, y = stream(50)
    expected = learner().partial_fit(x, y).predict(x)
    before = len(stream_module.stream.signatures)
    for given in (np.asfortranarray(x), x.tolist(), x[::-1][::-1], np.broadcast_to(x, x.shape)):
        assert np.array_equal(learner().partial_fit(given, y).predict(given), expected)
    assert len(stream_module.stream.signatures) == before


def test_warming_up_learns_nothing():
    warm = learner(mode='paper').warm_up(inputs=2)
    assert (warm.samples_, warm.model_order_) == (0, 0)
    x, y = stream(50)
    assert np.array_equal(
        warm.partial_fit(x, y).weights_, learner(mode='paper').partial_fit(x, y).weights_
    )


@pytest.mark.parametrize('loss', ['squared', 'hinge', 'multiclass_hinge'])
@pytest.mark.parametrize('mode', ['default', 'paper', 'penalty'])
def test_a_linear_kernel_which_vanishes_at_zero_warms_up(mode, loss):
    warm = PrimalDualLearner(Polynomial(1, 0.0), loss=loss, mode=mode, step='gradient').warm_up(2)
    assert warm.samples_ == 0


def test_predicting_before_learning_says_what_to_do():
    with pytest.raises(ValueError, match='call partial_fit before predict'):
        learner().predict([[0.0, 0.0]])


def naive_support(fitted, x):
    """Return ``k^T K^-1 k / k(x, x)``, by solving with the Gram matrix of the dictionary."""
    kernel, atoms = fitted.kernel, fitted.dictionary_
    gram = kernel(atoms, atoms) + 1e-10 * np.eye(len(atoms))
    k = kernel(atoms, x)
    return np.sum(k * np.linalg.solve(gram, k), axis=0) / np.diag(kernel(x, x))


@pytest.mark.parametrize('kernel', [Gaussian(0.3), Polynomial(3, 1.0)])
@pytest.mark.parametrize('outputs', [None, 3])
@pytest.mark.parametrize('samples', [5, 300])
@VARIANTS
def test_support_is_the_share_of_the_kernel_function_within_the_span(
    variant, samples, outputs, kernel
):
    x, y = stream(samples, outputs=outputs)
    fitted = learner(kernel=kernel, step_size=0.002, **variant).partial_fit(x, y)
    points = np.vstack([x[:50], 3.0 * x[:50], np.zeros((1, 2))])
    values, support = fitted.predict_with_support(points)
    assert np.array_equal(values, fitted.decision_function(points)), 'bit for bit'
    assert support == pytest.approx(naive_support(fitted, points), abs=1e-6)
    assert support.min() >= 0.0
    assert support.max() <= 1.0


@VARIANTS
def test_support_is_1_at_the_atoms_and_0_far_from_all_of_them(variant):
    x, y = stream(300)
    fitted = learner(step_size=0.1, **variant).partial_fit(x, y)
    _, support = fitted.predict_with_support(fitted.dictionary_)
    assert support == pytest.approx(np.ones(fitted.model_order_), abs=1e-6)
    values, support = fitted.predict_with_support([[50.0, 0.0], [0.0, -1e9]])
    assert support.tolist() == values.tolist() == [0.0, 0.0]
    _, near = fitted.predict_with_support(fitted.dictionary_[:1] + 0.05)
    _, further = fitted.predict_with_support([[0.0, 2.0]])
    assert 1.0 >= near[0] > 0.9 > 0.1 > further[0]


def test_support_does_not_depend_on_what_the_values_are():
    x, y = stream(200)
    one, other = learner().partial_fit(x, y), learner().partial_fit(x, -7.0 * y)
    points = x[:20] + 0.2
    supports = [fitted.predict_with_support(points)[1].tolist() for fitted in (one, other)]
    assert supports[0] == supports[1]


def test_support_is_refused_where_a_prediction_is():
    with pytest.raises(ValueError, match='call partial_fit before predict'):
        learner().predict_with_support([[0.0, 0.0]])
    fitted = learner().partial_fit(*stream(20))
    with pytest.raises(ValueError, match='X must have 2 columns'):
        fitted.predict_with_support([[0.0]])
    with pytest.raises(ValueError, match='holds 1 numbers that are not finite'):
        fitted.predict_with_support([[0.0, np.nan]])


def test_divergence_is_an_error_that_keeps_the_last_finite_state():
    x, y = stream(2000)
    wild = learner(mode='paper', step_size=20.0, constraint=None)
    with pytest.raises(DivergenceError, match=r'Lower step_size \(now 20\)'):
        wild.partial_fit(x, y)
    assert np.isfinite(wild.predict(x)).all()


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ({'step_size': -1}, r'step_size must be a number from 1e-09 to 1000 \(got -1\)'),
        ({'step_size': float('nan')}, r'step_size must be a number .* \(got nan\)'),
        ({'mode': 'exact'}, r"mode must be one of default, paper, penalty \(got 'exact'\)"),
        ({'kernel': 'gaussian'}, r"kernel must be a Gaussian or a Polynomial \(got 'gaussian'\)"),
        ({'constraint': 0.9}, r'constraint must be a CVaR, .*, or None \(got 0\.9\)'),
        ({'max_model_order': 0}, r'max_model_order must be an integer from 1 to'),
        ({'loss': 'cubic'}, r'loss must be one of squared, huber, .* \(got .cubic.\)'),
        ({'constraint': [CVaR(), 2]}, r'constraint must be .*several of them.* \(got 2\)'),
        (
            {'step': 'recursive', 'loss': 'huber'},
            r"needs loss='squared'.*\(got 'huber', .*'gradient'",
        ),
        ({'step': 'recursive', 'mode': 'paper'}, r"needs .*mode='default'.*\(got .*'paper'"),
        ({'step': 'recursive', 'batch_size': 4}, r'needs .*batch_size=1.*\(got .* 4 and'),
    ],
)
def test_wrong_settings_name_parameter_value_and_range(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        learner(**settings)


@VARIANTS
def test_model_order_cap_is_honoured_and_reported(variant):
    x, y = stream(2000)
    settings = dict(step_size=0.2, parsimony=0.1, **variant)
    capped = learner(max_model_order=12, **settings).partial_fit(x, y)
    assert capped.model_order_ == 12
    assert capped.overspent_ > 0
    free = learner(**settings).partial_fit(x, y)
    assert free.model_order_ > 12
    assert free.overspent_ == 0


@pytest.mark.parametrize(
    'settings', [{'step': 'gradient', 'parsimony': 0.0}, {'step': 'recursive', 'novelty': 1e-7}]
)
def test_without_compression_every_atom_is_kept_that_is_not_dependent(settings):
    x, y = stream(150)
    order = learner(**settings).partial_fit(x, y).model_order_
    assert order > 60
    twice = learner(**settings).partial_fit(np.vstack([x, x]), np.concatenate([y, y]))
    assert twice.model_order_ == order


def test_runtime_parameters_change_between_samples_and_others_are_refused():
    x, y = stream(200)
    fitted = learner().partial_fit(x, y)
    fitted.set_parameters(step_size=0.05, tolerance=0.5)
    assert fitted.step_size == 0.05
    assert fitted.constraint.tolerance == 0.5
    with pytest.raises(ConfigurationError, match='mode cannot be changed'):
        fitted.set_parameters(mode='paper', step_size=0.2)
    with pytest.raises(ConfigurationError, match='step_size must be'):
        fitted.set_parameters(tolerance=0.7, step_size=-1)
    assert (fitted.step_size, fitted.constraint.tolerance) == (0.05, 0.5)
    reference = learner().partial_fit(x, y)
    assert not np.array_equal(
        reference.partial_fit(x, y).predict(x), fitted.partial_fit(x, y).predict(x)
    )


def test_violation_is_the_cvar_of_the_newest_losses_minus_the_tolerance():
    x, y = stream(500)
    fitted = learner(loss_window=100)
    loss = fitted.prequential(x, y).loss
    assert fitted.violation_ == pytest.approx(np.sort(loss[-100:])[-10:].mean() - 0.03)


def test_squared_norm_is_that_of_the_function_that_predicts():
    x, y = stream(outputs=2)
    fitted = learner(constraint=None).partial_fit(x, y)
    atoms = fitted.dictionary_
    values = fitted.predict(atoms)
    coefficients = np.linalg.solve(fitted.kernel(atoms, atoms), values)
    assert fitted.squared_norm_ == pytest.approx(np.sum(values * coefficients), rel=1e-6)


def test_cvar_counts_the_edge_of_the_tail_by_its_share():
    losses = [1.0, 2.0, 3.0, 4.0]
    assert conditional_value_at_risk(losses, 0.75) == 4.0
    assert conditional_value_at_risk(losses, 0.5) == 3.5
    assert conditional_value_at_risk(losses, 0.6) == pytest.approx((4 + 0.6 * 3) / 1.6)
    assert conditional_value_at_risk(losses, 0.0) == 2.5
    assert conditional_value_at_risk([5.0], 0.99) == 5.0
    assert np.isnan(conditional_value_at_risk([], 0.9))


@pytest.mark.parametrize('significance', [0.5, 0.9, 0.99])
def test_softplus_form_of_eq_23_collapses_to_the_loss_plus_a_constant(significance):
    z = np.linspace(-60, 60, 2_000_001)
    form = (z + np.logaddexp(0.0, 1.7 - z) / (1 - significance)).min()
    offset = CVaR(significance, 1.0, smoothing=1.0).collapsed_offset
    assert form == pytest.approx(1.7 + offset, abs=1e-6)


def test_penalty_coefficient_doubles_until_the_constraint_is_met():
    x, y = stream(3000)
    run = learner(mode='penalty', constraint=CVaR(0.9, 1e-4), penalty=1.0)
    trace = run.prequential(x, y)
    ratio = trace.dual_variable / np.maximum(trace.loss - 1e-4, 1e-300)
    busy = trace.loss > 1e-3
    expected = 2.0 ** (np.arange(len(x)) // 200)
    assert ratio[busy][:100] == pytest.approx(expected[busy][:100])
    late = busy & (np.arange(len(x)) > 200) & (trace.dual_variable < 999)
    assert ratio[late] == pytest.approx(expected[late])


def test_hard_streams_leave_a_finite_state_and_an_exact_factor():
    """Repeats, near-duplicates, outliers and constant inputs: K^-1 K stays the identity."""
    rng = np.random.default_rng(0)
    n = 60_000
    x = rng.uniform(-1, 1, (n, 2))
    x[::5] = x[0]
    x[1::5] = x[1] + 1e-6 * rng.standard_normal((len(x[1::5]), 2))
    x[2::50] = 1e6
    y = np.sin(3 * x[:, 0]) + 0.1 * rng.standard_normal(n)
    y[3::97] = 1e6 * rng.standard_normal(len(y[3::97]))
    hard = learner(max_model_order=150, parsimony=0.05).partial_fit(x, y)
    assert np.isfinite(hard.predict(x[:100])).all()
    factor = hard.to_parts()[1]['factors'][0]
    gram = Gaussian(0.3)(hard.dictionary_, hard.dictionary_) + 1e-10 * np.eye(hard.model_order_)
    assert np.abs(factor.T @ factor @ gram - np.eye(hard.model_order_)).max() <= 1e-8


def test_weights_that_were_read_do_not_change_while_learning_goes_on():
    x, y = stream()
    fitted = learner(step='gradient').partial_fit(x[:300], y[:300])
    weights = fitted.weights_
    before = weights.copy()
    fitted.partial_fit(x[300:], y[300:])
    assert np.array_equal(weights, before)


def test_learners_are_imported_without_what_only_batch_estimators_need():
    program = (
        'import sys, kernel_constrained.core as core\n'
        "assert 'scipy.optimize' not in sys.modules\n"
        'from kernel_constrained.core import SubquantileClassifier, SubquantileRegressor\n'
        "assert 'scipy.optimize' in sys.modules\n"
        "assert not hasattr(core, 'Subquantile') and not hasattr(core.subquantile, 'Batch')\n"
    )
    subprocess.run([sys.executable, '-c', program], check=True)
