# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What a recording is: topics, stamps and serialised messages in one defined order."""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ['Message', 'Recording', 'RecordingError', 'Topic']

# Earlier than every stamp.
EARLIEST = -(2**63)


class RecordingError(ValueError):
    """A recording that cannot be read or written; the message is one line and says why."""


class Message(NamedTuple):
    """A message as recorded.

    ``stamp`` is in nanoseconds since the epoch, ``data`` the CDR bytes as ROS 2 publishes them.
    """

    topic: str
    type: str
    stamp: int
    data: bytes


@dataclass(frozen=True)
class Topic:
    """A topic of a recording.

    Attributes
    ----------
    type
        The message type.
    count
        How many messages are declared, or were found where nothing declares them.
    transient_local
        Whether a recorded publisher offered its last messages to subscribers that come late.
    """

    type: str
    count: int
    transient_local: bool = False


class Recording(ABC):
    """A recording that is open for reading, and a context manager that closes it.

    Attributes
    ----------
    name : str
        What the recording is called, for messages to people.
    topics : dict of str to Topic
        What is declared; :meth:`messages` yields what is there.
    start, end : int
        Stamps of the first and last message in nanoseconds; both 0 when there is none.
    warnings : list of str
        What was repaired or looks odd, one line each.
    losses : list of str
        What could not be read, one line each. Some is known when the recording is opened, the
        rest when :meth:`messages` has come across it; nothing is stated twice.
    counts : Counter
        Messages read by topic in the newest iteration over :meth:`messages`.
    definitions : dict of str to str
        The definitions of message types that the recording carries.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.topics: dict[str, Topic] = {}
        self.start = 0
        self.end = 0
        self.warnings: list[str] = []
        self.losses: list[str] = []
        self.counts: Counter[str] = Counter()
        self.definitions: dict[str, str] = {}

    def messages(
        self,
        topics: Iterable[str] | None = None,
        start_offset: float = 0.0,
        duration: float = math.inf,
    ) -> Iterator[Message]:
        """Yield the messages in the order of stamp, then topic, then place in the recording.

        What is damaged is left out and stated in :attr:`losses`. At the end of an iteration over
        the whole recording, so is every topic of which more or fewer messages were read than are
        declared.

        Parameters
        ----------
        topics
            Names to keep, with or without the leading slash; all when None.
        start_offset
            Seconds after :attr:`start` from which messages are kept.
        duration
            Length of the window in seconds. The window is half-open, so that one window and the
            next share no message.

        Raises
        ------
        RecordingError
            A topic that is not in the recording, or a window that is none.
        """
        selected = self.select(topics)
        if not (0.0 <= start_offset < math.inf and duration > 0.0):
            raise RecordingError(
                f'{self.name}: start_offset must be finite and not negative, and duration '
                f'positive (got {start_offset} and {duration})'
            )
        begin = self.start + round(start_offset * 1e9)
        finish = None if duration == math.inf else begin + round(duration * 1e9)
        whole = start_offset == 0.0 and finish is None
        self.counts = Counter()
        return self._counted(
            # what a damaged index takes to be before the start belongs to the whole all the same
            self._read(selected, EARLIEST if start_offset == 0.0 else begin, finish),
            selected if whole else set(),
        )

    def lose(self, loss: str) -> None:
        """Note what cannot be read, unless it is noted already."""
        if loss not in self.losses:
            self.losses.append(loss)

    def warn(self, warning: str) -> None:
        """Note what was repaired or looks odd, unless it is noted already."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def close(self) -> None:
        """Free what the recording holds open; most hold nothing."""

    @abstractmethod
    def _read(self, topics: set[str], begin: int, finish: int | None) -> Iterator[Message]:
        """Yield the messages of ``topics`` with begin <= stamp < finish, in the defined order."""

    def _counted(self, found: Iterator[Message], complete: set[str]) -> Iterator[Message]:
        """Pass messages on, count them, and compare ``complete`` topics with what is declared."""
        counts = self.counts
        for message in found:
            counts[message.topic] += 1
            yield message
        for topic in sorted(complete):
            declared = self.topics[topic].count
            if counts[topic] != declared:
                self.lose(f'{topic}: {declared:,} messages declared, {counts[topic]:,} read')

    def select(self, names: Iterable[str] | None) -> set[str]:
        """Return the topics of these names, which need not have the leading slash; all for None.

        Raises
        ------
        RecordingError
            There is none of a name.
        """
        if names is None:
            return set(self.topics)
        # `topics='scan'` is an easy mistake for `topics=['scan']`
        names = [names] if isinstance(names, str) else list(names)
        known = {topic.lstrip('/'): topic for topic in self.topics}
        if unknown := [name for name in names if name.lstrip('/') not in known]:
            raise RecordingError(
                f'{self.name}: no topic {", ".join(unknown)}; '
                f'it holds {", ".join(sorted(self.topics)) or "none"}'
            )
        return {known[name.lstrip('/')] for name in names}

    def __enter__(self) -> 'Self':
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def one_line(error: BaseException) -> str:
    """Return the text of an error, or its class where there is none, without line breaks."""
    return ' '.join(str(error).split()) or type(error).__name__
