# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""All that is known of obstacles at one moment, from where the robot is."""

import functools
import math

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.planning.config import PlannerConfig, WorkspaceConfig
from kernel_constrained.planning.grid import DistanceGrid, lower_bound, yielding
from kernel_constrained.planning.obstacles import Obstacles

Array = npt.NDArray[np.float64]

# By how much less than its distance to the robot an obstacle nearer than wanted is kept clear of,
# metres: room for a path to begin in.
YIELD = 2e-3
# Standard deviations of a range by which noise may put an end point inside the robot's disc.
NOISE = 3.0
# Standard deviations of the pose by which end points are kept clear of in addition.
POSE_COVERAGE = 2.0
NOTHING_AHEAD = np.empty((2, 0))
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
        Their radii, 0 for the end point of a beam.
    deviation : (n,)
        Standard deviation of each centre, the pose's apart, metres.
    grid
        Distances to the obstacles of the map.
    robot : (D,)
        Where the robot's centre is.
    config
        Of the planner.
    uncertainty : (n,), optional
        What is kept from each centre in addition, for the pose is uncertain, metres.
    ahead : (2, k), optional
        Where points will be that move; they do not touch the robot now.

    Attributes
    ----------
    box : (2, D)
        Where the robot's centre may be.
    """

    def __init__(
        self, points: Array, radii: Array, deviation: Array, grid: DistanceGrid, robot: Array,
        config: PlannerConfig, uncertainty: Array | None = None, ahead: Array = NOTHING_AHEAD,
    ) -> None:  # fmt: skip
        self.points, self.radii, self.deviation = points, radii, deviation
        self.grid, self.robot, self.ahead = grid, robot, ahead
        self._radius = config.robot.radius
        self._noise = NOISE * config.scan.range_deviation
        reach = radii if uncertainty is None else radii + uncertainty
        self._centres, self._reach = points, reach
        if ahead.shape[1]:
            self._centres = np.concatenate([points, ahead], axis=1)
            self._reach = np.concatenate([reach, np.zeros(ahead.shape[1])])
        self._distances = np.empty(len(self._reach))
        self._nearest = float(fill_distances(self._centres, radii, robot, self._distances))
        self._grid_distance = self._distance_in_grid(robot)
        self.box = np.empty((2, len(robot)))
        fill_box(*box_of(config.workspace, len(robot)), self._radius, robot, self.box)
        self._made: dict[tuple[float, float], Obstacles] = {}

    def obstacles(self, margin: float, spread: float = 0.0) -> Obstacles:
        """Return what to keep clear of by the robot's radius and a margin, metres.

        From each centre so many standard deviations are kept in addition as ``spread`` says.
        """
        key = margin, spread
        if key not in self._made:
            self._made[key] = self._with_margin(margin, spread)
        return self._made[key]

    def _with_margin(self, margin: float, spread: float) -> Obstacles:
        wanted, reach, keep = self._radius + margin, self._reach, np.empty(len(self._reach))
        if spread > 0.0:
            reach = reach.copy()
            reach[: len(self.deviation)] += spread * self.deviation
        fill_keep(reach, self._distances, wanted, keep)
        grid = self.grid
        if self._grid_distance < wanted + YIELD:
            grid = yielding(grid, self.robot, wanted, YIELD)
        return Obstacles(
            self._centres, keep, grid.values, grid.origin, grid.spacing, wanted,
            self.box[0], self.box[1],
        )  # fmt: skip

    @property
    def clearance(self) -> float:
        """Distance between the robot's disc and the nearest obstacle, negative inside, metres."""
        return min(self._nearest, self._grid_distance) - self._radius

    @property
    def contact(self) -> Array:
        """Distance from each centre at which the robot touches, (n,), metres."""
        return self.radii + self._radius

    @property
    def robot_is_inside(self) -> bool:
        """Whether an obstacle reaches into the robot's disc by more than noise explains."""
        return self.clearance < -self._noise

    def is_free(self, position: Array) -> bool:
        """Whether the robot's disc fits at a position (D,), margins aside."""
        nearest = fill_distances(self.points, self.radii, position, np.empty(self.points.shape[1]))
        return bool(min(nearest, self._distance_in_grid(position)) > self._radius)

    def _distance_in_grid(self, position: Array) -> float:
        """Return a lower bound of the distance to the map's obstacles, metres."""
        grid = self.grid
        if not grid.values.size:
            return math.inf
        x, y = position[0], position[1]
        return float(lower_bound(grid.values, grid.origin, grid.spacing, x, y))


@compiled
def fill_distances(points, radii, position, distances):
    """Fill the distances of a position to centres (2, n); return the least to a disc.

    Centres beyond those that have radii (m,) are of no disc.
    """
    nearest = np.inf
    for i in range(points.shape[1]):
        dx, dy = points[0, i] - position[0], points[1, i] - position[1]
        distances[i] = math.sqrt(dx * dx + dy * dy)
    for i in range(radii.shape[0]):
        nearest = min(nearest, distances[i] - radii[i])
    return nearest


@compiled
def fill_keep(radii, distances, wanted, keep):
    """Fill what is kept from each disc: what is wanted, or hardly less than its distance."""
    for i in range(keep.shape[0]):
        keep[i] = max(min(radii[i] + wanted, distances[i] - YIELD), 0.0)


@compiled
def fill_box(low, high, radius, robot, box):
    """Fill where the robot's centre may be (2, D): within the workspace, or where it is."""
    for d in range(robot.shape[0]):
        box[0, d] = min(low[d] + radius, robot[d] - YIELD)
        box[1, d] = max(high[d] - radius, robot[d] + YIELD)


@compiled_allocating
def joined(ends, end_deviation, remembered, remembered_deviation, circles, range_deviation):
    """Put points together; return centres (2, n), and (n,) radii, deviations, uncertainties.

    The deviation is that of the sensor; the pose's is in the uncertainty.
    """
    first, second, third = ends.shape[1], remembered.shape[1], circles.shape[1]
    count, both = first + second + third, first + second
    points, radii = np.empty((2, count)), np.zeros(count)
    deviation, uncertainty = np.zeros(count), np.zeros(count)
    for d in range(2):
        points[d, :first] = ends[d]
        points[d, first:both] = remembered[d]
        points[d, both:] = circles[d]
    for i in range(both):
        total = end_deviation[i] if i < first else remembered_deviation[i - first]
        deviation[i] = min(total, range_deviation)
        rest = total * total - deviation[i] * deviation[i]
        uncertainty[i] = POSE_COVERAGE * math.sqrt(max(rest, 0.0))
    radii[both:] = circles[2]
    return points, radii, deviation, uncertainty


@compiled
def lies_within(position, low, high, margin):
    """Whether a position is in a box, by a margin from its sides."""
    inside = True
    for d in range(position.shape[0]):
        inside &= low[d] + margin <= position[d] <= high[d] - margin
    return inside


@functools.lru_cache(maxsize=16)
def box_of(workspace: WorkspaceConfig, dimensions: int) -> tuple[Array, Array]:
    """Return lower and upper ends of the workspace, (D,) each."""
    w = workspace
    low, high = (
        np.array([w.x_min, w.y_min, w.z_min]),
        np.array([w.x_max, w.y_max, w.z_max]),
    )
    return low[:dimensions], high[:dimensions]
