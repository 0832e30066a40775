# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A scan is paired at once with a pose that is hardly older, moved on at its speed."""

import math

import pytest
from made_scans import SECOND

from kernel_constrained.perception.geometry import Pose, pose_from_quaternion, quaternion_from_yaw
from kernel_constrained.perception.pairing import Pairing
from kernel_constrained.perception.prompt import PromptPairing

MILLISECOND = SECOND // 1000


def prompt(max_gap=0.5, max_age=0.05, max_jump=math.inf):
    return PromptPairing(max_gap, 10, max_jump, max_age)


def at(milliseconds):
    """Pose of a robot that goes at 1 m/s and turns at 0.5 rad/s."""
    time = 1e-3 * milliseconds
    turn = quaternion_from_yaw(0.5 * time)
    return pose_from_quaternion((time, 0.0, 0.0), turn)


def pairs_of(pairing, poses, scan):
    for milliseconds in poses:
        pairing.add_pose(SECOND + milliseconds * MILLISECOND, at(milliseconds))
    pairing.add_scan(SECOND + scan * MILLISECOND, 'scan')
    return pairing.pairs()


def test_a_scan_hardly_newer_than_the_newest_pose_does_not_wait_and_the_pose_is_moved_on():
    (pair,) = pairs_of(prompt(), (0, 20, 40), 80)
    assert pair.scan == 'scan'
    assert pair.pose.x == pytest.approx(0.08)
    assert pair.pose.yaw == pytest.approx(0.04)


def test_a_newer_scan_waits_for_the_next_pose_and_gets_what_is_between():
    pairing = prompt()
    assert pairs_of(pairing, (0, 20, 40), 91) == []
    assert pairing.waiting == 1
    pairing.add_pose(SECOND + 140 * MILLISECOND, at(140))
    (pair,) = pairing.pairs()
    assert pair.pose.x == pytest.approx(0.091)
    assert pairing.pairs() == []


def test_without_poses_it_waits():
    assert pairs_of(prompt(), (), 0) == []


def test_a_pose_without_one_long_enough_before_it_is_taken_as_it_is():
    assert pairs_of(prompt(), (40,), 80)[0].pose == at(40)
    assert pairs_of(prompt(), (39, 40), 80)[0].pose == at(40), 'noise would be made 40 times it'
    assert pairs_of(prompt(max_gap=0.03), (0, 40), 60)[0].pose == at(40), 'too far apart'


def test_nothing_is_moved_on_across_a_jump():
    pairing = prompt(max_jump=0.5)
    pairing.add_pose(SECOND, Pose(5.0, 0.0, 0.0, 0.0))
    (pair,) = pairs_of(pairing, (40,), 60)
    assert pair.pose == at(40)
    assert (pair.track, pairing.pose_jumps) == (1, 1)


def test_what_needs_no_haste_is_paired_as_ever():
    for scan in (0, 10, 20):
        expected = pairs_of(Pairing(0.5, 10), (0, 20), scan)
        assert pairs_of(prompt(), (0, 20), scan) == expected
        assert len(expected) == 1
