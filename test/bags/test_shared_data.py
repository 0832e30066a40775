# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""All shared bags and logs: what becomes of each."""

import pytest

from kernel_constrained.bags import open_recording, RecordingError

# name, messages, first stamp, last stamp (None: not looked at)
READ = [
    ('bags/empty', 0, 0, 0),
    ('bags/no_metadata_split_db3', 3177, 1616653333034080451, 1616653339386193357),
    ('bags/no_metadata_split_mcap', 3177, 1616653333034080451, 1616653339386193357),
    ('bags/qos_mismatch_talker', 20, 1585866235112411371, 1585866239643508139),
    ('bags/split_mcap', 6074, 1000, 2998),
    ('bags/zstd_file_compression', 775, 1604356909418673946, 1604357100419831952),
    ('bags/zstd_message_compression', 1127, 1604581357697556242, 1604581542133285933),
    ('bags/no_metadata_split_mcap/multiple_files_0.mcap', 1324, 1616653333034080451, None),
    ('bags/zstd_message_compression/message_compression_3.db3', 27, 1604581538133709023, None),
    ('bags/zstd_file_compression/file_compression_0.db3.zstd', 249, 1604356909418673946, None),
    ('scans/aces-corrected.log.gz', 880, None, None),
    ('scans/intel-corrected.log.gz', 1820, None, None),
    ('scans/orebro-corrected.log.gz', 474, 10**9, 237 * 10**9),
]
REFUSED = [
    ('bags/ros1', 'ROS 1 bag'),
    ('bags/ros1/rosbag_v2_test.bag', 'ROS 1 bag'),
    ('bags/unknown_serialization', 'wrong_format'),
    ('bags/unknown_serialization/wrong_rmw_test_0.mcap', 'wrong_format'),
    ('bags', 'a folder of 8 rosbag2 folders (empty, no_metadata_split_db3'),
    ('scans', 'a folder without a rosbag2'),
    ('PROVENANCE.md', "text that begins with '# Where the data comes"),
    ('maps/narrow_graph.pgm', 'not a recording by its name'),
]


@pytest.mark.parametrize(('name', 'count', 'start', 'end'), READ)
def test_recording_is_read_whole_and_in_order(shared_data, name, count, start, end):
    with open_recording(shared_data(name)) as recording:
        messages = list(recording.messages())
        assert len(messages) == sum(topic.count for topic in recording.topics.values()) == count
        assert start in (None, recording.start)
        assert end in (None, recording.end)
        assert not recording.losses
        assert not (recording.warnings and name.startswith('bags'))
    order = [(message.stamp, message.topic) for message in messages]
    assert order == sorted(order)
    assert all(message.data[:2] == b'\x00\x01' for message in messages), 'CDR, not compressed'
    if messages:
        assert (messages[0].stamp, messages[-1].stamp) == (recording.start, recording.end)


@pytest.mark.parametrize(('name', 'reason'), REFUSED)
def test_what_is_no_recording_of_ours_is_refused_by_what_it_is(shared_data, name, reason):
    path = shared_data(name)
    with pytest.raises(RecordingError) as caught:
        open_recording(path)
    assert reason in str(caught.value)
    assert '\n' not in str(caught.value)


def test_every_shared_bag_and_log_is_in_the_table(shared_data):
    listed = {name for name, *_ in READ + REFUSED}
    for folder in ('bags', 'scans'):
        for path in shared_data(folder).iterdir():
            assert f'{folder}/{path.name}' in listed


@pytest.mark.parametrize('name', ['bags/split_mcap', 'bags/no_metadata_split_db3'])
@pytest.mark.parametrize('which', [0, 1, 2])
def test_split_that_is_cut_in_half_leaves_the_others_and_is_stated(
    shared_data, tmp_path, name, which
):
    for path in shared_data(name).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    file = sorted(path for path in tmp_path.iterdir() if path.suffix != '.yaml')[which]
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 8])
    with open_recording(shared_data(name)) as whole, open_recording(tmp_path) as recording:
        messages = list(recording.messages())
        assert 0.5 * whole_count(whole) < len(messages) < whole_count(whole)
        assert set(messages) <= set(whole.messages())
        assert any(file.name in loss for loss in recording.losses)


def whole_count(recording):
    return sum(topic.count for topic in recording.topics.values())
