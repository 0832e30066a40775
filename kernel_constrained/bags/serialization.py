# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""CDR bytes from plain numbers and back, equal to those of rclpy, without a ROS installation."""

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from rosbags.serde import SerdeError
from rosbags.typesys import get_typestore, Stores, TypesysError
from rosbags.typesys.store import Typestore

from kernel_constrained.bags.recording import Message, one_line, RecordingError

__all__ = [
    'POSE_TYPE',
    'RANGE_TYPE',
    'SCAN_TYPE',
    'decode',
    'pose_bytes',
    'range_bytes',
    'scan_bytes',
    'typestore',
]

POSE_TYPE = 'geometry_msgs/msg/PoseStamped'
RANGE_TYPE = 'sensor_msgs/msg/Range'
SCAN_TYPE = 'sensor_msgs/msg/LaserScan'

INFRARED = 1  # sensor_msgs/Range calls every light-based sensor so
NO_INTENSITIES = np.zeros(0, dtype=np.float32)


@cache
def typestore(distribution: Stores = Stores.ROS2_KILTED) -> Typestore:
    """Return the message definitions of a distribution.

    Jazzy and Kilted agree in all that is written here. Humble is the last whose
    ``sensor_msgs/Range`` has no ``variance``.
    """
    return get_typestore(distribution)


def decode(message: Message) -> Any:
    """Return a message as an object with the fields of its type; arrays are numpy arrays.

    Raises
    ------
    RecordingError
        The type is not one of ROS's own, or the bytes do not fit it.
    """
    try:
        return typestore().deserialize_cdr(message.data, message.type)
    except (SerdeError, KeyError, TypesysError) as error:
        reason = one_line(error)
    try:
        return typestore(Stores.ROS2_HUMBLE).deserialize_cdr(message.data, message.type)
    except (SerdeError, KeyError, TypesysError):
        raise RecordingError(
            f'{message.topic} at {message.stamp} ns: {len(message.data)} bytes cannot be decoded '
            f'as {message.type} ({reason})'
        ) from None


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
    types = typestore().types
    half = math.remainder(yaw, 2 * math.pi) / 2
    pose = types['geometry_msgs/msg/Pose'](
        position=types['geometry_msgs/msg/Point'](x=x, y=y, z=0.0),
        orientation=types['geometry_msgs/msg/Quaternion'](
            x=0.0, y=0.0, z=math.sin(half), w=math.cos(half)
        ),
    )
    return _serialize(types[POSE_TYPE](header=_header(stamp, frame_id), pose=pose), POSE_TYPE)


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
    values = np.ascontiguousarray(ranges, dtype=np.float32)
    message = typestore().types[SCAN_TYPE](
        header=_header(stamp, frame_id),
        angle_min=angle_min,
        angle_max=angle_min + (values.size - 1) * angle_increment,
        angle_increment=angle_increment,
        time_increment=0.0,
        scan_time=0.0,
        range_min=range_min,
        range_max=range_max,
        ranges=values,
        intensities=NO_INTENSITIES,
    )
    return _serialize(message, SCAN_TYPE)


def range_bytes(
    stamp: int, value: float, *, range_min: float, range_max: float, frame_id: str = 'range'
) -> bytes:
    """Serialise one range in metres as ``sensor_msgs/Range``; ``stamp`` is in nanoseconds."""
    message = typestore().types[RANGE_TYPE](
        header=_header(stamp, frame_id),
        radiation_type=INFRARED,
        field_of_view=0.0,
        min_range=range_min,
        max_range=range_max,
        range=value,
        variance=0.0,
    )
    return _serialize(message, RANGE_TYPE)


def _header(stamp: int, frame_id: str) -> Any:
    types = typestore().types
    seconds, nanoseconds = divmod(stamp, 10**9)
    time = types['builtin_interfaces/msg/Time'](sec=seconds, nanosec=nanoseconds)
    return types['std_msgs/msg/Header'](stamp=time, frame_id=frame_id)


def _serialize(message: Any, kind: str) -> bytes:
    # little-endian on every machine: the same recording must give the same bytes
    return bytes(typestore().serialize_cdr(message, kind, little_endian=True))
