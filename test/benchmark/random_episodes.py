# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Short drives drawn at random: sensors, robots and worlds as bad as they come, and their truth.

Robots begin near obstacles, others move, and some appear ahead of the robot. What must never be:
a path that is called proven, or a motion along it, that touches what the scan showed. What
moves may still run into the robot before the next scan.
"""

import math

import attrs
import numpy as np

from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.planning.config import PlannerConfig
from kernel_constrained.planning.lidar import Lidar
from kernel_constrained.planning.planner import Planner
from kernel_constrained.planning.robot import Robot
from kernel_constrained.planning.simulation import drive
from kernel_constrained.planning.worlds import Mover, World

SIDE = 8.0  # of the square that things stand in, metres
SCANS = 40  # after which an episode ends
# Room that robots begin with, and that appearing discs leave them, in deviations of a range: a
# robot that begins nearer cannot tell that it touches nothing.
LEAST_ROOM, MOST_ROOM = 3.0, 0.5  # the latter in metres
TOLERANCE = 2e-3  # metres
APPEARING = 0.04  # probability that a disc appears, scan by scan
AHEAD = 0.2, 1.5  # how much room it leaves, metres


def random_lidar(rng):
    """Draw a sensor: some see a part of what is around, some sit off the centre or upside down."""
    return Lidar(
        beams=int(rng.integers(120, 721)),
        range_max=rng.uniform(2.0, 6.0),
        deviation=rng.choice([0.0, 0.01, 0.03]),
        dropouts=rng.choice([0.0, 0.05, 0.2]),
        field_of_view=rng.choice([2.0 * math.pi, rng.uniform(1.5, 6.0)]),
        mounting=Mounting(
            *rng.uniform(-0.2, 0.2, 2), rng.choice([0.0, rng.uniform(-0.5, 0.5)]),
            bool(rng.integers(2)),
        ),
    )  # fmt: skip


def random_robot(rng):
    """Draw a robot: some turn slowly, some do not know exactly where they are."""
    error = rng.choice([0.0, 0.0, 0.01, 0.03])
    return Robot(
        speed=rng.uniform(0.3, 1.0), turn_rate=rng.choice([math.inf, 1.0]),
        position_deviation=error, yaw_deviation=error / 2.0,
    )  # fmt: skip


def random_mover(rng):
    """Draw a disc that moves."""
    start, end = rng.uniform(0.0, SIDE, (2, 2))
    return Mover(start, end, rng.uniform(0.2, 0.8), rng.uniform(0.1, 0.4), rng.uniform())


def place_near(rng, world, room):
    """Draw a place in the square whose clearance is at least ``room``, and not much more."""
    while True:
        places = rng.uniform(0.0, SIDE, (256, 2))
        clearance = world.clearance(places)
        near = places[(clearance > room) & (clearance < MOST_ROOM)]
        far = places[clearance > room]
        if len(far):
            return near[0] if len(near) else far[0]


def random_crowd(rng, room):
    """Draw a world: up to a dozen discs, up to three that move, a start near one of them."""
    count = int(rng.integers(0, 13))
    circles = np.column_stack((rng.uniform(0.0, SIDE, (count, 2)), rng.uniform(0.1, 0.8, count)))
    movers = tuple(random_mover(rng) for _ in range(rng.integers(0, 4)))
    world = World((0.0, 0.0), (0.0, 0.0), circles, movers=movers)
    return attrs.evolve(
        world, start=place_near(rng, world, room), goal=place_near(rng, world, room)
    )


def appearing(rng, room):
    """Return what lets discs appear ahead of the robot, never on it."""

    def meanwhile(simulation):
        if rng.random() < APPEARING:
            size, pose = rng.uniform(0.1, 0.5), simulation.pose
            bearing = pose.yaw + rng.uniform(-0.5, 0.5)
            away = simulation.world.radius + size + max(room, rng.uniform(*AHEAD))
            disc = pose.x + away * math.cos(bearing), pose.y + away * math.sin(bearing), size
            world = simulation.world
            simulation.world = attrs.evolve(world, circles=np.vstack((world.circles, disc)))

    return meanwhile


def random_episode(planner, seed):
    """Drive an episode; the same seed gives the same one."""
    rng = np.random.default_rng(seed)
    lidar, robot = random_lidar(rng), random_robot(rng)
    room = max(LEAST_ROOM * lidar.deviation, 0.01)
    world = random_crowd(rng, room)
    return drive(
        planner, world, lidar, robot, seed, max_scans=SCANS, meanwhile=appearing(rng, room)
    )


def fault_of(episode):
    """Say what was wrong with an episode, nothing where nothing was.

    A robot that something ran into may leave it: noise and rounding decide by how much it touches
    that meanwhile, up to ``TOLERANCE``.
    """
    touching = episode.deeper > TOLERANCE
    wrong = {
        f'{episode.unproven} motions without a proven path': episode.unproven,
        f'{touching.sum()} of {len(touching)} proven paths and motions touch what was there, by '
        f'{max(episode.deeper, default=0.0):.4f} m': touching.any(),
    }
    return '; '.join(text for text, holds in wrong.items() if holds)


def episodes_planner():
    """Return the planner for all episodes: as it is, knowing nothing."""
    planner = Planner(PlannerConfig())
    planner.warm_up()
    return planner
