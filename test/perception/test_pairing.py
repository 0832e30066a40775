# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Scans and trusted poses joined by stamp: whatever the order, however broken the clock."""

import math

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
    return len(pairing._scans), len(pairing._stamps), len(pairing._poses)


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
    assert (pairing.unpaired, waiting(pairing)) == (1, (1, 1, 1))
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
def test_a_second_back_is_a_clock_that_jumped(kind):
    pairing = Pairing(1.0, 10)
    feed(pairing, [('pose', 10 * SECOND), ('scan', 10 * SECOND), ('scan', 10 * SECOND + 1)])
    _, refused = feed(pairing, [('scan' if kind == 'scan' else 'pose', 9 * SECOND)])
    assert not refused
    assert pairing.jumps == 1
    assert waiting(pairing) == ((1, 0, 0) if kind == 'scan' else (0, 1, 1))
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
    assert pairing.jumps == 1


def test_queues_are_bounded_and_the_oldest_goes():
    pairing = Pairing(0.5, 3)
    feed(pairing, [('scan', stamp) for stamp in range(10)])
    assert waiting(pairing) == (3, 0, 0)
    assert pairing.unpaired == 7
    pairs, _ = feed(pairing, [('pose', stamp) for stamp in range(6, 10)])
    assert [pair.stamp for pair in pairs] == [7, 8, 9]
    feed(pairing, [('pose', stamp) for stamp in range(10, 30)])
    assert waiting(pairing) == (0, 3, 3)


def test_cleared_queues_forget_everything_but_the_counts():
    pairing = Pairing(0.5, 5)
    feed(pairing, [('pose', 5 * SECOND), ('scan', 6 * SECOND)])
    pairing.clear()
    assert (waiting(pairing), pairing.unpaired, pairing.jumps) == ((0, 0, 0), 1, 0)
    pairs, refused = feed(pairing, [('pose', 5 * SECOND), ('scan', 5 * SECOND)])
    assert (len(pairs), refused, pairing.jumps) == (1, [], 0)
