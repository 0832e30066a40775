# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The optimum of the convex program, by an interior-point solver, to hold the learner against."""

from typing import NamedTuple

import cvxpy as cp
import numpy as np


class Optimum(NamedTuple):
    objective: float
    dual_variable: float
    cvar: float
    prediction: np.ndarray


def constrained_optimum(gram, y, regularization, significance=None, tolerance=None):
    """min |Lv - y|^2 / N + lambda / 2 |v|^2 s.t. z + sum (r_i^2 - z)_+ / ((1 - alpha) N) <= gamma.

    ``gram`` (N, N) = L L^T up to the nugget; without ``tolerance`` there is no constraint.
    """
    n = len(y)
    factor = np.linalg.cholesky(gram + 1e-10 * np.eye(n))
    v, z = cp.Variable(n), cp.Variable()
    residual = factor @ v - y
    alpha = 0.9 if significance is None else significance
    cvar = z + cp.sum(cp.pos(cp.square(residual) - z)) / ((1 - alpha) * n)
    constraints = [cvar <= tolerance] if tolerance is not None else []
    objective = cp.sum_squares(residual) / n + regularization / 2 * cp.sum_squares(v)
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver=cp.CLARABEL)
    losses = np.sort(residual.value**2)[::-1]
    tail = (1 - alpha) * n
    whole = int(tail)
    measured = (losses[:whole].sum() + (tail - whole) * losses[whole]) / tail
    dual = float(constraints[0].dual_value) if constraints else 0.0
    return Optimum(float(problem.value), dual, float(measured), factor @ v.value)
