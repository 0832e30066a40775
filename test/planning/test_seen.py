# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""How far a path stays in what was seen: beam by beam, at the edges, and against the truth."""

import math

import numpy as np
import pytest

from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.perception.scan import Scan
from kernel_constrained.planning.config import SensingConfig
from kernel_constrained.planning.seen import seen_horizon
from kernel_constrained.planning.sensing import view_of

NAN, INF = math.nan, math.inf
TURN = 2 * math.pi
RADIUS, SLACK = 0.35, 0.05
CENTRED = Mounting()
FAR = 3.0


def view(
    ranges, x=0.0, y=0.0, yaw=0.0, mounting=CENTRED, first=None, step=None, far=FAR
):  # fmt: skip
    """Return the view of a scan, by default of beams all around."""
    step = TURN / len(ranges) if step is None else step
    first = -0.5 * step * (len(ranges) - 1) if first is None else first
    scan = Scan(np.asarray(ranges, dtype=np.float32), first, step, 0.01, far)
    return view_of(0, scan, Pose(x, y, 0.0, yaw), mounting, SensingConfig())


def ranges_to(discs, origin, bearings, far=FAR):
    """Return exact ranges to discs (k, 3); inf beyond ``far``."""
    cosine, sine = np.cos(bearings), np.sin(bearings)
    nearest = np.full(len(bearings), INF)
    for cx, cy, radius in discs:
        dx, dy = cx - origin[0], cy - origin[1]
        along, half = dx * cosine + dy * sine, radius**2 - (dx * sine - dy * cosine) ** 2
        meets = (half > 0) & (along > 0)
        nearest[meets] = np.minimum(nearest[meets], along[meets] - np.sqrt(half[meets]))
    return np.where(nearest <= far, np.maximum(nearest, 0.01), INF)


def seen(x, y, of, radius=RADIUS, slack=SLACK, **robot):
    """Return which discs were seen, each asked for alone."""
    x, y = np.atleast_1d(np.asarray(x, float)), np.atleast_1d(np.asarray(y, float))
    return np.array([
        seen_horizon(x[i : i + 1], y[i : i + 1], of, radius, slack, **robot) == 1
        for i in range(len(x))
    ])  # fmt: skip


def straight_on(until=3.0, count=301):
    return np.linspace(0.0, until, count), np.zeros(count)


# -- one thing at a time ------------------------------------------------------------------------


def test_the_horizon_is_where_the_disc_leaves_the_range_of_the_sensor():
    x, y = straight_on()
    last = x[seen_horizon(x, y, view(np.full(360, INF)), RADIUS, SLACK) - 1]
    assert last == pytest.approx(FAR + SLACK - RADIUS, abs=0.011)


def test_the_horizon_is_where_the_disc_sticks_out_behind_what_a_beam_met():
    ranges = np.full(361, INF)
    ranges[180] = 2.0  # straight on
    x, y = straight_on()
    last = x[seen_horizon(x, y, view(ranges, step=TURN / 360), RADIUS, SLACK) - 1]
    assert last == pytest.approx(2.0 + SLACK - RADIUS, abs=0.011)


def test_all_samples_may_be_seen_and_none_may_be_given():
    x, y = straight_on(1.0)
    assert seen_horizon(x, y, view(np.full(360, INF)), RADIUS, SLACK) == len(x)
    assert seen_horizon(x[:0], y[:0], view(np.full(360, INF)), RADIUS, SLACK) == 0


def test_a_beam_that_says_nothing_has_seen_nothing():
    ranges = np.full(361, INF)
    ranges[184:187] = NAN  # five degrees to the left of straight on
    x, y = straight_on()
    first = x[seen_horizon(x, y, view(ranges, step=TURN / 360), RADIUS, SLACK)]
    # Up to then, the disc about the robot covers what the disc about the sample does.
    assert SLACK < first < SLACK + 0.02


def test_a_scan_that_says_nothing_has_seen_where_the_robot_is():
    x, y = straight_on()
    count = seen_horizon(x, y, view(np.full(360, NAN)), RADIUS, SLACK)
    assert x[count - 1] <= SLACK < x[count] + 1e-9


def test_the_robot_may_have_moved_since():
    blind = view(np.full(360, NAN))
    x, y = straight_on()
    assert seen_horizon(x + 1.0, y, blind, RADIUS, SLACK) == 0
    moved = seen_horizon(x + 1.0, y, blind, RADIUS, SLACK, robot=np.array([1.0, 0.0]))
    assert x[moved - 1] <= SLACK < x[moved] + 1e-9


def test_no_number_is_no_position_that_was_seen():
    free = view(np.full(360, INF))
    for bad in (NAN, INF, -INF):
        assert seen_horizon(np.array([0.1, bad]), np.zeros(2), free, RADIUS, SLACK) == 1
        assert seen_horizon(np.zeros(2), np.array([0.1, bad]), free, RADIUS, SLACK) == 1


def test_positions_may_be_columns_of_a_table():
    path = np.column_stack(straight_on())
    free = view(np.full(360, INF))
    expected = seen_horizon(*straight_on(), free, RADIUS, SLACK)
    assert seen_horizon(path[:, 0], path[:, 1], free, RADIUS, SLACK) == expected


# -- the field of view --------------------------------------------------------------------------


@pytest.mark.parametrize('side', [1.0, -1.0])
@pytest.mark.parametrize('yaw', [0.0, 2.0, -3.1])
def test_a_path_can_go_forward_through_half_a_turn_of_beams_and_not_back(side, yaw):
    half = view(np.full(181, INF), yaw=yaw, step=side * math.radians(1.0))
    x, _ = straight_on(2.5)
    turned = np.cos(yaw) * x, np.sin(yaw) * x
    assert seen_horizon(*turned, half, RADIUS, SLACK) == len(x)
    back = seen_horizon(-turned[0], -turned[1], half, RADIUS, SLACK)
    assert x[back - 1] < SLACK + 0.02


def test_what_lies_beside_the_field_of_view_was_not_seen():
    sixty = view(np.full(61, INF), step=math.radians(1.0))
    bearings = np.radians([0.0, 15.0, 19.0, 21.5, 30.0, 45.0, 90.0, 180.0])
    found = seen(2.0 * np.cos(bearings), 2.0 * np.sin(bearings), sixty)
    # A disc of 0.35 at 2 m reaches over ten degrees to either side.
    assert found.tolist() == [True, True, True, False, False, False, False, False]


@pytest.mark.parametrize('degrees', [1.0, 15.0, 60.0])
def test_a_disc_between_unseen_bearings_was_not_seen(degrees):
    few = view(np.full(4, INF), step=math.radians(degrees))
    bearings = np.radians(np.arange(120.0, 240.0, 0.7))
    assert not seen(2.0 * np.cos(bearings), 2.0 * np.sin(bearings), few, 0.01, 0.001).any()


@pytest.mark.parametrize('step', [TURN / 360, -TURN / 360, float(np.float32(TURN / 360)),
                                  TURN / 359.0, TURN / 359.6, TURN / 340])  # fmt: skip
def test_beams_all_around_have_no_edge(step):
    around = view(np.full(360, INF), first=math.pi, step=step)
    bearings = math.pi + np.radians(np.linspace(-30.0, 30.0, 121))
    assert seen(2.0 * np.cos(bearings), 2.0 * np.sin(bearings), around).all()


def test_where_beams_go_round_more_than_once_all_must_pass():
    for blocked in (5, 365):
        ranges = np.full(380, INF)
        ranges[blocked] = 1.0
        around = view(ranges, first=0.0, step=TURN / 360)
        bearing = math.radians(5.0)
        assert not seen(2.0 * math.cos(bearing), 2.0 * math.sin(bearing), around)[0]


def test_a_sensor_ahead_of_the_robot_does_not_see_behind_itself_but_where_the_robot_stands():
    ahead = view(np.full(181, INF), mounting=Mounting(0.1, 0.0, 0.0), step=math.radians(1.0))
    x, y = straight_on(2.0)
    assert seen_horizon(x, y, ahead, RADIUS, SLACK) == len(x)
    long_ahead = view(np.full(181, INF), mounting=Mounting(1.0, 0.0, 0.0), step=math.radians(1.0))
    assert x[seen_horizon(x, y, long_ahead, RADIUS, SLACK)] < 0.1


def test_rays_that_miss_the_robot_altogether_have_not_seen_more_for_that():
    blind = view(np.full(360, NAN), mounting=Mounting(1.0, 0.0, 0.0))
    assert not seen([1.0, 1.0, 1.5], [1.0, -1.0, 0.0], blind).any()


# -- coarse beams -------------------------------------------------------------------------------


@pytest.mark.parametrize(('beside', 'expected'), [(INF, True), (2.0, False)])
def test_a_disc_between_two_beams_was_seen_only_if_both_went_past_it(beside, expected):
    ranges = np.full(12, INF)  # at 15, 45, ... degrees
    ranges[6] = beside
    coarse = view(ranges)
    bearing = coarse.first_bearing + 6.5 * coarse.increment
    assert seen(2.5 * math.cos(bearing), 2.5 * math.sin(bearing), coarse)[0] == expected


def test_where_beams_are_far_apart_those_beside_the_disc_must_reach_it():
    ranges = np.full(36, INF)
    coarse = view(ranges, first=0.0)
    assert seen(2.0, 0.0, coarse)[0]  # 0.35 at 2 m: beams at -10, 0 and 10 degrees cross it
    for beam in (2, -2):  # at 20 degrees, beside it
        ranges[:] = INF
        ranges[beam] = 1.5
        assert not seen(2.0, 0.0, view(ranges, first=0.0))[0]
        ranges[beam], ranges[2 * beam] = INF, 1.5  # the next but one
        assert seen(2.0, 0.0, view(ranges, first=0.0))[0]


@pytest.mark.parametrize('beam', [0, 35])
def test_between_the_last_beam_and_the_first_both_must_reach_the_disc(beam):
    step = TURN / 36.4  # the gap between them is a little wider than others
    bearing = 36.2 * step
    x, y = 2.0 * math.cos(bearing), 2.0 * math.sin(bearing)
    ranges = np.full(36, INF)
    assert seen(x, y, view(ranges, first=0.0, step=step), 0.02)[0]
    ranges[beam] = 1.5
    assert not seen(x, y, view(ranges, first=0.0, step=step), 0.02)[0]


def test_a_wide_gap_of_one_beam_at_the_edge_of_the_field_of_view_counts_as_unseen():
    coarse = view(np.full(7, INF), step=math.radians(10.0))  # 30 degrees to either side
    bearing = math.radians(25.0)
    # 0.1 at 2 m reaches to 28 degrees: the beam beside it at 30 saw it, that at 20 too.
    assert seen(2.0 * math.cos(bearing), 2.0 * math.sin(bearing), coarse, 0.1)[0]
    bearing = math.radians(28.0)  # to 31 degrees: beside it is nothing
    assert not seen(2.0 * math.cos(bearing), 2.0 * math.sin(bearing), coarse, 0.1)[0]


def test_two_beams_a_hair_apart_are_dealt_with_in_no_time():
    hair = view([INF, INF], step=1e-12)
    x, y = straight_on()
    for path in (x, -x):
        assert x[seen_horizon(path, y, hair, RADIUS, SLACK)] < SLACK + 0.02


# -- against what the words say, and against the truth ------------------------------------------


def sticks_out(x, y, of, radius, slack, bearings, ranges):
    """Whether a disc sticks out of what was seen along any of these rays, by fine steps."""
    off = abs(np.angle(np.exp(1j * (bearings - math.atan2(y - of.origin[1], x - of.origin[0])))))
    distance = math.hypot(x - of.origin[0], y - of.origin[1])
    near = (off * distance < 1.6 * radius) | (distance < 2.0 * radius)  # others miss it
    along = np.arange(0.0, distance + radius, 2e-3)
    px = of.origin[0] + np.outer(np.cos(bearings[near]), along)
    py = of.origin[1] + np.outer(np.sin(bearings[near]), along)
    inside = (px - x) ** 2 + (py - y) ** 2 < radius**2
    own = (px - of.robot[0]) ** 2 + (py - of.robot[1]) ** 2 <= (RADIUS + slack) ** 2
    return bool((inside & ~own & (along > ranges[near, None] + slack)).any())


@pytest.mark.parametrize('seed', range(12))
def test_a_disc_is_seen_where_no_ray_finds_it_sticking_out(seed):
    rng = np.random.default_rng(seed)
    beams = int(rng.integers(150, 400))
    share = 1.0 if seed % 3 == 0 else rng.uniform(0.3, 0.9)
    step = rng.choice([-1, 1]) * share * TURN / beams
    discs = np.column_stack([rng.uniform(-3, 3, (6, 2)), rng.uniform(0.1, 0.5, 6)])
    mounting = Mounting(*rng.uniform(-0.3, 0.3, 2), rng.uniform(-3, 3), bool(seed % 2))
    blank = view(np.full(beams, INF), 0.2, 0.1, 1.0, mounting, step=step)
    bearings = blank.first_bearing + blank.increment * np.arange(beams)
    ranges = ranges_to(discs, blank.origin, bearings)
    for lost in np.flatnonzero(rng.random(beams) < 0.01).clip(1, beams - 2):
        ranges[lost - 1 : lost + 2] = NAN  # three side by side: fewer are bridged
    of = view(ranges, 0.2, 0.1, 1.0, mounting, step=step)
    rest = TURN - abs(step) * (beams - 1)
    unseen = bearings[-1] + of.increment * np.arange(1.0, rest / abs(step) - 0.01, 0.25)
    if rest < 1.5 * abs(step):
        unseen = unseen[:0]
    rays = np.concatenate([bearings, unseen])
    free = np.concatenate([of.ranges, np.full(len(unseen), -SLACK)])
    found = np.zeros(2, dtype=int)
    for _ in range(60):
        x, y = of.robot + rng.uniform(0.0, 1.2) * rng.normal(size=2)
        if abs(step) * math.hypot(x - of.origin[0], y - of.origin[1]) > SLACK:
            continue
        if seen(x, y, of)[0]:  # nothing sticks out of a disc that is smaller by a gap of beams
            smaller = RADIUS - 0.25 * SLACK
            assert not sticks_out(x, y, of, smaller, SLACK + 5e-3, bearings, of.ranges)
            assert not sticks_out(
                x, y, of, RADIUS - SLACK, SLACK + 5e-3, unseen, free[len(bearings) :]
            )
            found[0] += 1
        else:  # something sticks out of one that is larger by a step
            assert sticks_out(x, y, of, RADIUS + 5e-3, SLACK - 5e-3, rays, free)
            found[1] += 1
    assert found.min() > 3


@pytest.mark.parametrize('beams', [90, 180, 360])
@pytest.mark.parametrize('share', [1.0, 0.6])
def test_paths_clear_of_what_was_met_are_truly_free_as_far_as_they_were_seen(beams, share):
    robot, margin, steps = 0.3, 0.05, 0
    rng = np.random.default_rng(beams)
    x, y = straight_on(4.0, 201)
    for _ in range(60):
        discs = np.column_stack([rng.uniform(-4, 4, (12, 2)), rng.uniform(0.15, 0.6, 12)])
        discs = discs[np.hypot(discs[:, 0], discs[:, 1]) > discs[:, 2] + robot + 2 * margin]
        step = share * TURN / beams
        bearings = -0.5 * step * (beams - 1) + step * np.arange(beams)
        ranges = ranges_to(discs, np.zeros(2), bearings)
        ranges[rng.random(beams) < 0.02] = NAN
        of = view(ranges, step=step)
        for heading in rng.uniform(-math.pi, math.pi, 20):
            px, py = x * math.cos(heading) - y * math.sin(heading), x * math.sin(heading)
            keeps = np.hypot(
                of.points[0][:, None] - px, of.points[1][:, None] - py
            ).min(axis=0, initial=INF) > robot + margin  # fmt: skip
            proven = len(x) if keeps.all() else int(np.argmin(keeps))
            horizon = min(proven, seen_horizon(px, py, of, robot + margin, SLACK))
            true = np.hypot(discs[:, :1] - px[:horizon], discs[:, 1:2] - py[:horizon])
            assert (true - discs[:, 2:] > robot).all()
            steps += horizon
    assert steps > 3_000


# -- beams that say nothing ---------------------------------------------------------------------


@pytest.mark.parametrize(('silent', 'seen_to_the_end'), [
    ((180,), True), ((180, 181), True), ((179, 180, 181), False),
    ((0,), True), ((359, 0), True), ((359, 0, 1), False),
])  # fmt: skip
def test_a_dropout_of_up_to_two_beams_is_bridged_and_more_are_not(silent, seen_to_the_end):
    ranges = np.full(360, INF)
    ranges[list(silent)] = NAN
    x, y = straight_on(1.5)
    x = x if 180 in silent else -x
    of = view(ranges, step=TURN / 360)
    assert (seen_horizon(x, y, of, RADIUS, SLACK) == len(x)) == seen_to_the_end


def test_a_bridged_beam_reaches_no_further_than_the_shorter_of_its_neighbours():
    ranges = np.full(360, INF)
    ranges[181], ranges[180] = 1.0, NAN
    x, y = straight_on(2.5)
    last = x[seen_horizon(x, y, view(ranges, step=TURN / 360), RADIUS, SLACK) - 1]
    assert last + RADIUS <= 1.0 + 2.0 * SLACK


def test_silent_beams_at_the_edge_of_the_field_of_view_are_not_bridged():
    ranges = np.full(181, INF)
    ranges[0] = NAN
    whole = view(np.full(181, INF), first=-0.5 * np.pi, step=np.pi / 180)
    cut = view(ranges, first=-0.5 * np.pi, step=np.pi / 180)
    y = -np.linspace(0.0, 2.0, 201)
    x = np.full_like(y, 0.6)
    assert seen_horizon(x, y, cut, RADIUS, SLACK) <= seen_horizon(x, y, whole, RADIUS, SLACK)
