# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""filter_node as a process: messages in over DDS, estimates, figures and diagnostics out."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from probing import CONFIG, ended_by, REPOSITORY
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import LaserScan, Range
from std_msgs.msg import Float64
from std_srvs.srv import SetBool, Trigger

from kernel_constrained.core import PrimalDualLearner
from kernel_constrained.data import load_lidar
from kernel_constrained.nodes.running import SAME_REQUEST
from kernel_constrained.perception.filter import ScanFilter

LIDAR = CONFIG / 'filter_lidar.yaml'


def range_message(i, value, frame='laser'):
    message = Range(min_range=390.0, max_range=720.0, range=float(value))
    message.header.stamp.sec = i
    message.header.frame_id = frame
    return message


def pose_message(i, x, frame='map'):
    message = PoseStamped()
    message.header.stamp.sec = i
    message.header.frame_id = frame
    message.pose.position.x = float(x)
    message.pose.orientation.w = 1.0
    return message


class Feeder:
    """Feeds the LIDAR table to a filter and waits for each estimate."""

    def __init__(self, probe):
        self.probe = probe
        self.estimates = probe.collect(PoseWithCovarianceStamped, 'estimate')
        self.ranges = probe.publisher(Range, 'range')
        self.poses = probe.publisher(PoseStamped, 'pose')
        self.sent = 0
        self.table = load_lidar()

    def feed(self, count, poses=True):
        for _ in range(count):
            row = self.sent * 37 % 221
            self.sent += 1
            if poses:
                self.poses.publish(pose_message(self.sent, self.table.logratio[row]))
            self.ranges.publish(range_message(self.sent, self.table.range[row]))
            self.probe.wait(
                lambda: self.estimates and self.estimates[-1].header.stamp.sec == self.sent,
                what=f'estimate {self.sent}',
            )
        if poses:
            self.probe.spin(0.2)  # the pose may have come after its range


@pytest.mark.parametrize('executor', ['single', 'events'])
def test_scans_and_poses_in_estimates_figures_and_diagnostics_out(probe, start, executor):
    process = start('filter_node', LIDAR, executor=executor)
    names = ('loss', 'cvar', 'violation', 'dual_variable', 'model_order')
    figures = {name: probe.collect(Float64, f'filter_node/{name}') for name in names}
    diagnostics = probe.collect(DiagnosticArray, '/diagnostics')
    with ended_by(process):
        feeder = Feeder(probe)
        feeder.feed(120)
        probe.wait(lambda: all(len(f) == 120 for f in figures.values()), what='120 of each figure')
        probe.wait(
            lambda: diagnostics and 'samples learned' in str(diagnostics[-1])
            and value_of(diagnostics[-1], 'samples learned') == '120', what='diagnostics',
        )  # fmt: skip
        status = diagnostics[-1].status[0]
        assert status.level == DiagnosticStatus.OK
        assert status.name == 'filter_node: status'
        assert float(value_of(diagnostics[-1], 'model order')) == figures['model_order'][-1].data
        assert [e.header.stamp.sec for e in feeder.estimates] == list(range(1, 121))
        assert {e.header.frame_id for e in feeder.estimates[1:]} == {'map'}
        error = np.array([e.pose.pose.position.x for e in feeder.estimates[60:]])
        truth = feeder.table.logratio[[i * 37 % 221 for i in range(60, 120)]]
        assert np.mean((error - truth) ** 2) < 0.5 * np.mean(truth**2), 'it has learned'
        spread = [e.pose.covariance[0] for e in feeder.estimates]
        assert spread[0] == 1e6, 'at first nothing is known'
        assert 0.0 < max(spread[60:]) < 1.0


def value_of(message, key):
    return {v.key: v.value for v in message.status[0].values}.get(key)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly_and_the_model_is_saved(probe, start, tmp_path, number):
    path = tmp_path / 'model.npz'
    process = start('filter_node', LIDAR, **{'model.path': path, 'model.save_at_end': True})
    with ended_by(process, number):
        Feeder(probe).feed(30)
    assert ScanFilter.load(path).learner.samples_ == 30


def test_a_signal_while_it_compiles_ends_it_too(start):
    process = start('filter_node', LIDAR, **{'learner.mode': 'penalty'})
    time.sleep(1.0)  # somewhere between its imports and its first spin
    begun = time.monotonic()
    assert process.end() in (0, 130, -signal.SIGINT), process.text
    assert time.monotonic() - begun < 40.0
    assert 'Traceback' not in process.text


def test_signals_in_a_row_are_one_request_and_the_model_is_saved(probe, start, tmp_path):
    """A Ctrl-C comes from the terminal and, where it has none itself, from launch."""
    path = tmp_path / 'model.npz'
    process = start('filter_node', LIDAR, **{'model.path': path, 'model.save_at_end': True})
    with ended_by(process):
        Feeder(probe).feed(30)
        for number in (signal.SIGINT, signal.SIGTERM) * 4:
            process.process.send_signal(number)
            time.sleep(0.01)
    assert ScanFilter.load(path).learner.samples_ == 30


# Waits for ever, as a node does that compiles.
BUSY = """
import time
from kernel_constrained.nodes.running import Signals

signals = Signals()
print('ready', flush=True)
while not signals.received:
    time.sleep(0.01)
print('noted', flush=True)
time.sleep(600.0)
"""


def test_a_later_signal_ends_it_at_once(tmp_path):
    environment = {**os.environ, 'PYTHONPATH': str(REPOSITORY)}
    with subprocess.Popen(
        [sys.executable, '-c', BUSY], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout.readline() == 'ready\n'
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == 'noted\n'
        process.send_signal(signal.SIGINT)  # the same request
        time.sleep(SAME_REQUEST + 0.1)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 130


# Sends itself a signal when its handlers are gone already.
ENDS = """
import os, signal
from kernel_constrained.nodes.running import Signals

class Late:
    def __del__(self, send=os.kill, process=os.getpid(), number=signal.SIGTERM):
        send(process, number)
        print('sent', flush=True)

late, signals = Late(), Signals()
"""


def test_a_signal_at_the_very_end_changes_nothing():
    result = subprocess.run(
        [sys.executable, '-c', ENDS], capture_output=True, text=True, check=False,
        env={**os.environ, 'PYTHONPATH': str(REPOSITORY)},
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (0, 'sent\n'), result.stderr


def test_a_crash_below_python_is_in_the_log_with_its_line(probe, start):
    process = start('filter_node', LIDAR)
    probe.wait(lambda: 'ready: listens to' in process.text, what='a node that spins')
    assert process.end(signal.SIGSEGV) == -signal.SIGSEGV
    assert 'Segmentation fault' in process.text
    assert 'in spin_once' in process.text


def test_nodes_of_tests_share_no_memory(probe, start):
    """What killed ones would leave there can make later ones hang as they start: ``dds.xml``."""
    process = start('filter_node', LIDAR)
    probe.wait(lambda: 'ready: listens to' in process.text, what='a node that spins')
    maps = Path(f'/proc/{process.process.pid}/maps')
    if not maps.exists():
        pytest.skip('no /proc to see it in')
    assert '/dev/shm/fast' not in maps.read_text()


def test_services_save_load_reset_and_freeze(probe, start, tmp_path):
    path = tmp_path / 'model.npz'
    process = start('filter_node', LIDAR, **{'model.path': path})
    with ended_by(process):
        feeder = Feeder(probe)
        feeder.feed(40)
        assert probe.call(Trigger, 'filter_node/save').success
        assert ScanFilter.load(path).learner.samples_ == 40

        learned = feeder.estimates[-1].pose.pose.position.x
        assert probe.call(Trigger, 'filter_node/reset').success
        feeder.feed(1, poses=False)
        assert feeder.estimates[-1].pose.pose.position.x == 0.0 != learned

        assert probe.call(Trigger, 'filter_node/load').success
        answer = probe.call(SetBool, 'filter_node/set_learning', SetBool.Request(data=False))
        assert answer.success
        feeder.feed(10)
        assert probe.call(Trigger, 'filter_node/save').success
        assert ScanFilter.load(path).learner.samples_ == 40, 'frozen: nothing more was learned'

        path.write_bytes(b'no model')
        answer = probe.call(Trigger, 'filter_node/load')
        assert not answer.success
        assert 'no model file' in answer.message
        feeder.feed(1)


def test_unusable_messages_are_counted_by_reason_and_change_nothing(probe, start, tmp_path):
    path = tmp_path / 'model.npz'
    process = start('filter_node', LIDAR, **{'model.path': path, 'model.save_at_end': True})
    diagnostics = probe.collect(DiagnosticArray, '/diagnostics')
    with ended_by(process):
        feeder = Feeder(probe)
        feeder.feed(10)
        for value in (np.nan, np.inf, -np.inf, 0.0, 1e9):
            feeder.ranges.publish(range_message(11, value))
        bad = pose_message(11, np.nan)
        feeder.poses.publish(bad)
        zero = pose_message(11, 0.0)
        zero.pose.orientation.w = 0.0
        feeder.poses.publish(zero)
        feeder.ranges.publish(range_message(10, 500.0))
        probe.wait(
            lambda: (
                diagnostics
                and value_of(diagnostics[-1], 'received: range') == '16'
                and value_of(diagnostics[-1], 'received: pose') == '12'
            ),
            what='diagnostics of all messages',
        )
        values = {v.key: v.value for v in diagnostics[-1].status[0].values}
        assert values['dropped: range: range outside its limits'] == '3'
        assert values['dropped: range: no return'] == '1'
        assert values['dropped: range: too close'] == '1'
        assert values['dropped: range: duplicate stamp'] == '1'
        assert values['dropped: pose: non-finite pose'] == '1'
        assert values['dropped: pose: zero quaternion'] == '1'
        assert diagnostics[-1].status[0].level == DiagnosticStatus.WARN
        feeder.sent = 11
        feeder.feed(5)
    learner: PrimalDualLearner = ScanFilter.load(path).learner
    assert learner.samples_ == 15
    assert np.isfinite(learner.weights_).all()


def test_silence_makes_the_diagnostics_stale(probe, start):
    process = start('filter_node', LIDAR, **{'diagnostics.stale_after': 1.0})
    diagnostics = probe.collect(DiagnosticArray, '/diagnostics')
    with ended_by(process):
        Feeder(probe).feed(3)
        probe.wait(
            lambda: diagnostics and diagnostics[-1].status[0].level == DiagnosticStatus.STALE,
            what='STALE',
        )
        assert 'no range for' in diagnostics[-1].status[0].message


def test_motion_from_best_effort_scans_with_poses_between_them(probe, start):
    """The stock sensor QoS is taken, and a pose is interpolated at the stamp of the scan."""
    process = start(
        'filter_node', **{'features.sectors': 4, 'features.bearing_min': -1.6,
                          'features.bearing_max': 1.6, 'pairing.max_gap': 5.0},
    )  # fmt: skip
    estimates = probe.collect(PoseWithCovarianceStamped, 'estimate')
    losses = probe.collect(Float64, 'filter_node/loss')
    with ended_by(process):
        scans = probe.publisher(LaserScan, 'scan', qos_profile_sensor_data)
        poses = probe.publisher(PoseStamped, 'pose', qos_profile_sensor_data)
        for i in range(1, 21):
            scan = LaserScan(angle_min=-1.5, angle_increment=0.1, range_min=0.1, range_max=30.0)
            scan.ranges = [5.0 - 0.1 * i] * 31
            scan.header.stamp.sec = i
            scan.header.frame_id = 'laser'
            before = pose_message(i, 0.1 * i)
            before.header.stamp.sec, before.header.stamp.nanosec = i - 1, 500_000_000
            poses.publish(before)
            scans.publish(scan)
            probe.spin(0.05)
        probe.wait(lambda: len(estimates) == 19, what='an estimate for all scans but the first')
        probe.wait(lambda: len(losses) == 18, what='a loss for all motions with poses around')
        assert estimates[-1].header.frame_id == 'laser'
        assert estimates[-1].header.stamp.sec == 20
