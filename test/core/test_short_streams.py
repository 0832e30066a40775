# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the compiled steps do, on streams so short that they run as plain Python too.

``NUMBA_DISABLE_JIT=1`` leaves the functions as they are written: that is how their lines are
counted and mutants are killed (``doc/tests.md``). Here is what needs a stream to be seen.
"""

import math

import numpy as np
import pytest
from naive import NaiveLearner, NaiveRecursive

from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.core import CVaR, Expectation, Gaussian, Polynomial, PrimalDualLearner
from kernel_constrained.core.samples import capacity_and_stride
from kernel_constrained.core.subquantile import SubquantileLearner, window_layout
from kernel_constrained.core.subquantile.window_steps import local_scale
from kernel_constrained.core.trajectory_steps import nearest_time


def samples(count, outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (count, 2))
    truth = np.sin(3.0 * x[:, :1] + np.arange(outputs)) * np.cos(2.0 * x[:, 1:])
    return x, truth + 0.1 * rng.standard_normal(truth.shape)


def same_function(learner, naive, tolerance=1e-9):
    """Whether both have the same atoms, in any order, and the same values."""
    x = samples(60, seed=9)[0]
    atoms = [{tuple(atom) for atom in atoms} for atoms in (learner.dictionary_, naive.atoms)]
    return atoms[0] == atoms[1] and np.abs(learner.predict(x) - naive.predict(x)).max() < tolerance


def feed(naive, x, y):
    for sample, target in zip(x, y, strict=True):
        naive.step(sample, target)
    return naive


# -- first-order steps --------------------------------------------------------------------------


GAUSS = {'kernel': Gaussian(0.5), 'step_size': 0.2, 'parsimony': 0.5}
CUBIC = {'kernel': Polynomial(3, 0.5), 'step_size': 0.02, 'parsimony': 60.0}


@pytest.mark.parametrize(
    ('mode', 'batch_size', 'settings'),
    [
        ('paper', 1, GAUSS), ('paper', 4, GAUSS), ('default', 1, GAUSS), ('default', 4, GAUSS),
        ('default', 1, CUBIC),
    ],
)  # fmt: skip
def test_gradient_steps_are_those_of_the_naive_learner(mode, batch_size, settings):
    x, y = samples(40)
    settings = dict(settings, regularization=1e-2, mode=mode, batch_size=batch_size)
    constraints = [CVaR(0.8, 0.5), Expectation(0.2)]
    if mode == 'default':
        settings |= {'dual_step_size': 0.3, 'decay_after': 30.0, 'dual_regularization': 1e-2}
    elif batch_size == 1:
        constraints = [CVaR(0.8, 1.0, smoothing=0.3), CVaR(0.5, 0.2)]
    learner = PrimalDualLearner(**settings, constraint=constraints, step='gradient')
    learner.partial_fit(x, y)
    naive = feed(NaiveLearner(**settings, constraints=constraints), x, y)
    assert 4 < learner.model_order_ < 40
    assert same_function(learner, naive)
    duals = naive.mean_mu * [0.2, 1.0] if mode == 'default' else naive.mu
    assert learner.dual_variable_ == pytest.approx(duals, rel=1e-9, abs=1e-12)
    assert max(duals) > 0.0


def test_the_penalty_grows_by_doubling_and_weighs_the_implicit_step():
    """Points far apart: the function is 0 at each, and the weight is what the step moved."""
    x, y = 20.0 * np.arange(9.0)[:, None], np.linspace(0.5, 3.0, 9)
    learner = PrimalDualLearner(
        Gaussian(1.0), mode='penalty', step_size=0.1, penalty=0.5, penalty_doubling=2.0,
        constraint=CVaR(0.9, 1.0), dual_cap=20.0, parsimony=0.0, regularization=0.0,
    )  # fmt: skip
    trace = learner.prequential(x, y)
    dual = np.minimum(0.5 * 2.0 ** (np.arange(9) // 2) * np.maximum(y**2 - 1.0, 0.0), 20.0)
    assert 0.0 in dual
    assert 20.0 in dual
    assert trace.dual_variable == pytest.approx(dual)
    step = 0.1 * (1.0 + dual)
    assert learner.weights_ == pytest.approx(y * (1.0 - 1.0 / (1.0 + 2.0 * step)), rel=1e-9)
    assert learner.dual_cap_binds_ is True
    assert PrimalDualLearner(constraint=CVaR()).dual_cap_binds_ is False


@pytest.mark.parametrize('mode', ['default', 'paper'])
def test_a_dual_variable_is_held_at_its_cap_and_at_zero(mode):
    x, y = samples(40, 1)
    settings = dict(
        kernel=Gaussian(0.5), mode=mode, step='gradient', dual_cap=0.05, step_size=0.1,
        dual_step_size=0.5,
    )  # fmt: skip
    held = PrimalDualLearner(**settings, constraint=CVaR(0.8, 1e-6)).prequential(x, y)
    assert held.dual_variable.max() == 0.05
    slack = PrimalDualLearner(**settings, constraint=CVaR(0.8, 1e3)).prequential(x, y)
    assert slack.dual_variable.max() == 0.0


@pytest.mark.parametrize('loss', ['huber', 'hinge', 'softmax'])
def test_the_compression_budget_is_in_units_of_the_loss(loss):
    """Of the Huber loss its threshold, of labels one: twice the threshold, twice the budget."""
    x, y = samples(40, 1)
    y = {'huber': y[:, 0], 'hinge': np.sign(y[:, 0]), 'softmax': (y[:, 0] > 0.0) * 1.0}[loss]
    learner = PrimalDualLearner(
        Gaussian(0.5), loss=loss, huber_threshold=0.5, step_size=0.2, parsimony=0.4,
        decay_after=math.inf,
    )  # fmt: skip
    unit = 0.5 if loss == 'huber' else 1.0
    budget = 0.4 * 0.2**2 * unit
    kept = PrimalDualLearner(
        Gaussian(0.5), loss=loss, huber_threshold=0.5, step_size=0.2, parsimony=0.0,
        decay_after=math.inf,
    )  # fmt: skip
    largest = 0.0
    for i in range(40):
        # one more sample, compressed and not, from the same state
        header, arrays = learner.to_parts()
        free = kept.from_parts({**header, 'parameters': kept.to_parts()[0]['parameters']}, arrays)
        learner.partial_fit(x[i : i + 1], y[i : i + 1])
        free.partial_fit(x[i : i + 1], y[i : i + 1])
        largest = max(largest, distance(free, learner))
        assert distance(free, learner) <= budget * (1.0 + 1e-6)
    assert largest > 0.3 * budget


@pytest.mark.parametrize('loss', ['absolute', 'hinge', 'softmax'])
def test_the_threshold_of_the_huber_loss_is_of_that_loss_alone(loss):
    x, y = samples(40, 1)
    y = {'absolute': y[:, 0], 'hinge': np.sign(y[:, 0]), 'softmax': (y[:, 0] > 0.0) * 1.0}[loss]
    values = [
        PrimalDualLearner(Gaussian(0.5), loss=loss, huber_threshold=threshold, parsimony=0.4)
        .partial_fit(x, y)
        .decision_function(x)
        for threshold in (0.1, 10.0)
    ]
    assert np.array_equal(*values)


def distance(first, second):
    """RKHS distance of all functions of two learners, iterates and averages alike."""
    parts = [learner.to_parts()[1] for learner in (first, second)]
    points = np.hstack([one['points'] for one in parts]).T
    weights = np.hstack([parts[0]['weights'], -parts[1]['weights']])
    return math.sqrt(max(np.sum(weights * (weights @ first.kernel(points, points))), 0.0))


@pytest.mark.parametrize(('mode', 'factor'), [('paper', -2.0), ('penalty', 0.0), ('default', 0.0)])
def test_only_the_papers_factor_for_the_norm_becomes_negative(mode, factor):
    """Two points far apart: the second step shrinks what the first has learned, and no more."""
    learner = PrimalDualLearner(
        Gaussian(1.0), mode=mode, step='gradient', step_size=0.5, regularization=6.0, parsimony=0.0
    )  # fmt: skip
    values = []
    for x in (0.0, 50.0):
        arrays = learner.partial_fit([[x]], [1.0]).to_parts()[1]
        values.append(arrays['weights'][0] @ (arrays['points'][0] == 0.0))  # the iterate's, at 0
    assert values[0] > 0.0
    assert values[1] == pytest.approx(factor * values[0])


# -- second-order steps -------------------------------------------------------------------------


@pytest.mark.parametrize(('window', 'most'), [(math.inf, 100), (25.0, 7), (6.0, 12), (3.0, 12)])
def test_recursive_steps_are_least_squares_of_the_textbook(window, most):
    x, y = samples(60)
    learner = PrimalDualLearner(
        Gaussian(0.8), step='recursive', averaging_window=window, max_model_order=most,
        novelty=0.02, regularization=1e-2,
    ).partial_fit(x, y)  # fmt: skip
    naive = feed(NaiveRecursive(Gaussian(0.8), 0.02, 1e-2, window, most), x, y)
    assert 4 < learner.model_order_ < 30
    assert same_function(learner, naive, 1e-7)
    assert (learner.overspent_ > 0) == (most < 100)


# -- what a person asks of a learner ------------------------------------------------------------


@pytest.mark.parametrize('loss', ['hinge', 'softmax'])
def test_labels_are_what_the_scores_say_and_a_tie_is_the_first(loss):
    x, y = samples(40, 1)
    labels = np.sign(y[:, 0]) if loss == 'hinge' else (y[:, 0] > 0.0) * 1.0
    learner = PrimalDualLearner(Gaussian(0.5), loss=loss).partial_fit(x, labels)
    at = np.vstack([x, [[50.0, 0.0]]])
    scores = learner.decision_function(at)
    expected = np.where(scores >= 0.0, 1.0, -1.0) if loss == 'hinge' else scores.argmax(axis=1)
    assert learner.predict(at).tolist() == expected.tolist()
    assert set(learner.predict(x)) == set(labels)
    for wrong in ({'hinge': 0.0, 'softmax': -1.0}[loss], 2.0, 0.5):
        with pytest.raises(ValueError, match=rf'labels of loss {loss} are .* \(got {wrong:g}\)'):
            learner.partial_fit(x[:1], [wrong])
        with pytest.raises(ValueError, match=rf'labels of loss {loss} are .* \(got {wrong:g}\)'):
            PrimalDualLearner(loss=loss).partial_fit(x[:1], [wrong])
    for columns in (labels[:, None], np.stack([labels, labels], axis=1)):
        if columns.shape[1] == 1:
            assert PrimalDualLearner(loss=loss).partial_fit(x, columns).samples_ == 40
        else:
            with pytest.raises(ValueError, match=r'labels must have shape \(n,\)'):
                PrimalDualLearner(loss=loss).partial_fit(x, columns)


def test_without_a_constraint_there_is_no_dual_variable():
    x, y = samples(5, 1)
    learner = PrimalDualLearner(step='gradient')
    assert learner.dual_variable_ == 0.0
    assert learner.prequential(x, y).dual_variable.tolist() == [0.0] * 5
    assert learner.dual_variable_ == 0.0
    assert math.isnan(learner.violation_)


def test_recursive_steps_look_back_two_samples_at_least():
    assert PrimalDualLearner(step='recursive', averaging_window=2.0)._recursive
    assert PrimalDualLearner(averaging_window=2.0)._recursive
    assert not PrimalDualLearner(averaging_window=1.9)._recursive
    with pytest.raises(ConfigurationError, match=r'averaging_window at least 2 .*1\.9'):
        PrimalDualLearner(step='recursive', averaging_window=1.9)


def test_parameters_that_may_change_do_and_others_are_refused():
    x, y = samples(20, 1)
    learner = PrimalDualLearner(constraint=CVaR(0.5, 0.2), step='gradient').partial_fit(x, y)
    learner.set_parameters(step_size=0.05, tolerance=0.5)
    assert (learner.step_size, learner.constraint.tolerance) == (0.05, 0.5)
    other = PrimalDualLearner.from_parts(*learner.to_parts())
    assert (other.step_size, other.constraint.tolerance) == (0.05, 0.5)
    learner.partial_fit(x, y)
    assert learner.weights_.tolist() == other.partial_fit(x, y).weights_.tolist()
    for wrong in ({'mode': 'paper'}, {'step_size': 0.1, 'depth': 2}, {'max_model_order': 5}):
        with pytest.raises(ValueError, match='cannot be changed while learning'):
            learner.set_parameters(**wrong)
    assert learner.step_size == 0.05
    with pytest.raises(ValueError, match='tolerance cannot be changed'):
        PrimalDualLearner().set_parameters(tolerance=0.5)


def test_added_classes_begin_at_zero_and_waiting_samples_wait_on():
    x, y = samples(22, 1)
    labels = (y[:, 0] > 0.0) * 1.0
    learner = PrimalDualLearner(Gaussian(0.5), loss='softmax', batch_size=4, step_size=0.2)
    more = learner.partial_fit(x, labels).with_classes(4)
    assert more.decision_function(x)[:, :2].tolist() == learner.decision_function(x).tolist()
    assert more.decision_function(x)[:, 2:].tolist() == [[0.0, 0.0]] * 22
    assert (more.samples_, more.classes) == (22, 4)
    more.partial_fit(x[:2], labels[:2] + 2.0)
    assert more.decision_function(x[:2])[:, 2:].max() > 0.0
    with pytest.raises(ValueError, match='softmax with 4 classes cannot go on with 3'):
        more.with_classes(3)
    with pytest.raises(ValueError, match='loss squared'):
        PrimalDualLearner().with_classes(3)


@pytest.mark.parametrize('step', ['gradient', 'recursive'])
def test_arrays_grow_when_they_are_full_and_nothing_is_lost(step):
    """More atoms than the first arrays hold, one far from the other."""
    x, y = 50.0 * np.arange(70.0)[:, None], 1.0 + np.arange(70.0)
    learner = PrimalDualLearner(step=step, parsimony=0.0).partial_fit(x, y)
    assert learner.dictionary_.tolist() == x.tolist()
    values, support = learner.predict_with_support(np.vstack([x, [[25.0]]]))
    assert support == pytest.approx([1.0] * 70 + [0.0])
    assert values[70] == 0.0
    assert values.tolist() == learner.decision_function(np.vstack([x, [[25.0]]])).tolist()
    assert (values[:70] > 0.0).all()


def test_rows_are_whole_vectors_of_no_power_of_two():
    for count in range(1, 300):
        capacity, stride = capacity_and_stride(count)
        assert count <= capacity < count + 8
        assert capacity % 8 == stride % 16 == 0
        assert capacity <= stride <= capacity + 24
        assert stride & (stride - 1) != 0 or stride == 32


# -- the window that drops outliers -------------------------------------------------------------


def window_learner(**more):
    return SubquantileLearner(
        **{**dict(kernel=Gaussian(0.8), novelty=0.05, window=50, regularization=1e-3), **more}
    )


def corrupted(count, outputs=2):
    x, y = samples(count, outputs)
    bad = np.arange(count) % 6 == 5
    y[bad] += 3.0
    return x, y, bad


def ridge_on(learner, x, y):
    """Solve ridge regression on samples by the dictionary of a learner, at some points."""
    atoms, at = learner.dictionary_, samples(40, seed=9)[0]
    gram = learner.kernel(atoms, atoms) + 1e-10 * np.eye(len(atoms))
    cross = learner.kernel(x, atoms)
    penalty = 0.5 * learner.regularization * learner.window * gram
    weights = np.linalg.solve(cross.T @ cross + penalty, cross.T @ y)
    return learner.kernel(at, atoms) @ weights, learner.predict(at)


@pytest.mark.parametrize('kernel', [Gaussian(1.2), Polynomial(2, 1.0)], ids=['gauss', 'poly'])
def test_the_window_holds_ridge_regression_on_what_is_kept(kernel):
    x, y, bad = corrupted(130)
    learner, grown, compared = window_learner(kernel=kernel), 0, 0
    for end in range(1, 131):
        order = learner.model_order_
        learner.partial_fit(x[end - 1 : end], y[end - 1 : end])
        grown = end if learner.model_order_ > order else grown
        if end - grown >= 50:  # all of the window knows all atoms
            newest, kept = slice(end - 50, end), learner.kept_
            expected, found = ridge_on(learner, x[newest][kept], y[newest][kept])
            np.testing.assert_allclose(found, expected, atol=1e-6)
            compared += 1
    assert compared > 30
    assert (~learner.kept_)[bad[80:]].mean() > 0.8
    assert learner.kept_[~bad[80:]].mean() > 0.8


@pytest.mark.parametrize(('points', 'times'), [(3, 5), (10, 4)])
def test_at_points_far_apart_the_window_holds_shrunken_means(points, times):
    """Before its first start, after 20 samples, and after it."""
    x = np.tile(50.0 * np.arange(points)[:, None], (times, 1))
    y = np.linspace(1.0, 2.0, points * times)
    learner = window_learner(regularization=0.1, corruption=0.0).partial_fit(x, y)
    expected = y.reshape(times, points).sum(axis=0) / (times + 0.5 * 0.1 * 50)
    assert learner.predict(x[:points]) == pytest.approx(expected)
    assert learner.kept_.all()


def test_what_is_beyond_the_threshold_is_dropped():
    x, y, bad = corrupted(120, 1)
    trace = window_learner().prequential(x, y[:, 0])
    late = np.arange(120) >= 60
    assert (~trace.kept)[late & bad].mean() > 0.8
    assert trace.kept[late & ~bad].mean() > 0.8
    assert (trace.kept == (trace.loss <= trace.threshold)).all()
    assert trace.model_order[-1] == trace.model_order.max()


def test_an_atom_that_goes_leaves_ridge_regression_on_the_others():
    x, y = samples(90)
    settings = {'kernel': Gaussian(1.2), 'corruption': 0.0}
    order = window_learner(**settings).partial_fit(x, y).model_order_
    learner = window_learner(**settings, max_model_order=order).partial_fit(x, y)
    far, target = np.array([[50.0, 0.0]]), np.array([[2.0, -1.0]])

    def push(sample):
        """Repeat a sample until it is worth more than an atom of the others; say how often."""
        before, count = learner.overspent_, 0
        while learner.overspent_ == before:
            learner.partial_fit(sample, target)
            count += 1
        return count

    passed, known = 0, []
    for sample in (far, -far):  # the second begins where what has gone was
        passed += push(sample)
        known.append(sample)  # those before it know nothing of the new atom
        assert learner.model_order_ == order
        near = slice(90 - (50 - passed), 90)  # of the window, beside those far away
        x_known, y_known = (
            np.vstack([x[near], *known]),
            np.vstack([y[near], *[target] * len(known)]),
        )
        expected, found = ridge_on(learner, x_known, y_known)
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert learner.predict(sample) == pytest.approx(target / (1.0 + 0.5 * 1e-3 * 50))
    assert passed < 45


@pytest.mark.parametrize('count', [10, 70])
def test_the_window_goes_on_from_a_file_bit_for_bit_at_its_cap(count, tmp_path):
    x, y, _ = corrupted(100)
    learner = window_learner(max_model_order=6).partial_fit(x[:count], y[:count])
    learner.save(tmp_path / 'model.npz')
    loaded = SubquantileLearner.load(tmp_path / 'model.npz')
    traces = [one.prequential(x[count:], y[count:]) for one in (learner, loaded)]
    assert traces[0].prediction.tolist() == traces[1].prediction.tolist()
    assert traces[0].kept.tolist() == traces[1].kept.tolist()
    assert learner.model_order_ == 6
    assert learner.overspent_ == loaded.overspent_ > 0
    assert learner.rejected_ == loaded.rejected_
    header, arrays = learner.to_parts()
    assert header == loaded.to_parts()[0]
    assert all(np.array_equal(arrays[name], loaded.to_parts()[1][name]) for name in arrays)


def test_a_window_that_has_seen_nothing_has_dropped_nothing():
    learner = window_learner()
    assert (learner.model_order_, learner.samples_, learner.rejected_) == (0, 0, 0)
    assert (learner.dropped_share_, learner.corruption_, learner.loss_) == (0.0, 0.0, 0.0)
    assert learner.threshold_ == math.inf
    learner.warm_up(3, 2)
    assert learner.samples_ == 0


def test_the_function_of_the_window_is_that_of_its_weights_and_said_to_be_known_near_them():
    x, y, _ = corrupted(40)
    learner = window_learner().partial_fit(x, y)
    expected = learner.kernel(x, learner.dictionary_) @ learner.weights_
    np.testing.assert_allclose(learner.predict(x), expected, atol=1e-8)
    values, support = learner.predict_with_support(np.vstack([x, [[50.0, 0.0]]]))
    np.testing.assert_array_equal(values[:40], learner.predict(x))
    assert support[:40].min() > 0.9
    assert support.max() <= 1.0
    assert support[40] == 0.0
    for wrong, message in ((x[:, :1], 'X must have 2 columns'), (x * np.nan, 'X holds 80 num')):
        with pytest.raises(ValueError, match=message):
            learner.predict(wrong)
        with pytest.raises(ValueError, match=message):
            learner.partial_fit(wrong, y)
    with pytest.raises(ValueError, match='y must have 2 columns'):
        learner.partial_fit(x, y[:, :1])


def test_a_new_sample_is_judged_by_how_much_is_known_of_its_place():
    """``loss / (1 + v / r)``: in units of that of noise, ``v / r`` is what is not known of f."""
    learner = window_learner(novelty=0.99, regularization=0.1, corruption=0.0)
    learner.partial_fit(np.zeros((5, 1)), np.full(5, 2.0))
    x, ridge = np.array([[0.7]]), 0.5 * 0.1 * 50
    learner.partial_fit(x, [0.3])
    assert learner.model_order_ == 1
    near = learner.kernel(x, np.zeros((1, 1)))[0, 0]
    variance = near**2 / (5 + ridge) + (1.0 - near**2) / ridge
    score = learner._ring[learner._ring_row(window_layout.SCORE), 5]
    assert learner.loss_ / score == pytest.approx(1.0 + variance)


def test_the_local_scale_is_the_mean_of_those_near_and_one_where_there_are_none():
    k = np.array([0.6, 0.8, *np.zeros(14)])
    scales = np.array([1.0, 3.0, *np.zeros(14)])
    assert local_scale(scales, k, 2) == pytest.approx(0.36 * 1.0 + 0.64 * 3.0)
    assert local_scale(np.full(16, 1.7), 0.1 * k, 2) == pytest.approx(1.7)
    assert local_scale(scales, np.zeros(16), 2) == 1.0


def noisy_at_one_place():
    """Return a learner of noise with outliers at 0, and a sample's deviation where it is kept."""
    y = np.random.default_rng(0).standard_normal(45)
    y[::9] += 20.0
    learner = window_learner(max_model_order=1).partial_fit(np.zeros((45, 1)), y)
    return learner, math.sqrt(learner.threshold_)


def scale_after(learner, x, y):
    """Learn one sample with a copy of a learner; return the local scale, and if it is kept."""
    one = SubquantileLearner.from_parts(*learner.to_parts())
    kept = bool(one.prequential(np.array([[x]]), [y]).kept[0])
    return one._table[one._ring_row(window_layout.SCALES), 0], kept


def test_a_local_scale_stays_where_half_of_what_is_kept_is_beyond_the_median():
    """And the usual share is dropped, which counts, but less than what is kept."""
    learner, limit = noisy_at_one_place()
    scale, share = learner._table[learner._ring_row(window_layout.SCALES), 0], learner.corruption_
    middle = learner.predict([[0.0]])[0]
    moves = []
    for deviation, keep in ((0.0, True), (0.9 * limit, True), (20.0 * limit, False)):
        after, kept = scale_after(learner, 0.0, middle + deviation)
        assert kept == keep
        moves.append(after / scale - 1.0)
    below, beyond, dropped = moves
    assert below < 0.0 < dropped < beyond
    assert 0.05 < share < 0.2
    assert (1.0 - share) * 0.5 * (below + beyond) + share * dropped == pytest.approx(0.0, abs=1e-9)


def test_a_sample_far_from_all_atoms_moves_no_local_scale():
    learner, _ = noisy_at_one_place()
    scale = learner._table[learner._ring_row(window_layout.SCALES), 0]
    assert scale_after(learner, 1e3, 0.0)[0] == scale > 0.0


def test_what_is_dropped_is_counted_where_it_is_most_of_the_window_too():
    x = samples(140)[0]
    y = 0.1 * np.random.default_rng(1).standard_normal(140)
    y[100:] += 50.0
    learner, dropped = window_learner().partial_fit(x[:100], y[:100]), []
    for i in range(100, 140):
        learner.partial_fit(x[i : i + 1], y[i : i + 1])
        assert learner.dropped_share_ == pytest.approx(1.0 - learner.kept_.mean())
        dropped.append(learner.dropped_share_)
    assert max(dropped) > 0.5
    assert (learner.dual_variable_, learner.dual_cap_binds_) == (0.0, False)


# -- paths of any number of atoms ---------------------------------------------------------------


def test_the_nearest_time_is_found_whatever_the_number_of_atoms():
    """Scratch is in whole vectors: short of one, compiled code would write beyond it."""
    start, goal = np.array([0.0, 1.0]), np.array([2.0, 1.0])
    for count in range(2, 20):
        time, distance = nearest_time(
            np.linspace(0.0, 1.0, count), np.zeros((2, count)), 0.2, start, goal,
            np.array([0.5, 1.5]), 0.0, 1.0, 9,
        )  # fmt: skip
        assert (time, distance) == pytest.approx((0.25, 0.5))
