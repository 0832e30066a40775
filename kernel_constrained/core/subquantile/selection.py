# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Subquantile minimisation of the squared loss: which samples to keep, and what fits them.

Minimises the mean loss over the ``m = (1 - corruption) n`` samples of smallest loss, plus the
ridge: ``min over f, S of 1/m sum over S (f(x) - y)^2 + ridge |f|^2`` (Rathnashyam and Gittens,
Algorithm 1).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.subquantile.ridge import SubsetRidge

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Iterations of the power method, and the share by which its result is raised: it comes from below.
POWER_STEPS, POWER_MARGIN = 30, 1.02


class Minimum(NamedTuple):
    """Where the minimisation ended.

    Attributes
    ----------
    coefficients : (r + 1,)
        Of the features, then the intercept.
    kept : (n,)
        Samples of the smallest losses.
    objective : list of float
        Its value after each iteration.
    """

    coefficients: Array
    kept: Mask
    objective: list[float]


def smallest(losses: Array, count: int) -> Mask:
    """Return which ``count`` of the losses (n,) are the smallest, shape (n,)."""
    kept = np.zeros(len(losses), dtype=bool)
    kept[np.argpartition(losses, count - 1)[:count]] = True
    return kept


def count_kept(samples: int, corruption: float) -> int:
    """Return how many samples are left without the corrupted ones."""
    return max(1, round((1.0 - corruption) * samples))


def objective(problem: SubsetRidge, coefficients: Array, kept: Mask, ridge: float) -> float:
    """Return the mean squared loss of the kept plus ``ridge |f|^2``."""
    residuals = problem.residuals(coefficients)[kept]
    function = coefficients[:-1]
    return float(residuals @ residuals / len(residuals) + ridge * function @ function)


def alternate(
    problem: SubsetRidge, kept: Mask, ridge: float, max_iterations: int, left_out: bool = False
) -> Minimum:
    """Fit the samples that are kept, keep those of the smallest losses, until they stay the same.

    The objective falls in each step. With ``left_out`` a sample in the fit is judged by the fit
    without it, which does not descend, but is not taken in by samples that fit only themselves.
    """
    count, history = int(kept.sum()), []
    for _ in range(max_iterations):
        coefficients = problem.fit(kept, ridge)
        history.append(objective(problem, coefficients, kept, ridge))
        if left_out:
            residuals = problem.left_out_residuals(coefficients, kept)
        else:
            residuals = problem.residuals(coefficients)
        better = smallest(residuals**2, count)
        if np.array_equal(better, kept):
            break
        kept = better
    return Minimum(coefficients, kept, history)


def descend(
    problem: SubsetRidge, coefficients: Array, count: int, ridge: float,
    max_iterations: int, tolerance: float, accelerated: bool,
) -> Minimum:  # fmt: skip
    """Step against the gradient on the samples of the smallest losses, and project on the ball.

    The paper's own method (Algorithm 1 there, projection of its Lemma 18). Steps of ``1 / L``
    with the largest eigenvalue of the covariance of the features; Nesterov's momentum starts
    anew when the objective rises. Ends where the step is small: ``L |step| <= tolerance L |f|``.
    """
    lipschitz = 2.0 * (largest_eigenvalue(problem.features) / count + ridge)
    penalty = np.append(np.full(len(coefficients) - 1, ridge), 0.0)
    history: list[float] = []
    ahead, momentum = coefficients, 1.0
    for _ in range(max_iterations):
        residuals = problem.residuals(ahead)
        kept = smallest(residuals**2, count)
        gradient = 2.0 * (penalty * ahead - problem.features[kept].T @ residuals[kept] / count)
        moved = projected(ahead - gradient / lipschitz, problem.radius)
        step = moved - coefficients
        after = problem.residuals(moved)
        kept = smallest(after**2, count)
        history.append(objective(problem, moved, kept, ridge))
        if len(history) > 1 and history[-1] > history[-2]:
            momentum = 1.0
        following = 0.5 + np.sqrt(0.25 + momentum**2)
        ahead = moved + (momentum - 1.0) / following * step if accelerated else moved
        coefficients, momentum = moved, following
        if np.linalg.norm(step) <= tolerance * np.linalg.norm(moved):
            break
    return Minimum(coefficients, kept, history)


def projected(coefficients: Array, radius: float) -> Array:
    """Project on the functions of norm ``radius`` or less; the intercept stays (Lemma 18)."""
    norm = float(np.linalg.norm(coefficients[:-1]))
    if norm <= radius:
        return coefficients
    return np.append(coefficients[:-1] * (radius / norm), coefficients[-1])


def largest_eigenvalue(features: Array) -> float:
    """Return the largest eigenvalue of ``features^T features``, or a little more."""
    vector, value = np.ones(features.shape[1]), 0.0
    for _ in range(POWER_STEPS):
        vector = features.T @ (features @ (vector / np.linalg.norm(vector)))
        value = float(np.linalg.norm(vector))
    return POWER_MARGIN * value
