# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A range scan as plain numbers, checked once."""

import math

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.perception.unusable import Unusable

# Beams over more than this are no scan, radians; a little more than a turn does occur.
WIDEST = 2.2 * math.pi


@attrs.frozen(eq=False)
class Scan:
    """What a planar range sensor saw at once, as sensor_msgs/LaserScan says it.

    Attributes
    ----------
    ranges : (n,)
        Metres; NaN, infinities and values outside the limits mean what REP-117 says.
    angle_min, angle_increment
        Bearing of the first beam and from each beam to the next, radians; counter-clockwise seen
        from above the sensor.
    range_min, range_max
        Limits of the sensor, metres.
    angle_max
        Bearing of the last beam as the sensor states it; only its side of ``angle_min`` is used,
        as a check. NaN where it is not known.
    """

    ranges: npt.NDArray[np.floating]
    angle_min: float
    angle_increment: float
    range_min: float
    range_max: float
    angle_max: float = math.nan

    def check(self) -> None:
        """Raise :class:`Unusable` where no beam of the scan can be trusted."""
        beams = len(self.ranges)
        if beams == 0:
            raise Unusable('empty scan')
        if beams == 1:
            raise Unusable('only one beam')
        if not math.isfinite(self.angle_min):
            raise Unusable('non-finite angle_min', f'{self.angle_min}')
        if not math.isfinite(self.angle_increment) or self.angle_increment == 0.0:
            raise Unusable('bad angle_increment', f'{self.angle_increment}')
        if (self.angle_max - self.angle_min) * self.angle_increment < 0.0:
            raise Unusable(
                'angle_increment of the wrong sign',
                f'from {self.angle_min:g} to {self.angle_max:g} by {self.angle_increment:g}',
            )
        if abs(self.angle_increment) * (beams - 1) > WIDEST:
            raise Unusable(
                'beams over more than a turn',
                f'{beams} beams, {self.angle_increment:g} rad apart: are they degrees?',
            )
        if not self.range_max > max(self.range_min, 0.0):  # NaN too
            limits = f'{self.range_min:g} and {self.range_max:g}'
            raise Unusable('range_max not above range_min', limits)


@attrs.frozen
class Reading:
    """A single range, as sensor_msgs/Range says it; metres.

    ``+inf`` is no return and ``-inf`` too close to measure; NaN and readings outside the limits
    are bad (REP-117). None of them is a distance to learn from.
    """

    range: float
    range_min: float
    range_max: float

    def check(self) -> None:
        """Raise :class:`Unusable` where the reading is no distance."""
        limits = f'{self.range_min:g} and {self.range_max:g}'
        if not math.isfinite(self.range_max - self.range_min):
            raise Unusable('non-finite limits', limits)
        if not self.range_max > self.range_min:
            raise Unusable('range_max not above range_min', limits)
        if math.isinf(self.range):
            raise Unusable('no return' if self.range > 0.0 else 'too close')
        if not self.range_min <= self.range <= self.range_max:
            raise Unusable('range outside its limits', f'{self.range:g}, limits {limits}')
