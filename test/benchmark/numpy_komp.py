# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""POLK (Algorithm 1 without a constraint) in plain numpy: what compiling gains is seen beside it.

The same mathematics as the package: a factor F of the inverse Gram matrix, K^-1 = F^T F, never
that inverse itself. BLAS multiplies whole matrices, so F need not stay triangular: an atom is
removed by one Householder reflection that carries its column into the last row.
"""

import numpy as np

NUGGET, DEPENDENT = 1e-10, 1e-7


class NumpyKomp:
    """Projected functional stochastic gradient descent on the squared loss, scalar targets."""

    def __init__(self, inputs, bandwidth, step_size, budget, regularization, capacity=1024):
        self.scale = -0.5 / bandwidth**2
        self.step_size, self.budget, self.shrink = (
            step_size, budget**2, 1 - step_size * regularization,
        )  # fmt: skip
        self.order = 0
        self._atoms, self._weights = np.zeros((capacity, inputs)), np.zeros(capacity)
        self._factor, self._diagonal = np.zeros((capacity, capacity)), np.zeros(capacity)

    @property
    def atoms(self):
        return self._atoms[: self.order]

    @property
    def weights(self):
        return self._weights[: self.order]

    def predict(self, x):
        squares = sum(np.subtract.outer(a, b) ** 2 for a, b in zip(x.T, self.atoms.T))
        return np.exp(self.scale * squares) @ self.weights

    def step(self, x, y):
        m = self.order
        weights, factor = self._weights[:m], self._factor[:m, :m]
        difference = self._atoms[:m] - x
        k = np.exp(self.scale * np.einsum('ij,ij->i', difference, difference))
        c = factor @ k
        projection, novelty = c @ factor, 1 + NUGGET - c @ c
        newcomer = 2 * self.step_size * (y - weights @ k)
        weights *= self.shrink
        price = newcomer**2 * novelty
        removal = weights**2 / (self._diagonal[:m] + projection**2 / max(novelty, NUGGET))
        if novelty < DEPENDENT or price <= min(self.budget, removal.min(initial=np.inf)):
            weights += newcomer * projection
            self._prune(price)
        else:
            self._append(x, newcomer, projection, novelty)
            self._prune(0.0)

    def _append(self, x, weight, projection, novelty):
        m, root = self.order, np.sqrt(novelty)
        self._factor[m, :m], self._factor[:m, m], self._factor[m, m] = (
            -projection / root,
            0,
            1 / root,
        )
        self._diagonal[:m] += projection**2 / novelty
        self._diagonal[m], self._atoms[m], self._weights[m] = 1 / novelty, x, weight
        self.order += 1

    def _prune(self, spent):
        while self.order:
            prices = self.weights**2 / self._diagonal[: self.order]
            j = prices.argmin()
            spent += prices[j]
            if spent > self.budget:
                return
            self._remove(j)

    def _remove(self, j):
        m = self.order
        factor, column = self._factor[:m, :m], self._factor[:m, j].copy()
        self._weights[:m] -= self._weights[j] / self._diagonal[j] * (column @ factor)
        column /= np.sqrt(self._diagonal[j])
        column[-1] += np.copysign(1.0, column[-1])
        factor -= np.outer(column / abs(column[-1]), column @ factor)
        for array in (self._atoms, self._weights, self._factor.T):
            array[j : m - 1] = array[j + 1 : m].copy()
        self.order = m = m - 1
        self._diagonal[:m] = np.einsum('ij,ij->j', self._factor[:m, :m], self._factor[:m, :m])
