# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Writing rosbag2."""

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
