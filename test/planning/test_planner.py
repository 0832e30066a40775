# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The planner: every reason why there is no path, what it says of those there are, and drives."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from truth import distances

from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.perception.scan import Scan
from kernel_constrained.perception.unusable import Unusable
from kernel_constrained.planning.config import (
    CertificateConfig,
    LimitConfig,
    MapConfig,
    ObstacleConfig,
    PlannerConfig,
    PolishConfig,
    RobotConfig,
    SeedConfig,
    SensingConfig,
    WorkspaceConfig,
)
from kernel_constrained.planning.grid import lower_bound
from kernel_constrained.planning.maps import OccupancyMap
from kernel_constrained.planning.planner import grid_of, Planner, REASONS
from kernel_constrained.planning.seen import seen_horizon
from kernel_constrained.planning.simulation import drive, Lidar
from kernel_constrained.planning.worlds import random_world, World

INF, NAN = math.inf, math.nan
BEAMS, FAR = 360, 3.0
RADIUS, PROOF, SLACK = 0.3, RobotConfig().proof_margin, 0.05
EXACT = Lidar(deviation=0.0)
BOX = WorkspaceConfig(x_min=0.0, x_max=10.0, y_min=0.0, y_max=10.0)
# A wall with an end, two metres ahead.
WALL = np.column_stack([np.full(13, 2.0), np.linspace(-1.2, 1.2, 13), np.full(13, 0.1)])


def planner(goal=None, **config):
    made = Planner(PlannerConfig(**config))
    if goal is not None:
        made.set_goal(np.array(goal, dtype=float))
    return made


def scan_of(ranges):
    ranges = np.broadcast_to(np.asarray(ranges, dtype=np.float32), BEAMS)
    return Scan(ranges, -math.pi, 2 * math.pi / BEAMS, 0.02, FAR)


def seen_from(x=0.0, y=0.0, circles=(), map_=None, lidar=EXACT, seed=0):
    """Return what a robot at a position sees."""
    world = World((x, y), (9.0, 9.0), circles=circles, map=map_)
    return lidar.scan(world, 0.0, Pose(x, y, 0.0, 0.0), np.random.default_rng(seed))


def ask(of, scan=None, x=0.0, y=0.0, z=0.0, yaw=0.0, stamp=1):
    return of.plan(stamp, scan_of(INF) if scan is None else scan, Pose(x, y, z, yaw))


def map_with(occupied, resolution=0.1, origin=(-1.0, -1.0, 0.0)):
    """Return a map of 8 m x 8 m with occupied rectangles (x, y, x, y in metres)."""
    cells = round(8.0 / resolution)
    data = np.zeros((cells, cells), dtype=np.int8)
    for rectangle in occupied:
        left, low, right, high = (round((edge - origin[0]) / resolution) for edge in rectangle)
        data[low:high, left:right] = 100
    return OccupancyMap(data, resolution, origin)


def length_of(line):
    return float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())


def assert_nothing(plan, reason):
    """Assert that a plan says why there is none, and no more."""
    assert plan.reason == reason
    assert reason in REASONS
    assert not plan.proven
    assert len(plan.path) == 0
    assert plan.horizon == 0.0
    assert not plan.kept


def assert_sound(plan, robot):
    """Assert that what is published is proven, seen, and begins at the robot."""
    robot = np.asarray(robot, dtype=float)
    assert plan.reason == ''
    assert plan.proven
    assert len(plan.path) >= 2
    assert np.isfinite(plan.path).all()
    assert np.linalg.norm(plan.path[0] - robot) <= 0.05 + 1e-9
    assert plan.path.shape[1] == len(robot)
    # Between its positions too: those of the trajectory up to the last of them.
    times = np.linspace(plan.since, 1.0, 4001)
    line = plan.trajectory(times)
    end = np.linalg.norm(line - plan.path[-1], axis=1).argmin()
    line = line[: end + 1]
    off = [np.linalg.norm(line - position, axis=1).min() for position in plan.path]
    assert max(off) < 0.02
    keep = plan.obstacles.keep
    if len(keep):
        assert (distances(line.T, plan.obstacles.points) > keep - 1e-9).all()
    assert (line >= plan.obstacles.low - 1e-9).all()
    assert (line <= plan.obstacles.high + 1e-9).all()
    x, y = (np.ascontiguousarray(plan.path[:, d]) for d in range(2))
    assert seen_horizon(x, y, plan.view, RADIUS + PROOF, SLACK) == len(x)
    assert plan.horizon == pytest.approx(length_of(plan.path), abs=0.05)
    assert plan.horizon <= plan.length + 1e-9
    assert 0.0 <= plan.clearance <= PROOF


# -- reasons ------------------------------------------------------------------------------------


def test_without_a_goal_there_is_no_path():
    assert_nothing(ask(planner()), 'no goal')


def test_at_the_goal_there_is_no_path():
    of = planner([1.0, 0.0])
    assert ask(of).proven
    assert_nothing(ask(of, x=0.95), 'at the goal')


def test_robot_inside_a_known_obstacle():
    plan = ask(planner([5.0, 0.0], obstacles=ObstacleConfig(circles=('0.2 0 0.5',))))
    assert_nothing(plan, 'robot is inside an obstacle')
    assert '0.6' in plan.detail  # metres


def test_robot_inside_an_obstacle_of_the_map():
    of = planner([5.0, 0.0])
    of.set_map(map_with([(-0.5, -0.5, 0.5, 0.5)]))
    assert_nothing(ask(of), 'robot is inside an obstacle')
    of.set_map(None)
    assert ask(of).proven


def test_obstacle_that_appears_on_the_robot_stops_it():
    of = planner([5.0, 0.0])
    assert_sound(ask(of), [0.0, 0.0])
    assert_nothing(ask(of, scan_of(0.1)), 'robot is inside an obstacle')
    # What is too close to be measured counts no less.
    of = planner([5.0, 0.0])
    assert ask(of).proven
    assert_nothing(ask(of, scan_of(-INF)), 'robot is inside an obstacle')


def test_robot_outside_the_workspace():
    plan = ask(planner([5.0, 5.0], workspace=BOX), x=-0.5, y=5.0)
    assert_nothing(plan, 'robot is outside the workspace')
    assert '-0.5' in plan.detail


def test_robot_at_the_edge_of_the_workspace_finds_inside():
    plan = ask(planner([5.0, 5.0], workspace=BOX), x=0.05, y=5.0)
    assert_sound(plan, [0.05, 5.0])


@pytest.mark.parametrize('goal', [[12.0, 5.0], [9.9, 5.0], [5.0, -1.0]])
def test_goal_outside_the_workspace(goal):
    plan = ask(planner(goal, workspace=BOX), x=5.0, y=5.0)
    assert_nothing(plan, 'goal is outside the workspace')
    assert plan.detail


def test_goal_above_the_workspace():
    workspace = WorkspaceConfig(z_min=0.0, z_max=2.0)
    plan = ask(planner([2.0, 0.0, 5.0], workspace=workspace), z=1.0)
    assert_nothing(plan, 'goal is outside the workspace')


def test_goal_in_a_known_obstacle():
    plan = ask(planner([5.0, 0.0], obstacles=ObstacleConfig(circles=('5.5 0 0.5',))))
    assert_nothing(plan, 'goal is blocked')
    assert '0.3' in plan.detail


def test_goal_in_what_the_scan_shows():
    plan = ask(planner([2.0, 0.0]), seen_from(circles=[(2.0, 0.0, 0.3)]))
    assert_nothing(plan, 'goal is blocked')


def test_goal_in_an_obstacle_of_the_map():
    of = planner([5.0, 0.0])
    of.set_map(map_with([(4.5, -0.5, 5.5, 0.5)]))
    assert_nothing(ask(of), 'goal is blocked')


def test_goal_that_is_walled_in():
    of = planner([5.0, 3.0])
    of.set_map(map_with([
        (4.0, 2.0, 6.0, 2.2), (4.0, 3.8, 6.0, 4.0), (4.0, 2.0, 4.2, 4.0), (5.8, 2.0, 6.0, 4.0),
    ]))  # fmt: skip
    assert_nothing(ask(of), 'no way to the goal')


def test_robot_that_is_walled_in_by_what_it_sees():
    assert_nothing(ask(planner([9.0, 0.0]), scan_of(1.0)), 'no way to the goal')


def test_way_round_that_no_bounded_curvature_allows():
    circle = ObstacleConfig(circles=('2.5 0 1.0',))
    of = planner([5.0, 0.0], obstacles=circle, limits=LimitConfig(curvature=1e-3))
    plan = ask(of)
    assert_nothing(plan, 'budget spent without a proof')
    assert len(plan.alternatives) > 0
    assert ask(planner([5.0, 0.0], obstacles=circle)).proven


def test_nothing_that_was_not_seen_is_published():
    plan = ask(planner([5.0, 0.0]), scan_of(NAN))
    assert_nothing(plan, 'path leaves what was seen')
    assert length_of(plan.rest) == pytest.approx(5.0, abs=0.01)


# -- scans --------------------------------------------------------------------------------------


def test_empty_scan_is_refused():
    of = planner([5.0, 0.0])
    with pytest.raises(Unusable) as refused:
        ask(of, Scan(np.empty(0, np.float32), 0.0, 0.1, 0.02, FAR))
    assert refused.value.reason == 'empty scan'
    assert ask(of).proven  # and nothing is the worse for it


@pytest.mark.parametrize(
    'pose', [(NAN, 0.0, 0.0, 0.0), (0.0, INF, 0.0, 0.0), (0.0, 0.0, 0.0, NAN)]
)
def test_pose_that_is_none_is_refused(pose):
    with pytest.raises(Unusable) as refused:
        planner([5.0, 0.0]).plan(1, scan_of(INF), Pose(*pose))
    assert refused.value.reason == 'non-finite pose'


def test_height_that_is_none_is_refused_where_it_counts():
    with pytest.raises(Unusable) as refused:
        ask(planner([5.0, 0.0, 1.0]), z=NAN)
    assert refused.value.reason == 'non-finite pose'
    assert ask(planner([5.0, 0.0]), z=NAN).proven


def test_where_beams_meet_nothing_the_way_is_straight():
    plan = ask(planner([5.0, 0.0]))
    assert_sound(plan, [0.0, 0.0])
    np.testing.assert_allclose(plan.path[:, 1], 0.0, atol=1e-6)
    assert plan.length == pytest.approx(5.0, abs=1e-3)
    assert plan.final
    # What is published ends where a disc leaves what beams of 3 m have seen.
    assert plan.horizon == pytest.approx(FAR - RADIUS, abs=0.15)


def test_path_ends_at_the_seen_horizon():
    of = planner([6.0, 0.3])
    plan = ask(of, seen_from(circles=[(2.0, -0.5, 0.4), (1.2, 1.3, 0.3)]))
    assert_sound(plan, [0.0, 0.0])
    rest = plan.rest
    np.testing.assert_array_equal(rest[0], plan.path[-1])
    beyond = rest[1:2]
    assert seen_horizon(
        np.ascontiguousarray(beyond[:, 0]), np.ascontiguousarray(beyond[:, 1]), plan.view,
        RADIUS + PROOF, SLACK,
    ) == 0  # fmt: skip
    np.testing.assert_allclose(rest[-1], [6.0, 0.3], atol=1e-9)
    assert length_of(plan.path) + length_of(rest) == pytest.approx(plan.length, rel=0.01)


def test_goal_within_sight_is_in_the_path():
    plan = ask(planner([2.0, 0.5]))
    assert_sound(plan, [0.0, 0.0])
    np.testing.assert_allclose(plan.path[-1], [2.0, 0.5], atol=1e-9)
    assert plan.horizon == pytest.approx(plan.length)


def test_sensor_beside_the_robots_middle_sees_from_there():
    of = planner([5.0, 0.0])
    of.mounting = Mounting(x=0.2, y=0.0, yaw=math.pi)
    ranges = np.full(BEAMS, INF)
    ranges[:5] = 1.8  # behind the sensor, which looks back: a disc at x = 2
    ranges[-5:] = 1.8
    plan = ask(of, scan_of(ranges))
    assert plan.proven
    gaps = np.linalg.norm(plan.trajectory(np.linspace(0, 1, 500)) - [2.0, 0.0], axis=1)
    assert gaps.min() > RADIUS


# -- paths and obstacles ------------------------------------------------------------------------


def test_wall_is_gone_round_and_not_through():
    plan = ask(planner([5.0, 0.0]), seen_from(circles=WALL))
    assert_sound(plan, [0.0, 0.0])
    line = plan.trajectory(np.linspace(0, 1, 2000))
    gaps = np.linalg.norm(line[:, None] - WALL[:, :2], axis=2).min(1)
    assert gaps.min() > RADIUS
    assert np.abs(line[:, 1]).max() > 1.5


def test_reference_through_a_wall_is_left_and_come_back_to():
    of = planner()
    reference = np.stack([np.linspace(0.0, 12.0, 49), np.zeros(49)], 1)
    of.set_reference(reference)
    plan = ask(of, seen_from(circles=WALL))
    assert_sound(plan, [0.0, 0.0])
    line = plan.trajectory(np.linspace(0, 1, 2000))
    gaps = np.linalg.norm(line[:, None] - WALL[:, :2], axis=2).min(1)
    assert gaps.min() > RADIUS
    far = line[line[:, 0] > 7.0]
    assert np.abs(far[:, 1]).max() < 0.3
    np.testing.assert_allclose(plan.trajectory.goal, [12.0, 0.0])


@pytest.mark.parametrize(('length', 'off'), [(0.3, 0.12), (1.0, 0.4)])
def test_reference_that_bends_is_followed_but_for_what_is_smoothed(length, off):
    x = np.linspace(0.0, 8.0, 81)
    of = planner(polish=PolishConfig(reference_length=length))
    of.set_reference(np.stack([x, np.sin(0.8 * x)], 1))
    plan = ask(of)
    assert_sound(plan, [0.0, 0.0])
    line = plan.trajectory(np.linspace(0, 1, 1000))
    assert np.abs(line[:, 1] - np.sin(0.8 * line[:, 0])).max() < off


def test_reference_of_one_point_is_a_goal():
    of = planner()
    of.set_reference(np.array([[5.0, 0.0]]))
    assert of.reference.is_goal
    np.testing.assert_array_equal(
        ask(of).trajectory.coefficients, ask(planner([5.0, 0.0])).trajectory.coefficients
    )


def test_round_trip_is_driven_though_it_ends_where_it_begins():
    angles = np.linspace(0.0, 2 * math.pi, 100)
    of = planner()
    of.set_reference(np.stack([2 * np.sin(angles), 2 - 2 * np.cos(angles)], 1))
    plan = ask(of)
    assert_sound(plan, [0.0, 0.0])
    assert plan.length > 6.0


@pytest.mark.parametrize('points', [np.empty((0, 2)), np.full((3, 2), NAN), np.zeros((3, 4))])
def test_reference_that_is_none_is_refused_and_the_one_before_kept(points):
    of = planner([5.0, 0.0])
    with pytest.raises(Unusable):
        of.set_reference(points)
    assert ask(of).proven


def test_goal_outside_the_map_is_gone_to():
    of = planner([12.0, 3.0])
    of.set_map(map_with([(2.0, -1.0, 2.5, 2.0)]))
    plan = ask(of)
    assert plan.proven
    line = plan.trajectory(np.linspace(0.0, 1.0, 2000))
    inside = (line[:, 0] > 2.0 - RADIUS) & (line[:, 0] < 2.5 + RADIUS)
    assert line[inside, 1].min() > 2.0
    np.testing.assert_allclose(plan.trajectory.goal, [12.0, 3.0])


def test_map_is_kept_clear_of_though_no_beam_meets_it():
    of = planner([5.0, 0.0])
    of.set_map(map_with([(2.0, -0.8, 3.0, 0.8)]))
    line = ask(of).trajectory(np.linspace(0.0, 1.0, 2000))
    beside = np.maximum(np.abs(line - [2.5, 0.0]) - [0.5, 0.8], 0.0)
    assert np.linalg.norm(beside, axis=1).min() > RADIUS


@pytest.mark.parametrize('beside', [0.5, 0.3, 0.25])
def test_a_wall_beside_the_robot_makes_no_gap_elsewhere_wider(beside):
    """What is kept less clear of, for it is near already, is that wall alone."""
    of = planner([5.0, 0.0], workspace=WorkspaceConfig(y_min=-1.0, y_max=1.0))
    walls = [(2.0, -1.0, 2.1, -0.25), (2.0, 0.25, 2.1, 1.0), (-0.5, -1.0, 0.5, -beside)]
    of.set_map(map_with(walls, 0.05))
    assert_nothing(ask(of), 'no way to the goal')
    of.set_map(map_with(walls[2:], 0.05))
    plan = ask(of)
    line = plan.trajectory(np.linspace(0.0, 1.0, 2000))
    corner = np.hypot(np.maximum(line[:, 0] - 0.5, 0.0), line[:, 1] + beside)
    assert corner[line[:, 1] > -beside].min() > min(beside, RADIUS + PROOF) - 0.03
    assert plan.proven


def test_a_robot_beside_a_wall_at_the_end_of_the_map_finds_away():
    of, map_ = planner([5.0, 0.0]), map_with([(-1.0, -1.0, -0.9, 7.0)])
    of.set_map(map_)
    for x in (-0.58, -1.32):  # on the map, and beyond it
        assert ask(of, x=x).proven
        assert lower_bound(*grid_of(map_, of.config), x, 0.0) == pytest.approx(0.32, abs=0.03)


def test_unknown_cells_block_where_they_are_said_to():
    data = np.zeros((80, 80), dtype=np.int8)
    data[:, 40:] = -1  # from x = 3 on
    free, blocked = (
        planner([5.0, 0.0], map=MapConfig(unknown=unknown)) for unknown in ('free', 'blocked')
    )
    for of in (free, blocked):
        of.set_map(OccupancyMap(data, 0.1, (-1.0, -4.0, 0.0)))
    assert ask(free).proven
    assert_nothing(ask(blocked), 'goal is blocked')
    blocked.set_goal([2.0, -0.5])
    assert_sound(ask(blocked), [0.0, 0.0])


def test_shorter_side_is_chosen():
    for side in (1.0, -1.0):
        circles = [(2.0, -0.5 * side, 0.8)]
        line = ask(planner([5.0, 0.0]), seen_from(circles=circles)).trajectory(
            np.linspace(0.0, 1.0, 500)
        )
        assert (side * line[:, 1]).max() > 0.3
        assert (side * line[:, 1]).min() > -0.05


def test_circles_that_are_none_are_refused():
    for text in ('1 2', '1 2 3 4', 'a b c', '1 2 -1', 'nan 0 1', '1 2 inf'):
        with pytest.raises(ConfigurationError, match='x y radius'):
            planner(obstacles=ObstacleConfig(circles=(text,)))


def test_long_way_is_planned_as_far_as_the_horizon():
    plan = ask(planner([100.0, 0.0]))
    assert_sound(plan, [0.0, 0.0])
    assert plan.length == pytest.approx(SeedConfig().horizon, rel=0.01)
    assert not plan.final


def test_bound_on_curvature_holds_between_samples():
    limits = LimitConfig(curvature=1.0)
    plan = ask(planner([6.0, 0.0], limits=limits), seen_from(circles=[(2.5, 0.2, 0.5)]))
    assert_sound(plan, [0.0, 0.0])
    assert plan.trajectory.curvature(np.linspace(plan.since, 1.0, 5000)).max() <= 1.0


# -- three dimensions ---------------------------------------------------------------------------


def test_path_in_space_takes_what_the_scan_shows_for_columns():
    of = planner()
    x = np.linspace(0.0, 5.0, 21)
    of.set_reference(np.stack([x, np.zeros(21), 1.0 + 0.2 * x], 1))
    plan = ask(of, seen_from(circles=[(2.0, 0.0, 0.3)]), z=1.0)
    assert_sound(plan, [0.0, 0.0, 1.0])
    line = plan.trajectory(np.linspace(0.0, 1.0, 2000))
    assert np.linalg.norm(plan.path[:, :2] - [2.0, 0.0], axis=1).min() > RADIUS + 0.3
    np.testing.assert_allclose(line[-1], [5.0, 0.0, 2.0], atol=1e-9)
    assert np.abs(line[:, 2] - 1.0 - 0.2 * line[:, 0]).max() < 0.3


def test_goal_right_above_is_gone_up_to():
    plan = ask(planner([0.0, 0.0, 2.0]), seen_from(circles=[(1.0, 0.0, 0.65)]), z=0.5)
    assert_sound(plan, [0.0, 0.0, 0.5])
    np.testing.assert_allclose(plan.path[-1], [0.0, 0.0, 2.0], atol=1e-9)


# -- probabilities, and what is uncertain -------------------------------------------------------


def test_uncertain_pose_keeps_further_away():
    def least_gap(covariance):
        of = planner([6.0, 0.0])
        scan = seen_from(circles=[(2.5, 0.1, 0.4)])
        plan = of.plan(1, scan, Pose(0.0, 0.0, 0.0, 0.0), covariance)
        line = plan.trajectory(np.linspace(0.0, 1.0, 2000))
        return np.linalg.norm(line - [2.5, 0.1], axis=1).min() - 0.4 - RADIUS

    sure, unsure = least_gap(None), least_gap(np.diag([0.01, 0.01, 0.0]))
    assert 0.0 < sure < 0.3
    assert unsure > sure + 0.1


def test_risk_is_small_with_room_and_large_without():
    def risk(margin, covariance=None):
        robot = RobotConfig(margin=margin, proof_margin=margin)
        of = planner([6.0, 0.0], robot=robot)
        scan = seen_from(circles=[(1.5, 0.1, 0.4)])
        plan = of.plan(1, scan, Pose(0.0, 0.0, 0.0, 0.0), covariance)
        assert plan.proven
        return of.risk(plan)

    none, little = risk(0.2), risk(0.0)
    assert none.per_path == pytest.approx(0.01, abs=1e-3)  # 299 draws without a collision
    assert little.per_path > 0.3
    assert little.by_time < little.per_path


def test_without_a_path_or_draws_there_is_no_risk():
    of = planner([5.0, 0.0])
    assert of.risk(ask(of, scan_of(0.1))) is None
    of = planner([5.0, 0.0], certificate=CertificateConfig(draws=0))
    assert of.risk(ask(of)) is None


def test_what_was_not_seen_is_not_planned_through_where_that_is_asked():
    blocked = planner([8.0, 0.0], scan=SensingConfig(unseen='blocked'))
    plan = ask(blocked)
    assert_sound(plan, [0.0, 0.0])
    assert plan.length < FAR
    assert not plan.final
    assert len(plan.rest) <= 2
    assert_nothing(ask(planner([8.0, 0.0], scan=SensingConfig(unseen='blocked')), scan_of(NAN)),
                   'path leaves what was seen')  # fmt: skip


def test_warming_up_leaves_the_planner_as_it_is():
    of = planner([5.0, 0.0])
    first = ask(of)
    of.warm_up()
    assert ask(of).trajectory is first.trajectory


# -- from scan to scan --------------------------------------------------------------------------


def test_path_that_is_still_proven_is_kept_as_the_same_function():
    of = planner([8.0, 0.0])
    first = ask(of, seen_from(circles=WALL))
    assert not first.kept
    for number in range(1, 8):
        # The robot is where the path leads, give or take what it may be off.
        t = first.since + 0.02 * number
        x, y = first.trajectory(t)[0] + [0.0, 0.01]
        plan = ask(of, seen_from(x, y, circles=WALL), x=x, y=y)
        assert plan.kept
        assert plan.trajectory is first.trajectory
        assert plan.since == pytest.approx(t, abs=0.01)
        assert_sound(plan, [x, y])


def test_path_is_planned_anew_where_something_new_is_in_its_way():
    of = planner([8.0, 0.0])
    first = ask(of)
    plan = ask(of, seen_from(circles=[(1.5, 0.0, 0.3)]))
    assert not plan.kept
    assert plan.trajectory is not first.trajectory
    assert_sound(plan, [0.0, 0.0])


def test_path_is_planned_anew_where_the_robot_is_not_on_it():
    of = planner([8.0, 0.0])
    ask(of)
    plan = ask(of, x=1.0, y=0.5)
    assert not plan.kept
    np.testing.assert_allclose(plan.trajectory.start, [1.0, 0.5])
    assert_sound(plan, [1.0, 0.5])


def test_new_goal_is_gone_to_from_where_the_robot_is():
    of = planner([8.0, 0.0])
    ask(of)
    of.set_goal([0.0, 8.0])
    plan = ask(of, x=1.0)
    assert not plan.kept
    np.testing.assert_allclose(plan.trajectory.goal, [0.0, 8.0])
    np.testing.assert_allclose(plan.trajectory.start, [1.0, 0.0])


def test_reset_forgets_what_was_seen_and_the_path():
    of = planner([5.0, 0.0])
    for _ in range(3):
        ask(of, seen_from(circles=WALL))
    of.reset()
    plan = ask(of)
    assert not plan.kept
    np.testing.assert_allclose(plan.trajectory(0.5)[0], [2.5, 0.0], atol=1e-3)


def test_what_was_seen_before_is_kept_clear_of():
    of = planner([5.0, 0.0])
    for _ in range(3):
        ask(of, seen_from(circles=WALL))
    plan = ask(of, scan_of(NAN))  # says nothing
    line = plan.trajectory(np.linspace(0.0, 1.0, 2000))
    gaps = np.linalg.norm(line[:, None] - WALL[:, :2], axis=2).min(1)
    assert gaps.min() > RADIUS


def test_goal_that_becomes_free_is_gone_to():
    of = planner([2.0, 0.0])
    assert_nothing(ask(of, seen_from(circles=[(2.0, 0.0, 0.3)])), 'goal is blocked')
    plans = [ask(of, scan_of(INF)) for _ in range(3)]
    assert_sound(plans[-1], [0.0, 0.0])


def test_same_scans_give_the_same_plans():
    def path():
        of = planner([8.0, 0.0])
        return [ask(of, seen_from(circles=WALL, lidar=Lidar(), seed=i)).path for i in range(3)]

    for one, other in zip(path(), path()):
        np.testing.assert_array_equal(one, other)


def test_plan_says_how_it_was_learned():
    plan = ask(planner([5.0, 0.0]), seen_from(circles=WALL))
    assert plan.order == plan.trajectory.model_order > 0
    assert plan.dual_variable >= 0.0
    assert plan.scale > 0.0
    assert plan.steps >= 0
    assert len(plan.alternatives) >= 1
    for way in plan.alternatives:
        np.testing.assert_allclose(way[0], [0.0, 0.0], atol=1e-9)
    assert plan.stamp == 1


# -- all that may come --------------------------------------------------------------------------


def made_ranges(kind, rng, robot, circles):
    if kind == 'discs':
        seed = int(rng.integers(1000))
        return seen_from(*robot, circles=circles, lidar=Lidar(), seed=seed).ranges
    if kind == 'noise':
        return rng.uniform(0.0, 4.0, BEAMS)
    if kind == 'mixed':
        return rng.choice([NAN, INF, -INF, -1.0, 0.0, 1e30, 2.0, 1.0, 0.5], BEAMS)
    return np.full(BEAMS, INF)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6), goal=st.tuples(st.floats(-20, 20), st.floats(-20, 20)),
    kind=st.sampled_from(['discs', 'noise', 'mixed', 'nothing']),
    steps=st.integers(1, 4), dimensions=st.sampled_from([2, 3]),
)  # fmt: skip
def test_any_scan_gives_a_sound_plan_or_a_reason(seed, goal, kind, steps, dimensions):
    rng = np.random.default_rng(seed)
    circles = rng.uniform([-4, -4, 0.1], [4, 4, 0.8], (rng.integers(0, 7), 3))
    of = planner((*goal, 1.0)[:dimensions])
    robot = np.zeros(2)
    for number in range(steps):
        ranges = made_ranges(kind, rng, robot, circles)
        plan = ask(of, scan_of(ranges), *robot, 0.5, stamp=number)
        assert plan.reason in ('', *REASONS)
        if plan.proven:
            assert_sound(plan, [*robot, 0.5][:dimensions])
            robot = plan.path[min(2, len(plan.path) - 1), :2].copy()
        else:
            assert_nothing(plan, plan.reason)


# -- drives -------------------------------------------------------------------------------------


class Follower(Planner):
    """Is driven along a reference, whatever goal it is given."""

    points = np.empty((0, 2))

    def set_goal(self, goal):
        self.set_reference(self.points)


@functools.cache
def driven(seed):
    return drive(planner(workspace=BOX), random_world(seed), seed=seed)


@pytest.mark.parametrize('seed', range(4))
def test_robot_arrives_and_touches_nothing(seed):
    episode = driven(seed)
    assert episode.reached
    assert not episode.collided
    assert episode.unproven == 0
    assert episode.outside == 0.0
    assert episode.length < 18.0


def test_proven_paths_are_free_in_truth():
    proven = np.concatenate([driven(seed).proven for seed in range(4)])
    assert (proven > 0.0).mean() > 0.99


def test_reference_through_a_wall_is_driven_round_it():
    circles = WALL + np.array([1.0, 0.0, 0.0])
    world = World((0.0, 0.0), (7.0, 0.0), circles=circles)
    reference = np.stack([np.linspace(0.0, 7.0, 29), np.zeros(29)], 1)
    of = Follower(PlannerConfig())
    of.points = reference
    episode = drive(of, world)
    assert episode.reached
    assert not episode.collided
    assert episode.unproven == 0


def test_robot_stands_where_the_goal_is_out_of_reach():
    ring = np.linspace(0.0, 2 * math.pi, 40, endpoint=False)
    circles = np.column_stack([4 + np.cos(ring), np.sin(ring), np.full(40, 0.1)])
    world = World((0.0, 0.0), (4.0, 0.0), circles=circles)
    episode = drive(planner(), world, max_scans=60, patience=10)
    assert not episode.reached
    assert not episode.collided
    assert episode.unproven == 0
    assert set(episode.reasons[-10:]) <= {'no way to the goal'}
