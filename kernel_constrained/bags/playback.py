# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Playing a recording: which message is next, when it is due, and what became of all.

Times ``now`` are seconds of any clock that the caller reads; stamps are those of the recording,
in nanoseconds.
"""

import math
from collections import Counter
from collections.abc import Collection, Generator, Iterator

from kernel_constrained.bags.recording import Message, Recording, RecordingError
from kernel_constrained.bags.replay import ReplayConfig

# Seconds by which the caller may be late without being slower than the ceiling: messages that are
# made up for come at once, and a queue of ROS's usual depth holds ten.
LATENESS = 2e-3


class Refused(ValueError):
    """What was asked for cannot be done now; the message says why."""


class Pace:
    """When each message is due, and where in recorded time we are.

    Recorded time begins with the first message that is asked for, and anew after a jump and with
    each message that is older than the one before (a loop).

    Parameters
    ----------
    rate
        Recorded seconds per second; 0 for as fast as ``ceiling`` allows.
    ceiling
        Messages per second, at any rate.
    paused
        Whether it begins in pause.
    """

    def __init__(self, rate: float, ceiling: float = math.inf, paused: bool = False) -> None:
        self.rate = rate
        self.ceiling = ceiling
        self.paused = paused
        # When recorded time was last set, and to what.
        self._anchor = (0.0, 0)
        self._begun = False
        self._newest = 0
        self._next = 0
        self._room = -math.inf

    def delay(self, stamp: int, now: float) -> float:
        """Seconds until the next message is due, at most 0 for now, infinite in pause."""
        if not self._begun or stamp < self._next:
            self.jump(stamp)
            self._anchor, self._begun = (now, stamp), True
        self._next = stamp
        if self.paused:
            return math.inf
        due = now
        if self.rate > 0.0:
            set_at, first = self._anchor
            due = set_at + (stamp - first) * 1e-9 / self.rate
        return max(due, self._room) - now

    def sent(self, stamp: int, now: float) -> None:
        """Take note of a message that was published."""
        self._newest = stamp
        self._room = max(self._room, now - LATENESS) + 1.0 / self.ceiling

    def position(self, now: float) -> int:
        """Return recorded time: never past a message that is still to come, at rest in pause."""
        set_at, reached = self._anchor
        if not self.paused:
            reached += int((now - set_at) * self.rate * 1e9)
        return max(self._newest, min(reached, self._next))

    def jump(self, stamp: int) -> None:
        """Go to another recorded time, and on when the next message is asked for."""
        self._begun = False
        self._newest = self._next = stamp

    def pause(self, now: float) -> None:
        """Let recorded time rest."""
        self._anchor = now, self.position(now)
        self.paused = True

    def resume(self, now: float) -> None:
        """Let recorded time go on where it rests."""
        self._anchor = now, self.position(now)
        self.paused = False

    def set_rate(self, rate: float, now: float) -> None:
        """Go on at another rate from where we are."""
        self._anchor = now, self.position(now)
        self.rate = rate


class Playback:
    """The messages of a recording one by one, in the window and as often as was chosen.

    Parameters
    ----------
    config
        What was chosen.
    recording
        What is played; only this object may read it meanwhile.
    topics
        Which of its topics.

    Attributes
    ----------
    pace : Pace
        When messages are due.
    read, published : Counter
        Messages by topic: taken from the recording, and said to be published.
    whole : bool
        Whether all of the recording is played, from its start to its end, once.
    ended : bool
        Whether nothing is left.

    Raises
    ------
    RecordingError
        Where the window begins beyond the end of the recording.
    """

    def __init__(
        self, config: ReplayConfig, recording: Recording, topics: Collection[str]
    ) -> None:
        self.config = config
        self.recording = recording
        self.topics = topics
        self.pace = Pace(
            config.rate, math.inf if config.lockstep else config.ceiling, config.start_paused
        )
        self.read: Counter[str] = Counter()
        self.published: Counter[str] = Counter()
        self.whole = config.whole
        self.ended = False
        self._pending: Message | None = None
        if config.start_offset > self.length > 0.0:
            raise RecordingError(
                f'{recording.name}: start_offset {config.start_offset:g} s lies beyond its end '
                f'at {self.length:g} s'
            )
        self._messages = self._passes(config.start_offset)

    @property
    def length(self) -> float:
        """Seconds from the first to the last message of the recording."""
        return (self.recording.end - self.recording.start) * 1e-9

    def peek(self) -> Message | None:
        """Return the next message, which stays the next until :meth:`sent`; None at the end."""
        if self._pending is None and not self.ended:
            self._pending = next(self._messages, None)
            if self._pending is None:
                self.ended = True
            else:
                self.read[self._pending.topic] += 1
        return self._pending

    def sent(self, now: float) -> None:
        """Take note that the next message was published."""
        assert self._pending is not None
        self.pace.sent(self._pending.stamp, now)
        self.published[self._pending.topic] += 1
        self._pending = None

    def seek(self, seconds: float) -> None:
        """Go to the first message at or after a time from the start of the recording.

        A time before the window is taken as its start.

        Raises
        ------
        Refused
            Where the time lies beyond the end of the window or of the recording.
        """
        finish = self.config.start_offset + self.config.duration
        if seconds > self.length or seconds >= finish:
            what = 'the recording' if self.length < finish else 'what is played'
            raise Refused(
                f'{seconds:g} s lies beyond the end of {what} at {min(self.length, finish):g} s: '
                'set seek_to to less'
            )
        self._messages.close()
        self._messages = self._passes(max(seconds, self.config.start_offset))
        self._pending, self.ended = None, False
        self.whole = self.config.whole and seconds == 0.0 and not self.published
        message = self.peek()
        self.pace.jump(self.recording.end if message is None else message.stamp)

    def seconds(self, now: float) -> float:
        """Where we are, from the start of the recording."""
        return max(0.0, (self.pace.position(now) - self.recording.start) * 1e-9)

    def describe(self, now: float) -> str:
        """Say where we are and what comes next."""
        message = self.peek()
        next_ = 'the end' if message is None else message.topic
        return f'at {self.seconds(now):.3f} s of {self.length:.3f} s, next is {next_}'

    def summary(self) -> Iterator[tuple[bool, str]]:
        """Yield for each topic that was chosen whether all is well, and its counts in words."""
        checked = self.whole and self.ended
        for name in sorted(self.config.outputs(self.recording)):
            declared = self.recording.topics[name].count
            read, published = self.read[name], self.published[name]
            text = f'{name}: {declared} messages declared, {read} read, {published} published'
            yield not checked or declared == published, text

    def _passes(self, offset: float) -> Generator[Message, None, None]:
        """Yield the messages from an offset on, with ``loop`` those of the window again and again.

        Ends after a window without any message: it would be searched for ever.
        """
        window = self.config.start_offset, self.config.duration
        begun = offset, sum(window) - offset
        while True:
            before = self.read.total()
            yield from self.recording.messages(self.topics, *begun)
            if not self.config.loop or (begun == window and self.read.total() == before):
                return
            begun = window
