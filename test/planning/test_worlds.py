# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""True worlds: distances and ranges against brute force, and worlds drawn by their rule."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from kernel_constrained.planning.exact import cast
from kernel_constrained.planning.maps import OccupancyMap
from kernel_constrained.planning.worlds import (
    crossing_world,
    escapable,
    Mover,
    random_world,
    read_worlds,
    solvable,
    World,
    worlds_in_map,
)

SHARED = Path(__file__).resolve().parents[3] / 'shared' / 'data' / 'planning_worlds.json'
RESOLUTION, ORIGIN = 0.05, (-1.0, 2.0, 0.0)


def grid_of(occupied, unknown=None):
    """Map of occupied cells (columns, rows)."""
    data = np.where(np.asarray(occupied).T, 65, 64)  # just so, and just not
    if unknown is not None:
        data[unknown.T & (data < 65)] = -1
    return OccupancyMap(data, RESOLUTION, ORIGIN)


def world_of(occupied=None, **more):
    map_ = None if occupied is None else grid_of(occupied)
    return World((0, 0), (1, 1), map=map_, **more)


def scattered(share, seed=0, shape=(60, 43)):
    return np.random.default_rng(seed).random(shape) < share


def nearest_square(points, occupied):
    """Distance to the union of occupied squares, from one square to the other."""
    low = np.array(ORIGIN[:2]) + np.argwhere(occupied) * RESOLUTION
    beyond = np.maximum(low - points[:, None], points[:, None] - low - RESOLUTION)
    return np.hypot(*np.maximum(beyond, 0.0).transpose(2, 0, 1)).min(axis=1, initial=np.inf)


def ranges_from(world, x, y, first=0.1, beams=90, reach=3.0, time=0.0):
    ranges = np.empty(beams)
    walls = world.walls
    cast(
        x, y, first, 2 * math.pi / beams, world.discs(time), walls.occupied, walls.origin,
        walls.resolution, reach, ranges,
    )  # fmt: skip
    return ranges


def marched(world, x, y, bearing, reach=3.0):
    """Range along a ray by steps that the exact distance allows."""
    along, direction = 0.0, np.array([math.cos(bearing), math.sin(bearing)])
    while along <= reach:
        free = world.distance((np.array([x, y]) + along * direction)[None])[0]
        if free < 1e-9:
            return along
        along += free
    return np.inf


@pytest.mark.parametrize('share', [0.0, 0.001, 0.02, 0.3, 1.0])
def test_distance_to_walls_is_that_to_the_nearest_occupied_square(share):
    occupied = scattered(share)
    points = np.random.default_rng(1).uniform((-3, 0), (4, 6), (400, 2))  # outside the map too
    expected = nearest_square(points, occupied)
    assert world_of(occupied).distance(points) == pytest.approx(expected, abs=1e-12)


def test_distance_to_discs_is_negative_inside_and_infinite_where_there_is_nothing():
    world = World((0, 0), (1, 1), circles=[(1, 0, 0.5), (-2, 0, 1)])
    points = np.array([(0, 0), (1, 0), (-2, 3), (1.25, 0)], dtype=float)
    assert world.distance(points) == pytest.approx([0.5, -0.5, 2.0, -0.25])
    assert world.clearance(points) == pytest.approx([0.2, -0.8, 1.7, -0.55])
    assert world_of().distance(points).tolist() == [math.inf] * 4


def test_movers_go_to_and_fro_and_are_where_they_are_at_the_time():
    mover = Mover((0, 0), (2, 0), speed=0.5, radius=0.1, phase=0.25)
    times = np.array([0.0, 1.0, 2.0, 4.0, 6.0, 8.0])
    assert mover.positions(times)[:, 0] == pytest.approx([1.0, 1.5, 2.0, 1.0, 0.0, 1.0])
    world = World((0, 0), (1, 1), movers=(mover,))
    expected = np.abs(mover.positions(times)[:, 0] - 1.0) - 0.1
    assert world.distance(np.tile((1.0, 0.0), (6, 1)), times) == pytest.approx(expected)
    assert world.discs(1.0) == pytest.approx(np.array([[1.5, 0.0, 0.1]]))
    assert world.fastest == 0.5


@pytest.mark.parametrize('share', [0.0, 0.002, 0.02, 0.3])
def test_rays_end_where_they_first_touch_a_wall_or_a_disc(share):
    occupied, rng = scattered(share, seed=2), np.random.default_rng(3)
    mover = Mover((1.5, 3.0), (1.0, 5.0), 1.0, 0.2)
    world = world_of(occupied, circles=[(0.5, 3.0, 0.3), (-1.5, 3.0, 0.4)], movers=(mover,))
    at_zero = world_of(occupied, circles=world.discs(0.0))
    for x, y in rng.uniform((-3, 1), (3, 5), (25, 2)):
        ranges = ranges_from(world, x, y)
        for beam in range(0, 90, 5):
            expected = marched(at_zero, x, y, 0.1 + beam * 2 * math.pi / 90)
            assert ranges[beam] == pytest.approx(expected, abs=1e-5), (x, y, beam)


def test_rays_along_the_grid_pass_no_wall_of_one_cell():
    occupied = np.zeros((40, 40), dtype=bool)
    occupied[20, :] = True
    world = world_of(occupied)
    for y in (2.0 + 0.05 * 7, 2.0 + 0.05 * 7.5):  # on the edge between two rows, and inside one
        ranges = ranges_from(world, -0.5, y, first=0.0, beams=4)
        assert ranges[0] == pytest.approx(0.5)
        assert np.isinf(ranges[1:]).all()
    for beside in (1.9, 4.1):  # below and above the map
        assert np.isinf(ranges_from(world, -0.5, beside, first=0.0, beams=4)).all()


def test_rays_from_inside_an_obstacle_have_range_zero():
    assert (ranges_from(World((0, 0), (1, 1), circles=[(0, 0, 1)]), 0.5, 0.0) == 0.0).all()
    assert (ranges_from(world_of(np.ones((4, 4))), -0.93, 2.07) == 0.0).all()


def test_rays_pass_between_squares_only_where_there_is_room():
    """Of two squares that touch at a corner, none lets a ray through there."""
    occupied = np.zeros((4, 4), dtype=bool)
    occupied[1, 2] = occupied[2, 1] = True
    ranges = ranges_from(world_of(occupied), -1.0, 2.0, first=math.pi / 4, beams=8)
    assert ranges[0] == pytest.approx(math.sqrt(2) * 0.1, abs=1e-6)


def test_random_worlds_keep_the_rule_and_come_back_with_their_seed():
    for seed in range(30):
        world = random_world(seed)
        assert world.distance(np.stack((world.start, world.goal))).min() > 0.5
        shares = np.linspace(0.0, 1.0, 500)[:, None]
        assert world.clearance(world.start + shares * (world.goal - world.start)).min() < 0.01
        assert solvable(world, 0.4)
        assert np.array_equal(world.circles, random_world(seed).circles)
    assert not np.array_equal(random_world(0).circles, random_world(1).circles)


def test_a_wall_of_circles_from_side_to_side_is_not_solvable():
    row = [(x, 5.0, 0.7) for x in range(11)]
    box = ((0, 0), (10, 10))
    assert not solvable(World((0.5, 0.5), (9.5, 9.5), row, bounds=box), 0.4)
    assert solvable(World((0.5, 0.5), (9.5, 9.5), row[:-3], bounds=box), 0.4)


def test_random_worlds_are_those_that_the_file_of_worlds_was_drawn_as():
    if not SHARED.exists():
        pytest.skip(f'shared data is absent: {SHARED.name}')
    seeds = json.loads(SHARED.read_text())
    for group in ('base', 'extended'):
        for entry, world in zip(seeds[group], read_worlds(SHARED, group), strict=True):
            drawn = random_world(entry['seed'])
            assert drawn.circles == pytest.approx(world.circles, abs=6e-5)
            assert (drawn.bounds == world.bounds).all()
            assert drawn.radius == world.radius == 0.3


def test_worlds_are_read_by_group_and_a_wrong_file_is_named(tmp_path):
    tree = {
        'bounds': [0, 10], 'robot_radius': 0.2, 'start': [1, 1], 'goal': [9, 9],
        'few': [{'centers': [[5, 5], [2, 3]], 'radii': [1, 0.5]}],
    }  # fmt: skip
    path = tmp_path / 'worlds.json'
    path.write_text(json.dumps(tree))
    (world,) = read_worlds(path, 'few')
    assert world.circles.tolist() == [[5, 5, 1], [2, 3, 0.5]]
    assert (world.radius, world.goal.tolist()) == (0.2, [9, 9])
    with pytest.raises(ValueError, match=r"worlds.json is no file of .* group 'base'"):
        read_worlds(path)
    path.write_text('[]')
    with pytest.raises(ValueError, match=r'worlds.json is no file of planning worlds'):
        read_worlds(path)


def test_crossing_discs_cross_the_way_and_leave_its_ends_alone():
    for seed in range(10):
        world = crossing_world(seed)
        assert len(world.movers) == 4
        times = np.linspace(0.0, 60.0, 1200)
        for mover in world.movers:
            places = mover.positions(times)
            beside = (places[:, 1] - places[:, 0]) / math.sqrt(2)
            assert beside.min() < 0.0 < beside.max()
            assert 0.3 <= mover.speed <= 0.8
        for end in (world.start, world.goal):
            assert world.clearance(np.tile(end, (1200, 1)), times).min() > 0.3


def test_drives_in_a_map_lead_from_known_free_space_to_where_a_path_goes():
    occupied = np.zeros((200, 100), dtype=bool)
    occupied[:, [0, -1]] = occupied[[0, -1]] = True
    occupied[100] = True  # a wall without a door
    unknown = np.zeros_like(occupied)
    unknown[:40] = True
    map_ = grid_of(occupied, unknown)
    drives = worlds_in_map(map_, seed=0, radius=0.2, inflation=0.3, apart=2.0)
    for _, world in zip(range(40), drives):
        ends = np.stack((world.start, world.goal))
        assert world.distance(ends).min() > 0.3
        assert (ends[:, 0] > -1.0 + 40 * 0.05 + 0.3).all(), 'known'
        assert (ends[0, 0] > 4.0) == (ends[1, 0] > 4.0), 'the same side of the wall'
        assert math.dist(*ends) >= 2.0
    with pytest.raises(ValueError, match=r'no start and goal 50 m apart'):
        next(worlds_in_map(map_, seed=0, apart=50.0))
    with pytest.raises(ValueError, match=r'no start and goal'):
        next(worlds_in_map(grid_of(np.ones((5, 5))), seed=0))


def test_what_comes_fast_from_the_side_cannot_be_escaped_what_is_seen_early_can():
    """A disc of 0.5 m at 1 m/s, towards a disc of 0.3 m at 0.5 m/s: 0.8 m to get out of."""
    world = World((0, 0), (9, 0), movers=(Mover((-5, 0), (5, 0), 1.0, 0.5),))
    for distance, expected in ((0.9, False), (1.2, False), (2.5, True)):
        at = np.array([-5.0 + distance, 0.0])
        assert escapable(world, at, 0.0, 0.5, seconds=4.0) == expected
    assert escapable(world, np.array([-5.0 + 0.9, 0.0]), 0.0, 0.5, seconds=0.05), 'not yet'
    assert escapable(world, np.array([-5.0 + 0.9, 0.0]), 0.0, 3.0, seconds=1.0), 'fast enough'


def test_there_is_no_escape_through_a_wall():
    occupied = np.zeros((80, 80), dtype=bool)
    occupied[:, [20, 40]] = True  # a corridor of 0.95 m
    mover = Mover((-1.0, 3.5), (3.0, 3.5), 1.0, 0.4)
    at = np.array([0.5, 3.5])
    assert not escapable(world_of(occupied, movers=(mover,)), at, 0.0, 0.5, seconds=3.0)
    assert escapable(world_of(occupied), at, 0.0, 0.5, seconds=3.0)


def test_the_disc_sticks_out_of_the_bounds_by_what_lies_beyond():
    world = World((1, 1), (2, 2), bounds=((0, 0), (10, 10)))
    points = np.array([(5, 5), (0.3, 5), (0.2, 5), (5, 9.9), (-1, 5)], dtype=float)
    assert world.outside(points) == pytest.approx([0, 0, 0.1, 0.2, 1.3])
    assert world_of().outside(points).tolist() == [0.0] * 5


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'start': (0, math.nan)}, 'start must be two finite numbers'),
        ({'goal': (0, 0, 0)}, 'goal must be two finite numbers'),
        ({'circles': [(0, 0, -1)]}, 'circles must be finite, of positive radius'),
        ({'circles': [(0, math.inf, 1)]}, 'circles must be finite'),
        ({'bounds': ((0, 0), (1, 0))}, 'bounds must be a lower and an upper corner'),
    ],
)
def test_what_is_no_world_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        World(**{'start': (0, 0), 'goal': (1, 1), **given})
