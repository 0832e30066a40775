# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A robot that feeds a filter over DDS, and what the filter's diagnostics say of it."""

import math

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from probing import ANSWER, RELIABLE
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from sensor_msgs.msg import LaserScan

from kernel_constrained.configuration import from_flat
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.perception.node_config import FilterNodeConfig

# A filter of x from four sectors ahead: learns from the first pair on.
AXIS = {
    'target.type': 'axis', 'features.sectors': 4, 'features.bearing_min': -1.6,
    'features.bearing_max': 1.6, 'features.far': 15.0, 'learner.constrained': 'false',
}  # fmt: skip
BEARINGS = np.linspace(-1.5, 1.5, 31)
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
BEGIN = 1_700_000_000 * SECOND


def stamp(message, nanoseconds):
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, SECOND)
    return message


def scan_message(nanoseconds, x=0.0, frame='laser'):
    """Return what is seen x metres ahead of the middle of a room of 10 m x 6 m."""
    scan = LaserScan(angle_min=-1.5, angle_max=1.5, angle_increment=0.1)
    scan.range_min, scan.range_max = 0.1, 30.0
    ahead = np.minimum((5.0 - x) / np.cos(BEARINGS), 3.0 / np.maximum(abs(np.sin(BEARINGS)), 1e-9))
    scan.ranges = ahead.tolist()
    scan.header.frame_id = frame
    return stamp(scan, nanoseconds)


def pose_message(nanoseconds, x=0.0, yaw=0.0, frame='map', kind=PoseStamped):
    message = kind()
    pose = message.pose if kind is PoseStamped else message.pose.pose
    pose.position.x = float(x)
    pose.orientation.z, pose.orientation.w = math.sin(yaw / 2), math.cos(yaw / 2)
    message.header.frame_id = frame
    return stamp(message, nanoseconds)


def write_model(path):
    """Write a model of the configuration ``AXIS``, which has learned nothing."""
    ScanFilter(from_flat(FilterNodeConfig, {**AXIS, 'learner.constrained': False})).save(path)


class Watch:
    """The newest diagnostics of a filter."""

    def __init__(self, probe):
        self.probe = probe
        self.messages = probe.collect(DiagnosticArray, '/diagnostics')

    @property
    def status(self):
        return self.messages[-1].status[0]

    @property
    def values(self):
        return {v.key: v.value for v in self.status.values}

    def wait(self, condition, what='diagnostics', seconds=ANSWER):
        """Wait for diagnostics of which ``condition(level, message, values)`` holds."""

        def holds():
            given = self.messages and (self.status.level, self.status.message, self.values)
            return given and condition(*given)

        try:
            self.probe.wait(holds, seconds, what)
        except TimeoutError as error:
            raise AssertionError(f'{what}: {self.messages[-1:]}') from error
        self.check_counts()

    def wait_for(self, seconds=ANSWER, **counts):
        """Wait until so many messages of a kind were received: ``scan=10, pose=10``."""
        wanted = {f'received: {kind}': str(count) for kind, count in counts.items()}
        self.wait(lambda _, __, values: wanted.items() <= values.items(), str(wanted), seconds)

    def check_counts(self):
        """Every message that was received was used, or dropped for a reason."""
        values = self.values
        for kind in ('scan', 'pose', 'range'):
            dropped = self.dropped(kind)
            assert int(values.get(f'received: {kind}', 0)) == int(
                values.get(f'used: {kind}', 0)
            ) + sum(dropped.values()), values

    def dropped(self, kind):
        """Return {reason: count} of an input."""
        begin = f'dropped: {kind}: '
        return {k.removeprefix(begin): int(v) for k, v in self.values.items() if begin in k}


class Robot:
    """Drives to and fro in a room; publishes scans and poses, collects estimates."""

    def __init__(self, probe, namespace='', scan='', pose='', qos=RELIABLE, pose_qos=None):
        self.probe = probe
        self.estimates = probe.collect(PoseWithCovarianceStamped, f'{namespace}estimate')
        self.scans, self.poses = probe.publishers(
            (LaserScan, scan or f'{namespace}scan', qos),
            (PoseStamped, pose or f'{namespace}pose', pose_qos or qos),
        )
        self.sent = 0

    def close(self):
        """Take publishers and subscription back."""
        node = self.probe.node
        for publisher in (self.scans, self.poses):
            node.destroy_publisher(publisher)
        for subscription in list(node.subscriptions):
            if subscription.topic_name.endswith('/estimate'):
                node.destroy_subscription(subscription)

    @property
    def now(self):
        return BEGIN + self.sent * 50 * MILLISECOND

    @property
    def x(self):
        return math.sin(0.3 * self.sent)

    def drive(self, count, poses=True, wait=True, drawn=lambda scan: scan):
        """Send scans at 20 Hz of stamps, each with its pose, and wait for each estimate.

        Scans are as they are ``drawn`` from plain ones.
        """
        for _ in range(count):
            self.sent += 1
            if poses:
                self.poses.publish(pose_message(self.now, self.x))
            self.scans.publish(drawn(scan_message(self.now, self.x)))
            if wait:
                self.wait_for_estimate()

    def wait_for_estimate(self):
        seconds, nanoseconds = divmod(self.now, SECOND)

        def there():
            newest = self.estimates and self.estimates[-1].header.stamp
            return newest and (newest.sec, newest.nanosec) == (seconds, nanoseconds)

        self.probe.wait(there, what=f'estimate {self.sent}')


def parameter(name, value):
    kinds = {bool: 'bool', int: 'integer', float: 'double', str: 'string'}
    kind = kinds[type(value)]
    number = getattr(ParameterType, f'PARAMETER_{kind.upper()}')
    return Parameter(name=name, value=ParameterValue(type=number, **{f'{kind}_value': value}))


def set_parameters(probe, *pairs, node='filter_node'):
    """Set parameters one by one; return a result for each."""
    request = SetParameters.Request(parameters=[parameter(*pair) for pair in pairs])
    return probe.call(SetParameters, f'{node}/set_parameters', request).results


def set_together(probe, *pairs, node='filter_node'):
    """Set parameters all at once; return the one result."""
    name = f'{node}/set_parameters_atomically'
    return probe.call(SetParametersAtomically, name, together(*pairs)).result


def together(*pairs):
    """Return the request to set parameters all at once."""
    return SetParametersAtomically.Request(parameters=[parameter(*pair) for pair in pairs])
