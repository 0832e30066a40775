# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""replay_node and record_node as processes: nothing lost, and the same result at every rate."""

import time

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from probing import CONFIG, ended_by
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import LaserScan, Range

from kernel_constrained.bags import decode, LidarRecording, open_recording, write_bag
from kernel_constrained.configuration import from_flat, read_parameter_file
from kernel_constrained.perception.config import FilterNodeConfig
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.perception.geometry import Pose
from kernel_constrained.perception.scan import Reading

LIDAR = CONFIG / 'filter_lidar.yaml'


def replayed(start, tmp_path, name, source='lidar', **parameters):
    """Replay one epoch through the filter in lockstep; return the model it has learned."""
    path = tmp_path / f'{name}.npz'
    process = start('filter_node', LIDAR, **{'model.path': path, 'model.save_at_end': True})
    with ended_by(process):
        replay = start(
            'replay_node', source=source, lockstep=True, wait_timeout=120,
            **{'lidar.epochs': 1, **parameters},
        )  # fmt: skip
        assert replay.process.wait(timeout=300) == 0, replay.text
    return ScanFilter.load(path)


def offline(recording):
    """Feed the same recording to the same object without any middleware; return its estimates."""
    config = from_flat(FilterNodeConfig, read_parameter_file(LIDAR, 'filter_node'))
    filter_, estimates = ScanFilter(config), []
    for message in recording.messages():
        decoded = decode(message)
        if message.topic == 'range':
            reading = Reading(decoded.range, decoded.min_range, decoded.max_range)
            estimates.append(filter_.scan(message.stamp, reading))
        else:
            filter_.pose(message.stamp, Pose(decoded.pose.position.x, 0.0, 0.0, 0.0))
        filter_.learn()
    return filter_, estimates


def same(first, second):
    """Whether two filters have learned the same, bit for bit."""
    return (
        first.learner.samples_ == second.learner.samples_
        and np.array_equal(first.learner.dictionary_, second.learner.dictionary_)
        and np.array_equal(first.learner.weights_, second.learner.weights_)
    )


def test_lockstep_gives_the_offline_result_bit_for_bit_at_every_rate(start, tmp_path):
    with LidarRecording(epochs=1) as recording:
        reference, _ = offline(recording)
        write_bag(recording, tmp_path / 'lidar.mcap')
    assert reference.learner.samples_ == 179
    for name, source, parameters in [
        ('unpaced', 'lidar', {'rate': 0.0}),
        ('paced', 'lidar', {'rate': 20.0}),
        ('events', 'lidar', {'rate': 0.0, 'executor': 'events'}),
        ('bag', tmp_path / 'lidar.mcap', {'rate': 0.0}),
    ]:
        assert same(replayed(start, tmp_path, name, source, **parameters), reference), name


def test_another_seed_gives_another_result(start, tmp_path):
    """So that the test above cannot pass by comparing nothing."""
    with LidarRecording(epochs=1) as recording:
        reference, _ = offline(recording)
    assert not same(replayed(start, tmp_path, 'seed', rate=0.0, **{'lidar.seed': 1}), reference)


def test_a_bag_is_played_whole_with_its_bytes_and_its_clock(probe, start, tmp_path):
    with LidarRecording(epochs=1) as recording:
        write_bag(recording, tmp_path / 'lidar.db3')
        expected = {
            topic: [m.data for m in recording.messages([topic])] for topic in recording.topics
        }
    received = {'range': [], 'pose': []}
    for topic, kind in (('range', Range), ('pose', PoseStamped)):
        probe.node.create_subscription(kind, topic, received[topic].append, 1000, raw=True)
    clock = probe.collect(Clock, '/clock')
    replay = start('replay_node', source=tmp_path / 'lidar.db3', rate=0.0, clock=True)
    probe.wait(lambda: replay.process.poll() is not None, 60, 'the end of the replay')
    assert replay.process.returncode == 0, replay.text
    probe.spin(0.5)
    for topic, kind in (('range', Range), ('pose', PoseStamped)):
        assert len(received[topic]) == len(expected[topic])
        for mine, theirs in zip(received[topic], expected[topic]):
            assert deserialize_message(mine, kind) == deserialize_message(theirs, kind)
    assert 'range: 201 messages declared, 201 published' in replay.text
    assert len(clock) == 381, 'the first twice: before its message too'
    assert clock[0].clock.sec == 1


def test_rate_offset_duration_and_topics_choose_what_is_played(probe, start):
    ranges = probe.collect(Range, 'range')
    poses = probe.collect(PoseStamped, 'pose')
    replay = start(
        'replay_node', rate=10.0, start_offset=5.0, duration=10.0, topics='[range]',
        **{'lidar.epochs': 1},
    )  # fmt: skip
    probe.wait(lambda: ranges, what='the first range')
    begun = time.monotonic()
    probe.wait(lambda: replay.process.poll() is not None, 60, 'the end of the replay')
    assert replay.process.returncode == 0, replay.text
    assert 0.8 < time.monotonic() - begun < 5.0, '10 s at rate 10, and time to end'
    assert len(ranges) == 100
    assert ranges[0].header.stamp.sec == 6
    assert not poses


def test_a_loop_begins_again_until_it_is_ended(probe, start):
    ranges = probe.collect(Range, 'range')
    replay = start('replay_node', rate=0.0, loop=True, duration=2.0, topics='[range]')
    with ended_by(replay):
        probe.wait(lambda: len(ranges) > 65, what='the third pass')
    assert [m.header.stamp.sec for m in ranges[:40]] == 2 * sorted([1, 2] * 10)


@pytest.mark.parametrize(
    ('parameters', 'code', 'message'),
    [
        ({'source': 'nowhere.mcap'}, 2, 'nowhere.mcap: no such file or folder'),
        ({'source': 'lidar', 'topics': '[scan]'}, 2, 'lidar: no topic scan; it holds pose, range'),
        ({'rate': -1.0}, 2, 'rate must be a number of at least 0'),
        ({'lockstep': True, 'wait_timeout': 1.0}, 1, 'no consumer after 1 s'),
    ],
)
def test_what_cannot_be_played_is_said_in_one_line(start, parameters, code, message):
    replay = start('replay_node', **parameters)
    assert replay.process.wait(timeout=60) == code, replay.text
    assert message in replay.text
    assert 'Traceback' not in replay.text


def test_lockstep_without_answers_fails_and_names_the_message(probe, start):
    from std_msgs.msg import Header

    probe.collect(Range, 'range')
    probe.node.create_publisher(Header, 'silent', 10)
    replay = start(
        'replay_node', lockstep=True, answer_topic='silent', answer_timeout=1.0, topics='[range]'
    )
    probe.wait(lambda: replay.process.poll() is not None, 60, 'the end of the replay')
    assert replay.process.returncode == 1
    assert 'no answer on silent within 1 s to message 1 on range' in replay.text


def test_with_nobody_listening_it_plays_all_the_same(start):
    replay = start('replay_node', rate=0.0, wait_timeout=0.5, **{'lidar.epochs': 1})
    assert replay.process.wait(timeout=60) == 0, replay.text
    assert 'nobody listens' in replay.text
    assert '201 published' in replay.text


def test_a_robot_log_becomes_scans_with_infinities(probe, start, tmp_path):
    """Codes for no return are +inf on the wire (REP-117)."""
    line = 'FLASER 180 {} 1.0 2.0 0.5 1.0 2.0 0.5 {} host {}\n'
    rng = np.random.default_rng(0)
    with (tmp_path / 'made.log').open('w') as log:
        for i in range(40):
            ranges = rng.uniform(1.0, 20.0, 180)
            ranges[::9] = 81.83
            log.write(line.format(' '.join(f'{r:.2f}' for r in ranges), i + 1.5, i + 1.5))
    scans = probe.collect(LaserScan, 'scan')
    replay = start('replay_node', source=tmp_path / 'made.log', rate=0.0)
    probe.wait(lambda: replay.process.poll() is not None, 60, 'the end of the replay')
    assert replay.process.returncode == 0, replay.text
    probe.spin(0.3)
    assert len(scans) == 40
    assert all(np.isinf(scan.ranges[::9]).all() for scan in scans)
    assert all(np.sum(np.isinf(scan.ranges)) == 20 for scan in scans)
    assert scans[0].range_max < 81.83


def test_a_recording_holds_all_that_was_published(start, tmp_path):
    path = tmp_path / 'recording.mcap'
    recorder = start(
        'record_node', destination=path, topics='[estimate, range]',
        answer_topic='filter_node/processed',
    )  # fmt: skip
    filter_ = start('filter_node', LIDAR)
    replay = start(
        'replay_node', rate=0.0, lockstep=True, answer_topic='record_node/processed',
        wait_timeout=120, **{'lidar.epochs': 1},
    )  # fmt: skip
    assert replay.process.wait(timeout=180) == 0, replay.text
    assert recorder.end() == 0, recorder.text
    assert filter_.end() == 0
    with open_recording(path) as recording:
        counts = {name: topic.count for name, topic in recording.topics.items()}
        assert counts == {'/estimate': 201, '/range': 201}
        recorded = [decode(message) for message in recording.messages(['estimate'])]
    with LidarRecording(epochs=1) as recording:
        _, estimates = offline(recording)
    for mine, reference in zip(recorded, estimates, strict=True):
        assert mine.pose.pose.position.x == reference.mean[0]
        assert mine.header.stamp.sec * 10**9 + mine.header.stamp.nanosec == reference.stamp
