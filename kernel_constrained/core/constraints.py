# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Constraints on the loss, and the empirical measure of its tail."""

import math
from typing import Any, ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.configuration import ConfigurationError, parameter

# Neither a tolerance nor a violation counts beyond this: the learner squares them.
LARGEST_VIOLATION = 1e150


@attrs.frozen
class CVaR:
    """Conditional value at risk of the loss at most ``tolerance`` (Koppel et al., Eq. 3).

    Parameters
    ----------
    significance
        Alpha: the mean over the worst ``1 - alpha`` share of the losses is bounded.
    tolerance
        Gamma: the bound, in the units of the loss (target units squared for the squared loss).
    smoothing
        Temperature of the softplus that replaces the positive part in ``mode='paper'``; 0 keeps
        the positive part. The paper's own value is 1.
    """

    significance: float = parameter(
        0.9, 'share of the losses that is no tail', low=0.0, high=0.9999, runtime=True
    )
    tolerance: float = parameter(
        1.0, 'bound on the mean of the tail', unit='loss', low=1e-12, high=LARGEST_VIOLATION,
        runtime=True,
    )  # fmt: skip
    smoothing: float = parameter(0.0, 'softplus temperature in mode paper', low=0.0)

    name: ClassVar[str] = 'cvar'

    @property
    def collapsed_offset(self) -> float:
        """Return what Eq. (23) adds to the loss of a single sample.

        ``min_z z + s softplus((loss - z) / s) / (1 - alpha)`` is ``loss + s c(alpha)`` with
        ``c = log(alpha / (1 - alpha)) - log(alpha) / (1 - alpha)``: 3.25 at 0.9, 5.60 at 0.99.
        """
        alpha = self.significance
        if self.smoothing == 0.0 or alpha == 0.0:
            return 0.0
        return self.smoothing * (math.log(alpha / (1 - alpha)) - math.log(alpha) / (1 - alpha))


@attrs.frozen
class Expectation:
    """Mean of the loss at most ``tolerance`` (Koppel et al., Eq. 2): the CVaR at level 0.

    Parameters
    ----------
    tolerance
        The bound, in the units of the loss.
    """

    tolerance: float = parameter(
        1.0, 'bound on the mean loss', unit='loss', low=1e-12, high=LARGEST_VIOLATION,
        runtime=True,
    )  # fmt: skip

    name: ClassVar[str] = 'expectation'
    significance: ClassVar[float] = 0.0
    smoothing: ClassVar[float] = 0.0


Constraint = CVaR | Expectation
CONSTRAINTS = {cls.name: cls for cls in (CVaR, Expectation)}


def choose_constraint(_: Any, __: Any, value: Any) -> None:
    """Raise where the constraint, or one of several, is none of ours."""
    for one in value if isinstance(value, tuple) else (value,):
        if value is not None and not isinstance(one, CVaR | Expectation):
            raise ConfigurationError(
                'constraint must be a CVaR, an Expectation, several of them, or None '
                f'(got {one!r})'
            )


def as_constraint(value: Any) -> Any:
    """Make a tuple of several constraints."""
    return tuple(value) if isinstance(value, list) else value


def conditional_value_at_risk(losses: npt.ArrayLike, significance: float) -> float:
    """Mean of the worst ``1 - significance`` share of ``losses`` (Rockafellar and Uryasev).

    The sample on the edge of the tail counts with the share of it that lies inside; NaN where
    there is no loss.
    """
    values = np.asarray(losses, dtype=float)
    if values.size == 0:
        return math.nan
    tail = (1.0 - significance) * values.size
    whole = min(int(tail), values.size - 1)
    edge = values.size - 1 - whole
    ordered = np.partition(values, edge)
    return float((ordered[edge + 1 :].sum() + (tail - whole) * ordered[edge]) / tail)
