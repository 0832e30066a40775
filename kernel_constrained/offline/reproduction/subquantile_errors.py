# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""How the error of what is learned falls with the number of samples, a fifth of them corrupted.

Theorem 7 bounds the squared distance in the RKHS from ``f*`` on its first m eigenfunctions by
terms that fall as ``n^-1/2``. Measured are that distance with m = 10, the mean square of the
difference over the inputs, and the squared distance in the whole RKHS.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core import SubquantileRegressor
from kernel_constrained.offline.reproduction.parallel import over_cores
from kernel_constrained.offline.reproduction.slopes import power_law, Slope
from kernel_constrained.offline.reproduction.subquantile_convergence import NESTEROV, SOLVERS
from kernel_constrained.offline.reproduction.subquantile_data import (
    CORRUPTION,
    grid,
    KERNEL,
    samples_of,
    truth,
)

Array = npt.NDArray[np.float64]

COUNTS = (100, 200, 400, 800, 1600, 3200, 6400)
KINDS = ('shifted', 'random')
EIGENFUNCTIONS = 10

OURS, PUBLISHED, PLAIN, ORACLE = (
    'subquantile', 'Algorithm 1', 'kernel ridge regression', 'oracle',
)  # fmt: skip
METHODS: dict[str, dict[str, Any]] = {
    OURS: {'corruption': CORRUPTION},
    # From zero, with momentum lest it take thousands of steps.
    PUBLISHED: {
        'corruption': CORRUPTION, 'start': 'zero', 'refine': False, **SOLVERS[NESTEROV]
    },
    PLAIN: {'corruption': 0.0},
    ORACLE: {'corruption': 0.0},
}  # fmt: skip


class Error(NamedTuple):
    """Distance from the function behind the samples.

    Attributes
    ----------
    mean_square
        Mean of the squared difference over the inputs.
    leading
        Squared distance in the RKHS, on the first eigenfunctions.
    whole
        Squared distance in the RKHS, the intercept left out.
    """

    mean_square: float
    leading: float
    whole: float


# Of each kind of corruption and method, shape (counts, seeds, fields of Error).
Errors = dict[tuple[str, str], Array]


def ridge_of(count: int) -> float:
    """Return lambda, by one rule for all methods: ``0.1 / sqrt(n)``."""
    return 0.1 / float(np.sqrt(count))


@cache
def eigenfunctions() -> tuple[Array, Array]:
    """Return the largest eigenvalues of the Gram matrix of the grid, and their eigenvectors."""
    values, vectors = np.linalg.eigh(KERNEL(grid(), grid()))
    return values[-EIGENFUNCTIONS:], vectors[:, -EIGENFUNCTIONS:]


def error_of(learner: SubquantileRegressor) -> Error:
    """Return how far a function is from the truth."""
    difference = learner.predict(grid()) - truth()(grid())
    return Error(
        float(np.mean(difference**2)), leading_part(difference), squared_distance(learner)
    )


def leading_part(difference: Array) -> float:
    """Return the squared norm in the RKHS, on the first eigenfunctions, of values on the grid.

    The square of the projection on the i-th is ``(u_i . d)^2 / s_i`` with eigenvector u and
    eigenvalue s of the Gram matrix.
    """
    values, vectors = eigenfunctions()
    return float(np.sum((vectors.T @ difference) ** 2 / values))


def squared_distance(learner: SubquantileRegressor) -> float:
    """Return ``|f - f*|^2 = |f|^2 - 2 <f, f*> + |f*|^2`` in the RKHS."""
    centres, weights = truth()
    at_centres = learner.features_(centres) @ learner.coef_
    own, common = learner.coef_ @ learner.coef_, weights @ at_centres
    return float(own - 2.0 * common + weights @ truth()(centres))


def errors_of(kind: str, count: int, seed: int) -> list[Error]:
    """Learn the same samples by each method."""
    samples, results = samples_of(kind, count, seed), []
    for method, settings in METHODS.items():
        used = ~samples.corrupted if method == ORACLE else np.ones(count, dtype=bool)
        learner = SubquantileRegressor(KERNEL, regularization=ridge_of(count), **settings)
        learner.fit(samples.X[used], samples.y[used])
        results.append(error_of(learner))
    return results


def measure(counts: Sequence[int], seeds: int) -> Errors:
    """Learn so many sets of samples of each size and kind."""
    tasks = [
        (kind, count, seed)
        for count in sorted(counts, reverse=True)
        for kind in KINDS
        for seed in range(seeds)
    ]
    found = dict(zip(tasks, over_cores(errors_of, tasks, 'error against n'), strict=True))
    return {
        (kind, method): np.array(
            [[found[kind, n, seed][number] for seed in range(seeds)] for n in counts]
        )
        for kind in KINDS
        for number, method in enumerate(METHODS)
    }


def column(errors: Array, name: str) -> Array:
    """Return one of the errors, shape (counts, seeds)."""
    values: Array = errors[..., Error._fields.index(name)]
    return values


def slope_of(counts: Sequence[int], errors: Array, name: str) -> Slope:
    """Fit the medians over the seeds."""
    return power_law(counts, np.median(column(errors, name), axis=1))
