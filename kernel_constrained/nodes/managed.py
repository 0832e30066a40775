# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the lifecycle nodes have in common: states, parameters, inputs, surviving, ending."""

import math
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import QoSProfile
from std_msgs.msg import Header

from kernel_constrained.configuration import flatten, from_flat
from kernel_constrained.nodes.diagnostics import Diagnostics, Level
from kernel_constrained.nodes.inputs import Input
from kernel_constrained.nodes.parameters import change_at_runtime, declare
from kernel_constrained.nodes.qos import ANSWERS, SENSOR_DATA
from kernel_constrained.perception.unusable import Unusable


class ManagedNode(LifecycleNode):
    """A lifecycle node that configures itself from a configuration class and outlives its inputs.

    A node of this package says what it is made of by eight methods: :meth:`build`,
    :meth:`serve`, :meth:`connect`, :meth:`reconfigure`, :meth:`level`, :meth:`figures`,
    :meth:`keep` and :meth:`release`.

    Parameters
    ----------
    name
        Default name of the node.
    config_class
        Its configuration; must have ``autostart`` and ``executor``.

    Attributes
    ----------
    received, used : Counter
        Messages of each input; what was not used was dropped.
    dropped : Counter
        The same by ``input: reason``.
    refusal : str
        Why the node could not be activated, if it could not.
    exit_code : int
        1 where it could not end as asked for, else 0.
    """

    def __init__(self, name: str, config_class: type, **arguments: Any) -> None:
        super().__init__(name, **arguments)
        own = arguments.get('use_global_arguments', True)
        self.config: Any = declare(self, config_class, own)
        self.executor_kind: str = self.config.executor
        self.received: Counter[str] = Counter()
        self.used: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.last_drop = -math.inf
        self.refusal = ''
        self.exit_code = 0
        self.inputs: dict[str, Input] = {}
        self._offered: list[Any] = []
        self._outputs: list[Any] = []
        self._built = False
        self._diagnostics: Diagnostics | None = None
        self._processed: Any = None
        self._answer = Header()
        change_at_runtime(self, config_class, self._change)
        if self.config.autostart:
            started = self.trigger_configure() == TransitionCallbackReturn.SUCCESS
            if started:
                self.trigger_activate()

    # -- what a node is made of -------------------------------------------------------------

    def build(self) -> None:
        """Make and compile what the callbacks use; raise OSError or ValueError to refuse."""

    def serve(self) -> list[Any]:
        """Create and return the services; they are there as soon as the node is configured."""
        return []

    def connect(self) -> list[Any]:
        """Create and return the publishers, then call :meth:`listen` for each input."""
        raise NotImplementedError

    def reconfigure(self, config: Any) -> None:
        """Take a configuration whose run-time parameters have changed."""

    def level(self) -> Level:
        """Say how the node is doing; called ten times a second at most."""
        raise NotImplementedError

    def figures(self) -> dict[str, Any]:
        """Return what diagnostics show beside the level and the counts."""
        raise NotImplementedError

    def keep(self) -> None:
        """Save what is to outlive the node; raise what prevents it."""

    def release(self) -> None:
        """Forget what :meth:`build` made."""

    # -- inputs -----------------------------------------------------------------------------

    def listen(
        self, kind: str, message_type: Any, use: Callable[[Any], None],
        profile: QoSProfile = SENSOR_DATA,
    ) -> None:  # fmt: skip
        """Subscribe to topic ``kind``; each message goes through :meth:`take` to ``use``."""
        self.inputs[kind] = Input(
            self, kind, message_type, lambda m: self.take(kind, m, use), profile,
            count_losses=self.executor_kind != 'events',
        )  # fmt: skip

    def take(self, kind: str, message: Any, use: Callable[[Any], None]) -> None:
        """Use a message; whatever comes of it is counted, and nothing leaves the callback.

        Afterwards ``~/processed`` names the message by its stamp and input: what a replay in
        lockstep waits for. One without a header cannot be named, and is not waited for.
        """
        if not self.active:
            return  # an EventsExecutor hands on what came before the subscription was closed
        self.received[kind] += 1
        if kind in self.inputs:
            self.inputs[kind].last = time.monotonic()
        try:
            clock: Any = self.get_clock()
            if clock.ros_time_is_active and clock.now().nanoseconds == 0:
                raise Unusable('before the first /clock')
            use(message)
            self.used[kind] += 1
        except Unusable as error:
            self._drop(kind, error.reason, str(error))
        except Exception as error:
            self._drop(kind, f'internal error {type(error).__name__}', traceback.format_exc())
        if self._processed is not None and hasattr(message, 'header'):
            self._answer.stamp, self._answer.frame_id = message.header.stamp, kind
            self._processed.publish(self._answer)
        if self._diagnostics is not None:
            self._diagnostics.update()

    def _drop(self, kind: str, reason: str, detail: str) -> None:
        """Count a message that was not used; of each reason the 1st, 10th, 100th ... is logged."""
        name = f'{kind}: {reason}'
        self.dropped[name] += 1
        self.last_drop = time.monotonic()
        count = self.dropped[name]
        if count == 10 ** (len(str(count)) - 1):
            self.get_logger().warning(f'dropped {kind} (number {count} for this reason): {detail}')

    def _diagnostic_values(self) -> dict[str, Any]:
        values = self.figures()
        for kind, received in sorted(self.received.items()):
            values[f'received: {kind}'] = received
            values[f'used: {kind}'] = self.used[kind]
        values.update({f'dropped: {name}': n for name, n in sorted(self.dropped.items())})
        for kind, entry in self.inputs.items():
            values.update(entry.findings(bool(self.received[kind])))
        return values

    # -- lifecycle --------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether the node is subscribed."""
        return bool(self._outputs)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Build what the callbacks use, so that the first message does not wait for it."""
        self.get_logger().info('getting ready: the first start compiles, for a minute or two')
        try:
            self.build()
            self._built = True
            self._offered = self.serve()
        except Exception as error:
            self._refuse('configure', error)
            self._unbuild()
            return TransitionCallbackReturn.FAILURE
        settings = ', '.join(f'{name}: {value}' for name, value in flatten(self.config).items())
        self.get_logger().info(f'configuration: {settings}')
        self._diagnostics = Diagnostics(self, self.level, self._diagnostic_values)
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Publish and subscribe; ``~/processed`` is last: with it the node is ready."""
        before = list(self.publishers)
        try:
            self._outputs = self.connect()
        except Exception as error:
            self._outputs = [one for one in self.publishers if one not in before]
            self.refusal = self._refuse('activate', error)
            self._disconnect()
            return TransitionCallbackReturn.FAILURE
        self._processed = self.create_publisher(Header, '~/processed', ANSWERS)
        self._outputs.append(self._processed)
        self.refusal = ''
        heard = ', '.join(f'{one.name} ({one.type_name})' for one in self.inputs.values())
        self.get_logger().info(f'ready: listens to {heard}')
        return super().on_activate(state)

    def _refuse(self, transition: str, error: Exception) -> str:
        """Log why a transition fails: in a line, or for a fault of ours by its traceback."""
        expected = isinstance(error, OSError | ValueError)
        text = str(error) if expected else traceback.format_exc()
        self.get_logger().error(f'cannot {transition}: {text}')
        return f'cannot {transition}: {error}'

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop listening and publishing; what was learned stays."""
        self._disconnect()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release everything; nothing where what is to be kept cannot be."""
        if not self._keep('clean up'):
            return TransitionCallbackReturn.FAILURE
        self._release()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release everything, and say whether what is to be kept is."""
        self.close()
        return TransitionCallbackReturn.FAILURE if self.exit_code else super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release everything: the node is unconfigured again and can be configured anew."""
        self.close()
        return super().on_error(state)

    def close(self) -> None:
        """Keep what is to be kept and release everything, once; what goes wrong is logged."""
        self._disconnect()
        if self._diagnostics is None:
            return
        if not self._keep('end as asked for'):
            self.exit_code = 1
        self._release()

    def _keep(self, transition: str) -> bool:
        """Save what is to outlive the node, and return whether that could be done."""
        try:
            self.keep()
        except Exception as error:
            self._refuse(transition, error)
            return False
        return True

    def _release(self) -> None:
        """Take back all that being configured has brought."""
        if self._diagnostics is not None:
            self._diagnostics.destroy()
            self._diagnostics = None
        try:
            self.release()
        except Exception as error:
            self._refuse('release everything', error)
            self.exit_code = 1
        self._unbuild()

    def _unbuild(self) -> None:
        """Take the services back."""
        for service in self._offered:
            self.destroy_service(service)
        self._offered, self._built = [], False

    def _disconnect(self) -> None:
        for entry in self.inputs.values():
            entry.close()
        self.inputs = {}
        for publisher in self._outputs:
            self.destroy_publisher(publisher)
        self._outputs, self._processed = [], None

    # -- parameters -------------------------------------------------------------------------

    def _change(self, values: dict[str, Any]) -> None:
        """Apply validated run-time parameters between two messages."""
        config = from_flat(type(self.config), {**flatten(self.config), **values})
        if self._built:
            self.reconfigure(config)
        self.config = config
