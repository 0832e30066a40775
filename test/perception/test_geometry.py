# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Poses: yaw of a quaternion, angles that wrap, motion and interpolation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_constrained.perception.geometry import (
    interpolated,
    motion_between,
    Mounting,
    mounting_from_quaternion,
    Pose,
    pose_from_quaternion,
    quaternion_from_yaw,
    slerp,
    unit_quaternion,
    wrapped,
    yaw_of,
)
from kernel_constrained.perception.unusable import Unusable

ORIGIN = (0.0, 0.0, 0.0)
LEFT = math.sqrt(0.5)

lengths = st.floats(-1e3, 1e3)
angles = st.floats(-math.pi, math.pi)
poses = st.builds(Pose, lengths, lengths, lengths, angles, st.none())
rotations = st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: math.hypot(*q) > 0.1)


@pytest.mark.parametrize(
    ('quaternion', 'yaw'),
    [
        ((0, 0, 0, 1), 0.0),
        ((0, 0, 0, -1), 0.0),
        ((0, 0, LEFT, LEFT), math.pi / 2),
        ((0, 0, -LEFT, -LEFT), math.pi / 2),
        ((0, 0, 1, 0), math.pi),
        ((0, 0, LEFT, -LEFT), -math.pi / 2),
        ((0.5, 0.5, 0.5, 0.5), math.pi / 2),  # roll and yaw of a quarter turn
        ((LEFT, 0, 0, LEFT), 0.0),  # roll alone
        ((1, 0, 0, 0), 0.0),  # upside down, looking ahead
        ((0, 1, 0, 0), math.pi),  # upside down, looking back
        ((0, 0, 3, 3), math.pi / 2),
        ((0, 0, 1e-5, 1e-5), math.pi / 2),
        ((0, 0, 1e200, 1e200), math.pi / 2),
        ((0, 0, 1.7e308, 1.7e308), math.pi / 2),
    ],
)
def test_yaw_of_a_quaternion_of_any_length_but_zero(quaternion, yaw):
    pose = pose_from_quaternion((1.0, 2.0, 3.0), quaternion)
    assert pose[:3] == (1.0, 2.0, 3.0)
    assert abs(wrapped(pose.yaw - yaw)) < 1e-12


@pytest.mark.parametrize('quaternion', [(0, 0, 1, -1e-20), (0, 0, -1, 1e-20), (-0.0, 1, -0.0, 0)])
def test_half_a_turn_is_plus_pi_however_it_is_rounded(quaternion):
    assert pose_from_quaternion(ORIGIN, quaternion).yaw == math.pi


@given(angles, st.floats(1e-5, 1e5), st.sampled_from([-1.0, 1.0]))
def test_quaternion_and_yaw_are_inverse(yaw, length, sign):
    quaternion = [sign * length * component for component in quaternion_from_yaw(yaw)]
    assert abs(wrapped(pose_from_quaternion(ORIGIN, quaternion).yaw - yaw)) < 1e-12


@pytest.mark.parametrize('quaternion', [(0, 0, 0, 0), (0, 0, 1e-7, -1e-7), (0, -0.0, 0, 1e-300)])
def test_zero_quaternion_is_refused_with_its_reason(quaternion):
    with pytest.raises(Unusable) as caught:
        pose_from_quaternion(ORIGIN, quaternion)
    assert caught.value.reason == 'zero quaternion'


@pytest.mark.parametrize('bad', [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize('place', range(7))
def test_pose_with_a_number_that_is_not_finite_is_refused(bad, place):
    numbers = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    numbers[place] = bad
    with pytest.raises(Unusable) as caught:
        pose_from_quaternion(tuple(numbers[:3]), tuple(numbers[3:]))
    assert caught.value.reason == 'non-finite pose'
    assert str(bad) in str(caught.value), 'what was found is said too'


@pytest.mark.parametrize(
    ('angle', 'expected'),
    [
        (0.0, 0.0),
        (1e-20, 1e-20),
        (-1e-20, -1e-20),
        (math.pi, math.pi),
        (-math.pi, math.pi),
        (math.nextafter(math.pi, 4), math.nextafter(-math.pi, 0)),
        (math.nextafter(math.pi, 0), math.nextafter(math.pi, 0)),
        (math.nextafter(-math.pi, -4), math.nextafter(math.pi, 0)),
        (math.nextafter(-math.pi, 0), math.nextafter(-math.pi, 0)),
        (2 * math.pi, 0.0),
        (-2 * math.pi, 0.0),
        (1.5 * math.pi, -0.5 * math.pi),
        (-1.5 * math.pi, 0.5 * math.pi),
    ],
)
def test_wrapping_at_the_edges(angle, expected):
    assert wrapped(angle) == expected


@given(st.floats(-1e4, 1e4))
def test_wrapped_angle_is_in_its_half_open_turn_and_points_the_same_way(angle):
    result = wrapped(angle)
    assert -math.pi < result <= math.pi
    assert math.cos(result) == pytest.approx(math.cos(angle), abs=1e-9)
    assert math.sin(result) == pytest.approx(math.sin(angle), abs=1e-9)


def matrix(pose):
    """Return the homogeneous transformation of a planar pose."""
    c, s = math.cos(pose.yaw), math.sin(pose.yaw)
    return np.array([[c, -s, pose.x], [s, c, pose.y], [0.0, 0.0, 1.0]])


@given(poses, poses)
def test_motion_is_what_homogeneous_matrices_say(before, after):
    forward, left, yaw = motion_between(before, after)
    expected = np.linalg.inv(matrix(before)) @ matrix(after)
    assert (forward, left) == pytest.approx(tuple(expected[:2, 2]), abs=1e-9)
    assert -math.pi < yaw <= math.pi
    assert (math.cos(yaw), math.sin(yaw)) == pytest.approx(tuple(expected[:2, 0]), abs=1e-9)


@pytest.mark.parametrize(
    ('after', 'expected'),
    [
        (Pose(1, 2, 0, math.pi / 2), (0, 0, 0)),
        (Pose(1, 3, 0, math.pi / 2), (1, 0, 0)),
        (Pose(0, 2, 5, math.pi / 2), (0, 1, 0)),
        (Pose(1, 2, 0, math.pi), (0, 0, math.pi / 2)),
        (Pose(1, 2, 0, -0.9 * math.pi), (0, 0, 0.6 * math.pi)),
    ],
)
def test_motion_is_forward_left_and_turn_in_the_frame_before(after, expected):
    motion = motion_between(Pose(1, 2, 0, math.pi / 2), after)
    assert motion == pytest.approx(expected, abs=1e-12)


def test_small_turn_keeps_its_digits():
    assert motion_between(Pose(0, 0, 0, 0.0), Pose(0, 0, 0, 1e-12))[2] == 1e-12


@pytest.mark.parametrize(
    ('before', 'after', 'share', 'expected'),
    [
        (0.2, 0.4, 0.5, 0.3),
        (3.0, -3.0, 0.5, math.pi),
        (-3.0, 3.0, 0.25, -3.0 - 0.25 * (2 * math.pi - 6)),
        (-3.0, 3.0, 0.75, 3.0 + 0.25 * (2 * math.pi - 6)),
        (-1.5, 1.5, 0.5, 0.0),
        (3.0, -3.0, 1.0, -3.0),
    ],
)
def test_interpolation_turns_the_short_way_round(before, after, share, expected):
    result = interpolated(Pose(0, 0, 0, before), Pose(0, 0, 0, after), share)
    assert result.yaw == pytest.approx(expected)


@given(poses, poses, st.floats(0, 1))
def test_interpolated_pose_lies_between(before, after, share):
    between = interpolated(before, after, share)
    for start, value, end in zip(before[:3], between[:3], after[:3]):
        assert value == pytest.approx(start + share * (end - start), abs=1e-9)
    turn = wrapped(after.yaw - before.yaw)
    assert -math.pi < between.yaw <= math.pi or share == 0.0
    difference = wrapped(between.yaw - before.yaw) - share * turn
    assert abs(wrapped(difference)) < 1e-9


def test_interpolation_begins_at_the_first_pose_exactly():
    before = Pose(0.1, 0.2, 0.3, 0.7)
    assert interpolated(before, Pose(9, 9, 9, 1), 0.0) == before


# -- rotations ----------------------------------------------------------------------------------


def rotation_matrix(quaternion):
    """Return the matrix of a unit quaternion, as the textbook says."""
    x, y, z, w = quaternion
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def angle_between(before, after):
    """Return the angle that turns one rotation into the other."""
    turn = rotation_matrix(before).T @ rotation_matrix(after)
    # by chord: the trace alone has no digits left near 0
    return 2 * math.asin(min(np.linalg.norm(turn - np.eye(3)) / math.sqrt(8), 1.0))


@given(rotations, rotations, st.floats(0, 1))
def test_slerp_turns_at_an_even_speed_by_the_short_way(before, after, share):
    before, after = unit_quaternion(before), unit_quaternion(after)
    between = slerp(before, after, share)
    assert math.hypot(*between) == pytest.approx(1.0)
    whole = angle_between(before, after)
    assert angle_between(before, between) == pytest.approx(share * whole, abs=1e-6)
    assert angle_between(between, after) == pytest.approx((1 - share) * whole, abs=1e-6)


@given(rotations, rotations, st.floats(0, 1), st.sampled_from([-1.0, 1.0]))
def test_sign_of_a_quaternion_does_not_matter(before, after, share, sign):
    before, after = unit_quaternion(before), unit_quaternion(after)
    if abs(sum(a * b for a, b in zip(before, after))) < 1e-6:
        return  # half a turn: both ways are short
    other = tuple(sign * component for component in after)
    matrices = [rotation_matrix(slerp(before, end, share)) for end in (after, other)]
    assert matrices[0] == pytest.approx(matrices[1], abs=1e-6)


@pytest.mark.parametrize('length', [1.0, 1e-3, 1e5])
def test_poses_from_quaternions_are_interpolated_on_the_sphere(length):
    def turned(angle):
        quaternion = [length * component for component in quaternion_from_yaw(angle)]
        return pose_from_quaternion((angle, 0.0, 0.0), tuple(quaternion))

    between = interpolated(turned(3.0), turned(-3.0), 0.25)
    assert between.yaw == pytest.approx(3.0 + 0.25 * (2 * math.pi - 6))
    assert math.hypot(*between.rotation) == pytest.approx(1.0)
    assert between.rotation == pytest.approx(quaternion_from_yaw(between.yaw))


def test_rotation_of_a_tilted_robot_is_interpolated_and_not_its_yaw():
    rolled, turned = (LEFT, 0.0, 0.0, LEFT), (0.0, 0.0, LEFT, LEFT)
    between = interpolated(
        pose_from_quaternion(ORIGIN, rolled), pose_from_quaternion(ORIGIN, turned), 0.25
    )
    assert between.rotation == pytest.approx(slerp(rolled, turned, 0.25))
    assert between.yaw == yaw_of(between.rotation)
    assert between.yaw == pytest.approx(0.3508794)  # and not a quarter of a quarter turn


@given(rotations)
def test_rotation_kept_with_a_pose_is_the_unit_quaternion(quaternion):
    pose = pose_from_quaternion(ORIGIN, quaternion)
    length = math.hypot(*quaternion)
    assert pose.rotation == pytest.approx([component / length for component in quaternion])
    assert pose.yaw == yaw_of(pose.rotation)


# -- mountings ----------------------------------------------------------------------------------


def product(first, second):
    """Return the quaternion of a rotation by ``second``, then by ``first``."""
    x, y, z, w = first
    a, b, c, d = second
    return (
        w * a + x * d + y * c - z * b,
        w * b - x * c + y * d + z * a,
        w * c + x * b - y * a + z * d,
        w * d - x * a - y * b - z * c,
    )


@given(angles, st.booleans(), st.floats(-0.12, 0.12), st.sampled_from([1.0, -1.0, 7.0]))
def test_mounting_of_a_sensor_that_is_turned_or_upside_down(yaw, upside_down, tilt, length):
    roll = tilt + (math.pi if upside_down else 0.0)
    rolled = (math.sin(0.5 * roll), 0.0, 0.0, math.cos(0.5 * roll))
    quaternion = tuple(length * c for c in product(quaternion_from_yaw(yaw), rolled))
    mounting = mounting_from_quaternion((0.3, -0.1, 0.5), quaternion)
    assert mounting[:2] == (0.3, -0.1)
    assert abs(wrapped(mounting.yaw - yaw)) < 1e-9
    assert mounting.upside_down == upside_down


def test_sensor_turned_over_its_side_or_its_nose_is_upside_down():
    over_side = mounting_from_quaternion(ORIGIN, (1.0, 0.0, 0.0, 0.0))
    over_nose = mounting_from_quaternion(ORIGIN, (0.0, 1.0, 0.0, 0.0))
    assert over_side == Mounting(yaw=0.0, upside_down=True)
    assert over_nose == Mounting(yaw=math.pi, upside_down=True)


@pytest.mark.parametrize('degrees', [11, 45, 90, 135, 169])
@pytest.mark.parametrize('axis', [(1, 0, 0), (0, 1, 0), (0.6, 0.8, 0)])
def test_tilted_sensor_is_refused_and_the_tilt_is_said(degrees, axis):
    half = math.radians(degrees) / 2
    quaternion = (*(math.sin(half) * c for c in axis), math.cos(half))
    with pytest.raises(Unusable, match=f'by {min(degrees, 180 - degrees)} degrees') as caught:
        mounting_from_quaternion(ORIGIN, quaternion)
    assert caught.value.reason == 'tilted sensor'


@pytest.mark.parametrize(
    ('position', 'quaternion', 'reason'),
    [
        ((math.nan, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), 'non-finite pose'),
        (ORIGIN, (0.0, 0.0, 0.0, 0.0), 'zero quaternion'),
    ],
)
def test_mounting_that_is_no_pose_is_refused(position, quaternion, reason):
    with pytest.raises(Unusable) as caught:
        mounting_from_quaternion(position, quaternion)
    assert caught.value.reason == reason
