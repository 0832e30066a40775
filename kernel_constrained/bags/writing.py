# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Writing rosbag2, mcap or db3, from the messages of any recording."""

import os
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final, Literal, TYPE_CHECKING, TypeAlias

from rosbags.interfaces import Connection
from rosbags.rosbag2 import StoragePlugin, Writer

from kernel_constrained.bags.recording import Message, Recording, RecordingError
from kernel_constrained.bags.serialization import typestore

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ['BagWriter', 'write_bag']

Storage: TypeAlias = Literal['mcap', 'db3']

PLUGINS = {'mcap': StoragePlugin.MCAP, 'db3': StoragePlugin.SQLITE3}

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

    Attributes
    ----------
    counts : Counter
        Messages written by topic.

    Raises
    ------
    RecordingError
        The destination exists or its suffix contradicts ``storage``.
    """

    def __init__(
        self, destination: str | os.PathLike[str], storage: Storage | None = None
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
            Its type is not one of ROS's own: a bag must carry the definition, which is unknown.
        """
        key = message.topic, message.type
        connection = self._connections.get(key)
        if connection is None:
            if message.type not in typestore().fielddefs:
                raise RecordingError(
                    f'{message.topic}: the definition of {message.type} is unknown, '
                    'so it cannot be written; leave the topic out'
                )
            connection = self._writer.add_connection(*key, typestore=typestore())
            self._connections[key] = connection
        self._writer.write(connection, message.stamp, message.data)
        self.counts[message.topic] += 1

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
            written = self._folder
            if self._single_file:
                written = self._folder / f'{self._folder.name}.{self._storage}'
            written.rename(self.destination)

    def _refuse_existing(self) -> None:
        if os.path.lexists(self.destination):
            raise RecordingError(
                f'{self.destination}: exists already and is never overwritten; '
                'remove it or choose another name'
            )


def write_bag(
    recording: Recording, destination: str | os.PathLike[str], storage: Storage | None = None
) -> dict[str, int]:
    """Write all messages of a recording as a rosbag2.

    Parameters
    ----------
    recording
        Where the messages come from; their bytes and stamps are kept.
    destination, storage
        As for :class:`BagWriter`.

    Returns
    -------
    dict of str to int
        Messages written, for every topic of the recording.

    Raises
    ------
    RecordingError
        The destination exists, the recording is damaged, or a type is unknown. Nothing is left.
    """
    with BagWriter(destination, storage) as writer:
        for message in recording.messages():
            writer.write(message)
    return {topic: writer.counts[topic] for topic in recording.topics}
