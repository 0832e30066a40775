# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The node fed in lockstep and ``evaluate`` without middleware say the same, bit for bit."""

import csv
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from kernel_constrained.bags import decode, open_recording
from kernel_constrained.configuration import write_parameter_file
from kernel_constrained.offline.arguments import Options
from kernel_constrained.offline.evaluate import evaluate

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'offline'))

from made_recordings import config, drive, written

COMPONENTS = ('forward', 'left', 'yaw')


def published(start, bag, settings, path, **replay):
    """Replay a bag through filter_node in lockstep; return what it published, by stamp."""
    recorder = start(
        'record_node', destination=path, topics='[estimate]', answer_topic='filter_node/processed'
    )
    filter_ = start('filter_node', settings)
    process = start(
        'replay_node', source=bag, lockstep=True, answer_topic='record_node/processed',
        wait_timeout=120, **replay,
    )  # fmt: skip
    assert process.process.wait(timeout=180) == 0, process.text
    assert recorder.end() == 0, recorder.text
    assert filter_.end() == 0, filter_.text
    with open_recording(path) as recording:
        return [decode(message) for message in recording.messages(['estimate'])]


def series_of(folder):
    with (folder / 'series.csv').open(newline='') as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ('rate', 'duration'), [(0.0, math.inf), (20.0, math.inf), (1.0, 2.5)], ids=['0', '20', '1']
)
def test_lockstep_at_every_rate_is_the_evaluation_bit_for_bit(rate, duration, start, tmp_path):
    bag = written(tmp_path / 'room.mcap', drive(200))
    settings = tmp_path / 'filter.yaml'
    write_parameter_file(settings, config(), 'Made for a test.')
    window = {} if math.isinf(duration) else {'duration': duration}
    estimates = published(start, bag, settings, tmp_path / 'recorded.mcap', rate=rate, **window)
    evaluate(bag, config(), Options(duration=duration), tmp_path / 'out')
    rows = series_of(tmp_path / 'out')
    assert len(rows) == len(estimates) == (199 if math.isinf(duration) else 24)
    for row, estimate in zip(rows, estimates):
        stamp, pose = estimate.header.stamp, estimate.pose.pose
        assert int(row['stamp']) == stamp.sec * 10**9 + stamp.nanosec
        assert float(row['estimate_forward']) == pose.position.x
        assert float(row['estimate_left']) == pose.position.y
        half = float(row['estimate_yaw']) / 2.0
        assert (math.sin(half), math.cos(half)) == (pose.orientation.z, pose.orientation.w)
        deviation = np.sqrt(estimate.pose.covariance.reshape(6, 6).diagonal()[[0, 1, 5]])
        assert [float(row[f'sd_{name}']) for name in COMPONENTS] == deviation.tolist()
