# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Which recordings and which topics are meant."""

from pathlib import Path

import pytest
from made_recordings import drive, pose_message, range_message, scan_message, written

from kernel_constrained.bags import LidarRecording, open_recording, RecordingError
from kernel_constrained.bags.recording import Topic
from kernel_constrained.offline.sources import choose_topics, expanded, Topics

SCAN, RANGE = 'sensor_msgs/msg/LaserScan', 'sensor_msgs/msg/Range'
POSE, ODOMETRY = 'geometry_msgs/msg/PoseStamped', 'nav_msgs/msg/Odometry'


def holding(**topics):
    """Return a recording that declares topics: ``name=(type, count)``, ``__`` for a slash."""
    recording = LidarRecording(epochs=1)
    recording.topics = {
        '/' + name.replace('__', '/'): Topic(*given) for name, given in topics.items()
    }
    return recording


def refusal(recording, *arguments):
    with pytest.raises(RecordingError) as caught:
        choose_topics(recording, *arguments)
    assert '\n' not in str(caught.value)
    return str(caught.value)


def test_a_folder_stands_for_all_recordings_in_it(tmp_path):
    written(tmp_path / 'b', drive(2))
    written(tmp_path / 'a.mcap', drive(2)).rename(tmp_path / 'b.mcap.part')
    for name in ('robot.log', 'graph.g2o', 'old.bag', 'robot.clf.gz', 'notes.txt', 'graph.zip'):
        (tmp_path / name).touch()
    (tmp_path / 'figures').mkdir()
    (tmp_path / 'lost').mkdir()
    (tmp_path / 'lost' / 'metadata.yaml').touch()
    (tmp_path / 'ros1').mkdir()
    (tmp_path / 'ros1' / 'x.bag').touch()
    names = ['b', 'graph.g2o', 'lost', 'old.bag', 'robot.clf.gz', 'robot.log', 'ros1']
    assert expanded([str(tmp_path)]) == [str(tmp_path / name) for name in names]


def test_bag_files_of_one_folder_are_one_recording_only_where_they_are_called_as_splits(tmp_path):
    def inside(folder, *names):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).touch()
        found = expanded([str(tmp_path / folder)])
        return [str(Path(each).relative_to(tmp_path)) for each in found]

    assert inside('two', 'aces.mcap', 'intel.mcap') == ['two/aces.mcap', 'two/intel.mcap']
    assert inside('runs', 'a_0.db3', 'b_0.db3', 'b_1.db3') == [
        'runs/a_0.db3', 'runs/b_0.db3', 'runs/b_1.db3',
    ]  # fmt: skip
    assert inside('both', 'x_0.db3', 'x_0.mcap') == ['both/x_0.db3', 'both/x_0.mcap']
    assert inside('beside', 'robot.log', 'x.mcap') == ['beside/robot.log', 'beside/x.mcap']
    assert inside('single', 'x.mcap') == ['single']
    assert inside('splits', 'x_0.mcap.zstd', 'x_1.mcap') == ['splits']
    assert inside('splits_and_log', 'robot.log', 'x_0.mcap', 'x_10.mcap') == [
        'splits_and_log', 'splits_and_log/robot.log',
    ]  # fmt: skip
    assert inside('described', 'a.mcap', 'b.mcap', 'metadata.yaml') == ['described']


def test_names_files_and_bags_stand_for_themselves(tmp_path):
    bag = written(tmp_path / 'bag', drive(2))
    given = ['lidar', str(bag), str(tmp_path / 'nothing')]
    assert expanded(given) == given
    ros1 = tmp_path / 'ros1'
    ros1.mkdir()
    (ros1 / 'x.bag').touch()
    assert expanded([str(ros1)]) == [str(ros1 / 'x.bag')], 'so that it is said what to do with it'


def test_a_folder_without_recordings_is_refused(tmp_path):
    (tmp_path / 'notes.txt').touch()
    with pytest.raises(RecordingError, match=r'no recording in it: no rosbag2, CARMEN log'):
        expanded([str(tmp_path)])


def test_the_only_topics_that_fit_are_taken(tmp_path):
    messages = [scan_message(0, topic='/front/scan'), pose_message(0, topic='/tracker/pose')]
    with open_recording(written(tmp_path / 'named', messages)) as recording:
        expected = Topics('/front/scan', '/tracker/pose', 'scan', 'PoseStamped')
        assert choose_topics(recording) == expected
        assert choose_topics(recording, 'front/scan', '/tracker/pose') == expected
    with open_recording(written(tmp_path / 'range', [range_message(0), pose_message(0)])) as found:
        assert choose_topics(found) == Topics('range', 'pose', 'range', 'PoseStamped')


def test_usual_names_come_first_and_topics_without_messages_do_not_count():
    recording = holding(
        scan=(SCAN, 9), rear_scan=(SCAN, 9), odom=(ODOMETRY, 9), amcl=(POSE, 0), gps=(POSE, 0)
    )
    assert choose_topics(recording) == Topics('/scan', '/odom', 'scan', 'Odometry')
    recording.topics['/pose'] = Topic(POSE, 9)
    assert choose_topics(recording).pose == '/pose'
    assert choose_topics(recording, 'rear_scan', 'odom').input == '/rear_scan'


def test_several_topics_are_named_with_the_option_that_chooses():
    recording = holding(left=(SCAN, 9), right=(SCAN, 9), odom=(ODOMETRY, 9), gps=(POSE, 9))
    assert 'a scan or range could be /left, /right: choose by --scan' in refusal(recording)
    assert 'a trusted pose could be /gps, /odom: choose by --pose' in refusal(recording, 'left')


def test_without_a_topic_that_fits_it_is_said_what_there_is():
    text = refusal(holding(scan=(SCAN, 0), chatter=('std_msgs/msg/String', 3)))
    assert f'no topic with a scan or range ({SCAN} or {RANGE})' in text
    assert f'it holds /chatter (std_msgs/msg/String), /scan ({SCAN}, no messages)' in text
    assert 'it holds nothing' in refusal(holding())


def test_a_topic_that_is_named_must_be_there_and_fit():
    recording = holding(scan=(SCAN, 9), odom=(ODOMETRY, 9))
    assert 'front is not there, expected' in refusal(recording, 'front')
    assert f'odom is {ODOMETRY}, expected {SCAN} or {RANGE}' in refusal(recording, 'odom')
