# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""How far along a path the robot stays inside what its sensor has seen to be free."""

import math

import numpy as np

from kernel_constrained.core.compilation import compiled
from kernel_constrained.planning.sensing import Array, View

TURN = 2.0 * math.pi

# Beams all around leave a gap of one spacing between the last and the first. Up to this many it
# is taken for that, bearings being rounded, and not for the edge of the field of view.
CLOSED = 1.5

# Unseen bearings are looked along at the spacing of the beams, but no closer than this, radians:
# or a scan of two beams a hair apart would keep the robot busy for ever.
FINEST = 1e-3

# Beams side by side that may say nothing without making what they would have seen unseen.
BRIDGED = 2


def seen_horizon(
    x: Array, y: Array, view: View, radius: float, slack: float, robot: Array | None = None
) -> int:
    """Return how many samples of a path, from its beginning, lie in what was seen.

    A sample counts while no beam finds the disc around it sticking out, by more than ``slack``
    along that beam, of what the beam is known to have passed through. Beams that say nothing have
    passed through nothing, and so have bearings outside the field of view. The disc of
    ``radius + slack`` about the robot counts as seen, for the robot stands in it.

    One beam that says nothing, or two side by side, as sensors drop them now and then, count as
    far as the shorter of the beams beside them: what is missed between these has to be thinner
    than they are apart.

    Between beams nothing is known. Where they are more than ``slack`` apart, those that cross the
    disc and those on either side of it must all have gone on to the distance of its far side. What
    they all miss, being thinner than they are apart, is missed here too.

    Parameters
    ----------
    x, y : (k,)
        Positions along the path.
    view
        What was seen.
    radius
        Of the disc, metres.
    slack
        How far it may stick out, metres.
    robot : (2,), optional
        Where the robot is, if no longer where it was when the view was taken.

    Returns
    -------
    int
        Index of the first sample that was not seen, k if there is none.
    """
    ranges = np.empty_like(view.ranges)
    bridge(view.ranges, view.hit, abs(view.increment), ranges)
    # Arrays of another layout would be compiled for anew, while the robot waits.
    unseen: int = first_unseen(
        np.ascontiguousarray(x, dtype=np.float64), np.ascontiguousarray(y, dtype=np.float64),
        view.origin, view.first_bearing, view.increment, view.directions, ranges,
        np.ascontiguousarray(view.robot if robot is None else robot, dtype=np.float64),
        float(radius), float(slack),
    )  # fmt: skip
    return unseen


@compiled
def bridge(ranges, hit, step, out):
    """Copy ranges (n,), those of at most ``BRIDGED`` silent beams side by side from their sides.

    ``step`` is the angle between beams: all around, the first and the last are side by side.
    """
    count = ranges.shape[0]
    around = step * (count + 0.5) > TURN
    for i in range(count):
        out[i] = ranges[i]
        if ranges[i] > 0.0 or hit[i]:
            continue
        before, after = i - 1, i + 1
        while after - before <= BRIDGED + 1 and is_silent(ranges, hit, before, around):
            before -= 1
        while after - before <= BRIDGED + 1 and is_silent(ranges, hit, after, around):
            after += 1
        inside = around or (before >= 0 and after < count)
        if after - before <= BRIDGED + 1 and inside:
            out[i] = min(ranges[before % count], ranges[after % count])


@compiled
def is_silent(ranges, hit, i, around):
    """Whether a beam says nothing; ``i`` may be beyond the ends of a scan all around."""
    count = ranges.shape[0]
    if not around and (i < 0 or i >= count):
        return False
    return not (ranges[i % count] > 0.0 or hit[i % count])


@compiled
def first_unseen(x, y, origin, first_bearing, increment, directions, ranges, robot, radius, slack):
    """Return the index of the first disc that was not seen, or how many there are."""
    own_x, own_y = robot[0] - origin[0], robot[1] - origin[1]
    for i in range(x.shape[0]):
        if math.hypot(x[i] - robot[0], y[i] - robot[1]) <= slack:  # inside the robot's own disc
            continue
        if not disc_seen(
            x[i] - origin[0], y[i] - origin[1], first_bearing, increment, directions, ranges,
            own_x, own_y, radius, slack,
        ):  # fmt: skip
            return i
    return x.shape[0]


@compiled
def disc_seen(dx, dy, first_bearing, increment, directions, ranges, own_x, own_y, radius, slack):
    """Whether the disc at ``dx, dy`` from the sensor was seen; the robot is at ``own_x, own_y``.

    Bearings are counted in beams from the first one on: one spacing is 1, a turn is ``turn``.
    """
    step, last = abs(increment), ranges.shape[0] - 1
    turn, distance = TURN / step, math.hypot(dx, dy)
    if not distance < math.inf:  # NaN too
        return False
    place = (math.atan2(dy, dx) - first_bearing) / increment
    place -= turn * math.floor(place / turn)
    wide = math.asin(radius / distance) / step if distance > radius else 0.5 * turn
    sparse = distance > radius and step * distance > slack
    for k in range(-1, 2):  # beams may go over more or less than a turn
        low, high = place + k * turn - wide, place + k * turn + wide
        begin, end = math.ceil(low), math.floor(high)
        if not gap_covered(
            low, high, turn, dx, dy, first_bearing, increment, last, own_x, own_y, radius, slack
        ):
            return False
        if sparse:
            for beam in range(max(begin - 1, -1), min(end + 1, last + 1) + 1):
                if not beam_reaches(beam, distance + radius, turn, ranges, slack):
                    return False
        elif not beams_pass(
            max(begin, 0), min(end, last), dx, dy, directions, ranges, own_x, own_y, radius, slack
        ):
            return False
    return True


@compiled
def beams_pass(begin, end, dx, dy, directions, ranges, own_x, own_y, radius, slack):
    """Whether the beams from ``begin`` to ``end``, which cross the disc, pass to its far side."""
    if end < begin:
        return True
    ux, uy = directions[0][begin : end + 1], directions[1][begin : end + 1]
    passed, squared, short = ranges[begin : end + 1], radius * radius, 0
    for j in range(passed.shape[0]):  # no branches, no roots: nearly all of the time goes here
        along, across = dx * ux[j] + dy * uy[j], dx * uy[j] - dy * ux[j]
        half, rest = squared - across * across, passed[j] + slack - along
        short += (half > 0.0) & ((rest < 0.0) | (half > rest * rest))
    if short == 0:
        return True
    for j in range(passed.shape[0]):
        if not chord_covered(dx, dy, ux[j], uy[j], passed[j] + slack, own_x, own_y, radius, slack):
            return False
    return True


@compiled
def chord_covered(dx, dy, ux, uy, passed, own_x, own_y, radius, slack):
    """Whether the ray along ``ux, uy`` meets the disc only where it was seen.

    Up to ``passed``, that is, and in the robot's own disc.
    """
    along, across = dx * ux + dy * uy, dx * uy - dy * ux
    half = radius * radius - across * across
    if half <= 0.0:
        return True
    near, far = along - math.sqrt(half), along + math.sqrt(half)
    if far <= max(passed, 0.0):
        return True
    along, across = own_x * ux + own_y * uy, own_x * uy - own_y * ux
    half = (radius + slack) ** 2 - across * across
    if half <= 0.0:
        return False
    return along - math.sqrt(half) <= max(passed, near) and far <= along + math.sqrt(half)


@compiled
def gap_covered(
    low, high, turn, dx, dy, first_bearing, increment, last, own_x, own_y, radius, slack
):
    """Whether the disc lies in the robot's own where its bearings are outside the field of view.

    It takes up those from ``low`` to ``high``; nothing was seen from ``last`` to ``turn``. They
    are looked along one by one, or through the disc's centre where it lies between two of them.
    """
    gap, distance = turn - last, math.hypot(dx, dy)
    if gap <= CLOSED:
        return True
    pieces = max(math.ceil(gap / max(1.0, FINEST / abs(increment))), 2)
    spacing = gap / pieces
    begin = max(math.ceil((low - last) / spacing), 1)
    end = min(math.floor((high - last) / spacing), pieces - 1)
    if end < begin:
        if not last < 0.5 * (low + high) < turn:
            return True
        return chord_covered(
            dx, dy, dx / distance, dy / distance, 0.0, own_x, own_y, radius, slack
        )
    bearing = first_bearing + increment * (last + begin * spacing)
    ux, uy = math.cos(bearing), math.sin(bearing)
    cosine, sine = math.cos(increment * spacing), math.sin(increment * spacing)
    for _ in range(begin, end + 1):
        if not chord_covered(dx, dy, ux, uy, 0.0, own_x, own_y, radius, slack):
            return False
        ux, uy = cosine * ux - sine * uy, sine * ux + cosine * uy
    return True


@compiled
def beam_reaches(beam, reach, turn, ranges, slack):
    """Whether a beam went on as far as to ``reach``; so did one that does not exist.

    The one next to the field of view does, and saw nothing.
    """
    last = ranges.shape[0] - 1
    if 0 <= beam <= last:
        return reach <= ranges[beam] + slack
    if turn - last > CLOSED:
        return beam < -1 or beam > last + 1
    # All around, what comes next is the first beam again, which is no closer than the last one.
    return beam != last + 1 or reach <= ranges[last] + slack
