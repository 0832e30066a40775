# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The sides on which obstacles can be passed: shortest paths on a grid, pulled straight.

Everything here happens in the plane; balls of obstacles in space count as columns. What is free,
at a position or along a straight piece, is decided exactly for discs and with
:func:`~kernel_constrained.planning.grid.lower_bound` for the map, never too favourably; numbers
that are not finite block.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.planning.grid import lower_bound
from kernel_constrained.planning.obstacles import Obstacles

Array = npt.NDArray[np.float64]

# The eight neighbours of a node; the opposite of direction k is 7 - k.
STEP_X = (-1, -1, -1, 0, 0, 1, 1, 1)
STEP_Y = (-1, 0, 1, -1, 1, -1, 0, 1)
STEP_LENGTH = (2**0.5, 1.0, 2**0.5, 1.0, 1.0, 2**0.5, 1.0, 2**0.5)

# Length of the way to a neighbour in diagonal, less that of one of the two steps it replaces.
DIAGONAL = 2**0.5 - 1.0
# Share of the heuristic that is added to it, so that of equally short ways the one that is
# nearer to the goal goes first; paths are longer by no more than that share.
EAGERNESS = 1e-9
# Half the side of the largest square in which a way onto the grid is looked for, in nodes.
WIDEST = 16
# Share of the distances at its ends that a straight piece keeps where these are in the extra
# margin.
EASED = 0.995
# Points looked at before the first of them that is hit ends the search, a few vectors.
BLOCK = 64
# Distance from the map, in spacings of its grid, below which steps become too short to go on.
TOO_CLOSE = 0.01
MOST_NODES = 1 << 24
# Longest ways that are looked for on other sides, against the shortest; and sets of sides looked
# at for each path that is wanted: straight, they may come in another order than on the grid.
STRETCH = 1.5
SPARE = 3
# A linear congruential generator (Knuth, MMIX).
MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407
# States of a node in a search: blocked or done with, and open with a free way to the goal.
CLOSED, END = 1, 2


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


# ---------------------------------------------------------------------------------------------
# Straight pieces


@compiled
def hits(ax, ay, bx, by, obstacles, extra, first, last):
    """Count which of ``points[:, first:last]`` the piece from a to b comes too close to.

    Too close is ``keep + extra``; where an end is closer than that already, closer than the end,
    but never closer than ``keep``.
    """
    # Views that begin at 0: the loop is vectorised then.
    xs, ys = obstacles.points[0, first:last], obstacles.points[1, first:last]
    keeps = obstacles.keep[first:last]
    along_x, along_y = bx - ax, by - ay
    squared = along_x * along_x + along_y * along_y
    scale = 1.0 / squared if squared > 0.0 else 0.0
    count = 0
    for i in range(xs.shape[0]):
        from_a_x, from_a_y = xs[i] - ax, ys[i] - ay
        from_b_x, from_b_y = xs[i] - bx, ys[i] - by
        share = (from_a_x * along_x + from_a_y * along_y) * scale
        share = 0.0 if share < 0.0 else share
        share = 1.0 if share > 1.0 else share
        off_x, off_y = from_a_x - share * along_x, from_a_y - share * along_y
        distance = off_x * off_x + off_y * off_y
        at_a = from_a_x * from_a_x + from_a_y * from_a_y
        at_b = from_b_x * from_b_x + from_b_y * from_b_y
        ends = EASED * EASED * (at_a if at_a < at_b else at_b)
        least = keeps[i] * keeps[i]
        wanted = (keeps[i] + extra) * (keeps[i] + extra)
        wanted = ends if ends < wanted else wanted
        wanted = least if wanted < least else wanted
        count += 0 if distance > wanted else 1
    return count


@compiled
def in_box(x, y, obstacles):
    """Tell whether a position is in the box."""
    low, high = obstacles.low, obstacles.high
    return low[0] <= x <= high[0] and low[1] <= y <= high[1]


@compiled
def clear_of_map(ax, ay, bx, by, obstacles, extra):
    """Tell whether a piece is free of the map, by steps no longer than the way that is free."""
    values, origin = obstacles.grid, obstacles.grid_origin
    spacing, keep = obstacles.grid_spacing, obstacles.grid_keep
    at_a = lower_bound(values, origin, spacing, ax, ay)
    at_b = lower_bound(values, origin, spacing, bx, by)
    nearer = at_a if at_a < at_b else at_b
    room = min(keep + extra, EASED * nearer)
    room = max(keep, room)
    length = math.hypot(bx - ax, by - ay)
    if not (at_a > keep and at_b > keep and length < math.inf):
        return False
    shortest_step = TOO_CLOSE * spacing
    done, end = at_a - room, length - (at_b - room)
    while done < end:
        share = done / length
        step = lower_bound(values, origin, spacing, ax + share * (bx - ax), ay + share * (by - ay))
        step -= room
        if not step > shortest_step:
            return False
        done += step
    return True


@compiled
def blocker(ax, ay, bx, by, obstacles, extra, suspect):
    """Find what is in the way of the straight piece from a to b.

    Returns -1 where it is free, else a number to give as ``suspect`` for the next piece nearby:
    what was in the way is looked at first.
    """
    if not (in_box(ax, ay, obstacles) and in_box(bx, by, obstacles)):
        return suspect
    points = obstacles.points.shape[1]
    last = min(suspect + BLOCK, points)
    if suspect < last and hits(ax, ay, bx, by, obstacles, extra, suspect, last) > 0:
        return suspect
    for first in range(0, points, BLOCK):
        if hits(ax, ay, bx, by, obstacles, extra, first, min(first + BLOCK, points)) > 0:
            return first
    if obstacles.grid.shape[0] > 0 and not clear_of_map(ax, ay, bx, by, obstacles, extra):
        return 0
    return -1


@compiled
def is_free(ax, ay, bx, by, obstacles, extra):
    """Tell whether the centre of the robot may go straight from a to b.

    Parameters
    ----------
    ax, ay, bx, by
        The two ends, metres.
    obstacles : Obstacles
        What to keep clear of.
    extra
        Metres, at least 0, to keep beyond that: from everything except what an end is nearer to
        already, from which the piece goes away or past at hardly less than that end's distance.
    """
    return blocker(ax, ay, bx, by, obstacles, extra, 0) < 0


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


@compiled_allocating
def shortcut(path, obstacles, extra, sides=None):
    """Replace stretches of a path by straight pieces, from its beginning the longest first.

    Parameters
    ----------
    path : (k, 2)
        Positions; its pieces are taken for free.
    obstacles, extra
        As for :func:`is_free`.
    sides : (2, n) or None
        Points to pass on the sides that the path passes them on.

    Returns
    -------
    (m, 2)
        Some of the positions, the first and the last among them. A piece is free, or was there
        before.
    """
    count = path.shape[0]
    kept = np.empty(count, np.int64)
    pieces, here, suspect = 0, 0, 0
    while here < count:
        kept[pieces] = here
        pieces += 1
        there = count - 1
        while there > here + 1:
            found = blocker(
                path[here, 0], path[here, 1], path[there, 0], path[there, 1], obstacles, extra,
                suspect,
            )  # fmt: skip
            if found >= 0:
                suspect = found
            elif sides is None or not encloses(path, here, there, sides):
                break
            there -= 1
        here = max(there, here + 1)
    straight = np.empty((pieces, 2))
    for i in range(pieces):
        straight[i] = path[kept[i]]
    return straight


# ---------------------------------------------------------------------------------------------
# The grid


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


# ---------------------------------------------------------------------------------------------
# The search


@compiled
def push(keys, heap, places, size, key, node):
    """Put a node into the heap of ``size`` nodes, or nearer to its top; returns the new size.

    ``places`` says where in the heap each node is, negative where it is not.
    """
    at = places[node]
    if at < 0:
        at = size
        size += 1
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] <= key:
            break
        keys[at], heap[at] = keys[above], heap[above]
        places[heap[at]] = at
        at = above
    keys[at], heap[at] = key, node
    places[node] = at
    return size


@compiled
def pop(keys, heap, places, size):
    """Take the top out of a heap of ``size`` nodes; returns the new size."""
    size -= 1
    key, node = keys[size], heap[size]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[at], heap[at] = keys[below], heap[below]
        places[heap[at]] = at
        at = below
    keys[at], heap[at] = key, node
    places[node] = at
    return size


@compiled
def octile(across, up):
    """Length of the shortest way by eight directions, in spacings."""
    across, up = abs(across), abs(up)
    return across + DIAGONAL * up if across > up else up + DIAGONAL * across


@compiled
def connect(grid, obstacles, x, y, nodes, lengths):
    """Find the nodes by which a position is connected to the grid.

    They are those that are not blocked, and to which the straight way is free, of the smallest
    square around the position that holds any; at most ``2 * WIDEST`` nodes wide. ``nodes`` gets
    their numbers, ``lengths`` the ways there as the grid counts them. Returns how many they are.
    """
    columns, rows = grid.blocked.shape
    across = (x - grid.origin[0]) / grid.spacing
    up = (y - grid.origin[1]) / grid.spacing
    right, above = end_node(across, columns), end_node(up, rows)
    found, suspect = 0, 0
    if not is_free(x, y, x, y, obstacles, 0.0):
        return 0
    for half in range(1, WIDEST + 1):
        for i in range(max(right - half, 0), min(right + half, columns)):
            inner = right - half < i < right + half - 1
            for j in range(max(above - half, 0), min(above + half, rows)):
                if grid.blocked[i, j] or (inner and above - half < j < above + half - 1):
                    continue
                suspect = blocker(
                    x, y, grid.origin[0] + i * grid.spacing, grid.origin[1] + j * grid.spacing,
                    obstacles, 0.0, max(suspect, 0),
                )  # fmt: skip
                if suspect < 0:
                    nodes[found], lengths[found] = i * rows + j, octile(across - i, up - j)
                    found += 1
        if found > 0:
            break
    return found


class Exploration(NamedTuple):
    """What a search found out; nodes are numbered ``column * rows + row``.

    Attributes
    ----------
    order : (n,)
        The nodes to which the shortest way is known, each after the one before it.
    lengths : (columns * rows,)
        Length of the shortest way known to each node, in spacings; infinite where none is.
    before : (columns * rows,)
        The node before each on that way, itself where it comes straight from the start.
    last : int
        The node from which the goal is reached or, where it is not, the nearest to it; -1 where
        there is none.
    length : float
        Length of the shortest way to the goal, infinite where it is not reached.
    """

    order: npt.NDArray[np.int32]
    lengths: Array
    before: npt.NDArray[np.int32]
    last: int
    length: float


@compiled_allocating
def explore(grid, obstacles, start, goal, stretch):
    """Search the grid from start to goal (A*), on to ways ``stretch`` times the shortest."""
    columns, rows = grid.blocked.shape
    count = columns * rows
    goal_i = (goal[0] - grid.origin[0]) / grid.spacing
    goal_j = (goal[1] - grid.origin[1]) / grid.spacing
    nodes, ways = np.empty(4 * WIDEST**2, np.int64), np.empty(4 * WIDEST**2)
    keys, heap, places = np.empty(count), np.empty(count, np.int32), np.full(count, -1, np.int32)
    lengths, before = np.full(count, np.inf), np.empty(count, np.int32)
    order, done = np.empty(count, np.int32), 0
    state, cut = grid.blocked.copy().reshape(count), grid.cut.reshape(count)
    size = 0
    for n in range(connect(grid, obstacles, start[0], start[1], nodes, ways)):
        node = nodes[n]
        lengths[node], before[node] = ways[n], node
        key = ways[n] + octile(node // rows - goal_i, node % rows - goal_j)
        size = push(keys, heap, places, size, key, node)
    ends = connect(grid, obstacles, goal[0], goal[1], nodes, ways)
    for n in range(ends):
        state[nodes[n]] = END
    last, shortest = -1, np.inf
    nearest, nearest_squared = -1, np.inf
    while size > 0 and keys[0] < stretch * shortest:
        node = heap[0]
        size = pop(keys, heap, places, size)
        if state[node] == END:
            for n in range(ends):
                if nodes[n] == node and lengths[node] + ways[n] < shortest:
                    last, shortest = node, lengths[node] + ways[n]
        state[node] = CLOSED
        order[done] = node
        done += 1
        i, j = node // rows, node % rows
        squared = (i - goal_i) * (i - goal_i) + (j - goal_j) * (j - goal_j)
        if squared < nearest_squared:
            nearest, nearest_squared = node, squared
        for k in range(8):
            if cut[node] >> k & 1:
                continue
            other = node + STEP_X[k] * rows + STEP_Y[k]
            length = lengths[node] + STEP_LENGTH[k]
            if state[other] == CLOSED or not length < lengths[other]:
                continue
            lengths[other], before[other] = length, node
            rest = octile(i + STEP_X[k] - goal_i, j + STEP_Y[k] - goal_j)
            size = push(keys, heap, places, size, length + rest * (1.0 + EAGERNESS), other)
    return Exploration(order[:done], lengths, before, last if last >= 0 else nearest, shortest)


@compiled
def steps_to(exploration, node):
    """Count the nodes on the way to a node, itself included."""
    count = 1
    while exploration.before[node] != node:
        node = exploration.before[node]
        count += 1
    return count


@compiled
def place(path, n, grid, node):
    """Write the position of a node into a path."""
    rows = grid.blocked.shape[1]
    path[n, 0] = grid.origin[0] + (node // rows) * grid.spacing
    path[n, 1] = grid.origin[1] + (node % rows) * grid.spacing


@compiled_allocating
def traced(grid, exploration, start, goal):
    """Positions from start to the last node, and on to the goal where it was reached."""
    node = exploration.last
    if node < 0:
        return np.empty((0, 2))
    count = steps_to(exploration, node)
    path = np.empty((count + 2 if exploration.length < np.inf else count + 1, 2))
    path[0], path[-1] = start, goal
    for n in range(count, 0, -1):
        place(path, n, grid, node)
        node = exploration.before[node]
    return path


@compiled_allocating
def shortest(grid, obstacles, start, goal):
    """Find the shortest path on a grid (A*, eight directions).

    Start and goal are connected to the grid by straight ways that are free of ``obstacles``
    without anything extra: a robot that noise put nearer to an obstacle than the grid keeps must
    find out.

    Parameters
    ----------
    grid : SearchGrid
        Where to search.
    obstacles : Obstacles
        What start and goal are connected to the grid around.
    start, goal : (2,)
        Positions, metres.

    Returns
    -------
    (k, 2)
        From ``start`` by nodes to ``goal``, (0, 2) where there is no path. None is shorter by
        more than 1e-9 of it; ways onto the grid and off it count as long as eight directions
        make them.
    """
    found = explore(grid, obstacles, start, goal, 1.0)
    path = traced(grid, found, start, goal)
    return path if found.length < np.inf else path[:0]


@compiled_allocating
def nearest_reachable(grid, obstacles, start, goal):
    """Find a path like :func:`shortest`, for a goal that may be blocked or off the grid.

    Where the goal cannot be reached the path ends at the node nearest to it that can be; (0, 2)
    where not even the start is connected to the grid.
    """
    return traced(grid, explore(grid, obstacles, start, goal, 1.0), start, goal)


# ---------------------------------------------------------------------------------------------
# Sides


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


@compiled_allocating
def detours(grid, points, there, back, stretch, wanted):
    """Find the nodes by which the shortest way from start to goal passes on other sides.

    Parameters
    ----------
    grid : SearchGrid
        Where the explorations happened.
    points : (2, n)
        What to pass on other sides.
    there, back : Exploration
        From start to goal, and from goal to start, both on until ``stretch``.
    stretch
        How many times as long as the shortest a way may be.
    wanted
        How many nodes to find at most.

    Returns
    -------
    (m,)
        A node for each set of sides, those of the shortest ways first. A way of the second set
        is a shortest way to one of its nodes and a shortest way on from there: if a node had
        neither, replacing either part, or both, by the shortest would give ways of the first
        set, and the sums of their sides would say that the way itself is of the first set.
    """
    from_start = signatures(grid, points, there, 1)
    to_goal = signatures(grid, points, back, -1)
    usual = from_start[there.last] + to_goal[there.last]
    sides, nodes = np.empty(wanted + 1, np.int64), np.empty(wanted + 1, np.int64)
    # Nodes by which ways are shorter than that are done with in both explorations.
    longest = stretch * (1.0 - 2.0 * EAGERNESS) * there.length
    lengths, count = np.full(wanted + 1, longest), 0
    for node in there.order:
        length = there.lengths[node] + back.lengths[node]
        side = from_start[node] + to_goal[node]
        if side == usual or not length < lengths[wanted - 1]:
            continue
        at = 0
        while at < count and sides[at] != side:
            at += 1
        if at < count and lengths[at] <= length:
            continue
        count = max(count, at + 1) if at < wanted else count
        at = min(at, wanted)
        while at > 0 and lengths[at - 1] > length:
            sides[at], nodes[at], lengths[at] = sides[at - 1], nodes[at - 1], lengths[at - 1]
            at -= 1
        sides[at], nodes[at], lengths[at] = side, node, length
    return nodes[:count]


@compiled_allocating
def by_way_of(grid, there, back, node, start, goal):
    """Positions of the way from start to a node, and on from there to the goal."""
    first, second = steps_to(there, node), steps_to(back, node)
    path = np.empty((first + second + 1, 2))
    path[0], path[-1] = start, goal
    earlier = later = node
    for n in range(first, 0, -1):
        place(path, n, grid, earlier)
        earlier = there.before[earlier]
    for n in range(first, first + second):
        place(path, n, grid, later)
        later = back.before[later]
    return path


def alternatives(
    obstacles: Obstacles,
    low: Array,
    high: Array,
    spacing: float,
    extra: float,
    start: Array,
    goal: Array,
    count: int,
) -> list[Array]:
    """Find paths to the goal that pass obstacles on different sides.

    A search from the start and one back from the goal say for every node how long the shortest
    way by it is, and on which sides that passes: the best of every set of sides.

    Parameters
    ----------
    obstacles, low, high, spacing, extra
        As for :func:`search_grid`.
    start, goal
        As for :func:`shortest`.
    count
        How many paths are wanted at most; for one a single search is done.

    Returns
    -------
    list of (k, 2)
        Polylines from ``start`` to ``goal``, free and pulled straight, the shortest first; none
        where there is no way. Ways more than :data:`STRETCH` times as long as the shortest on
        the grid are not looked for.

    Raises
    ------
    ValueError
        As :func:`search_grid`.
    """
    grid = search_grid(obstacles, low, high, spacing, extra)
    there = explore(grid, obstacles, start, goal, STRETCH if count > 1 else 1.0)
    if not there.length < np.inf:
        return []
    path = traced(grid, there, start, goal)
    found = [shortcut(path, obstacles, extra)]
    if count > 1:
        back = explore(grid, obstacles, goal, start, STRETCH)
        points = landmarks(obstacles, grid)
        others = [
            by_way_of(grid, there, back, node, start, goal)
            for node in detours(grid, points, there, back, STRETCH, SPARE * count)
        ]
        for other in (path, *others):
            straight = shortcut(other, obstacles, extra, points)
            if not any(same_side(straight, known, points) for known in found):
                found.append(straight)
    return sorted(found, key=length_of)[:count]


def length_of(path: Array) -> float:
    """Length of a polyline (k, 2), metres."""
    return float(np.hypot(*np.diff(path, axis=0).T).sum())
