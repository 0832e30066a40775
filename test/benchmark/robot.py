# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The robot that the benchmarks of the filter node drive: its room, its messages, its settings."""

import array
import itertools
import math
import os
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import LaserScan

from kernel_constrained.nodes.filter_node import FilterNode

# One round of an eight, seconds; it closes, so that rounds can follow each other.
ROUND = 40.0
BEAMS, FIELD_OF_VIEW = 1081, math.radians(270.0)
NOISE, DROPOUTS = 0.01, 0.005
# Room and furniture: x_min, x_max, y_min, y_max, metres.
BOXES = np.array([
    (0.0, 10.0, 0.0, 6.0), (0.0, 1.0, 0.0, 0.8), (8.6, 10.0, 0.0, 1.0), (4.7, 5.3, 0.0, 0.7),
    (0.0, 0.8, 5.0, 6.0), (9.0, 10.0, 4.5, 6.0), (3.0, 3.4, 2.8, 3.2), (6.6, 7.0, 2.8, 3.2),
])  # fmt: skip


class Event(NamedTuple):
    """A message and when it is due, seconds after the first; ``topic`` is ``scan`` or ``pose``."""

    due: float
    topic: str
    message: Any


def isolate(domain):
    """Keep this process and those it starts to themselves."""
    os.environ['ROS_DOMAIN_ID'] = str(domain)
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'


def parameters(rate, **others):
    """Return the arguments of a filter of motion for scans at ``rate`` a second."""
    values = {
        'target.type': 'motion',
        'target.position_offset': 0.4 / rate,
        'target.position_scale': 0.2 / rate,
        'target.yaw_scale': 0.5 / rate,
        'features.type': 'sectors',
        'features.bearing_min': -FIELD_OF_VIEW / 2,
        'features.bearing_max': FIELD_OF_VIEW / 2,
        'learner.tolerance': 4.0,
        **others,
    }
    return ['--ros-args', *(s for name, v in values.items() for s in ('-p', f'{name}:={v}'))]


# -- messages -------------------------------------------------------------------------------


def drive(rate, seconds, pose_rate=20):
    """Return the events of a drive: scans at ``rate``, a pose with every so many of them."""
    rng = np.random.default_rng(0)
    events = []
    for i in range(round(rate * seconds)):
        x, y, yaw = place(i / rate)
        events.append(Event(i / rate, 'scan', scan_message(x, y, yaw, rng)))
        if i % max(1, round(rate / pose_rate)) == 0:
            events.append(Event(i / rate, 'pose', pose_message(x, y, yaw)))
    for event in events:
        set_stamp(event.message, event.due)
    return events


def rounds(events, seconds=ROUND):
    """Go on and on through the same events; each message is used again with a later stamp."""
    begun = 0.0
    while True:
        for event in events:
            set_stamp(event.message, begun + event.due)
            yield Event(begun + event.due, event.topic, event.message)
        begun += seconds


def set_stamp(message, seconds):
    """Stamp a message; ``seconds`` after the first of all."""
    nanoseconds = round(seconds * 1e9) + 1_000_000_000
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, 1_000_000_000)


def get_stamp(message):
    """Stamp of a message, nanoseconds."""
    return message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec


def place(time):
    """Where the robot is (x, y, yaw): on an eight, about 0.5 m/s, looking ahead."""
    phase = 2 * math.pi * time / ROUND
    x, y = 5.0 + 2.5 * math.cos(phase), 3.0 + 1.5 * math.sin(2 * phase)
    return x, y, math.atan2(3.0 * math.cos(2 * phase), -2.5 * math.sin(phase))


def scan_message(x, y, yaw, rng):
    message = LaserScan(range_min=0.06, range_max=30.0, scan_time=0.025)
    message.header.frame_id = 'laser'
    message.angle_min, message.angle_max = -FIELD_OF_VIEW / 2, FIELD_OF_VIEW / 2
    message.angle_increment = FIELD_OF_VIEW / (BEAMS - 1)
    seen = distances(x, y, yaw + np.linspace(-FIELD_OF_VIEW / 2, FIELD_OF_VIEW / 2, BEAMS))
    seen += NOISE * rng.standard_normal(BEAMS)
    seen[rng.uniform(size=BEAMS) < DROPOUTS] = math.inf
    message.ranges = array.array('f', seen.astype(np.float32).tobytes())
    return message


def distances(x, y, bearings):
    """Distance to the nearest side of a box along each bearing, metres."""
    ahead = np.stack([np.cos(bearings), np.sin(bearings)])[:, :, None]
    low, high = BOXES[:, ::2].T, BOXES[:, 1::2].T
    nearest = np.full(len(bearings), np.inf)
    for axis, here, other in ((0, x, y), (1, y, x)):
        for sides in (low[axis], high[axis]):
            with np.errstate(divide='ignore', invalid='ignore'):
                along = (sides - here) / ahead[axis]
                across = other + along * ahead[1 - axis]
                hit = (along > 0) & (low[1 - axis] <= across) & (across <= high[1 - axis])
            nearest = np.minimum(nearest, np.where(hit, along, np.inf).min(axis=1))
    return nearest


def pose_message(x, y, yaw):
    message = PoseStamped()
    message.header.frame_id = 'map'
    message.pose.position.x, message.pose.position.y = x, y
    message.pose.orientation.z, message.pose.orientation.w = math.sin(yaw / 2), math.cos(yaw / 2)
    return message


# -- nodes ----------------------------------------------------------------------------------


@contextmanager
def node_in_process(make=FilterNode, arguments=None):
    """Make a node of this process; it is closed and destroyed at the end.

    Parameters
    ----------
    make
        The class, or the name of a plain node.
    arguments
        Command line of the node, such as :func:`parameters` gives.
    """
    rclpy.init(args=arguments)
    node = Node(make) if isinstance(make, str) else make()
    try:
        yield node
    finally:
        if hasattr(node, 'close'):
            node.close()
        node.destroy_node()
        rclpy.shutdown()


def callbacks(node):
    """Return {topic: callback}: what an executor calls with each message, in sequence."""

    def numbered(callback):
        numbers = itertools.count(1)
        return lambda message: callback(message, {'publication_sequence_number': next(numbers)})

    return {s.topic_name.lstrip('/'): numbered(s.callback) for s in node.subscriptions}
