# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What online learners have in common: their samples as arrays, checked, and room for atoms."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

DOUBLE = np.dtype(np.float64)


class DivergenceError(ArithmeticError):
    """An iterate left the range of numbers; the learner keeps its last finite state."""


def as_array(values: npt.ArrayLike) -> Array:
    """Return contiguous writable doubles: for any other kind the stream would compile again."""
    if type(values) is np.ndarray and values.dtype is DOUBLE and values.flags.carray:
        return values
    array: Array = np.ascontiguousarray(values, dtype=np.float64)
    return array if array.flags.writeable else array.copy()


def not_finite(name: str, values: Array) -> str:
    """Say how many numbers are not finite; empty where all are."""
    count = int(np.sum(~np.isfinite(values)))
    return f'{name} holds {count} numbers that are not finite' if count else ''


def checked_inputs(X: npt.ArrayLike, columns: int) -> Array:
    """Return inputs (n, p) as an array; ``columns`` is p where it is known, else 0.

    Raises
    ------
    ValueError
        Where they have another shape.
    """
    x = as_array(X)
    if x.ndim != 2 or x.shape[1] == 0:
        raise ValueError(f'X must have shape (n, p) with p >= 1 (got {np.shape(X)})')
    if columns and x.shape[1] != columns:
        raise ValueError(
            f'X must have {columns} columns, as what was learned from (got {x.shape[1]})'
        )
    return x


def check_targets(x: Array, targets: Array, given: tuple[int, ...], columns: int) -> None:
    """Raise ValueError where targets (n, q) do not fit inputs (n, p); ``columns`` is q or 0."""
    if targets.ndim != 2 or len(targets) != len(x) or targets.shape[1] == 0:
        raise ValueError(
            f'y must have shape ({len(x)},) or ({len(x)}, q), a row for each of the {len(x)} '
            f'rows of X (got {given})'
        )
    if columns and targets.shape[1] != columns:
        raise ValueError(f'y must have {columns} columns (got {targets.shape[1]})')


def capacity_and_stride(capacity: int) -> tuple[int, int]:
    """Round a number of atoms up to whole vectors; and the stride of rows of so many.

    Beyond 16 atoms the stride is no power of two, so that rows do not fall on the same cache
    sets.
    """
    capacity = (capacity + 7) // 8 * 8
    stride = (capacity + 15) // 16 * 16
    return capacity, stride + 16 if stride & (stride - 1) == 0 else stride


def enlarged(array: Array, *shape: int) -> Array:
    """Return a larger array of zeros that holds another one in its first corner."""
    larger = np.zeros(shape)
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger
