# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Motions chained one after the other, against poses that are known."""

import math

import numpy as np
import pytest

from kernel_constrained.offline.drift import (
    between,
    chained,
    drift_along,
    drift_over,
    moved,
    Track,
    wrapped,
)
from kernel_constrained.perception.geometry import motion_between, Pose


def random_poses(count=200, seed=0):
    return np.cumsum(np.random.default_rng(seed).normal(size=(count, 3)), axis=0)


def motions_of(poses):
    """Motion to each pose from the one before; to the first from itself."""
    moves = [motion_between(Pose(*a[:2], 0.0, a[2]), Pose(*b[:2], 0.0, b[2]))
             for a, b in zip(poses, poses[1:])]  # fmt: skip
    return np.array([(0.0, 0.0, 0.0), *moves])


def track(poses, motions, stamps=None):
    count = np.arange(len(poses))
    return Track(count + 1 if stamps is None else stamps, 0.1 * count, poses, motions)


def straight(count, turn=0.0):
    """One metre a step straight ahead; the motions say that it turns a little each time."""
    poses = np.zeros((count, 3))
    poses[:, 0] = np.arange(count)
    return track(poses, np.tile([1.0, 0.0, turn], (count, 1)))


def test_chaining_the_motions_between_poses_gives_the_poses():
    poses = random_poses()
    motions = motions_of(poses)
    found = moved(poses[:1], chained(motions[1:]))
    assert found[:, :2] == pytest.approx(poses[1:, :2], abs=1e-9)
    assert wrapped(found[:, 2] - poses[1:, 2]) == pytest.approx(np.zeros(199), abs=1e-9)
    step = between(poses[:-1], poses[1:])
    assert step[:, :2] == pytest.approx(motions[1:, :2])
    assert wrapped(step[:, 2] - motions[1:, 2]) == pytest.approx(np.zeros(199), abs=1e-9)


def test_true_motions_do_not_drift():
    poses = random_poses()
    one = drift_along(track(poses, motions_of(poses)), 0.0, 20.0)
    assert (one.error, one.yaw_error) == pytest.approx((0.0, 0.0), abs=1e-9)
    count, percent, turned = drift_over(
        track(poses, motions_of(poses)), 10.0, np.ones(200, dtype=bool)
    )
    assert count > 100
    assert (percent, turned) == pytest.approx((0.0, 0.0), abs=1e-6)


def test_error_distance_and_percent_of_a_dropout():
    one = drift_along(straight(11, turn=math.pi / 20), 3.0, 4.0)
    x = sum(math.cos(i * math.pi / 20) for i in range(10))
    y = sum(math.sin(i * math.pi / 20) for i in range(10))
    assert one.distance == 10.0
    assert one.error == pytest.approx(math.hypot(x - 10.0, y))
    assert one.percent == pytest.approx(10.0 * math.hypot(x - 10.0, y))
    assert one.yaw_error == pytest.approx(math.pi / 2)
    assert one.path[[0, -1]] == pytest.approx(np.array([[0.0, 0.0], [x, y]]))
    assert one.truth[[0, -1]].tolist() == [[0.0, 0.0], [10.0, 0.0]]


def test_a_robot_that_stands_has_no_percentage():
    standing = Track(np.arange(3), np.arange(3.0), np.zeros((3, 3)), np.zeros((3, 3)))
    assert math.isnan(drift_along(standing, 1.0, 3.0).percent)


def test_poses_that_are_missing_in_a_dropout_are_bridged_by_the_motions():
    poses = straight(11).poses.copy()
    poses[4:7] = math.nan
    one = drift_along(track(poses, straight(11).motions), 0.0, 2.0)
    assert (one.distance, one.error) == (10.0, 0.0)


def test_drift_over_a_distance_is_the_mean_over_all_stretches():
    """Motions half a percent too long, and turned by 1 mrad a metre."""
    everywhere = np.ones(101, dtype=bool)
    given = straight(101)
    long = given._replace(motions=given.motions * [1.005, 1.0, 1.0])
    assert drift_over(long, 10.0, everywhere) == (91, pytest.approx(0.5), 0.0)
    turning = straight(101, turn=1e-3)
    _, percent, turned = drift_over(turning, 10.0, everywhere)
    assert turned == pytest.approx(1e-3)
    assert percent == pytest.approx(100 * sum(i * 1e-3 for i in range(10)) / 10.0, rel=1e-3)
    assert drift_over(turning, 1000.0, everywhere)[0] == 0
    late = np.arange(101) >= 80
    assert drift_over(turning, 10.0, late)[0] == 11, 'stretches lie within what is scored'


def test_no_stretch_reaches_across_a_jump_of_the_clock():
    """A loop: the second pass begins where the first did."""
    once = straight(51)
    poses = np.concatenate([once.poses, once.poses])
    motions = np.concatenate([once.motions, once.motions])
    stamps = np.concatenate([once.stamps, once.stamps])
    count, percent, _ = drift_over(track(poses, motions, stamps), 10.0, np.ones(102, dtype=bool))
    assert count == 2 * 41
    assert percent == pytest.approx(0.0, abs=1e-9)
