# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Rough ways on different sides of obstacles: shortest paths on a grid, pulled straight.

Everything here happens in the plane; balls of obstacles in space count as columns.
"""

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled_allocating
from kernel_constrained.planning.obstacles import Obstacles
from kernel_constrained.planning.pieces import blocker
from kernel_constrained.planning.polyline import length_of
from kernel_constrained.planning.search import EAGERNESS, explore, place, steps_to, traced
from kernel_constrained.planning.search_grid import search_grid
from kernel_constrained.planning.sides import encloses, landmarks, same_side, signatures

Array = npt.NDArray[np.float64]

# Longest ways that are looked for on other sides, against the shortest; and sets of sides looked
# at for each path that is wanted: straight, they may come in another order than on the grid.
STRETCH = 1.5
SPARE = 3


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
    stretch: float = STRETCH,
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
    stretch
        How many times as long as the shortest on the grid others may be.

    Returns
    -------
    list of (k, 2)
        Polylines from ``start`` to ``goal``, free and pulled straight, the shortest first; none
        where there is no way.

    Raises
    ------
    ValueError
        As :func:`search_grid`.
    """
    grid = search_grid(obstacles, low, high, spacing, extra)
    there = explore(grid, obstacles, start, goal, stretch if count > 1 else 1.0)
    if not there.length < np.inf:
        return []
    path = traced(grid, there, start, goal)
    found = [shortcut(path, obstacles, extra)]
    if count > 1:
        back = explore(grid, obstacles, goal, start, stretch)
        points = landmarks(obstacles, grid)
        others = [
            by_way_of(grid, there, back, node, start, goal)
            for node in detours(grid, points, there, back, stretch, SPARE * count)
        ]
        for other in (path, *others):
            straight = shortcut(other, obstacles, extra, points)
            if not any(same_side(straight, known, points) for known in found):
                found.append(straight)
    return sorted(found, key=length_of)[:count]
