# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What can be chosen of the simulator, and the world and robot that are made of it."""

import math
from itertools import islice
from pathlib import Path
from typing import Any

import attrs

from kernel_constrained.configuration import ConfigurationError, group, parameter
from kernel_constrained.perception.config import MountingConfig
from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.planning.lidar import Lidar
from kernel_constrained.planning.maps import load_map
from kernel_constrained.planning.robot import Robot
from kernel_constrained.planning.simulation import Simulation
from kernel_constrained.planning.worlds import (
    crossing_world,
    random_world,
    read_worlds,
    World,
    worlds_in_map,
)


def place(text: str, name: str) -> tuple[float, float] | None:
    """Read a place given as 'x y'; None where nothing is given."""
    if not text:
        return None
    try:
        x, y = map(float, text.replace(',', ' ').split())
    except ValueError:
        x = y = math.nan
    if not math.isfinite(x + y):
        raise ConfigurationError(f"{name} must be two numbers 'x y' in metres (got {text!r})")
    return x, y


@attrs.frozen
class WorldConfig:
    """The world, from the square from (0, 0) to (10, 10) m with ten circles to a building."""

    source: str = parameter(
        'random', "random (ten circles), crossing (moving discs), a map's YAML file, or a JSON "
        'file of worlds',
    )  # fmt: skip
    number: int = parameter(
        0, 'seed of a random or crossing world, or which one of a file or of the drives in a map',
        low=0, high=1000000,
    )  # fmt: skip
    group: str = parameter('base', 'group of worlds in a JSON file')
    start: str = parameter('', "where the robot begins, as 'x y' in metres; empty for the world's")
    publish_map: bool = parameter(
        False, 'whether what is in the map is published on map, for planners that shall know it'
    )
    goal: str = parameter('', "where it shall go, as 'x y' in metres; empty for the world's")

    def __attrs_post_init__(self) -> None:
        """Refuse places that are none."""
        place(self.start, 'start')
        place(self.goal, 'goal')

    def build(self, radius: float) -> World:
        """Make the world for a robot of a radius.

        Raises
        ------
        ConfigurationError
            Where the file cannot be read or holds no such world.
        """
        try:
            world = self._drawn(radius)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f'world.source {self.source}: {error}') from error
        start, goal = place(self.start, 'start'), place(self.goal, 'goal')
        world = attrs.evolve(
            world, radius=radius, start=start or world.start, goal=goal or world.goal
        )
        if world.clearance(world.start[None])[0] < 0.0:
            x, y = world.start
            raise ConfigurationError(f'world.start {x:g} {y:g} lies in an obstacle')
        return world

    def _drawn(self, radius: float) -> World:
        if self.source == 'random':
            return random_world(self.number, radius)
        if self.source == 'crossing':
            return crossing_world(self.number, radius=radius)
        if Path(self.source).suffix in ('.yaml', '.yml'):
            return self._in_map(radius)
        worlds = read_worlds(self.source, self.group)
        if self.number >= len(worlds):
            raise ValueError(f'has {len(worlds)} worlds of group {self.group}, no {self.number}')
        return worlds[self.number]

    def _in_map(self, radius: float) -> World:
        map_ = load_map(self.source)
        start, goal = place(self.start, 'start'), place(self.goal, 'goal')
        if start and goal:
            return World(start, goal, map=map_, radius=radius)
        drives = worlds_in_map(map_, 0, radius, inflation=radius + 0.1)
        return next(islice(drives, self.number, None))


@attrs.frozen
class LidarConfig:
    """The range finder."""

    beams: int = parameter(360, 'beams of a scan', low=2, high=100000)
    field_of_view: float = parameter(
        2.0 * math.pi, "angle over which beams are spread about the sensor's forward axis",
        unit='rad', low=1e-3, high=2.0 * math.pi,
    )  # fmt: skip
    range_min: float = parameter(0.02, 'smallest range', unit='m', low=0.0, high=1e3)
    range_max: float = parameter(3.0, 'largest range', unit='m', low=1e-2, high=1e4)
    deviation: float = parameter(
        0.03, 'standard deviation of a range', unit='m', low=0.0, high=1e2
    )
    dropouts: float = parameter(0.0, 'share of beams that report NaN', low=0.0, high=1.0)


@attrs.frozen
class RobotConfig:
    """The robot: a disc that drives forward and turns."""

    radius: float = parameter(0.3, 'radius of the robot', unit='m', low=1e-3, high=1e3)
    speed: float = parameter(0.5, 'speed', unit='m/s', low=1e-3, high=1e3)
    turn_rate: float = parameter(1.5, 'fastest turn', unit='rad/s', low=1e-3)
    position_deviation: float = parameter(
        0.0, 'standard deviation of each coordinate of the published pose', unit='m', low=0.0,
        high=1e2,
    )  # fmt: skip
    yaw_deviation: float = parameter(
        0.0, 'standard deviation of its yaw', unit='rad', low=0.0, high=3.0
    )
    reach: float = parameter(
        0.1, 'distance from a path within which it is taken up', unit='m', low=0.0, high=1e2
    )
    plan_timeout: float = parameter(
        0.5, 'age of the newest path from which on the robot stands', unit='s', low=0.0
    )


@attrs.frozen
class SimulatorConfig:
    """All that can be chosen of the simulator."""

    seed: int = parameter(0, 'seed of the noise of ranges and poses', low=0)
    rate: float = parameter(
        1.0, 'speed in simulated time, 0 for as fast as lockstep allows', low=0.0, high=1e3,
        runtime=True,
    )  # fmt: skip
    period: float = parameter(0.1, 'time from each scan to the next', unit='s', low=1e-3, high=1e2)
    step: float = parameter(
        0.02, 'time from each motion and /clock to the next', unit='s', low=1e-3, high=1e2
    )
    goal_tolerance: float = parameter(
        0.1, 'distance from the goal at which it is reached', unit='m', low=1e-3, high=1e3
    )
    end_at_goal: bool = parameter(True, 'whether to end when the goal is reached')
    time_limit: float = parameter(
        120.0, 'simulated time after which to end', unit='s', low=0.0, high=1e9
    )
    send_goal: bool = parameter(True, 'whether to publish the goal on goal_pose')
    pose_type: str = parameter(
        'PoseStamped', 'message type of the published pose',
        choices=('PoseStamped', 'PoseWithCovarianceStamped'),
    )  # fmt: skip
    frame_id: str = parameter('map', 'frame of poses, goal and paths')
    scan_frame_id: str = parameter('laser', 'frame of scans')
    lockstep: bool = parameter(
        False, 'whether time stands still until the planner has dealt with a scan'
    )
    answer_topic: str = parameter(
        'planner_node/processed', 'where the planner says that it has dealt with a scan'
    )
    answer_timeout: float = parameter(
        60.0, 'how long to wait for an answer in lockstep', unit='s', low=0.1
    )
    wait_timeout: float = parameter(
        5.0, 'how long to wait for subscribers before beginning', unit='s', low=0.0
    )
    subscribers: int = parameter(
        1, 'how many to wait for, on one topic or in lockstep on each', low=1
    )
    executor: str = parameter(
        'single',
        'rclpy executor; events takes less of the processor',
        choices=('single', 'events'),
    )
    world: WorldConfig = group(WorldConfig)
    lidar: LidarConfig = group(LidarConfig)
    mounting: MountingConfig = group(MountingConfig)
    robot: RobotConfig = group(RobotConfig)

    def __attrs_post_init__(self) -> None:
        """Refuse times that do not fit, and a sensor that there is none of."""
        if self.rate == 0.0 and not self.lockstep:
            raise ConfigurationError('rate must be positive without lockstep (got 0)')
        if abs(self.period / self.step - round(self.period / self.step)) > 1e-6:
            raise ConfigurationError(
                f'period must be a multiple of step (got {self.period:g} and {self.step:g})'
            )
        try:
            self.sensor()
        except ValueError as error:
            raise ConfigurationError(f'lidar: {error}') from error

    def sensor(self) -> Lidar:
        """Make the range finder."""
        mounting = Mounting(**attrs.asdict(self.mounting))
        return Lidar(**attrs.asdict(self.lidar), mounting=mounting)

    def build(self) -> Simulation:
        """Make the world and the robot in it; raises ``ConfigurationError``."""
        given: dict[str, Any] = attrs.asdict(self.robot)
        radius, _ = given.pop('radius'), given.pop('plan_timeout')
        return Simulation(self.world.build(radius), self.sensor(), Robot(**given), self.seed)
