# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the files of a rosbag2 have in common, whatever their storage."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from kernel_constrained.bags.metadata import Metadata
from kernel_constrained.bags.recording import Message

__all__ = ['Link', 'Note', 'Storage', 'is_transient_local']

# Where a storage states a loss or a warning.
Note: TypeAlias = Callable[[str], None]

TRANSIENT_LOCAL = re.compile(
    r'durability["\']?\s*:\s*["\']?(?:transient_local|1)\b', re.IGNORECASE
)


@dataclass(frozen=True)
class Link:
    """What a bag file says of one topic, of which it may hold several.

    Attributes
    ----------
    topic, type
        Name and message type.
    format
        Serialization format.
    definition
        The definition of the type, empty where the file carries none.
    qos
        The offered QoS profiles as recorded: YAML, in one of several dialects.
    """

    topic: str
    type: str
    format: str
    definition: str = ''
    qos: str = ''


class Storage(ABC):
    """A bag file that is open for reading.

    Parameters
    ----------
    path
        The file.
    name
        What to call it.
    lose, warn
        Where losses and warnings are stated.

    Attributes
    ----------
    name : str
        The file's.
    links : list of Link
        What it says of its topics.
    counts : Counter
        Messages found by topic when it was opened.
    declared : Counter or None
        Messages by topic as the file itself declares them.
    metadata : Metadata or None
        The metadata of the whole bag, where the file carries a copy.
    start, end : int
        Stamps of its first and last message; start exceeds end where there is none.

    Raises
    ------
    RecordingError
        Nothing in it can be read.
    """

    links: list[Link]
    counts: Counter[str]
    declared: Counter[str] | None = None
    metadata: Metadata | None = None
    start: int
    end: int

    def __init__(self, path: Path, name: str, lose: Note, warn: Note) -> None:
        self.name = name
        self._lose = lambda loss: lose(f'{name}: {loss}')
        self._warn = lambda warning: warn(f'{name}: {warning}')
        self._resources = ExitStack()
        try:
            self._open(path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._resources.close()

    @abstractmethod
    def _open(self, path: Path) -> None:
        """Open the file and fill in the attributes."""

    @abstractmethod
    def messages(self, topics: set[str], begin: int, finish: int | None) -> Iterator[Message]:
        """Yield the messages of ``topics`` with begin <= stamp < finish by stamp, then place."""


def is_transient_local(qos: str) -> bool:
    """Return whether any of the recorded QoS profiles is transient local."""
    return TRANSIENT_LOCAL.search(qos) is not None
