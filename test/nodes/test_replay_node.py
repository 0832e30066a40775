# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""replay_node and record_node as processes: nothing lost, and the same result at every rate."""

import time
from itertools import pairwise

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from probing import CONFIG, DISCOVERY, ended_by
from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, qos_profile_sensor_data, QoSProfile
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import LaserScan, Range
from std_msgs.msg import String
from std_srvs.srv import Trigger

from kernel_constrained.bags import decode, LidarRecording, open_recording, write_bag
from kernel_constrained.configuration import from_flat, read_parameter_file
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.perception.intake import Intake
from kernel_constrained.perception.node_config import FilterNodeConfig

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
LIDAR, SCANS = CONFIG / 'filter_lidar.yaml', CONFIG / 'filter_scans.yaml'


def replayed(start, tmp_path, name, source='lidar', config=LIDAR, drive=None, **parameters):
    """Replay through the filter in lockstep, driven by ``drive``; return the learned model."""
    path = tmp_path / f'{name}.npz'
    process = start('filter_node', config, **{'model.path': path, 'model.save_at_end': True})
    with ended_by(process):
        replay = start(
            'replay_node', source=source, lockstep=True, wait_timeout=120,
            **{'lidar.epochs': 1, **parameters},
        )  # fmt: skip
        if drive:
            drive()
        assert replay.process.wait(timeout=300) == 0, replay.text
    return ScanFilter.load(path)


def offline(recording, file=LIDAR, **window):
    """Feed the same recording to the same objects without any middleware."""
    config = from_flat(FilterNodeConfig, read_parameter_file(file, 'filter_node'))
    filter_, estimates = ScanFilter(config), []
    intake = Intake(filter_, config)
    for message in recording.messages(**window):
        if message.topic.strip('/') == 'pose':
            intake.pose(decode(message))
        else:
            estimates.append(intake.scan(decode(message)))
        filter_.learn()
    return filter_, estimates


def same(first, second):
    """Whether two filters have learned the same, bit for bit."""
    return (
        first.learner.samples_ == second.learner.samples_
        and np.array_equal(first.learner.dictionary_, second.learner.dictionary_)
        and np.array_equal(first.learner.weights_, second.learner.weights_)
    )


def converted(recording, folder):
    """Write a recording as db3, that as mcap, and that as db3 again."""
    paths = [folder / name for name in ('first.db3', 'second.mcap', 'third.db3')]
    write_bag(recording, paths[0])
    for old, new in pairwise(paths):
        with open_recording(old) as bag:
            write_bag(bag, new)
    return paths[-1]


def test_lockstep_gives_the_offline_result_bit_for_bit_at_every_rate(start, tmp_path):
    with LidarRecording(epochs=1) as recording:
        reference, _ = offline(recording)
        part, _ = offline(recording, start_offset=3.0, duration=4.0)
        bag = converted(recording, tmp_path)
    assert reference.learner.samples_ == 179
    assert part.learner.samples_ == 40
    for name, source, parameters, expected in [
        ('unpaced', 'lidar', {'rate': 0.0}, reference),
        ('paced', 'lidar', {'rate': 20.0, 'clock': True}, reference),
        ('real time', 'lidar', {'rate': 1.0, 'start_offset': 3.0, 'duration': 4.0}, part),
        ('events', 'lidar', {'rate': 0.0, 'executor': 'events'}, reference),
        ('bag', bag, {'rate': 0.0}, reference),
        ('bag again', bag, {'rate': 0.0}, reference),
    ]:
        assert same(replayed(start, tmp_path, name, source, **parameters), expected), name


def test_controls_in_lockstep_leave_the_offline_result_bit_for_bit(probe, start, tmp_path):
    """Started in pause, stepped, sought to the start before anything was played, and resumed."""
    with LidarRecording(epochs=1) as recording:
        reference, _ = offline(recording)

    def call(name):
        return probe.call(Trigger, f'replay_node/{name}')

    def drive():
        assert call('seek').success
        steps = 0
        end = time.monotonic() + 120
        while steps < 7 and time.monotonic() < end:
            steps += call('play_next').success
        assert call('is_paused').success
        assert call('resume').success

    model = replayed(start, tmp_path, 'driven', drive=drive, rate=0.0, start_paused=True)
    assert same(model, reference)


def test_scans_with_poses_give_the_offline_result_bit_for_bit(start, tmp_path):
    with made_log(tmp_path, 60) as recording:
        reference, _ = offline(recording, SCANS)
        bag = converted(recording, tmp_path)
    assert reference.learner.samples_ == 59
    for name, source, rate in (('log', tmp_path / 'made.log', 0.0), ('bag', bag, 20.0)):
        model = replayed(start, tmp_path, name, source, SCANS, rate=rate)
        assert same(model, reference), name


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
    assert 'range: 201 messages declared, 201 read, 201 published' in replay.text
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
    assert 0.5 < time.monotonic() - begun < 8.0, '10 s at rate 10, and time to end'
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
        ({'rate': -1.0}, 2, 'rate must be a number from 0 to 1e+06'),
        ({'rate': '.inf'}, 2, 'rate must be a number from 0 to 1e+06'),
        ({'start_offset': 999.0}, 2, 'lidar: start_offset 999 s lies beyond its end at 181.1 s'),
        ({'remap': '[range=front]'}, 2, 'remap must hold entries like'),
        ({'remap': '["range:=a b"]'}, 2, 'remap: range cannot be played: Invalid topic name'),
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
    replay = start(
        'replay_node', rate=0.0, wait_timeout=0.5, topics='[]', remap='[]', **{'lidar.epochs': 1}
    )
    assert replay.process.wait(timeout=60) == 0, replay.text
    assert 'nobody listens' in replay.text
    assert '201 published' in replay.text


def made_log(folder, count):
    """Open a CARMEN log of a robot that goes ahead; every ninth beam has no return."""
    line = 'FLASER 180 {} {x:.1f} 2.0 0.5 {x:.1f} 2.0 0.5 {t} host {t}\n'
    rng = np.random.default_rng(0)
    with (folder / 'made.log').open('w') as log:
        for i in range(count):
            ranges = rng.uniform(1.0, 20.0, 180)
            ranges[::9] = 81.83
            beams = ' '.join(f'{r:.2f}' for r in ranges)
            log.write(line.format(beams, x=0.3 * i, t=i * 0.25 + 1.5))
    return open_recording(folder / 'made.log')


def test_a_robot_log_becomes_scans_with_infinities(probe, start, tmp_path):
    """Codes for no return are +inf on the wire (REP-117)."""
    made_log(tmp_path, 40).close()
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


def test_what_was_published_for_late_subscribers_is_recorded_and_stays_so(probe, start, tmp_path):
    probe.node.create_publisher(String, 'map_name', LATCHED).publish(String(data='attic'))
    path = tmp_path / 'recording.mcap'
    recorder = start('record_node', destination=path, topics='[map_name]')
    probe.wait(lambda: 'recording 1 topics' in recorder.text, 60, 'the recorder')
    probe.spin(0.5)
    assert recorder.end() == 0, recorder.text
    with open_recording(path) as recording:
        assert recording.topics['/map_name'].transient_local
        (message,) = recording.messages()
    assert decode(message).data == 'attic'


@pytest.mark.parametrize(
    'profile', [qos_profile_sensor_data, LATCHED], ids=['best effort', 'latched']
)
def test_a_publisher_that_comes_after_its_consumer_is_recorded(probe, start, tmp_path, profile):
    heard = probe.collect(String, 'said', profile)
    path = tmp_path / 'recording.mcap'
    recorder = start('record_node', destination=path, topics='[said, ready]')
    # with the one topic found, it has seen that the other has a consumer only
    ready = probe.node.create_publisher(String, 'ready', 1)
    probe.wait(ready.get_subscription_count, DISCOVERY, 'a subscription to ready')
    probe.spin(0.5)
    said = probe.node.create_publisher(String, 'said', profile)
    if profile is LATCHED:
        said.publish(String(data='before'))
    probe.wait(lambda: 'recording 2 topics' in recorder.text, DISCOVERY, 'the recorder')
    said.publish(String(data='after'))
    probe.wait(lambda: heard and heard[-1].data == 'after', what='the message')
    probe.spin(0.5)
    assert recorder.end() == 0, recorder.text
    with open_recording(path) as recording:
        recorded = [decode(message).data for message in recording.messages()]
        assert recording.topics['/said'].transient_local == (profile is LATCHED)
    assert recorded == [message.data for message in heard]


def test_of_a_topic_that_nobody_publishes_the_recorder_says_so_at_the_end(probe, start, tmp_path):
    path = tmp_path / 'recording.mcap'
    recorder = start('record_node', destination=path, topics='[said, nobody]')
    said = probe.publisher(String, 'said')
    said.publish(String(data='once'))
    probe.wait(lambda: said.wait_for_all_acked(Duration(seconds=1)), what='its receipt')
    probe.spin(0.5)
    assert recorder.end() == 0, recorder.text
    assert f'recorded {path}: /nobody: 0, /said: 1' in recorder.text
