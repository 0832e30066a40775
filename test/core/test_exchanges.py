# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Eqs. (23) and (24) take a minimum inside an expectation: what they accept that they must not.

The minima are taken on grids, straight from the formulas; the package's closed forms and its
learner are held against them. ``doc/notes.md`` tells it in words.
"""

import numpy as np
import pytest

from kernel_constrained.core import (
    conditional_value_at_risk,
    CVaR,
    PrimalDualLearner,
)
from kernel_constrained.core.chance import per_sample_slopes

# A loss of 10 in one of twenty samples, else none; at most 1 is allowed on average in the worst
# tenth, where it is 5.
ALPHA, GAMMA = 0.9, 1.0
LOSSES = np.repeat([0.0, 10.0], [19, 1])

# Inside an obstacle by this much (m) or 1 m clear of it, half of the time each; 5 % are allowed.
TOLERANCE = 0.05
ODDS = pytest.mark.parametrize(('name', 'depth'), [('cvar', 0.02), ('exp', 0.002)])

# Where the minima over z and over the scale are looked for.
Z = np.linspace(-5.0, 20.0, 25001)
SCALES = np.geomspace(1e-6, 1e4, 400001)[:, None]


def positive_part(a):
    return np.maximum(a, 0.0)


def softplus(a):
    return np.logaddexp(0.0, a)


def tail(losses, positive):
    """Return z + E[l - z]_+ / (1 - alpha) at every z, for each loss."""
    return Z[:, None] + positive(losses - Z[:, None]) / (1 - ALPHA)


# -- Eq. (23) -----------------------------------------------------------------------------------


def test_the_minimum_of_the_expectation_is_the_cvar():
    least = tail(LOSSES, positive_part).mean(axis=1).min()
    assert least == pytest.approx(conditional_value_at_risk(LOSSES, ALPHA))
    assert least == pytest.approx(5.0)
    assert least > GAMMA


def test_the_expectation_of_the_minimum_is_the_mean_loss_and_accepts_the_tail():
    inside = tail(LOSSES, positive_part).min(axis=0)
    assert inside == pytest.approx(LOSSES, abs=1e-3), 'the minimum of one sample is its loss'
    assert inside.mean() == pytest.approx(0.5, abs=1e-3)
    assert inside.mean() < GAMMA


def test_with_the_softplus_not_even_a_perfect_function_is_accepted():
    inside = tail(np.zeros(1), softplus).min(axis=0)
    offset = CVaR(ALPHA, GAMMA, smoothing=1.0).collapsed_offset
    assert inside == pytest.approx([offset], abs=1e-5)
    assert offset == pytest.approx(3.2508, abs=1e-4)
    assert offset > 2.0, "the paper's gamma at this alpha"


def test_the_learner_of_the_paper_keeps_the_mean_and_not_the_tail():
    """One input, targets 1 in one of twenty samples and else 0: only a constant c is to learn.

    Its mean loss is least at c = 0.05, and its CVaR ``((1 - c)^2 + c^2) / 2`` is 0.4525 there; it
    is 0.4 at c = 0.1127.
    """
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.permutation(np.repeat([1.0, 0.0], [1, 19])) for _ in range(1000)])
    x, gamma = np.zeros((len(y), 1)), 0.4
    settings = {'constraint': CVaR(ALPHA, gamma), 'regularization': 1e-6}
    paper = PrimalDualLearner(mode='paper', step_size=0.01, **settings).partial_fit(x, y)
    default = PrimalDualLearner(**settings).partial_fit(x, y)
    of_paper, of_default = ((learner.predict(x) - y) ** 2 for learner in (paper, default))
    assert of_paper.mean() < 0.15 * gamma, 'Eq. (23) holds by far'
    assert conditional_value_at_risk(of_paper, ALPHA) > 1.1 * gamma
    assert default.predict(x[:1]) == pytest.approx([0.1127], abs=0.01)
    assert conditional_value_at_risk(of_default, ALPHA) < 1.01 * gamma


# -- Eq. (24) -----------------------------------------------------------------------------------


def surrogate(name, g):
    """Return s phi(g / s) - s gamma at every scale s, for each g."""
    with np.errstate(over='ignore'):
        phi = positive_part(1.0 + g / SCALES) if name == 'cvar' else np.exp(g / SCALES)
    return SCALES * (phi - TOLERANCE)


@ODDS
def test_the_infimum_of_the_expectation_refuses_even_odds_of_a_collision(name, depth):
    least = surrogate(name, np.array([depth, -1.0])).mean(axis=1).min()
    assert least > 0.0
    if name == 'cvar':
        assert least == pytest.approx(0.01, rel=1e-3)


@ODDS
def test_the_expectation_of_the_infimum_accepts_even_odds_of_a_collision(name, depth):
    each = surrogate(name, np.array([depth, -1.0])).min(axis=0)
    inside, outside = per_sample_slopes(name, TOLERANCE)
    assert each == pytest.approx([inside * depth, -outside], rel=1e-3)
    assert each.mean() < 0.0
    if name == 'cvar':
        assert each.mean() == pytest.approx(-0.015, rel=1e-3)
