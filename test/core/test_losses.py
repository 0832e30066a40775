# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled losses against plain formulas and against what defines each of their steps."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_constrained.core.losses import implicit_step, loss_derivative, loss_value, LOSSES

THRESHOLD = 0.7
REGRESSION = ('squared', 'huber', 'absolute')
CLOSED_FORM = (*REGRESSION, 'hinge', 'multiclass_hinge')
CURVED = {'logistic': 4.0, 'softmax': 2.0}

repeatable = settings(max_examples=60, derandomize=True, database=None, deadline=None)


def plain_loss(name, f, y):
    """Return the loss by its textbook formula."""
    f, y = [float(v) for v in f], [float(v) for v in y]
    residual = math.dist(f, y) if name in REGRESSION else math.nan
    if name == 'squared':
        return residual**2
    if name == 'huber':
        tangent = THRESHOLD**2 + 2 * THRESHOLD * (residual - THRESHOLD)
        return residual**2 if residual <= THRESHOLD else tangent
    if name == 'absolute':
        return residual
    if name == 'logistic':
        return float(np.logaddexp(0.0, -y[0] * f[0]))
    if name == 'hinge':
        return max(0.0, 1.0 - y[0] * f[0])
    label = int(y[0])
    if name == 'multiclass_hinge':
        return max([0.0] + [1.0 + f[c] - f[label] for c in range(len(f)) if c != label])
    return float(np.logaddexp.reduce(f)) - f[label]


def value(name, f, y):
    return loss_value(LOSSES[name].code, THRESHOLD, np.asarray(f, float), np.asarray(y, float))


def derivative(name, f, y):
    out = np.full(len(f), np.nan)
    longest = loss_derivative(
        LOSSES[name].code, THRESHOLD, np.asarray(f, float), np.asarray(y, float), out
    )
    return out, longest


def implicit(name, f, y, step):
    out = np.full(len(f), np.nan)
    implicit_step(
        LOSSES[name].code, THRESHOLD, np.asarray(f, float), np.asarray(y, float), step, out
    )
    return out


@st.composite
def points(draw, names=tuple(LOSSES)):
    """Draw a loss, a prediction and a target; whole numbers among them make ties and kinks."""
    name = draw(st.sampled_from(names))
    numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-5.0, 5.0))
    if LOSSES[name].several:
        f = draw(st.lists(numbers, min_size=2, max_size=5))
        y = [float(draw(st.integers(0, len(f) - 1)))]
    elif LOSSES[name].labels:
        f, y = [draw(numbers)], [draw(st.sampled_from([-1.0, 1.0]))]
    else:
        f = draw(st.lists(numbers, min_size=1, max_size=3))
        y = draw(st.lists(numbers, min_size=len(f), max_size=len(f)))
    return name, np.array(f), np.array(y)


def somewhere_else(f, y, seed):
    """Return points near and far from ``f``, the target among them where it is one."""
    rng = np.random.default_rng(seed)
    distances = 10.0 ** rng.uniform(-3, 1, (40, 1))
    others = list(f + distances * rng.standard_normal((40, len(f))))
    return [*others, y] if len(y) == len(f) else others


@pytest.mark.parametrize('distance', [0.1, 0.6, 0.9, 40.0])
@pytest.mark.parametrize('name', REGRESSION)
def test_the_longest_explicit_step_of_a_regression_ends_at_the_target(name, distance):
    y = np.array([1.0, -2.0])
    f = y + distance * np.array([0.6, -0.8])
    out, longest = derivative(name, f, y)
    assert f - longest * out == pytest.approx(y)


def test_the_first_target_that_is_no_label_is_named():
    targets = np.array([1.0, -1.0, 3.0, 0.5])[:, None]
    assert LOSSES['hinge'].not_labels('hinge', targets, 2).endswith('are -1 and 1 (got 3)')
    targets = np.array([0.0, 2.5, 7.0])[:, None]
    assert LOSSES['softmax'].not_labels('softmax', targets, 3).endswith('are 0 to 2 (got 2.5)')
    assert LOSSES['softmax'].not_labels('softmax', np.array([[0.0], [2.0]]), 3) == ''


@pytest.mark.parametrize(
    ('name', 'f', 'y', 'expected'),
    [
        ('squared', [1.0, 2.0], [4.0, -2.0], 25.0),
        ('huber', [0.5], [0.0], 0.25),
        ('huber', [0.0, 0.7], [0.0, 0.0], 0.49),
        ('huber', [3.0, 0.0], [0.0, 4.0], 0.7 * (2 * 5.0 - 0.7)),
        ('absolute', [1.0, 2.0], [4.0, -2.0], 5.0),
        ('absolute', [1.0], [1.0], 0.0),
        ('logistic', [0.0], [-1.0], math.log(2.0)),
        ('logistic', [1000.0], [-1.0], 1000.0),
        ('logistic', [1000.0], [1.0], 0.0),
        ('hinge', [0.25], [1.0], 0.75),
        ('hinge', [0.25], [-1.0], 1.25),
        ('hinge', [1.0], [1.0], 0.0),
        ('multiclass_hinge', [0.0, 3.0, 1.0], [2.0], 3.0),
        ('multiclass_hinge', [0.0, 3.0, 1.0], [1.0], 0.0),
        ('multiclass_hinge', [1.0, 1.0], [0.0], 1.0),
        ('softmax', [0.0, 0.0, 0.0, 0.0], [3.0], math.log(4.0)),
        ('softmax', [1000.0, 0.0, -1000.0], [2.0], 2000.0),
        ('softmax', [1000.0, 0.0, -1000.0], [0.0], 0.0),
    ],
)
def test_losses_have_the_values_worked_out_by_hand(name, f, y, expected):
    assert value(name, f, y) == pytest.approx(expected, rel=1e-15, abs=1e-15)


@repeatable
@given(points())
def test_losses_are_those_of_the_textbook(point):
    name, f, y = point
    assert value(name, f, y) == pytest.approx(plain_loss(name, f, y), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize('scale', [1000.0, 1e6])
@pytest.mark.parametrize('name', LOSSES)
def test_extreme_margins_neither_overflow_nor_give_nan(name, scale):
    if LOSSES[name].several:
        cases = [(scale * np.array([-1.0, 1.0, 0.0, 1.0]), [label]) for label in range(4)]
    elif LOSSES[name].labels:
        cases = [(np.array([sign * scale]), [y]) for sign in (-1.0, 1.0) for y in (-1.0, 1.0)]
    else:
        cases = [(np.array([sign * scale, 0.0]), [0.0, scale]) for sign in (-1.0, 1.0)]
    for f, y in cases:
        assert value(name, f, y) == pytest.approx(plain_loss(name, f, y), rel=1e-12, abs=1e-12)
        slope, longest = derivative(name, f, y)
        assert np.isfinite(slope).all()
        assert math.isfinite(longest)
        for step in (1e-9, 1.0, 1e9):
            after = implicit(name, f, y, step)
            assert np.isfinite(after).all()
            assert value(name, after, y) <= value(name, f, y)


@repeatable
@given(points(), st.integers(0, 99))
def test_the_derivative_is_a_subgradient(point, seed):
    """``loss(u) >= loss(f) + g (u - f)`` for every ``u``."""
    name, f, y = point
    slope, _ = derivative(name, f, y)
    for u in somewhere_else(f, y, seed):
        assert value(name, u, y) >= value(name, f, y) + slope @ (u - f) - 1e-12


@pytest.mark.parametrize('name', LOSSES)
def test_the_derivative_agrees_with_finite_differences_where_the_loss_is_smooth(name):
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(40):
        width = 4 if LOSSES[name].several else 1 if LOSSES[name].labels else 3
        f, y = 2.0 * rng.standard_normal(width), rng.standard_normal(width)
        if LOSSES[name].several:
            y = np.array([float(rng.integers(width))])
        elif LOSSES[name].labels:
            y = rng.choice([-1.0, 1.0], 1)
        slope, _ = derivative(name, f, y)
        h = 1e-6
        nearby = [derivative(name, f + h * e, y)[0] for e in (*np.eye(width), *-np.eye(width))]
        if np.abs(nearby - slope).max() > 1e-4:
            continue  # a kink lies within h
        checked += 1
        for c, e in enumerate(np.eye(width)):
            difference = (plain_loss(name, f + h * e, y) - plain_loss(name, f - h * e, y)) / (
                2 * h
            )
            assert slope[c] == pytest.approx(difference, abs=1e-7)
    assert checked >= 30


@repeatable
@given(points())
def test_no_explicit_step_up_to_the_longest_increases_the_loss(point):
    name, f, y = point
    slope, longest = derivative(name, f, y)
    assert longest >= 0.0
    along = [value(name, f - t * slope, y) for t in np.linspace(0.0, longest, 30)]
    assert (np.diff(along) <= 1e-12).all()


@repeatable
@given(points(names=(*REGRESSION, 'hinge')))
def test_the_longest_explicit_step_ends_at_the_smallest_loss(point):
    name, f, y = point
    slope, longest = derivative(name, f, y)
    assert value(name, f - longest * slope, y) == pytest.approx(0.0, abs=1e-12)
    if value(name, f, y) > 1e-6:
        assert value(name, f - 0.99 * longest * slope, y) > 0.0, 'and no further'


def test_the_longest_step_of_the_multiclass_hinge_closes_the_gap_to_one_runner_up():
    slope, longest = derivative('multiclass_hinge', [0.0, 2.0, 1.5], [0.0])
    assert slope.tolist() == [-1.0, 1.0, 0.0]
    assert longest == 1.5
    assert value('multiclass_hinge', np.array([0.0, 2.0, 0.5]) - 1.5 * slope, [0.0]) == 0.0


@pytest.mark.parametrize('name', CURVED)
def test_the_longest_step_of_a_curved_loss_is_one_over_its_largest_curvature(name):
    """Logistic 1/4 at margin 0; softmax 1/2 where two classes share all the probability."""
    h = 1e-4
    if name == 'logistic':
        f, y, way = np.array([0.0]), [1.0], np.array([1.0])
    else:
        f, y, way = np.array([0.0, 0.0, -50.0]), [0.0], np.array([1.0, -1.0, 0.0]) / math.sqrt(2)
    bend = value(name, f + h * way, y) - 2.0 * value(name, f, y) + value(name, f - h * way, y)
    assert derivative(name, f, y)[1] == CURVED[name] == pytest.approx(h * h / bend, rel=1e-5)


@repeatable
@given(points(names=CLOSED_FORM), st.floats(-3.0, 3.0), st.integers(0, 99))
def test_the_implicit_step_is_the_minimiser(point, exponent, seed):
    """What is minimised is strongly convex: ``G(v) >= G(u) + |v - u|^2 / 2 step`` at its least."""
    name, f, y = point
    step = 10.0**exponent
    u = implicit(name, f, y, step)

    def goal(v):
        return np.sum((v - f) ** 2) / (2.0 * step) + plain_loss(name, v, y)

    for v in [f, *somewhere_else(u, y, seed), *somewhere_else(f, y, seed)]:
        slack = 1e-12 * (1.0 + goal(v) + np.sum((v - u) ** 2) / step)
        assert goal(v) >= goal(u) + np.sum((v - u) ** 2) / (2.0 * step) - slack


@pytest.mark.parametrize(
    ('name', 'f', 'y', 'step', 'expected'),
    [
        ('squared', [3.0, 1.0], [1.0, 1.0], 0.5, [2.0, 1.0]),
        ('huber', [1.0], [0.0], 0.5, [0.5]),  # ends in the quadratic part
        ('huber', [3.0, 4.0], [0.0, 0.0], 1.0, [3.0 * (1 - 1.4 / 5), 4.0 * (1 - 1.4 / 5)]),
        ('absolute', [3.0, 4.0], [0.0, 0.0], 1.0, [2.4, 3.2]),
        ('absolute', [3.0, 4.0], [0.0, 0.0], 5.0, [0.0, 0.0]),
        ('absolute', [1.0], [1.0], 1.0, [1.0]),
        ('hinge', [0.0], [-1.0], 0.25, [-0.25]),
        ('hinge', [0.0], [-1.0], 9.0, [-1.0]),
        ('hinge', [2.0], [1.0], 9.0, [2.0]),
        ('multiclass_hinge', [0.0, 2.0, 1.0], [0.0], 0.5, [0.5, 1.5, 1.0]),
        ('multiclass_hinge', [0.0, 2.0, 1.0], [0.0], 1.5, [1.5, 0.75, 0.75]),
        ('multiclass_hinge', [0.0, 2.0, 1.0], [0.0], 2.0, [5 / 3, 2 / 3, 2 / 3]),
        ('multiclass_hinge', [1.0, 0.0, 1.0, 1.0], [1.0], 0.3, [0.9, 0.3, 0.9, 0.9]),
        ('multiclass_hinge', [1.0, 0.0, 1.0, 1.0], [1.0], 9.0, [0.5, 1.5, 0.5, 0.5]),
        ('multiclass_hinge', [0.0, 0.0, -9.0], [1.0], 9.0, [-0.5, 0.5, -9.0]),
        ('multiclass_hinge', [0.0, 2.0], [1.0], 9.0, [0.0, 2.0]),
    ],
)
def test_implicit_steps_worked_out_by_hand(name, f, y, step, expected):
    assert implicit(name, f, y, step) == pytest.approx(expected, rel=1e-14, abs=1e-14)


@repeatable
@given(points(names=CLOSED_FORM))
def test_a_tiny_implicit_step_goes_nowhere_and_a_huge_one_ends_at_the_smallest_loss(point):
    name, f, y = point
    assert implicit(name, f, y, 1e-12) == pytest.approx(f, abs=1e-10)
    end = implicit(name, f, y, 1e12)
    assert np.isfinite(end).all()
    assert value(name, end, y) == pytest.approx(0.0, abs=1e-10)


@repeatable
@given(points(names=tuple(CURVED)), st.floats(-3.0, 3.0))
def test_logistic_and_softmax_take_the_explicit_step_no_longer_than_allowed(point, exponent):
    name, f, y = point
    slope, longest = derivative(name, f, y)
    expected = f - min(10.0**exponent, longest) * slope
    assert implicit(name, f, y, 10.0**exponent) == pytest.approx(expected, rel=1e-14, abs=1e-14)
