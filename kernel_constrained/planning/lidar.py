# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A planar range finder that sees a world as it truly is, with its errors."""

import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.perception.scan import Scan
from kernel_constrained.planning.exact import cast
from kernel_constrained.planning.worlds import World

Array = npt.NDArray[np.float64]


def standard_normal(rng: np.random.Generator, shape: Any) -> Array:
    """Gaussian noise of variance 1."""
    return rng.standard_normal(shape)


@attrs.frozen
class Lidar:
    """A planar range finder that sees discs and walls.

    Attributes
    ----------
    beams : int
        Over the field of view.
    range_max, range_min : float
        Limits, metres. What is further away gives +inf, what is nearer -inf (REP-117).
    deviation : float
        Standard deviation of a range, metres. Noise takes no return out of the limits.
    dropouts : float
        Share of beams that report NaN.
    field_of_view : float
        Radians, centred on the sensor's forward axis.
    mounting : Mounting
        Where the sensor sits on the robot.
    law : callable
        Noise of unit variance: ``law(rng, shape)``.
    """

    beams: int = 360
    range_max: float = 3.0
    range_min: float = 0.02
    deviation: float = 0.03
    dropouts: float = 0.0
    field_of_view: float = 2.0 * math.pi
    mounting: Mounting = Mounting()
    law: Callable[[np.random.Generator, Any], Array] = standard_normal

    def __attrs_post_init__(self) -> None:
        """Refuse a sensor that there is none of."""
        if self.beams < 2:
            raise ValueError(f'beams must be at least 2 (got {self.beams})')
        if not 0.0 <= self.range_min < self.range_max < math.inf:
            raise ValueError(
                'range_max must be finite and exceed range_min, which must not be negative '
                f'(got {self.range_max:g} and {self.range_min:g})'
            )
        if not (self.deviation >= 0.0 and 0.0 <= self.dropouts <= 1.0):
            raise ValueError(
                'deviation must not be negative, dropouts be a share '
                f'(got {self.deviation:g} and {self.dropouts:g})'
            )
        if not 0.0 < self.field_of_view <= 2.0 * math.pi + 1e-9:
            raise ValueError(
                f'field_of_view must be at most a full turn (got {self.field_of_view:g})'
            )

    @property
    def increment(self) -> float:
        """Bearing from each beam to the next: a full turn does not see its first beam twice."""
        turn = self.field_of_view > 2.0 * math.pi - 1e-6
        return self.field_of_view / (self.beams if turn else self.beams - 1)

    def scan(self, world: World, seconds: float, pose: Pose, rng: np.random.Generator) -> Scan:
        """Return what is seen at a time by a robot whose true pose this is.

        Ranges and limits are those that single precision, as in messages, has.
        """
        place, side = self.mounting, -1.0 if self.mounting.upside_down else 1.0
        cosine, sine = math.cos(pose.yaw), math.sin(pose.yaw)
        first, ranges = -0.5 * self.field_of_view, np.empty(self.beams)
        low, high = float(np.float32(self.range_min)), float(np.float32(self.range_max))
        walls = world.walls
        cast(
            pose.x + cosine * place.x - sine * place.y,
            pose.y + sine * place.x + cosine * place.y,
            pose.yaw + place.yaw + side * first, side * self.increment, world.discs(seconds),
            walls.occupied, walls.origin, walls.resolution, high, ranges,
        )  # fmt: skip
        measured = ranges + self.deviation * self.law(rng, self.beams)
        measured = np.where(ranges <= high, np.clip(measured, low, high), np.inf)
        measured[ranges < low] = -np.inf
        if self.dropouts > 0.0:
            measured[rng.random(self.beams) < self.dropouts] = np.nan
        return Scan(measured.astype(np.float32), first, self.increment, low, high)
