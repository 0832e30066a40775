# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A node that does nothing with its scans: what rclpy and the middleware take by themselves.

``python bare_node.py --ros-args -p executor:=single -p answer:=true`` answers each scan with an
empty estimate.
"""

from contextlib import suppress

import rclpy
from geometry_msgs.msg import PoseWithCovarianceStamped
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import LaserScan

from kernel_constrained.nodes.qos import RESULTS, SENSOR_DATA
from kernel_constrained.nodes.running import make_executor


class BareNode(Node):
    """Subscribes to ``scan``; where parameter ``answer`` is true it publishes ``estimate``."""

    def __init__(self):
        super().__init__('bare_node')
        self.kind = self.declare_parameter('executor', 'single').value
        if self.declare_parameter('answer', False).value:
            self.estimates = self.create_publisher(PoseWithCovarianceStamped, 'estimate', RESULTS)
            self.create_subscription(LaserScan, 'scan', self.answer, SENSOR_DATA)
        else:
            self.create_subscription(LaserScan, 'scan', lambda _: None, SENSOR_DATA)

    def answer(self, scan):
        self.estimates.publish(PoseWithCovarianceStamped(header=scan.header))


def main():
    rclpy.init()
    node = BareNode()
    executor = make_executor(node.kind)
    executor.add_node(node)
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        while rclpy.ok():
            executor.spin_once(timeout_sec=0.1)


if __name__ == '__main__':
    main()
