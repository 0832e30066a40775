# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The replay node: recorded messages out, at a rate or in lockstep with whoever consumes them."""

import math
import time
from collections import Counter
from typing import Any, NamedTuple

from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from std_msgs.msg import Header
from tqdm import tqdm

from kernel_constrained.bags.recording import Message, RecordingError
from kernel_constrained.bags.replay import Pace, ReplayConfig
from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.nodes.messages import header_stamp, message_class
from kernel_constrained.nodes.parameters import declare
from kernel_constrained.nodes.qos import ANSWERS, overridable, RECORDING, SETTLE
from kernel_constrained.nodes.running import run

# Messages per second at rate 0 without lockstep: DDS gives no back pressure through to a
# callback, and a subscriber in Python takes about twice as many before it loses some.
CEILING = 2000.0

# Messages published before other callbacks and signals have their turn.
BURST = 10

PURPOSE = 'Plays a rosbag2, a CARMEN log, a g2o file or the LIDAR table.'


class Unanswered(NamedTuple):
    """The message whose answer is waited for."""

    topic: str
    stamp: tuple[int, int]
    since: float


class ReplayNode(Node):
    """Publishes a recording's messages as they are, and ends when it has.

    Attributes
    ----------
    finished : bool
        Whether everything has been played, or playing failed.
    exit_code : int
        0 when everything that the recording declares was published.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__('replay_node', **arguments)
        self.config = declare(self, ReplayConfig)
        self.executor_kind = self.config.executor
        self.finished, self.exit_code = False, 0
        try:
            self.recording = self.config.open()
            self._messages = self.config.messages(self.recording)
        except RecordingError as error:
            raise ConfigurationError(str(error)) from error
        for warning in self.recording.warnings:
            self.get_logger().warning(warning)
        self.published: Counter[str] = Counter()
        self._make_publishers()
        self._pace = Pace(self.config.rate, math.inf if self.config.lockstep else CEILING)
        self._pending: Message | None = None
        self._unanswered: Unanswered | None = None
        self._answering: set[str] = set()
        self._consumers: tuple[Any, float] = (None, 0.0)
        self._begun = time.monotonic()
        self._progress: Any = None
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        if self.config.lockstep:
            self.create_subscription(Header, self.config.answer_topic, self._on_answer, ANSWERS)
        self._timer = self.create_timer(0.05, self._await_consumer, clock=self._steady)

    def _make_publishers(self) -> None:
        wanted = {name.lstrip('/') for name in self.config.topics}
        # `clock` does not collide with rclpy's own attributes; `_clock` would.
        self._time = self.create_publisher(ClockMessage, '/clock', RECORDING)
        self._outputs: dict[str, Any] = {}
        for name, topic in self.recording.topics.items():
            if wanted and name.lstrip('/') not in wanted:
                continue
            kind = message_class(topic.type)
            if kind is None:
                self.get_logger().warning(f'{name}: no {topic.type} installed, not played')
            else:
                self._outputs[name] = self.create_publisher(
                    kind, name, RECORDING, qos_overriding_options=overridable()
                )

    # -- waiting for a consumer -------------------------------------------------------------

    def _await_consumer(self) -> None:
        """Begin once consumers are there, and their number has settled.

        In lockstep every topic needs one: a subscription that is discovered late would miss
        messages, and the result would depend on chance.
        """
        now = time.monotonic()
        counts = [p.get_subscription_count() for p in self._outputs.values()]
        answers = self.count_publishers(self.resolve_topic_name(self.config.answer_topic))
        before, since = self._consumers
        if (counts, answers) != before:
            self._consumers = ((counts, answers), now)
        elif now - since >= SETTLE and (
            (all(counts) and answers) if self.config.lockstep else any(counts)
        ):
            self._begin()
            return
        if now - self._begun <= self.config.wait_timeout:
            return
        deaf = [name for name, count in zip(self._outputs, counts, strict=True) if not count]
        if self.config.lockstep and not (any(counts) and answers):
            self._fail(
                f'no consumer after {self.config.wait_timeout:g} s: {sum(counts)} subscriptions, '
                f'{answers or "nobody"} to answer on {self.config.answer_topic}'
            )
            return
        self.get_logger().warning(f'nobody listens to {", ".join(deaf)}: playing all the same')
        self._begin()

    def _begin(self) -> None:
        self._answering = {name for name, p in self._outputs.items() if p.get_subscription_count()}
        total = sum(self.recording.topics[name].count for name in self._outputs)
        self._progress = tqdm(
            total=total if self.config.whole else None, desc=self.recording.name, unit=' messages',
            disable=None, leave=True,
        )  # fmt: skip
        self.destroy_timer(self._timer)
        self._timer = self.create_timer(1.0, self._tick, clock=self._steady)
        if self.config.clock and self._next() and self._pending is not None:
            # A consumer on simulated time takes nothing before its first /clock.
            self._publish_time(self._pending.stamp)
            self._wake_in(SETTLE)
        else:
            self._advance()

    # -- playing ----------------------------------------------------------------------------

    def _tick(self) -> None:
        """Time has passed: a message may be due, or an answer overdue."""
        if self._unanswered is not None:
            topic = self._unanswered.topic
            if time.monotonic() - self._unanswered.since > self.config.answer_timeout:
                self._fail(
                    f'no answer on {self.config.answer_topic} within '
                    f'{self.config.answer_timeout:g} s to message {self.published[topic]} on '
                    f'{topic}; if its consumer never answers, leave it out with parameter topics'
                )
            return
        self._advance()

    def _on_answer(self, answer: Header) -> None:
        """Go on if this answers the message that was sent: answers to others may linger."""
        if self._unanswered is None:
            return
        stamp = (answer.stamp.sec, answer.stamp.nanosec)
        if stamp == self._unanswered.stamp:
            self._unanswered = None
            self._advance()

    def _advance(self) -> None:
        """Publish what is due, until something has to be waited for."""
        for _ in range(BURST):
            if self.finished or self._unanswered is not None:
                return
            if self._pending is None and not self._next():
                return
            message = self._pending
            assert message is not None
            delay = self._pace.delay(message.stamp, time.monotonic())
            if delay > 0.0:
                self._wake_in(delay)
                return
            self._pending = None
            self._publish(message)
        self._wake_in(0.0)

    def _next(self) -> bool:
        """Take the next message that has a publisher; finish where there is none."""
        try:
            for message in self._messages:
                if message.topic in self._outputs:
                    self._pending = message
                    return True
        except RecordingError as error:
            self._fail(str(error))
            return False
        self._finish()
        return False

    def _wake_in(self, delay: float) -> None:
        self._timer.timer_period_ns = max(int(delay * 1e9), 1)
        self._timer.reset()

    def _publish(self, message: Message) -> None:
        if self.config.clock:
            self._publish_time(message.stamp)
        self._outputs[message.topic].publish(message.data)
        self._pace.sent()
        self.published[message.topic] += 1
        self._progress.update()
        if self.config.lockstep and message.topic in self._answering:
            self._unanswered = Unanswered(
                message.topic, header_stamp(message.data), time.monotonic()
            )
            self._wake_in(1.0)

    def _publish_time(self, stamp: int) -> None:
        time_ = ClockMessage()
        time_.clock.sec, time_.clock.nanosec = divmod(stamp, 1_000_000_000)
        self._time.publish(time_)

    # -- ending -----------------------------------------------------------------------------

    def _finish(self) -> None:
        """Say what became of each topic, and whether it is all that was declared."""
        self.finished = True
        if not self.config.lockstep:
            for publisher in self._outputs.values():
                publisher.wait_for_all_acked(Duration(seconds=5.0))
        self._progress.close()
        for name, topic in sorted(self.recording.topics.items()):
            if self.config.topics and name not in self._outputs:
                continue
            count = self.published[name]
            text = f'{name}: {topic.count} messages declared, {count} published'
            if self.config.whole and count != topic.count:
                self.exit_code = 1
                self.get_logger().error(text)
            else:
                self.get_logger().info(text)

    def _fail(self, reason: str) -> None:
        self.finished, self.exit_code = True, 1
        self.get_logger().error(reason)

    def close(self) -> None:
        """Free the recording and the terminal."""
        if self._progress is not None:
            self._progress.close()
        self.recording.close()


def main(args: list[str] | None = None) -> int:
    """Run the replay node."""
    return run(ReplayNode, 'replay_node', PURPOSE, ReplayConfig, args)
