# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""An mcap file as bytes and records, any of which may be damaged."""

from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from kernel_constrained.bags.mcap_records import PREFIX

__all__ = ['Record', 'RecordFile']

# A checksum is taken over runs of so many bytes.
RUN = 2**18


class Record(NamedTuple):
    """A record in the file: what it is, and the bounds of its content."""

    opcode: int
    begin: int
    end: int


class RecordFile:
    """An mcap file that is read by offsets.

    Attributes
    ----------
    size
        Of the file, bytes.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open('rb')
        self.size = path.stat().st_size

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, offset: int, count: int) -> bytes:
        """Read from the file; less than ``count`` where it ends or the disk fails."""
        # a count from damaged bytes must not become an allocation
        count = min(count, self.size - offset)
        if count <= 0:
            return b''
        try:
            self._file.seek(offset)
            return self._file.read(count)
        except OSError:
            return b''

    def content_of(self, record: Record) -> bytes:
        """Return what is in a record."""
        return self.read(record.begin, record.end - record.begin)

    def record_at(self, offset: int, limit: int) -> Record | None:
        """Return the record at an offset, or None where it does not end before the limit."""
        prefix = self.read(offset, PREFIX.size)
        if len(prefix) < PREFIX.size:
            return None
        opcode, length = PREFIX.unpack(prefix)
        begin = offset + PREFIX.size
        return Record(opcode, begin, begin + length) if begin + length <= limit else None

    def checksum(self, begin: int, end: int) -> int:
        """Return the CRC-32 of the bytes between two offsets."""
        checksum = 0
        for offset in range(begin, end, RUN):
            checksum = crc32(self.read(offset, min(RUN, end - offset)), checksum)
        return checksum
