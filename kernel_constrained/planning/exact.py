# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Exact distances and ranges to discs, moving discs and walls, as they truly are."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled

Array = npt.NDArray[np.float64]


class Walls(NamedTuple):
    """The occupied cells of a map as closed squares.

    Attributes
    ----------
    occupied : (columns, rows) of uint8
        Which cells, first index along x.
    below, above : (columns, rows)
        Nearest occupied row of the same column at or below, at or above; infinite if none.
    origin : (2,)
        Lower left corner of the first cell, metres.
    resolution : float
        Side of a cell, metres.
    """

    occupied: npt.NDArray[np.uint8]
    below: Array
    above: Array
    origin: Array
    resolution: float


def walls_of(occupied: npt.NDArray[np.bool_], origin: Array, resolution: float) -> Walls:
    """Prepare occupied cells (columns, rows) for :func:`distances_to` and :func:`cast`."""
    rows = np.arange(occupied.shape[1])
    below = np.maximum.accumulate(np.where(occupied, rows, -np.inf), axis=1)
    above = np.minimum.accumulate(np.where(occupied, rows, np.inf)[:, ::-1], axis=1)[:, ::-1]
    return Walls(
        np.ascontiguousarray(occupied, dtype=np.uint8),
        np.ascontiguousarray(below), np.ascontiguousarray(above),
        np.array(origin[:2], dtype=np.float64), float(resolution),
    )  # fmt: skip


NO_WALLS = walls_of(np.zeros((0, 0), dtype=np.bool_), np.zeros(2), 1.0)


@compiled
def wall_distance(occupied, below, above, u, v):
    """Distance of a point to the nearest occupied square, all in cells; inf without any.

    Columns are looked at from the point outwards until they are further away than what was found.
    """
    columns, rows = occupied.shape
    best = np.inf
    here = min(max(math.floor(u), 0), columns - 1)
    row = min(max(math.floor(v), 0), rows - 1)
    for step in range(columns):
        open_side = False
        for side in range(2 if step else 1):
            column = here + step if side == 0 else here - step
            if column < 0 or column >= columns:
                continue
            across = max(column - u, u - (column + 1), 0.0)
            if across * across >= best:
                continue
            open_side = True
            up, down = above[column, row], below[column, row]
            along = min(max(up - v, v - (up + 1), 0.0), max(down - v, v - (down + 1), 0.0))
            best = min(best, across * across + along * along)
        if step and not open_side:
            break
    return math.sqrt(best)


@compiled
def mover_distance(movers, x, y, time):
    """Distance of a point to the nearest moving disc (rows as :attr:`Mover.row`) at a time."""
    best = np.inf
    for k in range(movers.shape[0]):
        turn = movers[k, 5] + movers[k, 4] * time
        share = turn - 2.0 * math.floor(0.5 * turn)
        share = min(share, 2.0 - share)
        dx = x - movers[k, 0] - share * movers[k, 2]
        dy = y - movers[k, 1] - share * movers[k, 3]
        best = min(best, math.sqrt(dx * dx + dy * dy) - movers[k, 6])
    return best


@compiled
def distances_to(
    points, times, discs, movers, occupied, below, above, origin, resolution, distances
):
    """Write the distance of points (n, 2) at times (n,) to all there is, metres.

    That is discs (k, 3), moving discs (m, 7) and occupied squares.
    """
    for i in range(points.shape[0]):
        x, y = points[i, 0], points[i, 1]
        best = mover_distance(movers, x, y, times[i])
        for k in range(discs.shape[0]):
            dx, dy = x - discs[k, 0], y - discs[k, 1]
            best = min(best, math.sqrt(dx * dx + dy * dy) - discs[k, 2])
        if occupied.shape[0]:
            u, v = (x - origin[0]) / resolution, (y - origin[1]) / resolution
            best = min(best, wall_distance(occupied, below, above, u, v) * resolution)
        distances[i] = best


@compiled
def wall_range(occupied, u, v, along_x, along_y, reach):
    """Range in cells at which a ray first meets an occupied square; inf beyond ``reach``.

    From cell to cell, as Amanatides and Woo (1987) have it.
    """
    columns, rows = occupied.shape
    enter, leave = 0.0, reach
    for start, direction, size in ((u, along_x, columns), (v, along_y, rows)):
        if direction != 0.0:
            first, second = -start / direction, (size - start) / direction
            enter, leave = max(enter, min(first, second)), min(leave, max(first, second))
        elif start < 0.0 or start >= size:
            return np.inf
    column = min(max(math.floor(u + enter * along_x), 0), columns - 1)
    row = min(max(math.floor(v + enter * along_y), 0), rows - 1)
    step_x, step_y = (1 if along_x > 0.0 else -1), (1 if along_y > 0.0 else -1)
    width = abs(1.0 / along_x) if along_x != 0.0 else np.inf
    height = abs(1.0 / along_y) if along_y != 0.0 else np.inf
    next_x = (column + (step_x > 0) - u) / along_x if along_x != 0.0 else np.inf
    next_y = (row + (step_y > 0) - v) / along_y if along_y != 0.0 else np.inf
    here = enter
    while here <= leave:
        if occupied[column, row]:
            return here
        if next_x < next_y:
            here, next_x, column = next_x, next_x + width, column + step_x
        else:
            here, next_y, row = next_y, next_y + height, row + step_y
        if column < 0 or column >= columns or row < 0 or row >= rows:
            return np.inf
    return np.inf


@compiled
def cast(x, y, first, increment, discs, occupied, origin, resolution, reach, ranges):
    """Write into ``ranges`` (n,) how far each ray gets; inf where it meets nothing within reach.

    Parameters
    ----------
    x, y
        Where the rays begin, metres.
    first, increment
        Bearing of the first ray and from each to the next, radians.
    discs : (k, 3)
        Centres and radii; metres. A ray that begins inside one has range 0.
    occupied, origin, resolution
        Of :class:`Walls`.
    reach
        How far rays go, metres.
    ranges : (n,)
        The result.
    """
    for i in range(ranges.shape[0]):
        along_x, along_y = math.cos(first + i * increment), math.sin(first + i * increment)
        best = np.inf
        for k in range(discs.shape[0]):
            dx, dy, radius = discs[k, 0] - x, discs[k, 1] - y, discs[k, 2]
            ahead, beside = dx * along_x + dy * along_y, dx * along_y - dy * along_x
            if dx * dx + dy * dy <= radius * radius:
                best = 0.0
            elif ahead > 0.0 and abs(beside) <= radius:
                best = min(best, ahead - math.sqrt(radius * radius - beside * beside))
        if occupied.shape[0]:
            u, v = (x - origin[0]) / resolution, (y - origin[1]) / resolution
            limit = min(best, reach) / resolution
            best = min(best, resolution * wall_range(occupied, u, v, along_x, along_y, limit))
        ranges[i] = best if best <= reach else np.inf
