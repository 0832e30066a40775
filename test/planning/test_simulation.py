# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated robot: what it senses, how it moves, and that the truth is told of it."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.planning.lidar import Lidar
from kernel_constrained.planning.robot import farthest_from_path, Robot, timed
from kernel_constrained.planning.simulation import drive, OFF, Simulation
from kernel_constrained.planning.worlds import Mover, World

EMPTY = np.empty((0, 2))
OPEN = World((0, 0), (4, 0))
EXACT = Lidar(deviation=0.0)
ORIGIN, CENTRED = Pose(0.0, 0.0, 0.0, 0.0), Mounting()


class Way:
    """A planner of one way: from where it is believed to be on, to its end."""

    def __init__(self, way, refuse=lambda call: '', offset=(0.0, 0.0)):
        self.way, self.refuse, self.offset = np.asarray(way, dtype=float), refuse, offset
        self.calls, self.covariance, self.stamps = 0, None, []

    def reset(self):
        self.calls = 0

    def set_goal(self, goal):
        self.goal = goal

    def plan(self, stamp, scan, pose, covariance):
        self.calls += 1
        self.covariance = covariance
        self.stamps.append(stamp)
        here = np.array([pose.x, pose.y])
        rest = self.way[self.way[:, 0] > here[0] + 1e-9]
        path = np.concatenate((here[None], rest)) + self.offset
        reason = self.refuse(self.calls)
        half = max(len(path) // 2, 2)
        return SimpleNamespace(
            reason=reason, path=EMPTY if reason else path[:half], rest=path[half - 1 :]
        )


def straight(length=4.0, count=41):
    return np.column_stack((np.linspace(0.0, length, count), np.zeros(count)))


def scan_of(world, pose=ORIGIN, lidar=EXACT, seed=0, time=0.0):
    return lidar.scan(world, time, pose, np.random.default_rng(seed))


def end_points(scan, pose, mounting=CENTRED):
    """End points of the beams that met something, by the definition of a mounting."""
    hit = np.isfinite(scan.ranges)
    bearings = scan.angle_min + np.arange(len(scan.ranges)) * scan.angle_increment
    bearings = pose.yaw + mounting.yaw + (-bearings if mounting.upside_down else bearings)
    x = pose.x + math.cos(pose.yaw) * mounting.x - math.sin(pose.yaw) * mounting.y
    y = pose.y + math.sin(pose.yaw) * mounting.x + math.cos(pose.yaw) * mounting.y
    ranges = scan.ranges[hit].astype(float)
    return np.column_stack(
        (x + ranges * np.cos(bearings[hit]), y + ranges * np.sin(bearings[hit]))
    )


# -- the sensor ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'mounting', [Mounting(), Mounting(0.2, -0.1, 2.0), Mounting(0.1, 0.3, -1.0, True)], ids=str
)
@pytest.mark.parametrize('field_of_view', [2 * math.pi, 4.0])
def test_end_points_lie_on_what_is_there(mounting, field_of_view):
    world = World((0, 0), (1, 1), circles=[(1.5, 0.5, 0.4), (-1, 1, 0.3), (0, -1.5, 0.5)])
    pose = Pose(0.1, 0.2, 0.0, 0.7)
    lidar = Lidar(deviation=0.0, mounting=mounting, field_of_view=field_of_view)
    scan = scan_of(world, pose, lidar)
    scan.check()
    points = end_points(scan, pose, mounting)
    assert len(points) > 40
    assert np.abs(world.distance(points)).max() < 1e-6


def test_beams_span_the_field_of_view_and_a_full_turn_sees_no_bearing_twice():
    narrow = scan_of(OPEN, lidar=Lidar(beams=181, field_of_view=math.pi))
    assert narrow.angle_min + 180 * narrow.angle_increment == pytest.approx(math.pi / 2)
    turn = scan_of(OPEN)
    assert turn.angle_min + 360 * turn.angle_increment == pytest.approx(math.pi)


def test_no_return_is_infinite_and_too_close_minus_infinite():
    """REP-117."""
    assert np.isposinf(scan_of(OPEN).ranges).all()
    near = World((0, 0), (1, 1), circles=[(0.5, 0, 0.45)])
    scan = scan_of(near, lidar=Lidar(range_min=0.1, deviation=0.0))
    assert np.isneginf(scan.ranges[180])
    assert np.isposinf(scan.ranges[0])


def test_noise_has_its_deviation_and_takes_no_return_out_of_the_limits():
    ring = World((0, 0), (1, 1), circles=[(2, 0, 1), (-3.95, 0, 1)])
    ranges = np.array([scan_of(ring, lidar=Lidar(), seed=i).ranges[[180, 0]] for i in range(800)])
    assert ranges[:, 0].mean() == pytest.approx(1.0, abs=5e-3)
    assert ranges[:, 0].std() == pytest.approx(0.03, rel=0.1)
    assert (ranges[:, 1] <= scan_of(ring).range_max).all()


def test_a_law_of_noise_can_be_chosen():
    world = World((0, 0), (1, 1), circles=[(2, 0, 1)])
    lidar = Lidar(deviation=0.1, law=lambda rng, shape: np.full(shape, 2.0))
    assert scan_of(world, lidar=lidar).ranges[180] == pytest.approx(1.2)


def test_dropouts_are_nan_in_their_share():
    ranges = np.array([scan_of(OPEN, lidar=Lidar(dropouts=0.1), seed=i).ranges for i in range(50)])
    assert np.isnan(ranges).mean() == pytest.approx(0.1, abs=0.01)
    assert np.isposinf(ranges[~np.isnan(ranges)]).all()


def test_movers_are_seen_where_they_are():
    world = World((0, 0), (1, 1), movers=(Mover((2, 0), (2, 4), 1.0, 0.5),))
    assert scan_of(world).ranges[180] == pytest.approx(1.5)
    assert np.isinf(scan_of(world, time=2.0).ranges[180])


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'beams': 1}, 'beams must be at least 2'),
        ({'range_max': 0.01}, 'range_max must be finite and exceed range_min'),
        ({'range_max': math.inf}, 'range_max must be finite'),
        ({'deviation': -1.0}, 'deviation must not be negative'),
        ({'dropouts': 1.5}, 'dropouts be a share'),
        ({'field_of_view': 7.0}, 'field_of_view must be at most a full turn'),
    ],
)
def test_a_sensor_that_there_is_none_of_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Lidar(**given)


@pytest.mark.parametrize(
    'given',
    [{'speed': 0.0}, {'speed': math.inf}, {'turn_rate': 0.0}, {'reach': -1.0}],
    ids=str,
)
def test_a_robot_that_cannot_move_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        Robot(**given)


# -- the motion ---------------------------------------------------------------------------------


def test_it_goes_along_its_path_at_its_speed_and_stands_at_the_end():
    simulation = Simulation(OPEN, robot=Robot(speed=0.5))
    assert simulation.follow(straight(1.0)) == 0.0
    simulation.move(1.2)
    assert simulation.position == pytest.approx([0.6, 0.0])
    simulation.move(5.0)
    assert simulation.position == pytest.approx([1.0, 0.0])
    assert (simulation.time, simulation.travelled) == pytest.approx((6.2, 1.0))


def test_it_stands_without_a_path():
    simulation = Simulation(OPEN)
    simulation.follow(straight())
    simulation.move(0.1)
    simulation.follow(EMPTY)
    before = simulation.position
    assert (simulation.move(1.0) == before).all()


def test_it_never_leaves_its_path_however_slowly_it_turns():
    angle = np.linspace(0.0, 1.5 * math.pi, 200)
    bend = np.column_stack((np.sin(angle), 1.0 - np.cos(angle)))
    corner = np.array([(-1.0, 1.0), (-2.0, 1.0), (-2.0, 0.0)])
    path = np.concatenate((bend, corner))
    for turn_rate in (math.inf, 1.0, 0.3):
        simulation = Simulation(OPEN, robot=Robot(turn_rate=turn_rate))
        simulation.follow(path)
        places = np.concatenate([simulation.move(0.1) for _ in range(400)])
        assert farthest_from_path(places, path) < 1e-9
        assert simulation.position == pytest.approx([-2.0, 0.0])


def test_headings_turn_no_faster_than_they_may_and_speed_is_kept():
    robot = Robot(speed=1.0, turn_rate=2.0)
    angle = np.linspace(0.0, math.pi, 100)
    path = np.column_stack((0.2 * np.sin(angle), 0.2 * (1 - np.cos(angle))))
    motion = timed(np.concatenate((path, [(-1.0, 0.4), (-1.0, 2.0)])), -1.0, robot)
    driven = np.hypot(np.diff(motion.x), np.diff(motion.y))
    taken = np.diff(motion.times)
    assert (np.abs(np.diff(motion.headings)) <= 2.0 * taken + 1e-9).all()
    assert (driven <= taken + 1e-9).all()
    assert motion.times[-1] == pytest.approx(
        0.5 + 0.5 * math.pi + 1.0 + math.pi / 4 + 1.6, abs=0.05
    )


def test_it_comes_back_to_a_path_beside_it_and_refuses_one_further_away():
    path = straight() + np.array([0.0, 0.08])
    simulation = Simulation(OPEN)
    assert simulation.follow(path) == pytest.approx(0.08)
    places = simulation.move(1.0)
    assert np.linalg.norm(places[0]) < 0.01, 'no jump'
    assert farthest_from_path(places, path) <= 0.08
    assert farthest_from_path(places[places[:, 0] > 0.31], path) < 1e-9
    simulation = Simulation(OPEN)
    assert simulation.follow(path + np.array([0.0, 0.1])) == pytest.approx(0.18)
    assert (simulation.move(1.0) == 0.0).all()


def test_it_takes_a_path_up_where_it_is_on_it():
    simulation = Simulation(OPEN)
    simulation.follow(straight())
    simulation.move(0.35)
    simulation.follow(straight())
    places = simulation.move(0.2)
    assert places[0, 0] == pytest.approx(0.355)
    assert simulation.position == pytest.approx([0.55, 0.0])


def test_a_path_that_comes_by_once_more_is_taken_up_at_its_beginning():
    loop = np.array([(0.0, 0.05), (2.0, 0.05), (2.0, 2.0), (0.0, 2.0), (0.0, -1.0)])
    simulation = Simulation(OPEN)
    assert simulation.follow(loop) == pytest.approx(0.05), 'its end passes at the very place'
    simulation.move(1.0)
    assert simulation.position == pytest.approx([1.0, 0.05], abs=0.01)


def test_a_path_in_space_is_followed_in_the_plane():
    simulation = Simulation(OPEN)
    simulation.follow(np.column_stack((straight(), np.linspace(0, 5, 41))))
    simulation.move(1.0)
    assert simulation.position == pytest.approx([1.0, 0.0])


def test_a_path_of_a_wrong_pose_is_followed_as_it_lies_before_the_robot():
    """What was planned from what is seen is as wrong as the pose, and the same before it."""
    simulation = Simulation(OPEN, robot=Robot(position_deviation=0.5, yaw_deviation=0.3), seed=1)
    _, believed = simulation.sense()
    assert math.hypot(believed.x, believed.y) > 0.1
    heading = np.array([math.cos(believed.yaw), math.sin(believed.yaw)])
    path = np.array([believed.x, believed.y]) + np.linspace(0.0, 1.0, 20)[:, None] * heading
    assert simulation.follow(path) < 1e-9
    simulation.move(1.0)
    assert simulation.position == pytest.approx([1.0, 0.0])


# -- the drive and its truth --------------------------------------------------------------------


def test_it_drives_to_the_goal_and_says_so():
    planner = Way(straight())
    lidar = Lidar(mounting=Mounting(0.1))
    episode = drive(planner, OPEN, lidar, period=0.2)
    assert episode.reached
    assert not episode.collided
    assert episode.clearance == math.inf
    assert math.isnan(episode.collided_at)
    assert episode.length == pytest.approx(4.0, abs=0.11)
    assert episode.duration == pytest.approx(4.0, abs=0.21)
    assert (episode.unproven, episode.stood, episode.outside) == (0, 0, 0.0)
    assert len(episode.cpu) == planner.calls == len(episode.reasons)
    assert planner.goal.tolist() == [4.0, 0.0]
    assert planner.mounting == lidar.mounting
    assert planner.covariance is None
    assert np.diff(planner.stamps).tolist() == [200_000_000] * (planner.calls - 1)


def test_clearance_is_exact_on_the_whole_way():
    """A disc beside the way, and a corner of a wall between two scans."""
    world = World((0, 0), (4, 0), circles=[(2.03, 0.75, 0.4)])
    episode = drive(Way(straight()), world, period=0.5)
    assert episode.clearance == pytest.approx(0.05, abs=1.2e-5)
    assert (np.diff(episode.positions[:, 0]) <= 5e-3 + 1e-9).all()


def test_a_collision_between_two_scans_is_seen_and_its_share_of_time():
    world = World((0, 0), (4, 0), circles=[(2.0, 0.5, 0.25)])
    episode = drive(Way(straight()), world, period=0.5)
    inside = 2 * math.sqrt(0.55**2 - 0.5**2)
    assert episode.collided
    assert episode.clearance == pytest.approx(-0.05, abs=1.2e-5)
    assert episode.collided_at == pytest.approx(2.0 - inside / 2, abs=6e-3)
    assert episode.exposure == pytest.approx(inside / episode.duration, abs=2e-3)
    assert episode.proven.min() == pytest.approx(-0.05, abs=5e-5), 'the claim was false'
    assert episode.deeper.max() == pytest.approx(0.05, abs=5e-5)


def test_a_motion_is_judged_by_the_world_of_its_scan():
    """What runs into the robot after the scan was not there in it, but is in the next one."""
    mover = Mover((3.0, 0.0), (-30.0, 0.0), 2.0, 0.4)
    world = World((0.0, 0.0), (4.0, 0.0), movers=(mover,))
    path = straight(0.6, 7)
    episode = drive(
        Way(path, lambda call: '' if call < 2 else 'blocked'), world, period=0.8, max_scans=2
    )
    assert episode.collided
    assert (episode.deeper == 0.0).all()


def test_the_world_may_change_between_scans():
    def meanwhile(simulation):
        if simulation.time > 1.1:
            simulation.world = World((0, 0), (4, 0), circles=[(3.0, 0.6, 0.2)])

    episode = drive(Way(straight()), OPEN, period=0.2, meanwhile=meanwhile)
    assert episode.clearance == pytest.approx(0.1, abs=1e-4)


def test_a_mover_hits_even_a_robot_that_stands():
    world = World((0, 0), (4, 0), movers=(Mover((0, 2), (0, -2), 1.0, 0.2),))
    episode = drive(Way(straight(), lambda call: 'blocked'), world, patience=20, period=0.2)
    assert episode.collided_at == pytest.approx(1.5, abs=6e-3)
    assert episode.stood == 20
    assert episode.length == 0.0


def test_it_stands_while_no_path_is_proven():
    planner = Way(straight(), lambda call: 'blocked' if 5 <= call < 9 else '')
    episode = drive(planner, OPEN, period=0.2)
    assert episode.reached
    assert episode.reasons[3:9] == ('', 'blocked', 'blocked', 'blocked', 'blocked', '')
    during = (episode.times > 0.8 + 1e-9) & (episode.times <= 1.6 + 1e-9)
    assert np.ptp(episode.positions[during], axis=0).max() == 0.0
    assert episode.unproven == 0


def test_it_gives_up_after_its_patience_and_after_its_scans():
    never = Way(straight(), lambda call: 'blocked')
    assert len(drive(never, OPEN, patience=7).cpu) == 7
    episode = drive(Way(straight()), OPEN, max_scans=5, period=0.2)
    assert (len(episode.cpu), episode.reached) == (5, False)
    assert episode.positions[-1] == pytest.approx([1.0, 0.0])


def test_a_path_away_from_the_robot_is_not_taken_up():
    episode = drive(Way(straight(), offset=(0.0, 0.3)), OPEN, patience=5)
    assert episode.reasons == (OFF,) * 5
    assert (episode.length, episode.unproven) == (0.0, 0)


def test_motion_without_a_path_is_counted_as_unproven(monkeypatch):
    """The check does not rely on what it checks: a robot that coasts on is found out."""
    follow = Simulation.follow
    monkeypatch.setattr(
        Simulation, 'follow', lambda self, path: follow(self, path) if len(path) else 0.0
    )
    episode = drive(Way(straight(), lambda call: 'blocked' if call > 3 else ''), OPEN, patience=5)
    assert episode.unproven == 5


def test_churn_is_the_distance_of_the_next_metres():
    steady = drive(Way(straight()), OPEN, period=0.2)
    assert steady.churn.max() < 1e-9
    wobbling = Way(straight())
    plan = wobbling.plan

    def bowed(*arguments):
        made = plan(*arguments)
        whole = np.concatenate((made.path, made.rest[1:]))
        share = np.linspace(0.0, 1.0, len(whole))
        whole[:, 1] += 0.2 * (wobbling.calls % 2) * np.sin(math.pi * share)
        made.path, made.rest = whole, EMPTY
        return made

    wobbling.plan = bowed
    churn = drive(wobbling, OPEN, period=0.2, max_scans=6).churn
    assert 0.1 < churn.min() <= churn.max() < 0.25


def test_pose_errors_reach_the_planner_and_the_same_seed_gives_the_same_drive():
    robot = Robot(position_deviation=0.02, yaw_deviation=0.01)
    world = World((0, 0), (4, 0), circles=[(2.0, 1.5, 0.4)])
    planner = Way(straight())
    first, again, other = (drive(planner, world, robot=robot, seed=s) for s in (3, 3, 4))
    assert planner.covariance == pytest.approx(np.diag([4e-4, 4e-4, 1e-4]))
    assert np.array_equal(first.positions, again.positions)
    assert not np.array_equal(first.positions[:50], other.positions[:50])
    assert np.abs(np.diff(first.positions, axis=0)).max() < 0.02, 'no jumps'


def test_leaving_the_bounds_is_told():
    world = World((0, 0), (4, 0), bounds=((-1.0, -0.2), (5.0, 1.0)))
    assert drive(Way(straight()), world).outside == pytest.approx(0.1)
