# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Problems with a constraint that binds, and their optimum by an interior-point solver."""

import numpy as np

from kernel_constrained.core import Gaussian
from kernel_constrained.offline.reproduction.optimum import features_of, Optimum, Problem

try:
    import cvxpy as cp
except ImportError:
    cp = None


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


def optimum_of(problem, constraints=()):
    """Solve the constrained problem as a quadratic programme.

    min |Lv - y|^2 / N + lambda / 2 |v|^2 s.t. z + sum (r_i^2 - z)_+ / ((1 - alpha) N) <= gamma;
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
