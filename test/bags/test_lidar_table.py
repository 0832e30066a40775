# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The LIDAR table as a recording."""

import pytest

from kernel_constrained.bags import decode, open_recording, RecordingError
from kernel_constrained.data import lidar_split, load_lidar


def by_topic(recording, topic):
    return list(recording.messages([topic]))


def test_epochs_show_all_training_pairs_and_the_test_points_come_last():
    recording = open_recording('lidar', epochs=3)
    split = lidar_split(0)
    rows = recording.rows
    assert len(rows) == 3 * 179 + 22
    for epoch in (1, 2, 3):
        shown = [row.row for row in rows if row.kind == 'train' and row.epoch == epoch]
        assert sorted(shown) == sorted(split.train)
    assert [row.row for row in rows[-22:]] == sorted(split.test)
    assert {row.kind for row in rows[-22:]} == {'test'}


def test_every_epoch_has_an_order_of_its_own():
    rows = open_recording('lidar', epochs=2).rows
    assert [row.row for row in rows[:179]] != [row.row for row in rows[179:358]]


def test_default_is_ten_epochs():
    topics = open_recording('lidar').topics
    assert (topics['pose'].count, topics['range'].count) == (1790, 1812)


def test_messages_are_as_many_as_declared():
    recording = open_recording('lidar', epochs=2, evaluate_epochs=True)
    for topic, declared in recording.topics.items():
        assert len(by_topic(recording, topic)) == declared.count


def test_messages_hold_the_values_of_their_rows():
    recording = open_recording('lidar', epochs=1)
    distance, logratio = load_lidar()
    ranges = by_topic(recording, 'range')
    poses = {message.stamp: decode(message) for message in by_topic(recording, 'pose')}
    for row, message in zip(recording.rows, ranges):
        content = decode(message)
        assert message.stamp == row.stamp
        assert content.range == distance[row.row]
        assert (content.min_range, content.max_range) == (390.0, 720.0)
        assert (row.stamp in poses) == (row.kind == 'train')
        if row.kind == 'train':
            assert poses[row.stamp].pose.position.x == logratio[row.row]
            assert poses[row.stamp].header.frame_id == 'map'


def test_stamps_begin_at_one_second_and_step_by_a_tenth():
    recording = open_recording('lidar', epochs=1)
    assert [row.stamp for row in recording.rows] == [10**9 + index * 10**8 for index in range(201)]
    assert (recording.start, recording.end) == (10**9, 21 * 10**9)


def test_pose_comes_before_the_range_of_its_stamp():
    messages = list(open_recording('lidar', epochs=1).messages(duration=0.15))
    assert [message.topic for message in messages] == ['pose', 'range'] * 2


def test_evaluation_follows_each_epoch_and_ends_with_the_test_points():
    recording = open_recording('lidar', epochs=2, evaluate_epochs=True)
    split = lidar_split(0)
    block = ['train'] * 179 + ['evaluate_train'] * 179 + ['test'] * 22
    assert [row.kind for row in recording.rows] == block * 2
    evaluated = [row.row for row in recording.rows[179:380]]
    assert evaluated == sorted(split.train) + sorted(split.test)
    assert recording.topics['pose'].count == 2 * 179


def test_evaluation_does_not_change_what_is_trained_on():
    def trained(**options):
        rows = open_recording('lidar', epochs=3, seed=5, **options).rows
        return [(row.epoch, row.row) for row in rows if row.kind == 'train']

    assert trained() == trained(evaluate_epochs=True)


def test_seed_decides_everything():
    assert open_recording('lidar', seed=1).rows == open_recording('lidar', seed=1).rows
    assert open_recording('lidar', seed=1).rows != open_recording('lidar', seed=2).rows


def test_shuffles_depend_on_the_seed_too():
    def places(seed):
        place = {row: index for index, row in enumerate(lidar_split(seed).train.tolist())}
        return [place[row.row] for row in open_recording('lidar', seed=seed).rows[:179]]

    assert places(1) != places(2)


@pytest.mark.parametrize('epochs', [0, -1, 2.5])
def test_epochs_that_are_none_are_refused(epochs):
    with pytest.raises(RecordingError, match='epochs must be a positive integer'):
        open_recording('lidar', epochs=epochs)
