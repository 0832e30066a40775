# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Reading rosbag2: db3 and mcap, split, compressed, with or without ``metadata.yaml``."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from heapq import merge
from itertools import chain
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from kernel_constrained.bags.compression import LARGEST, unpack, zstd, ZSTD_MAGIC
from kernel_constrained.bags.content import DB3_MAGIC, MCAP_MAGIC, read_head
from kernel_constrained.bags.db3 import Db3File
from kernel_constrained.bags.mcap import McapFile
from kernel_constrained.bags.metadata import Metadata, parse_metadata
from kernel_constrained.bags.recording import (
    Message,
    one_line,
    Recording,
    RecordingError,
    Topic,
)
from kernel_constrained.bags.storage import is_transient_local, Storage

__all__ = ['BAG_SUFFIXES', 'Rosbag2Recording', 'are_one_bag', 'bag_files', 'some_of']

BAG_SUFFIXES = ('.db3', '.mcap', '.db3.zstd', '.mcap.zstd')

# What a split is called: the name of its bag, a number, the storage.
SPLIT = re.compile(r'(.+)_\d+(\.db3|\.mcap)(?:\.zstd)?', re.DOTALL)
# How many files or folders are named of those in a folder.
NAMED = 5


def bag_files(folder: Path) -> list[Path]:
    """Return the bag files in a folder in the order of their numbers (``x_2`` before ``x_10``)."""
    found = (path for path in folder.iterdir() if path.name.endswith(BAG_SUFFIXES))
    return sorted(
        found, key=lambda path: [part.zfill(12) for part in re.findall(r'\d+|\D+', path.name)]
    )


def are_one_bag(files: Sequence[Path]) -> bool:
    """Return whether bag files are one bag by their names: a single one, or x_0, x_1, ..."""
    splits = [SPLIT.fullmatch(file.name) for file in files]
    bags = {split.groups() if split else None for split in splits}
    return len(files) == 1 or (len(bags) == 1 and None not in bags)


def some_of(names: Iterable[str]) -> str:
    """Return the first few names in order, for messages to people."""
    names = sorted(names)
    return ', '.join(names[:NAMED]) + (', …' if len(names) > NAMED else '')


class Rosbag2Recording(Recording):
    """A rosbag2: a folder, or a single ``.db3`` or ``.mcap`` file.

    Without ``metadata.yaml`` the files of a folder are those of one bag if they are called as a
    recorder calls its splits: ``NAME_0``, ``NAME_1`` and so on.

    The files are read one by one; ``metadata.yaml`` is asked for their names, the declared counts
    and the compression only, since its QoS profiles may differ from the files' and its start time
    may be that of the last split. Where it is damaged or about other files, it is left aside.

    Memory holds one message, or the messages of one stamp where several share it, and of each
    open mcap file the chunks that overlap in time.

    Parameters
    ----------
    path
        The folder or file.

    Raises
    ------
    RecordingError
        Nothing in it can be read, or all of it is in a serialization format other than ``cdr``;
        or nothing tells that the files of the folder are one bag.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path.name or str(path))
        self._resources = ExitStack()
        self._storages: list[Storage] = []
        self._foreign: dict[str, str] = {}
        try:
            self._open(path)
        except OSError as error:
            self.close()
            raise RecordingError(f'{path}: cannot be read ({one_line(error)})') from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the files."""
        self._resources.close()

    # opening

    def _open(self, path: Path) -> None:
        self._metadata = self._read_metadata(path)
        files = self._choose_files(path) if path.is_dir() else [path]
        failures = [failure for file in files if (failure := self._open_file(file))]
        if not self._storages:
            raise failures[0]
        for failure in failures:
            self.lose(one_line(failure))
        if self._metadata is None:
            self._metadata = self._copy_of_metadata(len(files))
        self._describe()

    def _read_metadata(self, path: Path) -> Metadata | None:
        file = path / 'metadata.yaml'
        if not file.exists():
            return None
        try:
            return parse_metadata(file.read_text('utf-8', 'replace'))
        except ValueError as error:
            self.warn(f'metadata.yaml is left aside: {error}')
            return None

    def _choose_files(self, path: Path) -> list[Path]:
        """Return the bag files of a folder; state those that are missing or left out."""
        there = {file.name: file for file in bag_files(path)}
        if self._metadata and not there.keys().isdisjoint(self._metadata.files):
            for name in self._metadata.files:
                if name not in there:
                    count = self._metadata.file_counts.get(name)
                    lost = 'an unknown number of' if count is None else f'{count:,}'
                    self.lose(f'{name}: missing; {lost} messages lost')
            if unlisted := sorted(there.keys() - set(self._metadata.files)):
                self.warn(
                    f'metadata.yaml does not list {", ".join(unlisted)}: not read; '
                    'to read it, open it by its own name'
                )
            return [there[name] for name in self._metadata.files if name in there]
        if self._metadata:
            self.warn(
                f'metadata.yaml is left aside: it lists {", ".join(self._metadata.files)}, '
                f'the folder holds {", ".join(there)}'
            )
            self._metadata = None
        files = list(there.values())
        if not are_one_bag(files):
            raise RecordingError(
                f'{path}: {some_of(there)} side by side and no metadata.yaml to tell which belong '
                'together; open one of them by its own name'
            )
        return files

    def _open_file(self, path: Path) -> RecordingError | None:
        """Open a bag file by what it is; return the reason why not."""
        name = path.name
        try:
            head = read_head(path)
            if head.startswith(ZSTD_MAGIC) or path.suffix == '.zstd':
                path = self._unpack(path)
                head = read_head(path)
            is_db3 = head.startswith(DB3_MAGIC) or (
                path.suffix == '.db3' and not head.startswith(MCAP_MAGIC)
            )
            storage = (Db3File if is_db3 else McapFile)(path, name, self.lose, self.warn)
        except RecordingError as error:
            return error
        except OSError as error:
            return RecordingError(f'{name}: cannot be read ({one_line(error)})')
        self._resources.callback(storage.close)
        self._storages.append(storage)
        return None

    def _unpack(self, path: Path) -> Path:
        folder = self._resources.enter_context(TemporaryDirectory())
        unpacked = Path(folder) / path.name.removesuffix('.zstd')
        wrong = unpack(path, unpacked)
        if not unpacked.stat().st_size:
            raise RecordingError(f'{path}: not compressed by zstd, or damaged from the beginning')
        if wrong:
            self.lose(f'{path.name}: {wrong}; read as far as it can be decompressed')
        return unpacked

    def _copy_of_metadata(self, files: int) -> Metadata | None:
        """Return the metadata that the last file carries, if they are about all of the files."""
        copy = self._storages[-1].metadata
        if copy is None or len(copy.files) != files or len(self._storages) != files:
            return None
        # a recorder that was killed has written zeros at the beginning and nothing since
        found = sum(storage.counts.total() for storage in self._storages)
        return copy if copy.counts.total() >= found else None

    def _describe(self) -> None:
        """Fill in topics, start and end from the files, and compare with what is declared."""
        found: Counter[str] = Counter()
        declared: Counter[str] = Counter()
        for storage in self._storages:
            found.update(storage.counts)
            declared.update(storage.counts if storage.declared is None else storage.declared)
            self._compare_file(storage)
        links = [link for storage in self._storages for link in storage.links]
        types = dict(self._metadata.types) if self._metadata else {}
        types.update((link.topic, link.type) for link in links)
        self.definitions = {link.type: link.definition for link in links if link.definition}
        self._leave_out_foreign(found)
        lasting = {link.topic for link in links if is_transient_local(link.qos)}
        for topic, kind in sorted(types.items()):
            if topic in self._foreign:
                continue
            count = self._metadata.counts[topic] if self._metadata else declared[topic]
            self.topics[topic] = Topic(kind, count, topic in lasting)
            if self._metadata and count != found[topic]:
                self.warn(
                    f'{topic}: the metadata declare {count} messages, the files {found[topic]}'
                )
        filled = [storage for storage in self._storages if storage.start <= storage.end]
        self.start = min((storage.start for storage in filled), default=0)
        self.end = max((storage.end for storage in filled), default=0)

    def _compare_file(self, storage: Storage) -> None:
        declared = self._metadata.file_counts.get(storage.name) if self._metadata else None
        found = storage.counts.total()
        if declared is not None and found < declared:
            self.lose(
                f'{storage.name}: {declared - found:,} of {declared:,} messages lost, '
                'by the metadata'
            )

    def _leave_out_foreign(self, found: Counter[str]) -> None:
        """Leave out the topics that are not in cdr; refuse the recording where all are."""
        links = [link for storage in self._storages for link in storage.links]
        self._foreign = {link.topic: link.format for link in links if link.format != 'cdr'}
        for topic, written in sorted(self._foreign.items()):
            what = f'topic {topic} has the serialization format {written!r}'
            if len(self._foreign) == len({link.topic for link in links}):
                raise RecordingError(f'{self.name}: {what}; only cdr can be read')
            self.lose(f'{what}; only cdr can be read, {found[topic]:,} messages are left out')

    def select(self, names: Iterable[str] | None) -> set[str]:
        """Return the topics of these names; RecordingError also for one that is not in cdr."""
        if names is None:
            return super().select(None)
        names = [names] if isinstance(names, str) else list(names)
        foreign = {topic.lstrip('/'): written for topic, written in self._foreign.items()}
        for name in names:
            if written := foreign.get(name.lstrip('/')):
                raise RecordingError(
                    f'{self.name}: topic {name} has the serialization format {written!r}; '
                    'only cdr can be read'
                )
        return super().select(names)

    # reading

    def _read(self, topics: set[str], begin: int, finish: int | None) -> Iterator[Message]:
        storages = sorted(self._storages, key=attrgetter('start'))
        found = chain.from_iterable(
            _merged([storage.messages(topics, begin, finish) for storage in cluster])
            for cluster in _overlapping(storages)
        )
        return self._decompressed(_by_topic(found))

    def _decompressed(self, found: Iterator[Message]) -> Iterator[Message]:
        """Decompress the messages that are compressed on their own."""
        all_are = self._metadata is not None and self._metadata.compressed_messages
        lost: Counter[str] = Counter()
        for message in found:
            # CDR begins with a zero, what zstd has compressed with its own signature
            if message.data[:4] == ZSTD_MAGIC:
                try:
                    data = _decompress(message.data)
                except (zstd.ZstdError, EOFError, ValueError):
                    lost[message.topic] += 1
                    continue
                yield message._replace(data=data)
            elif all_are:
                lost[message.topic] += 1
            else:
                yield message
        for topic, count in sorted(lost.items()):
            self.lose(f'{topic}: {count:,} messages that do not decompress')


def _decompress(data: bytes) -> bytes:
    decompressor = zstd.ZstdDecompressor()
    content = decompressor.decompress(data, LARGEST)
    if not decompressor.eof:
        raise EOFError
    return content


def _merged(sources: list[Iterator[Message]]) -> Iterator[Message]:
    return merge(*sources, key=attrgetter('stamp')) if len(sources) > 1 else sources[0]


def _by_topic(found: Iterator[Message]) -> Iterator[Message]:
    """Sort what shares a stamp by topic; what shares that too stays in the recorded order."""
    before = next(found, None)
    if before is None:
        return
    group: list[Message] = []
    for message in found:
        if message.stamp == before.stamp:
            group.append(before)
        elif group:
            yield from sorted([*group, before], key=attrgetter('topic'))
            group = []
        else:
            yield before
        before = message
    yield from sorted([*group, before], key=attrgetter('topic'))


def _overlapping(storages: Iterable[Storage]) -> Iterator[list[Storage]]:
    """Group files, sorted by start, that overlap in time.

    Merging starts all its sources at once; with this, a bag in a hundred splits opens one chunk
    rather than a hundred.
    """
    cluster: list[Storage] = []
    end = -1
    for storage in storages:
        if cluster and storage.start > end:
            yield cluster
            cluster = []
        cluster.append(storage)
        end = max(end, storage.end)
    if cluster:
        yield cluster
