# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Recognise what a person names as a source, and open it."""

import inspect
import os
import zlib
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from kernel_constrained.bags.carmen import open_carmen
from kernel_constrained.bags.compression import gzip_lines
from kernel_constrained.bags.content import DB3_MAGIC, MCAP_MAGIC, read_head, what_is
from kernel_constrained.bags.g2o import killian_path, open_g2o
from kernel_constrained.bags.lidar_table import LidarRecording
from kernel_constrained.bags.recording import one_line, Recording, RecordingError
from kernel_constrained.bags.rosbag2 import bag_files, BAG_SUFFIXES, Rosbag2Recording, some_of

__all__ = ['open_recording']

LOG_SUFFIXES = ('.log', '.clf', '.log.gz', '.clf.gz')
GRAPH_SUFFIXES = ('.g2o', '.g2o.gz', '.zip')

# Lines by which a pose graph is told from a log.
LOOKED_AT = 50

EXPECTED = (
    'expected a rosbag2 folder, a .db3 or .mcap file, a CARMEN log (.log, .clf), '
    "a pose graph (.g2o), 'lidar' or 'killian'"
)


def open_recording(source: str | os.PathLike[str], **options: Any) -> Recording:
    """Open anything that can be replayed.

    Parameters
    ----------
    source
        * a rosbag2: a folder, or a single ``.db3`` or ``.mcap`` file, also compressed;
        * a CARMEN log: ``.log``, ``.clf``, either with ``.gz``;
        * a g2o pose graph with scans: ``.g2o``, with ``.gz``, or in a ``.zip``;
        * ``'lidar'``: the LIDAR table that comes with the package;
        * ``'killian'``: MIT Killian Court, from the PyPI package rtb-data.
    **options
        For logs and graphs ``range_max`` (:func:`open_carmen`); for the LIDAR table ``seed``,
        ``epochs`` and ``evaluate_epochs`` (:class:`LidarRecording`).

    Raises
    ------
    RecordingError
        The source cannot be opened, or an option does not apply to it. One line.
    """
    if source == 'lidar':
        return _open('the LIDAR table', LidarRecording, (), options)
    path = killian_path() if source == 'killian' else Path(source)
    try:
        kind, reader = _recognise(path)
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read ({one_line(error)})') from error
    return _open(kind, reader, (path,), options)


def _open(
    kind: str, reader: Callable[..., Recording], path: tuple[Path, ...], options: dict[str, Any]
) -> Recording:
    parameters = inspect.signature(reader).parameters.values()
    allowed = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    if unknown := sorted(set(options) - set(allowed)):
        raise RecordingError(
            f'{kind} takes {", ".join(allowed) or "no options"} (got {", ".join(unknown)})'
        )
    return reader(*path, **options)


def _recognise(path: Path) -> tuple[str, Callable[..., Recording]]:
    if not path.exists():
        raise RecordingError(f'{path}: no such file or folder; {EXPECTED}')
    if path.is_dir():
        _refuse_folder_without_bag(path)
        return 'a rosbag2', Rosbag2Recording
    head = read_head(path)
    name = path.name.lower()
    if name.endswith(BAG_SUFFIXES) or head.startswith((MCAP_MAGIC, DB3_MAGIC)):
        return 'a rosbag2', Rosbag2Recording
    if name.endswith(GRAPH_SUFFIXES):
        return 'a pose graph', open_g2o
    if name.endswith(LOG_SUFFIXES):
        return 'a CARMEN log', open_carmen
    if name.endswith('.gz'):
        is_graph = b'VERTEX_SE2' in _first_text(path)
        return ('a pose graph', open_g2o) if is_graph else ('a CARMEN log', open_carmen)
    raise RecordingError(
        f'{path}: not a recording by its name, and {what_is(head)} by its content; {EXPECTED}'
    )


def _first_text(path: Path) -> bytes:
    try:
        with path.open('rb') as file:
            return b''.join(islice(gzip_lines(file), LOOKED_AT))
    except (OSError, EOFError, zlib.error) as error:
        raise RecordingError(f'{path}: cannot be read ({one_line(error)})') from error


def _refuse_folder_without_bag(path: Path) -> None:
    if bag_files(path):
        return
    if ros1 := sorted(path.glob('*.bag')):
        read_head(ros1[0])
    if (path / 'metadata.yaml').exists():
        raise RecordingError(f'{path}: metadata.yaml is there but no .db3 or .mcap file')
    inside = {
        str(file.parent.relative_to(path))
        for pattern in ('*/*', '*/*/*')
        for file in path.glob(pattern)
        if file.name.endswith(BAG_SUFFIXES)
    }
    if inside:
        raise RecordingError(
            f'{path}: a folder of {len(inside)} rosbag2 folders ({some_of(inside)}); name one of '
            'them'
        )
    raise RecordingError(f'{path}: a folder without a rosbag2 (no .db3 or .mcap file in it)')
