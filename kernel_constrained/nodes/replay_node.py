# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The replay node: recorded messages out, at a rate or in lockstep with whoever consumes them."""

import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import attrs
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from std_msgs.msg import Header
from tqdm import tqdm

from kernel_constrained.bags.playback import Playback, Refused
from kernel_constrained.bags.recording import Message, RecordingError
from kernel_constrained.bags.replay import ReplayConfig
from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.nodes.consumers import Consumers
from kernel_constrained.nodes.messages import header_stamp, message_class
from kernel_constrained.nodes.parameters import change_at_runtime, declare
from kernel_constrained.nodes.qos import ANSWERS, LATCHED, overridable, RECORDING, SETTLE
from kernel_constrained.nodes.running import run
from kernel_constrained.nodes.services import offer

# Seconds of playing before other callbacks and signals have their turn, and waits within that are
# slept through: a turn of the executor takes half a millisecond.
TURN, NAP = 1e-2, 2e-3

# Seconds after which waiting looks about itself.
PATIENCE = 1.0

PURPOSE = 'Plays a rosbag2, a CARMEN log, a g2o file or the LIDAR table.'


class Unanswered(NamedTuple):
    """The message whose answer is waited for."""

    topic: str
    stamp: tuple[int, int]
    since: float


class ReplayNode(Node):
    """Publishes a recording's messages as they are, and ends when it has.

    One timer drives it. What it does next is ``_act``: wait for consumers, start, play, or wait
    until what was sent has arrived; each sets the timer to when it wants to be called again.

    Attributes
    ----------
    finished : bool
        Whether everything has been played, or playing failed.
    exit_code : int
        0 when everything that the recording declares was read and published.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__('replay_node', **arguments)
        self.config = declare(self, ReplayConfig)
        self.executor_kind = self.config.executor
        self.finished, self.exit_code = False, 0
        self._outputs: dict[str, Any] = {}
        self._awaited: set[str] = set()
        try:
            self.recording = self.config.open()
            self._make_publishers(self.config.outputs(self.recording))
            self.playback = Playback(self.config, self.recording, self._outputs)
        except RecordingError as error:
            raise ConfigurationError(str(error)) from error
        for warning in self.recording.warnings:
            self.get_logger().warning(warning)
        self._unanswered: Unanswered | None = None
        self._refused_since = math.inf
        self._progress: Any = None
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._consumers = Consumers(self, self._outputs, self.config)
        self._make_controls()
        if self.config.lockstep:
            self.create_subscription(Header, self.config.answer_topic, self._on_answer, ANSWERS)
        self._act = self._await_consumers
        self._timer = self.create_timer(0.05, lambda: self._act(), clock=self._steady)

    def _make_publishers(self, names: Mapping[str, str]) -> None:
        # `clock` does not collide with rclpy's own attributes; `_clock` would.
        self._time = self.create_publisher(ClockMessage, '/clock', RECORDING)
        for name, topic in self.recording.topics.items():
            if name not in names:
                if self.config.clock and name.lstrip('/') == 'clock':
                    self.get_logger().info(f'{name} as recorded is not played beside our own')
                continue
            kind = message_class(topic.type)
            if kind is None:
                self.get_logger().warning(f'{name}: no {topic.type} installed, not played')
                continue
            try:
                self._outputs[name] = self.create_publisher(
                    kind, names[name], LATCHED if topic.transient_local else RECORDING,
                    qos_overriding_options=overridable(),
                )  # fmt: skip
            except InvalidTopicNameException as error:
                raise ConfigurationError(f'remap: {name} cannot be played: {error}') from error
            fields = kind.get_fields_and_field_types()
            if next(iter(fields.items()), None) == ('header', 'std_msgs/Header'):
                self._awaited.add(name)

    # -- before playing ---------------------------------------------------------------------

    def _await_consumers(self) -> None:
        if self.playback.peek() is None:
            self.get_logger().warning(f'{self.recording.name}: no message to play')
            self._end()
            return
        try:
            if self._consumers.ready():
                self._begin()
            else:
                self._wake_in(0.05)
        except TimeoutError as error:
            self._fail(str(error))

    def _begin(self) -> None:
        self._awaited &= {name for name, count in self._consumers.counts().items() if count}
        total = sum(self.recording.topics[name].count for name in self._outputs)
        self._progress = tqdm(
            total=total if self.playback.whole else None, desc=self.recording.name,
            unit=' messages', disable=None, leave=True,
        )  # fmt: skip
        self._act = self._start
        message = self.playback.peek()
        if self.config.clock and message is not None:
            # A consumer on simulated time takes nothing before its first /clock.
            self._publish_time(message.stamp)
            self._wake_in(SETTLE)
        else:
            self._wake_in(0.0)

    def _start(self) -> None:
        if self.config.clock and not self.config.lockstep:
            self.create_timer(1.0 / self.config.clock_frequency, self._tick, clock=self._steady)
        self._act = self._play
        self._play()

    # -- playing ----------------------------------------------------------------------------

    def _play(self) -> None:
        """Publish what is due, until something has to be waited for."""
        end = time.monotonic() + TURN
        while (wait := self._play_one()) < NAP and time.monotonic() < end:
            if wait > 0.0:
                time.sleep(wait)
        self._wake_in(wait)
        self._show_progress()

    def _play_one(self) -> float:
        """Publish the next message if it is due; return the seconds to wait."""
        now = time.monotonic()
        if self._unanswered is not None:
            self._check_patience(now)
            return PATIENCE
        message = self.playback.peek()
        if message is None:
            if not self.playback.pace.paused:
                self._end()
            return PATIENCE
        delay = self.playback.pace.delay(message.stamp, now)
        if delay > 0.0:
            return min(delay, PATIENCE)
        return 0.0 if self._publish(message) else 1e-3

    def _publish(self, message: Message) -> bool:
        """Publish a message; False where the middleware has no room for it, or takes it never."""
        now = time.monotonic()
        try:
            if self.config.clock:
                self._publish_time(message.stamp)
            self._outputs[message.topic].publish(message.data)
        except RuntimeError as error:  # rclpy has no public name for its RCLError
            self._refused_since = min(self._refused_since, now)
            if now - self._refused_since > self.config.answer_timeout:
                self._fail(
                    f'{message.topic}: not taken for {self.config.answer_timeout:g} s ({error}); '
                    'does a subscriber hang?'
                )
            return False
        self._refused_since = math.inf
        self.playback.sent(now)
        if self.config.lockstep and message.topic in self._awaited:
            self._unanswered = Unanswered(message.topic, header_stamp(message.data), now)
        return True

    def _publish_time(self, stamp: int) -> None:
        time_ = ClockMessage()
        time_.clock.sec, time_.clock.nanosec = divmod(stamp, 1_000_000_000)
        self._time.publish(time_)

    def _tick(self) -> None:
        """Between messages /clock goes on where time does so by itself."""
        if self.config.rate > 0.0 and self._playing:
            self._publish_time(self.playback.pace.position(time.monotonic()))

    def _on_answer(self, answer: Header) -> None:
        """Go on if this answers the message that was sent: answers to others may linger."""
        if self._unanswered is None:
            return
        stamp = (answer.stamp.sec, answer.stamp.nanosec)
        if stamp == self._unanswered.stamp:
            self._unanswered = None
            if self._playing:
                self._play()

    def _check_patience(self, now: float) -> None:
        if self._unanswered is None or now - self._unanswered.since <= self.config.answer_timeout:
            return
        topic = self._unanswered.topic
        self._fail(
            f'no answer on {self.config.answer_topic} within {self.config.answer_timeout:g} s to '
            f'message {self.playback.published[topic]} on {topic}; if its consumer never answers, '
            'leave it out with parameter topics'
        )

    def _show_progress(self) -> None:
        if not self._progress.disable:
            seconds = self.playback.seconds(time.monotonic())
            self._progress.set_postfix_str(f'at {seconds:.1f} s', refresh=False)
            self._progress.update(self.playback.published.total() - self._progress.n)

    def _wake_in(self, delay: float) -> None:
        self._timer.timer_period_ns = max(int(delay * 1e9), 1)
        self._timer.reset()

    @property
    def _playing(self) -> bool:
        return self._act == self._play

    # -- controls ---------------------------------------------------------------------------

    def _make_controls(self) -> None:
        # named as those of rosbag2's player
        actions = {
            'pause': self._pause,
            'resume': self._resume,
            'toggle_paused': lambda: (
                self._resume() if self.playback.pace.paused else self._pause()
            ),
            'is_paused': self._say_whether_paused,
            'play_next': self._play_next,
            'seek': self._seek,
            'stop': self._stop,
        }
        offer(self, actions)
        change_at_runtime(self, ReplayConfig, self._change)

    def _describe(self) -> str:
        return self.playback.describe(time.monotonic())

    def _pause(self) -> str:
        self.playback.pace.pause(time.monotonic())
        return f'paused {self._describe()}'

    def _resume(self) -> str:
        self.playback.pace.resume(time.monotonic())
        self._go_on()
        return f'playing {self._describe()}'

    def _say_whether_paused(self) -> str:
        if not self.playback.pace.paused:
            raise Refused(f'playing {self._describe()}')
        return f'paused {self._describe()}'

    def _play_next(self) -> str:
        if not self.playback.pace.paused:
            raise Refused(f'playing {self._describe()}: call ~/pause first')
        if not self._playing:
            raise Refused('not begun: waiting for subscribers')
        if self._unanswered is not None:
            raise Refused(f'the message before, on {self._unanswered.topic}, is not answered yet')
        message = self.playback.peek()
        if message is None:
            raise Refused(f'nothing left {self._describe()}: ~/seek, or ~/resume to end')
        if not self._publish(message):
            raise Refused(f'{message.topic}: a subscriber has no room for more')
        self._go_on()
        count = self.playback.published[message.topic]
        return f'message {count} on {message.topic}, paused {self._describe()}'

    def _seek(self) -> str:
        if self._act in (self._wait_for_arrival, self._finish):
            raise Refused('the replay has ended')
        self.playback.seek(self.config.seek_to)
        self._go_on()
        return self._describe()

    def _stop(self) -> str:
        self._act = self._finish
        self._wake_in(0.1)  # the answer goes out first
        return f'stopped {self._describe()}'

    def _change(self, values: dict[str, Any]) -> None:
        self.config = attrs.evolve(self.config, **values)
        self.playback.pace.set_rate(self.config.rate, time.monotonic())
        if not self.config.lockstep:
            self.playback.pace.ceiling = self.config.ceiling
        self._go_on()

    def _go_on(self) -> None:
        """Look at once what is due now."""
        if self._playing:
            self._wake_in(0.0)

    # -- ending -----------------------------------------------------------------------------

    def _end(self) -> None:
        self._ended_at = time.monotonic()
        self._act = self._wait_for_arrival
        self._wake_in(0.0)

    def _wait_for_arrival(self) -> None:
        """Finish once subscribers have acknowledged everything."""
        instant = Duration(nanoseconds=1)
        late = [n for n, p in self._outputs.items() if not p.wait_for_all_acked(instant)]
        if not late:
            self._finish()
        elif time.monotonic() - self._ended_at < self.config.answer_timeout:
            self._wake_in(0.05)
        else:
            self._fail(
                f'{", ".join(late)}: not all has arrived within {self.config.answer_timeout:g} s; '
                'does a subscriber hang?'
            )

    def _finish(self) -> None:
        self.finished = True

    def _fail(self, reason: str) -> None:
        self.finished, self.exit_code = True, 1
        self.get_logger().error(reason)

    def _report(self) -> None:
        """Say what became of each topic, and whether it is all that was declared."""
        for well, text in self.playback.summary():
            if well:
                self.get_logger().info(text)
            else:
                self.exit_code = 1
                self.get_logger().error(text)
        for loss in self.recording.losses:
            self.exit_code = 1
            self.get_logger().error(loss)

    def close(self) -> None:
        """Free the terminal, say what was played, and free the recording."""
        if self._progress is not None:
            self._progress.close()
        self._report()
        self.recording.close()


def main(args: list[str] | None = None) -> int:
    """Run the replay node."""
    return run(ReplayNode, 'replay_node', PURPOSE, ReplayConfig, args)
