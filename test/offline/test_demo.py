# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The demonstrations as a person runs them: the command, the table, the figure."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernel_constrained.bags import (
    BagWriter,
    killian_path,
    LidarRecording,
    Message,
    pose_bytes,
    RecordingError,
)
from kernel_constrained.offline import demo, lidar_report, scan_report
from kernel_constrained.offline.recorded import read_recorded, Recorded

pytest.importorskip('rclpy', reason='rclpy is not installed: the demonstrations were not run')

REPOSITORY = Path(__file__).resolve().parents[2]


def make(target, output):
    """Run a target of the Makefile with the environment that the tests run in."""
    settings = [f'BIN={Path(sys.executable).parent}', 'STAMP=', 'KILLIAN=', f'OUTPUT={output}']
    result = subprocess.run(
        ['make', '--no-print-directory', target, *settings], cwd=REPOSITORY, text=True,
        capture_output=True, env={**os.environ, 'PYTHONPATH': str(REPOSITORY)}, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def is_picture(path):
    return path.read_bytes().startswith(b'\x89PNG') and path.stat().st_size > 20_000


@pytest.mark.usefixtures('domain')
@pytest.mark.skipif(shutil.which('make') is None, reason='make is not installed')
def test_make_demo_prints_the_epochs_and_draws_the_figure(tmp_path):
    output = make('demo', tmp_path)
    rows = np.array([line.split() for line in output.splitlines() if re.match(r' +\d+ ', line)])
    epoch, train, test, cvar, violation, dual, order, time = rows.astype(float).T
    assert epoch.tolist() == list(range(1, 11))
    assert train[-1] <= 0.0065
    assert test[-1] <= 0.0090
    assert order[-1] <= 45
    assert violation[-1] <= 0
    assert violation == pytest.approx(cvar - 0.8, abs=2e-4)
    assert (dual >= 0).all()
    assert (time > 0).all()
    assert f'figure: {tmp_path / "lidar" / "lidar.png"}' in output
    assert is_picture(tmp_path / 'lidar' / 'lidar.png')


@pytest.mark.usefixtures('domain')
@pytest.mark.skipif(shutil.which('make') is None, reason='make is not installed')
def test_make_demo_scans_learns_the_motion_of_killian_court(tmp_path):
    try:
        killian_path()
    except RecordingError as error:
        pytest.skip(str(error))
    output = make('demo-scans', tmp_path)
    shares = {
        name: float(re.search(rf'^{name} .* ([-\d.]+)$', output, re.MULTILINE)[1])
        for name in ('forward', 'left', 'yaw')
    }
    assert shares['forward'] > 0.4
    assert shares['yaw'] > 0.35
    assert '3872 motions' in output
    assert is_picture(tmp_path / 'scans' / 'scans.png')


@pytest.mark.usefixtures('domain')
def test_a_demo_that_cannot_run_says_why(tmp_path):
    command = [sys.executable, '-m', 'kernel_constrained', 'demo', 'scans', '--source', 'no.mcap']
    result = subprocess.run(
        [*command, '--output', str(tmp_path)], cwd=REPOSITORY, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert 'no.mcap: no such file or folder' in result.stderr
    assert 'Traceback' not in result.stderr


@pytest.mark.parametrize('source', ['recording.mcap', '.'])
def test_a_demo_does_not_remove_the_recording_that_it_is_to_replay(source, tmp_path, capsys):
    recording = tmp_path / 'recording.mcap'
    recording.touch()
    assert demo.main(['scans', '--source', str(tmp_path / source), '--output', str(tmp_path)]) == 1
    assert f'error: {recording}: to be read, and to be overwritten' in capsys.readouterr().err
    assert recording.exists()


def test_a_demo_says_that_its_output_is_no_folder(tmp_path, capsys):
    (tmp_path / 'file').touch()
    assert demo.main(['lidar', '--output', str(tmp_path / 'file')]) == 1
    assert 'file: cannot be written to (File exists)' in capsys.readouterr().err


def recorded_of(stamps, estimates, **figures):
    defaults = {'processing_time': np.ones(len(stamps)), 'dual_variable': [], 'model_order': []}
    return Recorded(np.array(stamps), np.array(estimates), {**defaults, **figures})


def test_epoch_table_holds_the_errors_of_the_end_of_each_epoch():
    """Estimates off by 1 on training points and by 2 on test points in the second epoch."""
    recording = LidarRecording(epochs=2, evaluate_epochs=True)
    poses = lidar_report.load_lidar().logratio
    off = {'train': 9.0, 'evaluate_train': 1.0, 'test': 2.0}
    estimates = [
        (poses[row.row] + off[row.kind] * (row.epoch - 1), 0.0, 0.0) for row in recording.rows
    ]
    recorded = recorded_of(
        [row.stamp for row in recording.rows], estimates,
        dual_variable=np.arange(358.0), model_order=np.arange(358.0),
    )  # fmt: skip
    first, second = lidar_report.epoch_table(recording, recorded, 0.9, 0.75)
    assert (first.train_mse, first.test_mse, first.violation) == (0.0, 0.0, -0.75)
    assert second.train_mse == pytest.approx(1.0)
    assert second.test_mse == pytest.approx(4.0)
    assert second.violation == pytest.approx(0.25)
    assert (first.model_order, second.model_order) == (178, 357)


def test_epoch_table_refuses_a_recording_with_gaps():
    recording = LidarRecording(epochs=1, evaluate_epochs=True)
    recorded = recorded_of([row.stamp for row in recording.rows][1:], np.zeros((379, 3)))
    with pytest.raises(RecordingError, match='379 estimates were recorded of 380 ranges'):
        lidar_report.epoch_table(recording, recorded, 0.9, 0.75)


class Poses(LidarRecording):
    """A recording with poses only: one metre ahead and 0.1 rad to the left each second."""

    def messages(self, topics=None, start_offset=0.0, duration=float('inf')):
        x = y = 0.0
        for i in range(101):
            stamp = (i + 1) * 10**9
            yield Message('pose', 'geometry_msgs/msg/PoseStamped', stamp,
                          pose_bytes(stamp, x, y, 0.1 * i))  # fmt: skip
            x, y = x + np.cos(0.1 * i), y + np.sin(0.1 * i)


def test_prequential_compares_motions_with_estimates_and_the_running_mean():
    stamps = np.arange(2, 102) * 10**9
    wrong = np.tile([1.0, 0.0, 0.1], (100, 1))
    wrong[:, 0] += 0.01 * (-1.0) ** np.arange(100)
    result = scan_report.prequential(Poses(), recorded_of(stamps, wrong))
    assert result.truth == pytest.approx(np.tile([1.0, 0.0, 0.1], (100, 1)), abs=1e-9)
    errors, of_mean = result.rmse(0.7)
    assert errors == pytest.approx([0.01, 0.0, 0.0], abs=1e-9)
    assert np.isnan(result.r_squared(0.7)).all(), 'every motion is the same'
    assert of_mean == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
    assert result.baseline[0].tolist() == [0.0, 0.0, 0.0]


def test_a_recording_without_estimates_is_refused(tmp_path):
    with BagWriter(tmp_path / 'empty.mcap') as writer:
        writer.write(next(iter(Poses().messages())))
    with pytest.raises(RecordingError, match='no estimate in it; was the filter running'):
        read_recorded(tmp_path / 'empty.mcap')
