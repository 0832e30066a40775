# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Poses and mountings as plain numbers."""

import math
from typing import NamedTuple

from kernel_constrained.perception.unusable import Unusable

Quaternion = tuple[float, float, float, float]  # x, y, z, w

# Largest tilt of a planar sensor against the robot's plane, radians.
LARGEST_TILT = math.radians(10.0)


class Pose(NamedTuple):
    """A pose of a robot that drives in a plane: metres and radians, yaw in (-pi, pi].

    ``rotation`` is the unit quaternion that the yaw is taken from, where there was one: between
    poses of a tilted robot it is the rotation that is interpolated.
    """

    x: float
    y: float
    z: float
    yaw: float
    rotation: Quaternion | None = None


class Mounting(NamedTuple):
    """Where a planar sensor sits on its robot: metres and radians.

    A sensor that is upside down is rolled by half a turn about its forward axis before it is
    turned by ``yaw``: its bearings run the other way round.
    """

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0
    upside_down: bool = False


def wrapped(angle: float) -> float:
    """Return the angle in (-pi, pi] that points the same way."""
    rest = math.remainder(angle, 2.0 * math.pi)  # exact, in [-pi, pi]
    return math.pi if rest == -math.pi else rest


def unit_quaternion(quaternion: Quaternion) -> Quaternion:
    """Return a quaternion of length 1 for one of any length but zero; raises ``Unusable``."""
    x, y, z, w = quaternion
    largest = max(abs(x), abs(y), abs(z), abs(w))
    if not all(map(math.isfinite, quaternion)):
        raise Unusable('non-finite pose', f'quaternion {quaternion}')
    if largest < 1e-6:
        raise Unusable('zero quaternion', f'{quaternion}')
    x, y, z, w = x / largest, y / largest, z / largest, w / largest
    length = math.sqrt(x * x + y * y + z * z + w * w)
    return x / length, y / length, z / length, w / length


def yaw_of(rotation: Quaternion) -> float:
    """Yaw of a unit quaternion: heading of its x axis, in (-pi, pi]."""
    x, y, z, w = rotation
    return wrapped(math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))


def pose_from_quaternion(position: tuple[float, float, float], quaternion: Quaternion) -> Pose:
    """Build a pose from a position (m) and a quaternion (x, y, z, w) of any length but zero.

    Raises
    ------
    Unusable
        Where a number is not finite or the quaternion is zero.
    """
    if not all(map(math.isfinite, position)):
        raise Unusable('non-finite pose', f'position {position}')
    rotation = unit_quaternion(quaternion)
    return Pose(*position, yaw_of(rotation), rotation)


def mounting_from_quaternion(
    position: tuple[float, float, float], quaternion: Quaternion
) -> Mounting:
    """Build the mounting of a planar sensor from its pose in the robot's frame.

    Raises
    ------
    Unusable
        Where a number is not finite, or the sensor's plane is tilted against the robot's.
    """
    pose = pose_from_quaternion(position, quaternion)
    assert pose.rotation is not None
    x, y, _, _ = pose.rotation
    upwards = 1.0 - 2.0 * (x * x + y * y)  # height of the sensor's z axis
    if abs(upwards) < math.cos(LARGEST_TILT):
        tilt = math.degrees(math.acos(min(abs(upwards), 1.0)))
        raise Unusable('tilted sensor', f'by {tilt:.0f} degrees, at most 10 are planar')
    return Mounting(pose.x, pose.y, pose.yaw, upwards < 0.0)


def quaternion_from_yaw(yaw: float) -> Quaternion:
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


def slerp(before: Quaternion, after: Quaternion, share: float) -> Quaternion:
    """Rotation a ``share`` of the way between two unit quaternions, the short way round."""
    cosine = sum(a * b for a, b in zip(before, after))
    sign = -1.0 if cosine < 0.0 else 1.0
    angle = math.acos(min(abs(cosine), 1.0))
    if angle < 1e-6:  # straight and round are the same here
        first, second = 1.0 - share, sign * share
    else:
        first = math.sin((1.0 - share) * angle) / math.sin(angle)
        second = sign * math.sin(share * angle) / math.sin(angle)
    x, y, z, w = (first * a + second * b for a, b in zip(before, after))
    return unit_quaternion((x, y, z, w))


def interpolated(before: Pose, after: Pose, share: float) -> Pose:
    """Pose a ``share`` of the way from ``before`` to ``after``, turning the short way round."""
    if share == 0.0:
        return before
    rotation = None
    if before.rotation is None or after.rotation is None:
        yaw = wrapped(before.yaw + share * wrapped(after.yaw - before.yaw))
    else:
        rotation = slerp(before.rotation, after.rotation, share)
        yaw = yaw_of(rotation)
    return Pose(
        before.x + share * (after.x - before.x),
        before.y + share * (after.y - before.y),
        before.z + share * (after.z - before.z),
        yaw,
        rotation,
    )
