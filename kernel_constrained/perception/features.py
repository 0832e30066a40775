# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""From a scan or a single range to the inputs of the learner."""

import math

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled_allocating
from kernel_constrained.perception.scan import Reading, Scan
from kernel_constrained.perception.unusable import Unusable

Array = npt.NDArray[np.float64]

# A beam this close below the edge of a sector lies on it: bearings come in single precision, and
# a scan and its mirror image must fall into the same sectors. Radians.
EDGE = 1e-6


def range_feature(reading: Reading) -> Array:
    """Position of a range between its sensor's limits, from 0 to 1; shape (1,)."""
    reading.check()
    span = reading.range_max - reading.range_min
    return np.array([(reading.range - reading.range_min) / span])


def sector_ranges(
    scan: Scan, sectors: int, bearing_min: float, bearing_max: float, far: float
) -> Array:
    """Median range of equal sectors of bearing, shape (sectors,), metres.

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

    Raises
    ------
    Unusable
        Where no beam of the scan is valid inside the bearings.
    """
    scan.check()
    out = np.empty(sectors)
    valid = fill_sectors(
        np.asarray(scan.ranges, dtype=np.float64), scan.angle_min, scan.angle_increment,
        scan.range_min, scan.range_max, bearing_min, (bearing_max - bearing_min) / sectors, far,
        out,
    )  # fmt: skip
    if valid == 0:
        raise Unusable('no valid beam')
    return out


@compiled_allocating
def fill_sectors(
    ranges, angle_min, angle_increment, range_min, range_max, bearing_min, width, far, out
):
    """Fill ``out`` with the median of each sector; return how many beams were valid."""
    sectors = out.shape[0]
    sector = np.full(ranges.shape[0], -1, dtype=np.int64)
    ends = np.zeros(sectors + 1, dtype=np.int64)
    for i in range(ranges.shape[0]):
        value = ranges[i]
        if value == np.inf or (range_min <= value <= range_max and value > 0.0):
            bearing = angle_min + i * angle_increment
            place = (bearing - bearing_min + EDGE) % (2.0 * math.pi) / width
            if 0.0 <= place < sectors:
                sector[i] = int(place)
                ends[sector[i] + 1] += 1
    for s in range(sectors):
        ends[s + 1] += ends[s]
    grouped = np.empty(ends[sectors])
    used = ends[:sectors].copy()
    for i in range(ranges.shape[0]):
        if sector[i] >= 0:
            grouped[used[sector[i]]] = min(ranges[i], far)
            used[sector[i]] += 1
    for s in range(sectors):
        first, last = ends[s], ends[s + 1]
        out[s] = np.median(grouped[first:last]) if last > first else far
    return ends[sectors]
