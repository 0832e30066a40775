# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What a scan says of the space around the robot: where beams end, how far they are free."""

import math

import numpy as np
import pytest

from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.perception.scan import Scan
from kernel_constrained.perception.unusable import Unusable
from kernel_constrained.planning.config import SensingConfig
from kernel_constrained.planning.sensing import view_of

NAN, INF = math.nan, math.inf
ORIGIN = Pose(0.0, 0.0, 0.0, 0.0)
SOMEWHERE = Pose(3.0, -2.0, 0.0, 2.5)
CENTRED = Mounting()

# A range; how far the beam is known to be free; where it met something (None: nowhere). Of a
# sensor with limits 0.1 and 30 m.
REP_117 = [
    (NAN, 0.0, None),
    (INF, 30.0, None),
    (30.5, 30.0, None),
    (30.0, 30.0, 30.0),
    (2.0, 2.0, 2.0),
    (0.1, 0.1, 0.1),
    (0.09, 0.0, 0.1),
    (-INF, 0.0, 0.1),
    (0.0, 0.0, None),
    (-0.0, 0.0, None),
    (-1.0, 0.0, None),
]


def view(
    ranges, pose=ORIGIN, mounting=CENTRED, first=0.0, step=0.1, limits=(0.1, 30.0),
    covariance=None, **config,
):  # fmt: skip
    """Return the view of a scan with these ranges."""
    scan = Scan(np.asarray(ranges), first, step, *limits)
    return view_of(7, scan, pose, mounting, SensingConfig(**config), covariance)


def end_points(ranges, pose, mounting, first, step):
    """Return where beams end, by one rotation in space after the other; shape (2, n)."""
    bearings = first + step * np.arange(len(ranges))
    ends = np.stack([ranges * np.cos(bearings), ranges * np.sin(bearings), np.zeros(len(ranges))])
    if mounting.upside_down:
        ends = np.diag([1.0, -1.0, -1.0]) @ ends
    for x, y, yaw in ((mounting.x, mounting.y, mounting.yaw), (pose.x, pose.y, pose.yaw)):
        c, s = math.cos(yaw), math.sin(yaw)
        ends = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ ends + [[x], [y], [0]]
    return ends[:2]


@pytest.mark.parametrize('upside_down', [False, True])
@pytest.mark.parametrize('step', [0.3, -0.3])
def test_end_points_are_where_pose_and_mounting_put_them(upside_down, step):
    ranges = np.linspace(1.0, 5.0, 9)
    mounting = Mounting(0.4, -0.2, 0.7, upside_down)
    seen = view(ranges, SOMEWHERE, mounting, -1.1, step)
    np.testing.assert_allclose(
        seen.points, end_points(ranges, SOMEWHERE, mounting, -1.1, step), atol=1e-12
    )


def test_bearings_lead_from_the_sensor_to_the_end_points():
    seen = view(np.full(9, 2.0), SOMEWHERE, Mounting(0.4, -0.2, 0.7, True), -1.1, 0.3)
    bearings = seen.first_bearing + seen.increment * np.arange(9)
    directions = np.stack([np.cos(bearings), np.sin(bearings)])
    np.testing.assert_allclose(seen.directions, directions, atol=1e-12)
    np.testing.assert_allclose(seen.points, seen.origin[:, None] + 2.0 * directions, atol=1e-12)
    np.testing.assert_allclose(seen.robot, [3.0, -2.0])
    assert seen.stamp == 7


def test_directions_of_many_beams_are_exact():
    step = 2 * math.pi / 10_000
    seen = view(np.ones(10_000), SOMEWHERE, step=step)
    bearings = SOMEWHERE.yaw + step * np.arange(10_000)
    np.testing.assert_allclose(
        seen.directions, [np.cos(bearings), np.sin(bearings)], rtol=0, atol=1e-11
    )


@pytest.mark.parametrize(('value', 'free', 'end'), REP_117)
def test_what_a_range_says_is_what_rep_117_says(value, free, end):
    seen = view([5.0, value, 5.0], SOMEWHERE)
    assert seen.ranges[1] == free
    assert seen.hit[1] == (end is not None)
    assert seen.points.shape == (2, 2 + (end is not None))
    if end is not None:
        distance = math.hypot(*(seen.points[:, 1] - seen.origin))
        assert distance == pytest.approx(end, abs=1e-12)


def test_a_range_beyond_the_largest_one_chosen_is_free_up_to_there():
    seen = view([2.0, 5.0, INF, 4.0], max_range=4.0)
    assert seen.ranges.tolist() == [2.0, 4.0, 4.0, 4.0]
    assert seen.hit.tolist() == [True, False, False, True]


def test_a_largest_range_beyond_that_of_the_sensor_changes_nothing():
    seen = view([2.0, INF], max_range=100.0)
    assert seen.ranges.tolist() == [2.0, 30.0]


def test_single_precision_does_not_turn_a_range_at_the_limit_into_one_beyond_it():
    limit = float(np.float32(3.3))
    seen = view(np.array([3.3, 3.3], dtype=np.float32), limits=(0.1, limit))
    assert seen.hit.all()


def test_too_close_to_a_sensor_without_a_least_range_is_at_the_sensor():
    seen = view([-INF, 2.0], SOMEWHERE, limits=(0.0, 30.0))
    np.testing.assert_allclose(seen.points[:, 0], seen.origin)


def test_a_range_of_zero_says_nothing_to_a_sensor_without_a_least_range_either():
    seen = view([0.0, 2.0], limits=(0.0, 30.0))
    assert seen.hit.tolist() == [False, True]
    assert seen.ranges.tolist() == [0.0, 2.0]


def test_a_scan_that_met_nothing_has_no_points():
    seen = view([INF] * 4)
    assert seen.points.shape == (2, 0)
    assert seen.deviation.shape == (0,)
    assert not seen.hit.any()


# -- deviation ----------------------------------------------------------------------------------


def test_with_an_exact_pose_the_deviation_is_that_of_ranges():
    seen = view([2.0, 9.0], range_deviation=0.04)
    assert seen.deviation.tolist() == [0.04, 0.04]
    assert seen.range_deviation == 0.04
    assert not seen.covariance.any()


def test_deviations_of_position_and_range_add_in_squares():
    seen = view([2.0, 9.0], range_deviation=0.04, covariance=np.diag([0.09, 0.09, 0.0]) ** 2)
    np.testing.assert_allclose(seen.deviation, math.hypot(0.04, 0.09))


def test_deviation_of_the_heading_counts_by_the_distance_from_the_robot():
    mounting = Mounting(1.0, 0.0, 0.0)
    seen = view([2.0, 2.0], SOMEWHERE, mounting, 0.0, math.pi, range_deviation=0.0,
                covariance=np.diag([0.0, 0.0, 0.01**2]))  # fmt: skip
    np.testing.assert_allclose(seen.deviation, [0.01 * 3.0, 0.01 * 1.0], atol=1e-12)


def test_the_deviation_is_that_in_the_worst_direction():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(3, 3)) * [[0.05], [0.05], [0.02]]
    seen = view(
        [2.0, 4.0, 3.0], SOMEWHERE, Mounting(0.3, 0.1, 0.2), 0.0, 1.0, covariance=root @ root.T
    )
    errors = rng.normal(size=(200_000, 3)) @ root.T
    for i in range(3):
        arm = seen.points[:, i] - seen.robot
        moved = errors[:, :2] + errors[:, 2:] * [-arm[1], arm[0]]
        moved += 0.03 * rng.normal(size=(200_000, 1)) * seen.directions[:, i]
        worst = math.sqrt(np.linalg.eigvalsh(np.cov(moved.T))[-1])
        assert seen.deviation[i] == pytest.approx(worst, rel=0.01)


def test_a_matrix_that_is_no_covariance_does_not_make_points_surer_than_their_ranges():
    matrix = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -2.0], [1.0, -2.0, 0.0]])
    seen = view([2.0, NAN], mounting=Mounting(0.0, 1.0, 0.0), covariance=matrix)
    assert seen.deviation.tolist() == [0.03]


# -- what cannot be used ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('change', 'reason'),
    [
        ({'ranges': []}, 'empty scan'),
        ({'step': 0.0}, 'bad angle_increment'),
        ({'limits': (1.0, 0.5)}, 'range_max not above range_min'),
        ({'limits': (0.1, INF)}, 'range_max is infinite'),
        ({'pose': Pose(NAN, 0.0, 0.0, 0.0)}, 'non-finite pose'),
        ({'pose': Pose(0.0, INF, 0.0, 0.0)}, 'non-finite pose'),
        ({'pose': Pose(0.0, 0.0, 0.0, NAN)}, 'non-finite pose'),
        ({'covariance': np.zeros((6, 6))}, 'bad pose covariance'),
        ({'covariance': np.diag([1.0, 1.0, NAN])}, 'bad pose covariance'),
        ({'covariance': np.diag([1.0, -1.0, 1.0])}, 'bad pose covariance'),
    ],
)
def test_what_cannot_be_used_says_why(change, reason):
    with pytest.raises(Unusable) as error:
        view(**{'ranges': [1.0, 1.0], **change})
    assert error.value.reason == reason


def test_a_sensor_without_a_largest_range_can_be_given_one():
    assert view([INF, 2.0], limits=(0.1, INF), max_range=8.0).ranges.tolist() == [8.0, 2.0]
