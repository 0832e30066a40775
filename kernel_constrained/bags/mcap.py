# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Reading mcap files, also without their index and with damage."""

import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias
from zlib import crc32

from kernel_constrained.bags.compression import decompress
from kernel_constrained.bags.content import MCAP_MAGIC, what_is
from kernel_constrained.bags.mcap_file import RecordFile
from kernel_constrained.bags.mcap_records import (
    Channels,
    Chunk,
    Opcode,
    parse_chunk_index,
    parse_statistics,
    PREFIX,
    split_messages,
    Statistics,
)
from kernel_constrained.bags.mcap_scan import DAMAGE, Scan
from kernel_constrained.bags.recording import Message, RecordingError
from kernel_constrained.bags.storage import Link, Storage

__all__ = ['McapFile']

FOOTER_SIZE = PREFIX.size + 20
# The first stamp that ROS cannot express.
NO_STAMP = 2**63

# (stamp, offset of the chunk, begin, channel, content, end): in this order they are delivered.
# Content is None for what is read from the file when its turn comes.
Entry: TypeAlias = tuple[int, int, int, int, bytes | None, int]


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


class McapFile(Storage):
    """An mcap file.

    The index at the end of the file is used where its checksum proves it. Otherwise the file is
    gone through once: from record to record, over the messages in the chunks.

    A chunk whose checksum is wrong is not delivered. One that has none is, up to the first error
    in its structure; one that the file's end cuts off, as far as it can be decompressed.

    Memory holds the chunks that overlap in time.
    """

    # opening

    def _open(self, path: Path) -> None:
        self._file = RecordFile(path)
        self._resources.callback(self._file.close)
        damaged = False
        head = self._file.read(0, 64)
        if self._file.size < len(MCAP_MAGIC):
            raise RecordingError(f'{self.name}: not an mcap file but {what_is(head)}')
        summary = self._read_summary()
        if summary.suffices:
            self._channels, self._chunks = summary.channels, summary.chunks
        else:
            damaged = self._rebuild(summary)
        if not head.startswith(MCAP_MAGIC):
            if not self._channels:
                raise RecordingError(f'{self.name}: not an mcap file but {what_is(head)}')
            self._warn('its first bytes are damaged')
        if damaged and not self._channels:
            raise RecordingError(
                f'{self.name}: an mcap file of {self._file.size:,} bytes, so damaged or cut off '
                'that no message can be read'
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

    def _read_summary(self) -> Summary:
        """Read the end of the file, as far as it is there and makes sense."""
        summary = Summary()
        footer_start = self._file.size - FOOTER_SIZE - len(MCAP_MAGIC)
        footer = self._file.read(max(footer_start, 0), FOOTER_SIZE)
        if footer_start < len(MCAP_MAGIC) or PREFIX.unpack_from(footer) != (Opcode.FOOTER, 20):
            return summary
        start, _, checksum = struct.unpack_from('<QQI', footer, PREFIX.size)
        if not len(MCAP_MAGIC) <= start <= footer_start:
            return summary
        summary.verified = (
            checksum != 0 and self._file.checksum(start, self._file.size - 12) == checksum
        )
        if checksum and not summary.verified:
            self._warn('its index contradicts its checksum and was rebuilt')
        try:
            self._gather(summary, start, footer_start)
        except DAMAGE:
            summary.verified = False
        if checksum and not summary.verified:
            summary.statistics = None
        return summary

    def _gather(self, summary: Summary, offset: int, end: int) -> None:
        while offset < end:
            record = self._file.record_at(offset, end)
            if record is None or record.opcode in (Opcode.MESSAGE, Opcode.CHUNK):
                raise ValueError('no summary')
            if record.opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                summary.channels.add(record.opcode, self._file.content_of(record))
            elif record.opcode == Opcode.CHUNK_INDEX:
                summary.chunks.append(parse_chunk_index(self._file.content_of(record)))
            elif record.opcode == Opcode.STATISTICS:
                summary.statistics = parse_statistics(self._file.content_of(record))
            offset = record.end

    def _rebuild(self, summary: Summary) -> bool:
        """Find channels and chunks by going through the file; return whether bytes were lost."""
        scan = Scan(self._file, {chunk.offset: chunk for chunk in summary.chunks}, self._lose)
        self._channels, self._chunks = scan.channels, scan.chunks
        for chunk in self._chunks:
            known = chunk.counts and chunk.counts.keys() <= self._channels.keys()
            if not known or chunk.offset in scan.unindexed:
                self._inspect(chunk)
        for number, channel in summary.channels.items():
            self._channels.include(number, channel)
        for number in sorted(self._channels.conflicts):
            self._warn(f'contradicts itself on topic {self._channels[number].topic}')
        return scan.damaged

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
            for entry in pending[:due]:
                yield self._message(entry, wanted)
                newest = entry[0]
            found = self._entries(chunk, wanted, begin, finish)
            pending = sorted(pending[due:] + self._in_time(found, chunk, newest))
        for entry in pending:
            yield self._message(entry, wanted)

    def _message(self, entry: Entry, wanted: dict[int, tuple[str, str]]) -> Message:
        stamp, offset, place, channel, content, end = entry
        data = content[place:end] if content else self._file.read(offset + place, end - place)
        return Message(*wanted[channel], stamp, data)

    def _entries(
        self, chunk: Chunk, wanted: dict[int, tuple[str, str]], begin: int, finish: int
    ) -> list[Entry]:
        """Return what is wanted of a chunk; state what of it cannot be read."""
        content, wrong = self._content(chunk)
        messages, _, whole = split_messages(content)
        wrong = wrong or ('' if whole else 'its structure is damaged')
        if chunk.end_offset <= self._file.size:  # else it is stated already that it is cut off
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
            content = self._file.read(chunk.offset, chunk.length)
            return content, '' if len(content) == chunk.length else 'it cannot be read'
        data = self._file.read(chunk.content, chunk.compressed_size)
        content = decompress(chunk.compression, data, chunk.size)
        if len(data) < chunk.compressed_size:
            return content, 'it is cut off'
        checksum = int.from_bytes(self._file.read(chunk.checksum, 4), 'little')
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
