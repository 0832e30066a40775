# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The newest scans with a trusted pose, and what estimates near a given input were off by."""

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled_allocating

Array = npt.NDArray[np.float64]

# Errors that are averaged at an input: the nearest tenth of the window, and at least so many.
NEAREST_SHARE, FEWEST = 0.1, 20


class Recent:
    """A ring of the newest pairs.

    Parameters
    ----------
    window
        How many.
    inputs, outputs
        Numbers in an input and in a quantity.

    Attributes
    ----------
    count : int
        Pairs taken so far.
    """

    def __init__(self, window: int, inputs: int, outputs: int) -> None:
        self._rows = np.zeros((window, inputs + 2 * outputs + 2))
        self._ends = inputs, inputs + outputs, inputs + 2 * outputs
        self.count = 0

    def add(
        self, inputs: Array, quantity: Array, residual: Array, support: float, learned: bool
    ) -> None:
        """Take a pair.

        Parameters
        ----------
        inputs
            Unscaled inputs, shape (inputs,).
        quantity
            The truth in SI units, shape (outputs,).
        residual
            Estimate minus truth in scales, from before the pair was learned, shape (outputs,).
        support
            Support that the estimate had, from 0 to 1.
        learned
            Whether the pair is learned too.
        """
        first, second, third = self._ends
        row = self._rows[self.count % len(self._rows)]
        row[:first], row[first:second], row[second:third] = inputs, quantity, residual
        row[third], row[third + 1] = learned, support
        self.count += 1

    def __len__(self) -> int:
        return min(self.count, len(self._rows))

    @property
    def inputs(self) -> Array:
        """Unscaled inputs, shape (n, inputs), in the order of the ring."""
        return self._rows[: len(self), : self._ends[0]]

    @property
    def quantities(self) -> Array:
        """Truths in SI units, shape (n, outputs), in the order of the ring."""
        return self._rows[: len(self), self._ends[0] : self._ends[1]]

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """Rows of the ring, the oldest first."""
        return (np.arange(len(self)) + self.count - len(self)) % max(len(self._rows), 1)

    @property
    def learned(self) -> npt.NDArray[np.int64]:
        """Rows of the ring that were learned, the oldest first."""
        order = self.order
        return order[self._rows[order, self._ends[2]] > 0.0]

    def errors_near(self, inputs: Array, scale: Array) -> tuple[Array, float]:
        """Say how far estimates at inputs like these were off.

        Parameters
        ----------
        inputs
            Unscaled inputs, shape (inputs,).
        scale
            Distances are in these units, shape (inputs,).

        Returns
        -------
        covariance : (outputs, outputs)
            Mean of the residuals' outer products, scales squared, over the nearest tenth.
        support : float
            The mean support of the same.
        """
        rows = self._rows[: len(self)]
        nearest = min(max(int(NEAREST_SHARE * len(rows)), FEWEST), len(rows))
        first, second, third = self._ends
        outputs = second - first
        sums = mean_of_nearest(rows, inputs, 1.0 / scale, second, third, nearest)
        return sums[:-1].reshape(outputs, outputs), float(sums[-1])

    def to_array(self) -> Array:
        """Return all that is held, the oldest first: what a model file holds."""
        return self._rows[self.order]

    def restore(self, rows: Array, count: int) -> None:
        """Take what :meth:`to_array` returned; raises ValueError where it does not fit."""
        if rows.shape != (min(count, len(self._rows)), self._rows.shape[1]):
            raise ValueError(f'recent pairs have shape {rows.shape}')
        self.count = count
        self._rows[self.order] = rows


@compiled_allocating
def mean_of_nearest(rows, inputs, inverse_scale, first, last, nearest):
    """Mean outer product of columns ``first`` to ``last``, and mean of the last column.

    Over the ``nearest`` rows, and those as near as the last of them.
    """
    count, outputs = rows.shape[0], last - first
    distance = np.empty(count)
    for i in range(count):
        row, total = rows[i], 0.0
        for j in range(inputs.shape[0]):
            total += ((row[j] - inputs[j]) * inverse_scale[j]) ** 2
        distance[i] = total
    limit = np.partition(distance, nearest - 1)[nearest - 1]
    sums, used = np.zeros(outputs * outputs + 1), 0
    for i in range(count):
        if distance[i] <= limit:
            used += 1
            residual = rows[i, first:last]
            for a in range(outputs):
                for b in range(outputs):
                    sums[a * outputs + b] += residual[a] * residual[b]
            sums[-1] += rows[i, -1]
    return sums / used
