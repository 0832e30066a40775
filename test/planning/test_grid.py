# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Distances to the cells of a map, against brute force."""

import math

import numpy as np
import pytest

from kernel_constrained.planning.grid import (
    distance_grid,
    FAR,
    interpolated,
    lower_bound,
    yielding,
)


def cells(seed, share=0.2, shape=(7, 5)):
    return np.random.default_rng(seed).random(shape) < share


def distance_to_squares(points, occupied, origin, side):
    """Distance of points (n, 2) to closed squares, one by one."""
    nearest = np.full(len(points), np.inf)
    for i, j in np.argwhere(occupied):
        low = origin + side * np.array([i, j])
        gap = points - np.clip(points, low, low + side)
        nearest = np.minimum(nearest, np.hypot(*gap.T))
    return nearest


def signed_distance(points, occupied, origin, side, beyond):
    """Distance outside, minus the distance to the nearest free cell inside."""
    ring = 40  # far enough out that what lies beyond counts as endless
    padded = np.pad(occupied, ring, constant_values=beyond)
    corner = origin - ring * side
    outside = distance_to_squares(points, padded, corner, side)
    inside = distance_to_squares(points, ~padded, corner, side)
    return outside - inside


def nodes_of(grid):
    indices = np.indices(grid.values.shape).reshape(2, -1).T
    return grid.origin + grid.spacing * indices


@pytest.mark.parametrize('beyond', [False, True])
@pytest.mark.parametrize('seed', range(4))
def test_values_are_exact_at_every_node(seed, beyond):
    occupied, origin = cells(seed, 0.5), np.array([-1.0, 2.0])
    grid = distance_grid(occupied, origin, 0.25, beyond)
    expected = signed_distance(nodes_of(grid), occupied, origin, 0.25, beyond)
    assert grid.spacing == 0.125
    np.testing.assert_allclose(grid.values.ravel(), expected, atol=1e-12)


@pytest.mark.parametrize('beyond', [False, True])
@pytest.mark.parametrize('seed', range(4))
def test_the_lower_bound_never_exceeds_the_distance_anywhere(seed, beyond):
    occupied, origin = cells(seed, 0.3), np.array([0.5, -3.0])
    grid = distance_grid(occupied, origin, 0.25, beyond)
    points = np.random.default_rng(seed).uniform([-1.0, -5.0], [4.0, 0.0], (500, 2))
    expected = signed_distance(points, occupied, origin, 0.25, beyond)
    bounds = np.array([lower_bound(*grid, x, y) for x, y in points])
    assert (bounds <= expected + 1e-12).all()


def test_the_lower_bound_is_close_to_the_distance_on_the_grid():
    occupied = np.zeros((9, 9), dtype=bool)
    occupied[:2] = True  # one straight wall
    grid = distance_grid(occupied, np.zeros(2), 1.0)
    points = np.random.default_rng(0).uniform([3.0, 2.0], [8.0, 7.0], (500, 2))
    bounds = np.array([lower_bound(*grid, x, y) for x, y in points])
    expected = signed_distance(points, occupied, np.zeros(2), 1.0, False)
    assert (bounds >= expected - 0.5 * grid.spacing - 1e-12).all()


def test_the_lower_bound_is_the_value_at_nodes():
    grid = distance_grid(cells(5), np.zeros(2), 0.5)
    bounds = [lower_bound(*grid, x, y) for x, y in nodes_of(grid)]
    np.testing.assert_allclose(bounds, grid.values.ravel(), atol=1e-12)


def test_a_wall_one_cell_thick_has_no_hole_between_nodes():
    occupied = np.zeros((11, 11), dtype=bool)
    occupied[5] = True
    grid = distance_grid(occupied, np.zeros(2), 0.05)
    xs = np.linspace(0.25, 0.3, 21)
    bounds = [lower_bound(*grid, x, y) for x in xs for y in np.linspace(0.0, 0.55, 111)]
    assert max(bounds) <= 1e-12


def test_what_lies_beyond_is_free_or_blocked_as_was_said():
    occupied = np.zeros((4, 4), dtype=bool)
    far = 30.0, -20.0
    occupied[1, 1] = True
    assert lower_bound(*distance_grid(occupied, np.zeros(2), 1.0), *far) > 30.0
    assert lower_bound(*distance_grid(occupied, np.zeros(2), 1.0, True), *far) < -30.0
    assert lower_bound(*distance_grid(occupied, np.zeros(2), 1.0, True), 4.01, 2.0) <= 0.0


def test_a_map_without_obstacles_or_without_room_has_finite_values():
    free = np.zeros((3, 3), dtype=bool)
    assert (distance_grid(free, np.zeros(2), 1.0).values == FAR).all()
    assert (distance_grid(~free, np.zeros(2), 1.0, True).values == -FAR).all()


def test_no_number_is_no_distance():
    grid = distance_grid(cells(1), np.zeros(2), 0.5)
    assert not lower_bound(*grid, math.nan, 1.0) > -math.inf
    assert not lower_bound(*grid, 1.0, math.nan) > -math.inf
    assert not lower_bound(*grid, math.inf, math.nan) > -math.inf


@pytest.mark.parametrize('beyond', [False, True])
def test_the_gradient_is_that_of_the_interpolated_value(beyond):
    grid = distance_grid(cells(3), np.array([1.0, 1.0]), 0.5, beyond)
    step = 1e-7
    for x, y in np.random.default_rng(0).uniform(-2.0, 7.0, (300, 2)):
        value, dx, dy = interpolated(*grid, x, y)
        along_x = interpolated(*grid, x + step, y)[0] - interpolated(*grid, x - step, y)[0]
        along_y = interpolated(*grid, x, y + step)[0] - interpolated(*grid, x, y - step)[0]
        assert dx == pytest.approx(along_x / (2.0 * step), abs=1e-5)
        assert dy == pytest.approx(along_y / (2.0 * step), abs=1e-5)
        assert value > -FAR


def test_the_interpolated_value_is_exact_at_nodes_and_continuous_at_the_border():
    grid = distance_grid(cells(2), np.zeros(2), 0.5, True)
    values = [interpolated(*grid, x, y)[0] for x, y in nodes_of(grid)]
    np.testing.assert_allclose(values, grid.values.ravel(), atol=1e-12)
    edge = grid.origin[0] + grid.spacing * (grid.values.shape[0] - 1)
    inside, outside = (interpolated(*grid, edge + side, 1.1)[0] for side in (-1e-9, 1e-9))
    assert inside == pytest.approx(outside, abs=1e-7)


def test_the_gradient_leads_back_from_beyond_a_grid_that_ends_occupied():
    grid = distance_grid(np.zeros((4, 4), dtype=bool), np.zeros(2), 1.0, True)
    value, dx, dy = interpolated(*grid, 9.0, 2.0)
    assert value < -3.0
    assert dx < -0.9
    assert abs(dy) < 0.1


@pytest.mark.parametrize(
    ('occupied', 'origin', 'resolution', 'word'),
    [
        (np.zeros((0, 3), dtype=bool), (0.0, 0.0), 1.0, 'at least one cell'),
        (np.zeros(3, dtype=bool), (0.0, 0.0), 1.0, 'two dimensions'),
        (np.zeros((2, 2), dtype=bool), (0.0, 0.0), 0.0, 'resolution'),
        (np.zeros((2, 2), dtype=bool), (0.0, 0.0), math.nan, 'resolution'),
        (np.zeros((2, 2), dtype=bool), (0.0, math.inf), 1.0, 'origin'),
        (np.zeros((2, 2), dtype=bool), (0.0, 0.0, 0.0), 1.0, 'origin'),
    ],
)
def test_what_is_no_grid_is_refused(occupied, origin, resolution, word):
    with pytest.raises(ValueError, match=word):
        distance_grid(occupied, origin, resolution)


@pytest.mark.parametrize('side', [0.02, 0.05, 0.1])
@pytest.mark.parametrize('seed', range(12))
def test_only_what_is_near_a_position_already_yields_to_it(seed, side):
    """It is kept clear of by hardly less than its distance, all else by as much as before."""
    keep, room, rng = 0.36, 2e-3, np.random.default_rng(seed)
    count, origin = round(3.0 / side), np.array([-1.5, -1.5])
    occupied, length = np.zeros((count, count), dtype=bool), round(0.3 / side)
    for i, j in rng.integers(0, count, (6, 2)):
        occupied[i : i + length, j : j + length] = True
    grid = distance_grid(occupied, origin, side)
    position = next(
        p for p in rng.uniform(-1.5, 1.5, (1000, 2)) if 0.22 < lower_bound(*grid, *p) < keep
    )
    changed = yielding(grid, position, keep, room)
    assert lower_bound(*changed, *position) >= keep + room - 1e-12
    points = np.array(
        [p for p in rng.uniform(-1.5, 1.5, (400, 2)) if lower_bound(*changed, *p) > keep]
    )
    assert len(points) > 50
    for low in origin + side * np.argwhere(occupied):
        before, after = (
            np.hypot(*(p - np.clip(p, low, low + side)).T) for p in (position[None], points)
        )
        assert after.min() > min(keep, before[0] - 0.75 * side - room)
        if before[0] > keep + side + room:
            assert after.min() > keep
