# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Writing rosbag2, mcap or db3, from the messages of any recording."""

import os
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final, Literal, TYPE_CHECKING, TypeAlias
from zlib import crc32

from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import (
    get_types_from_idl,
    get_types_from_msg,
    get_typestore,
    Stores,
    TypesysError,
)
from rosbags.typesys.store import Typestore

from kernel_constrained.bags.content import MCAP_MAGIC
from kernel_constrained.bags.mcap_records import CHUNK_HEAD, Opcode, parse_chunk, PREFIX
from kernel_constrained.bags.recording import Message, Recording, RecordingError
from kernel_constrained.bags.serialization import typestore

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ['BagWriter', 'write_bag']

Storage: TypeAlias = Literal['mcap', 'db3']

PLUGINS = {'mcap': StoragePlugin.MCAP, 'db3': StoragePlugin.SQLITE3}

UNLIMITED = QosTime(2**31 - 1, 2**32 - 1)
# What a topic offers whose last messages reach subscribers that come late.
TRANSIENT_LOCAL = Qos(
    QosHistory.KEEP_LAST,
    1,
    QosReliability.RELIABLE,
    QosDurability.TRANSIENT_LOCAL,
    UNLIMITED,
    UNLIMITED,
    QosLiveliness.AUTOMATIC,
    UNLIMITED,
    False,
)

# The newest layout; Jazzy, the oldest distribution supported here, writes the same.
METADATA_VERSION: Final = 9


class BagWriter:
    """Writes a rosbag2; a context manager.

    The bag appears under its name when the context ends without an error, and not at all
    otherwise.

    Parameters
    ----------
    destination
        A single file where it ends in ``.mcap`` or ``.db3``, else a folder with metadata.yaml.
    storage
        ``'mcap'`` or ``'db3'``; None follows the suffix, mcap without one.
    definitions
        Definitions of message types, for those that are not ROS's own or differ from them.
    transient_local
        Topics whose last messages are to reach subscribers that come late.

    Attributes
    ----------
    counts : Counter
        Messages written by topic.
    transient_local : set of str
        As given; a topic may be added before it is connected.

    Raises
    ------
    RecordingError
        The destination exists or its suffix contradicts ``storage``.
    """

    def __init__(
        self,
        destination: str | os.PathLike[str],
        storage: Storage | None = None,
        *,
        definitions: Mapping[str, str] | None = None,
        transient_local: Iterable[str] = (),
    ) -> None:
        self.destination = Path(destination)
        self.counts: Counter[str] = Counter()
        suffix = self.destination.suffix.removeprefix('.')
        self._single_file = suffix in PLUGINS
        self._storage = storage or (suffix if self._single_file else 'mcap')
        if self._storage not in PLUGINS or (self._single_file and suffix != self._storage):
            raise RecordingError(
                f'{self.destination}: storage must be mcap or db3 and agree with the suffix '
                f'(got {self._storage})'
            )
        self._refuse_existing()
        self._definitions = definitions or {}
        self.transient_local = set(transient_local)
        self._connections: dict[tuple[str, str], Connection] = {}
        self._resources = ExitStack()

    def __enter__(self) -> 'Self':
        parent = self.destination.parent
        parent.mkdir(parents=True, exist_ok=True)
        # beside the destination, so that the final rename stays within one file system
        staging = self._resources.enter_context(
            TemporaryDirectory(prefix=f'.{self.destination.name}-', dir=parent)
        )
        self._folder = Path(staging) / self.destination.name.removesuffix('.' + self._storage)
        self._writer = Writer(
            self._folder, version=METADATA_VERSION, storage_plugin=PLUGINS[self._storage]
        )
        self._writer.open()
        return self

    def write(self, message: Message) -> None:
        """Append a message.

        Raises
        ------
        RecordingError
            Its type is not one of ROS's own, and no definition was given: a bag must carry it.
            Or its stamp is one that the storage has no place for.
        """
        key = message.topic, message.type
        connection = self._connections.get(key) or self.connect(*key)
        try:
            self._writer.write(connection, message.stamp, message.data)
        except OverflowError as error:
            (other,) = PLUGINS.keys() - {self._storage}
            raise RecordingError(
                f'{message.topic}: {self._storage} cannot hold the stamp {message.stamp} ns; '
                f'write {other}, or leave the topic out'
            ) from error
        self.counts[message.topic] += 1

    def can_write(self, kind: str) -> bool:
        """Return whether the definition of a message type is known."""
        return self._types(kind) is not None

    def connect(self, topic: str, kind: str) -> Connection:
        """Make a topic part of the bag, with or without messages to come; raises like write."""
        types = self._types(kind)
        if types is None:
            raise RecordingError(
                f'{topic}: the definition of {kind} is unknown, so it cannot be written; '
                'leave the topic out'
            )
        qos = [TRANSIENT_LOCAL] if topic in self.transient_local else []
        connection = self._connections[topic, kind] = self._writer.add_connection(
            topic, kind, typestore=types, offered_qos_profiles=qos
        )
        return connection

    def _types(self, kind: str) -> Typestore | None:
        """Return a store that knows a type: from the definition given, else ROS's own."""
        if definition := self._definitions.get(kind):
            types = get_typestore(Stores.EMPTY)
            parse = get_types_from_idl if 'IDL: ' in definition[:100] else None
            try:
                types.register(
                    parse(definition) if parse else get_types_from_msg(definition, kind)
                )
                types.generate_msgdef(kind, ros_version=2)
                types.hash_rihs01(kind)
                return types
            except (TypesysError, KeyError, RecursionError):  # rosbags does not understand it
                pass
        return typestore() if kind in typestore().fielddefs else None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._resources:
            if kind is not None:
                self._writer.abort()
                return
            self._writer.close()
            self._refuse_existing()
            file = self._folder / f'{self._folder.name}.{self._storage}'
            if self._storage == 'mcap':
                add_checksums(file)
            (file if self._single_file else self._folder).rename(self.destination)

    def _refuse_existing(self) -> None:
        if os.path.lexists(self.destination):
            raise RecordingError(
                f'{self.destination}: exists already and is never overwritten; '
                'remove it or choose another name'
            )


def add_checksums(path: Path) -> None:
    """Write the checksums of chunks and index into an mcap, which rosbags leaves out.

    By them damage is noticed.
    """
    with path.open('r+b') as file:

        def read(offset: int, count: int) -> bytes:
            file.seek(offset)
            return file.read(count)

        def write(offset: int, checksum: int) -> None:
            file.seek(offset)
            file.write(checksum.to_bytes(4, 'little'))

        offset = len(MCAP_MAGIC)
        while (head := read(offset, CHUNK_HEAD))[0] != Opcode.FOOTER:
            opcode, length = PREFIX.unpack_from(head)
            if opcode == Opcode.CHUNK:
                chunk = parse_chunk(head[PREFIX.size :], offset, PREFIX.size + length)
                # of the content before compression, of which there is none here
                write(chunk.checksum, crc32(read(chunk.content, chunk.size)))
            offset += PREFIX.size + length
        (begin,) = struct.unpack_from('<Q', head, PREFIX.size)
        end = offset + PREFIX.size + 16
        write(end, crc32(read(begin, end - begin)))


def write_bag(
    recording: Recording,
    destination: str | os.PathLike[str],
    storage: Storage | None = None,
    *,
    topics: Iterable[str] | None = None,
    progress: Callable[[Iterable[Message]], Iterable[Message]] = iter,
) -> dict[str, int]:
    """Write the messages of a recording as a rosbag2.

    A topic whose type nobody defines is left out, and that is added to the recording's losses.

    Parameters
    ----------
    recording
        Where the messages come from; their bytes and stamps are kept.
    destination, storage
        As for :class:`BagWriter`.
    topics
        Names to keep; all when None.
    progress
        Passes messages on while it shows how many.

    Returns
    -------
    dict of str to int
        Messages written, for every topic that was asked for.

    Raises
    ------
    RecordingError
        The destination exists, there is no such topic, or nothing can be read where something
        should be. Nothing is left.
    """
    kept = {name: recording.topics[name] for name in sorted(recording.select(topics))}
    lasting = [name for name, topic in kept.items() if topic.transient_local]
    with BagWriter(
        destination, storage, definitions=recording.definitions, transient_local=lasting
    ) as writer:
        known = [name for name, topic in kept.items() if writer.can_write(topic.type)]
        for name in kept.keys() - known:
            recording.lose(
                f'{name}: {kept[name].count:,} messages not written, since the definition of '
                f'{kept[name].type} is unknown'
            )
        for name in known:
            writer.connect(name, kept[name].type)
        for message in progress(recording.messages(known)):
            writer.write(message)
        if recording.losses and not writer.counts:
            raise RecordingError(
                f'{recording.name}: no message can be written ({"; ".join(recording.losses)})'
            )
    return {name: writer.counts[name] for name in kept}
