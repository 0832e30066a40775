# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Poses as plain numbers."""

import math
from typing import NamedTuple

from kernel_constrained.perception.unusable import Unusable


class Pose(NamedTuple):
    """A pose of which the yaw is the only angle: metres and radians, yaw in (-pi, pi]."""

    x: float
    y: float
    z: float
    yaw: float


def wrapped(angle: float) -> float:
    """Return the angle in (-pi, pi] that points the same way."""
    rest = math.remainder(angle, 2.0 * math.pi)  # exact, in [-pi, pi]
    return math.pi if rest == -math.pi else rest


def pose_from_quaternion(
    position: tuple[float, float, float], quaternion: tuple[float, float, float, float]
) -> Pose:
    """Build a pose from a position (m) and a quaternion (x, y, z, w) of any length but zero.

    Raises
    ------
    Unusable
        Where a number is not finite or the quaternion is zero.
    """
    if not all(map(math.isfinite, (*position, *quaternion))):
        raise Unusable('non-finite pose')
    largest = max(map(abs, quaternion))
    if largest < 1e-6:
        raise Unusable('zero quaternion')
    x, y, z, w = (component / largest for component in quaternion)
    squared = x * x + y * y + z * z + w * w
    yaw = math.atan2(2.0 * (w * z + x * y), squared - 2.0 * (y * y + z * z))
    return Pose(*position, wrapped(yaw))  # atan2 may say -pi


def quaternion_from_yaw(yaw: float) -> tuple[float, float, float, float]:
    """Quaternion (x, y, z, w) of a rotation about the vertical axis."""
    return 0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw)


def motion_between(before: Pose, after: Pose) -> tuple[float, float, float]:
    """Displacement (forward, left, yaw) from ``before`` to ``after``, in the former's frame."""
    dx, dy = after.x - before.x, after.y - before.y
    cosine, sine = math.cos(before.yaw), math.sin(before.yaw)
    return (
        cosine * dx + sine * dy,
        cosine * dy - sine * dx,
        wrapped(after.yaw - before.yaw),
    )


def interpolated(before: Pose, after: Pose, share: float) -> Pose:
    """Pose a ``share`` of the way from ``before`` to ``after``, turning the short way round."""
    if share == 0.0:
        return before
    return Pose(
        before.x + share * (after.x - before.x),
        before.y + share * (after.y - before.y),
        before.z + share * (after.z - before.z),
        wrapped(before.yaw + share * wrapped(after.yaw - before.yaw)),
    )
