# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Where the minimisation starts: robust fits that most of the corrupted samples do not sway.

The objective has many minima, and the lowest may be a bad one: samples that agree on something
wrong are fitted better than honest ones with noise. So the start decides.
"""

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.subquantile.refinement import MEDIAN_ABSOLUTE, refine, Refined
from kernel_constrained.core.subquantile.ridge import SubsetRidge
from kernel_constrained.core.subquantile.selection import alternate, count_kept, smallest

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Huber's threshold in deviations, and the change of a fit at which it is done.
HUBER_THRESHOLD, HUBER_STEPS, HUBER_CHANGE = 1.0, 20, 1e-2
# Smoothest first: the ridge begins at these multiples and falls by RIDGE_STEP.
RIDGE_MULTIPLES, RIDGE_STEP = (1.0, 10.0, 100.0), 3.0
ALTERNATIONS = 10
# Deviations from a fit beyond which a sample is far.
FAR = 3.0


def crowd_weights(problem: SubsetRidge, ridge: float) -> Array:
    """Return weights (n,) by which a crowd in one place counts like a few samples.

    Leverages in a fit of all, relative to their median and at most 1: samples that are many in
    one place share the leverage of that place.
    """
    problem.fit(np.ones(len(problem), dtype=bool), ridge)
    leverage = problem.leverage()
    weights: Array = np.minimum(leverage / np.median(leverage), 1.0)
    return weights


def weighted_quantile(values: Array, weights: Array, share: float) -> float:
    """Return the value below which this share of the weight lies."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, share * below[-1])])


def huber_fit(problem: SubsetRidge, weights: Array, ridge: float, corruption: float) -> Array:
    """Return the coefficients of a Huber fit, by iterated weights.

    The scale is read from the quantile where the median of the clean samples is if all others
    are worse than they.
    """
    coefficients = problem.fit_weighted(weights, ridge)
    for _ in range(HUBER_STEPS):
        sizes = np.abs(problem.residuals(coefficients))
        scale = weighted_quantile(sizes, weights, 0.5 * (1.0 - corruption)) / MEDIAN_ABSOLUTE
        shares = np.minimum(HUBER_THRESHOLD * scale / np.maximum(sizes, 1e-300), 1.0)
        if not scale > 0.0:
            break  # most samples are fitted exactly
        before, coefficients = coefficients, problem.fit_weighted(weights * shares, ridge)
        change = np.linalg.norm(coefficients - before)
        if change <= HUBER_CHANGE * np.linalg.norm(coefficients):
            break
    return coefficients


def ordinary_start(problem: SubsetRidge, weights: Array, ridge: float) -> Mask:
    """Return the samples that are not far from a Huber fit as if none were corrupted, (n,)."""
    coefficients = huber_fit(problem, weights, ridge, 0.0)
    sizes = np.abs(problem.residuals(coefficients))
    ordinary: Mask = sizes <= FAR * float(np.median(sizes)) / MEDIAN_ABSOLUTE
    return ordinary


def path_start(
    problem: SubsetRidge, weights: Array, ridge: float, multiple: float, corruption: float
) -> Mask:
    """Return the samples to keep that a path of falling ridges leads to, shape (n,).

    A smooth function cannot follow a few samples that agree with each other but not with their
    surroundings: it begins with a Huber fit at ``multiple`` times the ridge, and selects again,
    by residuals of each sample left out, at each lower one.
    """
    count, current = count_kept(len(problem), corruption), multiple * ridge
    coefficients = huber_fit(problem, weights, current, corruption)
    kept = smallest(problem.residuals(coefficients) ** 2, count)
    while current > 1.01 * ridge:
        current = max(current / RIDGE_STEP, ridge)
        coefficients = problem.fit(kept, current)
        kept = smallest(problem.left_out_residuals(coefficients, kept) ** 2, count)
    return alternate(problem, kept, ridge, ALTERNATIONS, left_out=True).kept


def search(problem: SubsetRidge, ridge: float, corruption: float, given: bool) -> Refined:
    """Return the best of several starts, each refined.

    Not the one of the lowest objective, for that may fit what is wrong, but the one that finds
    the data least surprising, where a crowd counts like a few, and a sample that is dropped is a
    surprise too.
    """
    weights = crowd_weights(problem, ridge)
    starts = [
        *(path_start(problem, weights, ridge, one, corruption) for one in RIDGE_MULTIPLES),
        ordinary_start(problem, weights, ridge),
    ]
    believed, different = corruption if given else None, np.unique(starts, axis=0)
    fits = [refine(problem, kept, ridge, believed) for kept in different]
    surprises = [float(weights**2 @ fit.surprise) for fit in fits]
    return fits[int(np.argmin(surprises))]
