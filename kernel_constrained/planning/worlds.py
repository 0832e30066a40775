# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Worlds to drive in as they truly are: discs, walls and moving discs, with exact distances.

Nothing in here shares code with what the planner believes of a world: a mistake in one does not
hide in the other.
"""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
from scipy.ndimage import binary_dilation, label

from kernel_constrained.planning.exact import distances_to, NO_WALLS, Walls, walls_of
from kernel_constrained.planning.maps import OccupancyMap

Array = npt.NDArray[np.float64]

# A random world: its corners, radii of its circles, and what is asked of it (metres).
SIDE, RADII, CIRCLES = 10.0, (0.4, 1.0), 10
START, GOAL = (0.5, 0.5), (9.5, 9.5)
END_CLEARANCE, INFLATION, SPACING = 0.5, 0.4, 0.05

# Occupancy from which a cell is a wall, in percent.
OCCUPIED_AT = 65


@attrs.frozen(eq=False)
class Mover:
    """A disc that goes to and fro between two points and gives way to nobody.

    Attributes
    ----------
    start, end : (2,)
        The two points, metres; different ones.
    speed : float
        Metres per second.
    radius : float
        Metres.
    phase : float
        How far along its way to the end and back it is at time 0, from 0 to 1.
    """

    start: Array = attrs.field(converter=np.asarray)
    end: Array = attrs.field(converter=np.asarray)
    speed: float
    radius: float
    phase: float = 0.0

    def positions(self, times: Array) -> Array:
        """Centre at times (n,) in seconds; shape (n, 2)."""
        way = math.dist(self.start, self.end)
        share = np.mod(2.0 * self.phase + self.speed * np.asarray(times) / way, 2.0)
        return self.start + np.minimum(share, 2.0 - share)[:, None] * (self.end - self.start)

    @property
    def row(self) -> tuple[float, ...]:
        """Start, way to the end, ways per second, twice the phase, radius: seven numbers."""
        way = self.end - self.start
        return (*self.start, *way, self.speed / math.hypot(*way), 2.0 * self.phase, self.radius)


def _circles(circles: Any) -> Array:
    return np.array(circles, dtype=np.float64).reshape(-1, 3)


def _vector(point: Any) -> Array:
    return np.array(point, dtype=np.float64)


@attrs.frozen(eq=False)
class World:
    """A world as it truly is, with a robot that shall go from one place to another; metres.

    Attributes
    ----------
    start, goal : (2,)
        Where the robot begins and where it shall go.
    circles : (k, 3)
        Discs that stand: centre and radius.
    map : OccupancyMap, optional
        Cells that are occupied are walls; unknown ones are not.
    movers : tuple of Mover
        Discs that move.
    bounds : (2, 2)
        Lower left and upper right corner of where the robot's disc may be; nothing that a sensor
        sees.
    radius : float
        The robot's.
    """

    start: Array = attrs.field(converter=_vector)
    goal: Array = attrs.field(converter=_vector)
    circles: Array = attrs.field(converter=_circles, default=())
    map: OccupancyMap | None = None
    movers: tuple[Mover, ...] = ()
    bounds: Array = attrs.field(
        converter=_vector, default=((-math.inf, -math.inf), (math.inf, math.inf))
    )
    radius: float = 0.3
    walls: Walls = attrs.field(init=False)
    moving: Array = attrs.field(init=False)

    @walls.default
    def _occupied_cells(self) -> Walls:
        if self.map is None:
            return NO_WALLS
        occupied = self.map.blocked(OCCUPIED_AT, 'free')
        return walls_of(occupied, np.array(self.map.origin), self.map.resolution)

    @moving.default
    def _rows_of_movers(self) -> Array:
        return np.array([mover.row for mover in self.movers]).reshape(-1, 7)

    def __attrs_post_init__(self) -> None:
        """Refuse what is no place, no disc or no box."""
        for name, point in (('start', self.start), ('goal', self.goal)):
            if point.shape != (2,) or not np.isfinite(point).all():
                raise ValueError(f'{name} must be two finite numbers (got {point})')
        radii = (*self.circles[:, 2], *(mover.radius for mover in self.movers), self.radius)
        if not (np.isfinite(self.circles).all() and min(radii) > 0.0):
            raise ValueError(f'circles must be finite, of positive radius (got {self.circles})')
        if self.bounds.shape != (2, 2) or not (self.bounds[0] < self.bounds[1]).all():
            raise ValueError(f'bounds must be a lower and an upper corner (got {self.bounds})')

    @property
    def fastest(self) -> float:
        """Speed of the fastest moving disc, 0 without any; m/s."""
        return max((mover.speed for mover in self.movers), default=0.0)

    def discs(self, time: float) -> Array:
        """Centres and radii of all discs at a time in seconds, shape (k + movers, 3)."""
        moving = [(*mover.positions(np.array([time]))[0], mover.radius) for mover in self.movers]
        return np.concatenate((self.circles, moving)) if moving else self.circles

    def distance(self, points: Array, times: Array | float = 0.0) -> Array:
        """Exact distance of points to the nearest obstacle.

        Parameters
        ----------
        points : (n, 2)
            Metres.
        times : (n,) or float
            When the robot is there, seconds.

        Returns
        -------
        (n,)
            Metres; negative inside discs, 0 inside walls, inf where there is nothing.
        """
        points = np.ascontiguousarray(points, dtype=np.float64)
        distances = np.empty(len(points))
        when = np.full(len(points), times) if np.ndim(times) == 0 else times
        distances_to(points, when, self.circles, self.moving, *self.walls, distances)
        return distances

    def clearance(self, points: Array, times: Array | float = 0.0) -> Array:
        """Distance of the robot's disc to the nearest obstacle, negative where they overlap."""
        return self.distance(points, times) - self.radius

    def outside(self, points: Array) -> Array:
        """How far the robot's disc sticks out of the bounds at points (n, 2); 0 inside, metres."""
        low, high = self.bounds
        beyond = np.maximum(low + self.radius - points, points + self.radius - high)
        return np.maximum(beyond.max(axis=1), 0.0)


def solvable(world: World, inflation: float, spacing: float = SPACING) -> bool:
    """Whether a grid path leads from start to goal on which all is further than ``inflation``.

    Moving discs count as they stand at time 0. Needs finite bounds.
    """
    low, high = world.bounds[0] + world.radius, world.bounds[1] - world.radius
    axes = [np.arange(a, b + 1e-9, spacing) for a, b in zip(low, high)]
    nodes = np.stack(np.meshgrid(*axes, indexing='ij'), axis=-1)
    free = world.distance(nodes.reshape(-1, 2)).reshape(nodes.shape[:2]) > inflation
    parts, _ = label(free)
    start, goal = (
        parts[tuple(np.abs(axis - p).argmin() for axis, p in zip(axes, point))]
        for point in (world.start, world.goal)
    )
    return bool(start > 0 and start == goal)


def escapable(
    world: World, position: Array, time: float, speed: float, seconds: float = 1.0
) -> bool:
    """Whether a robot could touch nothing for some time, whoever had planned its motion.

    It knows how all discs will move and goes wherever it likes at up to its speed; where it can
    be is followed on a grid, of which a step of time is five spacings.

    Parameters
    ----------
    world
        The world.
    position : (2,)
        Where the robot is, metres.
    time
        When, seconds.
    speed
        The robot's, m/s.
    seconds
        For how long.
    """
    steps = max(math.ceil(seconds / 0.1), 1)
    taken = seconds / steps
    offsets = np.arange(-5 * steps, 5 * steps + 1)
    nodes = np.stack(np.meshgrid(offsets, offsets, indexing='ij'), axis=-1)
    places = np.asarray(position) + 0.2 * speed * taken * nodes.reshape(-1, 2)
    near = np.stack(np.meshgrid(*[np.arange(-5, 6)] * 2), axis=-1)
    ball = (near**2).sum(axis=-1) <= 25
    within = (nodes == 0).all(axis=-1)
    for instant in time + taken * (np.arange(steps) + 1.0):
        free = np.ones(len(places), dtype=np.bool_)
        for when in (instant - 0.5 * taken, instant):
            free &= world.clearance(places, when) > 0.0
        within = binary_dilation(within, ball) & free.reshape(within.shape)
    return bool(within.any())


def _straight(world: World) -> Array:
    """Clearance along the straight line from start to goal."""
    shares = np.linspace(0.0, 1.0, 2001)[:, None]
    return world.clearance(world.start + shares * (world.goal - world.start))


def random_world(seed: int, radius: float = 0.3) -> World:
    """Draw a world of ten circles in 10 m x 10 m, as those of ``planning_worlds.json`` were.

    Centres are uniform in the square but for its outer half metre, radii from 0.4 to 1 m. Start
    and goal are half a metre from all, the straight line between them is blocked, and a grid path
    exists that keeps 0.4 m. The same seed gives the same world.
    """
    rng = np.random.default_rng(seed)
    bounds = ((0.0, 0.0), (SIDE, SIDE))
    while True:
        centres = rng.uniform(0.5, SIDE - 0.5, (CIRCLES, 2))
        radii = rng.uniform(*RADII, CIRCLES)
        circles = np.column_stack((centres, radii))
        world = World(START, GOAL, circles, bounds=bounds, radius=radius)
        ends = world.distance(np.stack((world.start, world.goal)))
        if (
            ends.min() > END_CLEARANCE
            and _straight(world).min() < 0.0
            and solvable(world, INFLATION)
        ):
            return world


def crossing_world(seed: int, movers: int = 4, radius: float = 0.3) -> World:
    """Draw a world in which discs cross the way from start to goal, and nothing stands.

    They have radii of 0.2 to 0.5 m and go to and fro at 0.3 to 0.8 m/s, 6 m at a time and within
    60 degrees of square to the way, which they cross between a quarter and three quarters of it.
    """
    rng = np.random.default_rng(seed)
    start, goal = np.array(START), np.array(GOAL)
    heading = math.atan2(*(goal - start)[::-1])
    discs = []
    for _ in range(movers):
        centre = start + rng.uniform(0.25, 0.75) * (goal - start)
        bearing = heading + math.pi / 2 + rng.uniform(-math.pi / 3, math.pi / 3)
        ahead = 3.0 * np.array([math.cos(bearing), math.sin(bearing)])
        speed, size, phase = rng.uniform(0.3, 0.8), rng.uniform(0.2, 0.5), rng.uniform()
        discs.append(Mover(centre - ahead, centre + ahead, speed, size, phase))
    bounds = ((0.0, 0.0), (SIDE, SIDE))
    return World(start, goal, movers=tuple(discs), bounds=bounds, radius=radius)


def worlds_in_map(
    map_: OccupancyMap,
    seed: int,
    radius: float = 0.3,
    inflation: float = INFLATION,
    apart: float = 3.0,
) -> Iterator[World]:
    """Yield worlds in a map without end, with starts and goals between which a grid path leads.

    Parameters
    ----------
    map_
        The map.
    seed
        Of the draws.
    radius
        The robot's, metres.
    inflation
        Distance that the grid path keeps from walls and from what is unknown, metres.
    apart
        Smallest distance between start and goal, metres.

    Raises
    ------
    ValueError
        Where the map has no two such places.
    """  # fmt: skip
    rng = np.random.default_rng(seed)
    barred = map_.blocked(OCCUPIED_AT, 'blocked')
    nodes = np.indices(barred.shape).reshape(2, -1).T + 0.5
    centres = np.asarray(map_.origin)[:2] + map_.resolution * nodes
    distances = np.empty(len(centres))
    walls = walls_of(barred, np.array(map_.origin), map_.resolution)
    times, discs, movers = np.zeros(len(centres)), np.empty((0, 3)), np.empty((0, 7))
    distances_to(centres, times, discs, movers, *walls, distances)
    parts = label(distances.reshape(barred.shape) > inflation)[0].ravel()
    places = np.flatnonzero(parts)
    misses = 0
    while misses < 10000:
        first, second = rng.choice(places, 2) if len(places) else (0, 0)
        start, goal = centres[first], centres[second]
        if parts[first] == parts[second] and math.dist(start, goal) >= apart and len(places):
            misses = 0
            yield World(start, goal, map=map_, radius=radius)
        else:
            misses += 1
    raise ValueError(
        f'the map has no start and goal {apart:g} m apart with a path that keeps {inflation:g} m'
    )


def read_worlds(path: str | Path, group: str = 'base') -> list[World]:
    """Read a group of worlds from a JSON file.

    Parameters
    ----------
    path
        The file: ``bounds`` (low, high), ``robot_radius``, ``start``, ``goal``, and groups of
        worlds with ``centers`` and ``radii``.
    group
        Name of the group.

    Raises
    ------
    ValueError
        Where the file is none of these, or has no such group.
    """
    with open(path, encoding='utf-8') as file:
        tree = json.load(file)
    try:
        low, high = tree['bounds']
        shared = {
            'start': tree['start'], 'goal': tree['goal'], 'radius': tree['robot_radius'],
            'bounds': ((low, low), (high, high)),
        }  # fmt: skip
        given: Sequence[Any] = tree[group]
        return [World(circles=np.c_[w['centers'], w['radii']], **shared) for w in given]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f'{path} is no file of planning worlds with a group {group!r} ({error!r})'
        ) from error
