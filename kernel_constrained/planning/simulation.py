# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A robot that drives along a planner's paths in a world, and what truly became of it.

What the planner is told (scans, poses) has the sensor's and the localisation's errors; what is
judged is where the robot's disc truly was, at every few millimetres of its motion.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kernel_constrained.perception.geometry import Pose, wrapped
from kernel_constrained.perception.scan import Scan
from kernel_constrained.planning.episode import Episode
from kernel_constrained.planning.lidar import Lidar
from kernel_constrained.planning.polyline import arc_lengths, at_lengths, length_of, resampled
from kernel_constrained.planning.robot import farthest_from_path, joined, Motion, Robot, timed
from kernel_constrained.planning.worlds import World

Array = npt.NDArray[np.float64]

# Stamp of time 0, nanoseconds: simulated clocks do not begin at 0, which means "not yet" in ROS.
BEGIN = 1_000_000_000

# Longest step between two places that are judged, metres. Of a clearance from R on (that of a
# disc of radius R to a corner) this misses less than STEP^2 / (8 R), 10 micrometres at 0.3 m.
STEP = 5e-3

# Distance between the places at which a path is judged, metres.
FINE = 1e-2

# Of paths, what is compared from scan to scan: the next metres, at this many places.
CHURN_LENGTH, CHURN_PLACES = 3.0, 40

# The sensor and the robot where no others are given.
LIDAR, ROBOT = Lidar(), Robot()

# Why a robot stands although its path is proven.
OFF = 'robot is off the path'


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
        self, world: World, lidar: Lidar = LIDAR, robot: Robot = ROBOT, seed: int = 0
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
        """Return the true position, (2,)."""
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
            self.travelled += length_of(np.vstack((self.position, places)))
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


class Record:
    """What a drive collects, scan by scan."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.reasons: list[str] = []
        self.proven: list[float] = []
        self.deeper: list[float] = []
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
        places = resampled(path, math.ceil(length_of(path) / FINE) + 1)
        clearances = simulation.world.clearance(places, simulation.time)
        self.proven.append(float(clearances.min()))
        here = simulation.world.clearance(simulation.position[None], simulation.time)
        self.deeper.append(depth_beyond(float(here[0]), clearances))
        rest = np.asarray(plan.rest).reshape(-1, np.shape(plan.path)[1])
        whole = np.concatenate((plan.path, rest))[:, :2]
        if self._before is not None:
            self.churn.append(apart(self._before, whole, simulation.travelled - self._travelled))
        self._before, self._travelled = whole, simulation.travelled

    def taken_up(self, gap: float, robot: Robot) -> None:
        """Note how far beside its path the robot was."""
        if gap > robot.reach:
            self.reasons[-1] = OFF
        else:
            self.gap = max(self.gap, gap)

    def moved(self, places: Array, path: Array, robot: Robot, clearances: Array) -> None:
        """Note a motion, and whether it was along the path (k, 2) from the true pose before.

        ``clearances`` are those of where it began and of the places, as the world was then.
        """
        if (places == places[0]).all():
            return
        if len(path) < 2 or farthest_from_path(places, path) > robot.reach + 1e-6:
            self.unproven += 1
        else:
            self.deeper.append(depth_beyond(clearances[0], clearances))


def depth_beyond(begun: float, clearances: Array) -> float:
    """By how much clearances lie below 0 and below the one at the beginning, metres."""
    return max(min(begun, 0.0) - float(clearances.min()), 0.0)


def apart(before: Array, after: Array, travelled: float) -> float:
    """How far the next metres of two paths (k, 2) are apart, metres.

    At equal arc length from where the robot is: ``travelled`` along the first, at the beginning
    of the second.
    """
    at_before, at_after = arc_lengths(before), arc_lengths(after)
    left = min(at_before[-1] - travelled, at_after[-1], CHURN_LENGTH)
    wanted = np.linspace(0.0, max(left, 0.0), CHURN_PLACES)
    gaps = at_lengths(before, at_before, travelled + wanted) - at_lengths(after, at_after, wanted)
    return float(np.hypot(*gaps.T).max())


def drive(
    planner: Any,
    world: World,
    lidar: Lidar = LIDAR,
    robot: Robot = ROBOT,
    seed: int = 0,
    *,
    period: float = 0.2,
    goal_tolerance: float = 0.1,
    max_scans: int = 300,
    patience: int = 60,
    meanwhile: Callable[[Simulation], None] = lambda _: None,
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
    meanwhile
        Called before each scan: may give the simulation another world.

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
        meanwhile(simulation)
        here, scanned = simulation.position, simulation.time
        scan, believed = simulation.sense()
        begun = time.thread_time()
        plan = planner.plan(simulation.stamp, scan, believed, robot.covariance)
        record.cpu.append(time.thread_time() - begun)
        record.planned(plan, simulation)
        path = np.empty((0, 2)) if record.reasons[-1] else np.asarray(plan.path)
        record.taken_up(simulation.follow(path), robot)
        stood = stood + 1 if record.reasons[-1] else 0
        places = simulation.move(period)
        seen = simulation.world.clearance(np.vstack((here, places)), scanned)
        record.moved(places, simulation.in_truth(path), robot, seen)
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
        deeper=np.array(record.deeper),
        churn=np.array(record.churn),
        cpu=np.array(record.cpu),
    )
