# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Problems with a constraint that binds, and their optimum by an interior-point solver."""

from typing import NamedTuple

import cvxpy as cp
import numpy as np

from kernel_constrained.core import conditional_value_at_risk, Gaussian
from kernel_constrained.data import lidar_split, load_lidar


class Problem(NamedTuple):
    """Samples that are streamed again and again, and how they are to be learned."""

    x: np.ndarray
    y: np.ndarray
    bandwidth: float
    regularization: float

    def losses(self, learner):
        return (learner.predict(self.x) - self.y) ** 2

    def objective(self, learner):
        return self.losses(learner).mean() + self.regularization / 2 * learner.squared_norm_

    def epochs(self, count, seed):
        rng = np.random.default_rng(seed)
        rows = np.concatenate([rng.permutation(len(self.x)) for _ in range(count)])
        return self.x[rows], self.y[rows]


class Optimum(NamedTuple):
    objective: float
    dual_variables: np.ndarray
    prediction: np.ndarray

    def cvar(self, problem, significance):
        return conditional_value_at_risk((self.prediction - problem.y) ** 2, significance)


def lidar(regularization):
    """Training points of the LIDAR table, range scaled to [0, 1]."""
    table, train = load_lidar(), lidar_split(seed=0).train
    x = ((table.range - 390) / 330)[train, None]
    return Problem(x, table.logratio[train], 0.04, regularization)


def skewed(n=1000):
    """One-sided noise and 5 % gross outliers, all upwards: the constraint bends the curve."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (n, 1))
    y = np.sin(2 * np.pi * x[:, 0]) + 0.1 * (rng.exponential(1, n) - 1)
    gross = rng.random(n) < 0.05
    y[gross] += 2 * (1 + x[gross, 0]) * np.abs(1 + 0.3 * rng.standard_normal(gross.sum()))
    return Problem(x, y, 0.1, 1e-3)


def square(n=1000):
    """Two inputs; the noise of one half is four times that of the other."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (n, 2))
    noise = (0.05 + 0.15 * (x[:, 0] > 0)) * rng.standard_normal(n)
    return Problem(x, np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]) + noise, 0.5, 1e-3)


def features_of(gram, tolerance=1e-9):
    """Return L with ``gram = L L^T`` to within ``tolerance``, by pivoted Cholesky."""
    left, columns = np.diag(gram).copy(), []
    while left.max() > tolerance:
        j = int(left.argmax())
        known = sum((c * c[j] for c in columns), np.zeros(len(gram)))
        columns.append((gram[:, j] - known) / np.sqrt(left[j]))
        left -= columns[-1] ** 2
    return np.stack(columns, axis=1)


def optimum_of(problem, constraints=()):
    """min |Lv - y|^2 / N + lambda / 2 |v|^2 s.t. z + sum (r_i^2 - z)_+ / ((1 - alpha) N) <= gamma.

    ``constraints`` are (alpha, gamma), any number of them; alpha = 0 bounds the mean loss.
    """
    n = len(problem.y)
    features = features_of(Gaussian(problem.bandwidth)(problem.x, problem.x))
    v, residual = cp.Variable(features.shape[1]), cp.Variable(n)
    bounds = []
    for alpha, gamma in constraints:
        if alpha == 0:
            bounds.append(cp.sum_squares(residual) / n <= gamma)
        else:
            z = cp.Variable()
            bounds.append(z + cp.sum(cp.pos(cp.square(residual) - z)) / ((1 - alpha) * n) <= gamma)
    objective = cp.sum_squares(residual) / n + problem.regularization / 2 * cp.sum_squares(v)
    program = cp.Problem(cp.Minimize(objective), [residual == features @ v - problem.y, *bounds])
    program.solve(solver=cp.CLARABEL)
    duals = np.array([float(np.squeeze(bound.dual_value)) for bound in bounds])
    return Optimum(float(program.value), duals, features @ v.value)
