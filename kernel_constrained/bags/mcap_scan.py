# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Going through an mcap file from record to record, where its index is missing or wrong."""

import re
import struct
from collections import Counter
from dataclasses import replace

from kernel_constrained.bags.content import MCAP_MAGIC
from kernel_constrained.bags.mcap_file import Record, RecordFile
from kernel_constrained.bags.mcap_records import (
    Channels,
    Chunk,
    CHUNK_HEAD,
    is_cut,
    MESSAGE,
    MESSAGE_SIZE,
    Opcode,
    parse_chunk,
    parse_message_index,
    PREFIX,
)
from kernel_constrained.bags.storage import Note

__all__ = ['DAMAGE', 'Scan']

# How chunks begin; their times and sizes can be anything.
CHUNK_SIGNATURE = re.compile(rb'\x06(?=.{36}(?:\0\0\0\0|\x04\0\0\0zstd|\x03\0\0\0lz4))', re.DOTALL)
SEARCH = 2**20
# Messages outside of chunks are gathered in runs of about so many bytes.
RUN = 2**18

# What damaged bytes make a parser raise.
DAMAGE = (ValueError, struct.error)


class Scan:
    """What going through an mcap file found.

    Parameters
    ----------
    file
        The file.
    hints
        Chunks that its index tells of, by their offsets: their own heads may be damaged.
    lose
        Where losses are stated.

    Attributes
    ----------
    channels
        Those described outside of chunks.
    chunks
        Chunks, and runs of messages outside of them, in order.
    unindexed
        Offsets of chunks of which an index is damaged.
    damaged
        Whether bytes were lost.
    """

    def __init__(self, file: RecordFile, hints: dict[int, Chunk], lose: Note) -> None:
        self._file = file
        self._lose = lose
        self.channels = Channels()
        self.chunks: list[Chunk] = []
        self.unindexed: set[int] = set()
        self.damaged = False
        self._go_through(hints)

    def _go_through(self, hints: dict[int, Chunk]) -> None:
        """Go from record to record; where one is broken, to the next chunk."""
        offset = len(MCAP_MAGIC)
        before: Record | None = None
        while True:
            record = self._file.record_at(offset, self._file.size)
            may_be_chunk = record is None or record.opcode == Opcode.CHUNK or offset in hints
            if may_be_chunk and (chunk := self._chunk_at(offset, hints)):
                self.chunks.append(chunk)
                before, offset = None, offset + chunk.length
            elif record is not None and self._take(record):
                if record.opcode == Opcode.DATA_END:
                    return
                before, offset = record, record.end
            elif offset < self._file.size and self._file.read(offset, 1)[0] == Opcode.DATA_END:
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
                self.channels.add(record.opcode, self._file.content_of(record))
            elif record.opcode == Opcode.MESSAGE_INDEX:
                self._add_message_index(record)
            elif record.opcode == Opcode.DATA_END:
                return size == 4
        except DAMAGE:
            self._lose(f'a record at byte {record.begin:,} ({size:,} bytes) makes no sense')
        unknown = Opcode.DATA_END < record.opcode < Opcode.PRIVATE
        return not unknown and record.opcode not in (0, Opcode.FOOTER, Opcode.CHUNK)

    def _add_to_run(self, record: Record) -> bool:
        channel, _, stamp = MESSAGE.unpack(self._file.read(record.begin, MESSAGE.size))
        offset = record.begin - PREFIX.size
        run = self.chunks[-1] if self.chunks else None
        if run is None or not run.is_run or run.end_offset != offset or run.length > RUN:
            run = Chunk(offset, 0, stamp, stamp, Counter())
            self.chunks.append(run)
        run.length = record.end - run.offset
        run.start, run.end = min(run.start, stamp), max(run.end, stamp)
        run.counts[channel] += 1
        return True

    def _add_message_index(self, record: Record) -> None:
        if not self.chunks or self.chunks[-1].is_run:
            raise ValueError('an index of no chunk')
        chunk = self.chunks[-1]
        try:
            channel, count, start, end = parse_message_index(self._file.content_of(record))
        except DAMAGE:
            self.unindexed.add(chunk.offset)
            return
        if count:
            chunk.counts[channel] += count
            # either may be damaged: what spans both is safe
            chunk.start, chunk.end = min(chunk.start, start), max(chunk.end, end)

    def _chunk_at(self, offset: int, hints: dict[int, Chunk]) -> Chunk | None:
        """Return the chunk at an offset, by itself or, where that is damaged, by the hints."""
        head = self._file.read(offset, CHUNK_HEAD)
        try:
            opcode, length = PREFIX.unpack_from(head)
            if opcode == Opcode.CHUNK:
                return parse_chunk(head[PREFIX.size :], offset, PREFIX.size + length)
        except DAMAGE:
            pass
        hint = hints.get(offset)
        return (
            replace(hint, counts=Counter())
            if hint and hint.end_offset <= self._file.size
            else None
        )

    def _next_chunk(self, offset: int) -> int | None:
        """Search the next chunk after an offset; its lengths must agree."""
        for window in range(offset + 1, self._file.size, SEARCH):
            for match in CHUNK_SIGNATURE.finditer(self._file.read(window, SEARCH + CHUNK_HEAD)):
                if self._chunk_at(window + match.start(), {}):
                    return window + match.start()
        return None

    def _distrust(self, before: Record | None, offset: int) -> int:
        """Return from where on bytes are lost when the record at an offset is broken.

        Unless that looks like one that is cut off, the length of the message before it may be
        what is wrong.
        """
        prefix = self._file.read(offset, PREFIX.size)
        plausible = len(prefix) < PREFIX.size or is_cut(*PREFIX.unpack(prefix))
        if plausible or before is None or before.opcode != Opcode.MESSAGE:
            return offset
        run = self.chunks[-1]
        run.length -= offset - before.begin + PREFIX.size
        channel, _, _ = MESSAGE.unpack(self._file.read(before.begin, MESSAGE.size))
        run.counts[channel] -= 1
        return run.end_offset

    def _lose_bytes(self, offset: int, after: int | None) -> None:
        """State that the bytes from an offset on cannot be read."""
        self.damaged = True
        unreadable = self._file.size - offset
        if after is not None:
            self._lose(f'bytes {offset:,} to {after:,} are damaged, their messages lost')
        elif unreadable < 0:
            self._lose(
                f'cut off in the chunk at byte {self.chunks[-1].offset:,}, which is read as far '
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
