# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""replay_node's services, clock, names and qualities of service; how it ends."""

import math
import signal
import time

import pytest
from geometry_msgs.msg import PoseStamped
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile
from rclpy.serialization import serialize_message
from rosbags.rosbag2 import Writer
from rosbags.typesys import get_types_from_msg, get_typestore, Stores
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Range
from std_srvs.srv import Trigger

from kernel_constrained.bags import LidarRecording, write_bag
from kernel_constrained.bags.recording import Message
from kernel_constrained.bags.writing import BagWriter

RANGE = 'sensor_msgs/msg/Range'
# 20 s: ranges ten times a second, from second 1 on.
SHORT = {'topics': '[range]', 'lidar.epochs': 1}
LATE = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def seconds(message):
    """Time of a message from the start of the LIDAR recording, in tenths of a second."""
    stamp = message.clock if isinstance(message, Clock) else message.header.stamp
    return round(10 * (stamp.sec + stamp.nanosec * 1e-9 - 1.0), 6)


class Player:
    """The services of a replay in a test, and what it plays."""

    def __init__(self, probe, start, **parameters):
        self.probe = probe
        self.ranges = probe.collect(Range, 'range')
        self.process = start('replay_node', **{**SHORT, **parameters})

    def call(self, name):
        return self.probe.call(Trigger, f'replay_node/{name}')

    def wait_for(self, count):
        self.probe.wait(lambda: len(self.ranges) >= count, what=f'message {count}')

    def wait_until_paused_at_the_start(self):
        """Begun: from then on a step is possible."""
        self.probe.wait(lambda: self.call('play_next').success, what='the first step')

    def set(self, name, value):
        number = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
        request = SetParametersAtomically.Request(parameters=[Parameter(name=name, value=number)])
        service = 'replay_node/set_parameters_atomically'
        return self.probe.call(SetParametersAtomically, service, request).result

    def end(self):
        self.probe.wait(lambda: self.process.process.poll() is not None, 60, 'the end')
        return self.process.process.returncode


@pytest.fixture
def play(probe, start):
    return lambda **parameters: Player(probe, start, **parameters)


# -- services -------------------------------------------------------------------------------


def test_pause_holds_and_resume_goes_on_without_a_gap_or_a_flood(play, probe):
    player = play(rate=10.0)
    player.wait_for(5)
    answer = player.call('pause')
    assert answer.success
    assert answer.message.startswith('paused at ')
    assert 'next is range' in answer.message
    probe.spin(0.3)
    count = len(player.ranges)
    probe.spin(1.0)
    assert len(player.ranges) == count < 201
    assert player.call('is_paused').success
    refusal = player.call('toggle_paused')
    assert refusal.message.startswith('playing at ')
    assert not player.call('is_paused').success
    assert player.end() == 0, player.process.text
    assert [seconds(m) for m in player.ranges] == list(range(201))
    assert 'range: 201 messages declared, 201 read, 201 published' in player.process.text


def test_a_step_plays_one_message_in_pause_only_and_says_which(play, probe):
    player = play(rate=1.0, start_paused=True)
    player.wait_until_paused_at_the_start()
    answer = player.call('play_next')
    assert answer.success
    assert answer.message.startswith('message 2 on range, paused at 0.100 s of ')
    player.wait_for(2)
    probe.spin(0.5)
    assert len(player.ranges) == 2
    assert player.call('resume').success
    refusal = player.call('play_next')
    assert not refusal.success
    assert 'call ~/pause first' in refusal.message


def test_seek_goes_where_the_parameter_says_forward_and_backward(play):
    player = play(rate=1.0, start_paused=True)
    player.wait_until_paused_at_the_start()
    for at in (15.0, 5.0):
        assert player.set('seek_to', at).successful
        assert player.call('seek').message.startswith(f'at {at:.3f} s of ')
        player.call('play_next')
    player.set('seek_to', 500.0)
    refusal = player.call('seek')
    assert not refusal.success
    assert 'lies beyond the end of the recording' in refusal.message
    player.call('play_next')
    player.wait_for(4)
    assert [seconds(m) for m in player.ranges] == [0, 150, 50, 51]


def test_at_the_end_in_pause_it_waits_and_can_seek_back(play):
    player = play(rate=0.0, start_paused=True, start_offset=19.9)
    player.wait_until_paused_at_the_start()
    player.call('play_next')
    refusal = player.call('play_next')
    assert not refusal.success
    assert 'nothing left at 20.000 s' in refusal.message
    player.set('seek_to', 19.8)
    assert 'at 19.900 s' in player.call('seek').message, 'the window begins there'
    player.call('resume')
    assert player.end() == 0, player.process.text
    assert [seconds(m) for m in player.ranges] == [199, 200, 199, 200]


def test_seeking_in_a_loop_and_stopping(play):
    player = play(rate=20.0, loop=True, duration=3.0)
    player.wait_for(5)
    player.set('seek_to', 2.5)
    assert player.call('seek').success
    player.wait_for(40)
    assert player.call('stop').message.startswith('stopped at ')
    assert player.end() == 0, player.process.text
    times = [seconds(m) for m in player.ranges]
    jump = times.index(25) if times.index(25) < 30 else 0
    assert times[:jump] == list(range(jump))
    assert times[jump : jump + 15] == [25, 26, 27, 28, 29, *range(10)]


def test_the_rate_changes_while_playing_and_a_wrong_one_is_refused(play):
    player = play(rate=0.1)
    player.wait_for(1)
    for wrong in (-1.0, math.inf):
        assert not player.set('rate', wrong).successful
    assert not player.set('clock_frequency', 1.0).successful
    assert player.set('rate', 0.0).successful
    assert player.end() == 0, player.process.text
    assert len(player.ranges) == 201


# -- /clock ---------------------------------------------------------------------------------


def test_clock_goes_on_between_messages_and_stands_still_in_pause(play, probe):
    clock = probe.collect(Clock, '/clock')
    player = play(rate=1.0, clock=True, clock_frequency=100.0, start_offset=5.0)
    player.wait_for(5)
    player.call('pause')
    probe.spin(0.3)
    times = [seconds(m) for m in clock]
    assert times == sorted(times)
    assert times[0] == 50
    assert len(set(times)) > 2 * len(player.ranges), 'ticks between messages'
    assert max(times) <= seconds(player.ranges[-1]) + 1
    probe.spin(0.5)
    assert len(clock) > len(times), 'for who comes late'
    assert {seconds(m) for m in clock[len(times) :]} == {times[-1]}


def test_a_recorded_clock_is_not_played_beside_our_own(probe, start, tmp_path):
    with BagWriter(tmp_path / 'clock.mcap') as writer:
        for i in range(1, 6):
            pose = PoseStamped()
            pose.header.stamp.sec = i
            recorded = serialize_message(Clock())
            writer.write(Message('/clock', 'rosgraph_msgs/msg/Clock', i * 10**9, recorded))
            writer.write(
                Message('/pose', 'geometry_msgs/msg/PoseStamped', i * 10**9,
                        serialize_message(pose))
            )  # fmt: skip
    clock, poses = probe.collect(Clock, '/clock'), probe.collect(PoseStamped, '/pose')
    replay = start('replay_node', source=tmp_path / 'clock.mcap', rate=0.0, clock=True)
    probe.wait(lambda: replay.process.poll() is not None, 60, 'the end')
    assert replay.process.returncode == 0, replay.text
    probe.spin(0.3)
    assert [m.clock.sec for m in clock] == [1, 1, 2, 3, 4, 5]
    assert len(poses) == 5
    assert '/clock as recorded is not played beside our own' in replay.text


# -- names and qualities of service -----------------------------------------------------------


@pytest.mark.parametrize(
    ('recorded', 'remap', 'ros', 'published'),
    [
        ('/range', {'remap': '["range:=front/range"]'}, (), '/front/range'),
        ('range', {'remap': '["range:=/front/range"]'}, (), '/front/range'),
        ('/range', {}, ('/range', '/front/range'), '/front/range'),
        ('range', {}, ('range', 'front/range'), '/front/range'),
        ('/range', {'remap': '["range:=one"]'}, ('one', 'two'), '/two'),
    ],
)
def test_topics_get_other_names(probe, start, tmp_path, recorded, remap, ros, published):
    with BagWriter(tmp_path / 'named.mcap') as writer:
        for i in range(1, 4):
            writer.write(Message(recorded, RANGE, i * 10**9, serialize_message(Range())))
    ranges = probe.collect(Range, published)
    replay = start(
        'replay_node', remaps=[ros] if ros else [], source=tmp_path / 'named.mcap', rate=0.0,
        **remap,
    )  # fmt: skip
    probe.wait(lambda: replay.process.poll() is not None, 60, 'the end')
    assert replay.process.returncode == 0, replay.text
    probe.spin(0.3)
    assert len(ranges) == 3


def test_what_was_latched_reaches_a_subscriber_that_comes_late(probe, start, tmp_path):
    with BagWriter(tmp_path / 'map.mcap', transient_local=['/map_pose']) as writer:
        for topic, second in (('/map_pose', 1), ('/pose', 2), ('/pose', 900)):
            pose = PoseStamped()
            pose.header.stamp.sec = second
            data = serialize_message(pose)
            writer.write(Message(topic, 'geometry_msgs/msg/PoseStamped', second * 10**9, data))
    poses = probe.collect(PoseStamped, '/pose')
    start('replay_node', source=tmp_path / 'map.mcap', rate=1.0)
    probe.wait(lambda: poses, what='the first pose')
    late = probe.collect(PoseStamped, '/map_pose', LATE)
    probe.wait(lambda: late, what='the pose from before')
    assert late[0].header.stamp.sec == 1


def test_who_keeps_all_holds_the_replay_back_and_loses_nothing(probe, start):
    """More messages than both queues hold, while the subscriber takes none."""
    ranges = []
    keep_all = QoSProfile(history=HistoryPolicy.KEEP_ALL)
    probe.node.create_subscription(Range, 'range', ranges.append, keep_all, raw=True)
    replay = start(
        'replay_node', rate=0.0, ceiling='.inf', topics='[range]',
        **{'lidar.epochs': 75, 'qos_overrides./range.publisher.history': 'keep_all'},
    )  # fmt: skip
    probe.wait(lambda: ranges, what='the first message')
    time.sleep(2.0)
    probe.wait(lambda: replay.process.poll() is not None, 60, 'the end')
    assert replay.process.returncode == 0, replay.text
    probe.wait(lambda: len(ranges) >= 75 * 179 + 22, 60, 'the last message')


# -- the end --------------------------------------------------------------------------------


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_pause(play, number):
    player = play(rate=1.0, start_paused=True)
    player.wait_until_paused_at_the_start()
    assert player.process.end(number) == 0
    assert 'range: 201 messages declared, 2 read, 1 published' in player.process.text


def test_a_recording_without_messages_ends_well(start, tmp_path):
    with Writer(tmp_path / 'empty', version=9) as writer:
        writer.add_connection('/range', RANGE, typestore=get_typestore(Stores.ROS2_JAZZY))
    replay = start('replay_node', source=tmp_path / 'empty', loop=True, wait_timeout=600.0)
    assert replay.process.wait(timeout=60) == 0, replay.text
    assert 'empty: no message to play' in replay.text
    assert '/range: 0 messages declared, 0 read, 0 published' in replay.text


@pytest.mark.parametrize('lockstep', [False, True])
def test_a_loop_over_a_window_goes_on_in_lockstep_too(start, probe, lockstep):
    ranges = probe.collect(Range, 'range')
    filter_ = [start('filter_node', **{'input.type': 'range', 'features.type': 'range',
               'target.type': 'axis'})] if lockstep else []  # fmt: skip
    replay = start(
        'replay_node', rate=50.0, loop=True, start_offset=1.0, duration=0.5, lockstep=lockstep,
        wait_timeout=120.0, topics='[range]', subscribers=1 + len(filter_),
    )  # fmt: skip
    probe.wait(lambda: len(ranges) >= 12, 120, what='the third pass')
    assert [seconds(m) for m in ranges[:12]] == [*range(10, 15), *range(10, 15), 10, 11]
    for process in (replay, *filter_):
        assert process.end() == 0, process.text


def test_a_subscriber_that_hangs_fails_the_replay_and_is_said(probe, start):
    """It keeps all, and takes nothing: the replay can neither go on nor end."""
    ranges = []
    keep_all = QoSProfile(history=HistoryPolicy.KEEP_ALL)
    probe.node.create_subscription(Range, 'range', ranges.append, keep_all, raw=True)
    replay = start(
        'replay_node', rate=0.0, ceiling='.inf', topics='[range]', answer_timeout=1.0,
        **{'lidar.epochs': 75, 'qos_overrides./range.publisher.history': 'keep_all'},
    )  # fmt: skip
    probe.wait(lambda: ranges, what='the first message')
    assert replay.process.wait(timeout=60) == 1, replay.text
    assert 'does a subscriber hang?' in replay.text


def test_what_is_lost_is_said_and_fails(start, tmp_path):
    with LidarRecording(epochs=1) as recording:
        write_bag(recording, tmp_path / 'bag')
    metadata = tmp_path / 'bag' / 'metadata.yaml'
    text = metadata.read_text()
    assert 'message_count: 201' in text
    metadata.write_text(text.replace('message_count: 201', 'message_count: 203'))
    replay = start('replay_node', source=tmp_path / 'bag', rate=0.0, wait_timeout=0.0)
    assert replay.process.wait(timeout=60) == 1, replay.text
    assert 'range: 203 messages declared, 201 read, 201 published' in replay.text
    assert 'pose: 179 messages declared, 179 read, 179 published' in replay.text


def test_a_topic_of_a_type_that_is_not_installed_fails_the_whole_but_not_a_choice(start, tmp_path):
    types = get_typestore(Stores.ROS2_JAZZY)
    types.register(get_types_from_msg('int32 data', 'made_msgs/msg/Odd'))
    with Writer(tmp_path / 'odd', version=9) as writer:
        odd = writer.add_connection('/odd', 'made_msgs/msg/Odd', typestore=types)
        known = writer.add_connection('/range', RANGE, typestore=types)
        writer.write(odd, 10**9, bytes(8))
        writer.write(known, 10**9, serialize_message(Range()))
    for chosen, code in (({}, 1), ({'topics': '[range]'}, 0)):
        replay = start('replay_node', source=tmp_path / 'odd', wait_timeout=0.0, **chosen)
        assert replay.process.wait(timeout=60) == code, replay.text
        assert '/range: 1 messages declared, 1 read, 1 published' in replay.text
        assert ('/odd: no made_msgs/msg/Odd installed, not played' in replay.text) == (code == 1)


def test_a_loss_fails_a_part_too(start, tmp_path):
    with LidarRecording(epochs=1) as recording:
        write_bag(recording, tmp_path / 'whole.mcap')
    data = (tmp_path / 'whole.mcap').read_bytes()
    (tmp_path / 'cut.mcap').write_bytes(data[: len(data) // 2])
    replay = start(
        'replay_node', source=tmp_path / 'cut.mcap', rate=0.0, wait_timeout=0.0, duration=1.0
    )
    assert replay.process.wait(timeout=60) == 1, replay.text
    assert 'ERROR' in replay.text
