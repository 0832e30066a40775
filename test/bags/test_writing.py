# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Writing rosbag2."""

import sqlite3

import numpy as np
import pytest
from log_lines import flaser

from kernel_constrained.bags import (
    BagWriter,
    Message,
    open_recording,
    RecordingError,
    write_bag,
)

STRING = 'std_msgs/msg/String'
NAMES = ['bag', 'bag.mcap', 'bag.db3']


def carmen(log):
    ranges = np.linspace(1.0, 6.0, 181)
    return open_recording(log(*(flaser(stamp, ranges, (stamp, 0, 9)) for stamp in (1, 3, 2))))


@pytest.mark.parametrize('name', NAMES)
def test_lidar_table_comes_back_byte_for_byte(tmp_path, name):
    check_round_trip(open_recording('lidar', epochs=2), tmp_path / 'new' / name)


@pytest.mark.parametrize('name', NAMES)
def test_carmen_log_comes_back_byte_for_byte(tmp_path, log, name):
    check_round_trip(carmen(log), tmp_path / 'new' / name)


@pytest.mark.parametrize('name', NAMES)
def test_recorded_log_comes_back_byte_for_byte(tmp_path, shared_data, name):
    recording = open_recording(shared_data('scans/aces-corrected.log.gz'))
    check_round_trip(recording, tmp_path / 'new' / name)


def check_round_trip(recording, destination):
    counts = write_bag(recording, destination)
    assert counts == {name: topic.count for name, topic in recording.topics.items()}
    assert list(destination.parent.iterdir()) == [destination], 'nothing else is left'
    with open_recording(destination) as copy:
        assert list(copy.messages()) == list(recording.messages())
        assert copy.topics == recording.topics
        assert (copy.start, copy.end) == (recording.start, recording.end)
        assert not copy.warnings


def test_suffix_decides_the_storage_and_a_folder_is_mcap(tmp_path):
    for name, head in (('a.mcap', b'\x89MCAP'), ('b.db3', b'SQLite format 3')):
        write_bag(open_recording('lidar', epochs=1), tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(head)
    write_bag(open_recording('lidar', epochs=1), tmp_path / 'c')
    assert {path.name for path in (tmp_path / 'c').iterdir()} == {'c.mcap', 'metadata.yaml'}


def test_argument_decides_the_storage_of_a_folder(tmp_path):
    write_bag(open_recording('lidar', epochs=1), tmp_path / 'c', 'db3')
    assert {path.name for path in (tmp_path / 'c').iterdir()} == {'c.db3', 'metadata.yaml'}


@pytest.mark.parametrize(('name', 'storage'), [('a.mcap', 'db3'), ('a', 'bag')])
def test_storage_that_contradicts_the_suffix_or_is_none_is_refused(tmp_path, name, storage):
    with pytest.raises(RecordingError, match='storage must be mcap or db3'):
        BagWriter(tmp_path / name, storage)


@pytest.mark.parametrize('name', NAMES)
def test_existing_destination_is_refused_and_kept(tmp_path, name):
    (tmp_path / name).write_text('precious')
    with pytest.raises(RecordingError, match='exists already'):
        write_bag(open_recording('lidar', epochs=1), tmp_path / name)
    assert (tmp_path / name).read_text() == 'precious'


@pytest.mark.parametrize('name', NAMES)
def test_failure_leaves_nothing_behind(tmp_path, name):
    with pytest.raises(KeyError), BagWriter(tmp_path / name) as writer:
        writer.write(Message('a', STRING, 1, b'1'))
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_type_without_a_known_definition_is_refused_by_name(tmp_path):
    message = Message('a', 'my_msgs/msg/Thing', 1, b'1')
    refused = pytest.raises(RecordingError, match='my_msgs/msg/Thing')
    with refused, BagWriter(tmp_path / 'bag') as writer:
        writer.write(message)


@pytest.mark.parametrize(
    ('name', 'stamp', 'other'), [('x.mcap', -5, 'db3'), ('x.db3', 2**63, 'mcap')]
)
def test_stamp_that_the_storage_cannot_hold_is_refused_and_the_other_can(
    tmp_path, name, stamp, other
):
    message = Message('a', STRING, stamp, b'1')
    refused = pytest.raises(RecordingError, match=f'a: .* the stamp {stamp} ns; write {other}')
    with refused, BagWriter(tmp_path / name) as writer:
        writer.write(message)
    assert not list(tmp_path.iterdir())
    with BagWriter(tmp_path / f'x.{other}') as writer:
        writer.write(message)


def test_bag_without_messages_is_readable(tmp_path):
    with BagWriter(tmp_path / 'bag'):
        pass
    with open_recording(tmp_path / 'bag') as recording:
        assert not list(recording.messages())
        assert (recording.start, recording.end) == (0, 0)


def test_recorded_bag_is_copied_whole(tmp_path, shared_data):
    with open_recording(shared_data('bags/split_mcap')) as recording:
        counts = write_bag(recording, tmp_path / 'copy.mcap')
        assert sum(counts.values()) == 6074
        with open_recording(tmp_path / 'copy.mcap') as copy:
            assert list(copy.messages()) == list(recording.messages())


def test_counts_name_topics_without_messages_too(tmp_path, shared_data):
    with open_recording(shared_data('bags/qos_mismatch_talker')) as recording:
        counts = write_bag(recording, tmp_path / 'copy')
    assert counts == {'/parameter_events': 0, '/rosout': 10, '/topic': 10}


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('messages', [[], [Message('/b', STRING, 5, b'\0\1\0\0')]])
def test_topics_without_messages_are_kept(tmp_path, name, messages):
    with BagWriter(tmp_path / 'first', transient_local=['/map']) as writer:
        for topic in ('/map', '/a', '/b'):
            writer.connect(topic, STRING)
        for message in messages:
            writer.write(message)
    with open_recording(tmp_path / 'first') as recording:
        assert set(recording.topics) == {'/map', '/a', '/b'}
        check_round_trip(recording, tmp_path / 'new' / name)
        assert not recording.losses
        write_bag(recording, tmp_path / 'some' / name, topics=['a'])
    with open_recording(tmp_path / 'some' / name) as some:
        assert set(some.topics) == {'/a'}


THING = """# of our own
std_msgs/Header header
Part[] parts
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
================================================================================
MSG: my_msgs/Part
float64 size
"""


@pytest.mark.parametrize('name', NAMES)
def test_definition_that_a_bag_carries_is_carried_over(tmp_path, name):
    things = [Message('/thing', 'my_msgs/msg/Thing', 1, b'\x00\x01\x00\x00'),
              Message('/text', STRING, 2, b'\x00\x01\x00\x00')]  # fmt: skip
    with BagWriter(tmp_path / 'first', definitions={'my_msgs/msg/Thing': THING}) as writer:
        for message in things:
            writer.write(message)
    with open_recording(tmp_path / 'first') as recording:
        write_bag(recording, tmp_path / 'new' / name)
        with open_recording(tmp_path / 'new' / name) as copy:
            assert list(copy.messages()) == list(recording.messages()) == things
            assert copy.definitions == recording.definitions
            assert 'float64 size' in copy.definitions['my_msgs/msg/Thing']


@pytest.mark.parametrize(
    'definition', ['', 'no definition ???', 'my_msgs/Missing part', 'my_msgs/Thing itself']
)
def test_topic_whose_type_nobody_defines_is_a_loss_and_the_others_are_written(
    tmp_path, bag, definition
):
    path = bag(('/a', 1, b'1'), ('/thing', 2, b'2'), name='x.db3')
    with sqlite3.connect(path) as database:
        database.execute("UPDATE topics SET type = 'my_msgs/msg/Thing' WHERE name = '/thing'")
        database.execute(
            "INSERT INTO message_definitions VALUES (9, 'my_msgs/msg/Thing', 'ros2msg', ?, '')",
            [definition],
        )
    with open_recording(path) as recording:
        counts = write_bag(recording, tmp_path / 'copy.mcap')
        assert counts == {'/a': 1, '/thing': 0}
        assert recording.losses == [
            '/thing: 1 messages not written, since the definition of my_msgs/msg/Thing is unknown'
        ]


@pytest.mark.parametrize('name', NAMES)
def test_topics_that_reach_late_subscribers_stay_so(tmp_path, name):
    with BagWriter(tmp_path / name, transient_local=['/map']) as writer:
        writer.write(Message('/map', STRING, 1, b'1'))
        writer.write(Message('/scan', STRING, 1, b'1'))
    with open_recording(tmp_path / name) as recording:
        assert recording.topics['/map'].transient_local
        assert not recording.topics['/scan'].transient_local
        write_bag(recording, tmp_path / 'copy')
        with open_recording(tmp_path / 'copy') as copy:
            assert copy.topics == recording.topics


def test_topics_that_are_asked_for_are_written(tmp_path, bag):
    with open_recording(bag(('/a', 1, b'1'), ('/b', 2, b'2'))) as recording:
        assert write_bag(recording, tmp_path / 'copy', topics=['b']) == {'/b': 1}
        with open_recording(tmp_path / 'copy') as copy:
            assert set(copy.topics) == {'/b'}


def test_recording_of_which_nothing_can_be_read_writes_nothing(tmp_path, bag):
    path = bag(('/a', 1, bytes(2000)), name='x.mcap')
    path.write_bytes(path.read_bytes()[:1500])
    with open_recording(path) as recording, pytest.raises(RecordingError, match='cut off'):
        write_bag(recording, tmp_path / 'copy.mcap')
    assert not (tmp_path / 'copy.mcap').exists()


def test_a_wrong_byte_in_an_mcap_that_was_written_is_noticed(tmp_path):
    path = tmp_path / 'x.mcap'
    with BagWriter(path) as writer:
        for i in range(3000):
            writer.write(Message('/a', STRING, i + 1, bytes(1000)))
    with open_recording(path) as recording:
        assert len(list(recording.messages())) == 3000
        assert not recording.warnings
        assert not recording.losses
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with open_recording(path) as recording:
        found = list(recording.messages())
    assert 1000 < len(found) < 3000, 'the other chunks are delivered'
    assert all(not any(message.data) for message in found)
    assert 'its checksum is wrong' in recording.losses[0]


def test_the_index_of_an_mcap_that_was_written_has_a_checksum(tmp_path):
    path = tmp_path / 'x.mcap'
    with BagWriter(path) as writer:
        writer.write(Message('/a', STRING, 1, b'1'))
    content = bytearray(path.read_bytes())
    content[-60] ^= 1
    path.write_bytes(content)
    with open_recording(path) as recording:
        assert len(list(recording.messages())) == 1
        assert 'rebuilt' in recording.warnings[0]
