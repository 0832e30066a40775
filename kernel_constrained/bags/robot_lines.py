# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Lines of CARMEN logs and g2o files, and the files that hold them."""

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from kernel_constrained.bags.compression import gzip_lines
from kernel_constrained.bags.recording import one_line, RecordingError

__all__ = [
    'LogScan',
    'bearings',
    'parse_finite',
    'parse_lines',
    'parse_ranges',
    'parse_robotlaser',
    'parse_stamp',
]

FloatArray = npt.NDArray[np.float64]


@dataclass(slots=True)
class LogScan:
    """One scan of a robot log and the pose it was taken from.

    Attributes
    ----------
    stamp
        Nanoseconds.
    x, y, yaw
        Pose in the map, metres and radians.
    ranges
        Readings in metres, shape (n,), no-return codes included.
    angle_min, angle_increment
        Bearing of the first beam and step to the next in radians, counter-clockwise.
    header_range_max
        The sensor's largest range as the line says, infinite where it does not.
    mounting
        The laser's (x, y, yaw) on the robot where the pose is the robot's.
    """

    stamp: int
    x: float
    y: float
    yaw: float
    ranges: FloatArray
    angle_min: float
    angle_increment: float
    header_range_max: float = math.inf
    mounting: tuple[float, float, float] = (0.0, 0.0, 0.0)


def bearings(beams: int) -> tuple[float, float]:
    """Return the first bearing and the step of a CARMEN scan that states neither, in radians.

    Beams run counter-clockwise from -90 degrees: in steps of 1 degree for 180 and 181 beams, of
    half a degree for 360 and 361, and spread over 180 degrees for any other number.
    """
    steps = beams if beams % 2 == 0 else max(beams - 1, 1)
    return -math.pi / 2, math.pi / steps


def parse_robotlaser(fields: Sequence[str]) -> tuple[LogScan, tuple[float, float, float]]:
    """Read the fields of a ROBOTLASER1 line, its keyword included.

    Returns
    -------
    scan : LogScan
        With the laser's pose; ``mounting`` is the laser's pose on the robot.
    robot : tuple of float
        The robot's (x, y, yaw).

    Raises
    ------
    ValueError, IndexError
        The line is cut off or not what it should be.
    """
    start, field_of_view, step, range_max = (float(field) for field in fields[2:6])
    beams = int(fields[8])
    ranges = parse_ranges(fields, 9, beams)
    rest = fields[10 + beams + int(fields[9 + beams]) :]
    if len(rest) < 13:
        raise ValueError('the line is cut off')
    x, y, yaw, robot_x, robot_y, robot_yaw = parse_finite(rest[:6], 6)
    if beams < 2 or not math.isclose(step * beams, field_of_view, rel_tol=1.5 / beams):
        start, step = bearings(beams)
    scan = LogScan(
        stamp=parse_stamp(rest[11]),
        x=x,
        y=y,
        yaw=yaw,
        ranges=ranges,
        angle_min=start,
        angle_increment=step,
        header_range_max=range_max if range_max > 0.0 else math.inf,
        mounting=_relative(x - robot_x, y - robot_y, yaw - robot_yaw, robot_yaw),
    )
    return scan, (robot_x, robot_y, robot_yaw)


def _relative(dx: float, dy: float, dyaw: float, yaw: float) -> tuple[float, float, float]:
    cosine, sine = math.cos(yaw), math.sin(yaw)
    return (
        cosine * dx + sine * dy,
        cosine * dy - sine * dx,
        math.remainder(dyaw, 2 * math.pi),
    )


def parse_ranges(fields: Sequence[str], first: int, beams: int) -> FloatArray:
    """Return ``beams`` readings from field ``first`` on; ValueError where there are fewer."""
    ranges = np.array([float(field) for field in fields[first : first + beams]])
    if beams < 1 or ranges.size != beams:
        raise ValueError(f'{beams} readings announced, {ranges.size} there')
    return ranges


def parse_finite(fields: Sequence[str], count: int) -> list[float]:
    """Return ``count`` finite numbers; ValueError where they are fewer or not finite."""
    values = [float(field) for field in fields]
    if len(values) != count or not all(map(math.isfinite, values)):
        raise ValueError(f'{count} finite numbers expected, found {" ".join(fields)!r}')
    return values


def parse_stamp(text: str) -> int:
    """Return seconds in decimal notation as nanoseconds, exactly.

    Raises
    ------
    ValueError
        Not a number, negative, or beyond what ROS can express.
    """
    whole, _, fraction = text.partition('.')
    if whole.isdigit() and (fraction.isdigit() or not fraction):
        # a double cannot hold a present-day epoch stamp to the nanosecond
        stamp = int(whole) * 10**9 + int(fraction[:9].ljust(9, '0'))
    else:
        stamp = round(float(text) * 1e9)
    if not 0 <= stamp < 2**31 * 10**9:
        raise ValueError(f'stamp {text} is out of range')
    return stamp


def parse_lines(path: Path, member_suffix: str, parse: Callable[[str], None]) -> list[str]:
    """Hand each line of a text file, of a ``.gz``, or of the member of a ``.zip`` to ``parse``.

    Parameters
    ----------
    path
        The file. Where it is damaged or cut off, the lines before that are parsed.
    member_suffix
        How the wanted member of an archive ends.
    parse
        Takes a line; ValueError or IndexError where it holds a scan that cannot be read.

    Returns
    -------
    list of str
        What is lost, one line each.

    Raises
    ------
    RecordingError
        Nothing can be read, or the archive has no such member.
    """
    losses: list[str] = []
    skipped, first, number, read = 0, '', 0, 0
    with path.open('rb') as file:
        try:
            for number, line in enumerate(_lines(file, path, member_suffix), 1):
                read += len(line)
                try:
                    parse(line.decode('ascii', 'replace'))
                except (ValueError, IndexError) as error:
                    skipped += 1
                    first = first or f'line {number}: {one_line(error)}'
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            if not number:
                raise RecordingError(f'{path}: cannot be read ({one_line(error)})') from error
            losses.append(
                f'{path.name}: damaged or cut off behind line {number:,} ({read:,} bytes of text, '
                f'about {file.tell():,} of {path.stat().st_size:,} bytes of the file): '
                f'what follows is lost ({one_line(error)})'
            )
    if skipped:
        losses.append(f'{skipped:,} scans lost: lines that cannot be read (first {first})')
    return losses


def _lines(file: BinaryIO, path: Path, member_suffix: str) -> Iterator[bytes]:
    if path.suffix == '.zip':
        with (
            zipfile.ZipFile(file) as archive,
            archive.open(_member(archive, path, member_suffix)) as member,
        ):
            yield from member
    elif path.suffix == '.gz':
        yield from gzip_lines(file)
    else:
        yield from file


def _member(archive: zipfile.ZipFile, path: Path, suffix: str) -> str:
    # archives made on a Mac hold a shadow of each file below __MACOSX
    members = [
        name
        for name in archive.namelist()
        if name.endswith(suffix) and not name.startswith('__MACOSX')
    ]
    if len(members) != 1:
        raise RecordingError(
            f'{path}: expected one {suffix} file in the archive, found '
            f'{", ".join(members) or "none"}'
        )
    return members[0]
