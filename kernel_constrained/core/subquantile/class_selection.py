# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Subquantile minimisation of the softmax loss: which samples to keep, and what fits them.

Minimises the mean loss over the samples that are kept, plus the ridge, over functions and kept
samples: ``min over f, S of 1/m sum over S loss_i + ridge |f|^2`` (Rathnashyam and Gittens,
Algorithm 2). How S is selected is given: the m smallest losses, as published, or so many of each
label, with which no class can be let go of to fit the others.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.subquantile.labels import Labels, Mask
from kernel_constrained.core.subquantile.selection import largest_eigenvalue, Minimum, smallest
from kernel_constrained.core.subquantile.softmax import CURVATURE, FINE, Softmax

Array = npt.NDArray[np.float64]
Select = Callable[[Array], Mask]


def as_many_of_each(labels: Labels, kept: Mask) -> Select:
    """Return what selects as many samples of each label as are kept now, by their losses."""
    return partial(smallest_of_each, labels=labels, counts=np.bincount(labels[kept]))


def smallest_of_each(losses: Array, labels: Labels, counts: Labels) -> Mask:
    """Return which ``counts[c]`` losses (n,) of each label c are its smallest, shape (n,)."""
    kept = np.zeros(len(losses), dtype=bool)
    for label, count in enumerate(counts):
        rows = np.flatnonzero(labels == label)
        kept[rows] = smallest(losses[rows], int(count))
    return kept


def alternate(
    problem: Softmax, coefficients: Array, kept: Mask, select: Select, ridge: float,
    max_iterations: int,
) -> Minimum:  # fmt: skip
    """Fit the samples that are kept, select anew, until they stay the same.

    The objective never rises once as many are kept as are selected.
    """
    history: list[float] = []
    for _ in range(max_iterations):
        coefficients = problem.fit(kept.astype(float), ridge, coefficients, FINE)
        scores = problem.scores(coefficients)
        history.append(problem.objective(coefficients, scores, kept / kept.sum(), ridge))
        better = select(problem.losses(scores))
        if np.array_equal(better, kept):
            break
        kept = better
    return Minimum(problem.fit(kept.astype(float), ridge, coefficients), kept, history)


def descend(
    problem: Softmax, coefficients: Array, kept: Mask, select: Select, ridge: float,
    max_iterations: int, tolerance: float, accelerated: bool,
) -> Minimum:  # fmt: skip
    """Step against the gradient on the kept, project on the ball, select anew.

    The paper's own method (Algorithm 2 there, projection of its Lemma 18), with steps of ``1 /
    L``: by the largest eigenvalue of the covariance of all features, L bounds the curvature
    whichever samples are kept. Nesterov's momentum starts anew when the objective rises. Ends
    where a step is short: ``|step| <= tolerance |f|``.
    """
    count = int(select(problem.losses(problem.scores(coefficients))).sum())
    lipschitz = CURVATURE * largest_eigenvalue(problem.features) / count
    lipschitz += 2.0 * ridge * problem.squares
    history: list[float] = []
    ahead, momentum = coefficients, 1.0
    for _ in range(max_iterations):
        gradient = problem.gradient(ahead, problem.scores(ahead), kept / kept.sum(), ridge)
        moved = problem.projected(ahead - gradient / lipschitz)
        step, coefficients = moved - coefficients, moved
        scores = problem.scores(moved)
        kept = select(problem.losses(scores))
        history.append(problem.objective(moved, scores, kept / kept.sum(), ridge))
        if len(history) > 1 and history[-1] > history[-2]:
            momentum = 1.0
        following = 0.5 + np.sqrt(0.25 + momentum**2)
        ahead = moved + (momentum - 1.0) / following * step if accelerated else moved
        momentum = following
        if np.linalg.norm(step) <= tolerance * np.linalg.norm(moved):
            break
    return Minimum(coefficients, kept, history)
