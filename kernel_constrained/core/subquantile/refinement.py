# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of a kept set: honest samples come back, by how likely their residuals are.

An exact count of samples to drop takes honest ones where fewer were corrupted, or where corrupted
ones are right by chance. So residuals are taken to be normal for honest samples, with a deviation
that varies smoothly over the inputs, and wide for the others; each sample then counts by the
probability that it is honest, in turn with the fit (expectation maximisation).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.subquantile.ridge import SubsetRidge

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

ROUNDS, CHANGE = 30, 1e-3
# Median of the absolute value of a standard normal variable, and its mean.
MEDIAN_ABSOLUTE = 0.6744897501960817
MEAN_ABSOLUTE = 0.7978845608028654
# The deviation at an input, relative to the one of all, and how much smoother than the function.
LEAST_SCALE, MOST_SCALE, SCALE_RIDGE = 1 / 3, 3.0, 10.0
FEWEST_FOR_SCALE = 10
# Of the residuals of corrupted samples: the share that is anywhere in the range of targets, and
# of the rest the share around a common residual; the others have targets around the median.
ANYWHERE, COMMON = 0.1, 0.3
# Deviations that are wide: of the targets of corrupted samples, and of their common residual.
WIDE, COMMON_WIDE = 1.2, 2.0
# A sample within so many deviations is kept in any case; the share of honest ones beyond.
ORDINARY, RARE = 2.4, 0.0164
# Below this share of honest samples there is nothing left to learn from.
FEWEST_HONEST = 0.3
HIGHEST_CORRUPTION = 0.49
# Where a fit of all is so much nearer to the samples that were dropped, they predict one another.
PREDICTED = 0.55


class Refined(NamedTuple):
    """A fit and what it makes of the samples.

    Attributes
    ----------
    coefficients : (r + 1,)
        Of the features, then the intercept.
    kept : (n,)
        Samples that are likelier honest than not, or ordinary.
    residuals : (n,)
        Of each sample as if it had been left out, in its deviations.
    surprise : (n,)
        Minus the logarithm of the likelihood of its residual.
    corruption : float
        Share of corrupted samples that the residuals speak for.
    """

    coefficients: Array
    kept: Mask
    residuals: Array
    surprise: Array
    corruption: float


def refine(problem: SubsetRidge, kept: Mask, ridge: float, corruption: float | None) -> Refined:
    """Fit anew with every sample by the probability that it is honest.

    Parameters
    ----------
    problem
        The samples.
    kept
        Those to begin with, shape (n,).
    ridge
        Of the fit.
    corruption
        Share of corrupted samples: half of what is believed is this, half what residuals say
        if that is less; None to believe them alone.
    """
    coefficients = problem.fit(kept, ridge)
    residuals = problem.left_out_residuals(coefficients, kept)
    scale = float(np.median(np.abs(residuals[kept]))) / MEDIAN_ABSOLUTE
    honest, share = kept.astype(float), 1.0 - float(kept.mean())
    least = 1e-9 * float(np.ptp(problem.targets)) + 1e-300
    for _ in range(ROUNDS):
        scales = local_scales(problem, residuals, honest, max(scale, least), ridge)
        normal = (1.0 - share) * density(residuals, scales)
        wide = share * corrupted_density(problem.targets, residuals, honest, scale + least)
        likelihood = normal + wide
        honest = normal / likelihood
        if honest.mean() < FEWEST_HONEST:
            break
        if corruption is None:
            kept = (honest > 0.5) | (np.abs(residuals) <= ORDINARY * scales)
            share = min(max(corruption_of(kept), 1e-3), HIGHEST_CORRUPTION)
        else:
            share = min(corruption, 0.5 * (corruption + 1.0 - float(honest.mean())))
        before, coefficients = coefficients, problem.fit_weighted(honest, ridge)
        residuals = problem.left_out_residuals(coefficients, honest)
        relative = residuals * max(scale, least) / scales
        scale = float(np.sqrt(honest @ relative**2 / honest.sum()))
        if np.linalg.norm(coefficients - before) <= CHANGE * np.linalg.norm(coefficients):
            break
    residuals = residuals / scales
    kept = (honest > 0.5) | (np.abs(residuals) <= ORDINARY)
    if corruption is None:
        share = min(max(corruption_of(kept), 0.0), HIGHEST_CORRUPTION)
    return Refined(coefficients, kept, residuals, -np.log(likelihood), share)


def keep_the_rare(problem: SubsetRidge, refined: Refined, ridge: float) -> Refined:
    """Keep everything if the samples that were dropped predict one another.

    Rare situations do, and what is wrong by itself does not: so where no share of corrupted
    samples was stated, crowds are believed. Each is predicted as if it had been left out.
    """
    dropped, everything = ~refined.kept, np.ones(len(problem), dtype=bool)
    if not dropped.any():
        return refined
    coefficients = problem.fit(everything, ridge)
    errors = problem.left_out_residuals(coefficients, everything)
    before = np.abs(problem.residuals(refined.coefficients)[dropped])
    if np.median(np.abs(errors[dropped])) > PREDICTED * np.median(before):
        return refined
    return refined._replace(
        coefficients=coefficients, kept=everything, residuals=errors, corruption=0.0
    )


def corruption_of(kept: Mask) -> float:
    """Return the share of corrupted samples by those dropped, some of which are ordinary."""
    return (1.0 - float(kept.mean()) - RARE) / (1.0 - RARE)


def local_scales(
    problem: SubsetRidge, residuals: Array, honest: Array, scale: float, ridge: float
) -> Array:
    """Return the deviation of honest residuals at each sample, shape (n,).

    Absolute residuals as a smooth function, at most three times more or less than ``scale``.
    """
    sizes = np.minimum(np.abs(residuals), 3.0 * scale)
    inside = (honest > 0.5) & (np.abs(residuals) < 3.0 * scale)
    if int(inside.sum()) < FEWEST_FOR_SCALE:
        return np.full(len(residuals), scale)
    excess = sizes - MEAN_ABSOLUTE * scale
    smooth = problem.smoothed(excess, inside, SCALE_RIDGE * ridge) / MEAN_ABSOLUTE + scale
    return np.clip(smooth, LEAST_SCALE * scale, MOST_SCALE * scale)


def corrupted_density(targets: Array, residuals: Array, honest: Array, scale: float) -> Array:
    """Return how likely targets and residuals (n,) are for corrupted samples, shape (n,)."""
    others = 1.0 - honest + 1e-6
    centre = float(others @ residuals / others.sum())
    spread = float(np.sqrt(others @ (residuals - centre) ** 2 / others.sum()))
    common = density(residuals - centre, max(spread, COMMON_WIDE * scale))
    deviation = WIDE * float(targets.std()) + scale
    around = density(targets - np.median(targets), deviation)
    uniform = 1.0 / (float(np.ptp(targets)) + scale)
    return ANYWHERE * uniform + (1.0 - ANYWHERE) * (COMMON * common + (1.0 - COMMON) * around)


def density(values: Array, deviation: Array | float) -> Array:
    """Return the density of the normal distribution."""
    result: Array = np.exp(-0.5 * (values / deviation) ** 2) / deviation / np.sqrt(2.0 * np.pi)
    return result
