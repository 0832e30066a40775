# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Diagnostics as REP-107 has them: once a second, and at once when the level changes."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from kernel_constrained.nodes.qos import RESULTS

# Seconds between two looks at the level.
LOOK_PERIOD = 0.1

OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
ERROR, STALE = DiagnosticStatus.ERROR, DiagnosticStatus.STALE


class Level(NamedTuple):
    """How a node is doing, in a byte and in words."""

    level: bytes
    message: str


class Diagnostics:
    """Publishes a node's status on ``/diagnostics``.

    Parameters
    ----------
    node
        Whose status it is.
    level
        Called by :meth:`update`, ten times a second at most.
    values
        Called for the figures and counts, when they are published.
    """

    def __init__(
        self, node: Node, level: Callable[[], Level], values: Callable[[], dict[str, Any]]
    ) -> None:
        self._node, self._read_level, self._read_values = node, level, values
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', RESULTS)
        self._level: bytes | None = None
        self._next_look = 0.0
        # Steady: a simulated clock that stands still must not silence the diagnostics.
        self._timer = node.create_timer(
            1.0, self.publish, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def update(self) -> None:
        """Publish where the level has changed; looks at it every tenth of a second at most."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_PERIOD
        level = self._read_level()
        if level.level != self._level:
            self._send(level)

    def publish(self) -> None:
        """Publish the status as it is now."""
        self._send(self._read_level())

    def _send(self, level: Level) -> None:
        self._level = level.level
        message = DiagnosticArray()
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.status = [
            DiagnosticStatus(
                level=level.level,
                name=f'{self._node.get_fully_qualified_name().lstrip("/")}: status',
                message=level.message,
                hardware_id=self._node.get_name(),
                values=[KeyValue(key=k, value=_text(v)) for k, v in self._read_values().items()],
            )
        ]
        self._publisher.publish(message)

    def destroy(self) -> None:
        """Stop publishing."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_publisher(self._publisher)


def _text(value: Any) -> str:
    return f'{value:.6g}' if isinstance(value, float) else str(value)
