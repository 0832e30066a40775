# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Convex bounds on a probability: what they bound, and what the per-sample infimum does not."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_constrained.core.chance import (
    per_sample_slopes,
    root_between,
    STEEPEST,
    surrogate_value,
    SURROGATES,
)

TOLERANCES = (1e-3, 0.02, 0.05, 0.3, 0.9)
SCALES = np.geomspace(1e-6, 1e6, 200001)

surrogates = st.sampled_from(SURROGATES)


def phi(surrogate, z):
    return np.maximum(1.0 + z, 0.0) if surrogate == 'cvar' else np.exp(z)


def bound(surrogate, g, tolerance, scales=SCALES):
    """Return s E[phi(g / s)] - s tolerance at all scales, for equally likely ``g``."""
    g = np.asarray(g)[:, None]
    with np.errstate(over='ignore'):
        return scales * (phi(surrogate, g / scales).mean(0) - tolerance)


@settings(deadline=None)
@given(surrogates, st.floats(-20.0, STEEPEST))
def test_surrogate_is_what_the_paper_has(surrogate, z):
    value, _ = surrogate_value(surrogate == 'exp', z)
    assert value == pytest.approx(phi(surrogate, z))


@settings(deadline=None)
@given(surrogates, st.floats(-20.0, 20.0))
def test_slope_is_that_of_the_value(surrogate, z):
    step = 1e-6
    exponential = surrogate == 'exp'
    low, high = (surrogate_value(exponential, z + side * step)[0] for side in (-1, 1))
    slope = surrogate_value(exponential, z)[1]
    if surrogate == 'cvar' and abs(z + 1.0) < 2 * step:
        assert 0.0 <= slope <= 1.0
    else:
        assert slope == pytest.approx((high - low) / (2 * step), rel=1e-4, abs=1e-8)


@settings(deadline=None)
@given(surrogates, st.floats(-20.0, 100.0))
def test_surrogate_bounds_the_indicator_of_a_collision(surrogate, z):
    value, slope = surrogate_value(surrogate == 'exp', z)
    assert value >= (1.0 if z > 0.0 else 0.0)
    assert slope >= 0.0


def test_exponential_goes_on_as_its_tangent():
    for z in (STEEPEST, STEEPEST + 1.0, 1e6):
        value, slope = surrogate_value(True, z)
        assert value == pytest.approx(math.exp(STEEPEST) * (1.0 + z - STEEPEST))
        assert slope == pytest.approx(math.exp(STEEPEST))


@pytest.mark.parametrize('surrogate', SURROGATES)
@pytest.mark.parametrize('tolerance', TOLERANCES)
def test_slopes_of_the_paper_are_those_of_the_infimum(surrogate, tolerance):
    inside, outside = per_sample_slopes(surrogate, tolerance)
    for g in (0.003, 0.2, 7.0):
        scales = np.geomspace(1e-4 * g, 1e4 * g, 400001)
        assert bound(surrogate, [g], tolerance, scales).min() == pytest.approx(
            inside * g, rel=2e-4
        )
        assert bound(surrogate, [-g], tolerance, scales).min() == pytest.approx(
            -outside * g, rel=2e-4
        )


@pytest.mark.parametrize('tolerance', TOLERANCES)
def test_roots_are_roots(tolerance):
    for low, high in ((0.0, 1.0), (-60.0, 0.0)):
        z = root_between(low, high, tolerance)
        assert low < z < high
        assert (1.0 - z) * math.exp(z) == pytest.approx(tolerance)


@settings(deadline=None)
@given(
    surrogates, st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=40),
    st.sampled_from(TOLERANCES),
)  # fmt: skip
def test_shared_scale_accepts_nothing_beyond_the_tolerance(surrogate, g, tolerance):
    scales = np.geomspace(1e-3, 1e3, 2001)
    if bound(surrogate, g, tolerance, scales).min() <= 0.0:
        assert (np.array(g) > 0.0).mean() <= tolerance


@settings(deadline=None)
@given(
    surrogates, st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=40),
    st.sampled_from(TOLERANCES),
)  # fmt: skip
def test_infimum_per_sample_is_never_above_that_of_the_shared_scale(surrogate, g, tolerance):
    inside, outside = per_sample_slopes(surrogate, tolerance)
    g = np.array(g)
    per_sample = np.where(g > 0.0, inside * g, outside * g).mean()
    assert per_sample <= bound(surrogate, g, tolerance, np.geomspace(1e-3, 1e3, 2001)).min() + 1e-9
