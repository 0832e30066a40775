# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the regressor and the classifier that leave corrupted samples out have in common."""

import math
from typing import Any, TYPE_CHECKING

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.configuration import parameter
from kernel_constrained.core.kernels import Gaussian, Kernel, Polynomial
from kernel_constrained.core.subquantile.estimator import checked_later, Estimator
from kernel_constrained.core.subquantile.features import KernelFeatures, median_bandwidth

Array = npt.NDArray[np.float64]

SOLVERS = ('alternating', 'gradient')
# What features may leave of ``k(x, x)`` on average, in ridges: less than the ridge takes away.
LEFT_BY_FEATURES = 0.1


def choose_kernel(_: Any, __: Any, value: Any) -> None:
    """Raise where the kernel is none of ours."""
    if value is not None and not isinstance(value, Gaussian | Polynomial):
        raise ValueError(f'kernel must be a Gaussian, a Polynomial or None (got {value!r})')


def as_share(value: Any) -> Any:
    """Return a number where it is one; what else it is, :func:`choose_corruption` says."""
    try:
        return value if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return value


def choose_corruption(_: Any, __: Any, value: Any) -> None:
    """Raise where the share cannot be corrupted."""
    if value is not None and not (isinstance(value, float) and 0.0 <= value < 0.5):
        raise ValueError(
            'corruption must be a share from 0 to below 0.5, or None to estimate it '
            f'(got {value!r})'
        )


@attrs.define(eq=False, slots=False, repr=False, field_transformer=checked_later)
class TrimmedEstimator(Estimator):
    """A function in an RKHS, spanned by landmarks, and the samples that it was not fitted to.

    The subclasses' documentation says what the parameters mean.
    """

    kernel: Kernel | None = attrs.field(default=None, validator=choose_kernel)
    corruption: float | None = attrs.field(
        default=0.1, converter=as_share, validator=choose_corruption
    )
    regularization: float = parameter(1e-3, 'weight of the RKHS norm', low=1e-12)
    solver: str = parameter('alternating', 'how to minimise', choices=SOLVERS)
    refine: bool = parameter(True, 'whether samples that are not clearly wrong come back')
    acceleration: bool = parameter(False, "Nesterov's momentum")
    radius: float = parameter(math.inf, 'largest norm of the function', low=1e-12)
    max_features: int = parameter(200, 'landmarks at most', low=1, high=20000)
    max_iterations: int = parameter(500, 'iterations of the solver', low=1)
    tolerance: float = parameter(1e-5, 'relative step at which it is done', low=0.0)
    random_state: int = parameter(0, 'seed', low=0)

    if TYPE_CHECKING:  # of fit; no fields
        coef_: Any
        intercept_: Any

    def _features_of(self, inputs: Array, random: np.random.Generator) -> Array:
        """Choose kernel and landmarks for inputs (n, p); return the inputs' features (n, r)."""
        self.kernel_ = self.kernel or Gaussian(median_bandwidth(inputs, random))
        left = LEFT_BY_FEATURES * self.regularization
        self.features_ = KernelFeatures.of(self.kernel_, inputs, self.max_features, left, random)
        return self.features_(inputs)

    def _functions(self, X: npt.ArrayLike) -> Array:
        """Return the functions at inputs (n, p), shape (n,) or (n, C)."""
        inputs = self._inputs(X)  # first: says what is wrong before anything is looked at
        values: Array = self.features_(inputs) @ self.coef_ + self.intercept_
        return values

    def _drop(self, kept: npt.NDArray[np.bool_], badness: Array) -> None:
        """Note which samples are kept, and the others by how bad they are, the worst first."""
        self.kept_ = kept
        dropped = np.flatnonzero(~kept)
        self.outliers_ = dropped[np.argsort(-badness[dropped], kind='stable')]
