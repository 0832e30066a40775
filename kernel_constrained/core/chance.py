# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Convex bounds on the probability of a collision.

``P(g > 0) <= tolerance`` holds where ``s E[phi(g / s)] - s tolerance <= 0`` for some ``s > 0``
(Koppel et al., Eq. (5)), with ``phi(z) = [1 + z]_+`` (CVaR) or ``exp(z)`` (Bernstein). The scale
``s`` is a primal variable that all samples share: ``s phi(g / s)`` is jointly convex in ``g`` and
``s``. Eq. (24) of the paper takes the infimum over ``s`` for each sample instead, which relaxes
the bound and limits no probability; it is kept for comparison.
"""

import math

from kernel_constrained.core.compilation import compiled

SURROGATES = ('cvar', 'exp')
# Beyond this the exponential goes on as its tangent, so that one sample cannot overflow a step.
STEEPEST = 4.0


def per_sample_slopes(surrogate: str, tolerance: float) -> tuple[float, float]:
    """Slopes ``a, b`` of ``inf_s s phi(g / s) - s tolerance = a g_+ - b g_-`` (Eq. (24)).

    The infimum is positively homogeneous in ``g``. For CVaR it is attained at the kink and at
    infinity; for the exponential where ``(1 - z) exp(z) = tolerance``, which has one root on
    either side of 0.

    >>> per_sample_slopes('cvar', 0.05)
    (1.0, 0.05)
    """
    if surrogate == 'cvar':
        return 1.0, tolerance
    return math.exp(root_between(0.0, 1.0, tolerance)), math.exp(
        root_between(-60.0, 0.0, tolerance)
    )


def root_between(low: float, high: float, tolerance: float) -> float:
    """Root of ``(1 - z) exp(z) - tolerance`` by bisection; it has opposite signs at the ends."""
    rising = (1.0 - high) * math.exp(high) > tolerance
    for _ in range(100):
        middle = 0.5 * (low + high)
        above = (1.0 - middle) * math.exp(middle) > tolerance
        if above == rising:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


@compiled
def surrogate_value(exponential_form, z):
    """Return ``phi(z)`` and its derivative."""
    if exponential_form:
        if z > STEEPEST:
            steepest = math.exp(STEEPEST)
            return steepest * (1.0 + z - STEEPEST), steepest
        value = math.exp(z)
        return value, value
    return (1.0 + z, 1.0) if z > -1.0 else (0.0, 0.0)
