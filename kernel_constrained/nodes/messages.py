# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Messages of the middleware: their classes, and estimates as messages."""

import importlib
import struct
from typing import Any

import numpy as np
import numpy.typing as npt
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import LaserScan, Range

from kernel_constrained.perception.geometry import quaternion_from_yaw
from kernel_constrained.perception.targets import with_heading

Array = npt.NDArray[np.float64]

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


# Where the components of a target stand in a pose's position and 6 x 6 covariance.
PLACES = {'x': 0, 'forward': 0, 'y': 1, 'left': 1, 'z': 2, 'yaw': 5}

# Variance of x, y and yaw where they are not estimated; a planar robot's z, roll and pitch have 0.
UNKNOWN = 1e6


class EstimateMessage:
    """One message that estimates are written into, one after the other.

    Parameters
    ----------
    components
        What the numbers of an estimate are.
    """

    def __init__(self, components: tuple[str, ...]) -> None:
        self.components = components
        self.message = PoseWithCovarianceStamped()
        self._heading = 'cos_yaw' in components
        named = (*components[:-2], 'yaw') if self._heading else components
        places = np.array([PLACES[name] for name in named])
        self._places = places
        self._entries = (6 * places[:, None] + places[None, :]).ravel()
        self._values = np.zeros(6)
        self._covariance = np.diag([UNKNOWN, UNKNOWN, 0.0, 0.0, 0.0, UNKNOWN]).ravel()

    def fill(self, stamp: Any, frame_id: str, mean: Array, covariance: Array) -> Any:
        """Write an estimate; cosine and sine of a yaw as a normalised quaternion.

        Returns
        -------
        geometry_msgs.msg.PoseWithCovarianceStamped
            The message, which the next call overwrites.
        """
        if self._heading:
            mean, covariance = with_heading(mean, covariance)
        self._values[self._places] = mean
        self._covariance[self._entries] = covariance.ravel()
        message = self.message
        message.header.stamp, message.header.frame_id = stamp, frame_id
        pose = message.pose.pose
        x, y, z, _, _, yaw = self._values.tolist()
        pose.position.x, pose.position.y, pose.position.z = x, y, z
        q = pose.orientation
        q.x, q.y, q.z, q.w = quaternion_from_yaw(yaw)
        message.pose.covariance = self._covariance
        return message
