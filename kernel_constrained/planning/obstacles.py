# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What a path keeps clear of: discs, a grid of distances, and a box."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled
from kernel_constrained.planning.grid import interpolated

Array = npt.NDArray[np.float64]

# Positions along a path for which the discs nearby are looked up together.
PIECE = 16
# Depth where there is no obstacle at all, metres; finite, so that products with 0 are 0.
NOWHERE = 1e6


class Obstacles(NamedTuple):
    """What the centre of the robot keeps away from, in the frame of the path; metres.

    Obstacles in a plane count as columns of every height for a path in space.

    Attributes
    ----------
    points : (2, n) or (3, n)
        Centres of discs or balls: end points of beams, and the centres of circles.
    keep : (n,)
        Distance that the robot's centre keeps from each: the disc's radius, the robot's, and the
        margin.
    grid : (columns, rows)
        Signed distance to the map's obstacles at the nodes of a grid, first index along x;
        (0, 0) without a map.
    grid_origin : (2,)
        Position of ``grid[0, 0]``.
    grid_spacing : float
        Distance between nodes.
    grid_keep : float
        Distance that the robot's centre keeps from the map's obstacles.
    low, high : (D,)
        Box in which the robot's centre stays.
    """

    points: Array
    keep: Array
    grid: Array
    grid_origin: Array
    grid_spacing: float
    grid_keep: float
    low: Array
    high: Array


def in_the_open(dimensions: int = 2) -> Obstacles:
    """Return no obstacles at all."""
    return Obstacles(
        np.empty((2, 0)), np.empty(0), np.empty((0, 0)), np.zeros(2), 1.0, 0.0,
        np.full(dimensions, -np.inf), np.full(dimensions, np.inf),
    )  # fmt: skip


@compiled
def coordinates(points):
    """Return x, y and z of points (2, n) or (3, n), and 1 where the last counts, 0 in a plane.

    With a number of dimensions that is known only when it runs, no loop over points is vectorised.
    """
    plane = points.shape[0]
    return points[0], points[1], points[plane - 1], plane - 2.0


@compiled
def deepest(position, points, count, keep, o, gradient):
    """Return how deep a position is inside what is kept clear of, and fill the gradient.

    Negative outside: minus the distance that is left. Discs are those of ``points[:, :count]``
    with ``keep``; grid and box are those of ``o``.
    """
    return deepest_facing(position, points, count, keep, o, 0.0, 0.0, 0.0, gradient)


@compiled
def deepest_facing(position, points, count, keep, o, ax, ay, az, gradient):
    """Do what :func:`deepest` does for what has no gradient along a direction ``ax, ay, az``."""
    plane, dimensions = points.shape[0], position.shape[0]
    depth, index = -NOWHERE, -1
    x, y, z, high = coordinates(points)
    px, py, pz = position[0], position[1], position[plane - 1]
    for i in range(count):
        dx, dy, dz = x[i] - px, y[i] - py, high * (z[i] - pz)
        inside = keep[i] - math.sqrt(dx * dx + dy * dy + dz * dz)
        # Not "and": two branches that are hard to foretell cost far more than the sum.
        if (inside > depth) & (dx * ax + dy * ay + dz * az <= 0.0):
            depth, index = inside, i
    for d in range(dimensions):
        gradient[d] = 0.0
    if index >= 0:
        inverse = 1.0 / max(keep[index] - depth, 1e-9)
        for d in range(plane):
            gradient[d] = (points[d, index] - position[d]) * inverse
    if o.grid.shape[0] > 0:
        distance, dx, dy = interpolated(
            o.grid, o.grid_origin, o.grid_spacing, position[0], position[1]
        )
        if o.grid_keep - distance > depth and -dx * ax - dy * ay <= 0.0:
            depth = o.grid_keep - distance
            for d in range(dimensions):
                gradient[d] = 0.0
            gradient[0], gradient[1] = -dx, -dy
    for d in range(dimensions):
        along = ax if d == 0 else ay if d == 1 else az
        for side in range(-1, 2, 2):
            inside = o.low[d] - position[d] if side < 0 else position[d] - o.high[d]
            if inside > depth and side * along <= 0.0:
                depth = inside
                for other in range(dimensions):
                    gradient[other] = 0.0
                gradient[d] = side
    return depth


@compiled
def copy_flagged(points, keep, flags, near, near_keep):
    """Copy the discs whose flags are not 0; return their number."""
    found = 0
    for i in range(points.shape[1]):
        if flags[i]:
            for d in range(points.shape[0]):
                near[d, found] = points[d, i]
            near_keep[found] = keep[i]
            found += 1
    return found


@compiled
def deepest_along(positions, o, reach, flags, near, near_keep, depth, gradient):
    """Do what :func:`deepest` does for positions (k, D) in the order of the path.

    Discs are sorted by pieces of the path first: what is further than ``reach`` from all of a
    piece is not looked at, and a depth below ``-reach`` may come out as anything below that.
    ``flags`` (n,) of uint8, ``near`` and ``near_keep`` like the points are scratch.
    """
    for first in range(0, positions.shape[0], PIECE):
        last = min(first + PIECE, positions.shape[0])
        found = near_piece(positions, first, last, o, reach, flags, near, near_keep)
        for i in range(first, last):
            depth[i] = deepest(positions[i], near, found, near_keep, o, gradient[i])


@compiled
def near_piece(positions, first, last, o, reach, flags, near, near_keep):
    """Copy the discs that may be within ``reach`` of a piece of a path; return their number."""
    plane, squared = o.points.shape[0], 0.0
    middle = positions[(first + last) // 2]
    for i in range(first, last):
        gap = 0.0
        for d in range(plane):
            gap += (positions[i, d] - middle[d]) ** 2
        squared = max(squared, gap)
    radius = math.sqrt(squared) + reach
    x, y, z, high = coordinates(o.points)
    mx, my, mz = middle[0], middle[1], middle[plane - 1]
    for i in range(x.shape[0]):  # no branches: nearly all of the time goes here
        dx, dy, dz = x[i] - mx, y[i] - my, high * (z[i] - mz)
        flags[i] = dx * dx + dy * dy + dz * dz < (radius + o.keep[i]) ** 2
    return copy_flagged(o.points, o.keep, flags, near, near_keep)


@compiled
def crossings(position, axis, o, reach, enter, leave):
    """Fill where a line enters and leaves discs within ``reach`` (m,), metres along ``axis``.

    ``axis`` (D,) has length one; returns how many discs the line crosses.
    """
    plane = o.points.shape[0]
    squared = 1e-12  # of the axis in the plane of the discs
    for d in range(plane):
        squared += axis[d] * axis[d]
    found = 0
    for i in range(o.points.shape[1]):
        along, apart = 0.0, 0.0
        for d in range(plane):
            gap = o.points[d, i] - position[d]
            along += gap * axis[d]
            apart += gap * gap
        inside = o.keep[i] * o.keep[i] - apart + along * along / squared
        if inside > 0.0:
            middle, half = along / squared, math.sqrt(inside / squared)
            if middle - half < reach and middle + half > -reach:
                enter[found], leave[found] = middle - half, middle + half
                found += 1
    return found


@compiled
def beyond_box(position, axis, far, low, high):
    """Return where a line that is at ``far`` along an axis is inside the box again, if ever."""
    back = far
    for d in range(low.shape[0]):
        at = position[d] + far * axis[d]
        if at < low[d]:
            back = max(back, far + (low[d] - at) / axis[d] if axis[d] > 0.0 else NOWHERE)
        elif at > high[d]:
            back = max(back, far + (high[d] - at) / axis[d] if axis[d] < 0.0 else NOWHERE)
    return back


@compiled
def way_out(position, axis, o, reach, enter, leave, count):
    """Return how far it is along an axis to where nothing is touched, ``reach`` if too far.

    ``enter`` and ``leave`` are the first ``count`` :func:`crossings`.
    """
    far, before = 0.0, -1.0
    while before < far < reach:
        before = far
        for i in range(count):
            if enter[i] <= far < leave[i]:
                far = leave[i]
        if o.grid.shape[0] > 0:
            x, y = position[0] + far * axis[0], position[1] + far * axis[1]
            depth = o.grid_keep - interpolated(o.grid, o.grid_origin, o.grid_spacing, x, y)[0]
            if depth > 0.0:
                far += max(depth, o.grid_spacing)
        far = beyond_box(position, axis, far, o.low, o.high)
    return min(far, reach)


@compiled
def shorter_way_out(position, depth, gradient, o, reach, enter, leave):
    """Turn the depth of a position into the way out of all obstacles along its gradient.

    Where discs overlap, the deepest one pushes into the next, and that one back: a path between
    the two stays. The shorter way out of both leads past one of them. Returns its length and turns
    ``gradient`` (D,), which has any length, into the unit vector against it; both stay as they are
    where there is nothing to get out of, or no way within ``reach``.
    """
    squared = 0.0
    for d in range(gradient.shape[0]):
        squared += gradient[d] * gradient[d]
    if not (depth > 0.0 and squared > 1e-12):
        return depth
    inverse = 1.0 / math.sqrt(squared)
    for d in range(gradient.shape[0]):
        gradient[d] *= -inverse
    count = crossings(position, gradient, o, reach, enter, leave)
    ahead = way_out(position, gradient, o, reach, enter, leave, count)
    for i in range(count):
        enter[i], leave[i] = -leave[i], -enter[i]
    for d in range(gradient.shape[0]):
        gradient[d] = -gradient[d]
    behind = way_out(position, gradient, o, reach, enter, leave, count)
    sign = 1.0 if ahead <= behind else -1.0
    if min(ahead, behind) >= reach:
        ahead, behind, sign = depth, depth, math.sqrt(squared)
    for d in range(gradient.shape[0]):
        gradient[d] *= sign
    return min(ahead, behind)
