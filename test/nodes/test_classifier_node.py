# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""classifier_node in a process of its own: what goes in, what comes out, what it survives."""

import sys
from pathlib import Path

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from feeding import BEGIN, SECOND, set_parameters, stamp, Watch
from probing import ended_by, RELIABLE
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import LaserScan
from std_msgs.msg import Float64, Header, String
from std_srvs.srv import SetBool, Trigger

from kernel_constrained.bags import Message, open_recording
from kernel_constrained.bags.serialization import STRING_TYPE, typestore
from kernel_constrained.configuration import from_flat
from kernel_constrained.offline.classification import classify, read_said
from kernel_constrained.perception.classifier import PlaceClassifier
from kernel_constrained.perception.classifier_config import ClassifierNodeConfig
from kernel_constrained.topics import CLASSIFIER_FIGURES

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'offline'))

from made_recordings import drive, written

SETTINGS = {'features.sectors': 8, 'learner.bandwidth': 1.0, 'learner.step_size': 0.2}
KINDS = {'corridor': (9.0, 1.0, 9.0, 1.0), 'room': (4.0, 4.0, 4.0, 4.0)}


def scan_message(number, kind, frame='laser'):
    rng = np.random.default_rng(number)
    ranges = np.repeat(np.roll(np.repeat(KINDS[kind], 2), 1), 5)
    scan = LaserScan(angle_min=-np.pi, angle_increment=2 * np.pi / 40)
    scan.range_min, scan.range_max = 0.1, 30.0
    scan.ranges = (ranges * (1.0 + 0.05 * rng.standard_normal(40))).tolist()
    scan.header.frame_id = frame
    return stamp(scan, BEGIN + number * SECOND)


class Robot:
    """Sends scans and labels, and collects what is said of the scans."""

    def __init__(self, probe):
        self.probe, self.sent = probe, 0
        self.said = probe.collect(String, 'label_estimate')
        self.scores = probe.collect(DiagnosticArray, 'label_scores')
        self.ready = probe.collect(
            Header, 'classifier_node/processed',
            QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL),
        )  # fmt: skip
        self.labels, self.scans = probe.publishers(
            (String, 'label', RELIABLE), (LaserScan, 'scan', RELIABLE)
        )

    def walk(self, count, labels=True):
        """See a corridor and a room in turn; wait for what is said of each."""
        for _ in range(count):
            self.sent += 1
            kind = list(KINDS)[self.sent % 2]
            if labels:
                self.labels.publish(String(data=kind))
            self.scans.publish(scan_message(self.sent, kind))
            self.probe.wait(lambda: len(self.ready) == self.sent, what=f'scan {self.sent}')

    def right(self, last):
        newest = [one.status[0].message for one in self.scores[-last:]]
        return newest == [list(KINDS)[(self.sent - i) % 2] for i in reversed(range(last))]


@pytest.mark.parametrize('executor', ['single', 'events'])
def test_scans_and_labels_in_labels_scores_figures_and_diagnostics_out(probe, start, executor):
    process = start('classifier_node', None, executor=executor, **SETTINGS)
    figures = {
        name: probe.collect(Float64, f'classifier_node/{name}') for name in CLASSIFIER_FIGURES
    }
    watch = Watch(probe)
    with ended_by(process):
        robot = Robot(probe)
        robot.walk(60)
        probe.wait(lambda: all(len(f) == 60 for f in figures.values()), what='60 of each figure')
        watch.wait_for(scan=60, label=60)
        assert watch.status.level == DiagnosticStatus.OK, watch.status
        assert watch.status.message == 'learning; label corridor'
        assert watch.values['samples learned'] == '60'
        assert watch.values['samples: room'] == watch.values['samples: corridor'] == '30'
        assert robot.said[0].data == 'unsure'
        assert robot.right(20)
        for message, margin, said in zip(robot.scores, figures['margin'], robot.said):
            status = message.status[0]
            values = {v.key: float(v.value) for v in status.values}
            assert values['margin'] == margin.data
            unsure = status.level == DiagnosticStatus.WARN
            assert said.data == ('unsure' if unsure else status.message)
        assert set(values) == {'margin', 'score: corridor', 'score: room'}
        header = robot.scores[-1].header
        assert (header.frame_id, header.stamp.sec) == ('laser', BEGIN // SECOND + 60)


def test_services_save_load_reset_and_freeze(probe, start, tmp_path):
    path = tmp_path / 'places.npz'
    process = start('classifier_node', None, **SETTINGS, **{'model.path': path})
    with ended_by(process):
        robot = Robot(probe)
        robot.walk(40)
        assert probe.call(Trigger, 'classifier_node/save').success
        assert PlaceClassifier.load(path).labels == {'room': 20, 'corridor': 20}
        assert probe.call(Trigger, 'classifier_node/reset').success
        robot.labels.publish(String())
        robot.walk(1, labels=False)
        assert robot.scores[-1].status[0].message == ''
        assert probe.call(Trigger, 'classifier_node/load').success
        freeze = SetBool.Request(data=False)
        assert probe.call(SetBool, 'classifier_node/set_learning', freeze).success
        robot.walk(10)
        assert robot.right(10)
        assert probe.call(Trigger, 'classifier_node/save').success
        assert PlaceClassifier.load(path).samples == 40, 'frozen: nothing more was learned'


def test_the_model_is_saved_at_the_end_and_the_next_node_goes_on_with_it(probe, start, tmp_path):
    given = {**SETTINGS, 'model.path': tmp_path / 'places.npz', 'model.save_at_end': True,
             'model.load_at_start': 'if_present'}  # fmt: skip
    with ended_by(start('classifier_node', None, **given)):
        Robot(probe).walk(20)
    process = start('classifier_node', None, **given)
    probe.wait(lambda: 'goes on with 20 samples of' in process.text, what='the second node')
    assert process.end() == 0, process.text
    assert PlaceClassifier.load(tmp_path / 'places.npz').samples == 20


def test_what_cannot_be_used_is_counted_by_reason_and_changes_nothing(probe, start, tmp_path):
    path = tmp_path / 'places.npz'
    given = {**SETTINGS, 'labels': '[corridor, room]', 'model.path': path,
             'model.save_at_end': True}  # fmt: skip
    watch = Watch(probe)
    with ended_by(start('classifier_node', None, **given)):
        robot = Robot(probe)
        robot.walk(10)
        for text in ('kitchen', 'unsure', 'kitchen', 'x' * 1000):
            robot.labels.publish(String(data=text))
        watch.wait_for(label=14)
        nothing, empty = scan_message(12, 'room'), scan_message(13, 'room')
        nothing.ranges, empty.ranges = [float('nan')] * 40, []
        elsewhere = scan_message(14, 'room', frame='other')
        for bad in (nothing, empty, elsewhere, scan_message(10, 'room'), scan_message(0, 'room')):
            robot.scans.publish(bad)
        robot.scans.publish(stamp(scan_message(0, 'room'), 0))
        watch.wait_for(scan=16)
        assert watch.dropped('label') == {"unknown label 'kitchen'": 2, 'no label': 2}
        assert watch.dropped('scan') == {
            'no valid beam': 1, 'empty scan': 1, 'wrong frame': 1, 'duplicate stamp': 1,
            'zero stamp': 1,
        }  # fmt: skip
        assert watch.values['clock jumps'] == '1'
        assert watch.status.level == DiagnosticStatus.WARN
        assert 'dropped 9 messages so far' in watch.status.message
        assert watch.values['label in force'] == 'none'
    assert PlaceClassifier.load(path).labels == {'corridor': 5, 'room': 5}


def test_silence_is_stale_and_names_what_nobody_publishes(probe, start):
    watch = Watch(probe)
    with ended_by(start('classifier_node', None, **{'diagnostics.stale_after': 0.5})):
        watch.wait(lambda level, text, _: level == DiagnosticStatus.STALE and 'scan' in text)
        assert 'nobody publishes /scan (sensor_msgs/msg/LaserScan)' in watch.status.message


def test_run_time_parameters_change_and_others_are_refused(probe, start):
    with ended_by(start('classifier_node', None, **SETTINGS)):
        robot = Robot(probe)
        robot.walk(40)
        results = set_parameters(
            probe, ('margin', 100.0), ('features.sectors', 9), ('margin', -1.0),
            node='classifier_node',
        )  # fmt: skip
        assert [one.successful for one in results] == [True, False, False]
        assert 'read-only parameter: features.sectors' in results[1].reason
        assert 'margin must be a number of at least 0 (got -1.0)' in results[2].reason
        robot.walk(1)
        assert robot.said[-1].data == 'unsure'
        assert robot.right(1), 'the label with the highest score is said with the scores'


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'labels': '[room]'}, 'labels must be none or at least two different ones'),
        ({'lables': '[room]'}, 'did you mean labels'),
        ({'features.type': 'range'}, 'features.type must be one of sectors, beams'),
        ({'margin': '.nan'}, 'margin must be a number of at least 0'),
    ],
)
def test_a_wrong_parameter_ends_it_with_a_message(start, given, message):
    process = start('classifier_node', None, **given)
    assert process.process.wait(timeout=60) == 2
    assert message in process.text
    assert 'Traceback' not in process.text


def labelled_drive(count):
    """Return the scans of a drive round a room, and the half of the room that each is in."""
    store, messages = typestore(), []
    for number, message in enumerate(drive(count)):
        if message.topic == 'pose':
            i = number // 2
            half = '' if i % 50 > 40 else ('left' if i // 100 % 2 else 'right')
            data = bytes(store.serialize_cdr(store.types[STRING_TYPE](data=half), STRING_TYPE))
            messages.append(Message('label', STRING_TYPE, message.stamp, data))
        else:
            messages.append(message)
    return messages


@pytest.mark.parametrize(('executor', 'rate'), [('single', 0.0), ('events', 100.0)])
def test_in_lockstep_it_says_what_the_offline_command_says_bit_for_bit(
    start, tmp_path, executor, rate
):
    bag, recorded = written(tmp_path / 'room.mcap', labelled_drive(200)), tmp_path / 'said.mcap'
    recorder = start(
        'record_node', destination=recorded, topics='[label_scores]',
        answer_topic='classifier_node/processed',
    )  # fmt: skip
    node = start('classifier_node', None, executor=executor, **SETTINGS,
                 **{'qos_overrides./scan.subscription.reliability': 'reliable'})  # fmt: skip
    replay = start(
        'replay_node', source=bag, lockstep=True, answer_topic='record_node/processed',
        wait_timeout=120, rate=rate,
    )  # fmt: skip
    assert replay.process.wait(timeout=180) == 0, replay.text
    assert recorder.end() == 0, recorder.text
    assert node.end() == 0, node.text
    with open_recording(bag) as recording:
        offline, places = classify(recording, from_flat(ClassifierNodeConfig, SETTINGS))
    said = read_said(recorded)
    assert places.samples == 164
    assert len(said.stamps) == 200
    assert said.scores == offline.scores
    for one, other in zip(said[:-1], offline[:-1]):
        assert np.array_equal(one, other)


def test_a_recording_without_labels_is_named(tmp_path):
    with (
        open_recording(written(tmp_path / 'scans.mcap', drive(3))) as recording,
        pytest.raises(ValueError, match='no topic label'),
    ):
        classify(recording, ClassifierNodeConfig())
