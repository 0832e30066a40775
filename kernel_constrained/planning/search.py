# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Shortest ways on a grid (A*, eight directions)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.planning.pieces import blocker, is_free
from kernel_constrained.planning.search_grid import end_node, STEP_LENGTH, STEP_X, STEP_Y

Array = npt.NDArray[np.float64]

# Length of the way to a neighbour in diagonal, less that of one of the two steps it replaces.
DIAGONAL = 2**0.5 - 1.0
# Share of the heuristic that is added to it, so that of equally short ways the one that is
# nearer to the goal goes first; paths are longer by no more than that share.
EAGERNESS = 1e-9
# Half the side of the largest square in which a way onto the grid is looked for, in nodes.
WIDEST = 16
# States of a node in a search: blocked or done with, and open with a free way to the goal.
CLOSED, END = 1, 2


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
        The node from which the goal is reached, -1 where it is not.
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
    return Exploration(order[:done], lengths, before, last, shortest)


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
    """Positions from start by the last node to the goal; (0, 2) where it was not reached."""
    node = exploration.last
    if node < 0:
        return np.empty((0, 2))
    count = steps_to(exploration, node)
    path = np.empty((count + 2, 2))
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
    return traced(grid, explore(grid, obstacles, start, goal, 1.0), start, goal)
