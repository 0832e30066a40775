# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Saving a model while the node goes on: no message waits for a disk."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def check_place(path: Path) -> None:
    """Raise OSError where no model can be saved to parameter model.path; it says what to do."""
    folder = path.absolute().parent
    if not folder.is_dir():
        problem = f'there is no folder {folder}; make it'
    elif path.is_dir():
        problem = 'that is a folder; name a file in it'
    elif not os.access(folder, os.W_OK | os.X_OK):
        problem = f'folder {folder} cannot be written to; allow it'
    else:
        return
    raise OSError(
        f'no model can be saved to {path} (parameter model.path): {problem}, or give another path'
    )


class Saver:
    """Runs one write at a time in the background, and remembers what became of it.

    Attributes
    ----------
    outcome : str
        What became of the last write, in words; empty before the first.
    failed : bool
        Whether the last write failed.
    """

    def __init__(self) -> None:
        self.outcome = ''
        self.failed = False
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether a write is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, write: Callable[[], None]) -> None:
        """Begin a write, unless one is under way."""
        if not self.busy:
            self._thread = threading.Thread(target=self._run, args=(write,), daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait for the write that is under way."""
        if self._thread is not None:
            self._thread.join()

    def now(self, write: Callable[[], None]) -> None:
        """Write, after the write that is under way; raise what goes wrong."""
        self.wait()
        self._write(write)

    def _run(self, write: Callable[[], None]) -> None:
        with suppress(Exception):  # the outcome tells
            self._write(write)

    def _write(self, write: Callable[[], None]) -> None:
        try:
            write()
        except Exception as error:
            self.outcome, self.failed = f'not saved: {error}', True
            raise
        self.outcome, self.failed = f'saved at {time.strftime("%H:%M:%S")}', False
