# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""From the fields of messages to plain numbers; every message is validated here and nowhere else.

A message is any object with the fields of its type, whoever decoded it: rclpy, or the reader of a
bag. Nothing here knows their classes.
"""

from typing import Any

import numpy as np

from kernel_constrained.perception.geometry import Pose, pose_from_quaternion
from kernel_constrained.perception.scan import Reading, Scan
from kernel_constrained.perception.unusable import Unusable


def stamp_of(message: Any) -> int:
    """Stamp of a message's header in nanoseconds; raises ``Unusable`` where it has none."""
    stamp = message.header.stamp
    nanoseconds = int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)
    if nanoseconds == 0:
        raise Unusable('zero stamp', 'its publisher does not stamp its messages')
    if nanoseconds < 0:
        raise Unusable('negative stamp', f'{stamp.sec} s')
    return nanoseconds


def reading_of(message: Any) -> Scan | Reading:
    """Wrap the numbers of a sensor_msgs LaserScan or Range, copying nothing."""
    if hasattr(message, 'range'):
        return Reading(message.range, message.min_range, message.max_range)
    return Scan(
        np.asarray(message.ranges),
        message.angle_min,
        message.angle_increment,
        message.range_min,
        message.range_max,
        message.angle_max,
    )


def pose_of(message: Any) -> Pose:
    """Planar pose of a PoseStamped, PoseWithCovarianceStamped or Odometry.

    Raises
    ------
    Unusable
        It is no pose.
    """
    pose = message.pose
    pose = getattr(pose, 'pose', pose)
    p, q = pose.position, pose.orientation
    return pose_from_quaternion((p.x, p.y, p.z), (q.x, q.y, q.z, q.w))
