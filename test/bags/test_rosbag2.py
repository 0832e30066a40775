# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Reading rosbag2."""

import random
import shutil
import sqlite3
import sys

import pytest
from made_mcap import write_mcap

from kernel_constrained.bags import open_recording, RecordingError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


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


@pytest.mark.parametrize('name', ['x.mcap', 'x.db3'])
def test_window_beyond_all_time_is_a_window(bag, name):
    with open_recording(bag(('a', 1, b''), name=name)) as recording:
        assert len(list(recording.messages(duration=1e15))) == 1
        assert not list(recording.messages(start_offset=1e15))
        assert not recording.losses + recording.warnings


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
        assert 'a: the metadata declare 3 messages, the files 2' in recording.warnings
        assert 'bag.mcap: 1 of 3 messages lost, by the metadata' in recording.losses
        list(recording.messages())
        assert 'a: 3 messages declared, 2 read' in recording.losses


def test_losses_are_stated_once_however_often_the_recording_is_read(bag):
    path = bag(('a', 1, b'1'), ('a', 2, b'2'))
    metadata = path / 'metadata.yaml'
    metadata.write_text(metadata.read_text().replace('message_count: 2', 'message_count: 3'))
    with open_recording(path) as recording:
        list(recording.messages())
        losses = list(recording.losses)
        list(recording.messages())
        assert recording.losses == losses


def test_window_or_other_topics_are_no_loss(bag):
    with open_recording(bag(('a', 1, b'1'), ('a', 2 * 10**9, b'2'), ('b', 3, b''))) as recording:
        assert len(list(recording.messages(duration=1.0))) == 2
        assert len(list(recording.messages(['a'], start_offset=1.0))) == 1
        assert len(list(recording.messages(['b']))) == 1
        assert not recording.losses


def test_counts_are_those_of_the_newest_iteration(bag):
    with open_recording(bag(('a', 1, b'1'), ('b', 2, b'2'), ('a', 3, b'3'))) as recording:
        list(recording.messages())
        assert recording.counts == {'a': 2, 'b': 1}
        messages = recording.messages(['a'])
        next(messages)
        assert recording.counts == {'a': 1}


def test_two_iterations_at_a_time_do_not_disturb_each_other(bag):
    for name in ('x.mcap', 'x.db3'):
        with open_recording(bag(('a', 1, b'1'), ('a', 2, b'2'), name=name)) as recording:
            pairs = list(zip(recording.messages(), recording.messages()))
        assert [first.data for first, _ in pairs] == [b'1', b'2']
        assert all(first == second for first, second in pairs)


@pytest.mark.parametrize('suffix', ['mcap', 'db3'])
def test_missing_split_is_a_loss_and_the_others_are_read(split_bag, suffix):
    (split_bag(suffix) / f'bag_1.{suffix}').unlink()
    with open_recording(split_bag.path) as recording:
        assert [message.stamp for message in recording.messages()] == [0, 1, 4, 5]
        assert recording.losses == [
            f'bag_1.{suffix}: missing; 2 messages lost',
            'a: 6 messages declared, 4 read',
        ]


@pytest.mark.parametrize('content', [b'', b'no bag at all' * 99, b'version https://git-lfs.x'])
@pytest.mark.parametrize('suffix', ['mcap', 'db3'])
def test_split_that_is_none_is_a_loss_and_the_others_are_read(split_bag, suffix, content):
    (split_bag(suffix) / f'bag_1.{suffix}').write_bytes(content)
    with open_recording(split_bag.path) as recording:
        assert [message.stamp for message in recording.messages()] == [0, 1, 4, 5]
        assert f'bag_1.{suffix}' in recording.losses[0]
        assert recording.losses[-1] == 'a: 6 messages declared, 4 read'


def test_folder_of_which_no_split_can_be_read_is_refused(split_bag):
    for number in range(3):
        (split_bag('mcap') / f'bag_{number}.mcap').write_bytes(b'nothing')
    with pytest.raises(RecordingError, match=r'bag_0\.mcap: not an mcap file but text'):
        open_recording(split_bag.path)


@pytest.mark.parametrize(
    'text', ['a: [1,\nb: }\n', '', '- 1\n', 'rosbag2_bagfile_information: {}']
)
def test_damaged_metadata_is_left_aside_with_a_warning(bag, text):
    path = bag(('a', 1, b'1'))
    (path / 'metadata.yaml').write_text(text)
    with open_recording(path) as recording:
        assert len(list(recording.messages())) == 1
        (warning,) = recording.warnings
        assert warning.startswith('metadata.yaml is left aside: ')
        assert '\n' not in warning
        assert not recording.losses


def test_metadata_about_other_files_are_left_aside_with_a_warning(bag):
    path = bag(('a', 1, b'1'))
    (path / 'bag.mcap').rename(path / 'renamed.mcap')
    with open_recording(path) as recording:
        assert len(list(recording.messages())) == 1
        assert 'it lists bag.mcap, the folder holds renamed.mcap' in recording.warnings[0]


def test_file_that_metadata_do_not_list_is_not_read_and_named(bag, tmp_path):
    path = bag(('a', 1, b'1'))
    shutil.copy(bag(('b', 1, b'1'), name='other.db3'), path)
    with open_recording(path) as recording:
        assert set(recording.topics) == {'a'}
        assert 'does not list other.db3' in recording.warnings[0]


@pytest.mark.parametrize('suffix', ['mcap', 'db3'])
def test_compressed_file_that_is_cut_off_is_read_as_far_as_it_goes(bag, tmp_path, suffix):
    rng = random.Random(0)
    path = bag(*(('a', index, rng.randbytes(5000)) for index in range(300)), name=f'x.{suffix}')
    packed = zstd.compress(path.read_bytes())
    (tmp_path / f'y.{suffix}.zstd').write_bytes(packed[: len(packed) // 2])
    with open_recording(tmp_path / f'y.{suffix}.zstd') as recording:
        found = list(recording.messages())
        assert len(found) > 100
        assert f'y.{suffix}.zstd: it is cut off' in recording.losses[0]
    with open_recording(path) as recording:
        assert found == list(recording.messages())[: len(found)]


def compressed_bag(bag, *, damage):
    contents = [zstd.compress(b'\x00\x01\x00\x00' + bytes([index])) for index in range(5)]
    contents[2] = damage(contents[2])
    path = bag(*(('a', index, content) for index, content in enumerate(contents)))
    metadata = path / 'metadata.yaml'
    text = metadata.read_text().replace("compression_mode: ''", 'compression_mode: MESSAGE')
    metadata.write_text(text.replace("compression_format: ''", 'compression_format: zstd'))
    return path


@pytest.mark.parametrize(
    'damage',
    [lambda data: data[:-1], lambda data: data[:5], lambda data: b'\xff' + data[1:]],
    ids=['cut', 'head', 'signature'],
)
def test_message_that_does_not_decompress_is_a_loss_and_the_others_are_read(bag, damage):
    with open_recording(compressed_bag(bag, damage=damage)) as recording:
        assert [message.data[-1] for message in recording.messages()] == [0, 1, 3, 4]
        assert recording.losses == [
            'a: 1 messages that do not decompress',
            'a: 5 messages declared, 4 read',
        ]


def test_topic_in_another_serialization_is_left_out_and_refused_by_name(bag):
    path = bag(('/a', 1, b'1'), ('/odd', 2, b'2'), name='x.db3')
    with sqlite3.connect(path) as database:
        database.execute("UPDATE topics SET serialization_format = 'json' WHERE name = '/odd'")
    with open_recording(path) as recording:
        assert [message.topic for message in recording.messages()] == ['/a']
        assert "topic /odd has the serialization format 'json'" in recording.losses[0]
        assert '1 messages are left out' in recording.losses[0]
        with pytest.raises(RecordingError, match='json'):
            recording.messages(['odd'])


@pytest.mark.parametrize(
    ('qos', 'expected'),
    [
        ('- history: 3\n  durability: 1\n', True),
        ('- durability: 2\n- durability: 1\n', True),
        ('- history: keep_last\n  durability: transient_local\n', True),
        ('[{"durability": "transient_local"}]', True),
        ('- durability: 2\n', False),
        ('- durability: volatile\n', False),
        ('- durability: 10\n', False),
        ('', False),
        ('}{ no yaml: [', False),
    ],
)
def test_transient_local_is_what_any_recorded_publisher_offered(bag, qos, expected):
    path = bag(('a', 1, b'1'), name='x.db3')
    with sqlite3.connect(path) as database:
        database.execute('UPDATE topics SET offered_qos_profiles = ?', [qos])
    with open_recording(path) as recording:
        assert recording.topics['a'].transient_local is expected


def test_transient_local_is_read_from_mcap(tmp_path):
    path = write_mcap(tmp_path / 'x.mcap', [('a', 1, b'1')])
    with open_recording(path) as recording:
        assert recording.topics['a'].transient_local
