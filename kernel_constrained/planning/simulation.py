# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A robot that drives along a planner's paths in a world, and what truly became of it.

What the planner is told (scans, poses) has the sensor's and the localisation's errors; what is
judged is where the robot's disc truly was, at every few millimetres of its motion.
"""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.perception.geometry import Mounting, Pose, wrapped
from kernel_constrained.perception.scan import Scan
from kernel_constrained.planning.worlds import cast, World

Array = npt.NDArray[np.float64]

# Stamp of time 0, nanoseconds: simulated clocks do not begin at 0, which means "not yet" in ROS.
BEGIN = 1_000_000_000

# Longest step between two places that are judged, metres. Of a clearance from R on (that of a
# disc of radius R to a corner) this misses less than STEP^2 / (8 R), 10 micrometres at 0.3 m.
STEP = 5e-3

# Distance between the places at which a path is judged, metres.
FINE = 1e-2

# A turn by more than this at a corner of a path is made standing, radians.
CORNER = 0.1

# Way on which a robot beside a path comes back to it, metres.
JOINING = 0.3

# How far ahead of the beginning of a path the robot is looked for on it, metres.
AHEAD = 1.0

# Of paths, what is compared from scan to scan: the next metres, at this many places.
CHURN_LENGTH, CHURN_PLACES = 3.0, 40

# Why a robot stands although its path is proven.
OFF = 'robot is off the path'


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


@compiled_allocating
def lengths_along(path):
    """Arc length (k,) at each of the positions (k, D) of a path, metres."""
    lengths = np.zeros(path.shape[0])
    for i in range(1, path.shape[0]):
        squared = 0.0
        for axis in range(path.shape[1]):
            squared += (path[i, axis] - path[i - 1, axis]) ** 2
        lengths[i] = lengths[i - 1] + math.sqrt(squared)
    return lengths


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
def resampled(path, lengths):
    """Positions (n, 2) of a path (k, 2) at arc lengths (n,), which do not decrease."""
    at = lengths_along(path)
    places = np.empty((lengths.shape[0], 2))
    piece, last = 0, path.shape[0] - 2
    for i in range(lengths.shape[0]):
        while piece < last and at[piece + 1] < lengths[i]:
            piece += 1
        span = at[piece + 1] - at[piece]
        share = (lengths[i] - at[piece]) / span if span > 0.0 else 0.0
        share = min(max(share, 0.0), 1.0)
        for axis in range(2):
            step = path[piece + 1, axis] - path[piece, axis]
            places[i, axis] = path[piece, axis] + share * step
    return places


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


@compiled_allocating
def nearest_on(path, x, y, ahead):
    """Arc length and position (x, y) of the point of a path (k, 2) that is nearest to a point.

    Only its first ``ahead`` metres are looked at: later on it may come by once more.
    """
    along, best, found, foot_x, foot_y = 0.0, np.inf, 0.0, path[0, 0], path[0, 1]
    for k in range(path.shape[0] - 1):
        if along > ahead:
            break
        dx, dy = path[k + 1, 0] - path[k, 0], path[k + 1, 1] - path[k, 1]
        squared = dx * dx + dy * dy
        share = ((x - path[k, 0]) * dx + (y - path[k, 1]) * dy) / max(squared, 1e-300)
        share = min(max(share, 0.0), 1.0)
        place_x, place_y = path[k, 0] + share * dx, path[k, 1] + share * dy
        apart = (place_x - x) ** 2 + (place_y - y) ** 2
        if apart < best:
            best, foot_x, foot_y = apart, place_x, place_y
            found = along + share * math.sqrt(squared)
        along += math.sqrt(squared)
    return found, foot_x, foot_y


def joined(path: Array, position: Array) -> tuple[Array, float]:
    """Path that begins at a position beside a path (k, 2) and comes back to it within JOINING.

    Returns
    -------
    (n, 2)
        The path from there on.
    float
        How far beside it the position is, metres.
    """
    along, *foot = nearest_on(path, position[0], position[1], AHEAD)
    at = lengths_along(path)
    gap = position - foot
    rest = np.concatenate(([foot], path[at > along]))
    distance = math.hypot(*gap)
    if distance < 1e-9 or len(rest) < 2:
        return np.concatenate(([position], rest[1:])), distance
    lengths = lengths_along(rest)
    back = min(JOINING, lengths[-1])
    places = np.unique(np.concatenate((np.arange(0.0, back, FINE), lengths)))
    beside = np.maximum(1.0 - places / back, 0.0)
    return resampled(rest, places) + beside[:, None] * gap, distance


class Simulation:
    """A robot in a world: it senses, is given a path, and moves along it.

    Parameters
    ----------
    world
        The world.
    lidar
        The robot's sensor.
    robot
        How it moves.
    seed
        Of all noise.

    Attributes
    ----------
    time : float
        Seconds since the beginning.
    pose : Pose
        True pose.
    sensed, believed : Pose
        True pose, and the one that was believed, when the robot last sensed.
    travelled : float
        Way since the beginning, metres.
    times, positions, clearances : list of arrays (n,), (n, 2), (n,)
        Where the robot has been, and its true clearance there, motion by motion.
    """

    def __init__(
        self, world: World, lidar: Lidar = Lidar(), robot: Robot = Robot(), seed: int = 0
    ) -> None:
        self.world, self.lidar, self.robot = world, lidar, robot
        self.time, self.travelled = 0.0, 0.0
        ahead = world.goal - world.start
        x, y = world.start.tolist()
        self.pose = Pose(x, y, 0.0, math.atan2(ahead[1], ahead[0]))
        self.sensed = self.believed = self.pose
        self._rng = np.random.default_rng(seed)
        self._motion: Motion | None = None
        self._elapsed = 0.0
        start = world.start[None]
        self.times: list[Array] = [np.zeros(1)]
        self.positions: list[Array] = [start]
        self.clearances: list[Array] = [world.clearance(start)]

    @property
    def stamp(self) -> int:
        """Time as a stamp, nanoseconds."""
        return BEGIN + round(self.time * 1e9)

    @property
    def position(self) -> Array:
        """True position (2,)."""
        return np.array([self.pose.x, self.pose.y])

    def sense(self) -> tuple[Scan, Pose]:
        """Return a scan, and the pose that the robot believes it was taken at."""
        scan = self.lidar.scan(self.world, self.time, self.pose, self._rng)
        dx, dy, turn = self._rng.standard_normal(3)
        far, wide = self.robot.position_deviation, self.robot.yaw_deviation
        self.sensed = self.pose
        x, y, _, yaw, _ = self.pose
        self.believed = Pose(x + far * dx, y + far * dy, 0.0, wrapped(yaw + wide * turn))
        return scan, self.believed

    def in_truth(self, path: Array) -> Array:
        """Where a path (k, D >= 2) truly leads, (k, 2): it was made from the believed pose."""
        path = np.ascontiguousarray(path[:, :2], dtype=np.float64)
        if self.sensed == self.believed:
            return path
        turn = self.sensed.yaw - self.believed.yaw
        beside = path - [self.believed.x, self.believed.y]
        rotation = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
        return np.array([self.sensed.x, self.sensed.y]) + beside @ rotation

    def follow(self, path: Array) -> float:
        """Follow a path (k, D >= 2) from now on, to its end; stand if there is none.

        Parameters
        ----------
        path
            As planned from the pose that was last believed.

        Returns
        -------
        float
            How far beside it the robot is, metres: beyond its reach it stands.
        """
        self._motion, self._elapsed = None, 0.0
        if len(path) < 2:
            return 0.0
        way, gap = joined(self.in_truth(path), self.position)
        if gap <= self.robot.reach:
            self._motion = timed(way, self.pose.yaw, self.robot)
        return gap

    def move(self, seconds: float) -> Array:
        """Move on for some time; return where the robot was meanwhile, (n, 2)."""
        fastest = self.robot.speed * (self._motion is not None) + self.world.fastest
        count = max(math.ceil(fastest * seconds / STEP), 1)
        after = np.linspace(0.0, seconds, count + 1)[1:]
        if self._motion is None:
            places = np.repeat(self.position[None], count, axis=0)
        else:
            when, xs, ys, headings = self._motion
            places = np.empty((count, 2))
            places[:, 0] = np.interp(self._elapsed + after, when, xs)
            places[:, 1] = np.interp(self._elapsed + after, when, ys)
            self._elapsed += seconds
            yaw = wrapped(float(np.interp(self._elapsed, when, headings)))
            self.travelled += float(lengths_along(np.vstack((self.position, places)))[-1])
            x, y = places[-1].tolist()
            self.pose = Pose(x, y, 0.0, yaw)
        times = self.time + after
        self.time += seconds
        self.times.append(times)
        self.positions.append(places)
        self.clearances.append(self.world.clearance(places, times))
        return places

    def forget(self) -> None:
        """Drop the record of where the robot has been."""
        self.times.clear()
        self.positions.clear()
        self.clearances.clear()


@attrs.frozen(eq=False)
class Episode:
    """What became of a drive; metres and seconds.

    Attributes
    ----------
    reached : bool
        Whether the robot came to the goal.
    times, positions, clearances : (n,), (n, 2), (n,)
        Where it truly was when, and the distance of its disc to the nearest obstacle.
    outside : float
        How far the disc stuck out of the world's bounds at most.
    unproven : int
        Scans after which the robot moved without a proven path, or away from it. Must be 0.
    gap : float
        Largest distance at which a path was taken up.
    reasons : tuple of str
        Why there was no path, scan by scan; empty where there was one.
    proven : (m,)
        Smallest true clearance of each path that was said to be proven, as the world was at the
        time of its scan.
    churn : (j,)
        How far the next three metres of a path were from those of the one before.
    cpu : (scans,)
        Thread time of each call of the planner.
    """

    reached: bool
    times: Array
    positions: Array
    clearances: Array
    outside: float
    unproven: int
    gap: float
    reasons: tuple[str, ...]
    proven: Array
    churn: Array
    cpu: Array

    @property
    def clearance(self) -> float:
        """Smallest distance between the robot's disc and an obstacle; negative in collision."""
        return float(self.clearances.min())

    @property
    def collided(self) -> bool:
        """Whether the disc ever overlapped an obstacle."""
        return self.clearance < 0.0

    @property
    def collided_at(self) -> float:
        """When it first did; NaN if never."""
        return float(self.times[np.argmax(self.clearances < 0.0)]) if self.collided else math.nan

    @property
    def exposure(self) -> float:
        """Share of the time spent in collision."""
        return float(np.diff(self.times)[self.clearances[1:] < 0.0].sum() / self.duration)

    @property
    def duration(self) -> float:
        """Seconds from beginning to end."""
        return float(self.times[-1])

    @property
    def length(self) -> float:
        """Way that the robot went, metres."""
        return float(lengths_along(self.positions)[-1])

    @property
    def stood(self) -> int:
        """Scans without a proven path."""
        return sum(bool(reason) for reason in self.reasons)


class Record:
    """What a drive collects, scan by scan."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.reasons: list[str] = []
        self.proven: list[float] = []
        self.churn: list[float] = []
        self.unproven, self.gap = 0, 0.0
        self._before: Array | None = None
        self._travelled = 0.0

    def planned(self, plan: Any, simulation: Simulation) -> None:
        """Note a plan: its truth, and how far it is from the one before."""
        self.reasons.append(plan.reason or ('' if len(plan.path) > 1 else 'empty path'))
        if self.reasons[-1]:
            return
        path = simulation.in_truth(plan.path)
        length = lengths_along(path)[-1]
        places = resampled(path, np.linspace(0.0, length, math.ceil(length / FINE) + 1))
        world = simulation.world
        self.proven.append(float(world.clearance(places, simulation.time).min()))
        rest = np.asarray(plan.rest).reshape(-1, np.shape(plan.path)[1])
        whole = np.ascontiguousarray(np.concatenate((plan.path, rest))[:, :2])
        if self._before is not None:
            self.churn.append(apart(self._before, whole, simulation.travelled - self._travelled))
        self._before, self._travelled = whole, simulation.travelled

    def taken_up(self, gap: float, robot: Robot) -> None:
        """Note how far beside its path the robot was."""
        if gap > robot.reach:
            self.reasons[-1] = OFF
        else:
            self.gap = max(self.gap, gap)

    def moved(self, places: Array, path: Array, robot: Robot) -> None:
        """Note a motion, and whether it was along the path (k, 2) from the true pose before."""
        standing = bool((places == places[0]).all())
        if not standing and (
            len(path) < 2 or farthest_from_path(places, path) > robot.reach + 1e-6
        ):
            self.unproven += 1


def apart(before: Array, after: Array, travelled: float) -> float:
    """How far the next metres of two paths (k, 2) are apart, metres.

    At equal arc length from where the robot is: ``travelled`` along the first, at the beginning
    of the second.
    """
    left = [lengths_along(before)[-1] - travelled, lengths_along(after)[-1], CHURN_LENGTH]
    lengths = np.linspace(0.0, max(min(left), 0.0), CHURN_PLACES)
    gaps = resampled(before, travelled + lengths) - resampled(after, lengths)
    return float(np.hypot(*gaps.T).max())


def drive(
    planner: Any,
    world: World,
    lidar: Lidar = Lidar(),
    robot: Robot = Robot(),
    seed: int = 0,
    *,
    period: float = 0.2,
    goal_tolerance: float = 0.1,
    max_scans: int = 300,
    patience: int = 60,
) -> Episode:
    """Let a planner drive a robot to the goal of a world, scan by scan.

    Parameters
    ----------
    planner
        Has ``mounting``, ``reset()``, ``set_goal(point)`` and ``plan(stamp, scan, pose,
        covariance)``, which returns an object with ``reason``, ``path`` (k, D) and ``rest``
        (m, D). What it knows beforehand (its map, its workspace) it is given by the caller.
    world, lidar, robot, seed
        As of :class:`Simulation`.
    period
        Seconds from each scan to the next.
    goal_tolerance
        Distance from the goal at which it is reached, metres.
    max_scans
        Scans after which the drive ends.
    patience
        Scans in a row without a path after which it ends.

    Returns
    -------
    Episode
        Where no path is proven the robot stands from that scan on.
    """  # fmt: skip
    simulation, record, stood = Simulation(world, lidar, robot, seed), Record(), 0
    planner.reset()
    planner.mounting = lidar.mounting
    planner.set_goal(world.goal)
    while not (reached := math.dist(simulation.position, world.goal) <= goal_tolerance):
        if len(record.cpu) >= max_scans or stood >= patience:
            break
        scan, believed = simulation.sense()
        begun = time.thread_time()
        plan = planner.plan(simulation.stamp, scan, believed, robot.covariance)
        record.cpu.append(time.thread_time() - begun)
        record.planned(plan, simulation)
        path = np.empty((0, 2)) if record.reasons[-1] else np.asarray(plan.path)
        record.taken_up(simulation.follow(path), robot)
        stood = stood + 1 if record.reasons[-1] else 0
        record.moved(simulation.move(period), simulation.in_truth(path), robot)
    return episode(simulation, record, reached)


def episode(simulation: Simulation, record: Record, reached: bool) -> Episode:
    """Sum a drive up."""
    positions = np.concatenate(simulation.positions)
    return Episode(
        reached=reached,
        times=np.concatenate(simulation.times),
        positions=positions,
        clearances=np.concatenate(simulation.clearances),
        outside=float(simulation.world.outside(positions).max()),
        unproven=record.unproven,
        gap=record.gap,
        reasons=tuple(record.reasons),
        proven=np.array(record.proven),
        churn=np.array(record.churn),
        cpu=np.array(record.cpu),
    )
