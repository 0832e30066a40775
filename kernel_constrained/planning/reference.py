# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the robot is asked to follow: a path to stay near, or a goal."""

import numpy as np
import numpy.typing as npt

from kernel_constrained.perception.unusable import Unusable
from kernel_constrained.planning.polyline import arc_lengths, at_lengths, nearest_length

Array = npt.NDArray[np.float64]

# How far the robot is looked for along the reference, back and ahead of where it was, metres. A
# reference may cross itself: the robot is not where it is not yet.
BACK, AHEAD = 1.0, 3.0
# Distance from there at which it is looked for all along the reference again, metres.
LOST = 2.0
# Coordinates beyond this are a mistake, metres.
FARTHEST = 1e7


class Reference:
    """A path to stay near, or a goal alone.

    Parameters
    ----------
    points : (k, D)
        Positions of the path, D = 2 or 3; a single one is a goal, and the straight way to it from
        wherever the robot is the path.

    Raises
    ------
    Unusable
        Where there is no point, one is not finite, or they are neither in 2 nor in 3 dimensions.
    """

    def __init__(self, points: Array) -> None:
        points = np.array(points, dtype=float)
        if points.ndim != 2 or len(points) == 0:
            raise Unusable('empty reference', f'an array of shape {points.shape}, expected (k, D)')
        if points.shape[1] not in (2, 3):
            raise Unusable('reference of wrong dimension', f'{points.shape[1]}, must be 2 or 3')
        if not np.isfinite(points).all():
            raise Unusable('non-finite reference', f'{(~np.isfinite(points)).sum()} coordinates')
        if np.abs(points).max() > FARTHEST:
            raise Unusable('reference too far away', f'{np.abs(points).max():g} m from the origin')
        steps = np.diff(points, axis=0)
        moved = np.concatenate([[True], (steps * steps).sum(1) > 1e-12])
        self.points = points[moved]
        self._lengths = arc_lengths(self.points)
        self._progress = 0.0

    @property
    def dimensions(self) -> int:
        """Two or three."""
        return int(self.points.shape[1])

    @property
    def is_goal(self) -> bool:
        """Whether it is a goal alone."""
        return len(self.points) == 1

    @property
    def goal(self) -> Array:
        """Return the last position, (D,)."""
        return np.asarray(self.points[-1])

    def ahead(self, robot: Array) -> Array:
        """Return what is ahead of the robot, beginning where it is, (k, D).

        Call it with each new position: where the robot is along a path that comes near itself is
        known from where it was.
        """
        if self.is_goal:
            return np.stack([robot, self.goal])
        self._progress = self._along(robot)
        after = self._lengths > self._progress + 1e-6
        return (
            np.concatenate([robot[None], self.points[after]])
            if after.any()
            else np.stack([robot, self.goal])
        )

    def _along(self, robot: Array) -> float:
        """Return how far along the path the robot is, metres."""
        low, high = self._progress - BACK, self._progress + AHEAD
        inside = (self._lengths > low) & (self._lengths < high)
        ends = np.clip(np.array([low, high]), 0.0, self._lengths[-1])
        first, last = at_lengths(self.points, self._lengths, ends)
        line = np.concatenate([first[None], self.points[inside], last[None]])
        lengths = np.concatenate([ends[:1], self._lengths[inside], ends[1:]])
        along, distance = nearest_length(line, lengths, robot)
        if distance > LOST:
            along, _ = nearest_length(self.points, self._lengths, robot)
        return along
