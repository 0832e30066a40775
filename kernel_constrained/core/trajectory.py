# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Paths as functions of time in a kernel that vanishes at both ends.

A trajectory is ``f(t) = start + t (goal - start) + sum_m w_m k0(t, d_m)`` on [0, 1]. ``k0`` is the
Gaussian kernel conditioned on ``h(0) = h(1) = 0``, so that the end points are exact and the norm
does not pull a path to the origin (Koppel et al., Example 2). With ``A = (0, 1)``::

    k0(t, d) = k(t, d) - k(t, A) k(A, A)^-1 k(A, d)

which is a sum of Gaussians at ``d``, 0 and 1: that is how a trajectory is kept and evaluated.
"""

import functools
import math

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.core.factor import NUGGET
from kernel_constrained.core.kernels import whole_vectors
from kernel_constrained.core.komp import compress, Dictionary
from kernel_constrained.core.trajectory_steps import compressed_parts, operator_norm, sample

Array = npt.NDArray[np.float64]

# Times at which a basis is tabulated.
TABULATED = 257
ENDS = np.array([0.0, 1.0])
NO_PARAMETERS = np.zeros(2)
# sup |h^(n)(t)| <= |h| sqrt((2n - 1)!!) / bandwidth^n, attained: the n-th derivative of k0(t, .)
# has at most the norm of that of k(t, .).
DERIVATIVE_NORMS = (1.0, 1.0, math.sqrt(3.0), math.sqrt(15.0), math.sqrt(105.0))


def gaussian_derivatives(t: Array, atoms: Array, bandwidth: float) -> list[Array]:
    """Return the Gaussian kernel (n, m) and its first two derivatives in ``t``."""
    x = np.subtract.outer(t, atoms) / bandwidth
    k = np.exp(-0.5 * x * x)
    return [k, -x / bandwidth * k, (x * x - 1.0) / bandwidth**2 * k]


def weights_at_ends(dictionary: Array, bandwidth: float) -> Array:
    """Weights (2, m) of the Gaussians at 0 and 1 in ``k0`` at each point of a dictionary."""
    among, between = (gaussian_derivatives(ENDS, x, bandwidth)[0] for x in (ENDS, dictionary))
    return np.asarray(-np.linalg.solve(among, between), dtype=np.float64)


@attrs.frozen(eq=False)
class Trajectory:
    """A path from a start to a goal, ``t`` from 0 to 1.

    Attributes
    ----------
    bandwidth
        Standard deviation of the kernel in ``t``.
    atoms : (m,)
        Centres of the Gaussians, those at 0 and 1 last.
    coefficients : (D, m)
        Their weights, metres.
    start, goal : (D,)
        Ends, metres.
    norm
        Bound on the operator norm of ``u -> sum_d u_d h_d``, which bounds every derivative of
        ``h = f - chord`` in every direction, metres.
    """

    bandwidth: float
    atoms: Array
    coefficients: Array
    start: Array
    goal: Array
    norm: float

    @property
    def model_order(self) -> int:
        """Points of the dictionary, the ends not counted."""
        return len(self.atoms) - 2

    def __call__(self, t: npt.ArrayLike) -> Array:
        """Positions at times ``t`` (n,), shape (n, D)."""
        return self.derivative(t, 0)

    def derivative(self, t: npt.ArrayLike, order: int = 1) -> Array:
        """Return the derivative of an order up to 2 at times ``t`` (n,), shape (n, D)."""
        t = np.atleast_1d(np.asarray(t, dtype=float))
        h = gaussian_derivatives(t, self.atoms, self.bandwidth)[order] @ self.coefficients.T
        chord = self.goal - self.start
        if order == 0:
            return np.asarray(self.start + np.multiply.outer(t, chord) + h)
        return np.asarray(h + chord if order == 1 else h)

    def length(self, since: float = 0.0, samples: int = 257) -> float:
        """Length from time ``since`` on, metres."""
        return float(self.sampled(since, samples)[1][-1])

    def sampled(self, since: float, count: int) -> tuple[Array, Array]:
        """Return positions (count, D) at equal times from ``since`` on, and lengths up to each."""
        line, lengths = np.empty((count, len(self.start))), np.empty(count)
        sample(
            self.atoms, self.coefficients, self.bandwidth, self.start, self.goal, since, line,
            lengths,
        )  # fmt: skip
        return line, lengths

    def curvature(self, t: npt.ArrayLike) -> Array:
        """Curvature at times ``t`` (n,), 1/m, shape (n,)."""
        first, second = self.derivative(t, 1), self.derivative(t, 2)
        squared = (first * first).sum(1)
        across = squared * (second * second).sum(1) - (first * second).sum(1) ** 2
        return np.asarray(np.sqrt(np.maximum(across, 0.0)) / np.maximum(squared, 1e-12) ** 1.5)

    def derivative_bound(self, order: int) -> float:
        """Largest length that derivative ``order`` (1 to 4) of ``h`` can have, metres."""
        return self.norm * DERIVATIVE_NORMS[order] / self.bandwidth**order


class Basis:
    """A grid of dictionary points in (0, 1), and tables of their kernels.

    Parameters
    ----------
    bandwidth
        Standard deviation of the Gaussian kernel in ``t``.

    Attributes
    ----------
    dictionary : (m,)
        Grid points, about 0.6 bandwidths apart.
    atoms : (m + 2,)
        They and the ends.
    expansion : (m + 2, m)
        From weights of ``k0`` at the dictionary to weights of Gaussians at the atoms.
    gram : (m, m)
        ``k0`` between them.
    times : (n,)
        Where the tables are.
    values, first, second : (n, m)
        ``k0(t_i, d_m)`` and its derivatives in ``t``.
    projected : (n, m)
        ``gram^-1 k0(d, t_i)``: weights of the projection of ``k0(t_i, .)`` on the dictionary.
    projected_first, projected_second : (n, m)
        The same of the functionals that give the derivatives.
    closeness, speed_energy, bending_energy : (m, m)
        Mean products of values, of first and of second derivatives.
    """

    def __init__(self, bandwidth: float) -> None:
        self.bandwidth = bandwidth
        count = 4 * math.ceil(0.4 / bandwidth)
        self.dictionary = np.linspace(0.0, 1.0, count + 2)[1:-1]
        self.atoms = np.concatenate([self.dictionary, ENDS])
        self.expansion = np.vstack([np.eye(count), weights_at_ends(self.dictionary, bandwidth)])
        self.gram = self._tables(self.dictionary)[0]
        self.gram = 0.5 * (self.gram + self.gram.T)
        nugget = NUGGET * np.trace(self.gram) / count
        self._lower = np.linalg.cholesky(self.gram + nugget * np.eye(count))
        self.times = np.linspace(0.0, 1.0, TABULATED)
        self.values, self.first, self.second = self._tables(self.times)
        self.projected, self.projected_first, self.projected_second = (
            np.ascontiguousarray(self._solve(table.T).T)
            for table in (self.values, self.first, self.second)
        )
        weight = np.full(TABULATED, 1.0 / (TABULATED - 1))
        weight[[0, -1]] *= 0.5
        self.weight = weight
        self.closeness = self.values.T @ (weight[:, None] * self.values)
        self.speed_energy = self.first.T @ (weight[:, None] * self.first)
        self.bending_energy = self.second.T @ (weight[:, None] * self.second)
        self.mean_first = weight @ self.first
        self._fit = self._fitting()

    @property
    def count(self) -> int:
        """Points of the dictionary."""
        return len(self.dictionary)

    def fit(self, positions: Array) -> Array:
        """Weights (D, m) of the smooth path nearest to positions (TABULATED, D), chord and all."""
        chord = positions[0] + np.multiply.outer(self.times, positions[-1] - positions[0])
        return np.ascontiguousarray((self._fit @ (positions - chord)).T)

    def trajectory(self, weights: Array, start: Array, goal: Array) -> Trajectory:
        """Make a trajectory of weights (D, m)."""
        coefficients = np.ascontiguousarray(weights @ self.expansion.T)
        norm = float(operator_norm(np.ascontiguousarray(weights), self.gram))
        return Trajectory(self.bandwidth, self.atoms, coefficients, start, goal, norm)

    def compressed(self, weights: Array, start: Array, goal: Array, budget: float) -> Trajectory:
        """Make a trajectory with the fewest points that KOMP finds within a budget.

        No position moves by more than ``budget`` metres: ``|h(t)| <= |h| sqrt(k0(t, t))`` and
        ``k0(t, t) <= 1``.
        """
        d = self._dictionary(weights)
        order, _ = compress(d, self.count, 0.0, budget * budget, self.count)
        atoms, coefficients, norm = compressed_parts(
            d.points, d.weights, order, self.dictionary, self.expansion, self.gram
        )
        return Trajectory(self.bandwidth, atoms, coefficients, start, goal, norm)

    def _tables(self, t: Array) -> list[Array]:
        derivatives = gaussian_derivatives(t, self.atoms, self.bandwidth)
        return [np.ascontiguousarray(one @ self.expansion) for one in derivatives]

    def _solve(self, right: Array) -> Array:
        return np.linalg.solve(self._lower.T, np.linalg.solve(self._lower, right))

    def _fitting(self) -> Array:
        """Matrix (m, n) of the ridge regression that :meth:`fit` is."""
        ridge = 1e-5 * self.gram + 1e-9 * np.eye(self.count)
        weighted = self.values * self.weight[:, None]
        return np.linalg.solve(self.values.T @ weighted + ridge, weighted.T)

    def _dictionary(self, weights: Array) -> Dictionary:
        """Arrays for KOMP, copied from what the bandwidth gives."""
        order = self.count
        stride = int(whole_vectors(order))
        factor, diagonal = self._inverse_lower
        points = np.zeros((1, stride))
        points[0, :order] = self.dictionary
        padded = np.zeros((len(weights), stride))
        padded[:, :order] = weights
        scratch = np.zeros((4, stride))
        return Dictionary(
            0, NO_PARAMETERS, points, padded, factor.copy(), diagonal.copy(), scratch[0],
            scratch[1], scratch[2], scratch[3], np.zeros(stride, dtype=np.int64),
            np.zeros((2, stride)), np.zeros(stride),
        )  # fmt: skip

    @functools.cached_property
    def _inverse_lower(self) -> tuple[Array, Array]:
        """Inverse Cholesky factor of the Gram matrix, padded, and the diagonal of its inverse."""
        factor = np.zeros((self.count, int(whole_vectors(self.count))))
        factor[:, : self.count] = np.linalg.inv(self._lower)
        return factor, (factor * factor).sum(0)


@functools.lru_cache(maxsize=64)
def basis_of(bandwidth: float) -> Basis:
    """Return the basis of a bandwidth, made once."""
    return Basis(bandwidth)
