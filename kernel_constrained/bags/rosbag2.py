# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Reading rosbag2: db3 and mcap, split, compressed, with or without ``metadata.yaml``."""

import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from heapq import merge
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from rosbags.interfaces import Connection, ConnectionExtRosbag2
from rosbags.rosbag2.reader import DirectoryReader
from rosbags.rosbag2.storage_mcap import McapReader
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader

from kernel_constrained.bags.recording import Message, one_line, Recording, RecordingError, Topic

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ['BAG_SUFFIXES', 'Rosbag2Recording', 'bag_files']

BAG_SUFFIXES = ('.db3', '.mcap', '.db3.zstd', '.mcap.zstd')

# A message compressed on its own begins with this; CDR begins with a zero.
ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'

Storage: TypeAlias = McapReader | Sqlite3Reader


def bag_files(folder: Path) -> list[Path]:
    """Return the bag files in a folder in the order of their numbers (``x_2`` before ``x_10``)."""
    found = (path for path in folder.iterdir() if path.name.endswith(BAG_SUFFIXES))
    return sorted(
        found, key=lambda path: [part.zfill(12) for part in re.findall(r'\d+|\D+', path.name)]
    )


class Rosbag2Recording(Recording):
    """A rosbag2: a folder, or a single ``.db3`` or ``.mcap`` file.

    The files are read one by one rather than through ``metadata.yaml``: its QoS profiles may
    differ from the files' (``rosbags`` then yields nothing) and its start time may be that of the
    last split only. It is asked for the declared counts and the compression.

    Memory holds one message, or the messages of one stamp where several share it, and per open
    file one mcap chunk. Only one iterator over :meth:`messages` may run at a time.

    Parameters
    ----------
    path
        The folder or file.

    Raises
    ------
    RecordingError
        Not a rosbag2, damaged, or in a serialization format other than ``cdr``.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path.name or str(path))
        self._resources = ExitStack()
        try:
            declared = self._open(path)
            self._describe(declared)
        except RecordingError:
            self.close()
            raise
        except Exception as error:  # a damaged file makes the parsers raise nearly anything
            self.close()
            raise RecordingError(f'{path}: not a readable rosbag2 ({one_line(error)})') from error

    def close(self) -> None:
        """Close the files."""
        self._resources.close()

    def _open(self, path: Path) -> list[Connection]:
        """Open the storage files; return what metadata.yaml declares, or nothing without one."""
        if (path / 'metadata.yaml').exists():
            folder = DirectoryReader(path)
            folder.open()
            self._resources.callback(folder.close)
            # `storages` is typed as a protocol, but holds these two only
            self._storages: list[Storage] = list(folder.storages)  # type: ignore[arg-type]
            files = bag_files(path)
            declared = folder.connections
        else:
            files = bag_files(path) if path.is_dir() else [path]
            if len({file.name.removesuffix('.zstd').rpartition('.')[2] for file in files}) > 1:
                raise RecordingError(
                    f'{path}: .db3 and .mcap files side by side and no metadata.yaml to tell '
                    'which belong together; open one of them by its own name'
                )
            self._storages = [self._open_file(file) for file in files]
            declared = []
        self._warn_of_unmerged_journals(files)
        return declared

    def _open_file(self, path: Path) -> Storage:
        if path.suffix == '.zstd':
            folder = self._resources.enter_context(TemporaryDirectory())
            unpacked = Path(folder) / path.stem
            with zstd.open(path, 'rb') as source, unpacked.open('wb') as target:
                shutil.copyfileobj(source, target)
            path = unpacked
        storage = Sqlite3Reader(path) if path.suffix == '.db3' else McapReader(path)
        storage.open()
        self._resources.callback(storage.close)
        return storage

    def _describe(self, declared: list[Connection]) -> None:
        """Fill in topics, start and end from the files, and compare with what is declared."""
        held = [link for storage in self._storages for link in storage.connections]
        for link in held:
            if (written := _serialization_format(link)) != 'cdr':
                raise RecordingError(
                    f'{self.name}: topic {link.topic} has the serialization format {written!r}; '
                    'only cdr can be read'
                )
        types = {link.topic: link.msgtype for link in [*declared, *held]}
        in_files, announced = _counts(held), _counts(declared or held)
        for topic, kind in sorted(types.items()):
            self.topics[topic] = Topic(kind, announced[topic])
            if announced[topic] != in_files[topic]:
                self.warnings.append(
                    f'{topic}: metadata.yaml declares {announced[topic]} messages, '
                    f'the files {in_files[topic]}'
                )
        filled = [store.metadata for store in self._storages if store.metadata.message_count]
        self.start = min((metadata.start_time for metadata in filled), default=0)
        self.end = max((metadata.end_time for metadata in filled), default=1) - 1

    def _warn_of_unmerged_journals(self, files: Iterable[Path]) -> None:
        for file in files:
            journal = file.with_name(file.name + '-wal')
            if journal.exists() and journal.stat().st_size:
                self.warnings.append(
                    f'{journal.name} holds {journal.stat().st_size} bytes that the recorder never '
                    f'merged and that are not read; merge a copy of the bag with '
                    f'`sqlite3 {file.name} "PRAGMA wal_checkpoint(TRUNCATE)"`'
                )

    def _read(self, topics: set[str], begin: int, finish: int | None) -> Iterator[Message]:
        storages = sorted(self._storages, key=lambda storage: storage.metadata.start_time)
        found = chain.from_iterable(
            merge(
                *(_messages(storage, topics, begin, finish) for storage in cluster),
                key=attrgetter('stamp'),
            )
            for cluster in _overlapping(storages)
        )
        try:
            for _, same_stamp in groupby(found, key=attrgetter('stamp')):
                # sorting is stable: what shares stamp and topic stays in the recorded order
                yield from sorted(same_stamp, key=itemgetter(0))
        except Exception as error:  # as in __init__
            raise RecordingError(f'{self.name}: damaged ({one_line(error)})') from error


def _messages(
    storage: Storage, topics: set[str], begin: int, finish: int | None
) -> Iterator[Message]:
    connections = [link for link in storage.connections if link.topic in topics]
    if not connections:
        return
    for link, stamp, data in storage.messages(connections, begin, finish):
        if data[:4] == ZSTD_MAGIC:
            data = zstd.decompress(data)
        yield Message(link.topic, link.msgtype, stamp, data)


def _overlapping(storages: Iterable[Storage]) -> Iterator[list[Storage]]:
    """Group files, sorted by start, that overlap in time.

    Merging starts all its sources at once; with this, a bag in a hundred splits opens one chunk
    rather than a hundred.
    """
    cluster: list[Storage] = []
    end = 0
    for storage in storages:
        if cluster and storage.metadata.start_time >= end:
            yield cluster
            cluster = []
        cluster.append(storage)
        end = max(end, storage.metadata.end_time)
    if cluster:
        yield cluster


def _counts(connections: Iterable[Connection]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for link in connections:
        counts[link.topic] += link.msgcount
    return counts


def _serialization_format(link: Connection) -> str:
    return link.ext.serialization_format if isinstance(link.ext, ConnectionExtRosbag2) else ''
