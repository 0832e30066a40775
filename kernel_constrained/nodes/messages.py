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


def with_heading(
    components: tuple[str, ...], mean: Array, covariance: Array
) -> tuple[tuple[str, ...], Array, Array]:
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
    return (
        (*components[:-2], 'yaw'),
        np.append(mean[:-2], math.atan2(sine, cosine)),
        jacobian @ covariance @ jacobian.T,
    )


def fill_estimate(
    message: PoseWithCovarianceStamped, components: tuple[str, ...], mean: Array, covariance: Array
) -> None:
    """Write an estimate into a message; cosine and sine of a yaw as a normalised quaternion."""
    if 'cos_yaw' in components:
        components, mean, covariance = with_heading(components, mean, covariance)
    values = np.zeros(6)
    matrix = np.diag([UNKNOWN, UNKNOWN, 0.0, 0.0, 0.0, UNKNOWN])
    places = [PLACES[name] for name in components]
    values[places] = mean
    matrix[np.ix_(places, places)] = covariance
    pose = message.pose.pose
    pose.position.x, pose.position.y, pose.position.z = values[:3].tolist()
    q = pose.orientation
    q.x, q.y, q.z, q.w = quaternion_from_yaw(float(values[5]))
    message.pose.covariance = matrix.ravel()
