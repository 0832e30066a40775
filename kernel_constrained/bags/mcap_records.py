# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The records of the mcap format, from bytes that may be damaged.

The layout is that of https://mcap.dev/spec. A parser here raises ``ValueError`` or
``struct.error`` where the bytes are no such record, and never allocates more than it is given.
"""

from collections import Counter
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

import numpy as np

__all__ = [
    'Channel',
    'CHUNK_HEAD',
    'Channels',
    'Chunk',
    'Opcode',
    'MESSAGE',
    'MESSAGE_SIZE',
    'PREFIX',
    'Statistics',
    'is_cut',
    'parse_chunk',
    'parse_chunk_index',
    'parse_message_index',
    'parse_statistics',
    'split_messages',
]

PREFIX = Struct('<BQ')
MESSAGE = Struct('<HIQ')
MESSAGE_SIZE = 22  # of its fields: channel, sequence, log time, publish time
CHUNK = Struct('<QQQI')
CHUNK_HEAD = 64  # more than precedes the content of a chunk
CHUNK_INDEX = Struct('<QQQQ')
STATISTICS = Struct('<QHIIIIQQ')


class Opcode:
    """What a record is, by its first byte."""

    FOOTER = 0x02
    SCHEMA = 0x03
    CHANNEL = 0x04
    MESSAGE = 0x05
    CHUNK = 0x06
    MESSAGE_INDEX = 0x07
    CHUNK_INDEX = 0x08
    STATISTICS = 0x0B
    DATA_END = 0x0F
    PRIVATE = 0x80  # from here on, records are anyone's own


class Channel(NamedTuple):
    """A channel: what is published, and by whom."""

    topic: str
    type: str
    encoding: str
    definition: str
    qos: str


class Statistics(NamedTuple):
    """What the writer counted: all messages, their first and last stamp, and by channel."""

    total: int
    start: int
    end: int
    counts: dict[int, int]


@dataclass
class Chunk:
    """Where messages lie in the file: a chunk record, or a run of messages outside of chunks.

    Attributes
    ----------
    offset, length
        Its bytes in the file, ``length`` as the record says.
    start, end
        Stamps of its first and last message.
    counts
        Messages by channel; none where no index tells.
    compression, compressed_size, size
        Of a chunk's content. A run has the compression None.
    """

    offset: int
    length: int
    start: int
    end: int
    counts: Counter[int]
    compression: str | None = None
    compressed_size: int = 0
    size: int = 0

    @property
    def is_run(self) -> bool:
        """Whether these are messages outside of chunks."""
        return self.compression is None

    @property
    def end_offset(self) -> int:
        """Offset of what follows it in the file."""
        return self.offset + self.length

    @property
    def content(self) -> int:
        """Offset of the compressed content in the file."""
        return self.offset + self.length - self.compressed_size

    @property
    def checksum(self) -> int:
        """Offset of the checksum of the content in the file."""
        return self.offset + PREFIX.size + 24


class _Fields:
    """Reads the fields of a record one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.position = 0

    def take(self, count: int) -> bytes:
        taken = self._content[self.position : self.position + count]
        if len(taken) != count:
            raise ValueError(f'{count} bytes expected, {len(taken)} there')
        self.position += count
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), 'little')

    def sized(self) -> bytes:
        return self.take(self.number(4))

    def text(self) -> str:
        return self.sized().decode()


class Channels(dict[int, Channel]):
    """Channels by number, gathered from schema and channel records."""

    def __init__(self) -> None:
        super().__init__()
        self._schemas: dict[int, tuple[str, str]] = {}
        self.conflicts: set[int] = set()

    def add(self, opcode: int, content: bytes) -> None:
        """Add a schema or channel record; what came first is kept, what differs is noted."""
        fields = _Fields(content)
        number = fields.number(2)
        if opcode == Opcode.SCHEMA:
            name, _, definition = fields.text(), fields.text(), fields.text()
            self._schemas.setdefault(number, (name, definition))
            return
        kind, definition = self._schemas.get(fields.number(2), ('', ''))
        topic, encoding = fields.text(), fields.text()
        qos = _mapping(fields.sized()).get('offered_qos_profiles', '')
        self.include(number, Channel(topic, kind, encoding, definition, qos))

    def include(self, number: int, channel: Channel) -> None:
        """Add a channel, unless there is one of that number."""
        if self.setdefault(number, channel)[:3] != channel[:3]:
            self.conflicts.add(number)


def _mapping(content: bytes) -> dict[str, str]:
    fields = _Fields(content)
    found = {}
    while fields.position < len(content):
        key = fields.text()
        found[key] = fields.text()
    return found


def parse_statistics(content: bytes) -> Statistics:
    """Read a statistics record."""
    total, _, _, _, _, _, start, end = STATISTICS.unpack_from(content)
    fields = _Fields(content)
    fields.take(STATISTICS.size)
    return Statistics(total, start, end, _pairs(fields.sized()))


def _pairs(content: bytes) -> dict[int, int]:
    """Read a map from channels to numbers."""
    items = np.frombuffer(content, dtype=[('key', '<u2'), ('value', '<u8')])
    return dict(zip(items['key'].tolist(), items['value'].tolist()))


def parse_chunk_index(content: bytes) -> Chunk:
    """Read where a chunk is, when, and how many messages of each channel it holds."""
    start, end, offset, length = CHUNK_INDEX.unpack_from(content)
    fields = _Fields(content)
    fields.take(CHUNK_INDEX.size)
    offsets = sorted((place, channel) for channel, place in _pairs(fields.sized()).items())
    index_end = offset + length + fields.number(8)
    compression = fields.text()
    compressed_size, size = fields.number(8), fields.number(8)
    counts = Counter(
        {
            # a message index: its prefix, the channel, the length of the list, 16 bytes a message
            channel: (after - place - PREFIX.size - 6) // 16
            for (place, channel), after in zip(
                offsets, [*(place for place, _ in offsets[1:]), index_end]
            )
        }
    )
    return Chunk(offset, length, start, end, counts, compression, compressed_size, size)


def parse_chunk(content: bytes, offset: int, length: int) -> Chunk:
    """Read the head of a chunk record of which ``content`` is the beginning.

    Parameters
    ----------
    content
        At least what precedes the compressed content.
    offset, length
        Of the record in the file, its prefix included.

    Raises
    ------
    ValueError
        The lengths in it contradict each other.
    """
    start, end, size, _ = CHUNK.unpack_from(content)
    fields = _Fields(content)
    fields.take(CHUNK.size)
    compression, compressed_size = fields.text(), fields.number(8)
    if PREFIX.size + fields.position + compressed_size != length:
        raise ValueError('the lengths of the chunk contradict each other')
    return Chunk(offset, length, start, end, Counter(), compression, compressed_size, size)


def parse_message_index(content: bytes) -> tuple[int, int, int, int]:
    """Return channel, number of messages, and first and last stamp of a message index."""
    fields = _Fields(content)
    channel, entries = fields.number(2), fields.sized()
    stamps = np.frombuffer(entries, dtype=[('stamp', '<u8'), ('offset', '<u8')])['stamp']
    if not stamps.size:
        return channel, 0, 0, 0
    return channel, stamps.size, int(stamps.min()), int(stamps.max())


def is_cut(opcode: int, length: int) -> bool:
    """Return whether what looks like a record that is cut off may be one, rather than damage."""
    return 0 < opcode <= Opcode.DATA_END and length < 2**40


def split_messages(
    content: bytes,
) -> tuple[list[tuple[int, int, int, int]], list[tuple[int, bytes]], bool]:
    """Split the content of a chunk up to its end or the first error in its structure.

    Returns
    -------
    messages : list of (stamp, begin, channel, end)
        With the bounds of the payload.
    others : list of (opcode, content)
        Schemas and channels.
    whole : bool
        Whether the content ends where its last record does.
    """
    messages: list[tuple[int, int, int, int]] = []
    others: list[tuple[int, bytes]] = []
    prefix, head = PREFIX.unpack_from, MESSAGE.unpack_from
    position, size = 0, len(content)
    opcode = length = 0
    while position + PREFIX.size <= size:
        opcode, length = prefix(content, position)
        begin = position + PREFIX.size
        end = begin + length
        if end > size:
            break
        if opcode == Opcode.MESSAGE and length >= MESSAGE_SIZE:
            channel, _, stamp = head(content, begin)
            messages.append((stamp, begin + MESSAGE_SIZE, channel, end))
        elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
            others.append((opcode, content[begin:end]))
        else:
            break
        position = end
    whole = position == size
    if not whole and position + PREFIX.size <= size and not is_cut(opcode, length) and messages:
        messages.pop()  # its length may be what is wrong
    return messages, others, whole
