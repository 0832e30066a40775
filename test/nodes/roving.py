# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A robot among discs in a room that feeds a planner over DDS and notes what it says."""

import math

import numpy as np
from feeding import stamp
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import OccupancyGrid, Path
from probing import ANSWER, RELIABLE
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import LaserScan

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
SECOND = 1_000_000_000
BEAMS = 360
BEARINGS = -math.pi + np.arange(BEAMS) * 2.0 * math.pi / BEAMS
HALF = 5.0  # of the side of the room

# Quiet: no noise in what is seen, and paths that are told apart from noise.
RADIUS = 0.3


def ranges_from(x, y, yaw, circles, range_max):
    """Ranges of all beams; what is out of reach is no return."""
    ux, uy = np.cos(BEARINGS + yaw), np.sin(BEARINGS + yaw)
    with np.errstate(divide='ignore'):
        nearest = np.minimum(
            (HALF - np.sign(ux) * x) / abs(ux), (HALF - np.sign(uy) * y) / abs(uy)
        )
    for cx, cy, radius in circles:
        along, across = (cx - x) * ux + (cy - y) * uy, (cx - x) * uy - (cy - y) * ux
        inside = radius**2 - across**2
        hit = (inside > 0.0) & (along > 0.0)
        entry = along - np.sqrt(np.maximum(inside, 0.0))
        nearest = np.where(hit, np.minimum(nearest, entry), nearest)
    return np.where(nearest > range_max, math.inf, nearest)


def scan_from(x, y, yaw, circles=(), range_max=8.0, frame='laser'):
    scan = LaserScan(angle_min=-math.pi, angle_increment=2.0 * math.pi / BEAMS)
    scan.angle_max = scan.angle_min + (BEAMS - 1) * scan.angle_increment
    scan.range_min, scan.range_max = 0.05, range_max
    scan.ranges = ranges_from(x, y, yaw, circles, range_max).tolist()
    scan.header.frame_id = frame
    return scan


def placed(x, y, yaw=0.0, z=0.0, frame='map', kind=PoseStamped, covariance=None):
    message = kind()
    pose = message.pose if kind is PoseStamped else message.pose.pose
    pose.position.x, pose.position.y, pose.position.z = float(x), float(y), float(z)
    pose.orientation.z, pose.orientation.w = math.sin(yaw / 2), math.cos(yaw / 2)
    message.header.frame_id = frame
    if covariance is not None:
        message.pose.covariance = np.asarray(covariance, dtype=float)
    return message


def path_of(*points, frame='map'):
    path = Path(poses=[placed(*point) for point in points])
    path.header.frame_id = frame
    return path


def map_of(occupied, origin=(-HALF, -HALF), resolution=0.1, frame='map'):
    """Return a map of cells (rows, columns) that are occupied or free."""
    rows, columns = occupied.shape
    message = OccupancyGrid(data=(100 * occupied.astype(np.int8)).ravel())
    message.info.width, message.info.height = columns, rows
    message.info.resolution = resolution
    message.info.origin.position.x, message.info.origin.position.y = origin
    message.info.origin.orientation.w = 1.0
    message.header.frame_id = frame
    return message


def positions(path):
    return np.array([(p.pose.position.x, p.pose.position.y) for p in path.poses])


def heading(pose):
    return 2.0 * math.atan2(pose.pose.orientation.z, pose.pose.orientation.w)


class Rover:
    """Stands where it is put among discs; publishes what it sees, collects plans."""

    def __init__(self, probe, circles=(), pose=PoseStamped, range_max=8.0, use_map=False):
        self.probe, self.circles, self.range_max = probe, circles, range_max
        self.kind = pose
        self.x = self.y = self.yaw = 0.0
        self.covariance = None
        self.plans = probe.collect(Path, 'plan')
        wanted = [
            (LaserScan, 'scan', RELIABLE), (pose, 'pose', RELIABLE),
            (PoseStamped, 'goal_pose', RELIABLE), (Path, 'reference', RELIABLE),
        ]  # fmt: skip
        wanted += [(OccupancyGrid, 'map', LATCHED)] if use_map else []
        self.scans, self.poses, self.goals, self.references, *maps = probe.publishers(*wanted)
        self.maps = maps[0] if maps else None

    @property
    def now(self):
        return self.probe.node.get_clock().now().nanoseconds

    def look(self, count=1, drawn=lambda scan: scan, pose=True, age=0.0, spin=0.05):
        """Publish scans, as they are ``drawn`` from plain ones, each with its pose."""
        for _ in range(count):
            at = self.now - round(age * SECOND)
            if pose:
                self.poses.publish(stamp(self.pose_message(), at))
            self.scans.publish(stamp(drawn(self.scan_message()), at))
            self.probe.spin(spin)
        return at

    def scan_message(self):
        return scan_from(self.x, self.y, self.yaw, self.circles, self.range_max)

    def pose_message(self):
        return placed(self.x, self.y, self.yaw, kind=self.kind, covariance=self.covariance)

    def look_until(self, condition, what, seconds=ANSWER, **arguments):
        def looked():
            self.look(**arguments)
            return condition()

        self.probe.wait(looked, seconds, what)

    def plan(self, what='a path'):
        """Look until a path comes for the newest scan, and return it."""
        newest = [None]

        def answered():
            newest[0] = self.look()
            return self.plans and nanoseconds(self.plans[-1]) == newest[0]

        self.probe.wait(answered, what=what)
        return self.plans[-1]


def nanoseconds(message):
    return message.header.stamp.sec * SECOND + message.header.stamp.nanosec
