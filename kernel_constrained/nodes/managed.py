# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the lifecycle nodes have in common: states, parameters, counting, surviving, ending."""

import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_msgs.msg import Header

from kernel_constrained.configuration import flatten, from_flat
from kernel_constrained.nodes.diagnostics import Diagnostics, Level
from kernel_constrained.nodes.parameters import change_at_runtime, declare
from kernel_constrained.nodes.qos import ANSWERS
from kernel_constrained.perception.unusable import Unusable


class ManagedNode(LifecycleNode):
    """A lifecycle node that configures itself from a configuration class and outlives its inputs.

    A node of this package says what it is made of by six methods: :meth:`build`,
    :meth:`connect`, :meth:`reconfigure`, :meth:`level`, :meth:`figures` and :meth:`release`.

    Parameters
    ----------
    name
        Default name of the node.
    config_class
        Its configuration; must have ``autostart`` and ``executor``.
    """

    def __init__(self, name: str, config_class: type, **arguments: Any) -> None:
        super().__init__(name, **arguments)
        self.config: Any = declare(self, config_class)
        self.executor_kind: str = self.config.executor
        self.received: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.last_input = self.last_drop = -1e9
        self._entities: list[Any] = []
        self._diagnostics: Diagnostics | None = None
        self._processed: Any = None
        change_at_runtime(self, config_class, self._change)
        if self.config.autostart:
            started = self.trigger_configure() == TransitionCallbackReturn.SUCCESS
            if started:
                self.trigger_activate()

    # -- what a node is made of -------------------------------------------------------------

    def build(self) -> None:
        """Make and compile what the callbacks use; raise OSError or ValueError to refuse."""

    def connect(self) -> list[Any]:
        """Create publishers and services, subscriptions last; return all of them."""
        raise NotImplementedError

    def reconfigure(self, config: Any) -> None:
        """Take a configuration whose run-time parameters have changed."""

    def level(self) -> Level:
        """Say how the node is doing; called with every message."""
        raise NotImplementedError

    def figures(self) -> dict[str, Any]:
        """Return what diagnostics show beside the level and the counts."""
        raise NotImplementedError

    def release(self) -> None:
        """Save and forget what :meth:`build` made."""

    # -- inputs -----------------------------------------------------------------------------

    def take(self, kind: str, message: Any, use: Callable[[Any], None]) -> None:
        """Use a message; whatever comes of it is counted, and nothing leaves the callback.

        Afterwards ``~/processed`` names the message by its stamp and input: what a replay in
        lockstep waits for.
        """
        self.received[kind] += 1
        self.last_input = time.monotonic()
        try:
            use(message)
        except Unusable as error:
            self._drop(f'{kind}: {error.reason}')
        except Exception as error:
            self._drop(f'{kind}: internal error {type(error).__name__}')
            self.get_logger().error(
                f'a message on {kind} was skipped:\n{traceback.format_exc()}',
                throttle_duration_sec=10.0,
            )
        if self._processed is not None:
            self._processed.publish(Header(stamp=message.header.stamp, frame_id=kind))
        if self._diagnostics is not None:
            self._diagnostics.update()

    def _diagnostic_values(self) -> dict[str, Any]:
        return {
            **self.figures(),
            **{f'received: {kind}': count for kind, count in sorted(self.received.items())},
            **{f'dropped: {reason}': count for reason, count in sorted(self.dropped.items())},
        }

    def _drop(self, reason: str) -> None:
        self.dropped[reason] += 1
        self.last_drop = time.monotonic()

    # -- lifecycle --------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether the node is subscribed."""
        return bool(self._entities)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Build what the callbacks use, so that the first message does not wait for it."""
        try:
            self.build()
        except (OSError, ValueError) as error:
            self.get_logger().error(f'cannot configure: {error}')
            return TransitionCallbackReturn.FAILURE
        settings = ', '.join(f'{name}: {value}' for name, value in flatten(self.config).items())
        self.get_logger().info(f'configuration: {settings}')
        self._diagnostics = Diagnostics(self, self.level, self._diagnostic_values)
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Publish, serve and subscribe; ``~/processed`` is last: with it the node is ready."""
        self.last_input = time.monotonic()
        self._entities = self.connect()
        self._processed = self.create_publisher(Header, '~/processed', ANSWERS)
        self._entities.append(self._processed)
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop listening and publishing; what was learned stays."""
        self._disconnect()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release everything."""
        self.close()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release everything."""
        self.close()
        return super().on_shutdown(state)

    def close(self) -> None:
        """Disconnect and release, once; what goes wrong is logged."""
        self._disconnect()
        if self._diagnostics is None:
            return
        self._diagnostics.destroy()
        self._diagnostics = None
        try:
            self.release()
        except (OSError, ValueError) as error:
            self.get_logger().error(f'at the end: {error}')

    def _disconnect(self) -> None:
        for entity in self._entities:
            for destroy in (
                self.destroy_subscription, self.destroy_publisher, self.destroy_service,
            ):  # fmt: skip
                if destroy(entity):
                    break
        self._entities = []
        self._processed = None

    # -- parameters -------------------------------------------------------------------------

    def _change(self, values: dict[str, Any]) -> None:
        """Apply validated run-time parameters between two messages."""
        config = from_flat(type(self.config), {**flatten(self.config), **values})
        self.reconfigure(config)
        self.config = config
