# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Features of a kernel: coordinates in the span of a few landmarks, in which it is a dot product.

``k(x, x') ~ z(x) . z(x')``, so that a function of the RKHS is a vector, its norm the vector's,
and kernel ridge regression is ridge regression. The landmarks are pivots of a partial Cholesky
factorisation (the Nyström approximation); no n by n matrix is ever made.
"""

import math

import attrs
import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.spatial.distance import pdist

from kernel_constrained.core.kernels import Gaussian, Kernel

Array = npt.NDArray[np.float64]

# Landmarks are chosen among at most so many samples: more hardly change the choice.
CANDIDATES = 2000
# Samples whose distances the default bandwidth is read from.
BANDWIDTH_SAMPLES = 300


def median_bandwidth(X: Array, random: np.random.Generator) -> float:
    """Return the median distance between samples or the least bandwidth, 1 where it is 0."""
    some = X[random.permutation(len(X))[:BANDWIDTH_SAMPLES]]
    median = math.sqrt(np.median(pdist(some, 'sqeuclidean'))) if len(some) > 1 else 0.0
    least: float = attrs.fields(Gaussian).bandwidth.metadata['low']
    return max(median, least) if median > 0.0 else 1.0


@attrs.frozen(eq=False)
class KernelFeatures:
    """Coordinates of kernel functions in the span of the landmarks' ones.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    landmarks : (r, p)
        Points whose kernel functions span the space.
    factor : (r, r)
        Lower Cholesky factor of their Gram matrix.
    """

    kernel: Kernel
    landmarks: Array
    factor: Array

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        X: Array,
        max_features: int,
        tolerance: float,
        random: np.random.Generator,
    ) -> 'KernelFeatures':
        """Choose landmarks among the rows of ``X`` (n, p), at random by what is not yet spanned.

        Randomly pivoted Cholesky (Chen, Epperly, Tropp and Webber, 2023): unlike the largest
        residual, it does not go for the few samples that are far from all others. Ends where
        ``tolerance``, or less, is left of the mean of ``k(x, x)``; where that is below 1, this
        share of it.
        """
        some = X[random.permutation(len(X))[:CANDIDATES]]
        left = kernel_diagonal(kernel, some)
        most, smallest = min(max_features, len(some)), 1e-10 * left
        enough = tolerance * min(left.sum(), len(some))
        rows, pivots = np.zeros((most, len(some))), np.zeros(most, dtype=int)
        count = 0
        while count < most and left.sum() > enough and np.any(left > smallest):
            left[left < smallest] = 0.0
            pivot = random.choice(len(some), p=left / left.sum())
            row = kernel(some[pivot : pivot + 1], some)[0]
            row -= rows[:count, pivot] @ rows[:count]
            rows[count] = row / np.sqrt(row[pivot])
            left = np.maximum(left - rows[count] ** 2, 0.0)
            left[pivot] = 0.0
            pivots[count] = pivot
            count += 1
        pivots = pivots[:count]
        return cls(kernel, some[pivots], np.tril(rows[:count, pivots].T))

    @property
    def count(self) -> int:
        """Return the number of features, r."""
        return len(self.landmarks)

    def __call__(self, X: Array) -> Array:
        """Features of ``X`` (n, p), shape (n, r)."""
        gram = gram_matrix(self.kernel, self.landmarks, X)
        features: Array = solve_triangular(self.factor, gram, lower=True, check_finite=False)
        return features.T


def kernel_diagonal(kernel: Kernel, X: Array) -> Array:
    """Kernel of each row of ``X`` with itself, shape (n,)."""
    if isinstance(kernel, Gaussian):
        return np.ones(len(X))
    return np.asarray((np.sum(X**2, axis=1) + kernel.offset) ** kernel.degree, dtype=float)


def gram_matrix(kernel: Kernel, a: Array, b: Array) -> Array:
    """Gram matrix between ``a`` (n, p) and ``b`` (m, p) by a matrix product, shape (n, m).

    Fast for many columns; distances are good to 1e-8 of the points' distance from the median of
    ``a``, which a few points far away do not move.
    """
    if not isinstance(kernel, Gaussian):
        return kernel(a, b)
    centre = np.median(a, axis=0)
    a, b = a - centre, b - centre
    squared = a @ b.T
    squared *= -2.0
    squared += np.sum(a**2, axis=1)[:, None]
    squared += np.sum(b**2, axis=1)
    squared *= -0.5 / kernel.bandwidth**2
    np.minimum(squared, 0.0, out=squared)
    return np.exp(squared, out=squared)
