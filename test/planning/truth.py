# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What trajectories and obstacles truly are: at many times, in numpy, with no shortcut."""

import functools

import numpy as np

from kernel_constrained.core.trajectory import basis_of
from kernel_constrained.planning.obstacles import in_the_open

MANY = 100001


def discs(points, keep, dimensions=2, low=-np.inf, high=np.inf):
    """Return obstacles (2 or 3, n) that the centre keeps ``keep`` (n,) from, in a box."""
    points = np.ascontiguousarray(points, dtype=float)
    keep = np.ascontiguousarray(np.broadcast_to(keep, points.shape[1]), dtype=float)
    corners = (np.full(dimensions, corner, dtype=float) for corner in (low, high))
    box = dict(zip(('low', 'high'), corners))
    return in_the_open(dimensions)._replace(points=points, keep=keep, **box)


def circles_of(world, margin=0.0):
    """Return what the centre of a world's robot keeps from: circles, and the bounds."""
    return discs(
        world.circles[:, :2].T, world.circles[:, 2] + world.radius + margin,
        low=world.bounds[0] + world.radius, high=world.bounds[1] - world.radius,
    )  # fmt: skip


@functools.lru_cache(maxsize=4)
def table(bandwidth, many=MANY):
    """Return times (many,) and the kernels of the basis there (many, m)."""
    basis, times = basis_of(bandwidth), np.linspace(0.0, 1.0, many)
    scaled = np.subtract.outer(times, basis.atoms) / bandwidth
    return times, np.exp(-0.5 * scaled * scaled) @ basis.expansion


def along(bandwidth, weights, start, goal, many=MANY):
    """Return positions (many, D) of a trajectory."""
    times, values = table(bandwidth, many)
    return start + times[:, None] * (goal - start) + values @ weights.T


def distances(positions, points):
    """Return the least distance (n,) of positions (k, D) to each of points (2 or 3, n)."""
    least = np.full(points.shape[1], np.inf)
    for i, point in enumerate(points.T):
        gaps = positions[:, : len(point)] - point
        least[i] = np.sqrt(np.einsum('kd,kd->k', gaps, gaps).min())
    return least


def clearance(positions, obstacles):
    """Return the least of what is left beyond what is kept clear, (k,), discs and box."""
    left = np.minimum(
        (positions - obstacles.low).min(1), (obstacles.high - positions).min(1)
    )
    for point, keep in zip(obstacles.points.T, obstacles.keep):
        gaps = positions[:, : len(point)] - point
        left = np.minimum(left, np.sqrt(np.einsum('kd,kd->k', gaps, gaps)) - keep)
    return left


def bow(basis, sideways):
    """Return weights (2, m) of a path that bends off the chord by ``sideways`` (2,) metres."""
    shape = np.sin(np.pi * basis.times)[:, None] * np.asarray(sideways)
    return basis.fit(shape)
