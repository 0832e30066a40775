# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A range scan as plain numbers, checked once."""

import math

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.perception.unusable import Unusable


@attrs.frozen(eq=False)
class Scan:
    """What a planar range sensor saw at once, as sensor_msgs/LaserScan says it.

    Attributes
    ----------
    ranges : (n,)
        Metres; NaN, infinities and values outside the limits mean what REP-117 says.
    angle_min, angle_increment
        Bearing of the first beam and from each beam to the next, radians.
    range_min, range_max
        Limits of the sensor, metres.
    """

    ranges: npt.NDArray[np.floating]
    angle_min: float
    angle_increment: float
    range_min: float
    range_max: float

    def check(self) -> None:
        """Raise :class:`Unusable` where no beam of the scan can be trusted."""
        if len(self.ranges) == 0:
            raise Unusable('empty scan')
        if not math.isfinite(self.angle_min):
            raise Unusable('non-finite angle_min')
        if not math.isfinite(self.angle_increment) or (
            self.angle_increment == 0.0 and len(self.ranges) > 1
        ):
            raise Unusable('bad angle_increment')
        if not self.range_max > max(self.range_min, 0.0):  # NaN too
            raise Unusable('range_max not above range_min')


@attrs.frozen
class Reading:
    """A single range, as sensor_msgs/Range says it; metres.

    ``no return`` is ``+inf``; readings outside the limits are bad (REP-117).
    """

    range: float
    range_min: float
    range_max: float

    def check(self) -> None:
        """Raise :class:`Unusable` where the reading is no distance."""
        if not math.isfinite(self.range_max - self.range_min):
            raise Unusable('non-finite limits')
        if not self.range_max > self.range_min:
            raise Unusable('range_max not above range_min')
        if not self.range_min <= self.range <= self.range_max:
            raise Unusable('range outside its limits')
