# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Reading db3 files (SQLite), also with damage."""

import re
import shutil
import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.bags.content import what_is
from kernel_constrained.bags.metadata import Metadata, parse_metadata
from kernel_constrained.bags.recording import EARLIEST, Message, one_line, RecordingError
from kernel_constrained.bags.sqlite_pages import Cell, FIRST_TEXT, INTEGERS, LEAF_OF_TABLE, Pages
from kernel_constrained.bags.storage import Link, Storage

__all__ = ['Db3File']

# What tells of two lists of messages that they are the same, short of a conspiracy.
SUMS = (
    'count(*), coalesce(sum(timestamp & 0xffffffff), 0), coalesce(sum(timestamp >> 32), 0), '
    'coalesce(sum(rowid), 0)'
)
LATEST = 2**63 - 1
# How many columns a table has at least.
COLUMNS = {'topics': 4, 'message_definitions': 4, 'metadata': 3}
INTEGER_KINDS = {*INTEGERS, 8, 9}
TYPE_NAME = re.compile(r'\w+(/\w+){1,2}')
# What a damaged file makes sqlite3 raise; UnicodeError for the names of columns, MemoryError for
# the lengths of rows.
DAMAGE = (sqlite3.Error, OverflowError, UnicodeError, MemoryError)
# An interrupted write leaves no larger hole in the numbers of the messages.
HOLE = 1000


class _Found(NamedTuple):
    """What going through the pages found.

    Attributes
    ----------
    rows : array of shape (n, 5)
        Stamp, number, topic, page and place in the page of each message, in order.
    topics, definitions : list of list
        The rows of these tables, their numbers first.
    metadata : list of str
        What the file says of its bag.
    lost : int
        Messages that an index or a hole in the numbers tells of; at least.
    """

    rows: npt.NDArray[np.int64]
    topics: list[list[Any]]
    definitions: list[list[Any]]
    metadata: list[str]
    lost: int


class Db3File(Storage):
    """A db3 file.

    At opening, the messages are compared with the index of their stamps. Where they agree, SQLite
    reads them. Where they do not, where SQLite finds the file damaged, or where there is no index,
    the pages are gone through one by one, and an index is held in memory: 40 bytes a message.

    SQLite has no checksums: a wrong byte within the content of a message goes unnoticed.
    """

    _salvage: _Found | None = None

    # opening

    def _open(self, path: Path) -> None:
        self._path = path = self._merge_journal(path)
        self._pages = Pages(path)
        self._resources.callback(self._pages.close)
        self._database = sqlite3.connect(
            f'{path.absolute().as_uri()}?mode=ro&immutable=1', uri=True, check_same_thread=False
        )
        self._resources.callback(self._database.close)
        self._database.text_factory = lambda text: text.decode('utf-8', 'replace')
        try:
            self._describe(*self._survey())
        except DAMAGE as error:
            self._describe(*self._survey_pages(one_line(error)))

    def _merge_journal(self, path: Path) -> Path:
        """Return a copy with what the recorder left in a journal, or the path where that is none.

        Merging happens in the copy: nothing is ever written beside a bag.
        """
        journal = path.with_name(path.name + '-wal')
        if not journal.exists() or not journal.stat().st_size:
            return path
        folder = self._resources.enter_context(TemporaryDirectory())
        copy = Path(folder) / path.name
        shutil.copyfile(path, copy)
        shutil.copyfile(journal, Path(folder) / journal.name)
        size = journal.stat().st_size
        try:
            with closing(sqlite3.connect(copy)) as database:
                pages = database.execute('PRAGMA wal_checkpoint(FULL)').fetchone()[1]
        except DAMAGE:
            pages = 0
        if pages <= 0:
            self._warn(f'{journal.name} beside it holds {size:,} bytes but nothing to merge')
            return path
        self._warn(
            f'{journal.name} beside it holds {size:,} bytes that the recorder never merged; '
            'they were merged in a copy'
        )
        return copy

    def _survey(self) -> tuple[list[list[Any]], list[list[Any]], list[str], dict[int, int]]:
        """Ask SQLite for topics, definitions, metadata and messages by topic.

        Raises
        ------
        sqlite3.Error
            The file is damaged.
        """
        if self._pages.size < self._pages.declared * self._pages.page_size:
            raise sqlite3.DatabaseError('cut off')
        topics = self._rows('topics')
        by_topic = self._query(
            'SELECT topic_id, min(timestamp), max(timestamp), ' + SUMS +
            ' FROM messages NOT INDEXED GROUP BY topic_id'
        )  # fmt: skip
        (indexed,) = self._query(f'SELECT {SUMS} FROM messages INDEXED BY timestamp_idx')
        sums = [sum(row[column] for row in by_topic) for column in range(3, 7)]
        if sums != list(indexed):
            raise sqlite3.DatabaseError('messages and the index of their stamps differ')
        self.start = min((row[1] for row in by_topic), default=0)
        self.end = max((row[2] for row in by_topic), default=-1)
        metadata = [row[2] for row in self._rows('metadata')]
        counts = {row[0]: row[3] for row in by_topic}
        return topics, self._rows('message_definitions'), metadata, counts

    def _query(self, statement: str, *values: Any) -> list[Any]:
        return self._database.execute(statement, values).fetchall()

    def _rows(self, table: str) -> list[list[Any]]:
        """Return the rows of a table; none where a bag of an older version has no such table."""
        exists = self._query('SELECT 1 FROM sqlite_master WHERE name = ?', table)
        if not exists and table == 'topics':
            raise sqlite3.DatabaseError('no table topics')
        rows = self._query(f'SELECT * FROM {table} ORDER BY rowid') if exists else []
        if any(len(row) < COLUMNS[table] for row in rows):
            raise sqlite3.DatabaseError(f'columns of the table {table} are missing')
        return [list(row) for row in rows]

    def _describe(
        self,
        topics: list[list[Any]],
        definitions: list[list[Any]],
        metadata: list[str],
        counts: dict[int, int],
    ) -> None:
        """Fill in what a storage says of itself."""
        texts = {row[1]: str(row[3]) for row in definitions}
        self._links: dict[int, Link] = {}
        for number, name, kind, encoding, *rest in topics:
            qos = str(rest[0]) if rest else ''
            self._links[number] = Link(
                str(name), str(kind), str(encoding), texts.get(kind, ''), qos
            )
        self.links = list(self._links.values())
        self.counts = Counter()
        for number, count in counts.items():
            if number in self._links:
                self.counts[self._links[number].topic] += count
            else:
                self._lose(f'{count:,} messages of topic number {number}, which is not described')
        self.metadata = self._parse_metadata(metadata)

    def _parse_metadata(self, texts: list[str]) -> Metadata | None:
        if not texts:
            return None
        try:
            return parse_metadata(texts[-1])
        except ValueError as error:
            self._warn(f'its own metadata is damaged ({error})')
            return None

    # opening without SQLite

    def _survey_pages(
        self, reason: str
    ) -> tuple[list[list[Any]], list[list[Any]], list[str], dict[int, int]]:
        """Like :meth:`_survey`, from the pages."""
        found = self._salvaged(reason)
        if not found.topics and not found.rows.size:
            with self._path.open('rb') as content:
                what = what_is(content.read(64))
            raise RecordingError(f'{self.name}: {what} without a rosbag2 in it ({reason})')
        numbers, counts = np.unique(found.rows[:, 2], return_counts=True)
        self.start = int(found.rows[0, 0]) if found.rows.size else 0
        self.end = int(found.rows[-1, 0]) if found.rows.size else -1
        by_topic = dict(zip(numbers.tolist(), counts.tolist()))
        return found.topics, found.definitions, found.metadata, by_topic

    def _salvaged(self, reason: str) -> _Found:
        """Go through the pages once, and state what is lost."""
        if self._salvage is None:
            self._salvage = _go_through(self._pages)
            self._state(reason, self._salvage.lost)
        return self._salvage

    def _state(self, reason: str, lost: int) -> None:
        missing = self._pages.declared * self._pages.page_size - self._pages.size
        if missing > 0:
            total = self._pages.declared * self._pages.page_size
            count = f'at least {lost:,}' if lost else 'an unknown number of'
            self._lose(
                f'the last {missing:,} of {total:,} bytes are cut off; {count} messages lost'
            )
        elif lost:
            self._lose(f'damaged ({reason}); at least {lost:,} messages lost')
        elif self._pages.broken:
            self._lose(f'damaged ({reason}); {self._pages.broken:,} rows make no sense')
        else:
            self._warn(f'read page by page ({reason})')

    # reading

    def messages(self, topics: set[str], begin: int, finish: int | None) -> Iterator[Message]:
        """Yield the messages of ``topics`` with begin <= stamp < finish by stamp, then place."""
        wanted = {number: link for number, link in self._links.items() if link.topic in topics}
        begin = min(begin, LATEST)
        last = LATEST if finish is None else min(finish - 1, LATEST)
        if self._salvage is not None:
            yield from self._from_pages(wanted, (begin, EARLIEST), last)
            return
        newest = begin, EARLIEST
        try:
            for number, stamp, rowid, data in self._database.execute(
                'SELECT topic_id, timestamp, rowid, CAST(data AS BLOB) FROM messages '
                'INDEXED BY timestamp_idx WHERE timestamp BETWEEN ? AND ? AND topic_id IN '
                f'({",".join(map(str, wanted))}) ORDER BY timestamp, rowid',
                (begin, last),
            ):
                if data is None or stamp < newest[0]:
                    raise sqlite3.DatabaseError('messages and the index of their stamps differ')
                newest = stamp, rowid + 1
                link = wanted[number]
                yield Message(link.topic, link.type, stamp, data)
        except DAMAGE as error:
            self._salvaged(one_line(error))
            yield from self._from_pages(wanted, newest, last)

    def _from_pages(
        self, wanted: dict[int, Link], begin: tuple[int, int], last: int
    ) -> Iterator[Message]:
        """Yield messages from (stamp, number) ``begin`` on, by the index in memory."""
        unreadable: Counter[str] = Counter()
        rows = self._salvaged('').rows
        first = np.searchsorted(rows[:, 0], begin[0], side='left')
        stop = np.searchsorted(rows[:, 0], last, side='right')
        for stamp, rowid, number, page, place in map(np.ndarray.tolist, rows[first:stop]):
            if number not in wanted or (stamp, rowid) < begin:
                continue
            link = wanted[number]
            try:
                data = self._pages.values(self._pages.cell(page, place))[3]
            except (ValueError, OSError):
                unreadable[link.topic] += 1
                continue
            yield Message(link.topic, link.type, stamp, data)  # type: ignore[arg-type]
        for topic, count in sorted(unreadable.items()):
            self._lose(f'{count:,} messages on {topic} end in bytes that are not there')


def _go_through(pages: Pages) -> _Found:
    """Collect from all pages what belongs to a bag; rows are told apart by their columns."""
    messages, indexed = array('q'), array('q')
    topics: list[list[Any]] = []
    definitions: list[list[Any]] = []
    metadata: list[list[Any]] = []
    for kind, cell in pages.cells():
        if kind != LEAF_OF_TABLE:
            if _shape(cell) == 'ii':
                indexed.extend(pages.values(cell))  # type: ignore[arg-type]
        elif _shape(cell) == 'nib':
            _collect(pages, cell, metadata)
        elif _shape(cell) == 'niib':
            _, topic, stamp = pages.values(cell, 3)
            messages.extend((stamp, cell.rowid, topic, cell.page, cell.offset))  # type: ignore
        elif _shape(cell) in ('nbbb', 'nbbbb', 'nbbbbb'):
            _collect(pages, cell, topics)
            if not (topics and TYPE_NAME.fullmatch(topics[-1][2])):
                definitions.extend(topics[-1:])
                topics.pop()
    rows = np.array(messages, dtype=np.int64).reshape(-1, 5)
    # sorted by stamp, then number; a page that was being copied is there twice
    _, first = np.unique(rows[:, :3], axis=0, return_index=True)
    lost = _count_lost(rows[:, 1], np.array(indexed, dtype=np.int64).reshape(-1, 2)[:, 1])
    texts = [text for *_, text in sorted(metadata)]
    return _Found(rows[first], sorted(topics), sorted(definitions), texts, lost)


def _shape(cell: Cell) -> str:
    """Return the columns of a row as letters: null, integer, bytes (or text), other."""
    return ''.join(
        'n' if not kind
        else 'i' if kind in INTEGER_KINDS
        else 'b' if kind >= FIRST_TEXT
        else 'o'
        for kind in cell.kinds
    )  # fmt: skip


def _collect(pages: Pages, cell: Cell, rows: list[list[Any]]) -> None:
    """Add a row, its number first and its texts decoded, if all of it is there."""
    try:
        values = pages.values(cell)[1:]
    except ValueError:
        return
    rows.append(
        [
            cell.rowid,
            *(v.decode('utf-8', 'replace') if isinstance(v, bytes) else v for v in values),
        ]
    )


def _count_lost(found: npt.NDArray[np.int64], indexed: npt.NDArray[np.int64]) -> int:
    """Count the messages that are in the index but not found, or else holes in the numbers."""
    found = np.unique(found)
    steps = np.diff(found, prepend=0) - 1
    # a damaged number makes a hole that is none
    holes = steps[(steps > 0) & (steps < HOLE + 10 * found.size)].sum()
    return max(int(holes), np.setdiff1d(indexed, found).size)
