# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The reference: Algorithm 1 and destructive KOMP written as in the paper, with no shortcut."""

import numpy as np

NUGGET = 1e-10


def komp(kernel, atoms, weights, budget):
    """Destructive KOMP that re-solves the least squares for every candidate (Eqs. 20 and 21).

    ``atoms`` (M, p), ``weights`` (M, functions); returns what is left of both.
    """
    gram = kernel(atoms, atoms) + NUGGET * np.eye(len(atoms))
    squared_norm = np.sum(weights * (gram @ weights))
    keep, fitted = list(range(len(atoms))), weights
    while keep:
        candidates = []
        for j in keep:
            rest = [i for i in keep if i != j]
            target = gram[rest] @ weights
            solution = np.linalg.solve(gram[np.ix_(rest, rest)], target)
            candidates.append((squared_norm - np.sum(target * solution), j, solution))
        error, j, solution = min(candidates, key=lambda candidate: candidate[0])
        if error > budget**2:
            break
        keep.remove(j)
        fitted = solution
    return atoms[keep], fitted


class NaiveLearner:
    """Algorithm 1 on the squared loss with the constraint of Eq. (23), or the default mode."""

    def __init__(
        self, kernel, step_size, parsimony, regularization, mode='paper', constraint=None,
        dual_step_size=0.003, quantile_step_size=0.05, dual_regularization=1e-5,
    ):  # fmt: skip
        self.kernel, self.eta, self.lam = kernel, step_size, regularization
        self.budget = parsimony * step_size**2
        self.mode, self.constraint = mode, constraint
        self.eta_mu, self.eta_z, self.delta = (
            dual_step_size,
            quantile_step_size,
            dual_regularization,
        )
        self.atoms, self.weights = None, None
        self.mu, self.z, self.t = 0.0, constraint.tolerance if constraint else 0.0, 0

    def functions(self, x):
        return self.kernel(np.atleast_2d(x), self.atoms) @ self.weights

    def predict(self, X):
        outputs = self.weights.shape[1] // (2 if self.mode == 'default' else 1)
        return self.functions(X)[:, -outputs:]

    def step(self, x, y):
        y = np.atleast_1d(y)
        q = len(y)
        columns = 2 * q if self.mode == 'default' else q
        if self.atoms is None:
            self.atoms, self.weights = np.empty((0, len(x))), np.empty((0, columns))
        f = self.functions(x)[0]
        update = self.default_update if self.mode == 'default' else self.paper_update
        self.weights = update(x, y, f, q)
        self.atoms = np.vstack([self.atoms, x])
        self.atoms, self.weights = komp(self.kernel, self.atoms, self.weights, self.budget)
        self.t += 1

    def paper_update(self, x, y, f, q):
        residual, mu = f - y, self.mu
        if self.constraint:
            g = residual @ residual + self.constraint.collapsed_offset - self.constraint.tolerance
            self.mu = max((1 - self.eta**2 * self.delta) * mu + self.eta * g, 0.0)
        newcomer = -2 * self.eta * (1 + mu) * residual
        return np.vstack([(1 - self.eta * self.lam) * self.weights, newcomer])

    def default_update(self, x, y, f, q):
        kappa = self.kernel(x[None], x[None])[0, 0]
        residual, mu, z = f[:q] - y, self.mu, self.z
        loss_of_average = np.sum((f[q:] - y) ** 2)

        def slope(s):  # of |f - f_t|^2 / 2 eta + loss + mu (loss - z)_+ along the residual
            tail = s**2 * (residual @ residual) > z
            return -(1 - s) / (self.eta * kappa) + 2 * s * (1 + mu * tail)

        s = root_of_increasing(slope)
        iterate = np.vstack([(1 - self.eta * self.lam) * self.weights[:, :q],
                             (s - 1) * residual / kappa])  # fmt: skip
        if self.constraint:
            alpha, gamma = self.constraint.significance, self.constraint.tolerance
            h = (1 - alpha) * (z - gamma) + max(loss_of_average - z, 0.0)
            self.mu = max((1 - self.eta_mu**2 * self.delta) * mu + self.eta_mu * h / gamma, 0.0)
            self.z = max(z - self.eta_z * gamma * ((1 - alpha) - (loss_of_average > z)), 0.0)
        mean = np.vstack([self.weights[:, q:], np.zeros(q)])
        mean = mean + 2 / (self.t + 2) * (iterate - mean)
        return np.hstack([iterate, mean])


def root_of_increasing(function, low=0.0, high=1.0):
    """Where an increasing function changes sign, by bisection; it may jump there."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return (low + high) / 2
