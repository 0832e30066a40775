# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Reading rosbag2."""

import shutil
import sqlite3
import sys

import pytest

from kernel_constrained.bags import open_recording, RecordingError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FIXTURES = [
    ('no_metadata_split_mcap', 3177, 1616653333034080451, 1616653339386193357),
    ('no_metadata_split_db3', 3177, 1616653333034080451, 1616653339386193357),
    ('split_mcap', 6074, 1000, 2998),
    ('zstd_file_compression', 775, 1604356909418673946, 1604357100419831952),
    ('zstd_message_compression', 1127, 1604581357697556242, 1604581542133285933),
    ('qos_mismatch_talker', 20, 1585866235112411371, 1585866239643508139),
    ('empty', 0, 0, 0),
    ('no_metadata_split_mcap/multiple_files_0.mcap', 1324, 1616653333034080451, None),
    ('zstd_message_compression/message_compression_3.db3', 27, 1604581538133709023, None),
    ('zstd_file_compression/file_compression_0.db3.zstd', 249, 1604356909418673946, None),
]
REFUSED = [
    ('unknown_serialization', 'wrong_format'),
    ('unknown_serialization/wrong_rmw_test_0.mcap', 'wrong_format'),
    ('ros1', 'ROS 1 bag'),
    ('ros1/rosbag_v2_test.bag', 'ROS 1 bag'),
]


@pytest.mark.parametrize(('name', 'count', 'start', 'end'), FIXTURES)
def test_recorded_bags_are_read_whole_and_in_order(shared_data, name, count, start, end):
    with open_recording(shared_data(f'bags/{name}')) as recording:
        messages = list(recording.messages())
        assert len(messages) == sum(topic.count for topic in recording.topics.values()) == count
        assert recording.start == start
        assert end in (None, recording.end)
        assert not recording.warnings
    order = [(message.stamp, message.topic) for message in messages]
    assert order == sorted(order)
    assert all(message.data[:2] == b'\x00\x01' for message in messages), 'CDR, not compressed'
    if messages:
        assert (messages[0].stamp, messages[-1].stamp) == (recording.start, recording.end)


@pytest.mark.parametrize(('name', 'reason'), REFUSED)
def test_recorded_bags_that_are_none_of_ours_are_refused_by_name(shared_data, name, reason):
    with pytest.raises(RecordingError, match=reason) as caught:
        open_recording(shared_data(f'bags/{name}'))
    assert '\n' not in str(caught.value)


def test_messages_of_one_stamp_are_ordered_by_topic_then_by_place(bag):
    path = bag(('b', 5, b'5'), ('a', 5, b'3'), ('b', 5, b'4'), ('a', 4, b'1'), ('a', 5, b'2'))
    with open_recording(path) as recording:
        found = [message.data for message in recording.messages()]
    assert found == [b'1', b'3', b'2', b'5', b'4']


def test_splits_that_overlap_are_merged(bag, tmp_path):
    first = bag(('b', 1, b'0'), ('b', 5, b'2'), ('b', 9, b'5'), name='x_0.mcap')
    second = bag(('a', 4, b'1'), ('a', 9, b'4'), ('b', 7, b'3'), name='x_1.mcap')
    third = bag(('a', 20, b'6'), name='x_10.mcap')
    folder = tmp_path / 'folder'
    folder.mkdir()
    for file in (third, second, first):
        shutil.move(file, folder)
    with open_recording(folder) as recording:
        assert b''.join(message.data for message in recording.messages()) == b'0123456'
        assert (recording.start, recording.end) == (1, 20)
        assert recording.topics['b'].count == 4


def test_splits_are_in_the_order_of_their_numbers(bag, tmp_path):
    folder = tmp_path / 'folder'
    folder.mkdir()
    for number in (10, 2):
        name = f'x_{number}.mcap'
        shutil.move(bag(('a', 5, str(number).encode()), name=name), folder)
    with open_recording(folder) as recording:
        assert [message.data for message in recording.messages()] == [b'2', b'10']


def test_window_is_half_open_and_relative_to_the_start(bag):
    second = 10**9
    path = bag(*(('a', (10 + index) * second, bytes([index])) for index in range(6)))
    with open_recording(path) as recording:
        window = recording.messages(start_offset=1.0, duration=3.0)
        assert [message.data[0] for message in window] == [1, 2, 3]
        rest = recording.messages(start_offset=4.0)
        assert [message.data[0] for message in rest] == [4, 5]


@pytest.mark.parametrize('window', [(-1.0, 1.0), (0.0, 0.0), (float('nan'), 1.0), (0.0, -2.0)])
def test_window_that_is_none_is_refused_at_once(bag, window):
    recording = open_recording(bag(('a', 1, b'')))
    with recording, pytest.raises(RecordingError, match='start_offset must be finite'):
        recording.messages(None, *window)


@pytest.mark.parametrize('topics', [['/scan'], ['scan'], 'scan'])
def test_topics_are_selected_with_or_without_the_slash(bag, topics):
    with open_recording(bag(('/scan', 1, b'1'), ('/b', 2, b'2'))) as recording:
        assert [message.topic for message in recording.messages(topics)] == ['/scan']


def test_unknown_topic_is_refused_and_the_known_are_named(bag):
    recording = open_recording(bag(('/a', 1, b''), ('/b', 2, b'')))
    with recording, pytest.raises(RecordingError, match='no topic scan; it holds /a, /b'):
        recording.messages(['scan'])


def test_messages_can_be_read_again(bag):
    with open_recording(bag(('a', 1, b'1'), ('a', 2, b'2'))) as recording:
        assert list(recording.messages()) == list(recording.messages())


def test_compressed_file_without_metadata_is_read(bag, tmp_path):
    path = bag(('a', 1, b'1'), name='x.mcap')
    folder = tmp_path / 'folder'
    folder.mkdir()
    (folder / 'x.mcap.zstd').write_bytes(zstd.compress(path.read_bytes()))
    with open_recording(folder) as recording:
        assert [message.data for message in recording.messages()] == [b'1']


def test_unknown_message_type_is_read_as_bytes(bag):
    path = bag(('a', 1, b'\x00\x01\x00\x00rest'), name='x.db3')
    with sqlite3.connect(path) as database:
        database.execute("UPDATE topics SET type = 'my_msgs/msg/Thing'")
        database.execute('DELETE FROM message_definitions')
    with open_recording(path) as recording:
        (message,) = recording.messages()
    assert message.type == 'my_msgs/msg/Thing'
    assert message.data == b'\x00\x01\x00\x00rest'


def test_counts_that_metadata_gets_wrong_are_noticed(bag):
    path = bag(('a', 1, b'1'), ('a', 2, b'2'))
    metadata = path / 'metadata.yaml'
    metadata.write_text(metadata.read_text().replace('message_count: 2', 'message_count: 3'))
    with open_recording(path) as recording:
        assert recording.topics['a'].count == 3
        assert recording.warnings == ['a: metadata.yaml declares 3 messages, the files 2']


def test_journal_that_was_never_merged_is_noticed(bag):
    path = bag(('a', 1, b'1'), name='x.db3')
    path.with_name('x.db3-wal').write_bytes(b'12345')
    with open_recording(path) as recording:
        assert 'x.db3-wal holds 5 bytes' in recording.warnings[0]


@pytest.mark.parametrize('name', ['x.mcap', 'x.db3'])
def test_cut_off_file_is_an_error_and_not_a_traceback(bag, name):
    path = bag(*(('a', index, bytes(1000)) for index in range(99)), name=name)
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(RecordingError) as caught, open_recording(path) as recording:
        list(recording.messages())
    assert '\n' not in str(caught.value)


def test_damage_found_while_reading_is_an_error_and_not_a_traceback(bag):
    path = bag(*(('a', index, bytes(1000)) for index in range(99)), name='x.mcap')
    content = bytearray(path.read_bytes())
    content[50_000:60_000] = b'\xff' * 10_000
    path.write_bytes(content)
    with open_recording(path) as recording, pytest.raises(RecordingError, match='damaged'):
        list(recording.messages())


def test_unreadable_metadata_is_an_error_in_one_line(bag):
    path = bag(('a', 1, b'1'))
    (path / 'metadata.yaml').write_text('a: [1,\nb: }\n')
    with pytest.raises(RecordingError, match='Could not load YAML') as caught:
        open_recording(path)
    assert '\n' not in str(caught.value)


def test_missing_split_is_an_error_that_names_it(bag):
    path = bag(('a', 1, b'1'))
    (path / 'bag.mcap').rename(path / 'renamed.mcap')
    with pytest.raises(RecordingError, match=r'bag\.mcap'):
        open_recording(path)
