# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""From scans and single ranges to features: what is refused, what counts in a sector."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_scans import REP_117, reversed_scan, scan

from kernel_constrained.perception.features import (
    beam_ranges,
    fill_beams,
    fill_sectors,
    place_beams,
    range_feature,
    sector_ranges,
)
from kernel_constrained.perception.scan import Reading, Scan
from kernel_constrained.perception.unusable import Unusable

FAR = 50.0
NAN, INF = math.nan, math.inf
TURN = 2 * math.pi
WRONG_SIGN = 'angle_increment of the wrong sign'


def around(scan, sectors=4, far=FAR):
    """Return the features of sectors all around, from straight behind to the left."""
    return sector_ranges(scan, sectors, -math.pi, math.pi, far)


# -- checks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('change', 'reason'),
    [
        ({'ranges': []}, 'empty scan'),
        ({'angle_min': NAN}, 'non-finite angle_min'),
        ({'angle_min': INF}, 'non-finite angle_min'),
        ({'angle_increment': 0.0}, 'bad angle_increment'),
        ({'angle_increment': NAN}, 'bad angle_increment'),
        ({'angle_increment': -INF}, 'bad angle_increment'),
        ({'angle_increment': 0.1, 'angle_min': 1.0, 'angle_max': -1.0}, WRONG_SIGN),
        ({'angle_increment': -0.1, 'angle_max': 1.0}, WRONG_SIGN),
        ({'angle_increment': 1e-3, 'angle_min': 0.0, 'angle_max': -1e-6}, WRONG_SIGN),
        ({'angle_increment': 1.0, 'ranges': [1.0] * 9}, 'beams over more than a turn'),
        ({'angle_increment': -1.0, 'ranges': [1.0] * 9}, 'beams over more than a turn'),
        ({'angle_increment': 1e300}, 'beams over more than a turn'),
        ({'angle_increment': -1e308}, 'beams over more than a turn'),
        ({'ranges': [3.0]}, 'only one beam'),
        ({'ranges': [3.0], 'angle_increment': 0.0}, 'only one beam'),
        ({'ranges': [0.0] * 3, 'angle_min': 0.0, 'angle_increment': 0.0}, 'bad angle_increment'),
        ({'range_max': 0.0}, 'range_max not above range_min'),
        ({'range_max': 0.05}, 'range_max not above range_min'),
        ({'range_max': 0.0, 'range_min': 0.0}, 'range_max not above range_min'),
        ({'range_max': -1.0, 'range_min': -2.0}, 'range_max not above range_min'),
        ({'range_max': 0.1}, 'range_max not above range_min'),
        ({'range_max': NAN}, 'range_max not above range_min'),
        ({'range_min': NAN}, 'range_max not above range_min'),
        ({'ranges': [NAN, NAN, -INF]}, 'no valid beam'),
        ({'ranges': [0.0, -1.0, 31.0]}, 'no valid beam'),
        ({'ranges': [0.0, 0.0, 0.0]}, 'no valid beam'),
    ],
)
@pytest.mark.parametrize('features', [sector_ranges, beam_ranges])
def test_scan_without_a_beam_to_trust_is_refused_with_its_reason(features, change, reason):
    with pytest.raises(Unusable) as caught:
        features(scan(**{'ranges': [1.0, 2.0, 3.0], **change}), 4, -math.pi, math.pi, FAR)
    assert caught.value.reason == reason


def test_refusal_says_what_was_found():
    with pytest.raises(Unusable, match=r'\(30 and 0\.1\)'):
        around(scan([1.0, 2.0], range_min=30.0, range_max=0.1))
    with pytest.raises(Unusable, match=r'\(721 beams, 0\.5 rad apart: are they degrees\?\)'):
        around(scan([1.0] * 721, angle_increment=0.5))
    with pytest.raises(Unusable, match=r'\(from 0 to -1 by 0\.1\)'):
        around(scan([1.0] * 11, 0.0, 0.1, angle_max=-1.0))


@pytest.mark.parametrize('angle_max', [NAN, 0.2, 0.1, INF])
def test_last_bearing_is_used_for_nothing_but_its_side(angle_max):
    seen = scan([3.0, 3.0], 0.1, 0.1, angle_max=angle_max)
    assert around(seen).tolist() == [FAR, FAR, 3.0, FAR]


@pytest.mark.parametrize('beams', [2, 360, 361, 396])
def test_a_turn_and_a_little_more_is_no_error(beams):
    assert np.isfinite(around(scan([1.0] * beams, angle_increment=2 * math.pi / 360))).all()


def test_scan_whose_limits_are_unknown_or_infinite_is_used():
    assert around(scan([3.0, 3.0], 0.1, 1e-3, range_min=0.0, range_max=INF))[2] == 3.0


@pytest.mark.parametrize(
    ('reading', 'feature'),
    [
        (Reading(0.5, 0.5, 2.5), 0.0),
        (Reading(1.0, 0.5, 2.5), 0.25),
        (Reading(2.5, 0.5, 2.5), 1.0),
        (Reading(-1.0, -2.0, 2.0), 0.25),
    ],
)
def test_range_feature_is_the_place_between_the_limits(reading, feature):
    assert range_feature(reading).tolist() == [feature]


@pytest.mark.parametrize(
    ('numbers', 'reason'),
    [
        ((NAN, 0.5, 2.5), 'range outside its limits'),
        ((INF, 0.5, 2.5), 'no return'),
        ((-INF, 0.5, 2.5), 'too close'),
        ((0.4, 0.5, 2.5), 'range outside its limits'),
        ((2.6, 0.5, 2.5), 'range outside its limits'),
        ((1.0, 2.5, 0.5), 'range_max not above range_min'),
        ((1.0, 1.0, 1.0), 'range_max not above range_min'),
        ((1.0, NAN, 2.5), 'non-finite limits'),
        ((1.0, 0.5, NAN), 'non-finite limits'),
        ((INF, 0.5, INF), 'non-finite limits'),
        ((1.0, -INF, 2.5), 'non-finite limits'),
    ],
)
def test_reading_that_is_no_distance_is_refused_with_its_reason(numbers, reason):
    with pytest.raises(Unusable) as caught:
        range_feature(Reading(*numbers))
    assert caught.value.reason == reason


# -- sectors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(('value', 'meaning'), REP_117)
def test_range_means_what_rep_117_says(value, meaning):
    meaning = None if meaning is None else min(meaning, FAR)
    # One beam in each of four sectors, the value in the second; without it the sector is far.
    features = around(scan([1.0, value, 3.0, 4.0], -0.75 * math.pi))
    assert features.tolist() == [1.0, FAR if meaning is None else meaning, 3.0, 4.0]
    # Beside two valid beams an invalid one does not count.
    features = around(scan([1.0, value, 2.0, 5.0], -0.3 * math.pi, 0.1 * math.pi))
    expected = [1.0, 2.0] if meaning is None else [1.0, 2.0, meaning]
    assert features.tolist() == [FAR, np.median(expected), 5.0, FAR]


def test_limits_themselves_are_valid():
    features = around(scan([0.5, 2.0, 1.0, 1.0], -0.75 * math.pi, range_min=0.5, range_max=2.0))
    assert features.tolist() == [0.5, 2.0, 1.0, 1.0]


def test_zero_is_never_a_range_even_if_range_min_says_so():
    features = around(scan([0.0, 2.0, -0.5, 1.0], -0.75 * math.pi, range_min=-1.0))
    assert features.tolist() == [FAR, 2.0, FAR, 1.0]


def test_ranges_are_cut_off_at_far():
    features = around(scan([1.0, 9.0, INF, 2.0], -0.75 * math.pi), far=5.0)
    assert features.tolist() == [1.0, 5.0, 5.0, 2.0]


def test_sector_of_no_return_is_far_and_makes_the_scan_usable():
    assert around(scan([INF] * 8)).tolist() == [FAR] * 4


def test_sector_without_a_beam_is_far():
    half = scan([2.0] * 90, -math.pi / 2 + 0.01, math.pi / 90)
    features = sector_ranges(half, 8, -math.pi, math.pi, FAR)
    assert features.tolist() == [FAR, FAR, 2.0, 2.0, 2.0, 2.0, FAR, FAR]


def test_beams_outside_the_bearings_are_left_out():
    whole = scan(np.arange(1.0, 9.0), -math.pi + math.pi / 8)
    ahead = sector_ranges(whole, 4, -math.pi / 2, math.pi / 2, FAR)
    assert ahead.tolist() == [3.0, 4.0, 5.0, 6.0]
    with pytest.raises(Unusable, match='no valid beam'):
        sector_ranges(scan([1.0, 2.0], 0.1, 0.1), 4, 1.0, 2.0, FAR)


def wall(bearings):
    """Return ranges to something smooth all around."""
    return 3.0 + np.cos(bearings) + 0.5 * np.sin(2 * bearings)


@pytest.mark.parametrize('sectors', [1, 5, 24])
def test_beam_count_hardly_matters(sectors):
    features = {}
    for beams in (720, 721, 360, 1081):
        increment = 2 * math.pi / (beams - 1)
        bearings = -math.pi + increment * np.arange(beams)
        made = scan(wall(bearings), -math.pi, increment)
        features[beams] = around(made, sectors)
    for beams, values in features.items():
        assert values == pytest.approx(features[720], abs=0.03), beams


@pytest.mark.parametrize('sectors', [4, 12, 24, 36])
@pytest.mark.parametrize('single_precision', [False, True])
@pytest.mark.parametrize('beams', [180, 181, 361])
def test_direction_does_not_matter_even_where_beams_lie_on_the_edges(
    sectors, single_precision, beams
):
    rng = np.random.default_rng(0)
    half_turn, increment = math.pi / 2, math.pi / (beams - 1)
    if single_precision:
        half_turn, increment = float(np.float32(half_turn)), float(np.float32(increment))
    original = scan(rng.uniform(1, 9, beams), -half_turn, increment)
    mirrored = reversed_scan(original)
    for span in (math.pi / 2, math.pi):
        there = sector_ranges(original, sectors, -span, span, FAR)
        back = sector_ranges(mirrored, sectors, -span, span, FAR)
        assert there.tolist() == back.tolist()


def test_beam_on_the_edge_belongs_to_the_sector_it_begins():
    for error in (-1e-7, 0.0, 1e-7):
        for edge in range(8):
            made = scan([2.0, 2.0], -math.pi + edge * math.pi / 4 + error, 1e-3)
            expected = [FAR] * 8
            expected[edge] = 2.0
            assert around(made, 8).tolist() == expected


@pytest.mark.parametrize('turns', [-3, -1, 1, 2, 10])
def test_whole_turns_of_the_first_bearing_do_not_matter(turns):
    ranges = np.random.default_rng(1).uniform(1, 9, 100)
    increment = 2 * math.pi / 100
    plain = around(scan(ranges, -3.1, increment), 7)
    assert around(scan(ranges, -3.1 + turns * 2 * math.pi, increment), 7).tolist() == (
        plain.tolist()
    )


def test_beams_beyond_a_full_turn_join_those_of_the_first():
    ranges = np.arange(1.0, 45.0) / 10
    more = scan(ranges, -math.pi + 0.01, math.pi / 20)
    once = scan(ranges[:40], -math.pi + 0.01, math.pi / 20)
    expected = around(once)
    expected[0] = np.median([*ranges[:10], *ranges[40:]])
    assert around(more).tolist() == expected.tolist()


def test_mounting_turns_the_bearings_with_the_sectors():
    ranges = np.random.default_rng(2).uniform(1, 9, 64)
    increment = 2 * math.pi / 64
    ahead = sector_ranges(scan(ranges, -math.pi + 0.02, increment), 8, -math.pi, math.pi, FAR)
    turned = sector_ranges(scan(ranges, 0.02, increment), 8, 0.0, 2 * math.pi, FAR)
    assert turned.tolist() == ahead.tolist()


@pytest.mark.parametrize('kind', [np.float32, np.float64])
def test_scan_is_read_and_not_written(kind):
    ranges = np.array([1.0, 90.0, np.inf, np.nan], dtype=kind)
    ranges.setflags(write=False)
    around(Scan(ranges, -math.pi, math.pi / 2, 0.1, 100.0))
    assert ranges.tolist()[:3] == [1.0, 90.0, INF]


beam_values = st.one_of(
    st.floats(0.0625, 40.0, width=32), st.sampled_from([NAN, INF, -INF, 0.0, -1.0])
)


@st.composite
def sector_problems(draw):
    """Draw scans whose beams lie in the middle between hundredths of a sector; and sectors."""
    sectors = draw(st.integers(1, 12))
    span = draw(st.sampled_from([2 * math.pi, math.pi, 1.0]))
    begin = draw(st.floats(-math.pi, math.pi))
    step = span / sectors / 100
    first = draw(st.integers(-2000, 2000))
    ranges = draw(st.lists(beam_values, min_size=2, max_size=40))
    widest = int(1.1 * TURN / step / (len(ranges) - 1))
    stride = draw(st.integers(1, min(widest, 300))) * draw(st.sampled_from([-1, 1]))
    return sectors, span, begin, step, first, stride, ranges


def naive_sectors(sectors, span, begin, step, first, stride, ranges):
    """Median by sector, beam by beam with numpy; None where no beam is valid."""
    members = [[] for _ in range(sectors)]
    for i, value in enumerate(np.float32(ranges).astype(float)):
        bearing = begin + (first + i * stride + 0.5) * step
        turn = math.degrees(bearing - begin) % 360.0
        place = math.floor(turn / (math.degrees(span) / sectors))
        if place < sectors and (value == INF or 0.1 <= value <= 30.0):
            members[place].append(min(value, 20.0))
    if not any(members):
        return None
    return [float(np.median(m)) if m else 20.0 for m in members]


@given(sector_problems())
def test_sectors_are_what_a_naive_reference_says(problem):
    sectors, span, begin, step, first, stride, ranges = problem
    expected = naive_sectors(*problem)
    made = scan(ranges, begin + (first + 0.5) * step, stride * step)
    if expected is None:
        with pytest.raises(Unusable, match='no valid beam'):
            sector_ranges(made, sectors, begin, begin + span, 20.0)
    else:
        assert sector_ranges(made, sectors, begin, begin + span, 20.0).tolist() == expected


@pytest.mark.parametrize('fill', [fill_sectors, fill_beams])
@pytest.mark.parametrize('mounting', [(0.0, 0.0, 0.0, 1.0), (0.3, -0.2, 1.0, -1.0)])
@given(problem=sector_problems())
def test_compiled_and_plain_code_say_the_same(fill, mounting, problem):
    sectors, span, begin, step, first, stride, ranges = problem
    beams = (
        np.array(ranges), begin + (first + 0.5) * step, stride * step, 0.1, 30.0, *mounting, begin,
        20.0,
    )  # fmt: skip
    placed = place_beams(*beams)
    assert placed == pytest.approx(place_beams.py_func(*beams), rel=1e-12)
    spacing = (abs(stride * step),) if fill is fill_beams else ()
    arguments = placed, span / sectors, *spacing, 20.0
    compiled, plain = np.empty(sectors), np.empty(sectors)
    assert fill(*arguments, compiled) == fill.py_func(*arguments, plain)
    assert compiled == pytest.approx(plain, rel=1e-12)
