# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Exponents of power laws, with how uncertain they are."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Slope(NamedTuple):
    """Least squares in log-log, with two standard errors."""

    value: float
    uncertainty: float

    def __str__(self) -> str:
        return f'{self.value:.3f} ± {self.uncertainty:.3f}'


def power_law(x: npt.ArrayLike, y: npt.ArrayLike) -> Slope:
    """Fit ``y ~ x^slope`` where y is positive; x and y of shape (n,)."""
    positive = np.asarray(y) > 0
    if positive.sum() < 3:  # fewer do not say how uncertain the slope is
        return Slope(math.nan, math.nan)
    log_x, log_y = np.log(np.asarray(x)[positive]), np.log(np.asarray(y)[positive])
    log_x, log_y = log_x - log_x.mean(), log_y - log_y.mean()
    value = float((log_x @ log_y) / (log_x @ log_x))
    residual = log_y - value * log_x
    variance = float(residual @ residual) / (len(log_x) - 2) / float(log_x @ log_x)
    return Slope(value, 2 * math.sqrt(variance))
