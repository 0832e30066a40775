# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The launch files, run by launch itself: need launch_pytest and an installed package.

Neither is on a package index; elsewhere these tests are reported as not run, and
``test/nodes`` and ``test/test_packaging.py`` cover the same with plain processes.
"""

import time
from pathlib import Path

import pytest

launch_pytest = pytest.importorskip(
    'launch_pytest', reason='launch_pytest is not installed: launch files were not run'
)

from ament_index_python.packages import get_package_share_directory  # noqa: E402
from launch.actions import IncludeLaunchDescription  # noqa: E402
from launch.launch_description_sources import PythonLaunchDescriptionSource  # noqa: E402

from kernel_constrained.perception.filter import ScanFilter  # noqa: E402
from launch import LaunchDescription  # noqa: E402


def included(name, **arguments):
    path = Path(get_package_share_directory('kernel_constrained')) / 'launch' / name
    return LaunchDescription(
        [
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(path)), launch_arguments=arguments.items()
            ),
            launch_pytest.actions.ReadyToTest(),
        ]
    )


@launch_pytest.fixture
def lidar(tmp_path):
    return included('lidar_replay.launch.py', epochs='2', model=str(tmp_path / 'lidar.npz'))


@launch_pytest.fixture
def scans(tmp_path):
    log = tmp_path / 'made.log'
    line = 'FLASER 180 {} {x} 0.0 0.0 {x} 0.0 0.0 {t} host {t}\n'
    with log.open('w') as file:
        for i in range(60):
            beams = ' '.join(f'{3 + (b * 7 + i) % 50 / 10:.2f}' for b in range(180))
            file.write(line.format(beams, x=0.3 * i, t=i + 1.5))
    return included('scan_replay.launch.py', bag=str(log), model=str(tmp_path / 'scans.npz'))


def learned(model, limit=180.0):
    """Wait for the model that the filter saves when the replay has ended, and load it."""
    end = time.monotonic() + limit
    while not model.exists():
        assert time.monotonic() < end, f'no {model.name} within {limit} s'
        time.sleep(0.1)
    return ScanFilter.load(model).learner


@pytest.mark.launch(fixture=lidar)
def test_lidar_replay_runs_to_its_end_and_saves_what_was_learned(tmp_path, lidar):
    assert learned(tmp_path / 'lidar.npz').samples_ == 2 * 179


@pytest.mark.launch(fixture=scans)
def test_scan_replay_runs_to_its_end_and_saves_what_was_learned(tmp_path, scans):
    assert learned(tmp_path / 'scans.npz').samples_ == 59
