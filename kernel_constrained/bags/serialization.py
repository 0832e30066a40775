# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Messages from their CDR bytes, without a ROS installation."""

from functools import cache
from typing import Any

from rosbags.serde import SerdeError
from rosbags.typesys import get_typestore, Stores, TypesysError
from rosbags.typesys.store import Typestore

from kernel_constrained.bags.recording import Message, one_line, RecordingError

__all__ = ['POSE_TYPE', 'RANGE_TYPE', 'SCAN_TYPE', 'STRING_TYPE', 'decode', 'typestore']

POSE_TYPE = 'geometry_msgs/msg/PoseStamped'
RANGE_TYPE = 'sensor_msgs/msg/Range'
SCAN_TYPE = 'sensor_msgs/msg/LaserScan'
STRING_TYPE = 'std_msgs/msg/String'


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
