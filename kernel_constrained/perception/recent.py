# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The newest scans with a trusted pose, and what estimates near a given input were off by."""

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled_allocating

Array = npt.NDArray[np.float64]

# Errors that are averaged at an input: the nearest tenth of the window, and at least so many.
NEAREST_SHARE, FEWEST = 0.1, 20

# Rows, from the last, of what is held beside the inputs.
LEARNED, SUPPORT = -2, -1


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
        # A pair is a column: distances to all of them are sums of whole rows. In single precision,
        # as scans are, half as much has to come from memory.
        self._inputs = np.zeros((inputs, window), dtype=np.float32)
        self._rest = np.zeros((2 * outputs + 2, window))
        self._outputs = outputs
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
        place, outputs = self.count % self.window, self._outputs
        self._inputs[:, place] = inputs
        rest = self._rest[:, place]
        rest[:outputs], rest[outputs : 2 * outputs] = quantity, residual
        rest[LEARNED], rest[SUPPORT] = learned, support
        self.count += 1

    @property
    def window(self) -> int:
        """Pairs that are held at most."""
        return self._inputs.shape[1]

    def __len__(self) -> int:
        return min(self.count, self.window)

    def inputs_of(self, rows: npt.NDArray[np.int64]) -> Array:
        """Unscaled inputs of rows of the ring, shape (n, inputs)."""
        return self._inputs[:, rows].T.astype(np.float64)

    @property
    def quantities(self) -> Array:
        """Truths in SI units, shape (n, outputs), in the order of the ring."""
        return self._rest[: self._outputs, : len(self)].T

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """Rows of the ring, the oldest first."""
        return (np.arange(len(self)) + self.count - len(self)) % self.window

    @property
    def learned(self) -> npt.NDArray[np.int64]:
        """Rows of the ring that were learned, the oldest first."""
        order = self.order
        return np.asarray(order[self._rest[LEARNED, order] > 0.0])

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
        outputs = self._outputs
        sums = mean_of_nearest(
            self._inputs, self._rest, count, inputs.astype(np.float32),
            (1.0 / scale).astype(np.float32), outputs, nearest,
        )  # fmt: skip
        return sums[:-1].reshape(outputs, outputs), float(sums[-1])

    def to_array(self) -> Array:
        """Return all that is held, the oldest first: what a model file holds."""
        return np.concatenate([self._inputs, self._rest]).T[self.order]

    def restore(self, rows: Array, count: int) -> None:
        """Take what :meth:`to_array` returned; raises ValueError where it does not fit."""
        inputs = len(self._inputs)
        if rows.shape != (min(count, self.window), inputs + len(self._rest)):
            raise ValueError(f'recent pairs have shape {rows.shape}')
        self.count = count
        self._inputs.T[self.order], self._rest.T[self.order] = rows[:, :inputs], rows[:, inputs:]


@compiled_allocating
def mean_of_nearest(points, rest, count, at, inverse_scale, outputs, nearest):
    """Mean outer product of the residuals, and mean support, of the pairs nearest to an input.

    Of the first ``count`` pairs those ``nearest``, and those as near as the last of them.
    """
    distance = np.zeros(count, dtype=np.float32)
    for j in range(at.shape[0]):
        row, centre, inverse = points[j], at[j], inverse_scale[j]
        for i in range(count):
            difference = (row[i] - centre) * inverse
            distance[i] += difference * difference
    limit = np.partition(distance, nearest - 1)[nearest - 1]
    sums, used = np.zeros(outputs * outputs + 1), 0
    for i in range(count):
        if distance[i] <= limit:
            used += 1
            for a in range(outputs):
                for b in range(outputs):
                    sums[a * outputs + b] += rest[outputs + a, i] * rest[outputs + b, i]
            sums[-1] += rest[SUPPORT, i]
    return sums / used
