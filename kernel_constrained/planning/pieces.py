# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Straight pieces between obstacles in the plane; balls of obstacles in space count as columns.

What is free, at a position or along a piece, is decided exactly for discs and with
:func:`~kernel_constrained.planning.grid.lower_bound` for the map, never too favourably; numbers
that are not finite block.
"""

import math

from kernel_constrained.core.compilation import compiled
from kernel_constrained.planning.grid import lower_bound

# Share of the distances at its ends that a straight piece keeps where these are in the extra
# margin.
EASED = 0.995
# Points looked at before the first of them that is hit ends the search, a few vectors.
BLOCK = 64
# Distance from the map, in spacings of its grid, below which steps become too short to go on.
TOO_CLOSE = 0.01


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
