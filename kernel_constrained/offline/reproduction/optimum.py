# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The optimum that learners are held against: kernel ridge regression under a bound on the tail.

Solved by its dual, with scipy: a general convex solver is not needed, and the duality gap says how
exact the result is. A test holds it against an interior-point solver (cvxpy with Clarabel).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from kernel_constrained.core import (
    conditional_value_at_risk,
    Gaussian,
    PrimalDualLearner,
)
from kernel_constrained.data import lidar_split, load_lidar
from kernel_constrained.offline.lidar_report import RANGE_MAX, RANGE_MIN

Array = npt.NDArray[np.float64]

# Of the duality gap to the objective, and of a violation to its bound: beyond this an optimum does
# not count as found.
LARGEST_GAP = 1e-5


class Problem(NamedTuple):
    """Samples that are streamed again and again, and how they are to be learned.

    Attributes
    ----------
    x : (n, p)
        Inputs.
    y : (n,)
        Targets.
    bandwidth
        Of the Gaussian kernel.
    regularization
        Lambda.
    """

    x: Array
    y: Array
    bandwidth: float
    regularization: float

    def losses(self, learner: PrimalDualLearner) -> Array:
        """Return the squared error of each sample, shape (n,)."""
        error: Array = learner.predict(self.x) - self.y
        return error**2

    def objective(self, learner: PrimalDualLearner) -> float:
        """Return the mean loss plus the regularisation."""
        return float(self.losses(learner).mean() + self.regularization / 2 * learner.squared_norm_)

    def epochs(self, count: int, seed: int) -> tuple[Array, Array]:
        """Return inputs and targets of so many passes, each in an order of its own."""
        rng = np.random.default_rng(seed)
        rows = np.concatenate([rng.permutation(len(self.x)) for _ in range(count)])
        return self.x[rows], self.y[rows]


class Optimum(NamedTuple):
    """The best function there is.

    Attributes
    ----------
    objective
        Mean loss plus regularisation.
    dual_variables : (m,)
        Multiplier of each constraint.
    prediction : (n,)
        Its values at the samples of the problem.
    """

    objective: float
    dual_variables: Array
    prediction: Array

    def cvar(self, problem: Problem, significance: float) -> float:
        """Return the CVaR of its losses."""
        return conditional_value_at_risk((self.prediction - problem.y) ** 2, significance)


def lidar_inputs() -> Array:
    """Ranges of the LIDAR table scaled to [0, 1], shape (221, 1)."""
    return ((load_lidar().range - RANGE_MIN) / (RANGE_MAX - RANGE_MIN))[:, None]


def lidar_problem(regularization: float, seed: int = 0) -> Problem:
    """Training points of the LIDAR table, with the bandwidth of the paper."""
    train = lidar_split(seed).train
    return Problem(lidar_inputs()[train], load_lidar().logratio[train], 0.04, regularization)


def features_of(gram: Array, tolerance: float = 1e-9) -> Array:
    """Return L with ``gram = L L^T`` to within ``tolerance``, by pivoted Cholesky."""
    left = np.diag(gram).copy()
    columns: list[Array] = []
    while left.max() > tolerance:
        j = int(left.argmax())
        known = sum((c * c[j] for c in columns), np.zeros(len(gram)))
        columns.append((gram[:, j] - known) / np.sqrt(left[j]))
        left -= columns[-1] ** 2
    return np.stack(columns, axis=1)


def optimum_of(problem: Problem, bound: tuple[float, float] | None = None) -> Optimum:
    """Minimise mean loss plus regularisation, with ``CVaR_alpha(loss) <= gamma`` if so bound.

    The CVaR is the largest of the means of the losses with weights ``q_i <= 1 / ((1 - alpha) n)``
    that sum to one. So with ``p = mu q`` the dual maximises the concave

        D(p) = min_f sum_i (1/n + p_i) loss_i(f) + lambda/2 |f|^2 - gamma sum_i p_i

    over ``0 <= p_i <= sum(p) / ((1 - alpha) n)``. D is a weighted kernel ridge regression, its
    gradient ``loss_i - gamma``, and the multiplier ``sum(p)``.

    Parameters
    ----------
    problem
        Samples, bandwidth and lambda.
    bound
        Alpha and gamma; alpha = 0 bounds the mean loss.

    Raises
    ------
    ArithmeticError
        The optimum was not found, as where no function keeps the bound; the message has the
        bound, and the gap that is left.
    """
    n, features = len(problem.y), features_of(Gaussian(problem.bandwidth)(problem.x, problem.x))
    if bound is None:
        prediction, losses, penalty = weighted_ridge(problem, features, np.full(n, 1 / n))
        return Optimum(losses.mean() + penalty, np.zeros(0), prediction)
    significance, tolerance = bound

    def descent(p: Array) -> tuple[float, Array]:
        _, losses, penalty = weighted_ridge(problem, features, 1 / n + p)
        return tolerance * p.sum() - (1 / n + p) @ losses - penalty, tolerance - losses

    shares = np.full((n, n), 1 / ((1 - significance) * n)) - np.eye(n)
    solution = minimize(
        descent, np.full(n, 0.1 / n), jac=True, method='SLSQP', bounds=[(0, None)] * n,
        constraints={'type': 'ineq', 'fun': lambda p: shares @ p, 'jac': lambda p: shares},
        options={'maxiter': 500, 'ftol': 1e-14},
    )  # fmt: skip
    prediction, losses, penalty = weighted_ridge(problem, features, 1 / n + solution.x)
    objective = losses.mean() + penalty
    gap = abs(objective + solution.fun) / objective
    excess = conditional_value_at_risk(losses, significance) / tolerance - 1
    if not max(gap, excess) <= LARGEST_GAP:
        raise ArithmeticError(
            f'no optimum found with a CVaR at {significance:g} of at most {tolerance:g}: the '
            f'duality gap is {gap:.2g} of the objective, the CVaR {1 + excess:.4g} of its bound; '
            'is there a function that keeps the bound?'
        )
    return Optimum(objective, np.array([solution.x.sum()]), prediction)


def weighted_ridge(
    problem: Problem, features: Array, weights: Array
) -> tuple[Array, Array, float]:
    """Minimise ``sum_i w_i loss_i + lambda/2 |f|^2``; return (f(x), losses, lambda/2 |f|^2)."""
    normal = features.T @ (weights[:, None] * features)
    normal[np.diag_indices_from(normal)] += problem.regularization / 2
    v = np.linalg.solve(normal, features.T @ (weights * problem.y))
    prediction = features @ v
    return prediction, (prediction - problem.y) ** 2, problem.regularization / 2 * float(v @ v)
