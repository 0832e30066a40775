# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The record node: topics to a rosbag2, where there is no ``ros2 bag record``."""

import time
from contextlib import ExitStack
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointInfo
from std_msgs.msg import Header

from kernel_constrained.bags.record import RecordConfig
from kernel_constrained.bags.recording import Message, RecordingError
from kernel_constrained.bags.writing import BagWriter
from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.nodes.messages import message_class
from kernel_constrained.nodes.parameters import declare
from kernel_constrained.nodes.qos import ANSWERS, LATCHED, RECORDING, SENSOR_DATA, SETTLE
from kernel_constrained.nodes.running import run

PURPOSE = 'Records topics to a rosbag2 (mcap or db3).'


class RecordNode(Node):
    """Writes the messages of its topics as they come, with the time of their receipt.

    A replay in lockstep that waits for this node's ``~/processed`` never outruns the recording.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__('record_node', **arguments)
        self.config = declare(self, RecordConfig)
        self.executor_kind = self.config.executor
        if not self.config.topics:
            raise ConfigurationError('topics is empty: name the topics to record')
        try:
            self._file = ExitStack()
            self.writer = self._file.enter_context(BagWriter(self.config.destination))
        except RecordingError as error:
            raise ConfigurationError(str(error)) from error
        self._missing = {self.resolve_topic_name(name) for name in self.config.topics}
        self._inputs: list[Any] = []
        self._connected: float | None = None
        self._timer = self.create_timer(0.05, self._look_for_topics)

    def _look_for_topics(self) -> None:
        """Subscribe to topics as somebody publishes them; with all and the consumer, be ready."""
        for name in sorted(self._missing):
            publishers = self.get_publishers_info_by_topic(name)
            if publishers:
                self._subscribe(name, publishers)
        answers = self.config.answer_topic
        if self._missing or (
            answers and not self.count_publishers(self.resolve_topic_name(answers))
        ):
            return
        # Known is not connected: what a publisher sends before that is lost.
        if not all(subscription.get_publisher_count() for subscription in self._inputs):
            return
        if self._connected is None:
            self._connected = time.monotonic()
        if time.monotonic() - self._connected >= SETTLE:
            self._be_ready(answers)

    def _subscribe(self, name: str, publishers: list[TopicEndpointInfo]) -> None:
        type_name = publishers[0].topic_type
        kind = message_class(type_name)
        if kind is None:
            raise ConfigurationError(f'{name}: no {type_name} installed')
        profile = self._matching_qos(name, [p.qos_profile for p in publishers])
        record = self._recorder(name, type_name)
        self._inputs.append(self.create_subscription(kind, name, record, profile, raw=True))
        self._missing.discard(name)

    def _be_ready(self, answers: str) -> None:
        """Begin to pass answers on: a replay in lockstep that waits for them may begin."""
        self.destroy_timer(self._timer)
        if answers:
            self._processed = self.create_publisher(Header, '~/processed', ANSWERS)
            self.create_subscription(Header, answers, self._processed.publish, ANSWERS)
        self.get_logger().info(f'recording {len(self.config.topics)} topics')

    def _matching_qos(self, name: str, offered: list[QoSProfile]) -> QoSProfile:
        """Reliable, unless somebody publishes on the topic with best effort.

        What was published before is recorded too where all publishers keep it for that.
        """
        if any(profile.reliability == ReliabilityPolicy.BEST_EFFORT for profile in offered):
            return SENSOR_DATA
        durabilities = {profile.durability for profile in offered}
        if durabilities != {DurabilityPolicy.TRANSIENT_LOCAL}:
            return RECORDING
        self.writer.transient_local.add(name)
        return LATCHED

    def _recorder(self, name: str, kind: str) -> Any:
        clock = self.get_clock()

        def record(data: bytes) -> None:
            self.writer.write(Message(name, kind, clock.now().nanoseconds, bytes(data)))

        return record

    def close(self) -> None:
        """Finish the file."""
        self._file.close()
        names = sorted({self.resolve_topic_name(name) for name in self.config.topics})
        counts = ', '.join(f'{name}: {self.writer.counts[name]}' for name in names)
        self.get_logger().info(f'recorded {self.config.destination}: {counts}')


def main(args: list[str] | None = None) -> int:
    """Run the record node."""
    return run(RecordNode, 'record_node', PURPOSE, RecordConfig, args)
