# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What is kept clear of, seen from where the robot is."""

import numpy as np
import pytest

from kernel_constrained.planning.config import PlannerConfig, RobotConfig, WorkspaceConfig
from kernel_constrained.planning.grid import distance_grid, lower_bound
from kernel_constrained.planning.scene import box_of, NO_GRID, Scene

RADIUS = 0.3
ORIGIN = np.zeros(2)


def scene(points=((), ()), radii=None, grid=NO_GRID, at=ORIGIN, **config):
    points = np.array(points, dtype=float).reshape(2, -1)
    radii = np.zeros(points.shape[1]) if radii is None else np.array(radii, dtype=float)
    return Scene(
        points, radii, np.zeros_like(radii), grid, np.array(at, dtype=float),
        PlannerConfig(**config),
    )  # fmt: skip


def wall_at(x):
    """Return a map's wall from x = ``x`` on, half a metre wide."""
    cells = np.zeros((41, 40), dtype=bool)
    cells[20:25] = True
    return distance_grid(cells, (x - 2.0, -2.0), 0.1)


def test_obstacles_with_room_are_kept_clear_of_by_radius_and_margin():
    of = scene([[3.0, 0.0], [0.0, -4.0]], [0.0, 0.5])
    for margin in (0.0, 0.1):
        np.testing.assert_allclose(of.obstacles(margin).keep, [0.3 + margin, 0.8 + margin])
        assert of.obstacles(margin).grid_keep == pytest.approx(0.3 + margin)


def test_obstacle_nearer_than_wanted_leaves_the_robot_room_to_begin_in():
    for distance in (0.35, 0.3, 0.25, 0.01):
        keep = scene([[distance], [0.0]]).obstacles(0.1).keep[0]
        assert distance - 5e-3 < keep < distance


def test_robot_in_the_middle_of_a_disc_leaves_nothing_to_keep():
    assert scene([[0.0], [0.0]], [1.0]).obstacles(0.1).keep[0] == 0.0


def test_wall_nearer_than_wanted_leaves_the_robot_room_to_begin_in():
    for distance in (0.35, 0.32, 0.25):
        near = scene(grid=wall_at(distance)).obstacles(0.1)
        left = lower_bound(near.grid, near.grid_origin, near.grid_spacing, 0.0, 0.0)
        assert near.grid_keep < left < near.grid_keep + 5e-3
    far = wall_at(0.5)
    assert scene(grid=far).obstacles(0.1).grid is far.values


def test_robot_is_inside_what_reaches_into_its_disc_by_more_than_noise():
    assert not scene().robot_is_inside
    assert not scene([[0.31], [0.0]]).robot_is_inside
    assert not scene([[0.25], [0.0]]).robot_is_inside  # within three deviations of 3 cm
    assert scene([[0.2], [0.0]]).robot_is_inside
    assert scene([[1.0], [0.0]], [0.9]).robot_is_inside
    assert scene(grid=wall_at(0.1)).robot_is_inside
    assert not scene(grid=wall_at(0.35)).robot_is_inside


def test_clearance_is_that_of_the_nearest():
    assert scene([[2.0, 0.0], [0.0, 1.0]], [0.5, 0.0]).clearance == pytest.approx(0.7)
    assert scene().clearance == np.inf


def test_disc_is_free_where_it_fits():
    of = scene([[3.0], [0.0]], [0.5], wall_at(6.0))
    assert of.is_free(np.array([2.19, 0.0]))
    assert not of.is_free(np.array([2.21, 0.0]))
    assert of.is_free(np.array([5.69, 0.5]))
    assert not of.is_free(np.array([5.71, 0.5]))
    assert of.is_free(np.array([2.19, 0.0, 7.0]))  # a column, of all heights


def test_box_leaves_room_for_the_disc_and_holds_the_robot():
    workspace = WorkspaceConfig(x_min=-1.0, x_max=5.0, y_min=-2.0, z_max=3.0)
    low, high = scene(workspace=workspace).box
    np.testing.assert_allclose(low, [-0.7, -1.7])
    np.testing.assert_allclose(high, [4.7, np.inf])
    low, high = scene(workspace=workspace, at=(-1.5, 0.0)).box
    np.testing.assert_allclose(low, [-1.5, -1.7], atol=0.01)
    low, high = scene(workspace=workspace, at=(0.0, 0.0, 1.0)).box
    assert len(low) == len(high) == 3
    assert high[2] <= 3.0


def test_workspace_has_as_many_dimensions_as_the_path():
    workspace = WorkspaceConfig(z_min=0.0, z_max=2.0)
    assert [len(corner) for corner in box_of(workspace, 2)] == [2, 2]
    assert box_of(workspace, 3)[0][2] == 0.0


def test_robot_configured_is_the_one_that_is_kept_clear():
    small, large = (
        scene([[3.0], [0.0]], **config) for config in ({}, {'robot': RobotConfig(radius=1.0)})
    )
    assert large.obstacles(0.0).keep[0] == 1.0
    assert large.clearance == pytest.approx(small.clearance - 0.7)
    assert large.contact[0] == 1.0


@pytest.mark.parametrize('robot', [(-0.9, 0.0), (-0.7, 0.0), (4.9, 0.0)])
def test_robot_nearer_to_the_edge_than_its_radius_has_room_to_begin_in(robot):
    low, high = scene(workspace=WorkspaceConfig(x_min=-1.0, x_max=5.0), at=robot).box
    assert low[0] < robot[0] < high[0]
