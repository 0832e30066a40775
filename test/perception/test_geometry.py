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
    Pose,
    pose_from_quaternion,
    quaternion_from_yaw,
    wrapped,
)
from kernel_constrained.perception.unusable import Unusable

ORIGIN = (0.0, 0.0, 0.0)
LEFT = math.sqrt(0.5)

lengths = st.floats(-1e3, 1e3)
angles = st.floats(-math.pi, math.pi)
poses = st.builds(Pose, lengths, lengths, lengths, angles)


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
    assert caught.value.reason == str(caught.value) == 'zero quaternion'


@pytest.mark.parametrize('bad', [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize('place', range(7))
def test_pose_with_a_number_that_is_not_finite_is_refused(bad, place):
    numbers = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    numbers[place] = bad
    with pytest.raises(Unusable, match=r'^non-finite pose$'):
        pose_from_quaternion(tuple(numbers[:3]), tuple(numbers[3:]))


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
