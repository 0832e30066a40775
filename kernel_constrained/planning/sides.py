# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""On which sides paths pass: by the straight pieces they are made of, and on a grid."""

import numpy as np

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.planning.search_grid import map_node

# A linear congruential generator (Knuth, MMIX).
MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407


@compiled
def turns(x, y, ax, ay, bx, by):
    """Count by which half turns, +1 or -1, the piece from a to b passes to the right of a point.

    The sum over a closed loop is how often it winds around the point.
    """
    if (ay <= y) == (by <= y):
        return 0
    left = (bx - ax) * (y - ay) - (x - ax) * (by - ay)
    if by > ay:
        return 1 if left > 0.0 else 0
    return -1 if left < 0.0 else 0


@compiled
def winding(path, first, last, x, y):
    """Count the half turns of ``path[first : last + 1]`` around a point."""
    count = 0
    for i in range(first, last):
        count += turns(x, y, path[i, 0], path[i, 1], path[i + 1, 0], path[i + 1, 1])
    return count


@compiled
def extent(path, first, last):
    """Smallest and largest x, smallest and largest y of a stretch of a path."""
    x_low = x_high = path[first, 0]
    y_low = y_high = path[first, 1]
    for i in range(first + 1, last + 1):
        x_low, x_high = min(x_low, path[i, 0]), max(x_high, path[i, 0])
        y_low, y_high = min(y_low, path[i, 1]), max(y_high, path[i, 1])
    return x_low, x_high, y_low, y_high


@compiled
def encloses(path, first, last, points):
    """Tell whether a stretch of a path and the straight way back wind around any point."""
    x_low, x_high, y_low, y_high = extent(path, first, last)
    for n in range(points.shape[1]):
        x, y = points[0, n], points[1, n]
        if x_low < x < x_high and y_low < y < y_high:
            back = turns(x, y, path[last, 0], path[last, 1], path[first, 0], path[first, 1])
            if winding(path, first, last, x, y) + back != 0:
                return True
    return False


@compiled
def same_side(a, b, points):
    """Tell whether two paths pass all of some points on the same side.

    Parameters
    ----------
    a, b : (k, 2), (m, 2)
        Paths with the same ends; others are joined straight. At least one position each.
    points : (2, n)
        Positions that neither path meets: centres of obstacles, :func:`landmarks`.

    Returns
    -------
    bool
        Whether the loop there along ``a`` and back along ``b`` winds around none of them.
    """
    a_last, b_last = len(a) - 1, len(b) - 1
    x_low, x_high, y_low, y_high = extent(a, 0, a_last)
    b_x_low, b_x_high, b_y_low, b_y_high = extent(b, 0, b_last)
    x_low, x_high = min(x_low, b_x_low), max(x_high, b_x_high)
    y_low, y_high = min(y_low, b_y_low), max(y_high, b_y_high)
    for n in range(points.shape[1]):
        x, y = points[0, n], points[1, n]
        if x_low < x < x_high and y_low < y < y_high:
            there = winding(a, 0, a_last, x, y)
            there += turns(x, y, a[a_last, 0], a[a_last, 1], b[b_last, 0], b[b_last, 1])
            back = turns(x, y, a[0, 0], a[0, 1], b[0, 0], b[0, 1]) + winding(b, 0, b_last, x, y)
            if there != back:
                return False
    return True


@compiled_allocating
def landmarks(obstacles, grid):
    """Find positions around which paths can differ in side.

    Parameters
    ----------
    obstacles : Obstacles
        Its points count all.
    grid : SearchGrid
        Says where to look at the map.

    Returns
    -------
    (2, n)
        The centres of the discs, and a node of the map too near to its obstacles for each stretch
        of such nodes along y.
    """
    discs = obstacles.points.shape[1]
    columns, rows = grid.blocked.shape
    stretches = columns * ((rows + 1) // 2) if obstacles.grid.shape[0] > 0 else 0
    found = np.empty((2, discs + stretches))
    found[:, :discs] = obstacles.points[:2]
    count = discs
    for i in range(columns if stretches else 0):
        before = False
        for j in range(rows):
            x, y = grid.origin[0] + i * grid.spacing, grid.origin[1] + j * grid.spacing
            column, row = map_node(obstacles, x, y)
            inside = column >= 0 and obstacles.grid[column, row] <= obstacles.grid_keep
            if inside and not before:
                found[0, count] = obstacles.grid_origin[0] + column * obstacles.grid_spacing
                found[1, count] = obstacles.grid_origin[1] + row * obstacles.grid_spacing
                count += 1
            before = inside
    return np.ascontiguousarray(found[:, :count])


@compiled_allocating
def signatures(grid, points, exploration, sign):
    """Give each way of an exploration a number that says on which sides it passes the points.

    From every point a ray goes up. A way that crosses it counts the point's own large number, up
    or down with the direction; ways between the same two nodes that count the same sum pass all
    points on the same sides, but for a chance of some 1e-19, and for points nearer to the way
    than neighbouring nodes are to each other.
    """
    columns, rows = grid.blocked.shape
    under = np.zeros((columns, rows + 1), np.int64)
    number = 1
    for n in range(points.shape[1]):
        i = (points[0, n] - grid.origin[0]) / grid.spacing
        j = (points[1, n] - grid.origin[1]) / grid.spacing
        number = number * MULTIPLIER + INCREMENT
        if 0.0 <= i < columns and j < rows:
            under[int(i), int(j) + 1 if j > 0.0 else 0] += number
    for i in range(columns):
        for j in range(rows):
            under[i, j + 1] += under[i, j]
    sums = np.zeros(columns * rows, np.int64)
    for node in exploration.order:
        before = exploration.before[node]
        i, before_i = node // rows, before // rows
        j, before_j = node % rows, before % rows
        crossed = under[min(i, before_i), min(j, before_j)]
        sums[node] = sums[before] + sign * (i - before_i) * crossed
    return sums
