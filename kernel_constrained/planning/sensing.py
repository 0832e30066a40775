# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What a scan says of the space around the robot, in the frame of the path."""

import math

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.perception.scan import Scan
from kernel_constrained.perception.unusable import Unusable
from kernel_constrained.planning.config import SensingConfig

Array = npt.NDArray[np.float64]


@attrs.frozen(eq=False)
class View:
    """Space that the beams of a scan passed through, and what they met; metres and radians.

    Attributes
    ----------
    stamp
        When, nanoseconds.
    origin : (2,)
        Position of the sensor.
    first_bearing, increment
        Bearing of the first beam, and from each beam to the next: positive is counter-clockwise.
    directions : (2, n)
        Unit vectors along the beams.
    ranges : (n,)
        How far each beam is known to have met nothing: the range of a hit, the largest range
        where there was none, 0 where the beam says nothing (NaN) or met something too close to
        be measured.
    hit : (n,)
        Whether it met something.
    points : (2, m)
        Where the beams that hit ended, in their order.
    deviation : (m,)
        Standard deviation of each of these positions, in the direction in which it is largest:
        of the range and of the pose together.
    robot : (2,)
        Position of the robot, about which an error of its heading turns everything.
    range_deviation
        Standard deviation of a range alone.
    covariance : (3, 3)
        That of the robot's x, y and heading; zero for an exact pose.
    """

    stamp: int
    origin: Array
    first_bearing: float
    increment: float
    directions: Array
    ranges: Array
    hit: npt.NDArray[np.bool_]
    points: Array
    deviation: Array
    robot: Array
    range_deviation: float
    covariance: Array


def view_of(
    stamp: int, scan: Scan, pose: Pose, mounting: Mounting, config: SensingConfig,
    covariance: Array | None = None,
) -> View:  # fmt: skip
    """Put a scan into the frame of the path.

    A beam counts as free up to ``range_max`` or ``config.max_range``, whichever is less, where it
    met nothing (+inf) or something further away. It hit something at ``range_min`` where that was
    too close to measure (-inf, or below ``range_min``; REP-117). NaN says nothing; nor do 0 and
    negative numbers, by which drivers older than REP-117 mean that nothing was measured.

    Parameters
    ----------
    stamp
        Of the scan, nanoseconds.
    scan
        What the sensor saw.
    pose
        Of the robot, at that time.
    mounting
        Where the sensor sits on the robot.
    config
        Largest range, and the deviation of ranges.
    covariance : (3, 3), optional
        Of the pose's x, y and yaw; m^2, m rad, rad^2.

    Raises
    ------
    Unusable
        Where no beam of the scan can be trusted, the pose or its covariance is not finite, a
        variance is negative, or neither the scan nor ``config`` says how far the sensor sees.
    """
    scan.check()
    if not math.isfinite(pose.x + pose.y + pose.yaw):
        raise Unusable('non-finite pose', f'x {pose.x}, y {pose.y}, yaw {pose.yaw}')
    far = how_far(scan, config)
    origin, robot = sensor_position(pose, mounting), np.array([pose.x, pose.y], dtype=np.float64)
    side = -1.0 if mounting.upside_down else 1.0
    first, increment = pose.yaw + mounting.yaw + side * scan.angle_min, side * scan.angle_increment
    directions, ranges, hit, points = look(
        np.asarray(scan.ranges, dtype=np.float64), first, increment,
        max(float(scan.range_min), 0.0), far, origin,
    )  # fmt: skip
    if covariance is None:
        spread = np.zeros((3, 3))  # an exact pose
        deviation = np.full(points.shape[1], config.range_deviation)
    else:
        spread = checked_covariance(covariance)
        deviation = np.empty(points.shape[1])
        fill_deviation(points, origin, robot, config.range_deviation, spread, deviation)
    return View(
        stamp, origin, first, increment, directions, ranges, hit, points, deviation, robot,
        config.range_deviation, spread,
    )  # fmt: skip


def how_far(scan: Scan, config: SensingConfig) -> float:
    """Return the range up to which a beam that met nothing is free; raises ``Unusable``."""
    far = float(min(scan.range_max, config.max_range))
    if not far < math.inf:
        raise Unusable(
            'range_max is infinite',
            'a beam that met nothing is free up to there: set scan.max_range to how far it sees',
        )
    return far


def sensor_position(pose: Pose, mounting: Mounting) -> Array:
    """Return where the sensor of a robot is, shape (2,)."""
    cosine, sine = math.cos(pose.yaw), math.sin(pose.yaw)
    return np.array(
        [
            pose.x + cosine * mounting.x - sine * mounting.y,
            pose.y + sine * mounting.x + cosine * mounting.y,
        ]
    )


def checked_covariance(covariance: Array) -> Array:
    """Return the covariance of a pose as a symmetric array; raises ``Unusable``."""
    spread = np.asarray(covariance, dtype=np.float64)
    if spread.shape != (3, 3):
        raise Unusable('bad pose covariance', f'shape {spread.shape}, must be (3, 3): x, y, yaw')
    (xx, xy, xt), (yx, yy, yt), (tx, ty, tt) = spread.tolist()
    xy, xt, yt = 0.5 * (xy + yx), 0.5 * (xt + tx), 0.5 * (yt + ty)
    if not math.isfinite(xx + yy + tt + xy + xt + yt):
        raise Unusable('bad pose covariance', 'not finite')
    if min(xx, yy, tt) < 0.0:
        raise Unusable('bad pose covariance', f'negative variance in {xx:g}, {yy:g}, {tt:g}')
    return np.array([[xx, xy, xt], [xy, yy, yt], [xt, yt, tt]])


@compiled_allocating
def look(ranges, first_bearing, increment, range_min, far, origin):
    """Return directions (2, n), free ranges (n,), hits (n,) and end points (2, m) of beams.

    ``far`` is the range from which on a beam counts as having met nothing.
    """
    beams = ranges.shape[0]
    directions, free = np.empty((2, beams)), np.empty(beams)
    hit, ends = np.empty(beams, dtype=np.bool_), np.empty((2, beams))
    hits = 0
    ux, uy = math.cos(first_bearing), math.sin(first_bearing)
    cosine, sine = math.cos(increment), math.sin(increment)
    for i in range(beams):
        directions[0, i], directions[1, i] = ux, uy
        value = end = ranges[i]
        if value > far:
            hit[i], free[i] = False, far
        elif value >= range_min and value > 0.0:
            hit[i], free[i] = True, value
        elif value > 0.0 or value == -np.inf:
            hit[i], free[i], end = True, 0.0, range_min
        else:  # NaN too
            hit[i], free[i] = False, 0.0
        if hit[i]:
            ends[0, hits] = origin[0] + end * ux
            ends[1, hits] = origin[1] + end * uy
            hits += 1
        # Turned from beam to beam: of 10,000, the last is right to 1e-12.
        ux, uy = cosine * ux - sine * uy, sine * ux + cosine * uy
    return directions, free, hit, ends[:, :hits].copy()


@compiled
def fill_deviation(points, origin, robot, range_deviation, covariance, out):
    """Fill ``out`` (m,) with the standard deviation of end points (2, m).

    It is the root of the largest eigenvalue of R + J C J', with R the variance of the range along
    the beam, C the covariance of x, y and yaw, and J = [1 | p], where p is the end point as seen
    from the robot, turned by a right angle.
    """
    xx, yy, turn = covariance[0, 0], covariance[1, 1], covariance[2, 2]
    xy, xt, yt = covariance[0, 1], covariance[0, 2], covariance[1, 2]
    variance = range_deviation * range_deviation
    for i in range(points.shape[1]):
        along, across = points[0, i] - origin[0], points[1, i] - origin[1]
        share = variance / max(along * along + across * across, 1e-300)
        px, py = robot[1] - points[1, i], points[0, i] - robot[0]
        a = share * along * along + xx + 2.0 * xt * px + turn * px * px
        b = share * along * across + xy + xt * py + yt * px + turn * px * py
        c = share * across * across + yy + 2.0 * yt * py + turn * py * py
        largest = 0.5 * (a + c) + math.sqrt(0.25 * (a - c) ** 2 + b * b)
        # Rounding, or a covariance that is none, must not make a point surer than its range.
        out[i] = math.sqrt(max(largest, variance))
