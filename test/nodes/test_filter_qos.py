# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""filter_node and publishers that do not fit, or do not exist: it works or says why not."""

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from feeding import AXIS, pose_message, Robot, scan_message, Watch
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from probing import ended_by, RELIABLE
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import LaserScan

EXECUTORS = pytest.mark.parametrize('executor', ['single', 'events'])


@EXECUTORS
def test_best_effort_and_reliable_publishers_are_both_received(probe, start, executor):
    process = start('filter_node', executor=executor, **AXIS)
    watch = Watch(probe)
    with ended_by(process):
        robot = Robot(probe, qos=RELIABLE, pose_qos=qos_profile_sensor_data)
        robot.drive(20)
        other = Robot(probe, qos=qos_profile_sensor_data, pose_qos=RELIABLE)
        other.sent = 20
        other.drive(20)
        watch.wait_for(scan=40, pose=40)
        assert watch.values['samples learned'] == '40'
        assert not watch.dropped('scan')
        assert not watch.dropped('pose')


@EXECUTORS
def test_an_incompatible_publisher_is_named_with_the_policy_and_what_to_set(
    probe, start, executor
):
    override = 'qos_overrides./scan.subscription.reliability'
    process = start(
        'filter_node', executor=executor,
        **{**AXIS, override: 'reliable', 'diagnostics.stale_after': 60.0},
    )  # fmt: skip
    watch = Watch(probe)
    with ended_by(process):
        probe.publisher(PoseStamped, 'pose')
        probe.node.create_publisher(LaserScan, 'scan', qos_profile_sensor_data)
        watch.wait(
            lambda level, message, _: level == DiagnosticStatus.WARN and override in message
        )
        for text in (watch.status.message, watch.values['no message on: scan'], process.text):
            assert 'a publisher of /scan offers an incompatible QoS (RELIABILITY)' in text
            assert override in text
        assert '[WARN]' in process.text


def test_diagnostics_say_why_nothing_comes(probe, start):
    process = start('filter_node', **{**AXIS, 'diagnostics.stale_after': 1.0})
    watch = Watch(probe)

    def wait_for(topic, text):
        key = f'no message on: {topic}'
        watch.wait(lambda _, __, values: text in values.get(key, ''), f'{topic}: {text}')

    with ended_by(process):
        wait_for('scan', 'nobody publishes /scan (sensor_msgs/msg/LaserScan)')
        wait_for('pose', 'nobody publishes /pose (geometry_msgs/msg/PoseStamped)')
        watch.wait(lambda level, *_: level == DiagnosticStatus.STALE, 'STALE')
        assert 'nobody publishes /scan' in watch.status.message

        odometry = probe.node.create_publisher(Odometry, 'pose', 10)
        odometry.publish(pose_message(1, kind=Odometry))
        wait_for('pose', '/pose is published as nav_msgs/msg/Odometry, '
                         'wanted geometry_msgs/msg/PoseStamped')  # fmt: skip
        scans = probe.publisher(LaserScan, 'scan')
        wait_for('scan', '/scan has a publisher that has sent nothing yet')
        scans.publish(scan_message(1))
        watch.wait(lambda _, __, values: 'no message on: scan' not in values, 'heard')


@pytest.mark.parametrize(('policy', 'value'), [('reliability', 'sometimes'), ('depth', 'many')])
def test_an_override_that_is_not_allowed_is_said_in_a_line(probe, start, policy, value):
    process = start('filter_node', **{f'qos_overrides./scan.subscription.{policy}': value})
    watch = Watch(probe)
    with ended_by(process):
        watch.wait(lambda level, *_: level == DiagnosticStatus.ERROR, 'an error')
        for text in (watch.status.message, process.text):
            assert 'cannot activate: cannot subscribe to /scan with the qos_overrides' in text
        assert 'Traceback' not in process.text
