# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Offset and scale of inputs and targets, learned from the range that they have had."""

import math
from functools import cached_property

import attrs
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# The range leaves out this share of the values at either end, and at least one: a single outlier
# moves it nowhere, however few values there are.
LEFT_OUT = 0.02

# Values that are enough to find a range by.
ENOUGH = 250

# Share of its width by which a range may be exceeded before it is widened.
SLACK = 0.5


@attrs.frozen(eq=False, slots=False)
class Scaling:
    """A range for each of several numbers, and by it their offset and scale.

    The middle of the range becomes 0 and a quarter of its width 1: about the mean and the
    standard deviation of something normally distributed.

    Attributes
    ----------
    offset : (k,)
        Middle of the ranges: what becomes 0.
    half_width : (k,)
        Half of their widths.
    floor : (k,)
        Smallest scales.
    smallest_share
        A scale is at least this share of the root mean square of all: of numbers of one kind,
        one that hardly changes is mostly noise.
    """

    offset: Array
    half_width: Array
    floor: Array
    smallest_share: float = 0.0

    @classmethod
    def fixed(cls, offset: Array, scale: Array) -> 'Scaling':
        """Scaling of a given offset and scale."""
        return cls(offset, 2.0 * scale, scale)

    @cached_property
    def scale(self) -> Array:
        """Return what becomes 1, shape (k,)."""
        scale = 0.5 * self.half_width
        common = self.smallest_share * np.sqrt(np.mean(scale**2))
        return np.asarray(np.maximum(np.maximum(scale, self.floor), common))

    def scaled(self, values: Array) -> Array:
        """From values (..., k) to numbers of order one."""
        return (values - self.offset) / self.scale

    def original(self, scaled: Array) -> Array:
        """Undo :meth:`scaled`."""
        return scaled * self.scale + self.offset

    def between(self, low: Array, high: Array) -> 'Scaling':
        """Return a scaling by the ranges from ``low`` to ``high``."""
        return attrs.evolve(self, offset=0.5 * (low + high), half_width=0.5 * (high - low))

    def of(self, values: Array) -> 'Scaling':
        """Return a scaling by the range of ``values`` (n, k) alone, n at least 3."""
        return self.between(*range_of(values))

    def widened(self, values: Array) -> 'Scaling':
        """Return a scaling for ``values`` (n, k) too; itself where they lie in the range.

        Ranges never shrink: a robot that stands still for a while goes on as before.
        """
        low, high = range_of(values)
        slack = SLACK * 4.0 * self.scale
        begin, end = self.offset - self.half_width, self.offset + self.half_width
        if (low >= begin - slack).all() and (high <= end + slack).all():
            return self
        return self.between(np.minimum(low, begin), np.maximum(high, end))

    def to_array(self) -> Array:
        """Return what a model file holds, shape (2, k)."""
        return np.array([self.offset, self.half_width])

    def restored(self, array: Array) -> 'Scaling':
        """Return the scaling that :meth:`to_array` was called of; raises ValueError for none."""
        if array.shape != (2, len(self.offset)):
            raise ValueError(f'a scaling has shape {array.shape}')
        return attrs.evolve(self, offset=array[0], half_width=array[1])


def range_of(values: Array) -> tuple[Array, Array]:
    """Low and high end of the range of ``values`` (n, k), each (k,), n at least 3."""
    left_out = max(math.ceil(LEFT_OUT * (len(values) - 1)), 1)
    ends = [left_out, len(values) - 1 - left_out]
    low, high = np.partition(values, ends, axis=0)[ends]
    return low, high


def thinned(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return every second, third ... row of many: enough to find a range by."""
    return rows[:: max(len(rows) // ENOUGH, 1)]
