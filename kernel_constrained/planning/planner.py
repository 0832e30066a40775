# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The planner: a scan and a pose in, a proven path out, or the reason why there is none."""

import math

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.core.trajectory import Trajectory
from kernel_constrained.core.trajectory_steps import nearest_time
from kernel_constrained.perception.config import mounting_of
from kernel_constrained.perception.geometry import Pose
from kernel_constrained.perception.scan import Scan
from kernel_constrained.perception.unusable import Unusable
from kernel_constrained.planning.candidates import Candidate, CandidateMaker, GOOD
from kernel_constrained.planning.config import circles_of, PlannerConfig, WorkspaceConfig
from kernel_constrained.planning.grid import distance_grid, DistanceGrid, nearest_moved
from kernel_constrained.planning.maps import OccupancyMap
from kernel_constrained.planning.memory import PointMemory
from kernel_constrained.planning.motion import Advance
from kernel_constrained.planning.obstacles import Obstacles
from kernel_constrained.planning.polyline import arc_lengths
from kernel_constrained.planning.reference import Reference
from kernel_constrained.planning.risk import LAWS, Risk, sampled_risk
from kernel_constrained.planning.scene import box_of, joined, lies_within, NO_GRID, Scene
from kernel_constrained.planning.seen import seen_horizon
from kernel_constrained.planning.sensing import View, view_of
from kernel_constrained.planning.ways import SHORT, Situation, WaySearch

Array = npt.NDArray[np.float64]

NO_GOAL = 'no goal'
AT_GOAL = 'at the goal'
INSIDE = 'robot is inside an obstacle'
START_OUTSIDE = 'robot is outside the workspace'
GOAL_OUTSIDE = 'goal is outside the workspace'
GOAL_BLOCKED = 'goal is blocked'
NO_WAY = 'no way to the goal'
NO_PROOF = 'budget spent without a proof'
UNSEEN = 'path leaves what was seen'
REASONS = (
    NO_GOAL, AT_GOAL, INSIDE, START_OUTSIDE, GOAL_OUTSIDE, GOAL_BLOCKED, NO_WAY, NO_PROOF, UNSEEN,
)  # fmt: skip

# Share of a path's time ahead in which the robot is looked for on it, and times looked at.
LOOK_AHEAD, LOOKS = 0.25, 24
# Distance from its path at which the robot counts as on it, metres: rounding.
ON_PATH = 1e-3
NO_POINTS, NO_DEVIATION = np.empty((2, 0)), np.empty(0)
# Positions at which a path is held against draws of the noise.
RISK_POSITIONS = 128


@attrs.frozen(eq=False)
class Plan:
    """What the planner says of a scan.

    Attributes
    ----------
    stamp
        Of the scan, nanoseconds.
    reason
        Why there is no proven path, one of ``REASONS``; empty where there is one.
    detail
        The same with numbers.
    trajectory
        The path, None where there is none.
    since
        Time on the trajectory at which the robot is.
    path : (k, D)
        From the robot to the end of what is proven and seen, metres.
    rest : (m, D)
        What comes after it: planned, proven against what is known, not seen.
    length, horizon
        Of the whole path ahead and of its part that is proven and seen, metres.
    clearance
        Distance beyond the robot's radius that is proven, metres.
    kept
        Whether it is the path of the plan before.
    final
        Whether it ends at the goal.
    alternatives
        Rough ways that were considered.
    dual_variable, scale, violation, steps
        Of the learner, when the path was learned.
    scene
        Obstacles that the path was proven against.
    view
        The scan in the frame of the path.
    """

    stamp: int
    reason: str = ''
    detail: str = ''
    trajectory: Trajectory | None = None
    since: float = 0.0
    path: Array = attrs.field(factory=lambda: np.empty((0, 2)))
    rest: Array = attrs.field(factory=lambda: np.empty((0, 2)))
    length: float = 0.0
    horizon: float = 0.0
    clearance: float = math.nan
    kept: bool = False
    final: bool = False
    alternatives: tuple[Array, ...] = ()
    dual_variable: float = math.nan
    scale: float = math.nan
    violation: float = math.nan
    steps: int = 0
    scene: Scene | None = None
    view: View | None = None

    @property
    def proven(self) -> bool:
        """Whether there is a path to go on."""
        return not self.reason

    @property
    def obstacles(self) -> Obstacles | None:
        """Return what the path keeps clear of, as proven; without a path by the radius alone."""
        if self.scene is None:
            return None
        return self.scene.obstacles(self.clearance if self.proven else 0.0)

    @property
    def order(self) -> int:
        """Points of the trajectory's dictionary."""
        return self.trajectory.model_order if self.trajectory is not None else 0


class Planner:
    """Plans a path for each scan, and proves it.

    Parameters
    ----------
    config
        What can be chosen.

    Attributes
    ----------
    mounting
        Where the sensor sits on the robot.
    reference
        What is followed, None at first.
    """

    def __init__(self, config: PlannerConfig) -> None:
        self.config = config
        self.mounting = mounting_of(config.mounting)
        self.reference: Reference | None = None
        self._maker = CandidateMaker(config)
        self._search = WaySearch(config, self._maker)
        self._grid = NO_GRID
        self._circles = circles_of(config.obstacles.circles)
        self.reset()

    def reset(self) -> None:
        """Forget the path and what was seen."""
        memory = self.config.memory
        self._memory = PointMemory(memory.voxel, memory.radius, memory.min_hits)
        self._advance = Advance(self.config.moving.lookahead, self.config.moving.fastest)
        self._last: Candidate | None = None

    def set_map(self, map_: OccupancyMap | None) -> None:
        """Take known obstacles, or none."""
        self._grid = NO_GRID if map_ is None else grid_of(map_, self.config)

    def set_reference(self, points: Array) -> None:
        """Take a path to stay near, (k, D), or a goal, (1, D); raises ``Unusable``."""
        self.reference = Reference(points)
        self._last = None

    def set_goal(self, goal: Array) -> None:
        """Take a goal (D,) to go to straight from wherever the robot is; raises ``Unusable``."""
        self.set_reference(np.atleast_2d(np.asarray(goal, dtype=float)))

    def plan(self, stamp: int, scan: Scan, pose: Pose, covariance: Array | None = None) -> Plan:
        """Plan from a scan.

        Parameters
        ----------
        stamp
            Of the scan, nanoseconds.
        scan
            What the sensor saw.
        pose
            Of the robot at that time, in the frame of the path.
        covariance : (3, 3), optional
            Of the pose's x, y and yaw.

        Raises
        ------
        Unusable
            Where the scan or the pose cannot be used.
        """
        view = view_of(stamp, scan, pose, self.mounting, self.config.scan, covariance)
        if self.config.memory.enabled:
            self._memory.update(view)
        if self.reference is None:
            return Plan(stamp, NO_GOAL, view=view)
        robot = np.array([pose.x, pose.y, pose.z][: self.reference.dimensions])
        if not math.isfinite(robot[-1]):
            raise Unusable('non-finite pose', f'position {robot}')
        scene = self._scene(view, robot)
        ahead = self.reference.ahead(robot)
        trouble = self._trouble(scene, ahead)
        if trouble is not None:
            return Plan(stamp, *trouble, scene=scene, view=view)
        last, distance = self._followed(robot)
        kept, seeds = self._still_proven(last, distance, scene), list[Array]()
        candidate = kept
        if candidate is None:
            now = Situation(scene, view, self.reference, ahead, last)
            candidate, seeds = self._search.best(now)
        if candidate is None or candidate.level < 0.0:
            trouble = self._why_not(seeds, candidate, robot, ahead[-1])
            return Plan(stamp, *trouble, alternatives=tuple(seeds), scene=scene, view=view)
        self._last = candidate
        return self._plan_of(candidate, scene, view, kept is not None, seeds)

    def risk(self, plan: Plan, seed: int = 0) -> Risk | None:
        """Bound the probability that a path touches what was seen, by sampling.

        The end points of beams are displaced by the noise of the sensor, and all of them by the
        error of the pose. It takes longer than planning; None without a path or without draws.

        Parameters
        ----------
        plan
            With a path.
        seed
            Of the draws.
        """
        settings, scene, view = self.config.certificate, plan.scene, plan.view
        if plan.trajectory is None or scene is None or view is None or settings.draws == 0:
            return None
        line, lengths = plan.trajectory.sampled(plan.since, RISK_POSITIONS)
        return sampled_risk(
            line[:, :2].T, np.ones(RISK_POSITIONS), np.gradient(lengths), scene.points,
            scene.contact, scene.deviation, np.random.default_rng(seed), settings.draws,
            settings.confidence, view.covariance if view.covariance.any() else None, view.robot,
            None if self.config.scan.noise == 'gaussian' else LAWS[self.config.scan.noise],
        )  # fmt: skip

    def warm_up(self) -> None:
        """Compile all that planning uses; what the planner knows stays as it is."""
        limits = attrs.evolve(self.config.limits, curvature=10.0)
        other = Planner(attrs.evolve(self.config, limits=limits, workspace=WorkspaceConfig()))
        other.set_goal(np.array([8.0 * self.config.robot.radius + 4.0, 0.1]))
        ranges = np.where(np.abs(np.linspace(-math.pi, math.pi, 72)) < 2.0, 1.5, np.inf)
        scan = Scan(ranges, -math.pi, 2.0 * math.pi / 72, 0.01, 10.0)
        covariance = 1e-6 * np.eye(3)
        aside = 0.02 + self.config.robot.tracking
        for number in range(1, 5):  # far enough apart to be compared for motion
            pose = Pose(0.0, aside if number == 4 else 0.0, 0.0, 0.0)  # at last beside its path
            plan = other.plan(number * 600_000_000, scan, pose, covariance)
            other.risk(plan)
        nearest_moved(np.empty((0, 2)), np.empty((0, 2)), np.empty(0))  # where there is a map

    # -- what is there ----------------------------------------------------------------------

    def _scene(self, view: View, robot: Array) -> Scene:
        """Put together what the scan shows, what earlier ones showed, and what is known.

        What comes towards free space is kept clear of where it will be, too.

        Where the pose is uncertain, end points count as discs of that uncertainty.
        """
        if self.config.memory.enabled:
            remembered, spread = self._memory.points_and_deviations()
        else:
            remembered, spread = NO_POINTS, NO_DEVIATION
        points, radii, deviation, uncertainty = joined(
            view.points, view.deviation, remembered, spread, self._circles,
            self.config.scan.range_deviation,
        )  # fmt: skip
        ahead = self._advance.ahead(view)
        return Scene(points, radii, deviation, self._grid, robot, self.config, uncertainty, ahead)

    def _trouble(self, scene: Scene, ahead: Array) -> tuple[str, str] | None:
        """Say why nothing can be planned at all, if so."""
        robot, goal = scene.robot, ahead[-1]
        low, high = box_of(self.config.workspace, len(robot))
        radius = self.config.robot.radius
        distance = float(arc_lengths(ahead)[-1])
        if distance <= self.config.robot.goal_distance:
            return AT_GOAL, f'at {distance:.3g} m from it'
        if scene.robot_is_inside:
            return INSIDE, f'by {-scene.clearance:.3g} m'
        if not lies_within(robot, low, high, 0.0):
            return START_OUTSIDE, f'at {robot}, allowed from {low} to {high}'
        if not lies_within(goal, low, high, radius):
            return (
                GOAL_OUTSIDE,
                f'at {goal}, allowed from {low + radius} to {high - radius}',
            )
        if not scene.is_free(goal):
            return GOAL_BLOCKED, f'a disc of {radius:g} m does not fit at {goal}'
        return None

    def _why_not(
        self, seeds: list[Array], candidate: Candidate | None, robot: Array, goal: Array
    ) -> tuple[str, str]:
        """Say why no path was found."""
        if not seeds:
            return NO_WAY, f'from {robot} to {goal} for a disc of {self.config.robot.radius:g} m'
        if candidate is None:
            return UNSEEN, f'at {robot}'
        steps = self.config.trajectory.max_steps
        return NO_PROOF, f'{len(seeds)} ways were tried, the first with {steps} steps'

    # -- the path of before -----------------------------------------------------------------

    def _followed(self, robot: Array) -> tuple[Candidate | None, float]:
        """Return the path of before with where the robot is on it, and how far from it."""
        last = self._last
        if last is None:
            return None, math.inf
        t = last.trajectory
        since, distance = nearest_time(
            t.atoms, t.coefficients, t.bandwidth, t.start, t.goal, robot, last.since,
            min(last.since + LOOK_AHEAD, 1.0), LOOKS,
        )  # fmt: skip
        return last.at(since, last.level), distance

    def _still_proven(
        self, last: Candidate | None, distance: float, scene: Scene
    ) -> Candidate | None:
        """Return the path of before as it is, if it is proven still, and long enough.

        A robot beside it needs a proof of that much more: the margin of the proof is its room.
        """
        if (
            last is None
            or distance > max(self.config.robot.tracking, ON_PATH)
            or last.is_short(SHORT)
        ):
            return None
        level = self._maker.level(last.trajectory, scene, last.since, last.level)
        near_enough = distance <= max(self._maker.margin(level), ON_PATH)
        if level < GOOD or not near_enough:
            return None
        allowed = self._maker.noise.allows(last.trajectory, scene, last.since)
        return last.at(last.since, level) if allowed else None

    # -- what is published ------------------------------------------------------------------

    def _plan_of(
        self, way: Candidate, scene: Scene, view: View, kept: bool, seeds: list[Array]
    ) -> Plan:
        """Cut a proven path where it leaves what was seen."""
        count = max(2, math.ceil(way.rest() / self.config.certificate.spacing) + 1)
        line, lengths = way.trajectory.sampled(way.since, count)
        seen = seen_horizon(
            np.ascontiguousarray(line[:, 0]), np.ascontiguousarray(line[:, 1]), view,
            self.config.robot.radius + self.config.robot.proof_margin,
            self.config.certificate.seen_slack,
        )  # fmt: skip
        path = line[:seen]
        margin = self._maker.margin(way.level)
        learned = way.learned
        return Plan(
            view.stamp, UNSEEN if seen < 2 else '', '', way.trajectory, way.since,
            path if seen >= 2 else line[:0], line[max(seen - 1, 0) :], float(lengths[-1]),
            float(lengths[seen - 1]) if seen >= 2 else 0.0, margin, kept, way.final,
            tuple(seeds), float(learned.dual_variables[0]), learned.scale, learned.violation,
            learned.steps, scene, view,
        )  # fmt: skip


def grid_of(map_: OccupancyMap, config: PlannerConfig) -> DistanceGrid:
    """Return the distances of a map's obstacles, also around it where they are to be kept."""
    blocked = map_.blocked(config.map.occupied_at, config.map.unknown)
    beyond = config.map.unknown == 'blocked'
    around = math.ceil((config.robot.radius + config.robot.margin) / map_.resolution)
    origin = np.array(map_.origin[:2]) - around * map_.resolution
    blocked = np.pad(blocked, around, constant_values=beyond)
    return distance_grid(blocked, origin, map_.resolution, beyond)
