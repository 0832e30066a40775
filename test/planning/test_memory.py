# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What is remembered of earlier scans: averages, and what is forgotten when."""

import math

import numpy as np
import pytest

from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.perception.scan import Scan
from kernel_constrained.planning.config import SensingConfig
from kernel_constrained.planning.memory import PointMemory
from kernel_constrained.planning.sensing import view_of

NAN, INF = math.nan, math.inf
TURN = 2 * math.pi
BEAMS = 360
AROUND = np.arange(BEAMS) * TURN / BEAMS


def view(
    ranges, x=0.0, y=0.0, yaw=0.0, first=0.0, step=TURN / BEAMS, far=5.0, deviation=0.03,
    covariance=None,
):  # fmt: skip
    """Return the view of a scan from a pose, by default of beams all around from straight on."""
    scan = Scan(np.asarray(ranges, dtype=np.float32), first, step, 0.1, far)
    config = SensingConfig(range_deviation=deviation)
    return view_of(0, scan, Pose(x, y, 0.0, yaw), Mounting(), config, covariance)


def ranges_to(discs, x, y, bearings, far=5.0):
    """Return exact ranges to discs (k, 3) from a position along bearings; inf beyond ``far``."""
    cosine, sine = np.cos(bearings), np.sin(bearings)
    nearest = np.full(len(bearings), INF)
    for cx, cy, radius in discs:
        along = (cx - x) * cosine + (cy - y) * sine
        half = radius**2 - ((cx - x) * sine - (cy - y) * cosine) ** 2
        meets = (half > 0) & (along > 0)
        nearest[meets] = np.minimum(nearest[meets], along[meets] - np.sqrt(half[meets]))
    return np.where(nearest <= far, nearest, INF)


def ranges_to_wall(height, x, y, bearings, far=5.0):
    """Return exact ranges to an endless wall along x."""
    with np.errstate(divide='ignore', invalid='ignore'):
        ranges = (height - y) / np.sin(bearings)
    return np.where((ranges > 0) & (ranges <= far), ranges, INF)


def only(beams, value):
    """Return ranges that are NaN but for some beams."""
    ranges = np.full(BEAMS, NAN)
    ranges[beams] = value
    return ranges


def remembering(*views, voxel=0.1, radius=6.0, min_hits=2):
    memory = PointMemory(voxel, radius, min_hits)
    for each in views:
        memory.update(each)
    return memory


# -- averages -----------------------------------------------------------------------------------


def test_means_are_those_of_the_hits_in_each_voxel():
    rng = np.random.default_rng(2)
    memory, cells = PointMemory(0.25, 6.0, 2), {}
    for _ in range(4):
        ranges = np.where(rng.random(BEAMS) < 0.5, 2.0 + 0.3 * rng.random(BEAMS), NAN)
        seen = view(ranges, x=-7.0, y=3.0)  # on both sides of zero
        memory.update(seen)
        for point in seen.points.T:
            cells.setdefault(tuple(np.floor(point / 0.25)), []).append(point)
    counting = [hits for hits in cells.values() if len(hits) >= 2]
    assert max(map(len, counting)) <= 20, 'this test is of plain means'
    expected = np.array(sorted(np.mean(hits, axis=0).tolist() for hits in counting))
    found = np.array(sorted(memory.points().T.tolist()))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize('min_hits', [1, 2, 5, 30])
def test_a_voxel_counts_from_its_last_necessary_hit_on(min_hits):
    memory = PointMemory(0.1, 6.0, min_hits)
    for hits in range(1, min_hits + 1):
        memory.update(view(only([10], 2.0)))
        assert memory.points().shape == (2, int(hits >= min_hits))


def test_a_mean_of_many_hits_follows_new_ones():
    memory = remembering(*[view(only([0], 2.01))] * 200)
    for _ in range(40):
        memory.update(view(only([0], 2.09)))
    assert memory.points()[0, 0] == pytest.approx(2.09, abs=0.02)


def test_deviations_are_means_of_those_of_the_hits_in_the_order_of_the_points():
    memory = remembering(
        view(only([0, 90], 2.05), covariance=np.diag([0.04, 0.04, 0.0]) ** 2),
        view(only([90], 2.05), deviation=0.07),
        min_hits=1,
    )
    points, deviations = memory.points_and_deviations()
    by_point = dict(zip(map(tuple, points.T.round(2)), deviations))
    assert by_point == {
        (2.05, 0.0): pytest.approx(0.05),
        (0.0, 2.05): pytest.approx(0.06),
    }


def test_many_more_points_than_there_is_room_for_are_kept_with_those_before():
    rng, memory, cells = np.random.default_rng(3), PointMemory(0.001, 6.0, 1), set()
    for half in (0, 1):  # one to the left of the sensor, one to the right
        ranges = 1.0 + 3.0 * rng.random(5000)
        ranges[half * 2500 : (half + 1) * 2500] = NAN
        seen = view(ranges, step=TURN / 5000)
        memory.update(seen)
        cells |= set(map(tuple, np.floor(seen.points / 0.001).T))
    assert set(map(tuple, np.floor(memory.points() / 0.001).T)) == cells
    assert len(cells) > 4000


def test_what_was_too_close_to_be_measured_is_not_remembered():
    memory = remembering(*[view(only([5], -INF))] * 3, min_hits=1)
    assert memory.points().shape == (2, 0)


def test_clearing_forgets_everything_and_starts_afresh():
    memory = remembering(*[view(only([5], 2.0))] * 3)
    memory.clear()
    assert memory.points().shape == (2, 0)
    memory.update(view(only([5], 2.0)))
    assert memory.points().shape == (2, 0), 'hits from before must not count'
    memory.update(view(only([5], 2.0)))
    assert memory.points().shape == (2, 1)


# -- forgetting by distance ---------------------------------------------------------------------


def test_points_are_forgotten_beyond_the_radius_of_the_sensor_and_only_there():
    memory = remembering(*[view(only([0, 180], 2.0))] * 2, radius=3.0)
    nothing = np.full(BEAMS, NAN)
    memory.update(view(nothing, x=0.9))
    assert memory.points().shape == (2, 2)
    memory.update(view(nothing, x=1.1))
    np.testing.assert_allclose(memory.points(), [[2.0], [0.0]], atol=1e-6)
    memory.update(view(nothing))
    assert memory.points().shape == (2, 1), 'what was forgotten must not come back'


def test_points_are_not_taken_in_beyond_the_radius():
    memory = remembering(*[view(only([0, 180], 4.0))] * 2, radius=3.0)
    assert memory.points().shape == (2, 0)


def test_voxels_are_found_again_after_others_were_forgotten():
    memory = remembering(*[view(only(range(0, 360, 3), 2.0))] * 2, radius=3.0)
    shifted = view(np.full(BEAMS, NAN), x=2.0)
    memory.update(shifted)
    left = memory.points().shape[1]
    assert 0 < left < 120
    memory.update(view(only(range(0, 360, 3), 2.0)))
    memory.update(view(only(range(0, 360, 3), 2.0)))
    again = remembering(*[view(only(range(0, 360, 3), 2.0))] * 2, radius=3.0)
    assert memory.points().shape == again.points().shape


# -- forgetting by ray --------------------------------------------------------------------------


def wide_obstacle():
    """Return a memory of something straight on, 1 m away and as wide as many beams."""
    disc = ranges_to([(1.5, 0.0, 0.5)], 0.0, 0.0, AROUND)
    return remembering(*[view(np.where(np.isinf(disc), NAN, disc))] * 2)


def test_what_all_beams_pass_through_is_gone_at_once():
    memory = wide_obstacle()
    assert memory.points().shape[1] > 5
    memory.update(view(np.full(BEAMS, INF)))
    assert memory.points().shape == (2, 0)


@pytest.mark.parametrize('beam', [-1, 0, 1])
def test_nothing_is_forgotten_where_a_beam_or_its_neighbour_says_nothing(beam):
    memory = remembering(*[view(only([20], 1.0))] * 2)
    ranges = np.full(BEAMS, INF)
    ranges[20 + beam] = NAN
    memory.update(view(ranges))
    assert memory.points().shape == (2, 1)


@pytest.mark.parametrize('beam', [-1, 0, 1])
def test_nothing_is_forgotten_where_a_beam_or_its_neighbour_met_something_before(beam):
    memory = remembering(*[view(only([20], 2.0))] * 2)
    ranges = np.full(BEAMS, INF)
    ranges[20 + beam] = 1.0
    memory.update(view(ranges))
    assert (abs(memory.points() - 2.0 * np.array(
        [[math.cos(AROUND[20])], [math.sin(AROUND[20])]])).max(axis=0) < 1e-6).any()  # fmt: skip


def test_nothing_is_forgotten_where_most_beams_beside_it_say_nothing():
    memory = remembering(*[view(only([20], 0.5))] * 2)  # ten beams on either side matter
    few, more = only(range(16, 25), INF), only(range(13, 28), INF)
    memory.update(view(few))
    assert memory.points().shape == (2, 1)
    memory.update(view(more))
    assert memory.points().shape == (2, 0)


def test_a_voxel_that_was_hit_is_not_seen_through():
    # Both beams end in the same voxel; those through the mean of the earlier hits pass.
    ranges = np.where(np.isnan(only([6], 2.25)), INF, 2.25)
    memory = remembering(*[view(only([1], 2.25))] * 20, view(ranges), voxel=0.3, min_hits=15)
    assert memory.points().shape == (2, 1)


def test_a_dropout_forgets_nothing():
    memory = wide_obstacle()
    before = memory.points()
    memory.update(view(np.full(BEAMS, NAN)))
    np.testing.assert_array_equal(memory.points(), before)


@pytest.mark.parametrize(('passed', 'left'), [(1.2, 1), (1.26, 0)])
def test_beams_must_pass_by_the_voxel_and_three_deviations(passed, left):
    # 0.1 for the voxel and 3 * 0.03 * sqrt(2) for the hit and the beam: 0.227 in all.
    memory = remembering(*[view(only([20], 1.0))] * 2)
    memory.update(view(np.full(BEAMS, passed)))
    remembered = np.hypot(*memory.points())
    assert (remembered < 1.1).sum() == left


def test_an_uncertain_pose_forgets_less():
    memory = remembering(*[view(only([20], 1.0))] * 2)
    memory.update(view(np.full(BEAMS, 1.26), covariance=np.diag([0.05, 0.05, 0.0]) ** 2))
    assert (np.hypot(*memory.points()) < 1.1).sum() == 1


def test_a_beam_that_met_nothing_as_far_as_the_sensor_sees_says_nothing_of_what_is_beyond():
    memory = remembering(*[view(only([20], 2.9))] * 2)
    memory.update(view(np.full(BEAMS, INF), far=3.0))
    assert memory.points().shape == (2, 1)
    memory.update(view(np.full(BEAMS, INF), far=3.2))
    assert memory.points().shape == (2, 0)


@pytest.mark.parametrize('side', [1.0, -1.0])
def test_only_what_lies_in_the_field_of_view_is_forgotten(side):
    memory = remembering(*[view(only([315, 0, 45, 90, 180, 270], 1.0))] * 2, min_hits=1)
    assert memory.points().shape == (2, 6)
    step = side * math.radians(1.0)
    half = view(np.full(121, INF), first=-60 * step, step=step)  # 60 degrees to either side
    for _ in range(5):
        memory.update(half)
    bearings = np.degrees(np.arctan2(*memory.points()[::-1])).round().astype(int) % 360
    assert sorted(bearings) == [90, 180, 270]


@pytest.mark.parametrize('bearing', [60, -60, 61, -61])
def test_at_the_edge_of_the_field_of_view_nothing_is_forgotten(bearing):
    memory = remembering(*[view(only([bearing % 360], 1.0))] * 2)
    step = math.radians(1.0)
    memory.update(view(np.full(121, INF), first=-60 * step, step=step))
    assert memory.points().shape == (2, 1)


@pytest.mark.parametrize('bearing', [0, 359, 358, 1])
@pytest.mark.parametrize('step', [TURN / 360, -TURN / 360, TURN / 359.6, TURN / 359.0])
def test_beams_all_around_have_no_edge(bearing, step):
    memory = remembering(*[view(only([bearing], 1.0))] * 2, min_hits=2)
    memory.update(view(np.full(BEAMS, INF), step=step))
    assert memory.points().shape == (2, 0)


def test_where_beams_go_round_more_than_once_all_must_pass():
    memory = remembering(*[view(only([5], 1.0))] * 2)
    beams, step = 380, TURN / 360
    for blocked in (5, 365):
        ranges = np.full(beams, INF)
        ranges[blocked] = 0.9
        memory.update(view(ranges, step=step))
    assert (np.hypot(*memory.points()) > 0.95).sum() == 1
    memory.update(view(np.full(beams, INF), step=step))
    assert memory.points().shape[1] <= 1


def test_a_thin_thing_that_is_missed_now_and_then_is_kept():
    memory = remembering(*[view(only([20], 3.0))] * 20)
    for scan in range(40):
        ranges = np.full(BEAMS, INF)
        if scan % 3:  # every third scan misses it
            ranges[20] = 3.0
        memory.update(view(ranges))
        assert memory.points().shape == (2, 1), scan


def test_a_thin_thing_that_is_missed_again_and_again_is_gone():
    memory = remembering(*[view(only([20], 3.0))] * 20)
    for _ in range(4):
        memory.update(view(np.full(BEAMS, INF)))
    assert memory.points().shape == (2, 0)


def test_a_single_beam_says_nothing_of_how_wide_a_thing_is():
    memory = remembering(*[view(only([0], 4.0), x=-2.05)] * 20)
    memory.update(view(np.full(BEAMS, INF)))  # from half as far
    np.testing.assert_allclose(memory.points(), [[1.95], [0.0]], atol=1e-6)


def test_a_thing_that_is_wider_than_beams_are_apart_is_gone_at_once():
    memory = remembering(*[view(only([0, 1], 3.0), x=-1.05)] * 20)
    memory.update(view(np.full(BEAMS, INF)))
    assert memory.points().shape == (2, 0)


@pytest.mark.parametrize('beams', [90, 360, 1440])
@pytest.mark.parametrize('pose_deviation', [0.0, 0.01])
def test_a_wall_is_not_forgotten_at_any_angle(beams, pose_deviation):
    rng, step = np.random.default_rng(4), TURN / beams
    known, memory = set(), PointMemory(0.1, 6.0, 2)
    for scan in range(50):
        x, yaw = 0.05 * scan, 0.3 * math.sin(scan)
        bearings = yaw + step * np.arange(beams)
        ranges = ranges_to_wall(0.5, x, 0.0, bearings, 3.0) + 0.03 * rng.normal(size=beams)
        error = pose_deviation * rng.normal(size=3)
        memory.update(
            view(
                ranges, x + error[0], error[1], yaw + error[2], step=step, far=3.0,
                covariance=pose_deviation**2 * np.eye(3),
            )
        )  # fmt: skip
        voxels = set(map(tuple, np.floor(memory.points() / 0.1).T))
        # A wall at 0.5 is in the rows 4 and 5; what noise puts elsewhere may go again.
        assert known <= voxels
        known |= {cell for cell in voxels if cell[1] in (4.0, 5.0)}
    assert len(known) > 60


@pytest.mark.parametrize('per_scan', [0.03, 0.05, 0.08])
def test_a_moving_disc_leaves_no_ghosts(per_scan):
    rng, memory, ghosts = np.random.default_rng(5), PointMemory(0.1, 6.0, 2), []
    for y in np.arange(-1.8, 1.8, per_scan):
        disc = np.array([1.5, y, 0.3])
        ranges = ranges_to([disc], 0.0, 0.0, AROUND, 3.0) + 0.03 * rng.normal(size=BEAMS)
        memory.update(view(ranges, far=3.0))
        points = memory.points()
        # What it hides may be anything: ghosts are those a fifth of a metre beside that.
        distance, shadow = np.hypot(*points), math.asin(0.3 / math.hypot(1.5, y))
        aside = abs(np.arctan2(points[1], points[0]) - math.atan2(y, 1.5)) - shadow
        ghosts.append(((aside * distance > 0.2) & (distance < 2.7)).sum())
        assert points.shape[1] > 3
    assert max(ghosts) <= 1
    assert np.mean(ghosts) < 0.2


def test_a_disc_that_went_far_away_leaves_no_ghosts_for_more_than_five_scans():
    memory = PointMemory(0.1, 6.0, 2)
    for _ in range(30):
        memory.update(view(ranges_to([(3.5, 0.0, 0.3)], 0.0, 0.0, AROUND)))
    for _ in range(5):
        memory.update(view(np.full(BEAMS, INF)))
    assert memory.points().shape == (2, 0)


def test_who_stood_in_a_doorway_is_forgotten_beside_its_frame():
    # Walls at x = 2 beyond y = +-0.45: what stood there leaves no more than three deviations.
    bearings = AROUND
    with np.errstate(divide='ignore', invalid='ignore'):
        wall = np.where(np.cos(bearings) > 0, 2.0 / np.cos(bearings), INF)
        wall[abs(wall * np.sin(bearings)) < 0.45] = INF
    wall = np.where(wall < 5.0, wall, INF)
    standing = np.minimum(wall, ranges_to([(2.3, 0.0, 0.44)], 0.0, 0.0, bearings))
    memory = remembering(*[view(standing)] * 4)
    for _ in range(5):
        memory.update(view(wall))
    points = memory.points()
    inside = points[:, abs(points[1]) < 0.45]
    assert (abs(inside[1]) > 0.45 - 0.13).all()
    assert (abs(points[1]) > 0.45).any()


def test_beams_a_hair_apart_forget_nothing_and_take_no_time():
    memory = remembering(*[view(only([0, 20], 1.0))] * 2)
    memory.update(view([INF] * 4, first=-1.5e-12, step=1e-12))
    assert memory.points().shape == (2, 2)
