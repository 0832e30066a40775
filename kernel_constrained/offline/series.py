# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A long table of numbers, kept on disk: memory does not grow with the recording."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from typing_extensions import Self

# Rows that are held in memory at once.
BLOCK = 4096


class Series:
    """Rows of named columns in a temporary file; a context manager that removes it.

    Parameters
    ----------
    columns
        Name and numpy type of each column.
    """

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        self.dtype = np.dtype(list(columns))
        self._file = TemporaryFile()  # noqa: SIM115  (closed by close)
        self._block = np.zeros(BLOCK, self.dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, row: tuple[Any, ...]) -> None:
        """Add a row: a value for each column."""
        place = self._count % BLOCK
        self._block[place] = row
        self._count += 1
        if place == BLOCK - 1:
            self._file.write(self._block.data)

    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        """Yield the rows, a few thousand at a time."""
        self._file.seek(0)
        for _ in range(self._count // BLOCK):
            data = self._file.read(BLOCK * self.dtype.itemsize)
            yield np.frombuffer(data, self.dtype)
        yield self._block[: self._count % BLOCK]

    def columns(
        self, *names: str, rows: npt.NDArray[np.intp] | None = None
    ) -> list[npt.NDArray[Any]]:
        """Return columns as arrays of shape (n,): they are held in memory, the rest is not.

        Parameters
        ----------
        *names
            Which columns.
        rows : (n,)
            Which rows, by ascending numbers; all where there is None.
        """
        chosen: Any = slice(None)
        count = self._count if rows is None else len(rows)
        found = [np.empty(count, self.dtype[name]) for name in names]
        begin = place = 0
        for block in self.blocks():
            end = begin + len(block)
            if rows is not None:
                chosen = rows[place : np.searchsorted(rows, end)] - begin
            part = block[chosen]
            for values, name in zip(found, names, strict=True):
                values[place : place + len(part)] = part[name]
            begin, place = end, place + len(part)
        return found

    def where(self, name: str, value: Any) -> npt.NDArray[np.bool_]:
        """Return which rows have a value in a column, shape (n,), without holding the column."""
        return np.concatenate([block[name] == value for block in self.blocks()])

    def write_csv(self, path: Path) -> None:
        """Write all rows; numbers with all their digits, NaN as nothing."""
        with path.open('w', newline='', encoding='utf-8') as file:
            writer = csv.writer(file, lineterminator='\n')
            writer.writerow(self.dtype.names or ())
            for block in self.blocks():
                writer.writerows(
                    ['' if value != value else value for value in row] for row in block.tolist()
                )

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def __enter__(self) -> 'Self':
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
