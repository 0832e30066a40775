# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What earlier scans have shown, as long as no later one shows that it is gone."""

import math

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled
from kernel_constrained.planning.sensing import Array, View

Cells = npt.NDArray[np.int64]

TURN = 2.0 * math.pi

# Hits up to which a voxel's mean is one over all of them; from then on it follows newer ones.
MOST_HITS = 20

# Standard deviations by which a beam must have passed a point to speak against it.
DEVIATIONS = 3.0

# A point and its two neighbours, in spacings of the beams from the nearest one.
BESIDE = 1.5

# Rows of the table of voxels: mean position of the hits; how many; mean of their standard
# deviations; number of the last scan with a hit; the width that was seen in that scan, between
# neighbouring beams that hit; and the largest in those before, halved from each to the next.
X, Y, HITS, DEVIATION, SCAN, WIDTH, WIDTH_BEFORE = range(7)
ROWS = 7

# Voxels there is room for at first, and entries of the hash table for each.
ROOM = 1024
SPREAD = 4

PASSED, MET, UNKNOWN = range(3)


class PointMemory:
    """End points of beams, averaged in the squares of a grid: "voxels".

    A point is forgotten beyond ``radius`` of the sensor, and where a scan sees through it: where
    the beam through it and both neighbours went on for more than the voxel and three standard
    deviations, none that passes within three standard deviations beside it met anything before
    that, and most of these are known to have gone on. It is gone at once if lately it was seen to
    be wider than beams are apart there, so that one must have met it; else its hits are halved,
    since thin things are missed now and then. A beam that says nothing forgets nothing. What was
    too close to be measured is not remembered, since nobody knows where it was.

    Parameters
    ----------
    voxel
        Side of the squares, metres.
    radius
        Distance from the sensor beyond which points are forgotten, metres.
    min_hits
        Hits from which a voxel counts.
    """

    def __init__(self, voxel: float, radius: float, min_hits: int) -> None:
        self._voxel, self._radius, self._min_hits = float(voxel), float(radius), min_hits
        self._most = float(max(MOST_HITS, min_hits))
        self._count, self._scan = 0, 0
        self._cells, self._voxels, self._slots = empty_table(ROOM)

    def clear(self) -> None:
        """Forget everything."""
        self._count = 0
        self._slots.fill(-1)

    def update(self, view: View) -> None:
        """Take in a view: add its points, and forget what it sees through."""
        needed = self._count + view.points.shape[1]
        if needed > self._voxels.shape[1]:
            self._reserve(2 * needed)
        self._scan += 1
        self._count = take_in(
            self._cells, self._voxels, self._slots, self._count, float(self._scan), self._voxel,
            self._radius, self._most, view.origin, view.first_bearing, view.increment, view.ranges,
            view.hit, view.points, view.deviation, view.robot, view.range_deviation,
            view.covariance,
        )  # fmt: skip

    def points(self) -> Array:
        """Return the mean positions of the voxels that count, shape (2, n)."""
        return self.points_and_deviations()[0]

    def points_and_deviations(self) -> tuple[Array, Array]:
        """Return the same and, shape (n,), the mean standard deviation of their hits, metres."""
        means, deviation = np.empty((2, self._count)), np.empty(self._count)
        found = gather(self._voxels, self._count, float(self._min_hits), means, deviation)
        return means[:, :found].copy(), deviation[:found]

    def _reserve(self, room: int) -> None:
        """Move to tables with room for so many voxels."""
        count, cells, voxels = self._count, self._cells, self._voxels
        self._cells, self._voxels, self._slots = empty_table(room)
        self._cells[:, :count] = cells[:, :count]
        self._voxels[:, :count] = voxels[:, :count]
        fill_slots(self._cells, self._slots, count)


def empty_table(room: int) -> tuple[Cells, Array, Cells]:
    """Return cells (2, room), voxels (ROWS, room) and a hash table without entries."""
    slots = np.full(1 << (SPREAD * room - 1).bit_length(), -1, dtype=np.int64)
    return np.zeros((2, room), dtype=np.int64), np.zeros((ROWS, room)), slots


@compiled
def take_in(
    cells, voxels, slots, count, scan, voxel, radius, most, origin, first_bearing, increment,
    ranges, hit, points, deviation, robot, range_deviation, covariance,
):  # fmt: skip
    """Add the points of scan number ``scan``, forget; return how many voxels there are now."""
    count = add_points(
        cells, voxels, slots, count, scan, voxel, most, abs(increment), ranges, hit, points,
        deviation,
    )  # fmt: skip
    shift, turning = pose_deviation(covariance)
    arm = math.hypot(robot[0] - origin[0], robot[1] - origin[1])
    farthest, kept = 0.0, 0
    for i in range(ranges.shape[0]):
        farthest = max(farthest, ranges[i])
    for i in range(count):
        dx, dy = voxels[X, i] - origin[0], voxels[Y, i] - origin[1]
        distance, hits = math.hypot(dx, dy), voxels[HITS, i]
        if distance > radius:
            continue
        if voxels[SCAN, i] != scan and distance + voxel < farthest:
            aside = math.hypot(voxels[DEVIATION, i], shift + turning * (distance + arm))
            beyond = voxel + DEVIATIONS * math.hypot(aside, range_deviation)
            if seen_through(
                dx, dy, distance, distance + beyond, DEVIATIONS * aside, first_bearing, increment,
                ranges, hit,
            ):  # fmt: skip
                width = max(voxels[WIDTH, i], voxels[WIDTH_BEFORE, i])
                hits = 0.0 if width >= abs(increment) * distance else math.floor(0.5 * hits)
        if hits > 0.0:
            for row in range(ROWS):
                voxels[row, kept] = voxels[row, i]
            voxels[HITS, kept] = hits
            cells[0, kept], cells[1, kept] = cells[0, i], cells[1, i]
            kept += 1
    if kept < count:
        fill_slots(cells, slots, kept)
    return kept


@compiled
def pose_deviation(covariance):
    """Return the largest standard deviation of a pose's position, and that of its heading.

    A point at a distance d from the robot then has one of their sum at most, the latter times d.
    """
    xx, yy, xy = covariance[0, 0], covariance[1, 1], covariance[0, 1]
    largest = 0.5 * (xx + yy) + math.sqrt(0.25 * (xx - yy) ** 2 + xy * xy)
    return math.sqrt(largest), math.sqrt(covariance[2, 2])


@compiled
def add_points(
    cells, voxels, slots, count, scan, voxel, most, step, ranges, hit, points, deviation
):
    """Add points that were measured to the means of their voxels; return how many there are."""
    next_point, last_beam, last_voxel = 0, -2, -1
    for beam in range(ranges.shape[0]):
        if not hit[beam]:
            continue
        i, distance = next_point, ranges[beam]
        next_point += 1
        if distance == 0.0:  # too close to be measured
            continue
        x, y = points[0, i], points[1, i]
        column, row = math.floor(x / voxel), math.floor(y / voxel)
        slot = slot_of(cells, slots, column, row)
        v = slots[slot]
        if v < 0:
            v, slots[slot] = count, count
            count += 1
            cells[0, v], cells[1, v] = column, row
            for r in range(ROWS):
                voxels[r, v] = 0.0
        if voxels[SCAN, v] != scan:
            voxels[WIDTH_BEFORE, v] = 0.5 * max(voxels[WIDTH, v], voxels[WIDTH_BEFORE, v])
            voxels[SCAN, v], voxels[WIDTH, v] = scan, 0.0
        voxels[HITS, v] = min(voxels[HITS, v] + 1.0, most)
        voxels[X, v] += (x - voxels[X, v]) / voxels[HITS, v]
        voxels[Y, v] += (y - voxels[Y, v]) / voxels[HITS, v]
        voxels[DEVIATION, v] += (deviation[i] - voxels[DEVIATION, v]) / voxels[HITS, v]
        if v == last_voxel and beam == last_beam + 1:
            voxels[WIDTH, v] += step * distance
        last_beam, last_voxel = beam, v
    return count


@compiled
def gather(voxels, count, min_hits, means, deviation):
    """Fill positions and deviations of the voxels with hits enough; return how many there are."""
    found = 0
    for i in range(count):
        if voxels[HITS, i] >= min_hits:
            means[0, found], means[1, found] = voxels[X, i], voxels[Y, i]
            deviation[found] = voxels[DEVIATION, i]
            found += 1
    return found


@compiled
def slot_of(cells, slots, column, row):
    """Entry of the hash table that holds a cell's number, or -1 where it would be entered."""
    mask = slots.shape[0] - 1
    slot = (column * 73856093 ^ row * 19349663) & mask
    while slots[slot] >= 0 and (cells[0, slots[slot]] != column or cells[1, slots[slot]] != row):
        slot = (slot + 1) & mask
    return slot


@compiled
def fill_slots(cells, slots, count):
    """Enter the first ``count`` cells into the emptied hash table."""
    for slot in range(slots.shape[0]):
        slots[slot] = -1
    for i in range(count):
        slots[slot_of(cells, slots, cells[0, i], cells[1, i])] = i


@compiled
def seen_through(dx, dy, distance, need, aside, first_bearing, increment, ranges, hit):
    """Whether beams pass a point at ``dx, dy`` from the sensor, as far as to ``need`` at least.

    Where the beams go over more than a turn, all that cover its bearing. Beams count as beside it
    up to ``aside`` metres.
    """
    step, beams = abs(increment), ranges.shape[0]
    turn = TURN / step
    wide = math.asin(aside / distance) if aside < distance else 0.5 * math.pi
    wide = max(wide / step, BESIDE)
    place = (math.atan2(dy, dx) - first_bearing) / increment
    place -= turn * math.floor(place / turn)
    if wide > beams:  # most of that is outside the field of view
        return False
    looks = 0
    while place < beams + 0.5:
        if not window_passes(place, wide, turn, need, ranges, hit):
            return False
        looks += 1
        place += turn
    return looks > 0


@compiled
def window_passes(place, wide, turn, need, ranges, hit):
    """Whether the beams around ``place`` pass, as counted from the first beam in spacings."""
    nearest = math.floor(place + 0.5)
    for j in range(nearest - 1, nearest + 2):
        if outcome(j, turn, need, ranges, hit) != PASSED:
            return False
    balance = 0
    for j in range(math.ceil(place - wide), math.floor(place + wide) + 1):
        found = outcome(j, turn, need, ranges, hit)
        if found == MET:
            return False
        balance += 1 if found == PASSED else -1
    return balance > 0


@compiled
def outcome(beam, turn, need, ranges, hit):
    """Whether a beam went as far as to ``need``; numbers outside the scan go on around it."""
    beams = ranges.shape[0]
    if beam < 0:
        beam = math.floor(beam + turn + 0.5)
    elif beam >= beams:
        beam = math.floor(beam - turn + 0.5)
    if beam < 0 or beam >= beams:
        return UNKNOWN
    if ranges[beam] > need:
        return PASSED
    return MET if hit[beam] else UNKNOWN
