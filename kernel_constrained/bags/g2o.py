# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""g2o pose graphs with laser scans: VERTEX_SE2 and ROBOTLASER1 lines as poses and scans."""

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from kernel_constrained.bags.recording import RecordingError
from kernel_constrained.bags.robot_lines import (
    LogScan,
    parse_finite,
    parse_lines,
    parse_robotlaser,
)
from kernel_constrained.bags.robot_log import RobotLog

__all__ = ['killian_path', 'open_g2o']


def open_g2o(path: Path, *, range_max: float | None = None) -> RobotLog:
    """Read a pose graph with scans (``.g2o``, with ``.gz``, or in a ``.zip``).

    A ROBOTLASER1 line belongs to the VERTEX_SE2 line before it and gets that vertex's optimised
    pose; the poses in the line itself are those from before the optimisation. A scan that has no
    vertex of its own, or cannot be read, is skipped and stated as a loss.

    Parameters
    ----------
    path
        The file.
    range_max
        Readings from here on are no returns; None finds the limit in the data.

    Raises
    ------
    RecordingError
        The file cannot be read or holds no usable scan.
    """
    scans: list[LogScan] = []
    vertex: list[float] | None = None

    def parse(line: str) -> None:
        nonlocal vertex
        if line.startswith('VERTEX_SE2 '):
            vertex = None
            with suppress(ValueError):
                vertex = parse_finite(line.split()[2:5], 3)
        elif line.startswith('ROBOTLASER1 '):
            if vertex is None:
                raise ValueError('a scan without a VERTEX_SE2 of its own before it')
            scan, _ = parse_robotlaser(line.split())
            scan.x, scan.y, scan.yaw = vertex
            scans.append(scan)
            vertex = None

    losses = parse_lines(path, '.g2o', parse)
    return RobotLog(path.name, scans, range_max=range_max, losses=losses)


def killian_path() -> Path:
    """Return where the Killian Court log of the PyPI package ``rtb-data`` is installed.

    Raises
    ------
    RecordingError
        The package is not installed.
    """
    # found, not imported: the package's own imports need the whole robotics toolbox
    spec = find_spec('rtbdata')
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / 'data' / 'killian.g2o.zip'
        if path.exists():
            return path
    raise RecordingError(
        'the Killian Court log is not installed: `pip install --no-deps rtb-data==2.0.0`'
    )
