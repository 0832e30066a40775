# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The simulator as a process: a robot over DDS, that moves along paths and only along them."""

import math

import numpy as np
import PIL.Image
import pytest
from feeding import set_parameters
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from nav_msgs.msg import OccupancyGrid, Path
from probing import CONFIG, ended_by, RELIABLE
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import LaserScan
from std_msgs.msg import Float64, Header

from kernel_constrained.planning.simulator import SimulatorConfig

SECOND = 1_000_000_000
LATCHED = ANSWERS = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)

# Moving discs, which a robot that stands at (0.5, 0.5) never meets.
EMPTY = {'world.source': 'crossing', 'world.number': 0}
LOCKSTEP = {'rate': 0.0, 'lockstep': True}
FAST = {'rate': 20.0, 'wait_timeout': 60.0}


def nanoseconds(message):
    stamp = message.clock if isinstance(message, Clock) else message.header.stamp
    return stamp.sec * SECOND + stamp.nanosec


class Driver:
    """A planner that knows the way: answers each scan with a path from the pose to the goal."""

    def __init__(self, probe, stops_at=math.inf, frame='map', pose=PoseStamped, make=None):
        self.probe, self.stops_at, self.frame = probe, stops_at, frame
        self.make = make or self.straight
        self.answered = ('pose', 'scan')
        self.sent, self.seen = 0, None
        self.scans, self.poses = [], []
        self.goals = probe.collect(PoseStamped, 'goal_pose')
        self.times = probe.collect(Clock, '/clock')
        self.truth = probe.collect(PoseStamped, 'simulate/true_pose')
        self.clearances = probe.collect(Float64, 'simulate/clearance')
        self.plans = probe.node.create_publisher(Path, 'plan', 10)
        self.answers = probe.node.create_publisher(Header, 'planner_node/processed', ANSWERS)
        probe.node.create_subscription(pose, 'pose', self.on_pose, RELIABLE)
        probe.node.create_subscription(LaserScan, 'scan', self.on_scan, RELIABLE)

    def on_pose(self, pose):
        self.poses.append(pose)
        for scan in self.scans[-1:]:
            self.answer(scan)

    def on_scan(self, scan):
        self.scans.append(scan)
        self.answer(scan)

    def answer(self, scan):
        """Answer a scan once its pose is there; the one of both that comes first waits."""
        pose = next((p for p in self.poses if p.header.stamp == scan.header.stamp), None)
        if pose is None or self.seen == scan.header.stamp:
            return
        self.seen = scan.header.stamp
        if self.goals and self.sent < self.stops_at:
            path = Path()
            path.header.stamp, path.header.frame_id = scan.header.stamp, self.frame
            for x, y in self.make(pose.pose.position):
                place = PoseStamped()
                place.pose.position.x, place.pose.position.y = float(x), float(y)
                path.poses.append(place)
            self.plans.publish(path)
            self.sent += 1  # a scan that comes before the goal gets none
            self.planned = nanoseconds(scan)
        for kind in self.answered:
            self.answers.publish(Header(stamp=scan.header.stamp, frame_id=kind))

    def straight(self, here):
        goal = self.goals[-1].pose.position
        return np.linspace((here.x, here.y), (goal.x, goal.y), 50)

    def wait_for_end(self, process, seconds=60):
        self.probe.wait(lambda: process.process.poll() is not None, seconds, 'the end')
        self.probe.spin(0.3)
        return process.process.returncode

    @property
    def places(self):
        return np.array([(p.pose.position.x, p.pose.position.y) for p in self.truth])


def test_it_looks_like_a_robot_and_drives_to_its_goal(probe, start):
    driver = Driver(probe)
    simulator = start('simulate', CONFIG / 'simulate.yaml', **{**FAST, **EMPTY, 'robot.speed': 2})
    code = driver.wait_for_end(simulator)
    assert 'goal reached after' in simulator.text
    assert code == ('COLLIDED' in simulator.text)
    assert (driver.goals[0].pose.position.x, driver.goals[0].pose.position.y) == (9.5, 9.5)
    assert np.linalg.norm(driver.places[-1] - 9.5) <= 0.1
    scan, pose = driver.scans[0], driver.poses[0]
    assert scan.header.stamp == pose.header.stamp
    assert (scan.header.frame_id, pose.header.frame_id) == ('laser', 'map')
    assert len(scan.ranges) == 360
    assert scan.angle_max == pytest.approx(scan.angle_min + 359 * scan.angle_increment)
    assert (pose.pose.position.x, pose.pose.position.y) == (0.5, 0.5)
    between = np.diff([nanoseconds(scan) for scan in driver.scans])
    assert (between == SECOND // 10).all()
    clock = [nanoseconds(time) for time in driver.times]
    assert (np.diff(clock) >= 0).all()
    assert clock[0] <= nanoseconds(scan)
    assert all(any(math.isnan(r) for r in scan.ranges) for scan in driver.scans), 'dropouts'


def test_without_a_path_it_does_not_move(probe, start):
    driver = Driver(probe, stops_at=0)
    simulator = start('simulate', time_limit=3.0, **FAST, **EMPTY)
    assert driver.wait_for_end(simulator) == 1
    assert 'goal not reached after 3.0 s and 0.00 m' in simulator.text
    assert len(driver.scans) >= 29
    assert (driver.places == driver.places[0]).all()


def test_it_stands_once_paths_stop_coming(probe, start):
    """The last path counts for half a second."""
    driver = Driver(probe, stops_at=10)
    simulator = start('simulate', time_limit=6.0, rate=4.0, wait_timeout=60.0, **EMPTY)
    assert driver.wait_for_end(simulator) == 1
    after = [nanoseconds(pose) > driver.planned + 0.55 * SECOND for pose in driver.truth]
    assert sum(after) > 50
    assert (driver.places[after] == driver.places[-1]).all()
    assert np.linalg.norm(driver.places[-1] - 0.5) > 0.05


def test_in_lockstep_it_stands_at_once_when_a_scan_has_no_path(probe, start):
    driver = Driver(probe, stops_at=10)
    simulator = start('simulate', time_limit=3.0, **LOCKSTEP, **EMPTY)
    assert driver.wait_for_end(simulator) == 1
    assert np.linalg.norm(driver.places[-1] - 0.5) == pytest.approx(0.5, abs=1e-9)


def test_in_lockstep_it_waits_until_scan_and_pose_are_dealt_with(probe, start):
    """A planner that has its pose only now may still plan from the scan."""
    driver = Driver(probe)
    driver.answered = ('pose', 'goal_pose', 'pose')
    simulator = start('simulate', rate=0.0, lockstep=True, answer_timeout=1.5, **EMPTY)
    assert driver.wait_for_end(simulator) == 1
    assert 'no answer on planner_node/processed within 1.5 s to scan 1' in simulator.text
    assert len(driver.scans) == 1


def test_in_lockstep_every_run_is_the_same(probe, start):
    ways = []
    for rate in (0.0, 10.0):
        driver = Driver(probe)
        simulator = start(
            'simulate', lockstep=True, rate=rate, wait_timeout=60, seed=3, **EMPTY,
            **{'robot.position_deviation': 0.01, 'robot.speed': 3},
        )  # fmt: skip
        driver.wait_for_end(simulator)
        assert 'goal reached' in simulator.text
        ways.append((driver.places, [scan.ranges for scan in driver.scans]))
        for subscription in list(probe.node.subscriptions):
            probe.node.destroy_subscription(subscription)
    assert np.array_equal(ways[0][0], ways[1][0])
    assert np.array_equal(ways[0][1], ways[1][1])


def test_a_path_elsewhere_is_not_followed(probe, start):
    away = Driver(probe, make=lambda here: [(here.x, here.y + 1.0), (9.5, 9.5)])
    simulator = start('simulate', time_limit=1.0, **LOCKSTEP, **EMPTY)
    away.wait_for_end(simulator)
    assert 'a path that begins 1.00 m away is not followed, the robot stands' in simulator.text
    assert '1.0 s and 0.00 m' in simulator.text


def test_a_path_in_another_frame_is_not_followed(probe, start):
    driver = Driver(probe, frame='odom')
    simulator = start('simulate', time_limit=1.0, **LOCKSTEP, **EMPTY)
    driver.wait_for_end(simulator)
    assert "a path in frame 'odom' is not followed" in simulator.text
    assert '1.0 s and 0.00 m' in simulator.text


def test_a_path_through_an_obstacle_is_said_to_have_collided(probe, start):
    """The straight line of random worlds is blocked."""
    driver = Driver(probe)
    simulator = start('simulate', **FAST, **{'robot.speed': 2})
    assert driver.wait_for_end(simulator) == 1
    assert 'COLLIDED' in simulator.text
    assert min(message.data for message in driver.clearances) < 0.0


def test_pose_errors_come_with_their_covariance(probe, start):
    driver = Driver(probe, stops_at=0, pose=PoseWithCovarianceStamped)
    simulator = start(
        'simulate', time_limit=2.0, pose_type='PoseWithCovarianceStamped', **FAST, **EMPTY,
        **{'robot.position_deviation': 0.1, 'robot.yaw_deviation': 0.2},
    )  # fmt: skip
    driver.wait_for_end(simulator)
    covariance = np.array([pose.pose.covariance for pose in driver.poses])
    assert np.allclose(covariance[:, [0, 7, 35]], [0.01, 0.01, 0.04])
    x = [pose.pose.pose.position.x for pose in driver.poses]
    assert 0.02 < np.std(x) < 0.3


def test_a_signal_ends_it_well(probe, start):
    driver = Driver(probe, stops_at=0)
    simulator = start('simulate', **FAST, **EMPTY)
    with ended_by(simulator):
        probe.wait(lambda: len(driver.scans) > 5, what='scans')


def test_rate_and_mounting_change_while_it_runs_and_the_rest_does_not(probe, start):
    driver = Driver(probe, stops_at=0)
    with ended_by(start('simulate', wait_timeout=60.0, **EMPTY, **{'lidar.deviation': 0.0})):
        probe.wait(lambda: driver.scans, what='the first scan')
        results = set_parameters(
            probe, ('rate', 20.0), ('mounting.x', 0.25), ('period', 1.0), node='simulate'
        )
        assert [result.successful for result in results] == [True, True, False]
        assert 'read-only' in results[2].reason
        refused = set_parameters(probe, ('rate', 0.0), node='simulate')
        assert 'rate must be positive without lockstep' in refused[0].reason
        count = len(driver.scans)
        # At the former rate it would take five seconds.
        probe.wait(lambda: len(driver.scans) - count > 50, what='scans at the rate', seconds=4.0)


def test_a_map_is_driven_in_and_published_where_it_is_asked_for(probe, start, tmp_path):
    grey = np.full((100, 200), 254, dtype=np.uint8)
    grey[0] = grey[-1] = grey[:, 0] = grey[:, -1] = 0
    PIL.Image.fromarray(grey).save(tmp_path / 'room.pgm')
    (tmp_path / 'room.yaml').write_text(
        'image: room.pgm\nresolution: 0.05\norigin: [-1.0, -2.0, 0.0]\nnegate: 0\n'
        'occupied_thresh: 0.65\nfree_thresh: 0.196\n'
    )
    maps = probe.collect(OccupancyGrid, 'map', LATCHED)
    driver = Driver(probe)
    simulator = start(
        'simulate', **FAST, **{'world.source': tmp_path / 'room.yaml', 'robot.speed': 2},
        **{'world.publish_map': True, 'world.start': '"0 0"', 'world.goal': '"7 1"'},
    )  # fmt: skip
    assert driver.wait_for_end(simulator) == 0, simulator.text
    (map_,) = maps
    assert (map_.info.width, map_.info.height, map_.info.resolution) == (
        200, 100, np.float32(0.05)
    )  # fmt: skip
    assert (map_.info.origin.position.x, map_.info.origin.position.y) == (-1.0, -2.0)
    data = np.array(map_.data).reshape(100, 200)
    assert (data[0] == 100).all()
    assert (data[1:-1, 1:-1] == 0).all()
    nearest = min(min(scan.ranges) for scan in driver.scans[:5])
    assert nearest == pytest.approx(0.95, abs=0.15), 'the left wall, with noise'


@pytest.mark.parametrize(
    ('parameters', 'message'),
    [
        ({'rate': 0.0}, 'rate must be positive without lockstep'),
        ({'period': 0.05, 'step': 0.02}, 'period must be a multiple of step'),
        ({'world.source': 'nowhere.yaml'}, 'world.source nowhere.yaml'),
        ({'world.source': 'nowhere.json'}, 'world.source nowhere.json'),
        ({'world.start': '"1 2 3"'}, "start must be two numbers 'x y'"),
        ({'world.start': '"4.141 2.2866"'}, 'world.start 4.141 2.2866 lies in an obstacle'),
        ({'lidar.range_min': 4.0}, 'lidar: range_max must be finite and exceed range_min'),
        ({'robot.speed': 0.0}, 'robot.speed must be a number from'),
    ],
)
def test_what_cannot_be_simulated_is_said_in_one_line(start, parameters, message):
    simulator = start('simulate', **parameters)
    assert simulator.process.wait(timeout=60) == 2, simulator.text
    assert message in simulator.text
    assert 'Traceback' not in simulator.text


def test_in_lockstep_without_a_planner_it_says_so(start):
    simulator = start('simulate', lockstep=True, rate=0.0, wait_timeout=0.5)
    assert simulator.process.wait(timeout=60) == 1
    assert 'nobody to answer on planner_node/processed' in simulator.text


def test_defaults_are_valid():
    assert SimulatorConfig().build().lidar.beams == 360
