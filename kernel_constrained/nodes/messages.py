# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""From messages to plain numbers and back; every message is validated here and nowhere else."""

import importlib
import math
import struct
from typing import Any

import numpy as np
import numpy.typing as npt
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import LaserScan, Range

from kernel_constrained.perception.geometry import (
    Pose,
    pose_from_quaternion,
    quaternion_from_yaw,
)
from kernel_constrained.perception.scan import Reading, Scan
from kernel_constrained.perception.unusable import Unusable

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


def stamp_of(message: Any) -> int:
    """Stamp of a message's header in nanoseconds; raises ``Unusable`` where it has none."""
    stamp = message.header.stamp
    nanoseconds = int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)
    if nanoseconds == 0:
        raise Unusable('zero stamp', 'its publisher does not stamp its messages')
    if nanoseconds < 0:
        raise Unusable('negative stamp', f'{stamp.sec} s')
    return nanoseconds


def reading_of(message: LaserScan | Range) -> Scan | Reading:
    """Wrap a message's numbers, copying nothing."""
    if isinstance(message, Range):
        return Reading(message.range, message.min_range, message.max_range)
    return Scan(
        np.asarray(message.ranges),
        message.angle_min,
        message.angle_increment,
        message.range_min,
        message.range_max,
        message.angle_max,
    )


def pose_of(message: PoseStamped | PoseWithCovarianceStamped | Odometry) -> Pose:
    """Planar pose of a message; raises ``Unusable`` for one that is no pose."""
    pose = message.pose if isinstance(message, PoseStamped) else message.pose.pose
    p, q = pose.position, pose.orientation
    return pose_from_quaternion((p.x, p.y, p.z), (q.x, q.y, q.z, q.w))


# Where the components of a target stand in a pose's position and 6 x 6 covariance.
PLACES = {'x': 0, 'forward': 0, 'y': 1, 'left': 1, 'z': 2, 'yaw': 5}

# Variance of x, y and yaw where they are not estimated; a planar robot's z, roll and pitch have 0.
UNKNOWN = 1e6

# Variance of a heading that may be any.
ANY_HEADING = math.pi**2 / 3.0


def with_heading(mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Turn cosine and sine, the last two components, into the yaw that they point to.

    Its variance is propagated to first order, and is at most that of any heading.
    """
    cosine, sine = mean[-2:]
    length = max(math.hypot(cosine, sine), 1e-9)
    to_yaw = np.array([-sine, cosine]) / length**2
    count = len(mean) - 1
    jacobian = np.zeros((count, count + 1))
    jacobian[:-1, :-2] = np.eye(count - 1)
    variance = float(to_yaw @ covariance[-2:, -2:] @ to_yaw)
    jacobian[-1, -2:] = to_yaw * min(1.0, math.sqrt(ANY_HEADING / max(variance, 1e-300)))
    yaw = math.atan2(sine, cosine)
    return np.append(mean[:-2], yaw), jacobian @ covariance @ jacobian.T


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
