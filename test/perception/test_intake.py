# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Messages of any maker go into the filter one way, and what cannot be used changes nothing."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from made_scans import room_scan

from kernel_constrained.configuration import from_flat
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.perception.intake import Intake
from kernel_constrained.perception.node_config import FilterNodeConfig
from kernel_constrained.perception.unusable import Unusable


def header(seconds, frame):
    nanoseconds = round(seconds * 1e9)
    stamp = SimpleNamespace(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)
    return SimpleNamespace(stamp=stamp, frame_id=frame)


def at(seconds):
    """Where the robot is: it drives ahead, 0.1 m/s."""
    return Pose(2.0 + 0.1 * seconds, 2.0, 0.0, 0.0)


def scan_message(seconds, frame='laser', **changes):
    scan = room_scan(at(seconds), beams=24)
    fields = {
        'header': header(seconds, frame), 'ranges': scan.ranges, 'angle_min': scan.angle_min,
        'angle_increment': scan.angle_increment, 'angle_max': math.nan,
        'range_min': scan.range_min, 'range_max': scan.range_max,
    }  # fmt: skip
    return SimpleNamespace(**{**fields, **changes})


def pose_message(seconds, frame='map', quaternion=(0.0, 0.0, 0.0, 1.0), levels=1):
    """Return a PoseStamped; with two levels a PoseWithCovarianceStamped, or an Odometry."""
    place = at(seconds)
    pose = SimpleNamespace(
        position=SimpleNamespace(x=place.x, y=place.y, z=0.0),
        orientation=SimpleNamespace(**dict(zip('xyzw', quaternion))),
    )
    for _ in range(levels - 1):
        pose = SimpleNamespace(pose=pose)
    return SimpleNamespace(header=header(seconds, frame), pose=pose)


def intake_of(mounting=None, **settings):
    given = {'features.sectors': 6, 'target.position_scale': 0.1, 'target.yaw_scale': 0.1}
    given |= {name.replace('__', '.'): value for name, value in settings.items()}
    config = from_flat(FilterNodeConfig, given)
    return Intake(ScanFilter(config), config, mounting)


def refusal(take, message):
    with pytest.raises(Unusable) as caught:
        take(message)
    return caught.value.reason


@pytest.mark.parametrize('levels', [1, 2])
def test_scans_and_poses_reach_the_filter(levels):
    intake = intake_of()
    learned = []
    for i in range(1, 20):
        intake.pose(pose_message(i, levels=levels))
        estimate = intake.scan(scan_message(i))
        assert (estimate is None) == (i == 1), 'a motion needs the scan before'
        learned += intake.filter.learn()
    assert [each.stamp for each in learned] == [i * 10**9 for i in range(2, 20)]
    assert estimate.stamp == 19 * 10**9
    assert learned[-1].error[0] == pytest.approx(estimate.mean[0] - 0.1)
    assert intake.frames == {'scan': 'laser', 'pose': 'map'}


def test_a_pose_is_handed_back_as_it_was_understood_and_can_be_checked_alone():
    intake = intake_of()
    half = math.sqrt(0.5)
    message = pose_message(3, quaternion=(0.0, 0.0, half, half))
    stamp, pose = intake.checked_pose(message)
    assert stamp == 3 * 10**9
    assert (pose.x, pose.y, pose.yaw) == pytest.approx((2.3, 2.0, math.pi / 2))
    assert intake.frames == {}, 'a pose that the filter does not get fixes no frame'
    assert intake.filter.pairing.pairs() == []
    assert intake.pose(message) == (stamp, pose)
    assert intake.frames == {'pose': 'map'}


@pytest.mark.parametrize('take', ['scan', 'pose', 'checked_pose'])
def test_the_first_frame_that_is_used_is_the_only_one(take):
    message = scan_message if take == 'scan' else pose_message
    intake = intake_of()
    (intake.scan if take == 'scan' else intake.pose)(message(1, '/one'))
    (intake.scan if take == 'scan' else intake.pose)(message(2, 'one'))
    assert refusal(getattr(intake, take), message(3, 'other')) == 'wrong frame'
    intake.reset()
    getattr(intake, take)(message(3, 'other'))


def test_a_frame_that_is_configured_is_the_only_one():
    intake = intake_of(input__frame_id='front', pose__frame_id='/world')
    assert refusal(intake.scan, scan_message(1, 'rear')) == 'wrong frame'
    assert refusal(intake.pose, pose_message(1, 'map')) == 'wrong frame'
    intake.scan(scan_message(1, '/front'))
    intake.pose(pose_message(1, 'world'))


def test_what_cannot_be_used_changes_nothing():
    intake = intake_of()
    nan = np.full(24, math.nan, dtype=np.float32)
    for take, message, reason in (
        (intake.scan, scan_message(0), 'zero stamp'),
        (intake.scan, scan_message(-1), 'negative stamp'),
        (intake.scan, scan_message(1, ranges=np.zeros(0)), 'empty scan'),
        (intake.scan, scan_message(1, ranges=nan), 'no valid beam'),
        (intake.pose, pose_message(0), 'zero stamp'),
        (intake.pose, pose_message(1, quaternion=(0.0, 0.0, 0.0, 0.0)), 'zero quaternion'),
        (intake.pose, pose_message(1, quaternion=(math.nan, 0, 0, 1)),
         'non-finite pose'),
    ):  # fmt: skip
        assert refusal(take, message) == reason
    assert intake.frames == {}
    assert intake.filter.scans == 0
    assert intake.filter.pairing.waiting == 0
    intake.scan(scan_message(2, 'laser'))
    assert refusal(intake.scan, scan_message(2, 'laser')) == 'duplicate stamp'
    assert refusal(intake.scan, scan_message(1.5, 'laser')) == 'late'
    assert intake.filter.scans == 1


def test_the_mounting_is_asked_for_by_the_frame_of_each_scan():
    asked = []

    def mounting(frame):
        asked.append(frame)
        if len(asked) == 2:
            raise Unusable('no transform')
        return Mounting(0.1 * len(asked), 0.0, 0.0)

    intake = intake_of(mounting)
    intake.scan(scan_message(1))
    assert intake.filter.mounting.x == 0.1
    assert refusal(intake.scan, scan_message(2)) == 'no transform'
    intake.scan(scan_message(3))
    assert intake.filter.mounting.x == pytest.approx(0.3)
    assert asked == ['laser'] * 3
    assert intake.filter.scans == 2


def test_an_estimate_that_is_not_finite_is_refused_and_remembered():
    intake = intake_of(target__type='axis')
    intake.filter.target.denormalised = lambda output: np.array([math.nan])
    assert refusal(intake.scan, scan_message(1)) == 'estimate not finite'
    assert intake.not_finite
    intake.reset()
    assert not intake.not_finite


def test_the_estimate_is_in_the_frame_of_the_pose_or_of_the_scan():
    for settings, before, after in (
        ({'target__type': 'pose'}, '', 'map'),
        ({'target__type': 'motion'}, '', 'laser'),
        ({'target__type': 'pose', 'pose__frame_id': 'map'}, 'map', 'map'),
        ({'target__type': 'motion', 'frame_id': 'base_link'}, 'base_link', 'base_link'),
        ({'target__type': 'motion', 'mounting__yaw': math.pi}, 'base_link', 'base_link'),
        ({'target__type': 'motion', 'mounting__upside_down': True, 'frame_id': 'me'}, 'me', 'me'),
        ({'target__type': 'pose', 'mounting__yaw': math.pi}, '', 'map'),
        ({'target__type': 'pose', 'pose__frame_id': '/map'}, 'map', 'map'),
        ({'target__type': 'pose', 'frame_id': '/odom'}, 'odom', 'odom'),
        ({'target__type': 'motion', 'input__frame_id': '/laser'}, 'laser', 'laser'),
    ):
        intake = intake_of(**settings)
        assert intake.estimate_frame == before
        intake.scan(scan_message(1))
        intake.pose(pose_message(1))
        assert intake.estimate_frame == after
    by_tf = intake_of(lambda _: Mounting(), target__type='motion', mounting__base_frame='/base')
    assert by_tf.estimate_frame == 'base'
