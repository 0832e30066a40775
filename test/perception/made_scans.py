# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Scans made for the tests."""

import math

import numpy as np

from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.perception.scan import Scan

SECOND = 1_000_000_000

# A range, and what it says of a sensor with limits 0.1 and 30 m; None where it says nothing.
REP_117 = [
    (math.nan, None),
    (-math.inf, None),
    (0.0, None),
    (-0.0, None),
    (-1.0, None),
    (0.09, None),  # below range_min
    (30.1, None),  # above range_max
    (0.125, 0.125),
    (30.0, 30.0),
    (math.inf, math.inf),  # no return
]
CENTRED = Mounting()


def scan(ranges, angle_min=-math.pi, angle_increment=None, range_min=0.1, range_max=30.0, **more):
    """Return a scan, by default with its beams spread over a full turn."""
    ranges = np.asarray(ranges, dtype=np.float32)
    if angle_increment is None:
        angle_increment = 2 * math.pi / max(len(ranges), 1)
    return Scan(ranges, angle_min, angle_increment, range_min, range_max, **more)


def reversed_scan(original):
    """Return the scan of a sensor that turns the other way round, or is mounted upside down."""
    last = original.angle_min + (len(original.ranges) - 1) * original.angle_increment
    return scan(
        original.ranges[::-1], last, -original.angle_increment,
        original.range_min, original.range_max,
    )  # fmt: skip


def room_scan(pose, beams=120, mounting=CENTRED):
    """Return what is seen at a pose in an empty room, 10 m long and 6 m wide, from its corner."""
    bearings = -math.pi + (np.arange(beams) + 0.5) * 2 * math.pi / beams
    first = bearings[0]
    bearings = pose.yaw + mounting.yaw + (-bearings if mounting.upside_down else bearings)
    x = pose.x + math.cos(pose.yaw) * mounting.x - math.sin(pose.yaw) * mounting.y
    y = pose.y + math.sin(pose.yaw) * mounting.x + math.cos(pose.yaw) * mounting.y
    cosine, sine = np.cos(bearings), np.sin(bearings)
    with np.errstate(divide='ignore'):
        along = np.where(cosine > 0, (10.0 - x) / cosine, -x / cosine)
        across = np.where(sine > 0, (6.0 - y) / sine, -y / sine)
    return scan(np.minimum(along, across), first)
