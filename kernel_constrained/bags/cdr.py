# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The messages that the filter reads, from CDR bytes and to them, faster than in general.

Little-endian, as nearly everything is recorded; what does not fit is left to the general decoder.
"""

import math
from collections.abc import Callable
from struct import error as StructError
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.bags.recording import Message
from kernel_constrained.bags.serialization import decode

FloatArray = npt.NDArray[np.float32]

# CDR, little-endian; alignment counts from the end of it.
ENCAPSULATION = b'\x00\x01\x00\x00'
BEGIN = len(ENCAPSULATION)

STAMP = Struct('<iII')  # seconds, nanoseconds, length of the frame's name with its end
SCAN = Struct('<7fI')  # angle_min ... range_max, how many ranges
RANGE = Struct('<5f')  # field_of_view ... variance
POSE = Struct('<7d')
COUNT = Struct('<I')

INFRARED = 1  # sensor_msgs/Range calls every light-based sensor so


class Stamp(NamedTuple):
    """builtin_interfaces/Time."""

    sec: int
    nanosec: int


class Header(NamedTuple):
    """std_msgs/Header."""

    stamp: Stamp
    frame_id: str


class LaserScan(NamedTuple):
    """sensor_msgs/LaserScan; ``ranges`` is a read-only view of the bytes."""

    header: Header
    angle_min: float
    angle_max: float
    angle_increment: float
    time_increment: float
    scan_time: float
    range_min: float
    range_max: float
    ranges: FloatArray


class Range(NamedTuple):
    """sensor_msgs/Range."""

    header: Header
    radiation_type: int
    field_of_view: float
    min_range: float
    max_range: float
    range: float
    variance: float


class Point(NamedTuple):
    """geometry_msgs/Point."""

    x: float
    y: float
    z: float


class Quaternion(NamedTuple):
    """geometry_msgs/Quaternion."""

    x: float
    y: float
    z: float
    w: float


class Pose(NamedTuple):
    """geometry_msgs/Pose."""

    position: Point
    orientation: Quaternion


class Posed(NamedTuple):
    """What PoseStamped, PoseWithCovarianceStamped and Odometry have in common."""

    header: Header
    pose: Pose


def aligned(place: int, size: int) -> int:
    """Return the next place where a number of ``size`` bytes may stand."""
    return BEGIN + (place - BEGIN + size - 1) // size * size


def read_header(data: bytes) -> tuple[Header, int]:
    """Return the header, and where it ends."""
    sec, nanosec, length = STAMP.unpack_from(data, BEGIN)
    begin = BEGIN + STAMP.size
    end = begin + length
    return Header(Stamp(sec, nanosec), data[begin : end - 1].decode()), end


def read_scan(data: bytes) -> LaserScan | None:
    """Decode a sensor_msgs/LaserScan; None where the bytes do not fit."""
    header, place = read_header(data)
    place = aligned(place, 4)
    *angles, beams = SCAN.unpack_from(data, place)
    place += SCAN.size
    end = place + 4 * beams
    (intensities,) = COUNT.unpack_from(data, end)
    if not_at_end(data, end + COUNT.size + 4 * intensities):
        return None
    return LaserScan._make((header, *angles, np.frombuffer(data, '<f4', beams, place)))


def read_range(data: bytes) -> Range | None:
    """Decode a sensor_msgs/Range as it is since Iron; None where the bytes do not fit."""
    header, place = read_header(data)
    numbers = aligned(place + 1, 4)
    if not_at_end(data, numbers + RANGE.size):
        return None
    return Range(header, data[place], *RANGE.unpack_from(data, numbers))


def read_pose(data: bytes, after: int) -> Posed | None:
    """Decode a header and the pose after it; ``after`` bytes follow."""
    header, place = read_header(data)
    return read_posed(data, header, place, after)


def read_odometry(data: bytes) -> Posed | None:
    """Decode header and pose of a nav_msgs/Odometry."""
    header, place = read_header(data)
    place = aligned(place, 4)
    (length,) = COUNT.unpack_from(data, place)
    return read_posed(data, header, place + COUNT.size + length, 8 * (36 + 6 + 36))


def read_posed(data: bytes, header: Header, place: int, after: int) -> Posed | None:
    """Decode the pose at the next place; None where other than ``after`` bytes follow."""
    place = aligned(place, 8)
    if not_at_end(data, place + POSE.size + after):
        return None
    x, y, z, *rotation = POSE.unpack_from(data, place)
    return Posed(header, Pose(Point(x, y, z), Quaternion(*rotation)))


def not_at_end(data: bytes, end: int) -> bool:
    """Whether anything but padding is left, or something is missing."""
    return not 0 <= len(data) - end < BEGIN


READERS: dict[str, Callable[[bytes], Any]] = {
    'sensor_msgs/msg/LaserScan': read_scan,
    'sensor_msgs/msg/Range': read_range,
    'geometry_msgs/msg/PoseStamped': lambda data: read_pose(data, 0),
    'geometry_msgs/msg/PoseWithCovarianceStamped': lambda data: read_pose(data, 8 * 36),
    'nav_msgs/msg/Odometry': read_odometry,
}


def decode_input(message: Message) -> Any:
    """Decode what the filter reads of a message: header, ranges and limits, or pose.

    Other types, and bytes that do not fit, go to :func:`decode`, which returns all fields or
    raises what it raises.
    """
    reader = READERS.get(message.type)
    if reader is not None and message.data[:2] == ENCAPSULATION[:2]:
        try:
            found = reader(message.data)
        except (StructError, ValueError):  # too short, or no text
            found = None
        if found is not None:
            return found
    return decode(message)


# -- writing ------------------------------------------------------------------------------------


def header_bytes(stamp: int, frame_id: str, size: int) -> bytes:
    """Serialise a header, padded to where numbers of ``size`` bytes may stand."""
    name = frame_id.encode() + b'\x00'
    head = ENCAPSULATION + STAMP.pack(*divmod(stamp, 10**9), len(name)) + name
    return padded(head, size)


def padded(head: bytes, size: int) -> bytes:
    """Fill up to where numbers of ``size`` bytes may stand."""
    return head.ljust(aligned(len(head), size), b'\x00')


def pose_bytes(stamp: int, x: float, y: float, yaw: float, *, frame_id: str = 'map') -> bytes:
    """Serialise a planar pose as ``geometry_msgs/PoseStamped``.

    Parameters
    ----------
    stamp
        Nanoseconds since the epoch.
    x, y
        Position in metres.
    yaw
        Heading in radians; any turn count.
    """
    half = math.remainder(yaw, 2 * math.pi) / 2
    numbers = POSE.pack(x, y, 0.0, 0.0, 0.0, math.sin(half), math.cos(half))
    return header_bytes(stamp, frame_id, 8) + numbers


def scan_bytes(
    stamp: int,
    ranges: npt.ArrayLike,
    *,
    angle_min: float,
    angle_increment: float,
    range_min: float,
    range_max: float,
    frame_id: str = 'laser',
) -> bytes:
    """Serialise a scan as ``sensor_msgs/LaserScan`` without intensities.

    Parameters
    ----------
    stamp
        Nanoseconds since the epoch.
    ranges : array of shape (n,)
        Metres; +inf where nothing came back (REP-117).
    angle_min, angle_increment
        Bearing of the first beam and step to the next in radians, counter-clockwise.
    range_min, range_max
        Smallest and largest valid range in metres.
    """
    values = np.ascontiguousarray(ranges, dtype='<f4')
    angle_max = angle_min + (values.size - 1) * angle_increment
    numbers = SCAN.pack(
        angle_min, angle_max, angle_increment, 0.0, 0.0, range_min, range_max, values.size
    )
    head = header_bytes(stamp, frame_id, 4)
    return b''.join((head, numbers, values.tobytes(), COUNT.pack(0)))


def range_bytes(
    stamp: int, value: float, *, range_min: float, range_max: float, frame_id: str = 'range'
) -> bytes:
    """Serialise one range in metres as ``sensor_msgs/Range``; ``stamp`` is in nanoseconds."""
    head = header_bytes(stamp, frame_id, 1) + bytes([INFRARED])
    return padded(head, 4) + RANGE.pack(0.0, range_min, range_max, value, 0.0)
