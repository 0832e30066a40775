# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""All the losses there ever were, in bounded memory: the newest exactly, the others by size."""

import math
from bisect import bisect_left, insort

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Bins of equal ratio, BINS to a factor of 2, from 2^-LOWEST to 2^HIGHEST: losses of one bin
# differ by 1.8 % at most.
BINS, LOWEST, HIGHEST = 40, 60, 60


class LossHistory:
    """Losses seen so far, and the CVaR over the newest and over all of them.

    Parameters
    ----------
    window
        How many of the newest are kept.

    Attributes
    ----------
    count : int
        Losses taken so far.
    """

    def __init__(self, window: int) -> None:
        self.count = 0
        self._newest = np.zeros(window)
        self._ordered: list[float] = []  # the same by size: the tail is at its end
        # Number and sum of the losses in each bin.
        self._bins = np.zeros((2, BINS * (LOWEST + HIGHEST) + 2))

    def add(self, loss: float) -> None:
        """Take a loss, at least 0."""
        octave = min(math.log2(loss), HIGHEST) + LOWEST if loss > 0.0 else -1.0
        bin_ = min(max(math.floor(octave * BINS) + 1, 0), self._bins.shape[1] - 1)
        self._bins[0, bin_] += 1.0
        self._bins[1, bin_] += loss
        place = self.count % len(self._newest)
        if self.count >= len(self._newest):
            del self._ordered[bisect_left(self._ordered, float(self._newest[place]))]
        insort(self._ordered, loss)
        self._newest[place] = loss
        self.count += 1

    @property
    def newest(self) -> Array:
        """Return the newest losses, in no order."""
        return self._newest[: self.count]

    def cvar(self, significance: float) -> float:
        """Return the CVaR of the newest losses; NaN where there is none.

        As :func:`conditional_value_at_risk` has it; a few microseconds, for the losses are in
        order already.
        """
        count = len(self._ordered)
        if count == 0:
            return math.nan
        tail = (1.0 - significance) * count
        whole = min(int(tail), count - 1)
        edge = count - 1 - whole
        return (math.fsum(self._ordered[edge + 1 :]) + (tail - whole) * self._ordered[edge]) / tail

    def cvar_since_start(self, significance: float) -> float:
        """Return the CVaR of all losses, within 2 %; NaN where there is none.

        Exact but for the bin that the tail begins in, whose losses count as equal.
        """
        if self.count == 0:
            return math.nan
        tail = (1.0 - significance) * self.count
        counts, sums = self._bins[:, ::-1]
        above = np.cumsum(counts)
        whole = int(np.searchsorted(above, tail))  # bins entirely in the tail
        total = sums[:whole].sum()
        if whole < len(counts) and counts[whole] > 0.0:
            rest = tail - (above[whole - 1] if whole else 0.0)
            total += rest * sums[whole] / counts[whole]
        return float(total / tail)

    def to_arrays(self) -> dict[str, Array]:
        """Return what a model file holds."""
        return {'losses': self.newest.copy(), 'loss_bins': self._bins.copy()}

    def restore(self, losses: Array, loss_bins: Array) -> None:
        """Take what :meth:`to_arrays` returned; raises ValueError where it does not fit."""
        if loss_bins.shape != self._bins.shape:
            raise ValueError(f'loss bins have shape {loss_bins.shape}')
        count = int(loss_bins[0].sum())
        if losses.shape != (min(count, len(self._newest)),):
            raise ValueError(f'newest losses have shape {losses.shape}')
        self.count = count
        self._newest[: len(losses)] = losses
        self._ordered = sorted(losses.tolist())
        self._bins[:] = loss_bins
