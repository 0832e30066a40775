# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The fast way from and to CDR says and writes what the general one does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_constrained.bags import cdr, decode, Message, RecordingError
from kernel_constrained.bags.serialization import typestore

SCAN, RANGE = 'sensor_msgs/msg/LaserScan', 'sensor_msgs/msg/Range'
POSES = (
    'geometry_msgs/msg/PoseStamped',
    'geometry_msgs/msg/PoseWithCovarianceStamped',
    'nav_msgs/msg/Odometry',
)

single = st.floats(width=32)
double = st.floats()
stamps = st.integers(0, 2**31 * 10**9 - 1)
frames = st.text(st.characters(exclude_characters='\0', exclude_categories=['Cs']), max_size=12)


def made(kind, **fields):
    return typestore().types[kind](**fields)


def header(stamp, frame):
    time = made('builtin_interfaces/msg/Time', sec=stamp // 10**9, nanosec=stamp % 10**9)
    return made('std_msgs/msg/Header', stamp=time, frame_id=frame)


def message(kind, value, little_endian=True):
    data = bytes(typestore().serialize_cdr(value, kind, little_endian=little_endian))
    return Message('topic', kind, 0, data)


def scan(stamp, frame, numbers, ranges, intensities=()):
    names = ('angle_min', 'angle_max', 'angle_increment', 'time_increment', 'scan_time',
             'range_min', 'range_max')  # fmt: skip
    return made(
        SCAN, header=header(stamp, frame), **dict(zip(names, numbers, strict=True)),
        ranges=np.array(ranges, np.float32), intensities=np.array(intensities, np.float32),
    )  # fmt: skip


def posed(kind, stamp, frame, child, numbers):
    p, q = numbers[:3], numbers[3:]
    pose = made(
        'geometry_msgs/msg/Pose',
        position=made('geometry_msgs/msg/Point', **dict(zip('xyz', p, strict=True))),
        orientation=made('geometry_msgs/msg/Quaternion', **dict(zip('xyzw', q, strict=True))),
    )
    if kind == POSES[0]:
        return made(kind, header=header(stamp, frame), pose=pose)
    covariance = np.arange(36.0)
    pose = made('geometry_msgs/msg/PoseWithCovariance', pose=pose, covariance=covariance)
    if kind == POSES[1]:
        return made(kind, header=header(stamp, frame), pose=pose)
    zero = made('geometry_msgs/msg/Vector3', x=1.0, y=2.0, z=3.0)
    twist = made('geometry_msgs/msg/Twist', linear=zero, angular=zero)
    twist = made('geometry_msgs/msg/TwistWithCovariance', twist=twist, covariance=covariance)
    return made(
        kind, header=header(stamp, frame), child_frame_id=child, pose=pose, twist=twist
    )  # fmt: skip


def same(first, second, names):
    for name in names:
        mine, theirs = getattr(first, name), getattr(second, name)
        np.testing.assert_array_equal(mine, theirs, err_msg=name)


def same_header(first, second):
    assert first.header.frame_id == second.header.frame_id
    same(first.header.stamp, second.header.stamp, ('sec', 'nanosec'))


@settings(deadline=None)
@given(stamps, frames, st.lists(single, min_size=7, max_size=7), st.lists(single, max_size=9),
       st.lists(single, max_size=3))  # fmt: skip
def test_a_scan_is_read_as_by_the_general_decoder(stamp, frame, numbers, ranges, intensities):
    encoded = message(SCAN, scan(stamp, frame, numbers, ranges, intensities))
    read, general = cdr.decode_input(encoded), decode(encoded)
    assert isinstance(read, cdr.LaserScan)
    same_header(read, general)
    same(read, general, read._fields[1:])


@settings(deadline=None)
@given(stamps, frames, st.integers(0, 255), st.lists(single, min_size=5, max_size=5))
def test_a_range_is_read_as_by_the_general_decoder(stamp, frame, kind, numbers):
    names = cdr.Range._fields[2:]
    value = made(RANGE, header=header(stamp, frame), radiation_type=kind,
                 **dict(zip(names, numbers, strict=True)))  # fmt: skip
    encoded = message(RANGE, value)
    read = cdr.decode_input(encoded)
    assert isinstance(read, cdr.Range)
    same_header(read, decode(encoded))
    same(read, decode(encoded), read._fields[1:])


@settings(deadline=None)
@given(st.sampled_from(POSES), stamps, frames, frames, st.lists(double, min_size=7, max_size=7))
def test_a_pose_is_read_as_by_the_general_decoder(kind, stamp, frame, child, numbers):
    encoded = message(kind, posed(kind, stamp, frame, child, numbers))
    read, general = cdr.decode_input(encoded), decode(encoded)
    assert isinstance(read, cdr.Posed)
    same_header(read, general)
    pose = general.pose if kind == POSES[0] else general.pose.pose
    same(read.pose.position, pose.position, 'xyz')
    same(read.pose.orientation, pose.orientation, 'xyzw')


def test_what_is_big_endian_or_of_another_type_is_left_to_the_general_decoder():
    value = scan(1, 'laser', [0.5] * 7, [1.0, 2.0])
    read = cdr.decode_input(message(SCAN, value, little_endian=False))
    assert not isinstance(read, cdr.LaserScan)
    assert read.ranges.tolist() == [1.0, 2.0]
    time = made('builtin_interfaces/msg/Time', sec=3, nanosec=4)
    assert cdr.decode_input(message('builtin_interfaces/msg/Time', time)).sec == 3


@pytest.mark.parametrize('kind', [SCAN, *POSES])
def test_bytes_that_are_cut_off_or_too_many_are_an_error(kind):
    value = scan(1, 'laser', [0.5] * 7, [1.0, 2.0]) if kind == SCAN else posed(
        kind, 1, 'map', 'base_link', [1.0] * 7
    )  # fmt: skip
    whole = message(kind, value)
    for data in [whole.data[:length] for length in range(len(whole.data))] + [
        whole.data + bytes(8)
    ]:
        with pytest.raises(RecordingError, match='cannot be decoded'):
            cdr.decode_input(whole._replace(data=data))


@settings(deadline=None)
@given(stamps, frames, st.lists(single, min_size=4, max_size=4), st.lists(single, max_size=9))
def test_a_scan_is_written_as_by_the_general_encoder(stamp, frame, numbers, ranges):
    low, step, near, far = (0.0 if abs(number) > 1e30 else number for number in numbers)
    written = cdr.scan_bytes(
        stamp, ranges, angle_min=low, angle_increment=step, range_min=near, range_max=far,
        frame_id=frame,
    )  # fmt: skip
    last = low + (len(ranges) - 1) * step
    value = scan(stamp, frame, [low, last, step, 0.0, 0.0, near, far], ranges)
    np.testing.assert_equal(written, message(SCAN, value).data)


@settings(deadline=None)
@given(stamps, frames, st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.floats(-20.0, 20.0))
def test_a_pose_is_written_as_by_the_general_encoder(stamp, frame, x, y, yaw):
    written = cdr.pose_bytes(stamp, x, y, yaw, frame_id=frame)
    pose = decode(Message('pose', POSES[0], 0, written)).pose
    assert (pose.position.x, pose.position.y) == (x, y)
    turned = 2.0 * np.arctan2(pose.orientation.z, pose.orientation.w)
    assert np.exp(1j * turned) == pytest.approx(np.exp(1j * yaw), abs=1e-12)
    again = posed(POSES[0], stamp, frame, '', [x, y, 0.0, 0.0, 0.0, pose.orientation.z,
                                               pose.orientation.w])  # fmt: skip
    assert written == message(POSES[0], again).data


@settings(deadline=None)
@given(stamps, frames, single, single, single)
def test_a_range_is_written_as_by_the_general_encoder(stamp, frame, value, near, far):
    written = cdr.range_bytes(stamp, value, range_min=near, range_max=far, frame_id=frame)
    general = made(RANGE, header=header(stamp, frame), radiation_type=1, field_of_view=0.0,
                   min_range=near, max_range=far, range=value, variance=0.0)  # fmt: skip
    assert written == message(RANGE, general).data
