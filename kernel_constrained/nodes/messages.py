# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""From messages to plain numbers and back; every message is validated here and nowhere else."""

import importlib
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


def nanoseconds(stamp: Any) -> int:
    """Stamp of a header in nanoseconds."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


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


def fill_estimate(
    message: PoseWithCovarianceStamped,
    components: tuple[str, ...],
    mean: npt.NDArray[np.float64],
    covariance: npt.NDArray[np.float64],
) -> None:
    """Write an estimate into a message.

    Cosine and sine of a yaw become the yaw they point to, their mean variance its variance.
    """
    values = np.zeros(6)
    matrix = np.diag([UNKNOWN, UNKNOWN, 0.0, 0.0, 0.0, UNKNOWN])
    places = [PLACES[name] for name in components if name in PLACES]
    count = len(places)
    values[places] = mean[:count]
    matrix[np.ix_(places, places)] = covariance[:count, :count]
    if 'cos_yaw' in components:
        values[5] = np.arctan2(mean[3], mean[2])
        matrix[5, 5] = 0.5 * (covariance[2, 2] + covariance[3, 3])
    pose = message.pose.pose
    pose.position.x, pose.position.y, pose.position.z = values[:3].tolist()
    q = pose.orientation
    q.x, q.y, q.z, q.w = quaternion_from_yaw(float(values[5]))
    message.pose.covariance = matrix.ravel()
