# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Classes of the middleware's messages, and what is read of serialised ones."""

import importlib
import struct
from typing import Any

from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import LaserScan, Range

POSE_TYPES = {
    'PoseStamped': PoseStamped,
    'PoseWithCovarianceStamped': PoseWithCovarianceStamped,
    'Odometry': Odometry,
}
INPUT_TYPES = {'scan': LaserScan, 'range': Range}


def message_class(type_name: str) -> Any:
    """Class of a message type such as ``sensor_msgs/msg/LaserScan``; None where not installed."""
    package, folder, name = type_name.split('/')
    try:
        return getattr(importlib.import_module(f'{package}.{folder}'), name, None)
    except ImportError:
        return None


def header_stamp(data: bytes) -> tuple[int, int]:
    """Stamp (sec, nanosec) of a serialised message that begins with a header (CDR)."""
    order = '<' if data[1] & 1 else '>'
    return struct.unpack_from(order + 'iI', data, 4)
