# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""All that is known of obstacles at one moment, from where the robot is."""

import functools
import math

import numpy as np
import numpy.typing as npt

from kernel_constrained.planning.config import PlannerConfig, WorkspaceConfig
from kernel_constrained.planning.grid import DistanceGrid, lower_bound
from kernel_constrained.planning.obstacles import Obstacles

Array = npt.NDArray[np.float64]

# By how much less than its distance to the robot an obstacle nearer than wanted is kept clear of,
# metres: room for a path to begin in.
YIELD = 2e-3
# Standard deviations of a range by which noise may put an end point inside the robot's disc.
NOISE = 3.0
NO_GRID = DistanceGrid(np.empty((0, 0)), np.zeros(2), 1.0)


class Scene:
    """Obstacles as the robot sees them now.

    What is nearer than wanted is kept clear of by hardly less than its distance to the robot: a
    robot that noise, or a moving obstacle, has put inside the margin can find out again, and
    comes no nearer.

    Parameters
    ----------
    points : (2, n)
        Centres of discs, metres.
    radii : (n,)
        Their radii, the uncertainty of their position included; 0 for the end point of a beam.
    grid
        Distances to the obstacles of the map.
    robot : (D,)
        Where the robot's centre is.
    config
        Of the planner.
    """

    def __init__(
        self, points: Array, radii: Array, grid: DistanceGrid, robot: Array, config: PlannerConfig
    ) -> None:
        self.points, self.radii, self.grid, self.robot = points, radii, grid, robot
        self._radius = config.robot.radius
        self._noise = NOISE * config.scan.range_deviation
        self._workspace = config.workspace
        gaps = points - robot[:2, None]
        self._distances = np.sqrt((gaps * gaps).sum(0))
        self._grid_distance = (
            float(lower_bound(grid.values, grid.origin, grid.spacing, robot[0], robot[1]))
            if grid.values.size
            else math.inf
        )
        self._made: dict[float, Obstacles] = {}

    def obstacles(self, margin: float) -> Obstacles:
        """Return what to keep clear of by the robot's radius and a margin, metres."""
        if margin not in self._made:
            self._made[margin] = self._with_margin(margin)
        return self._made[margin]

    def _with_margin(self, margin: float) -> Obstacles:
        wanted = self._radius + margin
        keep = np.minimum(self.radii + wanted, self._distances - YIELD)
        low, high = self.box()
        return Obstacles(
            self.points, np.maximum(keep, 0.0), self.grid.values, self.grid.origin,
            self.grid.spacing, max(min(wanted, self._grid_distance - YIELD), 0.0), low, high,
        )  # fmt: skip

    def box(self) -> tuple[Array, Array]:
        """Return where the robot's centre may be, (D,) each."""
        low, high = box_of(self._workspace, len(self.robot))
        low, high = low + self._radius, high - self._radius
        return np.minimum(low, self.robot), np.maximum(high, self.robot)

    @functools.cached_property
    def clearance(self) -> float:
        """Distance between the robot's disc and the nearest obstacle, negative inside, metres."""
        nearest = float((self._distances - self.radii).min(initial=math.inf))
        return min(nearest, self._grid_distance) - self._radius

    @property
    def robot_is_inside(self) -> bool:
        """Whether an obstacle reaches into the robot's disc by more than noise explains."""
        return self.clearance < -self._noise

    def is_free(self, position: Array) -> bool:
        """Whether the robot's disc fits at a position (D,), margins aside."""
        gaps = self.points - position[:2, None]
        distances = np.sqrt((gaps * gaps).sum(0)) - self.radii
        grid = self.grid
        if grid.values.size:
            bound = lower_bound(grid.values, grid.origin, grid.spacing, position[0], position[1])
            if bound <= self._radius:
                return False
        return bool(distances.min(initial=math.inf) > self._radius)


def box_of(workspace: WorkspaceConfig, dimensions: int) -> tuple[Array, Array]:
    """Return lower and upper ends of the workspace, (D,) each."""
    w = workspace
    low, high = np.array([w.x_min, w.y_min, w.z_min]), np.array([w.x_max, w.y_max, w.z_max])
    return low[:dimensions], high[:dimensions]
