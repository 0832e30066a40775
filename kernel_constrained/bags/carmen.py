# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""CARMEN logs: FLASER and ROBOTLASER1 lines as poses and scans."""

from collections.abc import Sequence
from pathlib import Path

from kernel_constrained.bags.robot_lines import (
    bearings,
    LogScan,
    parse_finite,
    parse_lines,
    parse_ranges,
    parse_robotlaser,
    parse_stamp,
)
from kernel_constrained.bags.robot_log import RobotLog

__all__ = ['open_carmen']


def open_carmen(path: Path, *, range_max: float | None = None) -> RobotLog:
    """Read a CARMEN log (``.log``, ``.clf``, either with ``.gz``).

    The pose of a scan is the laser's in the same line; odometry lines are not used. A log that has
    FLASER and ROBOTLASER1 lines has each scan twice: FLASER is taken. A scan that cannot be read,
    as the last of a cut-off log, is skipped and stated as a loss.

    Parameters
    ----------
    path
        The log.
    range_max
        Readings from here on are no returns; None finds the limit in the data.

    Raises
    ------
    RecordingError
        The file cannot be read or holds no usable scan.
    """
    front: list[LogScan] = []
    general: list[LogScan] = []

    def parse(line: str) -> None:
        if line.startswith('FLASER '):
            front.append(_parse_front_laser(line.split()))
        elif line.startswith('ROBOTLASER1 '):
            scan, _ = parse_robotlaser(line.split())
            scan.mounting = (0.0, 0.0, 0.0)  # the pose is the laser's own
            general.append(scan)

    losses = parse_lines(path, '.log', parse)
    return RobotLog(path.name, front or general, range_max=range_max, losses=losses)


def _parse_front_laser(fields: Sequence[str]) -> LogScan:
    """Read FLASER n [ranges] x y yaw odom_x odom_y odom_yaw stamp host logger_stamp."""
    beams = int(fields[1])
    # what follows the stamp proves that it is whole
    if len(fields) == 9 + beams:
        raise ValueError('the line is cut off')
    ranges = parse_ranges(fields, 2, beams)
    x, y, yaw = parse_finite(fields[2 + beams : 5 + beams], 3)
    angle_min, angle_increment = bearings(beams)
    return LogScan(
        stamp=parse_stamp(fields[8 + beams]),
        x=x,
        y=y,
        yaw=yaw,
        ranges=ranges,
        angle_min=angle_min,
        angle_increment=angle_increment,
    )
