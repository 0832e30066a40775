# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Searches for rough ways, against brute force in plain Python."""

import heapq
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from kernel_constrained.planning.grid import distance_grid
from kernel_constrained.planning.maps import load_map
from kernel_constrained.planning.obstacles import in_the_open
from kernel_constrained.planning.pieces import EASED, is_free
from kernel_constrained.planning.polyline import length_of
from kernel_constrained.planning.search import explore, shortest
from kernel_constrained.planning.search_grid import search_grid, STEP_X, STEP_Y
from kernel_constrained.planning.seeds import alternatives, by_way_of, detours, shortcut, STRETCH
from kernel_constrained.planning.sides import landmarks, same_side

SHARED = Path(__file__).parents[3] / 'shared' / 'data'
LOW, HIGH = np.zeros(2), np.full(2, 10.0)
START, GOAL = np.array([0.5, 0.5]), np.array([9.5, 9.5])
RADIUS = 0.3


def discs(centres, keep, low=RADIUS, high=10.0 - RADIUS):
    """Keep clear of discs in a square box."""
    centres = np.asarray(centres, dtype=float).reshape(-1, 2)
    return in_the_open()._replace(
        points=np.ascontiguousarray(centres.T), keep=np.broadcast_to(keep, len(centres)) * 1.0,
        low=np.full(2, low), high=np.full(2, high),
    )  # fmt: skip


def random_world(seed):
    """Draw ten circles by the rule of planning_worlds.json, without its rejections."""
    rng = np.random.default_rng(seed)
    centres, radii = rng.uniform(0.5, 9.5, (10, 2)), rng.uniform(0.4, 1.0, 10)
    far = np.minimum(math.inf, [np.hypot(*(centres - p).T) for p in (START, GOAL)]).min(0)
    clear = far > radii + RADIUS + 0.2
    return discs(centres[clear], radii[clear] + RADIUS)


def random_points(seed, count=150):
    """Draw points in no order, as scans see small things: many, small, close together."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(0.0, 10.0, (count, 2))
    keep = rng.uniform(0.02, 0.45, count)
    clear = np.hypot(*(points - START).T) > keep
    clear &= np.hypot(*(points - GOAL).T) > keep
    return discs(points[clear], keep[clear])


def walls(occupied, keep, resolution=0.1, origin=(0.0, 0.0)):
    """Keep clear of the occupied cells of a map."""
    grid = distance_grid(occupied, origin, resolution)
    return in_the_open()._replace(
        grid=grid.values, grid_origin=grid.origin, grid_spacing=grid.spacing, grid_keep=keep
    )


def wall_with_gaps(*gaps):
    """Build a wall along y, one cell thick, at x = 5 with gaps (from, to); 10 m square."""
    occupied = np.zeros((100, 100), dtype=bool)
    occupied[50] = True
    for first, last in gaps:
        occupied[50, round(10 * first) : round(10 * last)] = False
    return occupied


def clearance(points, obstacles):
    """Smallest distance of positions (n, 2) to discs beyond what is to be kept, each (n,)."""
    gaps = np.hypot(*(points.T[:, :, None] - obstacles.points[:, None]))
    return (gaps - obstacles.keep).min(1, initial=math.inf)


def distance_to_cells(points, occupied, resolution):
    """Distance of positions (n, 2) to the squares of occupied cells."""
    low = resolution * np.argwhere(occupied)[None]
    gaps = points[:, None] - np.clip(points[:, None], low, low + resolution)
    return np.hypot(gaps[..., 0], gaps[..., 1]).min(1, initial=math.inf)


def along(path, step=0.002):
    """Positions along a path, close together."""
    pieces = []
    for a, b in itertools.pairwise(path):
        shares = np.linspace(0.0, 1.0, max(2, math.ceil(math.dist(a, b) / step)))[:, None]
        pieces.append(a + shares * (b - a))
    return np.concatenate(pieces)


def distances_to_piece(a, b, points):
    """Distances of points (2, n) to a straight piece."""
    shares = np.clip((b - a) @ (points - a[:, None]) / max((b - a) @ (b - a), 1e-300), 0.0, 1.0)
    return np.hypot(*(points - a[:, None] - shares * (b - a)[:, None]))


def node(grid, i, j):
    return grid.origin + grid.spacing * np.array([i, j])


def octile(a, b, spacing):
    across, up = np.abs(np.subtract(a, b)) / spacing
    return max(across, up) + (2**0.5 - 1.0) * min(across, up)


def ways_onto(grid, obstacles, position):
    """Nodes of the smallest square that holds any that can be seen, {node: length}."""
    i, j = np.floor((position - grid.origin) / grid.spacing).astype(int) + 1
    columns, rows = grid.blocked.shape
    for half in range(1, 17):
        square = itertools.product(
            range(max(i - half, 0), min(i + half, columns)),
            range(max(j - half, 0), min(j + half, rows)),
        )
        found = {
            n: octile(position, node(grid, *n), grid.spacing)
            for n in square
            if not grid.blocked[n] and is_free(*position, *node(grid, *n), obstacles, 0.0)
        }
        if found:
            return found
    return {}


def dijkstra(grid, obstacles, start):
    """Lengths of the shortest ways to all nodes, in spacings."""
    lengths, queue = {}, [(way, n) for n, way in ways_onto(grid, obstacles, start).items()]
    heapq.heapify(queue)
    while queue:
        length, (i, j) = heapq.heappop(queue)
        if (i, j) in lengths:
            continue
        lengths[i, j] = length
        for k in range(8):
            other = i + STEP_X[k], j + STEP_Y[k]
            if not grid.cut[i, j] >> k & 1 and not grid.blocked[other]:
                heapq.heappush(queue, (length + math.hypot(STEP_X[k], STEP_Y[k]), other))
    return lengths


def length_by_steps(path, spacing):
    """Length of a path of the grid, in spacings, as the grid counts it."""
    return sum(octile(a, b, spacing) for a, b in itertools.pairwise(path))


# -- the grid ---------------------------------------------------------------------------------


@pytest.mark.parametrize('seed', range(3))
def test_nodes_are_blocked_where_discs_are_nearer_than_is_kept(seed):
    obstacles = random_points(seed)
    grid = search_grid(obstacles, LOW, HIGH, 0.25, 0.1)
    for i, j in np.ndindex(grid.blocked.shape):
        position = node(grid, i, j)
        inside = (position >= RADIUS + 0.1).all() and (position <= 10.0 - RADIUS - 0.1).all()
        free = inside and clearance(position[None], obstacles)[0] > 0.1
        assert free == (not grid.blocked[i, j])


@pytest.mark.parametrize('seed', range(3))
def test_ways_between_free_nodes_are_cut_exactly_where_they_pass_through_discs(seed):
    obstacles = random_points(seed)
    grid = search_grid(obstacles, LOW, HIGH, 0.25, 0.05)
    cut_between_free = 0
    for i, j in zip(*np.nonzero(grid.blocked == 0)):
        for k in range(8):
            other = i + STEP_X[k], j + STEP_Y[k]
            if grid.blocked[other]:
                continue
            a, b = node(grid, i, j), node(grid, *other)
            free = (distances_to_piece(a, b, obstacles.points) > obstacles.keep + 0.05).all()
            assert free == (not grid.cut[i, j] >> k & 1)
            cut_between_free += not free
    assert cut_between_free > 0


def test_no_way_leads_off_the_grid():
    grid = search_grid(in_the_open(), LOW, HIGH, 1.0, 0.0)
    for i, j in np.ndindex(grid.blocked.shape):
        for k in range(8):
            inside = 0 <= i + STEP_X[k] <= 10 and 0 <= j + STEP_Y[k] <= 10
            assert inside == (not grid.cut[i, j] >> k & 1)


def test_nodes_stay_where_they_are_when_the_window_moves():
    for shift in (0.0, 0.05, 0.3, -7.77):
        grid = search_grid(in_the_open(), LOW + shift, HIGH + shift, 0.125, 0.0)
        np.testing.assert_array_equal(np.remainder(grid.origin, 0.125), 0.0)
        top = grid.origin + 0.125 * (np.array(grid.blocked.shape) - 1)
        assert (grid.origin <= LOW + shift).all()
        assert (top >= HIGH + shift).all()


@pytest.mark.parametrize('keep', [0.0, 0.04, 0.3])
@pytest.mark.parametrize('seed', range(2))
def test_ways_that_are_left_are_free_of_the_map(seed, keep):
    occupied = np.random.default_rng(seed).random((40, 40)) < 0.06
    obstacles = walls(occupied, keep)
    grid = search_grid(obstacles, LOW, np.full(2, 4.0), 0.125, 0.02)
    rng = np.random.default_rng(seed)
    free = np.argwhere(grid.blocked == 0)
    for i, j in rng.permutation(free)[:150]:
        for k in range(8):
            other = i + STEP_X[k], j + STEP_Y[k]
            if grid.cut[i, j] >> k & 1 or grid.blocked[other]:
                continue
            points = along([node(grid, i, j), node(grid, *other)])
            assert distance_to_cells(points, occupied, 0.1).min() > keep


def test_nodes_far_from_the_map_are_left():
    obstacles = walls(wall_with_gaps((2.0, 4.0)), 0.3)
    grid = search_grid(obstacles, LOW, HIGH, 0.125, 0.05)
    for i, j in np.ndindex(grid.blocked.shape):
        distance = distance_to_cells(node(grid, i, j)[None], wall_with_gaps((2.0, 4.0)), 0.1)[0]
        if distance > 0.35 + 0.05:  # the map's nodes are 0.05 m apart
            assert not grid.blocked[i, j]
        if distance < 0.35 - 1e-9:
            assert grid.blocked[i, j]


@pytest.mark.parametrize('bad', [math.nan, math.inf])
def test_a_distance_to_keep_that_is_no_number_blocks_everything(bad):
    grid = search_grid(discs([[5.0, 5.0]], bad), LOW, HIGH, 0.5, 0.0)
    assert grid.blocked.all()
    assert not is_free(1.0, 1.0, 2.0, 2.0, discs([[5.0, 5.0]], bad), 0.0)


def test_a_point_that_is_no_number_blocks_everything():
    obstacles = discs([[math.nan, 5.0]], 0.3)
    assert search_grid(obstacles, LOW, HIGH, 0.5, 0.0).blocked.all()
    assert not is_free(1.0, 1.0, 2.0, 2.0, obstacles, 0.0)


def test_points_anywhere_else_block_nothing():
    obstacles = discs([[1e300, 0.0], [-1e30, 5.0], [5.0, 1e19], [40.0, 40.0]], 0.3, -99.0, 99.0)
    assert not search_grid(obstacles, LOW, HIGH, 0.5, 0.0).blocked.any()


@pytest.mark.parametrize(
    ('low', 'high', 'spacing', 'extra'),
    [
        (LOW, HIGH, 0.0, 0.0),
        (LOW, HIGH, math.nan, 0.0),
        (LOW, HIGH, 0.1, -0.1),
        (HIGH, LOW, 0.1, 0.0),
        (LOW, np.full(2, math.inf), 0.1, 0.0),
        (np.array([math.nan, 0.0]), HIGH, 0.1, 0.0),
        (LOW, np.full(2, 1e6), 0.1, 0.0),
        (LOW, np.full(2, 1e300), 0.1, 0.0),
    ],
)
def test_what_makes_no_grid_is_refused(low, high, spacing, extra):
    with pytest.raises(ValueError, match='must be'):
        search_grid(in_the_open(), low, high, spacing, extra)


# -- the search -------------------------------------------------------------------------------


@pytest.mark.parametrize('seed', range(6))
@pytest.mark.parametrize('world', [random_world, random_points])
def test_no_path_on_the_grid_is_shorter(world, seed):
    obstacles = world(seed)
    grid = search_grid(obstacles, LOW, HIGH, 0.25, 0.02)
    start, goal = START + 0.07, GOAL - [0.03, 0.11]
    lengths = dijkstra(grid, obstacles, start)
    ends = ways_onto(grid, obstacles, goal).items()
    expected = min((lengths.get(n, math.inf) + way for n, way in ends), default=math.inf)
    path = shortest(grid, obstacles, start, goal)
    if len(path) == 0:
        assert expected == math.inf
    else:
        np.testing.assert_array_equal(path[[0, -1]], [start, goal])
        assert length_by_steps(path, 0.25) == pytest.approx(expected, rel=2e-9)


@pytest.mark.parametrize('seed', [0, 1, 3, 4, 5, 6, 7, 8])  # no way through points of 2
@pytest.mark.parametrize('world', [random_world, random_points])
def test_paths_are_free_and_stay_so_when_they_are_pulled_straight(world, seed):
    obstacles = world(seed)
    grid = search_grid(obstacles, LOW, HIGH, 0.125, 0.05)
    path = shortest(grid, obstacles, START, GOAL)
    straight = shortcut(path, obstacles, 0.05)
    np.testing.assert_array_equal(straight[[0, -1]], [START, GOAL])
    assert len(straight) < len(path)
    assert length_of(straight) <= length_of(path) + 1e-9
    for line in (path, straight):
        assert clearance(along(line), obstacles).min() > 0.0
        middle = along(line[1:-1] if len(line) > 3 else line)
        assert clearance(middle, obstacles).min() > 0.05 - (1.0 - EASED) * 1.5


@pytest.mark.parametrize('keep', [0.0, 0.2])
def test_a_wall_one_cell_thick_is_passed_by_its_gap_only(keep):
    occupied = wall_with_gaps((8.0, 9.0))
    obstacles = walls(occupied, keep)
    start, goal = np.array([1.0, 1.0]), np.array([9.0, 1.0])
    grid = search_grid(obstacles, LOW, HIGH, 0.25, 0.01)
    path = shortest(grid, obstacles, start, goal)
    for line in (path, shortcut(path, obstacles, 0.01)):
        assert distance_to_cells(along(line), occupied, 0.1).min() > keep
        assert 8.0 < line[:, 1].max() < 9.0


def test_a_wall_without_a_gap_is_not_passed():
    occupied = wall_with_gaps()
    obstacles = walls(occupied, 0.0)._replace(low=np.zeros(2), high=np.full(2, 10.0))
    grid = search_grid(obstacles, LOW, HIGH, 0.25, 0.0)
    start, goal = np.array([1.0, 1.0]), np.array([9.0, 1.0])
    assert shortest(grid, obstacles, start, goal).shape == (0, 2)
    assert alternatives(obstacles, LOW, HIGH, 0.25, 0.0, start, goal, 3) == []


def test_points_closer_than_twice_what_is_kept_are_no_door():
    wall = [[5.0, y] for y in np.arange(0.0, 10.01, 0.1)]
    obstacles = discs(wall, 0.051, 0.0, 10.0)
    grid = search_grid(obstacles, LOW, HIGH, 0.125, 0.0)
    assert len(shortest(grid, obstacles, START, GOAL)) == 0


def test_a_start_within_the_extra_margin_finds_out():
    obstacles = discs([[2.0, 2.0]], 0.5)
    start = np.array([2.0, 2.502])
    grid = search_grid(obstacles, LOW, HIGH, 0.125, 0.1)
    path = shortest(grid, obstacles, start, GOAL)
    straight = shortcut(path, obstacles, 0.1)
    np.testing.assert_array_equal(straight[0], start)
    assert clearance(along(straight), obstacles).min() > 0.0
    assert clearance(straight[1:], obstacles).min() > 0.1


def test_a_start_finds_out_where_only_what_must_be_kept_is():
    obstacles = discs([[2.0, 1.45], [2.0, 2.55]], 0.5)._replace(low=np.array([1.7, 0.0]))
    start, goal = np.array([1.75, 2.0]), np.array([9.0, 2.0])
    path = shortest(search_grid(obstacles, LOW, HIGH, 0.125, 0.1), obstacles, start, goal)
    np.testing.assert_allclose(path[1], [2.25, 2.0])
    assert clearance(along(path), obstacles).min() == pytest.approx(0.05, abs=1e-5)


def test_a_blocked_start_has_no_path():
    obstacles = discs([[0.6, 0.6]], 0.5)
    grid = search_grid(obstacles, LOW, HIGH, 0.125, 0.0)
    assert shortest(grid, obstacles, START, GOAL).shape == (0, 2)


@pytest.mark.parametrize('bad', [[math.nan, 1.0], [math.inf, 1.0]])
def test_positions_that_are_no_numbers_have_no_path(bad):
    grid = search_grid(in_the_open(), LOW, HIGH, 0.5, 0.0)
    assert len(shortest(grid, in_the_open(), np.array(bad), GOAL)) == 0
    assert len(shortest(grid, in_the_open(), START, np.array(bad))) == 0


# -- straight pieces --------------------------------------------------------------------------


@pytest.mark.parametrize('seed', range(3))
def test_a_piece_is_free_exactly_where_no_disc_is_nearer_than_is_kept(seed):
    obstacles, rng = random_points(seed, 40), np.random.default_rng(seed)
    seen = set()
    for a, b in rng.uniform(1.0, 9.0, (300, 2, 2)):
        expected = bool((distances_to_piece(a, b, obstacles.points) > obstacles.keep).all())
        assert is_free(*a, *b, obstacles, 0.0) == expected
        seen.add(expected)
    assert seen == {True, False}


def test_extra_is_kept_except_from_what_an_end_is_nearer_to():
    obstacles = discs([[5.0, 5.0]], 0.5)
    assert is_free(4.0, 5.55, 6.0, 5.55, obstacles, 0.0)
    assert not is_free(4.0, 5.55, 6.0, 5.55, obstacles, 0.1)
    assert is_free(5.0, 5.55, 6.0, 5.55, obstacles, 0.1)
    assert not is_free(5.0, 5.55, 5.5, 5.2, obstacles, 0.1)


def test_a_piece_may_not_leave_the_box():
    obstacles = discs(np.empty((0, 2)), 0.3)
    assert is_free(0.3, 1.0, 9.7, 9.0, obstacles, 0.1)
    assert not is_free(0.29, 1.0, 9.0, 9.0, obstacles, 0.0)
    assert not is_free(1.0, 1.0, 9.0, 9.71, obstacles, 0.0)


@pytest.mark.parametrize('seed', range(3))
def test_a_piece_called_free_is_free_of_the_map(seed):
    rng = np.random.default_rng(seed)
    occupied = rng.random((40, 40)) < 0.02
    obstacles = walls(occupied, 0.1)
    seen = 0
    for a, b in rng.uniform(0.5, 3.5, (150, 2, 2)):
        distance = distance_to_cells(along([a, b]), occupied, 0.1).min()
        free = is_free(*a, *b, obstacles, 0.0)
        assert not free or distance > 0.1
        assert free or distance < 0.1 + 0.05 + 0.002  # no more careful than nodes are apart
        seen += free
    assert 0 < seen < 150


def test_a_path_pulled_straight_stays_on_its_side_where_that_is_asked():
    path = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 1.0], [3.0, 0.0], [4.0, 0.0]])
    for y, expected in ((0.5, path[[0, 2, 4]]), (-0.5, path[[0, 4]])):
        sides = np.array([[1.7], [y]])
        straight = shortcut(path, in_the_open(), 0.0, sides)
        np.testing.assert_array_equal(straight, expected)
        assert same_side(path, straight, sides)
    np.testing.assert_array_equal(shortcut(path, in_the_open(), 0.0), path[[0, 4]])


def test_a_way_in_the_open_becomes_one_piece():
    grid = search_grid(in_the_open(), LOW, HIGH, 0.25, 0.0)
    path = shortest(grid, in_the_open(), START, np.array([9.0, 4.0]))
    np.testing.assert_array_equal(shortcut(path, in_the_open(), 0.1), path[[0, -1]])


@pytest.mark.parametrize('count', [0, 1, 2])
def test_short_paths_stay_as_they_are(count):
    path = np.arange(2.0 * count).reshape(count, 2)
    np.testing.assert_array_equal(shortcut(path, in_the_open(), 0.0), path)


# -- sides ------------------------------------------------------------------------------------


def angle_swept(path, point):
    """Angle by which a path turns around a point, radians."""
    bearings = np.arctan2(*(path - point).T[::-1])
    return np.remainder(np.diff(bearings) + math.pi, 2.0 * math.pi).sum() - math.pi * (
        len(path) - 1
    )


@pytest.mark.parametrize('seed', range(40))
def test_paths_are_on_the_same_side_where_they_sweep_the_same_angles(seed):
    rng = np.random.default_rng(seed)
    ends = rng.uniform(0.0, 1.0, (2, 2))
    a, b = (np.vstack([ends[0], rng.uniform(0.0, 1.0, (n, 2)), ends[1]]) for n in (1, 4))
    points = rng.uniform(0.0, 1.0, (2, rng.integers(1, 4)))
    swept = [angle_swept(a, point) - angle_swept(b, point) for point in points.T]
    expected = bool(np.abs(swept).max() < 1e-6)
    assert same_side(a, b, points) == expected
    assert same_side(b, a, points) == expected
    assert same_side(a, np.vstack([a[:1], a]), points)


def test_paths_left_and_right_of_a_point_are_on_different_sides():
    left, right = np.array([[0.0, 0], [1, 1], [2, 0]]), np.array([[0.0, 0], [1, -1], [2, 0]])
    assert not same_side(left, right, np.array([[1.0], [0.0]]))
    assert same_side(left, right, np.array([[1.0, 3.0], [2.0, 0.0]]))
    assert same_side(left, right, np.empty((2, 0)))


def test_paths_on_both_sides_of_a_disc_are_found_the_shorter_first():
    obstacles = discs([[5.0, 5.2]], 1.5)
    start, goal = np.array([1.0, 5.0]), np.array([9.0, 5.0])
    below, above = alternatives(obstacles, LOW, HIGH, 0.125, 0.05, start, goal, 2)
    assert below[:, 1].min() < 3.7 < 5.0 == below[:, 1].max()
    assert above[:, 1].max() > 6.7
    assert length_of(below) < length_of(above)
    for path in (below, above):
        np.testing.assert_array_equal(path[[0, -1]], [start, goal])
        assert clearance(along(path), obstacles).min() > 0.04


def test_one_is_found_where_one_is_wanted():
    obstacles = random_world(1)
    (path,) = alternatives(obstacles, LOW, HIGH, 0.125, 0.05, START, GOAL, 1)
    grid = search_grid(obstacles, LOW, HIGH, 0.125, 0.05)
    expected = shortcut(shortest(grid, obstacles, START, GOAL), obstacles, 0.05)
    np.testing.assert_array_equal(path, expected)


def test_every_gap_of_a_wall_on_a_map_is_a_side_of_its_own():
    gaps = (1.0, 2.0), (4.0, 5.0), (6.5, 7.5)
    obstacles = walls(wall_with_gaps(*gaps), 0.2)
    obstacles = obstacles._replace(low=np.zeros(2), high=np.full(2, 10.0))
    start, goal = np.array([1.0, 4.5]), np.array([9.0, 4.5])
    paths = alternatives(obstacles, LOW, HIGH, 0.125, 0.05, start, goal, 5)
    crossings = [np.interp(5.05, path[:, 0], path[:, 1]) for path in paths]
    found = [[low < y < high for low, high in gaps].index(True) for y in crossings]
    assert found == [1, 2, 0]


@pytest.mark.parametrize('seed', range(6))
def test_alternatives_differ_in_side_and_are_free_and_sorted(seed):
    obstacles = random_world(seed)
    paths = alternatives(obstacles, LOW, HIGH, 0.125, 0.05, START, GOAL, 4)
    assert [length_of(path) for path in paths] == sorted(length_of(path) for path in paths)
    for path in paths:
        assert clearance(along(path), obstacles).min() > 0.0
    for a, b in itertools.combinations(paths, 2):
        assert not same_side(a, b, obstacles.points)


def second_by_layers(grid, obstacles, first):
    """Length of the shortest way on other sides than ``first``, in spacings, one disc a time.

    Nodes are copied for each number of times that a ray from the disc was crossed.
    """
    start, goal = (tuple(np.round((p - grid.origin) / grid.spacing).astype(int)) for p in first)
    best = math.inf
    for x, y in obstacles.points.T:
        queue, lengths = [(0.0, start, 0)], {}
        usual = None
        while queue:
            length, (i, j), layer = heapq.heappop(queue)
            if ((i, j), layer) in lengths:
                continue
            lengths[(i, j), layer] = length
            if (i, j) == goal:
                if usual is None:
                    usual = layer
                else:
                    best = min(best, length)
                    break
            for k in range(8):
                other = i + STEP_X[k], j + STEP_Y[k]
                if grid.cut[i, j] >> k & 1 or grid.blocked[other]:
                    continue
                a, b = node(grid, i, j), node(grid, *other)
                crossed = (a[0] <= x) != (b[0] <= x) and a[1] + (b[1] - a[1]) * (x - a[0]) / (
                    b[0] - a[0]
                ) > y
                after = layer + crossed * STEP_X[k]
                if abs(after) <= 2:
                    way = length + math.hypot(STEP_X[k], STEP_Y[k])
                    heapq.heappush(queue, (way, other, after))
    return best


@pytest.mark.parametrize('seed', range(4))
def test_the_second_path_is_the_shortest_on_other_sides(seed):
    obstacles = random_world(seed)
    grid = search_grid(obstacles, LOW, HIGH, 0.25, 0.0)
    expected = second_by_layers(grid, obstacles, (START, GOAL))
    first = length_by_steps(shortest(grid, obstacles, START, GOAL), 0.25)
    there, back = (
        explore(grid, obstacles, *ends, STRETCH) for ends in ((START, GOAL), (GOAL, START))
    )
    nodes = detours(grid, obstacles.points, there, back, STRETCH, 1)
    if expected >= STRETCH * first:
        assert len(nodes) == 0
    else:
        path = by_way_of(grid, there, back, nodes[0], START, GOAL)
        assert length_by_steps(path, 0.25) == pytest.approx(expected, rel=2e-9)


def test_marks_of_a_map_lie_in_its_walls():
    occupied = wall_with_gaps((3.0, 4.0))
    obstacles = walls(occupied, 0.2)._replace(points=np.full((2, 1), 7.0), keep=np.full(1, 0.3))
    points = landmarks(obstacles, search_grid(obstacles, LOW, HIGH, 0.125, 0.0))
    assert points.shape[1] > 5
    np.testing.assert_array_equal(points[:, 0], [7.0, 7.0])
    assert (distance_to_cells(points[:, 1:].T, occupied, 0.1) <= 0.2 + 1e-9).all()
    assert (points[1, 1:] < 3.3).any()
    assert (points[1, 1:] > 3.7).any()


# -- data that was published ------------------------------------------------------------------


def test_every_published_world_has_a_free_path():
    path = SHARED / 'planning_worlds.json'
    if not path.exists():
        pytest.skip(f'shared data is absent: {path.name}')
    worlds = json.loads(path.read_text())
    for world in worlds['base'] + worlds['extended']:
        obstacles = discs(world['centers'], np.array(world['radii']) + RADIUS)
        (found,) = alternatives(obstacles, LOW, HIGH, 0.125, 0.05, START, GOAL, 1)
        assert clearance(along(found, 0.01), obstacles).min() > 0.04


@pytest.mark.parametrize('name', ['narrow_graph', 'office01add', 'tb3_sandbox'])
def test_paths_through_published_maps_keep_clear_of_their_walls(name):
    path = SHARED / 'maps' / f'{name}.yaml'
    if not path.exists():
        pytest.skip(f'shared data is absent: {path.name}')
    map_ = load_map(path)
    occupied = map_.blocked(65, 'blocked')
    grid = distance_grid(occupied, map_.origin[:2], map_.resolution, True)
    obstacles = in_the_open()._replace(
        grid=grid.values, grid_origin=grid.origin, grid_spacing=grid.spacing, grid_keep=0.2
    )
    low = grid.origin
    high = low + grid.spacing * (np.array(grid.values.shape) - 1)
    nodes = search_grid(obstacles, low, high, 0.125, 0.05)
    free = nodes.origin + 0.125 * np.argwhere(nodes.blocked == 0)
    rng, found = np.random.default_rng(0), 0
    for _ in range(6):
        start, goal = rng.permutation(free)[:2]
        for line in alternatives(obstacles, low, high, 0.125, 0.05, start, goal, 2):
            found += 1
            points = along(line, 0.05)
            for part in np.array_split(points, max(1, len(points) // 64)):
                near = np.floor((part - map_.origin[:2]) / map_.resolution).astype(int)
                (left, bottom), (right, top) = near.min(0) - 6, near.max(0) + 7
                left, bottom = max(left, 0), max(bottom, 0)
                shift = np.array(map_.origin[:2]) + map_.resolution * np.array([left, bottom])
                cells = occupied[left:right, bottom:top]
                assert distance_to_cells(part - shift, cells, map_.resolution).min() > 0.2
    assert found >= 3
