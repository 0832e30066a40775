# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The planner: a scan and a pose in, a proven path out, or the reason why there is none."""

import math

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.core.trajectory import nearest_time, Trajectory
from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.perception.scan import Scan
from kernel_constrained.planning.candidates import Candidate, CandidateMaker, GOOD
from kernel_constrained.planning.config import PlannerConfig
from kernel_constrained.planning.grid import distance_grid, DistanceGrid
from kernel_constrained.planning.maps import OccupancyMap
from kernel_constrained.planning.memory import PointMemory
from kernel_constrained.planning.obstacles import Obstacles
from kernel_constrained.planning.polyline import arc_lengths, at_lengths, cut, nearest_length
from kernel_constrained.planning.reference import Reference
from kernel_constrained.planning.scene import box_of, NO_GRID, Scene
from kernel_constrained.planning.seeds import alternatives, same_side
from kernel_constrained.planning.seen import seen_horizon
from kernel_constrained.planning.sensing import View, view_of

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

# Extra distance kept by the grid search and the margin it is kept beyond, spacing in shares of
# the configured one: from roomy and coarse to tight and fine.
SEARCHES = ((1.0, 0.02, 1.0), (0.0, 0.03, 0.67), (0.0, 0.005, 0.5))
# Shares of the window that are searched until there is a way.
WINDOWS = (1.0, 4.0)
# Shares of the horizon that are tried one after the other.
HORIZONS = (1.0, 0.5, 0.25)
# Nodes of a grid search beyond which its spacing is made wider.
MOST_NODES = 60000
# Share of a path's time ahead in which the robot is looked for on it, and times looked at.
LOOK_AHEAD, LOOKS = 0.25, 24
# Part of the horizon below which a path that does not end at the goal is planned anew.
SHORT = 0.4
# Positions that a path of before is warm-started from, and the least distance to the first of
# them, metres.
LINE, SPACE = 65, 0.05


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
    obstacles
        What the path was proven against.
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
    obstacles: Obstacles | None = None
    view: View | None = None

    @property
    def proven(self) -> bool:
        """Whether there is a path to go on."""
        return not self.reason

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
        m = config.mounting
        self.mounting = Mounting(m.x, m.y, m.yaw, m.upside_down)
        self.reference: Reference | None = None
        self._maker = CandidateMaker(config)
        self._grid = NO_GRID
        self._circles = circles_of(config.obstacles.circles)
        self.reset()

    def reset(self) -> None:
        """Forget the path and what was seen."""
        memory = self.config.memory
        self._memory = PointMemory(memory.voxel, memory.radius, memory.min_hits)
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
        self._memory.update(view)
        if self.reference is None:
            return Plan(stamp, NO_GOAL, view=view)
        robot = np.array([pose.x, pose.y, pose.z][: self.reference.dimensions])
        scene = self._scene(view, robot)
        ahead = self.reference.ahead(robot)
        trouble = self._trouble(scene, ahead)
        if trouble is not None:
            return Plan(stamp, *trouble, obstacles=scene.obstacles(0.0), view=view)
        kept = self._kept(scene)
        candidate, seeds = (kept, []) if kept is not None else self._replanned(scene, ahead)
        if candidate is None or candidate.level < 0.0:
            reason = NO_PROOF if seeds else NO_WAY
            return Plan(
                stamp, reason, alternatives=tuple(seeds), obstacles=scene.obstacles(0.0), view=view
            )
        self._last = candidate
        return self._plan_of(candidate, scene, view, kept is not None, seeds)

    # -- what is there ----------------------------------------------------------------------

    def _scene(self, view: View, robot: Array) -> Scene:
        """Put together what the scan shows, what earlier ones showed, and what is known."""
        remembered = self._memory.points() if self.config.memory.enabled else view.points[:, :0]
        points = np.concatenate([view.points, remembered, self._circles[:2]], axis=1)
        radii = np.zeros(points.shape[1])
        radii[points.shape[1] - self._circles.shape[1] :] = self._circles[2]
        return Scene(points, radii, self._grid, robot, self.config)

    def _trouble(self, scene: Scene, ahead: Array) -> tuple[str, str] | None:
        """Say why nothing can be planned at all, if so."""
        robot, goal = scene.robot, ahead[-1]
        low, high = box_of(self.config.workspace, len(robot))
        radius = self.config.robot.radius
        distance = float(np.linalg.norm(goal - robot))
        if distance <= self.config.robot.goal_distance:
            return AT_GOAL, f'at {distance:.3g} m from it'
        if scene.robot_is_inside:
            return INSIDE, f'by {-scene.clearance:.3g} m'
        if ((robot < low) | (robot > high)).any():
            return START_OUTSIDE, f'at {robot}, allowed from {low} to {high}'
        if ((goal < low + radius) | (goal > high - radius)).any():
            return GOAL_OUTSIDE, f'at {goal}, allowed from {low + radius} to {high - radius}'
        if not scene.is_free(goal):
            return GOAL_BLOCKED, f'a disc of {radius:g} m does not fit at {goal}'
        return None

    # -- the path of before -----------------------------------------------------------------

    def _kept(self, scene: Scene) -> Candidate | None:
        """Return the path of before from where the robot is now, if it is proven still."""
        last = self._followed(scene.robot)
        if last is None:
            return None
        level = self._maker.level(last.trajectory, scene, last.since)
        if level < min(1.0, max(last.level, GOOD)):
            return None
        long_enough = last.final or last.length > SHORT * self.config.seed.horizon
        return attrs.evolve(last, level=level) if long_enough else None

    def _followed(self, robot: Array) -> Candidate | None:
        """Return the path of before with the time at which the robot is on it, if it is."""
        last = self._last
        if last is None:
            return None
        t = last.trajectory
        since, distance = nearest_time(
            t.atoms, t.coefficients, t.bandwidth, t.start, t.goal, robot, last.since,
            min(last.since + LOOK_AHEAD, 1.0), LOOKS,
        )  # fmt: skip
        if distance > self.config.robot.tracking:
            return None
        return attrs.evolve(last, since=since, length=t.length(since, 65))

    # -- a new path -------------------------------------------------------------------------

    def _replanned(self, scene: Scene, ahead: Array) -> tuple[Candidate | None, list[Array]]:
        """Return the best path that can be found, and the rough ways that were considered."""
        before = self._line_of_last(scene.robot)
        quick = self.config.trajectory.quick_steps
        first = cut(ahead if before is None else before, self.config.seed.horizon)
        # Without a path of before there is no side to stay on: the straight way only if it is free.
        ways = [(first, self._made(first, scene, ahead, 0 if before is None else quick))]
        if ways[0][1].level >= GOOD and not self._has_grown(ways[0][1]):
            return ways[0][1], [first]
        seeds = self._seeds(scene, ahead)
        for share in HORIZONS:
            for line in seeds:
                line = cut(line, share * self.config.seed.horizon)
                ways.append((line, self._made(line, scene, ahead, quick)))
            if any(way.level >= GOOD for _, way in ways):
                break
        best = self._best(ways, before, scene)
        if best.level < 0.0 and seeds:
            line = cut(seeds[0], self.config.seed.horizon)
            best = self._made(line, scene, ahead, self.config.trajectory.max_steps)
        return best, seeds

    def _made(self, line: Array, scene: Scene, ahead: Array, steps: int) -> Candidate:
        """Make a candidate of a rough way."""
        assert self.reference is not None
        near_to = None
        if not self.reference.is_goal:
            near_to = cut(ahead, arc_lengths(line)[-1])
        final = bool(np.array_equal(line[-1], self.reference.goal))
        return self._maker.make(line, scene, steps, near_to, final)

    def _line_of_last(self, robot: Array) -> Array | None:
        """Return the path of before from where the robot is, (k, D)."""
        last = self._last
        if last is None or len(last.trajectory.start) != len(robot):
            return None
        line = last.trajectory(np.linspace(last.since, 1.0, LINE))
        along, _ = nearest_length(line, arc_lengths(line), robot)
        rest = line[arc_lengths(line) > along + SPACE]
        return np.concatenate([robot[None], rest, last.trajectory.goal[None]])

    def _has_grown(self, candidate: Candidate) -> bool:
        """Whether a path is longer than the one of before by what another side must gain."""
        last = self._last
        return last is not None and candidate.length > last.length * (
            1.0 + self.config.seed.switch_gain
        )

    def _best(
        self, ways: list[tuple[Array, Candidate]], before: Array | None, scene: Scene
    ) -> Candidate:
        """Return the shortest of those that are proven best; another side must gain something."""
        gain = 1.0 + self.config.seed.switch_gain

        def cost(way: tuple[Array, Candidate]) -> tuple[float, float]:
            line, candidate = way
            other = before is not None and not same_side(
                np.ascontiguousarray(line[:, :2]), np.ascontiguousarray(before[:, :2]),
                scene.points,
            )  # fmt: skip
            length = candidate.length * (gain if other else 1.0)
            return -min(candidate.level, GOOD), length

        return min(ways, key=cost)[1]

    def _seeds(self, scene: Scene, ahead: Array) -> list[Array]:
        """Return rough ways on different sides by grid search, each (k, D) from the robot on."""
        target = self._target(scene, ahead)
        ends = scene.robot[:2].copy(), target[:2].copy()
        for around in WINDOWS:
            low, high = self._window(scene, np.concatenate([ahead, target[None]]), around)
            lines = self._searched(scene, low, high, *ends)
            if lines:
                break
        return [lifted(line, ahead) for line in lines]

    def _searched(
        self, scene: Scene, low: Array, high: Array, start: Array, goal: Array
    ) -> list[Array]:
        """Search with less and less room until there is a way.

        Where there is no path yet, what the finest grid finds is taken in as well.
        """
        settings, lines = self.config.seed, list[Array]()
        area = float(np.prod(high - low))
        for share, extra, finer in SEARCHES:
            last = finer == SEARCHES[-1][2]
            if lines and not (last and self._last is None):
                continue
            spacing = max(settings.spacing * finer, math.sqrt(area / MOST_NODES))
            obstacles = scene.obstacles(share * self.config.robot.margin)
            count = 1 if lines else settings.alternatives
            lines += alternatives(obstacles, low, high, spacing, extra, start, goal, count)
        return lines

    def _target(self, scene: Scene, ahead: Array) -> Array:
        """Return the position to search for: the goal, or one on the reference that is free."""
        assert self.reference is not None
        lengths = arc_lengths(ahead)
        if self.reference.is_goal or lengths[-1] <= self.config.seed.horizon:
            return np.asarray(ahead[-1])
        wanted = np.arange(self.config.seed.horizon, lengths[-1], self.config.seed.spacing)
        for position in at_lengths(ahead, lengths, wanted):
            if scene.is_free(position):
                return np.asarray(position)
        return np.asarray(ahead[-1])

    def _window(self, scene: Scene, line: Array, share: float) -> tuple[Array, Array]:
        """Return the rectangle to search in, (2,) each: around a line, and all of the map."""
        around = share * self.config.seed.window
        low, high = line[:, :2].min(0) - around, line[:, :2].max(0) + around
        grid = self._grid
        if grid.values.size:
            shape = np.array(grid.values.shape) - 1
            low = np.minimum(low, grid.origin)
            high = np.maximum(high, grid.origin + shape * grid.spacing)
        inside, outside = scene.box()
        return np.maximum(low, inside[:2]), np.minimum(high, outside[:2])

    # -- what is published ------------------------------------------------------------------

    def _plan_of(
        self, way: Candidate, scene: Scene, view: View, kept: bool, seeds: list[Array]
    ) -> Plan:
        """Cut a proven path where it leaves what was seen."""
        count = max(2, math.ceil(way.length / self.config.certificate.spacing) + 1)
        line = way.trajectory(np.linspace(way.since, 1.0, count))
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
            path if seen >= 2 else line[:0], line[max(seen - 1, 0) :], way.length,
            float(arc_lengths(path)[-1]) if seen >= 2 else 0.0, margin, kept, way.final,
            tuple(seeds), float(learned.dual_variables[0]), learned.scale, learned.violation,
            learned.steps, scene.obstacles(margin), view,
        )  # fmt: skip


def lifted(line: Array, ahead: Array) -> Array:
    """Give a way in the plane the heights, if any, of a path at the same share of its length."""
    if ahead.shape[1] == 2:
        return line
    share, along = arc_lengths(ahead), arc_lengths(line)
    height = np.interp(along / along[-1], share / share[-1], ahead[:, 2])
    return np.column_stack([line, height])


def circles_of(texts: tuple[str, ...]) -> Array:
    """Return circles (3, n) of texts 'x y radius'; raises ConfigurationError."""
    circles = []
    for text in texts:
        try:
            x, y, radius = (float(word) for word in text.split())
        except ValueError:
            x = y = radius = math.nan
        if not (math.isfinite(x + y + radius) and radius >= 0.0):
            raise ConfigurationError(
                f"obstacles.circles must be 'x y radius' in metres (got {text!r})"
            )
        circles.append((x, y, radius))
    return np.array(circles).reshape(-1, 3).T.copy()


def grid_of(map_: OccupancyMap, config: PlannerConfig) -> DistanceGrid:
    """Return the distances of a map's obstacles."""
    blocked = map_.blocked(config.map.occupied_at, config.map.unknown)
    return distance_grid(blocked, np.array(map_.origin[:2]), map_.resolution)
