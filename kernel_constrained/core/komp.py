# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Kernel orthogonal matching pursuit, destructive: the cheapest atoms go while the budget lasts.

Vincent and Bengio (2002), section 2.3; Koppel et al., Eqs. (20) and (21). Removing atom ``j`` and
projecting what is left costs ``|w_j|^2 / (K^-1)_jj`` of squared RKHS norm, summed over the
functions that share the dictionary. Projections are nested, so squared costs add exactly.
"""

from typing import NamedTuple

import numpy as np

from kernel_constrained.core.compilation import compiled
from kernel_constrained.core.factor import append_atom, NUGGET, project, remove_atom
from kernel_constrained.core.kernels import kernel_at, whole_vectors

# Below this Schur complement a newcomer is its own projection to within rounding.
DEPENDENT = 1e-7
# So is it below this, near where a kernel vanishes: squares of its inverse would overflow.
LEAST_GAP = 1e-150


class Dictionary(NamedTuple):
    """Atoms, weights and factor of functions that share a dictionary, in preallocated arrays."""

    kernel_code: int
    kernel_parameters: np.ndarray
    points: np.ndarray  # (p, stride): one atom a column
    weights: np.ndarray  # (functions, stride): one function a row
    factor: np.ndarray  # (capacity, stride): inverse Cholesky factor S
    diagonal: np.ndarray  # (stride,): diagonal of K^-1
    late: np.ndarray  # (stride,): update that the covariance has yet to receive
    usage: np.ndarray  # (stride,): how many samples have come near an atom since it was added
    projection: np.ndarray  # (stride,): K^-1 k, and scratch of a removal
    cost: np.ndarray  # (stride,): removal costs
    bits: np.ndarray  # (stride,): int64 scratch of the exponential
    rotations: np.ndarray  # (2, stride): rotations of a removal
    coordinates: np.ndarray  # (stride,): orthonormal coordinates of the newest sample


@compiled
def squared_weights(d, order):
    """Fill ``d.cost`` with the squared weights of each atom, summed over the functions."""
    count = whole_vectors(order)
    for j in range(count):
        d.cost[j] = 0.0
    for f in range(d.weights.shape[0]):
        row = d.weights[f]
        for j in range(count):
            d.cost[j] += row[j] * row[j]


@compiled
def cheapest_atom(d, order):
    """Return (index, squared cost) of the atom whose removal costs least."""
    squared_weights(d, order)
    best, index = np.inf, 0
    for j in range(order):
        cost = d.cost[j] / d.diagonal[j]
        if cost < best:
            best, index = cost, j
    return index, best


@compiled
def is_cheapest(d, order, newcomer, gap):
    """Whether removing the newcomer, of squared cost ``newcomer``, costs no more than any atom."""
    squared_weights(d, order)
    inverse_gap = 1.0 / gap
    dearer = True
    for j in range(order):
        norm = d.diagonal[j] + d.projection[j] * d.projection[j] * inverse_gap
        dearer &= d.cost[j] >= newcomer * norm
    return dearer


@compiled
def add_atom(d, x, k, coefficients, order, budget):
    """Add ``coefficients[f] * k(x, .)`` to each function ``f``; return (order, error spent).

    The error is squared; ``k`` is the kernel vector of ``x``. The fast path: where the
    newcomer is the cheapest of all and fits the budget, it is projected at once and nothing but
    the weights changes.
    """
    norm = kernel_at(d.kernel_code, d.kernel_parameters, x) * (1.0 + NUGGET)
    gap = norm - project(d.factor, k, order, d.projection)
    squared = 0.0
    for f in range(coefficients.shape[0]):
        squared += coefficients[f] * coefficients[f]
    if squared == 0.0:
        return order, 0.0
    newcomer = squared * max(gap, 0.0)
    dependent = gap < max(DEPENDENT * norm, LEAST_GAP)
    if dependent or (newcomer <= budget and is_cheapest(d, order, newcomer, gap)):
        for f in range(coefficients.shape[0]):
            row = d.weights[f]
            for j in range(whole_vectors(order)):
                row[j] += coefficients[f] * d.projection[j]
        return order, newcomer
    append_atom(d.factor, d.diagonal, d.projection, gap, order)
    append_point(d, x, order)
    for f in range(coefficients.shape[0]):
        d.weights[f, order] = coefficients[f]
    return order + 1, 0.0


@compiled
def append_point(d, x, order):
    """Keep the coordinates of a new atom."""
    for c in range(d.points.shape[0]):
        d.points[c, order] = x[c]


@compiled
def remove_point(d, j, order):
    """Close the gap that atom ``j`` leaves in the coordinates."""
    for c in range(d.points.shape[0]):
        row = d.points[c]
        for i in range(j, order - 1):
            row[i] = row[i + 1]
        row[order - 1] = 0.0


@compiled
def drop_atom(d, j, order):
    """Remove atom ``j`` and project every function on what is left; return the new order."""
    remove_atom(d.factor, d.diagonal, j, order, d.projection, d.rotations)
    for f in range(d.weights.shape[0]):
        row = d.weights[f]
        scale = row[j] / d.projection[j]
        for i in range(order):
            row[i] -= scale * d.projection[i]
        for i in range(j, order - 1):
            row[i] = row[i + 1]
        row[order - 1] = 0.0
    remove_point(d, j, order)
    return order - 1


@compiled
def compress(d, order, spent, budget, max_order):
    """Remove atoms while the squared error stays within ``budget``; return (order, spent).

    Above ``max_order`` atoms go whatever they cost.
    """
    while order > 0:
        j, cost = cheapest_atom(d, order)
        if spent + cost > budget and order <= max_order:
            break
        spent += cost
        order = drop_atom(d, j, order)
    return order, spent
