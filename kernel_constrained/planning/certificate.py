# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Proofs that a trajectory is free between its samples too.

On ``[t - d, t + d]`` the path differs from its tangent ``f(t) + u f'(t)``, ``|u| <= d``, by no
more than the remainder of Taylor's series, bounded by the RKHS norm::

    |f''(t)| d^2/2 + min(|f'''(t)| d^3/6 + sqrt(105) N d^4 / (24 s^4), sqrt(15) N d^3 / (6 s^3))

and by ``sqrt(3) N d^2 / (2 s^2)``, ``s`` being the bandwidth. So the piece is free where the
distance of the tangent segment to every disc exceeds what is to be kept plus the remainder.
Distances of a grid are known at points only: there the piece is free where the distance at
``f(t)`` exceeds what is to be kept, the remainder, and ``|f'(t)| d``. What is not proven is
halved. Comparisons are such that nothing is proven of what is not a number.
"""

import enum
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.core.trajectory import Trajectory
from kernel_constrained.core.trajectory_steps import evaluate
from kernel_constrained.planning.grid import lower_bound
from kernel_constrained.planning.obstacles import coordinates, copy_flagged, Obstacles

Array = npt.NDArray[np.float64]

# Pieces that the obstacles are sorted by, pieces that each is divided into at first, and how
# often these are halved: at most a 65,536th of the path stays undecided at a touching point.
COARSE, FINE, DEPTH = 8, 4, 11
# Larger than all that rounding can make of a distance, metres.
SLACK = 1e-9


class Status(enum.IntEnum):
    """What came of an attempt at a proof."""

    VIOLATED = -1
    UNDECIDED = 0
    PROVEN = 1


class Proof(NamedTuple):
    """What is proven of a trajectory.

    Attributes
    ----------
    status
        Whether the whole of it is free, is not, or could not be decided.
    where
        Time of the first fault, 1 where there is none: all before it is proven free.
    evaluations
        How often the trajectory was evaluated.
    """

    status: Status
    where: float
    evaluations: int


def prove(trajectory: Trajectory, obstacles: Obstacles, since: float = 0.0) -> Proof:
    """Prove that a trajectory keeps clear of all obstacles from time ``since`` to its end.

    Parameters
    ----------
    trajectory
        In two or three dimensions; obstacles in a plane are columns.
    obstacles
        What to keep clear of; ``low`` and ``high`` have the trajectory's dimensions.
    since
        Where the proof begins, 0 to 1.

    Raises
    ------
    ValueError
        Where the dimensions differ.
    """
    dimensions = len(trajectory.start)
    if len(obstacles.low) != dimensions or len(obstacles.points) > dimensions:
        raise ValueError(
            f'a trajectory in {dimensions} dimensions cannot be held against a box in '
            f'{len(obstacles.low)} and points in {len(obstacles.points)}'
        )
    status, where, evaluations = proven_from(
        since, trajectory.atoms, trajectory.coefficients, trajectory.bandwidth,
        trajectory.norm, trajectory.start, trajectory.goal, obstacles,
    )  # fmt: skip
    return Proof(Status(status), where, evaluations)


@compiled
def length_of(vector, dimensions):
    """Euclidean length of the first coordinates."""
    squared = 0.0
    for d in range(dimensions):
        squared += vector[d] * vector[d]
    return math.sqrt(squared)


@compiled
def remainder(second, third, half, norm, bandwidth):
    """Bound how far the path is from its tangent within ``half`` of a time (module docstring).

    ``second`` and ``third`` are the lengths of the derivatives there.
    """
    step = half / bandwidth
    cubic = math.sqrt(15.0) * norm * step * step * step / 6.0
    quartic = math.sqrt(105.0) * norm * step * step * step * step / 24.0
    local = 0.5 * second * half * half + min(third * half * half * half / 6.0 + quartic, cubic)
    return min(local, 0.5 * math.sqrt(3.0) * norm * step * step)


@compiled
def inverse_square(vector, dimensions):
    """Inverse of the squared length of the first coordinates, finite for a length of 0."""
    squared = 1e-300
    for d in range(dimensions):
        squared += vector[d] * vector[d]
    return 1.0 / squared


@compiled
def flag_touching(points, count, keep, f, half, rest, flags):
    """Flag discs ``points[:, :count]`` that a tangent segment with a remainder may touch.

    Return how many. No branches: nearly all of the time of a proof goes here.
    """
    inverse, touching = inverse_square(f[1], points.shape[0]), 0
    x, y, z, high = coordinates(points)
    last = points.shape[0] - 1
    px, py, pz, vx, vy, vz = f[0, 0], f[0, 1], f[0, last], f[1, 0], f[1, 1], high * f[1, last]
    for i in range(count):
        dx, dy, dz = x[i] - px, y[i] - py, high * (z[i] - pz)
        along = min(max((dx * vx + dy * vy + dz * vz) * inverse, -half), half)
        dx, dy, dz = dx - along * vx, dy - along * vy, dz - along * vz
        reach = keep[i] + rest
        flags[i] = not dx * dx + dy * dy + dz * dz > reach * reach
        touching += flags[i]
    return touching


@compiled
def near_points(points, keep, f, half, rest, flags, near, near_keep):
    """Copy the discs that a tangent segment with a remainder may touch; return their number."""
    flag_touching(points, points.shape[1], keep, f, half, rest, flags)
    return copy_flagged(points, keep, flags, near, near_keep)


@compiled
def outside_box(f, half, rest, low, high):
    """Whether the piece may leave the box; infinite sides never do."""
    outside = False
    for d in range(low.shape[0]):
        reach = abs(f[1, d]) * half + rest
        outside |= not (f[0, d] - reach >= low[d] and f[0, d] + reach <= high[d])
    return outside


@compiled
def may_touch(f, half, rest, points, count, keep, flags, o):
    """Whether a piece may touch anything: discs ``points[:, :count]``, grid or box."""
    if outside_box(f, half, rest, o.low, o.high):
        return True
    if o.grid.shape[0] > 0:
        reach = length_of(f[1], 2) * half + rest + o.grid_keep
        if not lower_bound(o.grid, o.grid_origin, o.grid_spacing, f[0, 0], f[0, 1]) > reach:
            return True
    return flag_touching(points, count, keep, f, half, rest, flags) > 0


@compiled_allocating
def proven_from(since, atoms, coefficients, bandwidth, norm, start, goal, o):
    """Return (status, time of the first fault, evaluations)."""
    dimensions = start.shape[0]
    near, near_keep = np.empty_like(o.points), np.empty_like(o.keep)
    flags = np.empty(o.keep.shape[0], np.uint8)
    stride = (atoms.shape[0] + 7) & ~7
    scratch, bits = np.empty((4, stride)), np.empty(stride, np.int64)
    f = np.empty((4, dimensions))
    begin, half = np.empty(FINE + DEPTH), np.empty(FINE + DEPTH)
    coarse_half = 0.5 * (1.0 - since) / COARSE
    evaluations = 0
    for coarse in range(COARSE):
        t = since + (2 * coarse + 1) * coarse_half
        evaluate(t, atoms, coefficients, bandwidth, start, goal, f, scratch, bits)
        evaluations += 1
        second, third = length_of(f[2], dimensions), length_of(f[3], dimensions)
        rest = remainder(second, third, coarse_half, norm, bandwidth) + SLACK
        count = near_points(o.points, o.keep, f, coarse_half, rest, flags, near, near_keep)
        waiting = FINE
        for i in range(FINE):  # the earliest piece on top
            half[i] = coarse_half / FINE
            begin[i] = t - coarse_half + 2 * (FINE - 1 - i) * half[i]
        if not may_touch(f, coarse_half, rest, near, count, near_keep, flags, o):
            waiting = 0
        while waiting > 0:
            waiting -= 1
            earliest, width = begin[waiting], half[waiting]
            t = earliest + width
            evaluate(t, atoms, coefficients, bandwidth, start, goal, f, scratch, bits)
            evaluations += 1
            second, third = length_of(f[2], dimensions), length_of(f[3], dimensions)
            rest = remainder(second, third, width, norm, bandwidth) + SLACK
            if not may_touch(f, width, rest, near, count, near_keep, flags, o):
                continue
            if may_touch(f, 0.0, -SLACK, near, count, near_keep, flags, o):
                return -1, earliest, evaluations
            if width * (1 << DEPTH) <= coarse_half / FINE:
                return 0, earliest, evaluations
            half[waiting] = half[waiting + 1] = 0.5 * width
            begin[waiting], begin[waiting + 1] = t, earliest
            waiting += 2
    return 1, 1.0, evaluations
