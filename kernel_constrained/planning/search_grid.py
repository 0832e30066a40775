# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The grid that ways are searched on: where a disc fits, and between which neighbours."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.planning.grid import lower_bound
from kernel_constrained.planning.pieces import clear_of_map

Array = npt.NDArray[np.float64]

# The eight neighbours of a node; the opposite of direction k is 7 - k.
STEP_X = (-1, -1, -1, 0, 0, 1, 1, 1)
STEP_Y = (-1, 0, 1, -1, 1, -1, 0, 1)
STEP_LENGTH = (2**0.5, 1.0, 2**0.5, 1.0, 1.0, 2**0.5, 1.0, 2**0.5)

MOST_NODES = 1 << 24


class SearchGrid(NamedTuple):
    """Where a disc fits, at the nodes of a grid and on the way from each to its neighbours.

    Attributes
    ----------
    blocked : (columns, rows) of uint8
        Not 0 at nodes where it does not fit; first index along x.
    cut : (columns, rows) of uint8
        Bit k is set where the straight way from the node to its neighbour
        ``(STEP_X[k], STEP_Y[k])`` is not free though both ends may be.
    origin : (2,)
        Position of node [0, 0], metres.
    spacing : float
        Distance between nodes, metres.
    """

    blocked: npt.NDArray[np.uint8]
    cut: npt.NDArray[np.uint8]
    origin: Array
    spacing: float


@compiled_allocating
def search_grid(obstacles, low, high, spacing, extra):
    """Find where the robot's disc fits at the nodes of a grid, and between neighbours.

    Parameters
    ----------
    obstacles : Obstacles
        What to keep clear of.
    low, high : (2,)
        The part of the plane to cover, metres.
    spacing
        Distance between nodes, metres. They lie at whole multiples of it, so that the same world
        gives the same nodes when the part of it that is covered moves.
    extra
        Metres, at least 0, to keep beyond what ``obstacles`` says.

    Returns
    -------
    SearchGrid
        The way from a node to a neighbour of which neither is blocked, along a direction that is
        not cut, is free.

    Raises
    ------
    ValueError
        Where the spacing is not positive, ``extra`` is negative, or low and high are not finite,
        in order and near enough for 2^24 nodes.
    """
    if not (spacing > 0.0 and extra >= 0.0):
        raise ValueError('spacing must be positive, and extra not negative')
    # Whole numbers as floats, which may be out of every range.
    first_x, first_y = np.floor(low[0] / spacing), np.floor(low[1] / spacing)
    wide = np.ceil(high[0] / spacing) - first_x + 1.0
    tall = np.ceil(high[1] / spacing) - first_y + 1.0
    if not (wide >= 1.0 and tall >= 1.0 and wide * tall <= MOST_NODES):
        raise ValueError('low and high must be finite, in order, and 2^24 nodes apart at most')
    columns, rows = int(wide), int(tall)
    grid = SearchGrid(
        np.zeros((columns, rows), np.uint8),
        np.zeros((columns, rows), np.uint8),
        np.array((first_x * spacing, first_y * spacing)),
        spacing,
    )
    cut_border(grid.cut)
    block_beyond_box(grid, obstacles, extra)
    block_discs(grid, obstacles, extra)
    if obstacles.grid.shape[0] > 0:
        block_map(grid, obstacles, extra, np.empty((columns, rows)))
    return grid


@compiled
def cut_border(cut):
    """Cut the ways that lead off the grid."""
    columns, rows = cut.shape
    for k in range(8):
        if STEP_X[k] != 0:
            i = 0 if STEP_X[k] < 0 else columns - 1
            for j in range(rows):
                cut[i, j] |= 1 << k
        if STEP_Y[k] != 0:
            j = 0 if STEP_Y[k] < 0 else rows - 1
            for i in range(columns):
                cut[i, j] |= 1 << k


@compiled
def block_beyond_box(grid, obstacles, extra):
    """Block the nodes beyond the box, or too near to its sides."""
    low, high = obstacles.low, obstacles.high
    columns, rows = grid.blocked.shape
    for j in range(rows):
        y = grid.origin[1] + j * grid.spacing
        if not low[1] + extra <= y <= high[1] - extra:
            for i in range(columns):
                grid.blocked[i, j] = 1
    for i in range(columns):
        x = grid.origin[0] + i * grid.spacing
        if not low[0] + extra <= x <= high[0] - extra:
            for j in range(rows):
                grid.blocked[i, j] = 1


@compiled
def first_node(coordinate, count):
    """Round up to a node from 0 to ``count``; NaN becomes 0."""
    if not coordinate > 0.0:
        return 0
    return math.ceil(coordinate) if coordinate < count else count


@compiled
def end_node(coordinate, count):
    """Return the node after the last one below, from 0 to ``count``, which NaN becomes."""
    if coordinate < 0.0:
        return 0
    return math.floor(coordinate) + 1 if coordinate < count else count


@compiled
def block_discs(grid, obstacles, extra):
    """Block the nodes in discs, and cut the ways between free nodes that dip into them.

    The nearer end of such a way is nearer than half of it and the radius at right angles.
    """
    columns, rows = grid.blocked.shape
    for n in range(obstacles.points.shape[1]):
        x = (obstacles.points[0, n] - grid.origin[0]) / grid.spacing
        y = (obstacles.points[1, n] - grid.origin[1]) / grid.spacing
        if math.isnan(x) or math.isnan(y):
            grid.blocked[:, :] = 1
        radius = (obstacles.keep[n] + extra) / grid.spacing
        inner = radius * radius * (1.0 + 1e-12)
        reach = math.sqrt(inner + 0.5)
        first, end = first_node(y - reach, rows), end_node(y + reach, rows)
        for i in range(first_node(x - reach, columns), end_node(x + reach, columns)):
            off_x = i - x
            rest = inner - off_x * off_x
            for j in range(first, end):
                off_y = j - y
                squared = off_y * off_y
                if not squared > rest:
                    grid.blocked[i, j] = 1
                elif squared <= rest + 0.5:
                    cut_ways(grid.cut, i, j, off_x, off_y, inner)


@compiled
def cut_ways(cut, i, j, off_x, off_y, inner):
    """Cut the ways of a node that pass nearer to the origin of its offset than inner^(1/2)."""
    for k in range(8):
        step_x, step_y = STEP_X[k], STEP_Y[k]
        along = -(off_x * step_x + off_y * step_y)
        across = off_x * step_y - off_y * step_x
        squared = step_x * step_x + step_y * step_y
        if 0.0 < along < squared and across * across <= inner * squared:
            cut_way(cut, i, j, k)


@compiled
def cut_way(cut, i, j, k):
    """Cut the way from node [i, j] in direction k, and back."""
    other_i, other_j = i + STEP_X[k], j + STEP_Y[k]
    if 0 <= other_i < cut.shape[0] and 0 <= other_j < cut.shape[1]:
        cut[i, j] |= 1 << k
        cut[other_i, other_j] |= 1 << (7 - k)


@compiled
def block_map(grid, obstacles, extra, room):
    """Block the nodes too near to the map's obstacles, and cut the ways that pass them.

    ``room`` is scratch: what every node has beyond what it needs, or a lower bound of it.
    """
    columns, rows = grid.blocked.shape
    keep = obstacles.grid_keep + extra
    longest = STEP_LENGTH[0] * grid.spacing
    for i in range(columns):
        for j in range(rows):
            room[i, j] = room_on_map(grid, obstacles, i, j, keep, longest)
            if not room[i, j] > 0.0:
                grid.blocked[i, j] = 1
    for i in range(columns):
        for j in range(rows):
            if room[i, j] > longest or grid.blocked[i, j]:
                continue
            for k in range(4, 8):
                if not grid.cut[i, j] >> k & 1:
                    cut_by_map(grid, obstacles, extra, room, i, j, k)


@compiled
def room_on_map(grid, obstacles, i, j, keep, enough):
    """Bound from below what a node has of distance to the map's obstacles beyond ``keep``.

    The node of the map next to it often says at once that it is ``enough``, or that there is
    none: distances differ by no more than the way.
    """
    x, y = grid.origin[0] + i * grid.spacing, grid.origin[1] + j * grid.spacing
    spacing = obstacles.grid_spacing
    column, row = map_node(obstacles, x, y)
    if column >= 0:
        room = obstacles.grid[column, row] - keep
        way = 0.75 * spacing  # the farthest are at half a diagonal, 0.71
        if room - way > enough:
            return room - way
        if room + way < 0.0:
            return room
    return lower_bound(obstacles.grid, obstacles.grid_origin, spacing, x, y) - keep


@compiled
def map_node(obstacles, x, y):
    """Return the node of the map's grid next to a position, (-1, -1) off the grid."""
    column = (x - obstacles.grid_origin[0]) / obstacles.grid_spacing + 0.5
    row = (y - obstacles.grid_origin[1]) / obstacles.grid_spacing + 0.5
    columns, rows = obstacles.grid.shape
    if 0.0 <= column < columns and 0.0 <= row < rows:
        return int(column), int(row)
    return -1, -1


@compiled
def cut_by_map(grid, obstacles, extra, room, i, j, k):
    """Cut a way between two nodes unless the map leaves it free."""
    other_i, other_j = i + STEP_X[k], j + STEP_Y[k]
    spacing = grid.spacing
    if grid.blocked[other_i, other_j] or (
        room[i, j] + room[other_i, other_j] > STEP_LENGTH[k] * spacing
    ):
        return
    x, y = grid.origin[0] + i * spacing, grid.origin[1] + j * spacing
    if not clear_of_map(x, y, x + STEP_X[k] * spacing, y + STEP_Y[k] * spacing, obstacles, extra):
        cut_way(grid.cut, i, j, k)
