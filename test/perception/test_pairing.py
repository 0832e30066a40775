# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Scans and trusted poses joined by stamp: whatever the order, however broken the clock."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_scans import SECOND

from kernel_constrained.perception.geometry import interpolated, Pose
from kernel_constrained.perception.pairing import Pairing
from kernel_constrained.perception.unusable import Unusable


def pose(x, yaw=0.0):
    return Pose(float(x), 2.0 * x, 0.0, yaw)


def feed(pairing, events):
    """Add (kind, stamp) in their order; return the pairs as they come, and the refusals."""
    pairs, refused = [], []
    for kind, stamp in events:
        try:
            if kind == 'scan':
                pairing.add_scan(stamp, f'scan {stamp}')
            else:
                pairing.add_pose(stamp, pose(stamp / SECOND))
        except Unusable as error:
            refused.append((kind, stamp, error.reason))
        pairs += pairing.pairs()
    return pairs, refused


def waiting(pairing):
    """Return how many scans and poses are held, those of the next pass too."""
    return tuple(
        len(stream.stamps) + (len(stream.next_pass.stamps) if stream.next_pass else 0)
        for stream in (pairing._scans, pairing._poses)
    )


@pytest.mark.parametrize('kinds', [('scan', 'pose'), ('pose', 'scan')])
def test_scan_and_pose_of_one_stamp_are_a_pair_at_once_and_once(kinds):
    pairing = Pairing(0.0, 10)
    pairs, refused = feed(pairing, [(kind, 5) for kind in kinds])
    assert [(pair.stamp, pair.scan, pair.pose) for pair in pairs] == [
        (5, 'scan 5', pose(5 / SECOND))
    ]
    assert not refused
    assert pairing.pairs() == []


def test_pose_of_the_stamp_itself_is_taken_as_it_is():
    pairing = Pairing(10.0, 10)
    exact = Pose(0.1, 0.2, 0.3, -math.pi)  # interpolation would wrap it
    pairing.add_pose(1, pose(7))
    pairing.add_pose(2, exact)
    pairing.add_scan(2, 'scan')
    assert pairing.pairs()[0].pose is exact


@pytest.mark.parametrize('scan_last', [True, False])
def test_scan_between_two_poses_has_the_pose_between_them(scan_last):
    before, after = pose(1, 3.0), pose(2, -3.0)
    pairing = Pairing(0.5, 10)
    pairing.add_pose(10 * SECOND, before)
    if not scan_last:
        pairing.add_scan(10 * SECOND + SECOND // 10, 'scan')
        assert pairing.pairs() == []
    pairing.add_pose(10 * SECOND + SECOND * 4 // 10, after)
    if scan_last:
        pairing.add_scan(10 * SECOND + SECOND // 10, 'scan')
    (pair,) = pairing.pairs()
    assert pair.pose == interpolated(before, after, 0.25)


@pytest.mark.parametrize(
    ('max_gap', 'gap', 'paired'),
    [
        (0.5, SECOND // 2, True),
        (0.5, SECOND // 2 + 1, False),
        (0.0, 2, False),
        (1e6, 999_999 * SECOND, True),
        (math.inf, 10**18, True),
    ],
)
def test_poses_further_apart_than_max_gap_are_not_interpolated(max_gap, gap, paired):
    pairing = Pairing(max_gap, 10)
    pairs, _ = feed(pairing, [('pose', 0), ('scan', gap // 2), ('pose', gap), ('scan', gap)])
    assert [pair.stamp for pair in pairs] == ([gap // 2, gap] if paired else [gap])
    assert pairing.unpaired == (0 if paired else 1)


def test_scan_before_the_first_pose_is_counted_and_one_after_the_last_waits():
    pairing = Pairing(1.0, 10)
    pairs, _ = feed(pairing, [('scan', 1), ('pose', 2), ('scan', 3)])
    assert pairs == []
    assert (pairing.unpaired, waiting(pairing)) == (1, (1, 1))
    pairs, _ = feed(pairing, [('pose', 4)])
    assert [pair.stamp for pair in pairs] == [3]


def test_pairs_that_become_complete_together_come_oldest_first():
    pairing = Pairing(1.0, 10)
    pairs, _ = feed(pairing, [('pose', 0), ('scan', 1), ('scan', 2), ('scan', 3), ('pose', 3)])
    assert [pair.stamp for pair in pairs] == [1, 2, 3]
    assert [pair.scan for pair in pairs] == ['scan 1', 'scan 2', 'scan 3']


# -- order --------------------------------------------------------------------------------------

# Stamps on a coarse grid, so that exact matches, gaps and ties are all common.
stamps = st.sets(st.integers(0, 40), max_size=25).map(
    lambda found: [step * SECOND // 10 for step in sorted(found)]
)


@given(stamps, stamps, st.data())
def test_every_interleaving_of_the_same_streams_gives_the_same_pairs(scans, poses, data):
    events = [('scan', stamp) for stamp in scans] + [('pose', stamp) for stamp in poses]
    expected, refused = feed(Pairing(0.25, 50), sorted(events, key=lambda event: event[1]))
    assert not refused
    turns = data.draw(st.permutations(['scan'] * len(scans) + ['pose'] * len(poses)))
    streams = {'scan': iter(scans), 'pose': iter(poses)}
    pairing = Pairing(0.25, 50)
    pairs, refused = feed(pairing, [(turn, next(streams[turn])) for turn in turns])
    assert pairs == expected
    assert not refused
    left = waiting(pairing)[0]
    assert len(pairs) + pairing.unpaired + left == len(scans)


@given(stamps, stamps)
def test_pairs_are_what_a_naive_search_finds(scans, poses):
    pairs, _ = feed(Pairing(0.25, 50), [('scan', s) for s in scans] + [('pose', p) for p in poses])
    expected = {}
    for stamp in scans:
        before = [p for p in poses if p <= stamp][-1:]
        after = [p for p in poses if p >= stamp][:1]
        if before and after and after[0] - before[0] <= SECOND // 4:
            expected[stamp] = stamp / SECOND
    assert {pair.stamp: pair.pose.x for pair in pairs} == pytest.approx(expected)
    assert [pair.stamp for pair in pairs] == sorted(expected)


# -- clocks that are wrong ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ('behind', 'reason'),
    [
        (0, 'duplicate stamp'),
        (1, 'late'),
        (SECOND - 1, 'late'),
    ],
)
@pytest.mark.parametrize('kind', ['scan', 'pose'])
def test_duplicate_and_late_messages_are_refused_and_change_nothing(kind, behind, reason):
    other = 'pose' if kind == 'scan' else 'scan'
    newest = 10 * SECOND
    pairing = Pairing(1.0, 10)
    feed(pairing, [(kind, newest - SECOND // 2), (kind, newest), (other, 9 * SECOND)])
    before = waiting(pairing), pairing.unpaired
    pairs, refused = feed(pairing, [(kind, newest - behind)])
    assert refused == [(kind, newest - behind, reason)]
    assert pairs == []
    assert (waiting(pairing), pairing.unpaired, pairing.jumps) == (*before, 0)
    pairs, _ = feed(pairing, [(other, newest)])
    assert pairs[-1].stamp == newest


@pytest.mark.parametrize('kind', ['scan', 'pose'])
def test_a_second_back_is_a_clock_that_jumped_and_waits_for_the_other(kind):
    other = 'pose' if kind == 'scan' else 'scan'
    pairing = Pairing(1.0, 10)
    feed(pairing, [('pose', 10 * SECOND), ('scan', 10 * SECOND), ('scan', 10 * SECOND + 1)])
    pairs, refused = feed(pairing, [(kind, 9 * SECOND), (kind, 9 * SECOND + 1)])
    assert not refused
    assert not pairs
    assert pairing.jumps == 1
    assert waiting(pairing) == ((3, 1) if kind == 'scan' else (1, 3))
    pairs, refused = feed(pairing, [(other, 9 * SECOND)])
    assert [pair.stamp for pair in pairs] == [9 * SECOND]
    assert not refused
    assert pairing.jumps == 1, 'the same jump'
    assert pairing.unpaired == 1, 'what waited is accounted for'


def lap(length=10, rate=10, order=('pose', 'scan')):
    """Return the events of ``length`` seconds of a bag."""
    return [(kind, i * SECOND // rate) for i in range(length * rate + 1) for kind in order]


@pytest.mark.parametrize('order', [('pose', 'scan'), ('scan', 'pose')])
@pytest.mark.parametrize('queue_size', [1, 5, 1000])
def test_a_looped_bag_gives_as_many_pairs_in_each_pass(order, queue_size):
    pairing = Pairing(0.5, queue_size)
    first, _ = feed(pairing, lap(order=order))
    for passes in (1, 2):
        again, refused = feed(pairing, lap(order=order))
        assert again == first
        assert len(first) == 101
        assert not refused
        assert pairing.jumps == passes
        assert max(waiting(pairing)) <= queue_size
    assert pairing.unpaired == 0


def test_a_looped_bag_is_interpolated_within_a_pass_and_never_across():
    # Scans half-way between poses; the last scan of a pass has no pose after it.
    events = [event for i in range(101) for event in
              (('pose', i * SECOND // 10), ('scan', i * SECOND // 10 + SECOND // 20))]  # fmt: skip
    pairing = Pairing(100.0, 1000)
    first, _ = feed(pairing, events)
    again, _ = feed(pairing, events)
    assert len(first) == 100
    assert again == first


@pytest.mark.parametrize('kind', ['scan', 'pose', 'both'])
def test_one_stamp_far_in_the_future_costs_no_more_than_what_was_under_way(kind):
    wild = 4_290_000_000 * SECOND
    kinds = ('pose', 'scan') if kind == 'both' else (kind,)
    events = lap()
    middle = len(events) // 2
    events[middle:middle] = [(k, wild) for k in kinds]
    pairing = Pairing(0.5, 10)
    pairs, refused = feed(pairing, events)
    found = [pair.stamp for pair in pairs if pair.stamp != wild]
    expected = [stamp for k, stamp in lap() if k == 'scan']
    assert found == sorted(set(found)), 'each once and in order'
    assert set(found) <= set(expected)
    assert len(found) >= len(expected) - 1
    assert [pair.pose.x for pair in pairs if pair.stamp != wild] == pytest.approx(
        [stamp / SECOND for stamp in found]
    )
    assert not refused
    assert pairing.jumps == len(kinds)


def test_queues_are_bounded_and_the_oldest_goes():
    pairing = Pairing(0.5, 3)
    feed(pairing, [('scan', stamp) for stamp in range(10)])
    assert waiting(pairing) == (3, 0)
    assert pairing.unpaired == 7
    pairs, _ = feed(pairing, [('pose', stamp) for stamp in range(6, 10)])
    assert [pair.stamp for pair in pairs] == [7, 8, 9]
    feed(pairing, [('pose', stamp) for stamp in range(10, 30)])
    assert waiting(pairing) == (0, 3)


# -- passes -------------------------------------------------------------------------------------


def feed_passes(pairing, events):
    """Add (kind, stamp, number of the pass); return (pass, stamp) of the pairs.

    No pair may have its scan and its pose from different passes.
    """
    pairs = []
    for kind, stamp, number in events:
        with suppress(Unusable):
            if kind == 'scan':
                pairing.add_scan(stamp, number)
            else:
                pairing.add_pose(stamp, Pose(float(number), 0.0, 0.0, 0.0))
        for pair in pairing.pairs():
            assert pair.pose.x == pair.scan, f'scan of pass {pair.scan} at {pair.stamp}'
            pairs.append((pair.scan, pair.stamp))
    return pairs


def interleaved(scans, poses, leads):
    """Put two lists of events into one; ``leads`` says by how many the scans are ahead when."""
    streams, events, taken = (scans, poses), [], [0, 0]
    for place in range(max(map(len, streams))):
        lead = leads[place] if place < len(leads) else 0
        for kind, ahead in ((0, max(lead, 0)), (1, max(-lead, 0))):
            events += streams[kind][taken[kind] : place + ahead + 1]
            taken[kind] = max(taken[kind], place + ahead + 1)
    return events


LENGTH = 60  # messages in a pass, ten a second
# The jump is known while the streams are less than a pass but a second apart.
LARGEST_LEAD = LENGTH - 12


@given(
    leads=st.lists(st.integers(-LARGEST_LEAD, LARGEST_LEAD), max_size=12),
    offset=st.sampled_from([0, SECOND // 20]),
    start=st.sampled_from([0, 3 * SECOND, -2 * SECOND, 1_700_000_000 * SECOND]),
)
def test_a_stream_may_lag_across_the_jump_and_no_pass_mixes_with_another(leads, offset, start):
    passes = range(4)
    scans, poses = (
        [(kind, start + i * SECOND // 10 + late, n) for n in passes for i in range(LENGTH)]
        for kind, late in (('scan', offset), ('pose', 0))
    )
    pairing = Pairing(0.5, 100)
    leads = [lead for lead in leads for _ in range(20)]
    pairs = feed_passes(pairing, interleaved(scans, poses, leads))
    # a scan after the last pose of its pass has none beyond it
    paired = [stamp for _, stamp, n in scans if n == 0][: LENGTH - (1 if offset else 0)]
    for number in passes:
        assert [stamp for n, stamp in pairs if n == number] == paired
    assert pairing.jumps == len(passes) - 1
    assert len(pairs) + pairing.unpaired + pairing.waiting == len(scans)


@pytest.mark.parametrize('place', [5, 50, 95])
@pytest.mark.parametrize('lead', [-4, 0, 4])
def test_a_gap_in_a_looped_bag_is_no_wrong_stamp(place, lead):
    stamps = [i * SECOND // 10 + (3 * SECOND if i >= place else 0) for i in range(100)]
    scans, poses = (
        [(kind, stamp, number) for number in range(3) for stamp in stamps]
        for kind in ('scan', 'pose')
    )
    pairs = feed_passes(Pairing(0.5, 10), interleaved(scans, poses, [lead] * 300))
    assert pairs == [(number, stamp) for _, stamp, number in scans]


@pytest.mark.parametrize('looping', ['scan', 'pose'])
def test_a_stream_that_goes_on_while_the_other_loops_forever_makes_no_wrong_pair(looping):
    other = 'pose' if looping == 'scan' else 'scan'
    pairing = Pairing(0.5, 20)
    for number in range(200):
        events = []
        for i in range(50):
            events.append((other, (50 * number + i) * SECOND // 10, 0))
            events.append((looping, i * SECOND // 10, number))
        pairs = feed_passes(pairing, events)
        assert len(pairs) == (50 if number == 0 else 0)
        assert max(waiting(pairing)) <= 2 * 20
    assert pairing.jumps == 199


@pytest.mark.parametrize('first', ['scan', 'pose'])
def test_both_have_jumped_even_where_they_begin_at_different_stamps(first):
    second = 'pose' if first == 'scan' else 'scan'
    pairing = Pairing(0.5, 10)
    feed_passes(pairing, [(first, 10 * SECOND, 1), (second, 10 * SECOND, 1)])
    pairs = feed_passes(pairing, [(first, 0, 2), (second, 5 * SECOND, 2), (first, 5 * SECOND, 2)])
    assert pairs == [(2, 5 * SECOND)]


def test_before_the_first_pose_there_is_nothing_to_wait_for():
    pairing = Pairing(0.5, 10)
    feed_passes(pairing, [('scan', 10 * SECOND, 1), ('scan', 0, 2), ('scan', 1, 2)])
    assert (waiting(pairing), pairing.unpaired, pairing.jumps) == ((2, 0), 1, 1)


@pytest.mark.parametrize('slow', ['scan', 'pose'])
@given(gap=st.integers(0, 100), later=st.integers(0, 80))
def test_a_stream_that_pauses_over_the_jump_makes_no_wrong_pair(slow, gap, later):
    """A simulator is reset; what comes later may begin at a stamp that looks like going on."""
    other = 'pose' if slow == 'scan' else 'scan'
    first = [(kind, i * SECOND // 10, 1) for i in range(31) for kind in ('scan', 'pose')]
    second = [(other, i * SECOND // 10, 2) for i in range(gap)]
    for i in range(max(gap - later, 0), gap + 60):
        second += [(other, i * SECOND // 10, 2)] if i >= gap else []
        second += [(slow, i * SECOND // 10, 2)]
    pairing = Pairing(0.5, 100)
    pairs = feed_passes(pairing, first + second)
    newest = (gap + 59) * SECOND // 10
    if newest > 4 * SECOND:
        assert pairs[-1] == (2, newest), 'and in the end it goes on'


@pytest.mark.parametrize('first', ['scan', 'pose'])
@pytest.mark.parametrize('ahead', [0, 1, 5, 9])
@pytest.mark.parametrize('run', [11, 15, 30])
def test_simulator_reset_after_a_short_run_makes_no_pair_across_it(first, ahead, run):
    # Before the reset poses lag or lead, so that either kind still waits in its queue.
    for waits in ('scan', 'pose'):
        other = 'pose' if waits == 'scan' else 'scan'
        events = [(waits, i * SECOND // 10, 1) for i in range(run + 1)]
        events += [(other, i * SECOND // 10, 1) for i in range(run - ahead + 1)]
        behind = 'pose' if first == 'scan' else 'scan'
        events += [(first, 0, 2), (behind, 0, 2)]
        events += [(k, i * SECOND // 10, 2) for i in range(1, 31) for k in (first, behind)]
        pairs = feed_passes(Pairing(0.5, 100), events)
        # going back by less than a second is no jump until the other has made one
        missed = 1 if first != waits and run - ahead < 10 else 0
        assert pairs == [(1, i * SECOND // 10) for i in range(run - ahead + 1)] + [
            (2, i * SECOND // 10) for i in range(missed, 31)
        ]


# -- stamps that are wrong ----------------------------------------------------------------------

WILD = 4_290_000_000 * SECOND


@pytest.mark.parametrize('kinds', [('scan',), ('pose',), ('pose', 'scan'), ('scan', 'pose')])
@pytest.mark.parametrize('wild', [[WILD] * 4, [WILD + i * SECOND // 10 for i in range(5)],
                                  [WILD + i for i in range(5)],
                                  [WILD - 5 * i * SECOND for i in range(5)], [WILD]])  # fmt: skip
def test_a_glitch_of_wild_stamps_costs_no_more_than_what_was_under_way(kinds, wild):
    events = lap()
    middle = len(events) // 2
    events[middle:middle] = [(kind, stamp) for stamp in wild for kind in kinds]
    pairing = Pairing(0.5, 10)
    pairs, _ = feed(pairing, events)
    found = [pair.stamp for pair in pairs if pair.stamp < WILD - 100 * SECOND]
    assert found == sorted(set(found)), 'each once and in order'
    assert len(found) >= 101 - 1
    again, refused = feed(pairing, lap())
    assert len(again) == 101
    assert not refused


@given(
    kinds=st.sampled_from([('scan',), ('pose',), ('pose', 'scan')]),
    count=st.integers(1, 5),
    place=st.integers(20, 100),
    lead=st.integers(-8, 8),
)
def test_a_glitch_costs_only_what_waits_even_where_a_stream_lags(kinds, count, place, lead):
    scans, poses = ([(kind, i * SECOND // 10, 0) for i in range(200)] for kind in ('scan', 'pose'))
    events = interleaved(scans, poses, [lead] * 200)
    wild = [(kind, WILD + i, 1) for i in range(count) for kind in kinds]
    events[2 * place : 2 * place] = wild
    pairing = Pairing(0.5, 30)
    pairs = [stamp for number, stamp in feed_passes(pairing, events) if number == 0]
    assert pairs == sorted(set(pairs))
    assert len(pairs) >= 200 - abs(lead) - 2
    assert pairs[-1] == 199 * SECOND // 10


@pytest.mark.parametrize('kind', ['scan', 'pose'])
@pytest.mark.parametrize('zeros', [1, 3])
def test_a_stamp_that_was_forgotten_costs_no_more_than_what_was_under_way(kind, zeros):
    events = [(k, 100 * SECOND + i * SECOND // 10) for i in range(101) for k in ('pose', 'scan')]
    events[100:100] = [(kind, 0)] * zeros
    pairing = Pairing(0.5, 10)
    pairs, _ = feed(pairing, events)
    assert len(pairs) >= 101 - 4
    assert pairs[-1].stamp == 110 * SECOND


@pytest.mark.parametrize('stamp', [0, WILD])
def test_stamps_that_are_all_the_same_make_one_pair_and_duplicates(stamp):
    pairing = Pairing(0.5, 10)
    pairs, refused = feed(pairing, [('pose', stamp), ('scan', stamp)] * 20)
    assert len(pairs) == 1
    assert {reason for *_, reason in refused} == {'duplicate stamp'}
    assert len(refused) == 38


@pytest.mark.parametrize('kind', ['scan', 'pose'])
@pytest.mark.parametrize('wrong', [1, 5, 30, 300])
@pytest.mark.parametrize('lead', [-5, 0, 5])
def test_a_clock_that_is_wrong_from_the_start_comes_right(kind, wrong, lead):
    scans, poses = (
        [(k, i * SECOND // 10 + (WILD if k == kind and i < wrong else 0), 0) for i in range(400)]
        for k in ('scan', 'pose')
    )
    pairing = Pairing(0.5, 30)
    pairs = feed_passes(pairing, interleaved(scans, poses, [lead] * 400))
    assert len(pairs) >= 400 - wrong - 8
    assert pairs[-1][1] == 399 * SECOND // 10


def test_stamps_before_the_epoch_are_stamps():
    events = [(k, -20 * SECOND + i * SECOND // 10) for i in range(101) for k in ('pose', 'scan')]
    pairing = Pairing(0.5, 10)
    for _ in range(2):
        pairs, refused = feed(pairing, events)
        assert [pair.stamp for pair in pairs] == [stamp for k, stamp in events if k == 'scan']
        assert not refused


# Seconds, so that jumps and repeats are as common as progress.
any_stamps = st.one_of(
    st.integers(-3, 12).map(lambda step: step * SECOND // 2),
    st.sampled_from([WILD, WILD + 1, -WILD, 2**63 - 1, 0]),
)


@given(
    events=st.lists(st.tuples(st.sampled_from(['scan', 'pose']), any_stamps), max_size=80),
    size=st.sampled_from([1, 3, 100]),
)
def test_every_scan_is_accounted_for_and_queues_are_bounded(events, size):
    pairing = Pairing(0.6, size, max_jump=1.5)
    pairs, refused = feed(pairing, events)
    accepted = sum(kind == 'scan' for kind, _ in events) - sum(k == 'scan' for k, *_ in refused)
    assert len(pairs) + pairing.unpaired + pairing.waiting == accepted
    assert pairing.waiting == waiting(pairing)[0]
    assert max(waiting(pairing)) <= 2 * size
    assert {reason for *_, reason in refused} <= {'late', 'duplicate stamp'}


# -- poses that jump ----------------------------------------------------------------------------


def test_a_pose_jump_is_counted_and_nothing_is_interpolated_across_it():
    pairing = Pairing(1.0, 10, max_jump=0.5)
    places = [0.0, 0.5, 5.0, 5.4]
    for i, x in enumerate(places):
        pairing.add_pose(10 * i, Pose(x, 0.0, 0.0, 0.0))
        pairing.add_scan(10 * i + 5, i)
    pairs = pairing.pairs()
    assert [(pair.scan, pair.pose.x, pair.track) for pair in pairs] == [
        (0, 0.25, 0),
        (2, 5.2, 1),
    ]
    assert (pairing.pose_jumps, pairing.unpaired, pairing.waiting) == (1, 1, 1)


@pytest.mark.parametrize(
    ('x', 'y', 'jumps'), [(3.0, 4.0, 0), (3.0, 4.001, 1), (-3.001, 4.0, 1), (0.0, -5.001, 1)]
)
def test_a_jump_is_a_distance_beyond_max_jump(x, y, jumps):
    pairing = Pairing(1.0, 10, max_jump=5.0)
    pairing.add_pose(0, Pose(0.0, 0.0, 0.0, 0.0))
    pairing.add_pose(1, Pose(x, y, 99.0, 3.0))
    assert pairing.pose_jumps == jumps


def test_pairs_at_the_stamps_of_poses_that_jump_are_on_different_tracks():
    pairing = Pairing(1.0, 10, max_jump=0.5)
    for i, x in enumerate([0.0, 0.1, 9.0, 9.1, 0.2]):
        pairing.add_pose(i, Pose(x, 0.0, 0.0, 0.0))
        pairing.add_scan(i, x)
    pairs = pairing.pairs()
    assert [pair.track for pair in pairs] == [0, 0, 1, 1, 2]
    assert [pair.pose.x for pair in pairs] == [pair.scan for pair in pairs]


def test_by_default_no_distance_is_a_jump():
    pairing = Pairing(1.0, 10)
    pairing.add_pose(0, Pose(0.0, 0.0, 0.0, 0.0))
    pairing.add_pose(2, Pose(1e300, -1e300, 0.0, 0.0))
    pairing.add_scan(1, 'scan')
    assert pairing.pairs()[0].pose.x == 5e299
    assert pairing.pose_jumps == 0


def test_a_loop_is_no_jump_of_the_pose():
    pairing = Pairing(0.5, 10, max_jump=1.0)
    for _ in range(3):
        pairs, _ = feed(pairing, lap())
        assert len(pairs) == 101
        assert {pair.track for pair in pairs} == {0}
    assert pairing.pose_jumps == 0


def test_a_pose_that_is_refused_is_no_jump():
    pairing = Pairing(0.5, 10, max_jump=1.0)
    feed(pairing, [('pose', SECOND), ('pose', SECOND + 2)])
    for stamp in (SECOND + 2, SECOND + 1):
        with pytest.raises(Unusable):
            pairing.add_pose(stamp, pose(99.0))
    feed(pairing, [('pose', SECOND + 3)])
    assert pairing.pose_jumps == 0
