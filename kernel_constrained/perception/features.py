# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""From a scan or a single range to the inputs of the learner."""

import math

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled_allocating
from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.perception.scan import Reading, Scan
from kernel_constrained.perception.unusable import Unusable

Array = npt.NDArray[np.float64]

# A beam this close below the edge of a sector lies on it: bearings come in single precision, and
# a scan and its mirror image must fall into the same sectors. Radians.
EDGE = 1e-6

# Values that are sorted by insertion faster than by other means.
FEW = 32

TURN = 2.0 * math.pi
AT_CENTRE = Mounting()


def range_feature(reading: Reading) -> Array:
    """Position of a range between its sensor's limits, from 0 to 1; shape (1,)."""
    reading.check()
    span = reading.range_max - reading.range_min
    return np.array([(reading.range - reading.range_min) / span])


def sector_ranges(
    scan: Scan,
    sectors: int,
    bearing_min: float,
    bearing_max: float,
    far: float,
    mounting: Mounting = AT_CENTRE,
) -> Array:
    """Median range of equal sectors of bearing about the robot, shape (sectors,), metres.

    Beams are put into sectors by their bearing, so that beam count and direction do not matter.
    Ranges are cut off at ``far``, which also stands for no return (+inf) and for a sector in
    which no beam is valid; NaN, -inf and values outside the sensor's limits are left out.

    Parameters
    ----------
    scan
        The scan.
    sectors
        How many.
    bearing_min, bearing_max
        Bearings that the sectors divide, radians, at most a full turn apart; beams outside are
        left out.
    far
        Cut-off range, metres.
    mounting
        Where the sensor sits on the robot.

    Raises
    ------
    Unusable
        Where no beam of the scan is valid inside the bearings.
    """
    out, width = np.empty(sectors), (bearing_max - bearing_min) / sectors
    if fill_sectors(_placed(scan, bearing_min, far, mounting), width, far, out) == 0:
        raise Unusable('no valid beam')
    return out


def beam_ranges(
    scan: Scan,
    beams: int,
    bearing_min: float,
    bearing_max: float,
    far: float,
    mounting: Mounting = AT_CENTRE,
) -> Array:
    """Ranges at a fixed grid of bearings about the robot, shape (beams,), metres.

    The grid stands in the middle of equal sectors of bearing. Between the nearest valid beams on
    either side the range is interpolated; a beam further away than the spacing of the grid (or
    of the sensor's own beams, if that is wider) counts for nothing, and where there is none the
    range is ``far``. Parameters, cut-off and errors are those of :func:`sector_ranges`.
    """
    out, width = np.empty(beams), (bearing_max - bearing_min) / beams
    placed = _placed(scan, bearing_min, far, mounting)
    if fill_beams(placed, width, abs(scan.angle_increment), far, out) == 0:
        raise Unusable('no valid beam')
    return out


def _placed(scan: Scan, bearing_min: float, far: float, mounting: Mounting) -> Array:
    """Check a scan, and place its beams about the robot."""
    scan.check()
    placed: Array = place_beams(
        np.asarray(scan.ranges, dtype=np.float64), scan.angle_min, scan.angle_increment,
        scan.range_min, scan.range_max, mounting.x, mounting.y, mounting.yaw,
        -1.0 if mounting.upside_down else 1.0, bearing_min, far,
    )  # fmt: skip
    return placed


@compiled_allocating
def place_beams(
    ranges, angle_min, angle_increment, range_min, range_max, x, y, yaw, side, bearing_min, far
):
    """Return bearing over ``bearing_min`` in [0, 2 pi) and range of the valid beams, shape (2, v).

    Both are seen from the robot's centre; ``x, y, yaw`` and ``side`` (-1 for upside down) are the
    sensor's mounting.
    """
    placed = np.empty((2, ranges.shape[0]))
    valid = 0
    for i in range(ranges.shape[0]):
        value = ranges[i]
        if value == np.inf or (range_min <= value <= range_max and value > 0.0):
            bearing = yaw + side * (angle_min + i * angle_increment)
            if value < far and (x != 0.0 or y != 0.0):
                ahead = x + value * math.cos(bearing)
                left = y + value * math.sin(bearing)
                value, bearing = math.hypot(ahead, left), math.atan2(left, ahead)
            place = bearing - bearing_min + EDGE
            place -= TURN * math.floor(place / TURN)
            placed[0, valid] = place if 0.0 <= place < TURN else 0.0
            placed[1, valid] = min(value, far)
            valid += 1
    return placed[:, :valid]


@compiled_allocating
def fill_sectors(placed, width, far, out):
    """Fill ``out`` with the median of each sector; return how many beams lie in them."""
    sectors, beams = out.shape[0], placed.shape[1]
    sector = np.full(beams, -1, dtype=np.int64)
    ends = np.zeros(sectors + 1, dtype=np.int64)
    for i in range(beams):
        place = placed[0, i] / width
        if 0.0 <= place < sectors:
            sector[i] = int(place)
            ends[sector[i] + 1] += 1
    for s in range(sectors):
        ends[s + 1] += ends[s]
    grouped = np.empty(ends[sectors])
    used = ends[:sectors].copy()
    for i in range(beams):
        if sector[i] >= 0:
            grouped[used[sector[i]]] = placed[1, i]
            used[sector[i]] += 1
    for s in range(sectors):
        first, last = ends[s], ends[s + 1]
        out[s] = median(grouped[first:last]) if last > first else far
    return ends[sectors]


@compiled_allocating
def median(values):
    """Median of values, which are put in order where they are few."""
    count = values.shape[0]
    if count > FEW:
        return np.median(values)
    for i in range(1, count):
        value, place = values[i], i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value
    return 0.5 * (values[(count - 1) // 2] + values[count // 2])


@compiled_allocating
def fill_beams(placed, width, spacing, far, out):
    """Fill ``out`` with the ranges at the grid; return how many of it have a beam beside them."""
    count, turn = out.shape[0], TURN / width
    reach = max(1.0, spacing / width) * (1.0 + 1e-6)
    # Distance to the nearest beam on either side of each bearing of the grid, and its range.
    distance = np.full((2, count), np.inf)
    nearest = np.full((2, count), np.inf)
    for i in range(placed.shape[1]):
        place, value = placed[0, i] / width - 0.5, placed[1, i]
        for around in (place - turn, place, place + turn):
            first = max(math.ceil(around - reach), 0)
            last = min(math.floor(around + reach), count - 1)
            for node in range(first, last + 1):
                gap = node - around
                beside = 0 if gap >= 0.0 else 1
                gap = abs(gap)
                if gap < distance[beside, node] or (
                    gap == distance[beside, node] and value < nearest[beside, node]
                ):
                    distance[beside, node], nearest[beside, node] = gap, value
    found = 0
    for node in range(count):
        below, above = distance[0, node], distance[1, node]
        if below == np.inf and above == np.inf:
            out[node] = far
            continue
        found += 1
        if above == np.inf or below == 0.0:
            out[node] = nearest[0, node]
        elif below == np.inf:
            out[node] = nearest[1, node]
        else:
            share = below / (below + above)
            out[node] = nearest[0, node] + share * (nearest[1, node] - nearest[0, node])
    return found
