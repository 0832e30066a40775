# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A million samples from a stream that means harm: numbers and memory stay as they were."""

import tracemalloc

import numpy as np
import pytest

from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.core import (
    CVaR,
    Expectation,
    Gaussian,
    layout,
    Polynomial,
    PrimalDualLearner,
)
from kernel_constrained.core.kernels import kernel_of_pair, kernel_vector

MILLION = 1_000_000
CAP = 100
STEPS = ('gradient', 'recursive')


def hostile_stream(n, seed, far=1e6):
    """Repeats, near-duplicates, zeros, a constant stretch, huge outliers of inputs and targets."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2))
    x[::5] = x[0]
    near = len(x[1::5])
    x[1::5] = x[1] + 10.0 ** rng.uniform(-9, -6, (near, 1)) * rng.standard_normal((near, 2))
    x[2::50] = far * rng.standard_normal((len(x[2::50]), 2))
    x[3::50] = [far, -far]
    x[7::50] = 0.0
    y = np.sin(3 * x[:, 0]) + 0.1 * rng.standard_normal(n)
    x[n // 2 : n // 2 + n // 100] = 0.5
    y[3::97] = 1e6 * rng.standard_normal(len(y[3::97]))
    y[4::101] = 0.0
    return x, y


@pytest.fixture(scope='module')
def million():
    return hostile_stream(MILLION, seed=0)


def learner(step, **settings):
    defaults = {'kernel': Gaussian(0.3), 'constraint': CVaR(0.9, 0.03), 'max_model_order': CAP}
    return PrimalDualLearner(**{**defaults, **settings}, step=step)


def places():
    """Return ordinary inputs, and some far from all others."""
    x = np.random.default_rng(1).uniform(-1, 1, (500, 2))
    return np.vstack([x, [[0.0, 0.0], [1e6, -1e6], [3.0, 3.0]]])


def assert_sound(fitted):
    """Everything finite, the factor exact, the covariance symmetric and positive definite."""
    arrays = fitted.to_parts()[1]
    assert all(np.isfinite(values).all() for values in arrays.values())
    assert np.isfinite(fitted.predict(places())).all()
    assert np.isfinite(fitted.dual_variable_).all()
    assert 0 < fitted.model_order_ <= fitted.max_model_order
    factor, atoms = arrays['factors'][0], fitted.dictionary_
    gram = fitted.kernel(atoms, atoms)
    gram[np.diag_indices_from(gram)] *= 1.0 + 1e-10
    assert np.abs(factor.T @ factor @ gram - np.eye(len(atoms))).max() <= 1e-8
    if len(arrays['factors']) > 1:
        assert_covariance(arrays)


def assert_covariance(arrays):
    """Look at the one that is kept and at the one that the late update will make of it."""
    kept, h = arrays['factors'][1], arrays['diagonal_late_usage'][1]
    assert np.array_equal(kept, kept.T)
    scale = arrays['state'][layout.LATE_SCALE]
    for covariance in (kept, scale * kept - np.outer(h, h)):
        values = np.linalg.eigvalsh(covariance)
        assert values[0] > 0.0
        assert values[-1] < 1e10


def resident_bytes():
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * 4096


def array_bytes(fitted):
    return [a.nbytes for a in (fitted._state, fitted._table, fitted._factors)]


@pytest.mark.parametrize('step', STEPS)
def test_a_million_hostile_samples_leave_a_sound_state_and_no_more_memory(million, step):
    x, y = million
    fitted = learner(step).partial_fit(x[: MILLION // 2], y[: MILLION // 2])
    assert_sound(fitted)
    arrays, resident = array_bytes(fitted), resident_bytes()
    fitted.partial_fit(x[MILLION // 2 :], y[MILLION // 2 :])
    assert resident_bytes() - resident < 2**20
    assert array_bytes(fitted) == arrays
    assert fitted.model_order_ == CAP, 'the cap must bind, or this tests less'
    assert_sound(fitted)


@pytest.mark.parametrize('step', STEPS)
def test_near_duplicates_of_an_atom_never_become_atoms(step):
    """Not even where compression keeps everything and the cap is far away."""
    rng = np.random.default_rng(9)
    centres = np.stack(np.meshgrid(np.arange(4.0), np.arange(5.0)), axis=-1).reshape(20, 2)
    x = centres[rng.integers(20, size=20_000)]
    x += 10.0 ** rng.uniform(-9, -6, (20_000, 1)) * rng.standard_normal((20_000, 2))
    y = np.sin(x[:, 0]) + 0.1 * rng.standard_normal(20_000)
    fitted = learner(step, parsimony=0.0).partial_fit(x, y)
    assert fitted.model_order_ == 20
    assert_sound(fitted)


@pytest.mark.parametrize('step', STEPS)
def test_forgetting_survives_a_hostile_stream(step):
    fitted = learner(step, averaging_window=500.0).partial_fit(*hostile_stream(200_000, seed=2))
    assert_sound(fitted)


@pytest.mark.parametrize('window', [500.0, np.inf])
@pytest.mark.parametrize('step', STEPS)
def test_a_constant_input_winds_nothing_up(step, window):
    """What is not excited is not forgotten without end: learning goes on afterwards."""
    x = np.random.default_rng(3).uniform(-1, 1, (6000, 2))
    y = np.sin(3 * x[:, 0])
    fitted = learner(step, averaging_window=window).partial_fit(x[:3000], y[:3000])
    noise = np.random.default_rng(4).standard_normal(100_000)
    fitted.partial_fit(np.full((100_000, 2), 0.3), np.sin(0.9) + 0.1 * noise)
    assert_sound(fitted)
    assert fitted.predict([[0.3, 0.3]])[0] == pytest.approx(np.sin(0.9), abs=0.05)
    fitted.partial_fit(x[3000:], y[3000:])
    assert_sound(fitted)
    assert np.mean((fitted.predict(x) - y) ** 2) < 0.02


@pytest.mark.parametrize('degree', [1, 2, 3])
@pytest.mark.parametrize('step', STEPS)
def test_polynomial_kernels_survive_a_hostile_stream(step, degree):
    """The kernel's norm grows with the input: outliers lie at ten times the usual distance."""
    x, y = hostile_stream(100_000, seed=5, far=10.0)
    fitted = learner(step, kernel=Polynomial(degree, 1.0), averaging_window=2000.0)
    assert_sound(fitted.partial_fit(x, y))


@pytest.mark.parametrize('loss', ['huber', 'absolute', 'hinge', 'logistic'])
@pytest.mark.parametrize('batch_size', [1, 4])
def test_every_loss_survives_a_hostile_stream(loss, batch_size):
    x, y = hostile_stream(50_000, seed=6)
    y = np.where(y >= 0.0, 1.0, -1.0) if loss in ('hinge', 'logistic') else y
    assert_sound(learner('gradient', loss=loss, batch_size=batch_size).partial_fit(x, y))


@pytest.mark.parametrize('step', STEPS)
def test_sample_by_sample_no_memory_is_kept(step):
    x, y = hostile_stream(10_000, seed=7)
    fitted = learner(step).partial_fit(x[:5000], y[:5000])
    rows = [(x[i : i + 1], y[i : i + 1]) for i in range(5000, 10_000)]
    tracemalloc.start()
    try:
        for sample, target in rows[:1000]:
            fitted.partial_fit(sample, target)
        before = tracemalloc.get_traced_memory()[0]
        for sample, target in rows[1000:]:
            fitted.partial_fit(sample, target)
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept < 16_384


@pytest.mark.parametrize('tiny', [0.0, 1e-20, 1e-160])
@pytest.mark.parametrize(
    'variant',
    [{'step': 'recursive'}, {'step': 'gradient'}, {'mode': 'paper'}, {'mode': 'penalty'}],
    ids=lambda variant: next(iter(variant.values())),
)
def test_where_the_kernel_vanishes_a_target_says_nothing(variant, tiny):
    """A linear function is 0 at 0, whatever the target there: first, later or last."""
    x = np.random.default_rng(8).standard_normal((300, 2))
    y = x @ [1.0, 2.0]
    rows = [0, 10, 299]
    x[rows] = tiny
    fitted = []
    for target in (3.0, -3.0):
        y[rows] = target
        linear = PrimalDualLearner(
            Polynomial(1, 0.0), **variant, step_size=0.05, parsimony=0.0, regularization=1e-6
        )
        fitted.append(linear.partial_fit(x, y).predict(x))
    assert fitted[0] == pytest.approx(fitted[1], abs=1e-9)
    assert np.delete(fitted[0], rows) == pytest.approx(np.delete(y, rows), rel=0.2)


def test_kernels_of_far_points_are_zero_and_never_subnormal():
    """Products with numbers near the smallest there are slow the processor down 20 times."""
    distances = np.concatenate([np.linspace(0.0, 60.0, 4001), [1e3, 1e6, 1e150]])
    k, bits = np.empty(4008), np.empty(4008, np.int64)
    points = np.zeros((1, 4008))
    points[0, :4004] = distances
    kernel_vector(0, Gaussian(1.0).parameters, points, np.zeros(1), 4004, k, bits)
    pairs = np.array([
        kernel_of_pair(0, Gaussian(1.0).parameters, np.array([d]), np.zeros(1)) for d in distances
    ])  # fmt: skip
    for values in (k[:4004], pairs):
        assert ((values == 0.0) | (values > 1e-21)).all()
        assert values == pytest.approx(np.exp(-0.5 * distances**2), rel=1e-14, abs=1.1e-20)


@pytest.mark.parametrize('window', [np.inf, 500.0])
def test_far_inputs_do_not_take_over_a_full_dictionary(window):
    """Two samples in a hundred lie where none ever comes again; atoms are kept for the others."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (20_000, 2))
    y = np.sin(3 * x[:, 0]) + 0.1 * rng.standard_normal(len(x))
    x[::50] = 1e6 * rng.standard_normal((400, 2))
    fitted = learner('recursive', averaging_window=window, constraint=None).partial_fit(x, y)
    points = rng.uniform(-1, 1, (1000, 2))
    assert fitted.model_order_ == CAP
    assert np.mean((fitted.predict(points) - np.sin(3 * points[:, 0])) ** 2) < 2e-3
    assert (np.abs(fitted.dictionary_).max(axis=1) > 10).sum() <= 2


@pytest.mark.parametrize('target', [1e40, 1e80, 9e99])
@pytest.mark.parametrize('tolerance', [1.0, 1e150])
@pytest.mark.parametrize('step', STEPS)
def test_one_enormous_target_under_a_constraint_does_not_end_learning(step, tolerance, target):
    x = np.random.default_rng(10).uniform(-1, 1, (1000, 2))
    bounds = [CVaR(0.9, tolerance), Expectation(tolerance)]
    settings = {'constraint': bounds, 'averaging_window': 20.0, 'parsimony': 0.0}
    fitted = learner(step, **settings)
    fitted.partial_fit(x, x[:, 0]).partial_fit(x[:1], [target])
    for _ in range(10):
        fitted.partial_fit(x, x[:, 0])
    assert_sound(fitted)
    assert np.abs(fitted.predict(x) - x[:, 0]).max() < 0.1 * target


@pytest.mark.parametrize('bound', [CVaR, Expectation])
def test_a_tolerance_that_could_not_be_squared_is_refused(bound):
    with pytest.raises(ConfigurationError, match=r'must be a number from 1e-12 to 1e\+150'):
        bound(tolerance=np.inf)


@pytest.mark.parametrize('regularization', [3.0, 10.0, 1e6])
@pytest.mark.parametrize('batch_size', [1, 4])
@pytest.mark.parametrize('mode', ['default', 'penalty'])
def test_gradient_steps_do_not_diverge_however_large_the_regularization(
    mode, batch_size, regularization
):
    x, y = hostile_stream(2000, seed=11, far=1.0)
    fitted = learner('gradient', mode=mode, batch_size=batch_size, regularization=regularization)
    assert np.abs(fitted.partial_fit(x, y).predict(places())).max() <= np.abs(y).max()


def test_a_full_dictionary_follows_to_another_place():
    """With a window, atoms of a place that has been left are given up for those of the next."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (40_000, 2))
    x[20_000:] += 10.0
    y = np.sin(3 * x[:, 0]) + 0.1 * rng.standard_normal(len(x))
    fitted = learner('recursive', averaging_window=1000.0, constraint=None).partial_fit(x, y)
    points = x[-1000:]
    assert np.mean((fitted.predict(points) - np.sin(3 * points[:, 0])) ** 2) < 2e-3


@pytest.mark.parametrize(
    ('window', 'bandwidth'), [(50.0, 0.01), (20.0, 0.1), (5.0, 0.1), (2.0, 0.3)]
)
def test_a_window_far_below_the_model_order_winds_nothing_up(window, bandwidth):
    """The robot stands still for many windows, then moves on."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2000, 1))
    y = np.sin(3 * x[:, 0]) + 0.05 * rng.standard_normal(2000)
    fitted = PrimalDualLearner(Gaussian(bandwidth), averaging_window=window).partial_fit(x, y)
    assert fitted.model_order_ > 1.4 * window
    fitted.partial_fit(np.full((2000, 1), 0.3), 0.8 + 0.05 * rng.standard_normal(2000))
    assert_covariance(fitted.to_parts()[1])
    assert np.abs(fitted.prequential(x, y).prediction).max() < 4.0


@pytest.mark.parametrize('window', [np.inf, 200.0, 2.0])
@pytest.mark.parametrize('regularization', [0.0, 1e-5])
@pytest.mark.parametrize(('degree', 'offset'), [(5, 0.0), (8, 1.0), (12, 0.0)])
def test_a_kernel_too_large_for_the_covariance_does_not_end_learning(
    degree, offset, regularization, window
):
    """Prior and information differ by more than all digits: it predicts badly, but goes on."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-10, 10, (1500, 2))
    fitted = PrimalDualLearner(
        Polynomial(degree, offset), regularization=regularization, averaging_window=window,
        max_model_order=30,
    ).partial_fit(x, np.sin(x[:, 0]))  # fmt: skip
    assert np.isfinite(fitted.predict(x)).all()


def test_without_regularization_nothing_winds_up():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2000, 2))
    settings = {'averaging_window': 500.0, 'regularization': 0.0, 'constraint': None}
    fitted = learner('recursive', **settings).partial_fit(x, np.sin(3 * x[:, 0]))
    constant = np.full((100_000, 2), 0.3)
    fitted.partial_fit(constant, 1.0 + 0.1 * rng.standard_normal(100_000))
    assert fitted.predict(constant[:1]) == pytest.approx(1.0, abs=0.05)
    assert np.isfinite(fitted.predict(x)).all()
