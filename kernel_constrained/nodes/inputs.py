# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Subscriptions that know why nothing comes."""

import math
import time
from collections.abc import Callable
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.qos import qos_policy_name_from_kind, QoSProfile

from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.nodes.qos import overridable


class Input:
    """A subscription, with a QoS that can be overridden by parameter.

    Parameters
    ----------
    node
        Whose it is.
    topic
        Relative name of the topic.
    message_type
        Class of its messages.
    callback
        Called with each message.
    profile
        Its QoS where it is not overridden.
    count_losses
        Whether to; rclpy 9.1's EventsExecutor fails on the callbacks that it takes.

    Raises
    ------
    ConfigurationError
        Where a QoS override is not allowed.

    Attributes
    ----------
    last : float
        ``time.monotonic()`` of the newest message, at first of the subscription.
    lost : int
        Messages that were sent and never read, by the sequence numbers of a single publisher.
    last_loss : float
        ``time.monotonic()`` of the newest of them.
    incompatible : str
        What is incompatible about a publisher's QoS; empty where nothing is.
    """

    def __init__(
        self, node: Node, topic: str, message_type: Any, callback: Callable[[Any], None],
        profile: QoSProfile, count_losses: bool,
    ) -> None:  # fmt: skip
        self.node, self.topic = node, topic
        self.last = time.monotonic()
        self.lost, self.last_loss = 0, -math.inf
        self._callback = callback
        self._sequence = 0
        self.incompatible = ''
        events = SubscriptionEventCallbacks(incompatible_qos=self._on_incompatible_qos)
        try:
            self._subscription = node.create_subscription(
                message_type, topic, self._receive if count_losses else callback, profile,
                qos_overriding_options=overridable(), event_callbacks=events,
            )  # fmt: skip
        except (RuntimeError, ParameterException) as error:
            raise ConfigurationError(
                f'cannot subscribe to {node.resolve_topic_name(topic)} with the '
                f'qos_overrides that were given: {error}'
            ) from error

    @property
    def name(self) -> str:
        """Topic as it is after namespace and remappings."""
        return str(self._subscription.topic_name)

    @property
    def type_name(self) -> str:
        """Type of its messages, such as ``sensor_msgs/msg/LaserScan``."""
        kind = self._subscription.msg_type
        return f'{kind.__module__.split(".")[0]}/msg/{kind.__name__}'

    @property
    def silent_for(self) -> float:
        """Seconds since the newest message."""
        return time.monotonic() - self.last

    def findings(self, heard: bool) -> dict[str, Any]:
        """Return what diagnostics say of the input: losses, and where ``not heard`` why."""
        found: dict[str, Any] = {}
        if self.lost:
            found[f'lost before they were read: {self.topic}'] = self.lost
        if not heard:
            found[f'no message on: {self.topic}'] = self.why_silent()
        return found

    def why_silent(self) -> str:
        """Say why no message comes, as far as can be seen from here."""
        name, wanted = self.name, self.type_name
        if self.incompatible:
            return self.incompatible
        publishers = self.node.get_publishers_info_by_topic(name)
        if not publishers:
            return f'nobody publishes {name} ({wanted})'
        others = sorted({p.topic_type for p in publishers} - {wanted})
        if others:
            return f'{name} is published as {", ".join(others)}, wanted {wanted}'
        return f'{name} has a publisher that has sent nothing yet'

    def close(self) -> None:
        """Unsubscribe."""
        self.node.destroy_subscription(self._subscription)

    def _on_incompatible_qos(self, event: Any) -> None:
        policy = qos_policy_name_from_kind(event.last_policy_kind)
        name = self.name
        self.incompatible = (
            f'a publisher of {name} offers an incompatible QoS ({policy}); set '
            f'qos_overrides.{name}.subscription.{policy.lower()} to what it offers'
        )
        self.node.get_logger().warning(self.incompatible)

    def _receive(self, message: Any, info: Any) -> None:
        """Look for gaps in the publisher's sequence numbers, then hand the message on.

        Which of several publishers has sent a message is not said: their numbers tell nothing.
        """
        sequence = info['publication_sequence_number'] or 0
        missing = sequence - self._sequence - 1
        if missing:
            alone = self._subscription.get_publisher_count() == 1
            if alone and self._sequence and missing > 0:
                self.lost += missing
                self.last_loss = time.monotonic()
            sequence = sequence if alone else 0
        self._sequence = sequence
        self._callback(message)
