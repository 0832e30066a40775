# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""filter_node with algorithm subquantile: wrong poses on ~/rejected, counts in diagnostics."""

import math
import sys
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from feeding import AXIS, MILLISECOND, pose_message, Robot, scan_message, set_parameters, Watch
from probing import ended_by
from std_msgs.msg import Float64
from test_evaluate_lockstep import published, series_of

from kernel_constrained.configuration import write_parameter_file
from kernel_constrained.offline.evaluate import evaluate
from kernel_constrained.perception.filter import ScanFilter

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'offline'))

from made_recordings import config, stamp_of, written
from made_recordings import pose_message as recorded_pose
from made_recordings import scan_message as recorded_scan

SUBQUANTILE = {
    **{name: value for name, value in AXIS.items() if name != 'learner.constrained'},
    'learner.algorithm': 'subquantile', 'learner.window': 200, 'learner.bandwidth': 1.5,
    'learner.max_model_order': 30,
}  # fmt: skip


class WronglyPosed(Robot):
    """A robot whose trusted pose is noisy, and now and then that of another place."""

    noise = np.random.default_rng(0)

    def drive(self, count, every=0):
        """Send scans and poses; return the stamps, in nanoseconds, of the wrong ones."""
        wrong = []
        for _ in range(count):
            self.sent += 1
            off = every and self.sent % every == 0
            wrong += [self.now] if off else []
            given = self.x + 0.05 * self.noise.standard_normal()
            self.poses.publish(pose_message(self.now, given + (2.0 if off else 0.0)))
            self.scans.publish(scan_message(self.now, self.x))
            self.wait_for_estimate()
        return wrong


def nanoseconds(header):
    return header.stamp.sec * 1000 * MILLISECOND + header.stamp.nanosec


def test_wrong_poses_are_published_as_they_come_and_counted(probe, start, tmp_path):
    path = tmp_path / 'model.npz'
    process = start(
        'filter_node', **{**SUBQUANTILE, 'model.path': path, 'model.save_at_end': True}
    )
    rejected = probe.collect(DiagnosticArray, 'filter_node/rejected')
    losses = probe.collect(Float64, 'filter_node/loss')
    dual = probe.collect(Float64, 'filter_node/dual_variable')
    watch = Watch(probe)
    with ended_by(process):
        robot = WronglyPosed(probe)
        robot.drive(150)
        before = len(rejected)
        assert before <= 15, 'few of what is right'
        wrong = robot.drive(100, every=7)
        watch.wait_for(scan=250, pose=250)
        watch.wait(lambda *_: watch.values['rejected'] == str(len(rejected)), 'all of them')
        stamps = [nanoseconds(one.header) for one in rejected[before:]]
        assert set(wrong) <= set(stamps)
        assert len(stamps) <= len(wrong) + 6
        values = watch.values
        assert values['samples learned'] == '250'
        assert 0.0 < float(values['share dropped in the window']) < 0.15
        assert 0.0 < float(values['estimated corruption']) < 0.15
        assert math.isnan(float(values['violation'])), 'there is no constraint'
        assert watch.status.level == DiagnosticStatus.OK, watch.status

        newest = rejected[-1].status[0]
        numbers = {v.key: float(v.value) for v in newest.values}
        assert set(numbers) == {'loss', 'threshold', 'truth: x'}
        assert numbers['loss'] > numbers['threshold'] > 0.0
        assert newest.level == DiagnosticStatus.WARN
        assert 'not learned' in newest.message
        assert rejected[-1].header.frame_id == 'map'
        probe.wait(lambda: len(losses) == 250, what='a loss for each')
        assert any(math.isclose(numbers['loss'], loss.data, rel_tol=1e-6) for loss in losses)
        assert {one.data for one in dual} == {0.0}

        results = set_parameters(probe, ('learner.corruption', 0.0), ('learner.window', 300))
        assert results[0].successful
        assert not results[1].successful
        count = len(rejected)
        robot.drive(60, every=7)
        probe.spin(0.5)
        assert len(rejected) == count, 'nothing may be dropped any more'
    assert ScanFilter.load(path).rejected == count


def test_a_parameter_that_subquantile_has_no_use_for_is_refused_at_the_start(start):
    process = start('filter_node', **{**SUBQUANTILE, 'learner.mode': 'paper'})
    assert process.process.wait(timeout=60) == 2, process.text
    assert 'learner: algorithm subquantile needs mode default (got paper)' in process.text
    assert 'Traceback' not in process.text


def test_lockstep_is_the_evaluation_bit_for_bit(start, tmp_path):
    messages = []
    for i in range(250):
        # now and then the pose of another time
        messages += [
            recorded_pose(i if i < 120 or i % 9 else i - 40, stamp_of(i)),
            recorded_scan(i),
        ]
    bag = written(tmp_path / 'room.mcap', messages)
    chosen = config(
        learner__algorithm='subquantile', learner__window=100, learner__max_model_order=25
    )
    file = tmp_path / 'filter.yaml'
    write_parameter_file(file, chosen, 'Made for a test.')
    estimates = published(start, bag, file, tmp_path / 'recorded.mcap')
    result = evaluate(bag, chosen, output=tmp_path / 'out')
    rows = series_of(tmp_path / 'out')
    assert len(rows) == len(estimates) == 249
    assert [float(row['estimate_forward']) for row in rows] == [
        estimate.pose.pose.position.x for estimate in estimates
    ]
    rejected = [row for row in rows if row['rejected'] == '1']
    assert len(rejected) == result['learner']['rejected'] > 10
    assert result['constraint'] is None
