# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the planner sees and plans, as markers for RViz."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from kernel_constrained.planning.planner import Plan

Array = npt.NDArray[np.float64]

WHITE, BLUE = (1.0, 1.0, 1.0, 0.9), (0.3, 0.6, 1.0, 0.6)
GREEN, ORANGE, RED = (0.2, 0.9, 0.3, 1.0), (1.0, 0.55, 0.0, 0.8), (1.0, 0.2, 0.2, 1.0)

# Namespace: (type, colour, width of lines, side of points or height of letters in metres).
LOOKS = {
    'obstacles': (Marker.POINTS, WHITE, 0.06),
    'circles': (Marker.LINE_LIST, WHITE, 0.02),
    'alternatives': (Marker.LINE_LIST, BLUE, 0.02),
    'proven': (Marker.LINE_STRIP, GREEN, 0.08),
    'undecided': (Marker.LINE_STRIP, ORANGE, 0.03),
    'robot': (Marker.LINE_STRIP, GREEN, 0.03),
    'reason': (Marker.TEXT_VIEW_FACING, RED, 0.3),
}
# Seconds after which a drawing vanishes where no other replaces it: what was proven is no more.
LIFETIME = 2
ROUND = np.linspace(0.0, 2.0 * np.pi, 33)
CIRCLE = np.column_stack([np.cos(ROUND), np.sin(ROUND)])


def pieces(line: Array) -> Array:
    """Return the ends of the pieces of a polyline (k, D), two for each: (2 (k - 1), D)."""
    return np.repeat(line, 2, axis=0)[1:-1]


def joined(lines: Iterable[Array]) -> Array:
    """Return positions (k, 3) one after the other, which may be none."""
    return np.concatenate([np.empty((0, 3)), *lines])


class MarkerMessages:
    """Draws plans; each drawing replaces the one before.

    Parameters
    ----------
    radius
        Of the robot, metres.
    circles : (3, n)
        Positions and radii of known obstacles, metres.
    """

    def __init__(self, radius: float, circles: Array) -> None:
        self._radius = radius
        self._outlines = [circle[:2] + circle[2] * CIRCLE for circle in circles.T]
        self._points: list[Any] = []
        self._used, self._height = 0, 0.0
        self._markers = {name: marker(name, *look) for name, look in LOOKS.items()}
        self._array = MarkerArray(markers=list(self._markers.values()))

    def draw(self, stamp: Any, frame_id: str, plan: Plan, robot: Array, height: float) -> Any:
        """Draw a plan around the robot (2,); what has no height is drawn at ``height``.

        Returns
        -------
        visualization_msgs.msg.MarkerArray
            The message, which the next call overwrites.
        """
        self._used, self._height = 0, height
        seen = plan.scene.points.T if plan.scene is not None else np.empty((0, 2))
        drawn = {
            'obstacles': self._lifted(seen),
            'circles': joined(pieces(self._lifted(line)) for line in self._outlines),
            'alternatives': joined(pieces(self._lifted(line)) for line in plan.alternatives),
            'proven': self._lifted(plan.path),
            'undecided': self._lifted(plan.rest),
            'robot': self._lifted(robot + self._radius * CIRCLE),
        }
        for name, line in drawn.items():
            self._markers[name].points = self._fill(line)
        self._say(plan, robot)
        for name, one in self._markers.items():
            one.header.stamp, one.header.frame_id = stamp, frame_id
            shown = len(one.points) > 1 or (one.points and name == 'obstacles') or one.text
            one.action = Marker.ADD if shown else Marker.DELETE
        return self._array

    def _say(self, plan: Plan, robot: Array) -> None:
        """Write the reason why there is no path beside the robot, which is red then."""
        text = self._markers['reason']
        text.text = plan.reason
        place = text.pose.position
        place.x, place.y = float(robot[0]), float(robot[1]) + self._radius + text.scale.z
        place.z = self._height
        self._markers['robot'].color = colour(GREEN if plan.proven else RED)

    def _lifted(self, line: Array) -> Array:
        """Return positions (k, 2) at the robot's height, those in space as they are."""
        if line.shape[1] > 2:
            return line
        return np.column_stack([line, np.full(len(line), self._height)])

    def _fill(self, line: Array) -> list[Any]:
        """Write positions (k, 3) into points that were used before where there are any."""
        first, self._used = self._used, self._used + len(line)
        self._points += [Point() for _ in range(self._used - len(self._points))]
        points = self._points[first : self._used]
        for point, (x, y, z) in zip(points, line.tolist()):
            point.x, point.y, point.z = x, y, z
        return points


def marker(name: str, kind: int, look: tuple[float, ...], width: float) -> Any:
    """Return a marker that is drawn where its points are."""
    made = Marker(ns=name, type=kind, color=colour(look))
    made.pose.orientation.w = 1.0
    made.lifetime.sec = LIFETIME
    made.scale.x = made.scale.y = made.scale.z = width
    return made


def colour(rgba: tuple[float, ...]) -> Any:
    """Return red, green, blue and opacity as a message."""
    return ColorRGBA(**dict(zip('rgba', rgba)))
