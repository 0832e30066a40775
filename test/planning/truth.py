# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What trajectories and obstacles truly are: at many times, with no shortcut."""

import functools

import numba
import numpy as np

from kernel_constrained.core.trajectory import basis_of
from kernel_constrained.planning.obstacles import in_the_open

MANY = 100001


def discs(points, keep, dimensions=2, low=-np.inf, high=np.inf):
    """Return obstacles (2 or 3, n) that the centre keeps ``keep`` (n,) from, in a box."""
    points = np.ascontiguousarray(points, dtype=float)
    keep = np.array(np.broadcast_to(keep, points.shape[1]), dtype=float)  # of its own: writable
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
    """Return times (many,) and the kernels of the basis there, (m, many)."""
    basis, times = basis_of(bandwidth), np.linspace(0.0, 1.0, many)
    scaled = np.subtract.outer(basis.atoms, times) / bandwidth
    return times, np.ascontiguousarray(basis.expansion.T @ np.exp(-0.5 * scaled * scaled))


def along(bandwidth, weights, start, goal, many=MANY):
    """Return positions (D, many) of a trajectory."""
    times, values = table(bandwidth, many)
    line = weights @ values
    for d, row in enumerate(line):
        row += start[d] + times * (goal[d] - start[d])
    return line


@numba.njit(fastmath=True)
def fill_squares(line, point, squares):
    for k in range(line.shape[1]):
        squares[k] = (line[0, k] - point[0]) ** 2 + (line[1, k] - point[1]) ** 2
    if len(point) > 2:
        for k in range(line.shape[1]):
            squares[k] += (line[2, k] - point[2]) ** 2


@numba.njit(fastmath=True)
def fill_least(line, points, least):
    squares = np.empty(line.shape[1])
    for i in range(points.shape[1]):
        fill_squares(line, points[:, i], squares)
        least[i] = np.sqrt(squares.min())


def distances(line, points):
    """Return the least distance (n,) of positions (D, k) to each of points (2 or 3, n)."""
    least = np.empty(points.shape[1])
    fill_least(np.ascontiguousarray(line), np.ascontiguousarray(points), least)
    return least


@numba.njit(fastmath=True)
def fill_left(line, points, keep, left):
    squares = np.empty(line.shape[1])
    for i in range(points.shape[1]):
        fill_squares(line, points[:, i], squares)
        for k in range(line.shape[1]):
            gap = np.sqrt(squares[k]) - keep[i]
            left[k] = gap if gap < left[k] else left[k]


def clearance(line, obstacles):
    """Return the least of what is left beyond what is kept clear, (k,), discs and box."""
    left = np.full(line.shape[1], np.inf)
    for row, low, high in zip(line, obstacles.low, obstacles.high):
        if np.isfinite(high - low):
            np.minimum(left, np.minimum(row - low, high - row), out=left)
    fill_left(np.ascontiguousarray(line), obstacles.points, obstacles.keep, left)
    return left


def bow(basis, sideways):
    """Return weights (2, m) of a path that bends off the chord by ``sideways`` (2,) metres."""
    shape = np.sin(np.pi * basis.times)[:, None] * np.asarray(sideways)
    return basis.fit(shape)
