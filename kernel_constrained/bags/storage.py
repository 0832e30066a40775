# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the files of a rosbag2 have in common, whatever their storage."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

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


class Storage(Protocol):
    """A bag file that is open for reading.

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
    """

    name: str
    links: list[Link]
    counts: Counter[str]
    declared: Counter[str] | None
    metadata: Metadata | None
    start: int
    end: int

    def messages(self, topics: set[str], begin: int, finish: int | None) -> Iterator[Message]:
        """Yield the messages with begin <= stamp < finish by stamp, then place in the file."""

    def close(self) -> None:
        """Close the file."""


def is_transient_local(qos: str) -> bool:
    """Return whether any of the recorded QoS profiles is transient local."""
    return TRANSIENT_LOCAL.search(qos) is not None
