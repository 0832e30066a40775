# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Labels of places by a map, and the report on a classifier that was told them."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made_recordings import drive, pose_at, stamp_of, START, written

from kernel_constrained.bags import decode, open_recording, RecordingError
from kernel_constrained.offline.classification import Said
from kernel_constrained.offline.places import (
    alike,
    CELL,
    Labelled,
    labelled,
    Map,
    place_at,
    PLACES,
    ways_out,
    write_labelled,
)
from kernel_constrained.offline.places_report import (
    draw,
    format_table,
    judge,
    moving_mean,
    score,
    WINDOW,
)

REPOSITORY = Path(__file__).resolve().parents[2]


def floor(*corridors):
    """Return a map of 40 m x 40 m in which rectangles (x, y, x, y) are free, the rest walls."""
    free = np.zeros((160, 160), dtype=bool)
    for corridor in corridors:
        x_min, y_min, x_max, y_max = (round(edge / CELL) for edge in corridor)
        free[x_min:x_max, y_min:y_max] = True
    return Map(~free, np.ones_like(free), np.zeros(2))


ALONG, ACROSS, UP = (2, 19, 38, 21), (19, 2, 21, 38), (19, 19, 21, 38)
HALF = (2, 19, 21, 21)


@pytest.mark.parametrize(
    ('corridors', 'place'),
    [
        ([ALONG], 'corridor'),
        ([ACROSS], 'corridor'),
        ([HALF, UP], 'corner'),
        ([ALONG, UP], 'junction'),
        ([ALONG, ACROSS], 'junction'),
        ([(17, 17, 23, 23)], ''),
        ([HALF], ''),
        ([(2, 2, 38, 38)], ''),
    ],
)
def test_a_place_is_what_the_ways_out_of_it_make_it(corridors, place):
    assert [*PLACES, ''][place_at(floor(*corridors), np.array([20.0, 20.0]))] == place


def test_what_is_not_known_is_no_way_out():
    known = floor(ALONG)
    known.known[90:] = False
    assert place_at(known, np.array([20.0, 20.0])) == len(PLACES)
    assert not known.clear(np.array([-1.0, 20.0]))
    assert not known.clear(np.array([20.0, 41.0]))


def test_ways_out_go_on_round_the_end_and_are_wide_enough():
    clear = np.zeros(72, dtype=bool)
    clear[[70, 71, 0, 1, 2]] = True
    clear[30] = True
    clear[40:44] = True
    middles = [math.remainder(way, 2 * math.pi) for way in ways_out(clear)]
    step = 2 * math.pi / 72
    assert sorted(middles) == pytest.approx(
        sorted([0.0, math.remainder(41.5 * step, 2 * math.pi)])
    )
    assert ways_out(np.ones(72, dtype=bool)) == []
    assert ways_out(np.zeros(72, dtype=bool)) == []


def test_a_place_is_what_most_of_the_places_near_it_are():
    positions = np.array([[0.1 * i, 0.0] for i in range(10)] + [[50.0, 0.0]])
    kinds = np.array([0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 1])
    assert alike(kinds, positions).tolist() == [0] * 10 + [1]


@pytest.fixture
def room(tmp_path):
    return written(tmp_path / 'room.mcap', drive(60))


def test_the_map_of_a_recording_has_the_walls_where_they_are(room):
    with open_recording(room) as recording:
        places = labelled(recording)
    assert places.stamps.tolist() == [stamp_of(i) for i in range(60)]
    assert places.positions[7].tolist() == pytest.approx(pose_at(7)[:2])
    inside = np.array([[x, y] for x in (1.0, 5.0, 9.0) for y in (1.0, 3.0, 5.0)])
    assert places.map.clear(inside).all()
    cells = places.map.origin + (np.argwhere(places.map.occupied) + 0.5) * CELL
    off = np.abs(cells[:, None] - np.array([[0.0, 0.0], [10.0, 6.0]])).min(axis=(1, 2))
    assert len(cells) > 60
    assert off.max() < CELL, 'what is occupied is a wall of the room of 10 m x 6 m'


def test_scans_without_poses_are_refused(tmp_path):
    messages = [one for one in drive(9) if one.topic == 'scan']
    messages.append(drive(20)[-2])  # a pose, long after
    with (
        open_recording(written(tmp_path / 'bag.mcap', messages)) as recording,
        pytest.raises(RecordingError, match='no scan has the stamp of a trusted pose'),
    ):
        labelled(recording)


def some_places(labels):
    count = len(labels)
    stamps = np.array([stamp_of(i) for i in range(count)])
    positions = np.array([pose_at(i)[:2] for i in range(count)])
    return Labelled(stamps, positions, np.array(labels), floor((1, 1, 20, 20)))


def test_a_label_is_written_before_its_scan_where_it_changes_and_not_after_the_split(
    room, tmp_path
):
    labels = ['corridor'] * 10 + [''] * 5 + ['corner'] * 45
    with open_recording(room) as recording:
        write_labelled(recording, some_places(labels), tmp_path / 'places.mcap', 3.95)
    with open_recording(tmp_path / 'places.mcap') as recording:
        messages = list(recording.messages())
    given = [(one.stamp, decode(one).data) for one in messages if one.topic.strip('/') == 'label']
    expected = [(0, 'corridor'), (10, ''), (15, 'corner'), (40, '')]
    assert given == [(stamp_of(i), label) for i, label in expected]
    assert len(messages) == 64
    assert [one.topic.strip('/') for one in messages[:2]] == ['label', 'scan']


def said_of(labels, unsure):
    count = len(labels)
    stamps = np.array([stamp_of(i) for i in range(count)])
    return Said(stamps, np.array(labels), np.ones(count), np.array(unsure), [{}] * count)


def test_scores_count_labelled_scans_only_and_each_label_alike():
    truth = np.array(['corridor', 'corridor', 'corridor', 'corner', '', ''])
    said = np.array(['corridor', 'corridor', 'corner', 'corner', 'corridor', 'corner'])
    unsure = np.array([False, True, True, False, False, True])
    assert score(truth, said, unsure) == (4, 0.75, pytest.approx((2 / 3 + 1) / 2), 0.5, 1.0, 0.75)


def test_the_table_has_a_row_for_what_was_labelled_and_for_what_came_later(tmp_path):
    labels = ['corridor', 'corner', '', 'junction'] * 100
    places = some_places(labels)
    wrong = [label if i % 2 else 'corridor' for i, label in enumerate(labels)]
    judged = judge(said_of(wrong, [i % 4 == 0 for i in range(400)]), places, stamp_of(300))
    table = format_table(judged).splitlines()
    assert table[1].split() == [
        'prequential', '225', '1.000', '1.000', '0.667', '1.000', '0.333'
    ]  # fmt: skip
    assert table[2].startswith('held out, later        75')
    draw(judged, places, tmp_path / 'places.png')
    assert (tmp_path / 'places.png').read_bytes().startswith(b'\x89PNG')


def test_other_stamps_than_those_of_the_places_are_refused():
    said = said_of(['corridor'], [False])
    with pytest.raises(RecordingError, match='no scan that was classified has a label'):
        judge(said._replace(stamps=np.array([START - 1])), some_places(['corridor']), 0)


def test_the_moving_mean_is_of_the_last_values():
    values = np.arange(2.0 * WINDOW)
    mean = moving_mean(values)
    assert mean[:3].tolist() == [0.0, 0.5, 1.0]
    assert mean[-1] == pytest.approx(values[WINDOW:].mean())


@pytest.mark.usefixtures('domain')
def test_the_demonstration_replays_labelled_places_and_agrees_with_the_offline_way(room, tmp_path):
    pytest.importorskip('rclpy', reason='rclpy is not installed: the demonstration was not run')
    command = [sys.executable, '-m', 'kernel_constrained', 'demo', 'places', '--source', str(room)]
    result = subprocess.run(
        [*command, '--output', str(tmp_path / 'out')], cwd=REPOSITORY, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert 'without middleware: the same, bit for bit' in result.stdout
    assert (tmp_path / 'out' / 'places.png').exists()
