# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Streams of scans and poses as robots and bags have them: used, or dropped for a reason."""

import math

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from feeding import (
    AXIS,
    BEGIN,
    MILLISECOND,
    pose_message,
    Robot,
    scan_message,
    SECOND,
    set_together,
    Watch,
)
from geometry_msgs.msg import TransformStamped
from probing import ended_by
from rosgraph_msgs.msg import Clock
from std_srvs.srv import Trigger


def test_each_pass_of_a_looped_bag_makes_as_many_pairs(probe, start):
    """Ten seconds of scans at 20 Hz, and of poses that come 200 ms after the scan they are of."""
    process = start('filter_node', **AXIS)
    watch = Watch(probe)
    with ended_by(process):
        robot = Robot(probe)
        first = BEGIN + SECOND
        late = [first + (i - 4) * 50 * MILLISECOND for i in range(200)]  # of the pass before: 4
        for number in range(3):
            for i in range(200):
                robot.sent += 1
                begun = number > 0 or i >= 4
                if begun:
                    time = late[i] if i >= 4 else late[i] + 200 * 50 * MILLISECOND
                    robot.poses.publish(pose_message(time, math.sin(0.1 * i)))
                robot.scans.publish(scan_message(first + i * 50 * MILLISECOND, math.sin(0.1 * i)))
                probe.wait(lambda: len(robot.estimates) == robot.sent, what='an estimate')
        watch.wait_for(scan=600, pose=596)
        # All but the last four of the last pass, whose poses never came.
        assert watch.values['samples learned'] == '596'
        assert watch.values['scans without a pose'] == '0'
        assert not watch.dropped('scan')
        assert not watch.dropped('pose')


def test_messages_whose_stamps_make_no_sense_are_dropped_and_counted_by_reason(probe, start):
    process = start('filter_node', **AXIS)
    watch = Watch(probe)
    with ended_by(process):
        robot = Robot(probe)
        robot.drive(10)
        for time in (0, -3 * SECOND, robot.now, robot.now - MILLISECOND):
            robot.scans.publish(scan_message(time, 1.0))
            robot.poses.publish(pose_message(time, 1.0))
        overflown = scan_message(0)
        overflown.header.stamp.sec = -1  # 4.29e9 s, as it overflows
        robot.scans.publish(overflown)
        watch.wait_for(scan=15, pose=14)
        reasons = {'zero stamp': 1, 'duplicate stamp': 1, 'late': 1}
        assert watch.dropped('scan') == {**reasons, 'negative stamp': 2}
        assert watch.dropped('pose') == {**reasons, 'negative stamp': 1}
        assert watch.status.level == DiagnosticStatus.WARN
        assert 'dropped 9 messages so far' in watch.status.message

        robot.scans.publish(scan_message((2**31 - 1) * SECOND, 1.0))  # the largest there is
        robot.drive(10)
        watch.wait_for(scan=26, pose=24)
        assert watch.values['samples learned'] == '20', 'it went on as before'


def test_a_clock_that_is_wrong_by_years_is_as_good_as_another(probe, start):
    process = start('filter_node', **AXIS)
    watch = Watch(probe)
    with ended_by(process):
        robot = Robot(probe)
        for i in range(10):
            time = (2**31 - 100) * SECOND + i * 50 * MILLISECOND
            robot.poses.publish(pose_message(time, 0.1 * i))
            robot.scans.publish(scan_message(time, 0.1 * i))
        watch.wait_for(scan=10, pose=10)
        assert watch.values['samples learned'] == '10'


def test_without_poses_it_goes_on_predicting_and_without_scans_it_is_stale(probe, start):
    process = start('filter_node', **{**AXIS, 'diagnostics.stale_after': 1.0})
    watch = Watch(probe)

    def poses_only():
        robot.sent += 1
        robot.poses.publish(pose_message(robot.now, robot.x))
        probe.spin(0.1)

    with ended_by(process):
        robot = Robot(probe)
        robot.drive(20)
        for _ in range(20):
            robot.drive(1, poses=False)
            probe.spin(0.05)
        watch.wait_for(scan=40, pose=20)
        assert watch.status.level == DiagnosticStatus.OK
        assert 'no trusted pose for' in watch.status.message
        assert watch.values['samples learned'] == '20'
        for _ in range(15):
            poses_only()
        watch.wait(lambda level, text, _: level == DiagnosticStatus.STALE, 'STALE')
        assert 'no scan for' in watch.status.message
        robot.drive(1)
        watch.wait(lambda level, *_: level == DiagnosticStatus.OK, 'OK again')


def test_a_pose_in_another_frame_is_dropped_and_both_frames_are_named(probe, start):
    process = start('filter_node', **AXIS)
    watch = Watch(probe)
    with ended_by(process):
        robot = Robot(probe)
        robot.drive(5)
        robot.sent += 1
        robot.poses.publish(pose_message(robot.now, 3.0, frame='odom'))
        watch.wait_for(scan=5, pose=6)
        assert watch.dropped('pose') == {'wrong frame': 1}
        assert "'odom' where 'map' is expected" in process.text
        robot.drive(5)
        watch.wait_for(scan=10, pose=11)
        assert watch.values['samples learned'] == '10'


def test_before_the_first_clock_everything_is_dropped_and_then_it_is_used(probe, start):
    process = start('filter_node', use_sim_time=True, **AXIS)
    watch = Watch(probe)
    with ended_by(process):
        robot = Robot(probe)
        robot.drive(5, wait=False)
        watch.wait_for(scan=5, pose=5)
        assert watch.dropped('scan') == watch.dropped('pose') == {'before the first /clock': 5}
        clock = probe.publisher(Clock, '/clock')
        message = Clock()
        message.clock.sec = robot.now // SECOND
        clock.publish(message)
        probe.wait(lambda: watch.messages[-1].header.stamp.sec == message.clock.sec)
        robot.drive(5)
        watch.wait_for(scan=10, pose=10)
        assert watch.values['samples learned'] == '5'


def test_in_a_namespace_with_other_topics_no_estimate_is_lost(probe, start):
    remaps = [('__ns', '/robot'), ('scan', 'front/scan'), ('pose', '/tracker/pose')]
    process = start('filter_node', None, remaps, **AXIS)
    watch = Watch(probe)
    with ended_by(process):
        robot = Robot(probe, 'robot/', 'robot/front/scan', 'tracker/pose')
        robot.drive(100)
        watch.wait_for(scan=100, pose=100)
        assert len(robot.estimates) == 100
        assert watch.values['samples learned'] == '100'
        assert watch.status.name == 'robot/filter_node: status'
    assert (
        'ready: listens to /robot/front/scan (sensor_msgs/msg/LaserScan), '
        '/tracker/pose (geometry_msgs/msg/PoseStamped)'
    ) in process.text


@pytest.mark.parametrize('target', ['pose', 'motion'])
def test_an_estimate_is_a_pose_with_unit_quaternion_and_a_covariance_that_is_one(
    probe, start, target
):
    process = start('filter_node', **{**AXIS, 'target.type': target})
    watch = Watch(probe)
    with ended_by(process):
        robot = Robot(probe)
        for i in range(100):
            robot.sent += 1
            yaw = 3.0 + 0.5 * math.sin(0.3 * i)  # across half a turn
            robot.poses.publish(pose_message(robot.now, robot.x, yaw))
            scan = scan_message(robot.now, robot.x)
            if i:
                robot.scans.publish(scan)
                if i > 1 or target == 'pose':
                    robot.wait_for_estimate()
            else:
                watch.wait_for(pose=1)
        for message in robot.estimates:
            q = message.pose.pose.orientation
            assert q.x == q.y == 0.0
            assert math.hypot(q.z, q.w) == pytest.approx(1.0)
            covariance = message.pose.covariance.reshape(6, 6)
            np.testing.assert_array_equal(covariance, covariance.T)
            values = np.linalg.eigvalsh(covariance)
            assert values.min() >= -1e-9 * values.max()
        assert 0.0 < covariance[5, 5] < 4.0
        if target == 'pose':
            yaws = [2 * math.atan2(m.pose.pose.orientation.z, m.pose.pose.orientation.w)
                    for m in robot.estimates[50:]]  # fmt: skip
            off = [abs(math.remainder(yaw - 3.0, 2 * math.pi)) for yaw in yaws]
            assert max(off) < 1.0, 'it is where the robot looks, on either side of half a turn'


def lopsided(scan):
    """Let a scan differ on the left, so that left and right are told apart."""
    scan.ranges = [r if i < 20 else 0.5 * r for i, r in enumerate(scan.ranges)]
    return scan


def turned(scan):
    scan = lopsided(scan)
    scan.angle_min, scan.angle_max = scan.angle_min - 0.7, scan.angle_max - 0.7
    return scan


def mirrored(scan):
    scan = lopsided(scan)
    scan.ranges.reverse()
    return scan


def test_a_turned_or_hanging_sensor_gives_the_estimates_of_a_plain_one(probe, start):
    process = start('filter_node', **AXIS)
    with ended_by(process):
        robot = Robot(probe)

        def estimates(drawn, yaw=0.0, upside_down=False):
            """Learn anew from scans as they are ``drawn`` from plain ones; return x."""
            mounting = ('mounting.yaw', yaw), ('mounting.upside_down', upside_down)
            assert set_together(probe, *mounting).successful
            assert probe.call(Trigger, 'filter_node/reset').success
            for i in range(30):
                robot.sent += 1
                x = math.sin(0.3 * i)
                robot.poses.publish(pose_message(robot.now, x))
                robot.scans.publish(drawn(scan_message(robot.now, x)))
                robot.wait_for_estimate()
                probe.spin(0.02)  # so that each pair is learned before the next scan
            return np.array([e.pose.pose.position.x for e in robot.estimates[-30:]])

        plain = estimates(lopsided)
        assert np.ptp(plain[15:]) > 0.5, 'it has learned something'
        np.testing.assert_allclose(estimates(turned, yaw=0.7), plain, atol=1e-3)
        np.testing.assert_allclose(estimates(mirrored, upside_down=True), plain, atol=1e-3)
        assert not np.allclose(estimates(mirrored), plain, atol=1e-3)


# tf2_ros is not on PyPI: this one knows what topic `transform` says.
TF2_ROS = """
from geometry_msgs.msg import TransformStamped


class TransformException(Exception):
    pass


class Buffer:
    def __init__(self):
        self.found = {}

    def lookup_transform(self, target, source, time):
        if (target, source) not in self.found:
            raise TransformException(f'"{source}" is not known to "{target}"')
        return self.found[target, source]


class TransformListener:
    def __init__(self, buffer, node):
        self.node, self.buffer = node, buffer
        self.subscription = node.create_subscription(
            TransformStamped, 'transform', self.take, 10
        )

    def take(self, message):
        self.buffer.found[message.header.frame_id, message.child_frame_id] = message

    def unregister(self):
        self.node.destroy_subscription(self.subscription)
"""


def transform_message(frame, qx=0.0, qw=1.0):
    message = TransformStamped(child_frame_id=frame)
    message.header.frame_id = 'base_link'
    message.transform.rotation.x, message.transform.rotation.w = qx, qw
    return message


def test_mounting_by_tf_is_waited_for_then_used_and_refused_where_tilted(probe, start, tmp_path):
    (tmp_path / 'tf2_ros.py').write_text(TF2_ROS)
    given = {**AXIS, 'mounting.source': 'tf', 'mounting.base_frame': '/base_link'}
    process = start('filter_node', paths=[tmp_path], **given)
    watch = Watch(probe)
    with ended_by(process):
        robot = Robot(probe)
        transforms = probe.publisher(TransformStamped, 'transform')
        robot.drive(3, poses=False, wait=False)
        watch.wait_for(scan=3)
        assert watch.dropped('scan') == {'no transform': 3}
        assert '"laser" is not known to "base_link"' in process.text

        transforms.publish(transform_message('laser'))
        probe.spin(0.5)
        robot.drive(10, drawn=lopsided)
        watch.wait_for(scan=13, pose=10)
        assert watch.values['samples learned'] == '10'

        def estimate(drawn):
            robot.sent += 1
            robot.scans.publish(drawn(scan_message(robot.now, 0.5)))
            robot.wait_for_estimate()
            return robot.estimates[-1].pose.pose.position.x

        plain = estimate(lopsided)
        assert estimate(mirrored) != pytest.approx(plain, abs=1e-3)
        transforms.publish(transform_message('laser', 1.0, 0.0))  # now it hangs
        probe.spin(0.5)
        assert estimate(mirrored) == pytest.approx(plain, abs=1e-3)

        transforms.publish(transform_message('laser', math.sin(0.3), math.cos(0.3)))
        probe.spin(0.5)
        robot.drive(2, poses=False, wait=False)
        watch.wait_for(scan=18, pose=10)
        assert watch.dropped('scan') == {'no transform': 3, 'tilted sensor': 2}
        assert 'by 34 degrees, at most 10 are planar' in process.text
