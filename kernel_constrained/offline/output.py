# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Where commands write: what an earlier run left there goes, what is to be read stays."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kernel_constrained.bags import RecordingError


@contextmanager
def writing_to(output: Path) -> Iterator[None]:
    """Raise RecordingError, which says what to do, where the body cannot write to ``output``."""
    try:
        yield
    except OSError as error:
        raise RecordingError(
            f'{output}: cannot be written to ({error.strerror}): choose another by --output'
        ) from error


def make_folder(output: Path) -> None:
    """Make the folder; raise RecordingError where nothing can be written there."""
    with writing_to(output):
        output.mkdir(parents=True, exist_ok=True)
        if not os.access(output, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def keep(inputs: Iterable[str | Path], written: Iterable[Path]) -> None:
    """Raise RecordingError where an input is a file that is to be removed or overwritten."""
    given = {os.path.realpath(each) for each in inputs if os.path.exists(each)}
    for file in written:
        if os.path.realpath(file) in given:
            raise RecordingError(
                f'{file}: to be read, and to be overwritten: copy it elsewhere and name the copy, '
                'or choose another folder by --output'
            )


def remove(written: Iterable[Path]) -> None:
    """Remove what an earlier run has written; raise RecordingError where that cannot be."""
    for file in written:
        with writing_to(file.parent), suppress(FileNotFoundError, NotADirectoryError):
            file.unlink()
