# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""CDR bytes: equal to rclpy's, and back."""

import math

import numpy as np
import pytest
from rosbags.typesys import Stores

from kernel_constrained.bags import (
    decode,
    Message,
    pose_bytes,
    range_bytes,
    RecordingError,
    scan_bytes,
)
from kernel_constrained.bags.serialization import POSE_TYPE, RANGE_TYPE, SCAN_TYPE, typestore

STAMP = 1_031_745_824_658_000_001
RANGES = np.array([1.5, math.inf, 0.25, math.nan, 3.0], dtype=np.float32)


def scan(frame_id='laser'):
    return scan_bytes(
        STAMP,
        RANGES,
        angle_min=-1.5,
        angle_increment=0.25,
        range_min=0.05,
        range_max=50.0,
        frame_id=frame_id,
    )


def fill_header(message, frame_id):
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(STAMP, 10**9)
    message.header.frame_id = frame_id


def check_against_rclpy(data, message, kind):
    """Compare with rclpy's bytes, whose padding is whatever was in memory: ours is zero."""
    serialization = pytest.importorskip('rclpy.serialization')
    expected = serialization.serialize_message(message)
    assert len(data) == len(expected)
    zero_padded = typestore().serialize_cdr(typestore().deserialize_cdr(expected, kind), kind)
    assert data == bytes(zero_padded)
    # and the other way: rclpy reads the same from ours
    assert repr(serialization.deserialize_message(data, type(message))) == repr(message)
    return expected


def scan_message(frame_id):
    message = pytest.importorskip('sensor_msgs.msg').LaserScan()
    fill_header(message, frame_id)
    message.angle_min, message.angle_max, message.angle_increment = -1.5, -0.5, 0.25
    message.range_min, message.range_max = float(np.float32(0.05)), 50.0
    message.ranges = RANGES.tolist()
    return message


def pose_message(frame_id):
    message = pytest.importorskip('geometry_msgs.msg').PoseStamped()
    fill_header(message, frame_id)
    message.pose.position.x, message.pose.position.y = 1.25, -2.5
    message.pose.orientation.z, message.pose.orientation.w = math.sin(0.35), math.cos(0.35)
    return message


# frames of every length modulo the alignment of 8
@pytest.mark.parametrize('frame_id', ['', 'a', 'ab', 'map', 'base', 'laser', 'laser2', 'a_frame'])
def test_bytes_equal_those_of_rclpy_but_for_padding(frame_id):
    pose = pose_bytes(STAMP, 1.25, -2.5, 0.7, frame_id=frame_id)
    check_against_rclpy(pose, pose_message(frame_id), POSE_TYPE)
    check_against_rclpy(scan(frame_id), scan_message(frame_id), SCAN_TYPE)


def test_bytes_without_padding_equal_those_of_rclpy_to_the_last():
    pose = pose_bytes(STAMP, 1.25, -2.5, 0.7)
    assert pose == check_against_rclpy(pose, pose_message('map'), POSE_TYPE)
    assert scan('map') == check_against_rclpy(scan('map'), scan_message('map'), SCAN_TYPE)


def test_range_bytes_equal_those_of_rclpy_but_for_padding():
    message = pytest.importorskip('sensor_msgs.msg').Range()
    fill_header(message, 'range')
    message.radiation_type = message.INFRARED
    message.min_range, message.max_range, message.range = 390.0, 720.0, 555.0
    data = range_bytes(STAMP, 555.0, range_min=390.0, range_max=720.0)
    check_against_rclpy(data, message, RANGE_TYPE)


@pytest.mark.parametrize('kind', [POSE_TYPE, RANGE_TYPE, SCAN_TYPE])
def test_jazzy_and_kilted_define_the_written_types_alike(kind):
    jazzy, kilted = typestore(Stores.ROS2_JAZZY), typestore(Stores.ROS2_KILTED)
    assert jazzy.fielddefs[kind] == kilted.fielddefs[kind]


def test_decoding_returns_what_was_written():
    message = decode(Message('scan', SCAN_TYPE, STAMP, scan()))
    np.testing.assert_array_equal(message.ranges, RANGES)
    assert message.header.frame_id == 'laser'
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == divmod(STAMP, 10**9)
    assert message.angle_max == pytest.approx(-0.5)


@pytest.mark.parametrize('yaw', [0.0, 3.0, -3.0, 7.0, 100.0, -100.0, math.pi])
def test_quaternion_is_normalised_and_keeps_the_heading(yaw):
    message = Message('pose', POSE_TYPE, 0, pose_bytes(0, 0.0, 0.0, yaw))
    q = decode(message).pose.orientation
    assert q.z**2 + q.w**2 == pytest.approx(1.0)
    assert q.w >= 0.0, 'half of a heading within half a turn'
    assert math.remainder(2 * math.atan2(q.z, q.w) - yaw, 2 * math.pi) == pytest.approx(0.0)


def test_range_of_humble_without_variance_is_decoded():
    data = range_bytes(0, 2.5, range_min=0.1, range_max=4.0)[:-4]
    assert decode(Message('range', RANGE_TYPE, 0, data)).range == 2.5


def test_unknown_type_is_an_error_that_names_it():
    with pytest.raises(RecordingError, match='my_msgs/msg/Thing'):
        decode(Message('thing', 'my_msgs/msg/Thing', 0, b'\x00\x01\x00\x00'))


def test_bytes_that_do_not_fit_the_type_are_an_error():
    with pytest.raises(RecordingError, match='13 bytes cannot be decoded as sensor_msgs'):
        decode(Message('scan', SCAN_TYPE, 0, scan()[:13]))
