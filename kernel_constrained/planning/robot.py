# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A robot that drives exactly along paths: when it is where."""

import math
from typing import NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.planning.polyline import arc_lengths, at_lengths, nearest_length

Array = npt.NDArray[np.float64]

# Distance between the places at which a robot comes back to a path, metres.
FINE = 1e-2

# A turn by more than this at a corner of a path is made standing, radians.
CORNER = 0.1

# Way on which a robot beside a path comes back to it, metres.
JOINING = 0.3

# How far ahead of the beginning of a path the robot is looked for on it, metres.
AHEAD = 1.0


@attrs.frozen
class Robot:
    """How the robot moves, and how well it knows where it is.

    It drives exactly along a path and turns without driving at corners. Round smaller bends it
    turns while it drives, slower where its turn rate asks for it.

    Attributes
    ----------
    speed : float
        Metres per second.
    turn_rate : float
        Radians per second; infinite for a robot that need not turn.
    position_deviation, yaw_deviation : float
        Standard deviation of each coordinate and of the yaw that it believes; metres, radians.
    reach : float
        How far from a path it may be to take it up, metres; further away it stands.
    """

    speed: float = 1.0
    turn_rate: float = math.inf
    position_deviation: float = 0.0
    yaw_deviation: float = 0.0
    reach: float = 0.1

    def __attrs_post_init__(self) -> None:
        """Refuse a robot that cannot move."""
        if not (0.0 < self.speed < math.inf and self.turn_rate > 0.0):
            raise ValueError(
                'speed must be positive and finite, turn_rate positive '
                f'(got {self.speed:g} and {self.turn_rate:g})'
            )
        if min(self.position_deviation, self.yaw_deviation, self.reach) < 0.0:
            raise ValueError(
                'position_deviation, yaw_deviation and reach must not be negative '
                f'(got {self.position_deviation:g}, {self.yaw_deviation:g}, {self.reach:g})'
            )

    @property
    def covariance(self) -> Array | None:
        """Covariance (3, 3) of x, y, yaw that it believes; None where it knows them."""
        deviations = np.array([self.position_deviation, self.position_deviation,
                               self.yaw_deviation])  # fmt: skip
        return np.diag(deviations**2) if deviations.any() else None


class Motion(NamedTuple):
    """When a robot that follows a path is where; all (n,), times from the beginning."""

    times: Array
    x: Array
    y: Array
    headings: Array


@compiled
def farthest_from_path(points, path):
    """Largest distance of points (n, 2) to a path (k, 2), metres."""
    farthest = 0.0
    for i in range(points.shape[0]):
        nearest = np.inf
        for k in range(path.shape[0] - 1):
            step_x, step_y = path[k + 1, 0] - path[k, 0], path[k + 1, 1] - path[k, 1]
            x, y = points[i, 0] - path[k, 0], points[i, 1] - path[k, 1]
            squared = max(step_x * step_x + step_y * step_y, 1e-300)
            share = min(max((x * step_x + y * step_y) / squared, 0.0), 1.0)
            nearest = min(nearest, (x - share * step_x) ** 2 + (y - share * step_y) ** 2)
        farthest = max(farthest, nearest)
    return math.sqrt(farthest)


@compiled_allocating
def timetable(path, heading, speed, turn_rate):
    """Rows of a :class:`Motion` (4, 2 k - 1): each piece of a path (k, 2) turned to and driven."""
    table = np.empty((4, 2 * path.shape[0] - 1))
    table[:, 0] = 0.0, path[0, 0], path[0, 1], heading
    for k in range(path.shape[0] - 1):
        before, turned, driven = table[:, 2 * k], table[:, 2 * k + 1], table[:, 2 * k + 2]
        dx, dy = path[k + 1, 0] - path[k, 0], path[k + 1, 1] - path[k, 1]
        length = math.sqrt(dx * dx + dy * dy)
        turn = math.atan2(dy, dx) - before[3] if length > 1e-9 else 0.0
        turn -= 2.0 * math.pi * math.floor(turn / (2.0 * math.pi) + 0.5)
        taken = abs(turn) / turn_rate
        turned[:], driven[1:3] = before, path[k + 1]
        driven[3] = before[3] + turn
        if abs(turn) > CORNER:
            turned[0], turned[3] = before[0] + taken, driven[3]
            driven[0] = turned[0] + length / speed
        else:
            driven[0] = turned[0] + max(length / speed, taken)
    return table


def timed(path: Array, heading: float, robot: Robot) -> Motion:
    """Let a robot with a heading drive along a path (k, 2): turn, drive, turn, drive, ..."""
    return Motion(*timetable(path, heading, robot.speed, robot.turn_rate))


def joined(path: Array, position: Array) -> tuple[Array, float]:
    """Path that begins at a position beside a path (k, 2) and comes back to it within JOINING.

    Only its first :data:`AHEAD` metres are looked at: later on it may come by once more.

    Returns
    -------
    (n, 2)
        The path from there on.
    float
        How far beside it the position is, metres.
    """
    lengths = arc_lengths(path)
    near = int(np.searchsorted(lengths, AHEAD, side='right')) + 1
    along, distance = nearest_length(path[:near], lengths, position)
    foot = at_lengths(path, lengths, np.array([along]))
    rest = np.concatenate((foot, path[lengths > along]))
    if distance < 1e-9 or len(rest) < 2:
        return np.concatenate((position[None], rest[1:])), distance
    lengths = arc_lengths(rest)
    back = min(JOINING, lengths[-1])
    places = np.unique(np.concatenate((np.arange(0.0, back, FINE), lengths)))
    beside = np.maximum(1.0 - places / back, 0.0)
    return at_lengths(rest, lengths, places) + beside[:, None] * (position - foot), distance
