# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Reading mcap files, also without their index and with damage."""

import re
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeAlias
from zlib import crc32

from kernel_constrained.bags.compression import decompress
from kernel_constrained.bags.content import MCAP_MAGIC, what_is
from kernel_constrained.bags.mcap_records import (
    Channels,
    Chunk,
    CHUNK_HEAD,
    is_cut,
    MESSAGE,
    MESSAGE_SIZE,
    Opcode,
    parse_chunk,
    parse_chunk_index,
    parse_message_index,
    parse_statistics,
    PREFIX,
    split_messages,
    Statistics,
)
from kernel_constrained.bags.metadata import Metadata
from kernel_constrained.bags.recording import Message, RecordingError
from kernel_constrained.bags.storage import Link, Note

__all__ = ['McapFile']

FOOTER_SIZE = PREFIX.size + 20
# How chunks begin; their times and sizes can be anything.
CHUNK_SIGNATURE = re.compile(rb'\x06(?=.{36}(?:\0\0\0\0|\x04\0\0\0zstd|\x03\0\0\0lz4))', re.DOTALL)
SEARCH = 2**20
# Messages outside of chunks are gathered in runs of about so many bytes.
RUN = 2**18
# The first stamp that ROS cannot express.
NO_STAMP = 2**63

DAMAGE = (ValueError, struct.error)

# (stamp, offset of the chunk, begin, channel, content, end): in this order they are delivered.
# Content is None for what is read from the file when its turn comes.
Entry: TypeAlias = tuple[int, int, int, int, bytes | None, int]


class Record(NamedTuple):
    """A record in the file: what it is, and the bounds of its content."""

    opcode: int
    begin: int
    end: int


class Summary:
    """The end of an mcap file: channels, where the chunks are, and what was counted."""

    def __init__(self) -> None:
        self.channels = Channels()
        self.chunks: list[Chunk] = []
        self.statistics: Statistics | None = None
        self.verified = False

    @property
    def suffices(self) -> bool:
        """Whether every message can be found by it."""
        found = sum(chunk.counts.total() for chunk in self.chunks)
        return self.verified and self.statistics is not None and self.statistics.total == found


class McapFile:
    """An mcap file, as :class:`~kernel_constrained.bags.storage.Storage`.

    The index at the end of the file is used where its checksum proves it. Otherwise the file is
    gone through once: from record to record, over the messages in the chunks.

    A chunk whose checksum is wrong is not delivered. One that has none is, up to the first error
    in its structure; one that the file's end cuts off, as far as it can be decompressed.

    Memory holds the chunks that overlap in time.

    Parameters
    ----------
    path
        The file.
    name
        What to call it.
    lose, warn
        Where losses and warnings are stated.

    Raises
    ------
    RecordingError
        Nothing in it can be read.
    """

    def __init__(self, path: Path, name: str, lose: Note, warn: Note) -> None:
        self.name = name
        self.metadata: Metadata | None = None
        self._lose = lambda loss: lose(f'{self.name}: {loss}')
        self._warn = lambda warning: warn(f'{self.name}: {warning}')
        self._file = path.open('rb')
        self._size = path.stat().st_size
        self._channels = Channels()
        self._chunks: list[Chunk] = []
        self._unindexed: set[int] = set()  # chunks of which an index is damaged
        self._damaged = False
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    # opening

    def _open(self) -> None:
        head = self._bytes(0, 64)
        if self._size < len(MCAP_MAGIC):
            raise RecordingError(f'{self.name}: not an mcap file but {what_is(head)}')
        summary = self._read_summary()
        if summary.suffices:
            self._channels, self._chunks = summary.channels, summary.chunks
        else:
            self._rebuild(summary)
        if not head.startswith(MCAP_MAGIC):
            if not self._channels:
                raise RecordingError(f'{self.name}: not an mcap file but {what_is(head)}')
            self._warn('its first bytes are damaged')
        if self._damaged and not self._channels:
            raise RecordingError(
                f'{self.name}: an mcap file of {self._size:,} bytes, so damaged or cut off that '
                'no message can be read'
            )
        self._describe(summary.statistics)

    def _describe(self, statistics: Statistics | None) -> None:
        """Fill in what a storage says of itself."""
        self.links = [
            Link(channel.topic, channel.type, channel.encoding, channel.definition, channel.qos)
            for _, channel in sorted(self._channels.items())
        ]
        filled = [chunk for chunk in self._chunks if chunk.counts]
        counts: Counter[int] = Counter()
        for chunk in filled:
            counts.update(chunk.counts)
        self.counts = self._by_topic(counts)
        self.declared = self._by_topic(statistics.counts) if statistics else None
        self.start = min((chunk.start for chunk in filled), default=0)
        self.end = max((chunk.end for chunk in filled), default=-1)
        if statistics and statistics.total and statistics.start <= statistics.end < NO_STAMP:
            self.start, self.end = statistics.start, statistics.end

    def _by_topic(self, counts: dict[int, int]) -> Counter[str]:
        topics: Counter[str] = Counter()
        for number, count in counts.items():
            if number in self._channels:
                topics[self._channels[number].topic] += count
        return topics

    def _bytes(self, offset: int, count: int) -> bytes:
        """Read from the file; less than ``count`` where it ends or the disk fails."""
        # a count from damaged bytes must not become an allocation
        count = min(count, self._size - offset)
        if count <= 0:
            return b''
        try:
            self._file.seek(offset)
            return self._file.read(count)
        except OSError:
            return b''

    def _content_of(self, record: Record) -> bytes:
        return self._bytes(record.begin, record.end - record.begin)

    def _record_at(self, offset: int, limit: int) -> Record | None:
        """Return the record at an offset, or None where it does not end before the limit."""
        prefix = self._bytes(offset, PREFIX.size)
        if len(prefix) < PREFIX.size:
            return None
        opcode, length = PREFIX.unpack(prefix)
        begin = offset + PREFIX.size
        return Record(opcode, begin, begin + length) if begin + length <= limit else None

    def _read_summary(self) -> Summary:
        """Read the end of the file, as far as it is there and makes sense."""
        summary = Summary()
        footer_start = self._size - FOOTER_SIZE - len(MCAP_MAGIC)
        footer = self._bytes(max(footer_start, 0), FOOTER_SIZE)
        if footer_start < len(MCAP_MAGIC) or PREFIX.unpack_from(footer) != (Opcode.FOOTER, 20):
            return summary
        start, _, checksum = struct.unpack_from('<QQI', footer, PREFIX.size)
        if not len(MCAP_MAGIC) <= start <= footer_start:
            return summary
        summary.verified = checksum != 0 and self._checksum(start, self._size - 12) == checksum
        if checksum and not summary.verified:
            self._warn('its index contradicts its checksum and was rebuilt')
        try:
            self._gather(summary, start, footer_start)
        except DAMAGE:
            summary.verified = False
        if checksum and not summary.verified:
            summary.statistics = None
        return summary

    def _checksum(self, begin: int, end: int) -> int:
        checksum = 0
        for offset in range(begin, end, RUN):
            checksum = crc32(self._bytes(offset, min(RUN, end - offset)), checksum)
        return checksum

    def _gather(self, summary: Summary, offset: int, end: int) -> None:
        while offset < end:
            record = self._record_at(offset, end)
            if record is None or record.opcode in (Opcode.MESSAGE, Opcode.CHUNK):
                raise ValueError('no summary')
            if record.opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                summary.channels.add(record.opcode, self._content_of(record))
            elif record.opcode == Opcode.CHUNK_INDEX:
                summary.chunks.append(parse_chunk_index(self._content_of(record)))
            elif record.opcode == Opcode.STATISTICS:
                summary.statistics = parse_statistics(self._content_of(record))
            offset = record.end

    # opening without an index

    def _rebuild(self, summary: Summary) -> None:
        """Find the channels and the chunks by going through the file."""
        self._scan({chunk.offset: chunk for chunk in summary.chunks})
        for chunk in self._chunks:
            known = chunk.counts and chunk.counts.keys() <= self._channels.keys()
            if not known or chunk.offset in self._unindexed:
                self._inspect(chunk)
        for number, channel in summary.channels.items():
            self._channels.include(number, channel)
        for number in sorted(self._channels.conflicts):
            self._warn(f'contradicts itself on topic {self._channels[number].topic}')

    def _scan(self, hints: dict[int, Chunk]) -> None:
        """Go from record to record; where one is broken, to the next chunk.

        The hints tell of chunks whose own heads may be damaged.
        """
        offset = len(MCAP_MAGIC)
        before: Record | None = None
        while True:
            record = self._record_at(offset, self._size)
            may_be_chunk = record is None or record.opcode == Opcode.CHUNK or offset in hints
            if may_be_chunk and (chunk := self._chunk_at(offset, hints)):
                self._chunks.append(chunk)
                before, offset = None, offset + chunk.length
            elif record is not None and self._take(record):
                if record.opcode == Opcode.DATA_END:
                    return
                before, offset = record, record.end
            elif offset < self._size and self._bytes(offset, 1)[0] == Opcode.DATA_END:
                return  # cut off behind the last message
            else:
                after = self._next_chunk(offset)
                self._lose_bytes(self._distrust(before, offset), after)
                if after is None:
                    return
                before, offset = None, after

    def _take(self, record: Record) -> bool:
        """Note what a record outside of chunks tells; return whether it can be one."""
        size = record.end - record.begin
        try:
            if record.opcode == Opcode.MESSAGE:
                return size >= MESSAGE_SIZE and self._add_to_run(record)
            elif record.opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                self._channels.add(record.opcode, self._content_of(record))
            elif record.opcode == Opcode.MESSAGE_INDEX:
                self._add_message_index(record)
            elif record.opcode == Opcode.DATA_END:
                return size == 4
        except DAMAGE:
            self._lose(f'a record at byte {record.begin:,} ({size:,} bytes) makes no sense')
        unknown = Opcode.DATA_END < record.opcode < Opcode.PRIVATE
        return not unknown and record.opcode not in (0, Opcode.FOOTER, Opcode.CHUNK)

    def _add_to_run(self, record: Record) -> bool:
        channel, _, stamp = MESSAGE.unpack(self._bytes(record.begin, MESSAGE.size))
        offset = record.begin - PREFIX.size
        run = self._chunks[-1] if self._chunks else None
        if run is None or not run.is_run or run.end_offset != offset or run.length > RUN:
            run = Chunk(offset, 0, stamp, stamp, Counter())
            self._chunks.append(run)
        run.length = record.end - run.offset
        run.start, run.end = min(run.start, stamp), max(run.end, stamp)
        run.counts[channel] += 1
        return True

    def _add_message_index(self, record: Record) -> None:
        if not self._chunks or self._chunks[-1].is_run:
            raise ValueError('an index of no chunk')
        chunk = self._chunks[-1]
        try:
            channel, count, start, end = parse_message_index(self._content_of(record))
        except DAMAGE:
            self._unindexed.add(chunk.offset)
            return
        if count:
            chunk.counts[channel] += count
            # either may be damaged: what spans both is safe
            chunk.start, chunk.end = min(chunk.start, start), max(chunk.end, end)

    def _chunk_at(self, offset: int, hints: dict[int, Chunk]) -> Chunk | None:
        """Return the chunk at an offset, by itself or, where that is damaged, by the hints."""
        head = self._bytes(offset, CHUNK_HEAD)
        try:
            opcode, length = PREFIX.unpack_from(head)
            if opcode == Opcode.CHUNK:
                return parse_chunk(head[PREFIX.size :], offset, PREFIX.size + length)
        except DAMAGE:
            pass
        hint = hints.get(offset)
        return replace(hint, counts=Counter()) if hint and hint.end_offset <= self._size else None

    def _next_chunk(self, offset: int) -> int | None:
        """Search the next chunk after an offset; its lengths must agree."""
        for window in range(offset + 1, self._size, SEARCH):
            for match in CHUNK_SIGNATURE.finditer(self._bytes(window, SEARCH + CHUNK_HEAD)):
                if self._chunk_at(window + match.start(), {}):
                    return window + match.start()
        return None

    def _distrust(self, before: Record | None, offset: int) -> int:
        """Return from where on bytes are lost when the record at an offset is broken.

        Unless that looks like one that is cut off, the length of the message before it may be
        what is wrong.
        """
        prefix = self._bytes(offset, PREFIX.size)
        plausible = len(prefix) < PREFIX.size or is_cut(*PREFIX.unpack(prefix))
        if plausible or before is None or before.opcode != Opcode.MESSAGE:
            return offset
        run = self._chunks[-1]
        run.length -= offset - before.begin + PREFIX.size
        channel, _, _ = MESSAGE.unpack(self._bytes(before.begin, MESSAGE.size))
        run.counts[channel] -= 1
        return run.end_offset

    def _lose_bytes(self, offset: int, after: int | None) -> None:
        """State that the bytes from an offset on cannot be read."""
        self._damaged = True
        unreadable = self._size - offset
        if after is not None:
            self._lose(f'bytes {offset:,} to {after:,} are damaged, their messages lost')
        elif unreadable < 0:
            self._lose(
                f'cut off in the chunk at byte {self._chunks[-1].offset:,}, which is read as far '
                f'as it goes; at least {-unreadable:,} bytes are missing, and their messages'
            )
        elif unreadable:
            self._lose(
                f'cut off or damaged at byte {offset:,}: the last {unreadable:,} bytes cannot be '
                'read; what they held and what followed is lost'
            )
        else:
            self._lose(
                'the end is missing (cut off, or the recorder was killed): messages that followed '
                f'byte {offset:,} are lost'
            )

    def _inspect(self, chunk: Chunk) -> None:
        """Learn channels, counts and stamps of a chunk from its content."""
        content, wrong = self._content(chunk)
        messages, others, _ = split_messages(content)
        for opcode, record in others:
            with suppress(*DAMAGE):
                self._channels.add(opcode, record)
        if messages and not (wrong and chunk.counts):
            chunk.counts = Counter(channel for _, _, channel, _ in messages)
            chunk.start, chunk.end = min(messages)[0], max(messages)[0]

    # reading

    def messages(self, topics: set[str], begin: int, finish: int | None) -> Iterator[Message]:
        """Yield the messages of ``topics`` with begin <= stamp < finish by stamp, then place."""
        finish = NO_STAMP if finish is None else finish
        wanted = {
            number: (channel.topic, channel.type)
            for number, channel in self._channels.items()
            if channel.topic in topics
        }
        pending: list[Entry] = []
        newest = begin
        for chunk in sorted(self._chunks, key=lambda chunk: chunk.start):
            concerned = not (chunk.counts and wanted.keys().isdisjoint(chunk.counts))
            if not concerned or chunk.end < begin or chunk.start >= finish:
                continue
            due = bisect_left(pending, (chunk.start,))
            for stamp, offset, place, channel, content, end in pending[:due]:
                data = content[place:end] if content else self._bytes(offset + place, end - place)
                yield Message(*wanted[channel], stamp, data)
                newest = stamp
            found = self._entries(chunk, wanted, begin, finish)
            pending = sorted(pending[due:] + self._in_time(found, chunk, newest))
        for stamp, offset, place, channel, content, end in pending:
            data = content[place:end] if content else self._bytes(offset + place, end - place)
            yield Message(*wanted[channel], stamp, data)

    def _entries(
        self, chunk: Chunk, wanted: dict[int, tuple[str, str]], begin: int, finish: int
    ) -> list[Entry]:
        """Return what is wanted of a chunk; state what of it cannot be read."""
        content, wrong = self._content(chunk)
        messages, _, whole = split_messages(content)
        wrong = wrong or ('' if whole else 'its structure is damaged')
        if chunk.end_offset <= self._size:  # else it is stated already that it is cut off
            self._compare(chunk, len(messages), wrong)
        channels = {channel for _, _, channel, _ in messages}
        for number in channels - self._channels.keys():
            count = sum(channel == number for _, _, channel, _ in messages)
            self._lose(f'{count:,} messages of channel {number}, which is not described')
        if messages and max(messages)[0] >= NO_STAMP:
            self._lose(f'a stamp beyond the year 2262 in the chunk at byte {chunk.offset:,}')
        held = None if chunk.is_run else content
        return [
            (stamp, chunk.offset, place, channel, held, end)
            for stamp, place, channel, end in messages
            if channel in wanted and begin <= stamp < finish
        ]

    def _in_time(self, found: list[Entry], chunk: Chunk, newest: int) -> list[Entry]:
        """Return the entries that are not too late to be delivered in order."""
        late = [entry for entry in found if entry[0] < newest]
        if late:
            chunk.start = min(late)[0]  # the next iteration knows
            self._lose(
                f'{len(late):,} messages of the chunk at byte {chunk.offset:,} are older than it '
                'says and came too late for the order; read again, they are in it'
            )
        return [entry for entry in found if entry[0] >= newest]

    def _content(self, chunk: Chunk) -> tuple[bytes, str]:
        """Return what of a chunk can be trusted, and what is wrong with it or nothing."""
        if chunk.compression is None:
            content = self._bytes(chunk.offset, chunk.length)
            return content, '' if len(content) == chunk.length else 'it cannot be read'
        data = self._bytes(chunk.content, chunk.compressed_size)
        content = decompress(chunk.compression, data, chunk.size)
        if len(data) < chunk.compressed_size:
            return content, 'it is cut off'
        checksum = int.from_bytes(self._bytes(chunk.checksum, 4), 'little')
        if checksum:
            right = crc32(content) == checksum
            return (content, '') if right else (b'', 'its checksum is wrong')
        return content, '' if len(content) == chunk.size else 'it cannot be decompressed further'

    def _compare(self, chunk: Chunk, read: int, wrong: str) -> None:
        """State what a chunk lacks."""
        expected = chunk.counts.total()
        if not wrong and read >= expected:
            return
        kind = 'messages outside of chunks' if chunk.is_run else 'the chunk'
        lost = (
            f'{expected - read:,} of {expected:,}' if expected > read else 'an unknown number of'
        )
        self._lose(
            f'{kind} at byte {chunk.offset:,} ({chunk.length:,} bytes): '
            f'{wrong or "less than its index says"}; {lost} messages lost'
        )
