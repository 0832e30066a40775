# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""One evaluation of a sweep: what decides its result, how it is done, and where it is kept."""

import hashlib
import json
import math
import os
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numba
import numpy as np

from kernel_constrained import __version__
from kernel_constrained.bags import killian_path, RecordingError
from kernel_constrained.configuration import ConfigurationError, flatten
from kernel_constrained.offline.arguments import Options
from kernel_constrained.offline.evaluate import evaluate
from kernel_constrained.offline.sweep_grid import Setting

PACKAGE = Path(__file__).resolve().parents[1]

# Sources that are no files, or files that each machine has in a place of its own.
NAMED = ('lidar', 'killian')


class Source(NamedTuple):
    """A recording as one of a sweep.

    Attributes
    ----------
    name : str
        What it is called in tables.
    path : str
        Where it is, absolute, or its name (:data:`NAMED`).
    files : tuple of (name, size in bytes, time of change in ns)
        What it is made of.
    """

    name: str
    path: str
    files: tuple[tuple[str, int, int], ...]

    @classmethod
    def of(cls, path: str, name: str) -> 'Source':
        """Look at a recording; raises :class:`RecordingError` where there is none."""
        place = path if path in NAMED else str(Path(path).resolve())
        try:
            return cls(name, place, files_of(place))
        except OSError as error:
            raise RecordingError(f'{path}: cannot be read ({error.strerror})') from error


def files_of(path: str) -> tuple[tuple[str, int, int], ...]:
    """Return name, size and time of change of the files of a recording."""
    if path == 'lidar':  # a table of the package
        return ()
    place = killian_path() if path == 'killian' else Path(path)
    files = sorted(place.iterdir()) if place.is_dir() else [place]
    stats = [(file.name, file.stat()) for file in files]
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def sizes_of(paths: Sequence[str]) -> list[list[tuple[str, int]] | None]:
    """Return names and sizes of the files of recordings, None for what cannot be read."""
    sizes: list[list[tuple[str, int]] | None] = []
    for path in paths:
        try:
            sizes.append([(name, size) for name, size, _ in files_of(path)])
        except (OSError, RecordingError):
            sizes.append(None)
    return sizes


@cache
def versions() -> str:
    """Say which code computes: results of the same are the same."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob('*.py')):
        if path.parent.name != 'nodes':
            digest.update(path.read_bytes())
    return (
        f'kernel_constrained {__version__} ({digest.hexdigest()[:12]}), '
        f'numpy {np.__version__}, numba {numba.__version__}'
    )


class Task(NamedTuple):
    """A recording to be evaluated with a setting.

    Attributes
    ----------
    key : str
        Of everything that decides the result.
    versions : str
        The code that is to do it.
    """

    source: Source
    setting: Setting
    options: Options
    key: str
    versions: str

    @classmethod
    def of(cls, source: Source, setting: Setting, options: Options) -> 'Task':
        """Make a task for the code that is running."""
        decisive = [
            source.path, source.files, flatten(setting.config), attrs.asdict(options), versions(),
        ]  # fmt: skip
        text = json.dumps(decisive, sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:20]
        return cls(source, setting, options, key, versions())


# Of a task: `recording`, `settings`, `seconds`, and `result` or `failed` (why).
Outcome = dict[str, Any]


def perform(task: Task) -> Outcome:
    """Evaluate; what goes wrong is part of the outcome, for the others are to go on."""
    begun = time.perf_counter()
    outcome = {'recording': task.source.name, 'settings': plain(task.setting.varied)}
    try:
        if task.versions != versions():
            raise ConfigurationError(f'the worker has {versions()}, wanted is {task.versions}')
        outcome['result'] = evaluate(task.source.path, task.setting.config, task.options)
    except (RecordingError, ConfigurationError) as error:
        outcome['failed'] = ' '.join(str(error).split())
    except Exception as error:
        outcome['failed'] = f'{type(error).__name__}: {" ".join(str(error).split())}'
    return {**outcome, 'seconds': time.perf_counter() - begun}


def perform_and_store(task: Task, folder: Path) -> Outcome:
    """Evaluate and store: done is done, whatever becomes of the process that waits for it."""
    outcome = perform(task)
    store(task, outcome, folder)
    return outcome


def store(task: Task, outcome: Outcome, folder: Path) -> None:
    """Write an outcome whole or not at all."""
    part = folder / f'{task.key}.{os.getpid()}.part'
    part.write_text(json.dumps(outcome, indent=2) + '\n', encoding='utf-8')
    part.replace(folder / f'{task.key}.json')


def stored(task: Task, folder: Path) -> Outcome | None:
    """Return the outcome of a task that succeeded before, None where it is to be done."""
    try:
        outcome: Outcome = json.loads((folder / f'{task.key}.json').read_text(encoding='utf-8'))
    except (FileNotFoundError, ValueError):
        return None
    return None if 'failed' in outcome else outcome


def plain(varied: dict[str, Any]) -> dict[str, Any]:
    """Return values as JSON has them: infinity as text."""
    return {
        name: str(value) if isinstance(value, float) and math.isinf(value) else value
        for name, value in varied.items()
    }
