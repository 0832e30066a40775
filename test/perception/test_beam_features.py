# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Ranges at a grid of bearings, and where the sensor sits on the robot."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_scans import REP_117, reversed_scan, room_scan, scan

from kernel_constrained.perception.features import AT_CENTRE, beam_ranges, sector_ranges
from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.perception.unusable import Unusable

FAR = 50.0
NAN, INF = math.nan, math.inf
TURN = 2 * math.pi


def around(scan, beams=4, far=FAR, mounting=AT_CENTRE):
    """Return the ranges at a grid all around; of four, the first looks back to the right."""
    return beam_ranges(scan, beams, -math.pi, math.pi, far, mounting)


def at_grid(ranges, count=None, **more):
    """Return a scan whose beams lie at the grid of so many beams all around."""
    count = count or len(ranges)
    return scan(ranges, -math.pi + math.pi / count, TURN / count, **more)


# -- the grid -----------------------------------------------------------------------------------


def test_beam_at_the_grid_is_taken_as_it_is():
    assert around(at_grid([1.0, 2.0, 3.0, 4.0])) == pytest.approx([1.0, 2.0, 3.0, 4.0], abs=1e-5)


def test_between_two_beams_the_range_is_interpolated():
    # A quarter of the way from each beam to the next.
    seen = scan([1.0, 2.0, 4.0, 8.0], -0.875 * math.pi, math.pi / 2)
    assert around(seen) == pytest.approx([1.25, 2.5, 5.0, 6.25], abs=1e-5)


def test_grid_is_interpolated_across_the_end_of_the_turn():
    seen = scan([1.0, 2.0, 4.0, 8.0], -0.625 * math.pi, math.pi / 2)
    assert around(seen) == pytest.approx([2.75, 1.75, 3.5, 7.0], abs=1e-5)


def test_one_beam_beside_the_grid_stands_for_it_and_two_steps_away_it_does_not():
    seen = scan([3.0, 3.0], 0.1, 1e-6)
    assert around(seen, 4).tolist() == [FAR, 3.0, 3.0, FAR]
    assert around(seen, 8).tolist() == [FAR, FAR, FAR, 3.0, 3.0, FAR, FAR, FAR]


def test_half_a_turn_of_beams_leaves_the_other_half_far():
    half = scan([2.0] * 91, -math.pi / 2, math.pi / 90)
    features = around(half, 12)
    assert features.tolist() == [FAR] * 2 + [2.0] * 8 + [FAR] * 2


@pytest.mark.parametrize('beams', [8, 20])
def test_sensor_with_few_beams_is_interpolated_between_its_own(beams):
    sparse = scan(np.arange(beams) + 1.0, -math.pi, TURN / beams)
    features = around(sparse, 72)
    places = (np.arange(72) + 0.5) / 72 * beams
    expected = np.interp(places, np.arange(beams + 1), [*(np.arange(beams) + 1.0), 1.0])
    assert features == pytest.approx(expected, abs=1e-4)


def test_grid_outside_the_view_is_far_and_without_any_beam_beside_it_the_scan_is_refused():
    seen = scan([1.0, 2.0], 0.1, 0.1)
    with pytest.raises(Unusable, match='no valid beam'):
        beam_ranges(seen, 4, 1.0, 2.0, FAR)
    assert beam_ranges(seen, 4, 0.0, 2.0, FAR).tolist()[2:] == [FAR, FAR]


# -- what a range means -------------------------------------------------------------------------


@pytest.mark.parametrize(('value', 'meaning'), REP_117)
def test_range_means_what_rep_117_says(value, meaning):
    # Six beams to a step of the grid; the third stands at the first bearing of it.
    ranges = np.full(24, 4.0)
    ranges[2] = value
    seen = scan(ranges, -0.75 * math.pi - TURN / 12, TURN / 24)
    expected = 4.0 if meaning is None else min(meaning, 20.0)
    assert around(seen, far=20.0) == pytest.approx([expected, 4.0, 4.0, 4.0], abs=1e-4)
    # Where it is the only beam about, the bearing is far; the others do not notice.
    alone = around(at_grid([4.0, value, 4.0, 4.0] + [4.0] * 12), 16, far=20.0)
    beside = around(at_grid([4.0, 4.0, 4.0, 4.0] + [4.0] * 12), 16, far=20.0)
    assert alone[[0, *range(2, 16)]] == pytest.approx(beside[[0, *range(2, 16)]], abs=1e-3)


def test_gap_of_invalid_beams_is_far():
    seen = scan([2.0] * 20 + [NAN] * 20 + [2.0] * 40, -math.pi, TURN / 80)
    features = around(seen, 40)
    assert features[11:19].tolist() == [FAR] * 8
    assert np.delete(features, range(9, 21)) == pytest.approx(2.0)


# -- what does not matter -----------------------------------------------------------------------


def wall(bearings):
    """Return ranges to something smooth all around."""
    return 3.0 + np.cos(bearings) + 0.5 * np.sin(2 * bearings)


@pytest.mark.parametrize('beams', [360, 720, 721, 1081])
def test_beam_count_does_not_matter(beams):
    increment = TURN / (beams - 1)
    made = scan(wall(-math.pi + increment * np.arange(beams)), -math.pi, increment)
    grid = -math.pi + (np.arange(72) + 0.5) * TURN / 72
    assert around(made, 72) == pytest.approx(wall(grid), abs=2e-4)


@pytest.mark.parametrize('features', [sector_ranges, beam_ranges])
@pytest.mark.parametrize('single_precision', [False, True])
@pytest.mark.parametrize('beams', [180, 181, 361])
def test_direction_and_an_upside_down_mounting_do_not_matter(features, single_precision, beams):
    rng = np.random.default_rng(0)
    half_turn, increment = math.pi / 2, math.pi / (beams - 1)
    if single_precision:
        half_turn, increment = float(np.float32(half_turn)), float(np.float32(increment))
    original = scan(rng.uniform(1, 9, beams), -half_turn, increment)
    backwards = reversed_scan(original)
    # Upside down, the sensor sees the same from right to left.
    mirrored = scan(original.ranges[::-1], -half_turn, increment)
    both = reversed_scan(mirrored)
    for span in (math.pi / 2, math.pi):
        expected = features(original, 36, -span, span, FAR)
        assert features(backwards, 36, -span, span, FAR) == pytest.approx(expected, abs=1e-4)
        for seen in (mirrored, both):
            mounted = features(seen, 36, -span, span, FAR, Mounting(upside_down=True))
            assert mounted == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize('features', [sector_ranges, beam_ranges])
@pytest.mark.parametrize('turns', [-1, 1, 3])
def test_whole_turns_do_not_matter(features, turns):
    ranges = np.random.default_rng(1).uniform(1, 9, 100)
    plain = features(scan(ranges, -3.1), 7, -math.pi, math.pi, FAR)
    for seen, yaw in ((scan(ranges, -3.1 + turns * TURN), 0.0), (scan(ranges, -3.1), turns)):
        turned = features(seen, 7, -math.pi, math.pi, FAR, Mounting(yaw=TURN * yaw))
        assert turned == pytest.approx(plain, abs=1e-6)


beam_values = st.one_of(
    st.floats(0.125, 29.0, width=32), st.sampled_from([NAN, INF, -INF, 0.0, -1.0, 40.0])
)


@st.composite
def beam_problems(draw):
    """Draw scans whose beams lie in the middle between hundredths of the grid's spacing."""
    count = draw(st.integers(2, 12))
    span = draw(st.sampled_from([TURN, math.pi, 1.0]))
    begin = draw(st.floats(-math.pi, math.pi))
    step = span / count / 100
    first = draw(st.integers(-2000, 2000))
    ranges = draw(st.lists(beam_values, min_size=2, max_size=40))
    widest = int(0.99 * TURN / step / (len(ranges) - 1))
    stride = draw(st.integers(1, min(widest, 300))) * draw(st.sampled_from([-1, 1]))
    return count, span, begin, step, first, stride, ranges


def naive_beams(count, span, begin, step, first, stride, ranges):
    """Interpolate at each bearing of the grid with numpy; None where no beam is near any."""
    values = np.float32(ranges).astype(float)
    valid = (values == INF) | ((values >= 0.1) & (values <= 30.0))
    bearings = (begin + (first + stride * np.arange(len(values)) + 0.5) * step)[valid]
    values = np.minimum(values, 20.0)[valid]
    reach, found = max(100, abs(stride)) * step, []
    for node in range(count):
        bearing = begin + (100 * node + 50) * step
        sides = []
        for distance in ((bearing - bearings) % TURN, (bearings - bearing) % TURN):
            near = [pair for pair in zip(distance, values) if pair[0] <= reach]
            sides += [min(near)] if near else []
        if len(sides) == 2:
            (below, low), (above, high) = sides
            found.append((above * low + below * high) / (below + above))
        else:
            found.append(sides[0][1] if sides else None)
    if found.count(None) == count:
        return None
    return [20.0 if value is None else value for value in found]


@given(beam_problems())
def test_beams_are_what_a_naive_reference_says(problem):
    count, span, begin, step, first, stride, ranges = problem
    expected = naive_beams(*problem)
    made = scan(ranges, begin + (first + 0.5) * step, stride * step)
    if expected is None:
        with pytest.raises(Unusable, match='no valid beam'):
            beam_ranges(made, count, begin, begin + span, 20.0)
    else:
        features = beam_ranges(made, count, begin, begin + span, 20.0)
        assert features == pytest.approx(expected, abs=0.05)


# -- mounting -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('mounting', 'beam', 'ahead'),
    [
        (Mounting(), 0, 2.0),
        (Mounting(x=0.5), 0, 2.5),
        (Mounting(x=-0.5), 0, 1.5),
        (Mounting(yaw=math.pi / 2), 3, 2.0),
        (Mounting(yaw=-math.pi / 2), 1, 2.0),
        (Mounting(yaw=math.pi), 2, 2.0),
        (Mounting(yaw=math.pi / 2, upside_down=True), 1, 2.0),
        (Mounting(yaw=-math.pi / 2, upside_down=True), 3, 2.0),
        (Mounting(x=1.0, yaw=math.pi), 2, 3.0),
    ],
)
@pytest.mark.parametrize('features', [sector_ranges, beam_ranges])
def test_beam_that_looks_ahead_of_the_robot(features, mounting, beam, ahead):
    # Beams of the sensor: ahead, to its left, back, to its right; one of them looks ahead of the
    # robot.
    ranges = np.full(4, INF)
    ranges[beam] = 2.0
    seen = scan(ranges, 0.0, math.pi / 2)
    assert features(seen, 1, -0.1, 0.1, FAR, mounting) == pytest.approx([ahead], abs=1e-4)


@pytest.mark.parametrize('features', [sector_ranges, beam_ranges])
def test_sensor_beside_the_centre_sees_the_bearing_from_there(features):
    # One metre ahead of a sensor that is one metre to the left: at 45 degrees from the centre.
    seen = scan([1.0, 1.0], 0.0, 1e-4)
    there = features(seen, 8, -math.pi / 8, TURN - math.pi / 8, FAR, Mounting(y=1.0))
    assert there[1] == pytest.approx(math.sqrt(2.0), abs=1e-3)
    assert there[3:].tolist() == [FAR] * 5


def test_no_return_is_moved_nowhere_and_its_direction_is_the_sensors():
    # Ahead of the sensor three beams of five return nothing; of two to the left, both return.
    seen = scan([INF, 2.0, INF, 2.0, INF] + [NAN] * 7 + [2.0, 2.0], 0.05, 0.1)
    features = sector_ranges(seen, 4, 0.0, 2.0, 20.0, Mounting(x=0.2))
    assert features[0] == 20.0
    assert 2.0 < features[2] < 2.2


MOUNTINGS = [
    Mounting(0.3, -0.2),
    Mounting(0.0, 0.0, 2.0),
    Mounting(0.0, 0.0, 0.0, True),
    Mounting(-0.4, 0.3, -1.0, True),
    Mounting(0.5, 0.5, 3.0),
]


@pytest.mark.parametrize('mounting', MOUNTINGS)
@pytest.mark.parametrize('features', [sector_ranges, beam_ranges])
def test_room_looks_the_same_wherever_the_sensor_sits(features, mounting):
    pose = Pose(4.0, 2.5, 0.0, 0.7)
    centred = features(room_scan(pose, 3600), 90, -math.pi, math.pi, FAR)
    mounted = features(room_scan(pose, 3600, mounting), 90, -math.pi, math.pi, FAR, mounting)
    assert mounted == pytest.approx(centred, abs=0.03)
    plain = features(room_scan(pose, 3600, mounting), 90, -math.pi, math.pi, FAR)
    assert np.abs(plain - centred).max() > 0.2, 'and without the mounting it does not'


def test_square_room_has_the_ranges_of_a_square():
    # Four metres wide; seen by a sensor off the centre, turned and upside down.
    mounting = Mounting(0.5, -0.3, 0.8, True)
    bearings = mounting.yaw - (np.arange(7200) / 7200 * TURN)
    with np.errstate(divide='ignore'):
        along = (np.sign(np.cos(bearings)) * 2.0 - mounting.x) / np.cos(bearings)
        across = (np.sign(np.sin(bearings)) * 2.0 - mounting.y) / np.sin(bearings)
    seen = scan(np.minimum(along, across), 0.0, TURN / 7200)
    grid = -math.pi + (np.arange(36) + 0.5) * TURN / 36
    expected = 2.0 / np.maximum(np.abs(np.cos(grid)), np.abs(np.sin(grid)))
    assert around(seen, 36, mounting=mounting) == pytest.approx(expected, abs=0.01)
