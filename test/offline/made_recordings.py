# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings made for the tests: a robot that drives round an empty room."""

import math
import sys
from pathlib import Path

import numpy as np

from kernel_constrained.bags import BagWriter, Message, pose_bytes, range_bytes, scan_bytes
from kernel_constrained.bags.serialization import typestore
from kernel_constrained.configuration import from_flat
from kernel_constrained.perception.geometry import Pose
from kernel_constrained.perception.node_config import FilterNodeConfig

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'perception'))

from made_scans import room_scan

SECOND = 1_000_000_000
START = 100 * SECOND
PERIOD = SECOND // 10

SCAN_TYPE = 'sensor_msgs/msg/LaserScan'
RANGE_TYPE = 'sensor_msgs/msg/Range'
POSE_TYPE = 'geometry_msgs/msg/PoseStamped'
ODOMETRY_TYPE = 'nav_msgs/msg/Odometry'
COVARIANCE_TYPE = 'geometry_msgs/msg/PoseWithCovarianceStamped'


def pose_at(i):
    """Pose of the robot at scan ``i``: round the room off its middle, faster and slower."""
    angle = 0.05 * i + 0.4 * math.sin(0.11 * i)
    x, y = 4.2 + 3.0 * math.cos(angle), 2.6 + 1.8 * math.sin(angle)
    return Pose(x, y, 0.0, math.atan2(1.8 * math.cos(angle), -3.0 * math.sin(angle)))


def stamp_of(i):
    return START + i * PERIOD


def scan_message(i, stamp=None, topic='scan', beams=40, recorded=None):
    scan, stamp = room_scan(pose_at(i), beams), stamp_of(i) if stamp is None else stamp
    data = scan_bytes(
        stamp, scan.ranges, angle_min=scan.angle_min, angle_increment=scan.angle_increment,
        range_min=scan.range_min, range_max=scan.range_max,
    )  # fmt: skip
    return Message(topic, SCAN_TYPE, stamp if recorded is None else recorded, data)


def pose_message(i, stamp=None, topic='pose', recorded=None):
    pose, stamp = pose_at(i), stamp_of(i) if stamp is None else stamp
    data = pose_bytes(stamp, pose.x, pose.y, pose.yaw)
    return Message(topic, POSE_TYPE, stamp if recorded is None else recorded, data)


def range_message(i):
    """Return the distance to the wall at x = 0, which says x."""
    data = range_bytes(stamp_of(i), pose_at(i).x, range_min=0.1, range_max=20.0)
    return Message('range', RANGE_TYPE, stamp_of(i), data)


def as_type(message, kind):
    """Return a pose as Odometry or PoseWithCovarianceStamped."""
    store = typestore()
    given = store.deserialize_cdr(message.data, POSE_TYPE)
    with_covariance = store.types['geometry_msgs/msg/PoseWithCovariance'](
        pose=given.pose, covariance=np.zeros(36)
    )
    arguments = {'header': given.header, 'pose': with_covariance}
    if kind == ODOMETRY_TYPE:
        zero = store.types['geometry_msgs/msg/Vector3'](x=0.0, y=0.0, z=0.0)
        twist = store.types['geometry_msgs/msg/Twist'](linear=zero, angular=zero)
        arguments |= {
            'child_frame_id': 'base_link',
            'twist': store.types['geometry_msgs/msg/TwistWithCovariance'](
                twist=twist, covariance=np.zeros(36)
            ),
        }
    data = bytes(store.serialize_cdr(store.types[kind](**arguments), kind, little_endian=True))
    return message._replace(type=kind, data=data)


def drive(count, poses=None):
    """Return the messages of a drive: a scan and a pose at each of ``count`` stamps."""
    return [
        make(i)
        for i in range(count)
        for make in (pose_message, scan_message)
        if make is scan_message or poses is None or i in poses
    ]


def written(path, messages):
    """Write messages as a bag and return its path."""
    with BagWriter(path) as writer:
        for message in messages:
            writer.write(message)
    return path


def config(**settings):
    """Return settings for the room; ``__`` stands for the dot of a name."""
    given = {
        'features.sectors': 12,
        'target.position_scale': 0.1,
        'target.yaw_scale': 0.05,
        'target.clip': 1e6,
        'learner.bandwidth': 3.5,
        'learner.max_model_order': 60,
        'learner.tolerance': 3.0,
    }
    given |= {name.replace('__', '.'): value for name, value in settings.items()}
    return from_flat(FilterNodeConfig, given)
