# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The rows of a damaged SQLite file, page by page and without its tree.

The layout is that of https://sqlite.org/fileformat2.html. Every page says by its first byte what
it holds, and every row how long it is, so that what is wrong in one page costs that page only.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

__all__ = ['Cell', 'Pages', 'Value']

Value: TypeAlias = int | float | bytes | None

LEAF_OF_TABLE = 0x0D
LEAF_OF_INDEX, INTERIOR_OF_INDEX = 0x0A, 0x02
KINDS_WITH_ROWS = {LEAF_OF_TABLE, LEAF_OF_INDEX, INTERIOR_OF_INDEX}
PAGE_SIZES = {2**power for power in range(9, 17)}
INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
FIXED_SIZES = {0: 0, **INTEGERS, 7: 8, 8: 0, 9: 0}
FIRST_TEXT = 12

DAMAGE = (ValueError, IndexError, struct.error)


class Cell(NamedTuple):
    """A row where it lies.

    Attributes
    ----------
    page, offset
        Its page, counted from 1, and its place in there.
    rowid
        Its number; 0 in an index.
    kinds : list of int
        SQLite's serial types of its columns.
    local
        What of its record lies in the page.
    size
        Of the record.
    overflow
        The page where the record goes on, 0 where it does not.
    """

    page: int
    offset: int
    rowid: int
    kinds: list[int]
    local: bytes
    size: int
    overflow: int


class Pages:
    """The pages of a SQLite file.

    Parameters
    ----------
    path
        The file.

    Attributes
    ----------
    page_size : int
        Bytes of a page.
    declared : int
        How many pages the file should have.
    size : int
        Bytes of the file.
    broken : int
        Rows that made no sense when :meth:`cells` went through.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open('rb')
        self.size = path.stat().st_size
        header = self._file.read(100).ljust(100, b'\0')
        stated, reserved, changed, declared, valid = struct.unpack_from('>16xH2xB3xII60xI', header)
        # the number of pages counts if it was written with the newest change
        self.declared = declared if changed == valid else 0
        self._reserved = reserved
        self.broken = 0
        self.page_size = self._find_page_size(65536 if stated == 1 else stated)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def whole(self) -> int:
        """How many pages the file has in full."""
        return self.size // self.page_size

    @property
    def _usable(self) -> int:
        return self.page_size - self._reserved

    def _find_page_size(self, stated: int) -> int:
        """Return the stated page size, or one that gives the size of the file and more rows."""
        candidates = {size for size in PAGE_SIZES if size * self.declared == self.size}
        candidates.add(stated if stated in PAGE_SIZES else 4096)
        return candidates.pop() if len(candidates) == 1 else max(candidates, key=self._rows_with)

    def _rows_with(self, page_size: int) -> int:
        self.page_size = page_size
        return sum(kind == LEAF_OF_TABLE for kind, _ in self.cells())

    def page(self, number: int) -> bytes:
        """Return a page; ValueError where the file does not hold all of it."""
        self._file.seek(max(number - 1, 0) * self.page_size)
        page = self._file.read(self.page_size)
        if number < 1 or len(page) < self.page_size:
            raise ValueError(f'no page {number}')
        return page

    def _page_or_zeros(self, number: int) -> bytes:
        try:
            return self.page(number)
        except (OSError, ValueError):  # the disk fails
            self.broken += 1
            return bytes(self.page_size)

    def cells(self) -> Iterator[tuple[int, Cell]]:
        """Yield (kind of page, row) for all rows of tables and entries of indexes."""
        self.broken = 0
        free = self._free()
        for number in range(1, self.whole + 1):
            page = self._page_or_zeros(number)
            start = 100 if number == 1 else 0
            kind = page[start]
            if kind not in KINDS_WITH_ROWS or number in free:
                continue
            for offset in self._pointers(page, start):
                try:
                    yield kind, self._parse(page, number, offset, kind)
                except DAMAGE:
                    self.broken += 1

    def cell(self, number: int, offset: int) -> Cell:
        """Return a row of a table again."""
        return self._parse(self.page(number), number, offset, LEAF_OF_TABLE)

    def values(self, cell: Cell, columns: int | None = None) -> list[Value]:
        """Return the columns of a row, texts as bytes.

        Parameters
        ----------
        cell
            The row.
        columns
            How many of the first columns are wanted, which must be short; None for all.

        Raises
        ------
        ValueError
            It goes on in pages that are not there.
        """
        record = cell.local if columns else self._record(cell)
        position, _ = _varint(record, 0)
        found: list[Value] = []
        for kind in cell.kinds[:columns]:
            size = _size(kind)
            found.append(_value(kind, record[position : position + size]))
            position += size
        return found

    def _free(self) -> set[int]:
        """Pages that are out of use and may hold rows that were deleted."""
        free: set[int] = set()
        try:
            (trunk,) = struct.unpack_from('>I', self.page(1), 32)
            while trunk and trunk not in free:
                free.add(trunk)
                page = self.page(trunk)
                following, count = struct.unpack_from('>II', page)
                free.update(
                    struct.unpack_from(f'>{min(count, self.page_size // 4 - 2)}I', page, 8)
                )
                trunk = following
        except DAMAGE:
            return set()
        return free

    def _pointers(self, page: bytes, start: int) -> list[int]:
        """Return where in a page its cells are."""
        (count,) = struct.unpack_from('>H', page, start + 3)
        first = start + (12 if page[start] == INTERIOR_OF_INDEX else 8)
        count = min(count, (self.page_size - first) // 2)
        return list(struct.unpack_from(f'>{count}H', page, first))

    def _parse(self, page: bytes, number: int, offset: int, kind: int) -> Cell:
        position = offset + (4 if kind == INTERIOR_OF_INDEX else 0)
        size, position = _varint(page, position)
        rowid = 0
        if kind == LEAF_OF_TABLE:
            rowid, position = _varint(page, position)
        local_size = self._local_size(size, kind)
        local = page[position : position + local_size]
        overflow = 0
        if local_size < size:
            (overflow,) = struct.unpack_from('>I', page, position + local_size)
        kinds = _kinds(local)
        header, _ = _varint(local, 0)
        if len(local) != local_size or header + sum(map(_size, kinds)) != size:
            raise ValueError('the lengths of the row contradict each other')
        return Cell(number, offset, rowid, kinds, local, size, overflow)

    def _local_size(self, size: int, kind: int) -> int:
        """Return how much of a record of ``size`` bytes lies in the page of its row."""
        usable = self._usable
        if size > self.size:
            raise ValueError('no row is larger than the file')
        largest = usable - 35 if kind == LEAF_OF_TABLE else (usable - 12) * 64 // 255 - 23
        if size <= largest:
            return size
        least = (usable - 12) * 32 // 255 - 23
        local = least + (size - least) % (usable - 4)
        return local if local <= largest else least

    def _record(self, cell: Cell) -> bytes:
        parts = [cell.local]
        missing, number = cell.size - len(cell.local), cell.overflow
        while missing > 0:
            page = self.page(number)
            part = page[4 : min(self._usable, 4 + missing)]
            (number,) = struct.unpack_from('>I', page)
            parts.append(part)
            missing -= len(part)
        return b''.join(parts)


def _varint(content: bytes, position: int) -> tuple[int, int]:
    """Return a number of one to nine bytes and where it ends."""
    value = 0
    for count in range(8):
        byte = content[position + count]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, position + count + 1
    value = value << 8 | content[position + 8]
    return value - 2**64 if value >= 2**63 else value, position + 9


def _kinds(record: bytes) -> list[int]:
    end, position = _varint(record, 0)
    if end > len(record):
        raise ValueError('the header of the row is too long')
    kinds = []
    while position < end:
        kind, position = _varint(record, position)
        kinds.append(kind)
    if position != end:
        raise ValueError('the header of the row contradicts itself')
    return kinds


def _size(kind: int) -> int:
    if kind >= FIRST_TEXT:
        return (kind - FIRST_TEXT) // 2
    if kind not in FIXED_SIZES:
        raise ValueError(f'no value is of kind {kind}')
    return FIXED_SIZES[kind]


def _value(kind: int, content: bytes) -> Value:
    if kind in INTEGERS:
        return int.from_bytes(content, 'big', signed=True)
    if kind in (8, 9):
        return kind - 8
    if kind == 7:
        return float(struct.unpack('>d', content)[0])
    if kind >= FIRST_TEXT:
        return content
    return None
