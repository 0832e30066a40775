# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Kernel ridge regression on subsets of the samples, in coordinates of a kernel's features.

All products are scipy's, none numpy's: each brings threads of its own, which wait for more work by
spinning, so that in turns on two cores they cost four times as much.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.linalg.blas import dgemm, dgemv, dsyrk, dtrmm
from scipy.linalg.lapack import dtrtri

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Added to the diagonal, as a share of its mean: what rounding may take away.
JITTER = 1e-12
# Most that a sample may be said to weigh in its own prediction.
HIGHEST_LEVERAGE = 0.999
# Share of a feature below which it is left out of a search.
NEGLIGIBLE = 0.3


class SubsetRidge:
    """Minimises ``1/m sum over kept (f(x) - y)^2 + ridge |f|^2``, for one subset after another.

    A function is a vector of coefficients: those of the features, whose norm is the function's
    in the RKHS, then an intercept that the ridge leaves alone.

    Parameters
    ----------
    features
        Features of the samples, shape (n, r).
    targets
        Shape (n,).
    radius
        Largest norm of a function: beyond, the ridge is raised until the function has it, which
        is the minimum over the ball.
    """

    def __init__(self, features: Array, targets: Array, radius: float = math.inf) -> None:
        self.features = np.column_stack([features, np.ones(len(features))])
        self.targets = targets
        self.radius = radius
        self._kept: Mask = np.zeros(len(targets), dtype=bool)
        self._gram = np.zeros((self.features.shape[1],) * 2, order='F')  # its lower triangle
        self._moment = np.zeros(self.features.shape[1])

    def __len__(self) -> int:
        return len(self.targets)

    def condensed(self, rows: npt.NDArray[np.intp], ridge: float) -> tuple['SubsetRidge', Array]:
        """Return nearly the same problem of some samples in fewer features, and which they are.

        The features' principal directions (r + 1, q + 1), without those that the ridge would
        shrink to less than ``NEGLIGIBLE`` of themselves.
        """
        features = np.ascontiguousarray(self.features[rows, :-1])
        sizes, directions = eigh(dsyrk(1.0, features.T, lower=1), lower=True, driver='evd')
        used = directions[:, sizes > NEGLIGIBLE * ridge * len(rows)]
        rotation = np.zeros((used.shape[0] + 1, used.shape[1] + 1))
        rotation[:-1, :-1], rotation[-1, -1] = used, 1.0
        some = dgemm(1.0, used, features.T, trans_a=1).T
        return SubsetRidge(some, self.targets[rows], self.radius), rotation

    def fit(self, kept: Mask, ridge: float) -> Array:
        """Fit the samples that are kept; return the coefficients (r + 1,)."""
        self._move_to(kept)
        return self._solve_in_ball(self._gram, self._moment, ridge * int(kept.sum()))

    def fit_weighted(self, weights: Array, ridge: float) -> Array:
        """Fit all samples, each by its weight (n,); return the coefficients (r + 1,)."""
        roots = np.sqrt(weights)
        weighted = self.features * roots[:, None]
        gram = dsyrk(1.0, weighted.T, lower=1)
        moment = dgemv(1.0, weighted.T, roots * self.targets)
        return self._solve_in_ball(gram, moment, ridge * float(weights.sum()))

    def smoothed(self, values: Array, kept: Mask, ridge: float) -> Array:
        """Return what values (n,) are like as a smooth function, fitted on the kept, (n,)."""
        self._move_to(kept)
        moment = dgemv(1.0, self.features.T, np.where(kept, values, 0.0))
        return self._values(self._solve(self._gram, moment, ridge * int(kept.sum())))

    def residuals(self, coefficients: Array) -> Array:
        """Return targets minus predictions, shape (n,)."""
        return self.targets - self._values(coefficients)

    def left_out_residuals(self, coefficients: Array, weights: Array | Mask) -> Array:
        """Return the residuals of the newest fit, of each sample as if it had been left out.

        For a sample in the fit ``r / (1 - w h)`` with its leverage ``h``, exactly; shape (n,).
        """
        share = np.minimum(weights * self.leverage(), HIGHEST_LEVERAGE)
        return self.residuals(coefficients) / (1.0 - share)

    def leverage(self) -> Array:
        """Return ``z^T A^-1 z`` for each sample with the newest fit's matrix A, shape (n,)."""
        inverse, _ = dtrtri(self._factor[0], lower=1)
        whitened = dtrmm(1.0, inverse, self.features.T, lower=1).T
        values: Array = np.einsum('ij,ij->i', whitened, whitened)
        return values

    def _values(self, coefficients: Array) -> Array:
        values: Array = dgemv(1.0, self.features.T, coefficients, trans=1)
        return values

    def _move_to(self, kept: Mask) -> None:
        """Make the sums over the samples that are kept, from those over the ones before."""
        came, went = kept & ~self._kept, self._kept & ~kept
        if 2 * int((came | went).sum()) > int(kept.sum()):
            self._gram[:], self._moment[:] = 0.0, 0.0
            came, went = kept, np.zeros_like(kept)
        for rows, sign in ((came, 1.0), (went, -1.0)):
            if rows.any():
                some = self.features[rows].T
                dsyrk(sign, some, beta=1.0, c=self._gram, lower=1, overwrite_c=1)
                self._moment += sign * dgemv(1.0, some, self.targets[rows])
        self._kept = kept.copy()

    def _solve_in_ball(self, gram: Array, moment: Array, ridge: float) -> Array:
        """Solve with the smallest ridge from ``ridge`` on at which the function is in the ball.

        Newton's steps on the inverse norm, which is almost linear in the ridge (Moré and
        Sorensen, 1983).
        """
        solution = self._solve(gram, moment, ridge)
        norm = float(np.linalg.norm(solution[:-1]))
        while norm > self.radius * (1.0 + 1e-10):
            function = np.append(solution[:-1], 0.0)
            slope = function @ cho_solve(self._factor, function, check_finite=False)
            ridge += norm**2 / float(slope) * (norm / self.radius - 1.0)
            solution = self._solve(gram, moment, ridge)
            norm = float(np.linalg.norm(solution[:-1]))
        return solution

    def _solve(self, gram: Array, moment: Array, ridge: float) -> Array:
        system = gram.copy()
        diagonal = np.einsum('ii->i', system)
        jitter = JITTER * diagonal.mean()
        diagonal[:-1] += ridge
        diagonal += jitter
        self._factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        solution: Array = cho_solve(self._factor, moment, check_finite=False)
        return solution
