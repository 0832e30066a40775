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
        # A pair is a column: distances to all of them are sums of whole rows.
        self._table = np.zeros((inputs + 2 * outputs + 2, window))
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
        pair = self._table[:, self.count % self.window]
        pair[:first], pair[first:second], pair[second:third] = inputs, quantity, residual
        pair[third], pair[third + 1] = learned, support
        self.count += 1

    @property
    def window(self) -> int:
        """Pairs that are held at most."""
        return self._table.shape[1]

    def __len__(self) -> int:
        return min(self.count, self.window)

    @property
    def inputs(self) -> Array:
        """Unscaled inputs, shape (n, inputs), in the order of the ring."""
        return self._table[: self._ends[0], : len(self)].T

    @property
    def quantities(self) -> Array:
        """Truths in SI units, shape (n, outputs), in the order of the ring."""
        return self._table[self._ends[0] : self._ends[1], : len(self)].T

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """Rows of the ring, the oldest first."""
        return (np.arange(len(self)) + self.count - len(self)) % self.window

    @property
    def learned(self) -> npt.NDArray[np.int64]:
        """Rows of the ring that were learned, the oldest first."""
        order = self.order
        return order[self._table[self._ends[2], order] > 0.0]

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
        count = len(self)
        nearest = min(max(int(NEAREST_SHARE * count), FEWEST), count)
        first, second, third = self._ends
        outputs = second - first
        sums = mean_of_nearest(self._table, count, inputs, 1.0 / scale, second, third, nearest)
        return sums[:-1].reshape(outputs, outputs), float(sums[-1])

    def to_array(self) -> Array:
        """Return all that is held, the oldest first: what a model file holds."""
        return self._table.T[self.order]

    def restore(self, rows: Array, count: int) -> None:
        """Take what :meth:`to_array` returned; raises ValueError where it does not fit."""
        if rows.shape != (min(count, self.window), len(self._table)):
            raise ValueError(f'recent pairs have shape {rows.shape}')
        self.count = count
        self._table.T[self.order] = rows


@compiled_allocating
def mean_of_nearest(table, count, inputs, inverse_scale, first, last, nearest):
    """Mean outer product of rows ``first`` to ``last`` of a table, and mean of the last row.

    Over the ``nearest`` of the first ``count`` columns, and those as near as the last of them.
    """
    outputs = last - first
    distance = np.zeros(count)
    for j in range(inputs.shape[0]):
        row, at, inverse = table[j], inputs[j], inverse_scale[j]
        for i in range(count):
            difference = (row[i] - at) * inverse
            distance[i] += difference * difference
    limit = np.partition(distance, nearest - 1)[nearest - 1]
    sums, used = np.zeros(outputs * outputs + 1), 0
    for i in range(count):
        if distance[i] <= limit:
            used += 1
            for a in range(outputs):
                for b in range(outputs):
                    sums[a * outputs + b] += table[first + a, i] * table[first + b, i]
            sums[-1] += table[-1, i]
    return sums / used
