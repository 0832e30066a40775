# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What comes towards free space, and where it will be, without following anything.

An end point that lies where an earlier scan has seen through, and away from all that this scan
met, was not there then: something has moved there. Its way from the nearest of the earlier end
points, over the time in between, is about the velocity at which the surface advances. Surfaces
that recede, or move along themselves, are not seen to move, and need no more room.
"""

import math
from collections import deque

import numpy as np

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.planning.sensing import Array, View

TURN = 2.0 * math.pi
# Seconds between the two scans that are compared: long enough for what moves to have moved by more
# than noise, short enough for it to be the same thing.
SHORTEST, LONGEST = 0.5, 1.2
# Standard deviations of both ranges by which a beam must have passed, and a point be away.
DEVIATIONS = 3.0
# Seconds between the times at which an advancing point is kept clear of.
STEP = 0.2


class Advance:
    """Tells where surfaces that come towards free space will be.

    Parameters
    ----------
    lookahead
        How far to look ahead, seconds.
    fastest
        Speed beyond which it is no motion, m/s.
    """

    def __init__(self, lookahead: float, fastest: float) -> None:
        self._steps, self._fastest = int(lookahead / STEP), fastest
        self._views: deque[View] = deque()

    def ahead(self, view: View) -> Array:
        """Take in a scan; return where its advancing end points will be, (2, k), metres.

        Scans must come in the order of their stamps.
        """
        while len(self._views) > 1 and seconds(self._views[1], view) >= SHORTEST:
            self._views.popleft()
        self._views.append(view)
        before = self._views[0]
        if not SHORTEST <= seconds(before, view) <= LONGEST or before.points.shape[1] == 0:
            return np.empty((2, 0))
        ahead: Array = advancing(
            view.points, view.deviation, before.points, before.origin, before.first_bearing,
            before.increment, before.ranges, seconds(before, view), self._fastest, self._steps,
        )  # fmt: skip
        return ahead


def seconds(before: View, after: View) -> float:
    """Time between two views."""
    return (after.stamp - before.stamp) * 1e-9


@compiled_allocating
def advancing(
    points, deviation, before, origin, first_bearing, increment, ranges, elapsed, fastest, steps
):
    """Return where points (2, m) that have moved will be at so many times, (2, k).

    Those that lie where it was free before count, and that were not there then.
    """
    ahead, found = np.empty((2, points.shape[1] * steps)), 0
    for i in range(points.shape[1]):
        aside = DEVIATIONS * math.sqrt(2.0) * deviation[i]
        if not seen_through(
            points[0, i] - origin[0], points[1, i] - origin[1], aside, first_bearing, increment,
            ranges,
        ):  # fmt: skip
            continue
        nearest, index = np.inf, 0
        for j in range(before.shape[1]):
            dx, dy = before[0, j] - points[0, i], before[1, j] - points[1, i]
            squared = dx * dx + dy * dy
            if squared < nearest:
                nearest, index = squared, j
        if nearest <= aside * aside or nearest > (fastest * elapsed) ** 2:
            continue
        vx = (points[0, i] - before[0, index]) / elapsed
        vy = (points[1, i] - before[1, index]) / elapsed
        for step in range(1, steps + 1):
            ahead[0, found] = points[0, i] + STEP * step * vx
            ahead[1, found] = points[1, i] + STEP * step * vy
            found += 1
    return ahead[:, :found].copy()


@compiled
def seen_through(dx, dy, aside, first_bearing, increment, ranges):
    """Whether the beam nearest to a point and both beside it went on for more than ``aside``."""
    place = (math.atan2(dy, dx) - first_bearing) / increment
    turn = TURN / abs(increment)
    place -= turn * math.floor(place / turn)
    beam, need = math.floor(place + 0.5), math.sqrt(dx * dx + dy * dy) + aside
    count = ranges.shape[0]
    around = turn < count + 0.5
    for other in range(beam - 1, beam + 2):
        inside = around or 0 <= other < count
        if not (inside and ranges[other % count] > need):
            return False
    return True
