# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""From the fields of messages to plain numbers; every message is validated here and nowhere else.

A message is any object with the fields of its type, whoever decoded it: rclpy, or the reader of a
bag. Nothing here knows their classes.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from kernel_constrained.perception.geometry import Pose, pose_from_quaternion
from kernel_constrained.perception.scan import Reading, Scan
from kernel_constrained.perception.unusable import Unusable

Array = npt.NDArray[np.float64]

# Where x, y and yaw stand among the rows of a pose's covariance: x, y, z, roll, pitch, yaw.
PLANAR = np.ix_([0, 1, 5], [0, 1, 5])


def stamp_of(message: Any) -> int:
    """Stamp of a message's header in nanoseconds; raises ``Unusable`` where it has none."""
    stamp = message.header.stamp
    nanoseconds = int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)
    if nanoseconds == 0:
        raise Unusable('zero stamp', 'its publisher does not stamp its messages')
    if nanoseconds < 0:
        raise Unusable('negative stamp', f'{stamp.sec} s')
    return nanoseconds


def checked_frame(message: Any, given: str, before: str | None) -> str:
    """Frame of a message.

    Parameters
    ----------
    message
        Any with a header.
    given
        The frame that it must be in, empty for that of before.
    before
        Frame of what was used before, None where nothing was.

    Raises
    ------
    Unusable
        It is in another frame.
    """
    frame: str = message.header.frame_id.lstrip('/')
    expected = given.lstrip('/') or (frame if before is None else before)
    if frame != expected:
        raise Unusable('wrong frame', f'{frame!r} where {expected!r} is expected')
    return frame


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


def covariance_of(message: Any) -> Array | None:
    """Covariance (3, 3) of x, y and yaw of a pose's message, None where it is not known.

    So it is where the message has none, or by convention zeros or a negative variance.

    Raises
    ------
    Unusable
        A number is not finite.
    """
    given = getattr(message.pose, 'covariance', None)
    if given is None:
        return None
    covariance = np.asarray(given, dtype=np.float64).reshape(6, 6)[PLANAR]
    if not np.isfinite(covariance).all():
        raise Unusable('non-finite pose covariance', f'{covariance.tolist()}')
    if not covariance.any() or covariance.diagonal().min() < 0.0:
        return None
    return covariance


def positions_of(message: Any, dimensions: int) -> Array:
    """Positions (k, dimensions) of a Path, or (1, dimensions) of a PoseStamped, as they are."""
    stamped = message.poses if hasattr(message, 'poses') else [message]
    points = [(p.x, p.y, p.z) for p in (one.pose.position for one in stamped)]
    return np.array(points, dtype=np.float64).reshape(-1, 3)[:, :dimensions].copy()
