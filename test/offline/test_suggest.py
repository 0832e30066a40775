# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Settings that suit a recording."""

import math

import numpy as np
import pytest
from made_recordings import (
    as_type,
    drive,
    ODOMETRY_TYPE,
    pose_at,
    pose_message,
    range_message,
    scan_message,
    SCAN_TYPE,
    SECOND,
    stamp_of,
    written,
)

from kernel_constrained.bags import (
    BagWriter,
    Message,
    open_recording,
    RecordingError,
    scan_bytes,
)
from kernel_constrained.offline.sources import choose_topics
from kernel_constrained.offline.suggest import suggested
from kernel_constrained.perception.geometry import motion_between


def suggestion(path, messages=None):
    with open_recording(written(path, messages) if messages else path) as recording:
        return suggested(recording, choose_topics(recording))


def test_scales_of_a_motion_are_its_spread_and_the_tolerance_the_tail_of_its_mean(tmp_path):
    config = suggestion(tmp_path / 'room', drive(250))
    motions = np.array([motion_between(pose_at(i - 1), pose_at(i)) for i in range(1, 250)])
    assert config.target.type == 'motion'
    assert config.target.position_scale == pytest.approx(motions[:, 0].std(), rel=0.05)
    assert config.target.yaw_scale == pytest.approx(motions[:, 2].std(), rel=0.05)
    scales = [config.target.position_scale] * 2 + [config.target.yaw_scale]
    losses = np.sum(((motions - motions.mean(axis=0)) / scales) ** 2, axis=1)
    tail = np.sort(losses)[-25:].mean()
    assert config.learner.significance == 0.9
    assert config.learner.tolerance == pytest.approx(max(tail, 4.0), rel=0.05)
    assert config.features.far == 30.0
    assert (config.features.bearing_min, config.features.bearing_max) == (-math.pi, math.pi)


def test_bearings_are_those_of_the_sensor_whichever_way_it_turns(tmp_path):
    def half(i, sign):
        data = scan_bytes(
            stamp_of(i), np.full(91, 2.0 + i), angle_min=-sign * 0.5 * math.pi,
            angle_increment=sign * math.pi / 180, range_min=0.1, range_max=math.inf,
        )  # fmt: skip
        return Message('scan', SCAN_TYPE, stamp_of(i), data)

    for sign, low in ((1.0, -0.5 * math.pi), (-1.0, 0.0)):
        messages = [m for i in range(20) for m in (half(i, sign), pose_message(i))]
        features = suggestion(tmp_path / f'{sign}', messages).features
        assert low - 2e-4 <= features.bearing_min <= low
        assert low + 0.5 * math.pi <= features.bearing_max <= low + 0.5 * math.pi + 2e-4
        assert features.far == 50.0, 'where the sensor states no range'


def test_ranges_are_for_a_coordinate(tmp_path):
    messages = [m for i in range(100) for m in (range_message(i), pose_message(i))]
    config = suggestion(tmp_path / 'ranges', messages)
    assert (config.input.type, config.features.type) == ('range', 'range')
    assert (config.target.type, config.target.axis) == ('axis', 'x')
    spread = np.std([pose_at(i).x for i in range(100)])
    assert config.target.position_scale == pytest.approx(spread, rel=0.05)


def test_the_lidar_table_has_the_settings_of_the_paper():
    config = suggestion('lidar')
    assert (config.learner.bandwidth, config.learner.tolerance) == (0.04, 0.8)


def test_the_type_of_the_pose_is_the_recorded_one(tmp_path):
    messages = [
        as_type(message, ODOMETRY_TYPE) if message.topic == 'pose' else message
        for message in drive(10)
    ]
    assert suggestion(tmp_path / 'odometry', messages).pose.type == 'Odometry'


def test_poses_and_scans_belong_together_by_the_stamps_of_their_headers(tmp_path):
    """Poses are recorded half a second late: what counts is when they were."""
    late = [
        message._replace(stamp=message.stamp + SECOND // 2) if message.topic == 'pose' else message
        for message in drive(100)
    ]
    late.sort(key=lambda message: message.stamp)
    assert suggestion(tmp_path / 'late', late) == suggestion(tmp_path / 'punctual', drive(100))


def test_a_robot_that_stands_and_a_single_scan_have_usable_scales(tmp_path):
    standing = [m for i in range(50) for m in (
        scan_message(0, stamp_of(i)), pose_message(0, stamp_of(i)))]  # fmt: skip
    for name, messages in (('standing', standing), ('single', drive(1))):
        config = suggestion(tmp_path / name, messages)
        assert (config.target.position_scale, config.target.yaw_scale) == (0.01, 0.01)
        assert config.learner.tolerance == 4.0


def test_what_cannot_be_used_is_left_out(tmp_path):
    messages = drive(60)
    messages[0] = messages[0]._replace(data=b'\0\1\0\0')
    messages.insert(20, scan_message(5, stamp_of(9), recorded=stamp_of(9) + 1))
    assert suggestion(tmp_path / 'odd', messages).target.position_scale == pytest.approx(
        suggestion(tmp_path / 'even', drive(60)).target.position_scale, rel=0.1
    )


@pytest.mark.parametrize(
    ('stamps', 'scan', 'why'),
    [
        (lambda i: 0, {}, '20 pose: zero stamp, 20 scan: zero stamp'),
        (stamp_of, {'ranges': []}, '20 scan: empty scan'),
        (stamp_of, {'ranges': [1.0]}, '20 scan: only one beam'),
        (stamp_of, {'angle_increment': 0.0}, '20 scan: bad angle_increment'),
    ],
)
def test_what_is_wrong_with_scans_of_which_none_can_be_used_is_said(stamps, scan, why, tmp_path):
    usual = {'ranges': np.ones(9), 'angle_min': 0.0, 'angle_increment': 0.1, 'range_min': 0.1}
    messages = [
        message for i in range(20) for message in (
            pose_message(i, stamps(i), recorded=stamp_of(i)),
            Message('scan', SCAN_TYPE, stamp_of(i),
                    scan_bytes(stamps(i), **{**usual, 'range_max': 9.0, **scan})),
        )
    ]  # fmt: skip
    with pytest.raises(RecordingError, match=f'nothing to learn from; dropped {why}$'):
        suggestion(tmp_path / 'unusable', messages)


def test_a_message_that_cannot_be_decoded_is_said_where_it_is_all_there_is(tmp_path):
    pose, scan = drive(1)
    with pytest.raises(RecordingError, match=r'dropped 1 scan: cannot be decoded$'):
        suggestion(tmp_path / 'damaged', [pose, scan._replace(data=b'\0\1\0\0')])


def test_without_a_pose_at_the_scans_there_is_nothing_to_suggest(tmp_path):
    with BagWriter(tmp_path / 'apart') as writer:
        for i in range(20):
            writer.write(scan_message(i))
            writer.write(pose_message(i, stamp_of(i) + 3600 * SECOND, recorded=stamp_of(i)))
    with pytest.raises(RecordingError, match='nothing to learn from; are they of one clock'):
        suggestion(tmp_path / 'apart')
