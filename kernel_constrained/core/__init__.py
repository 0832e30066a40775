# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The mathematics: kernels, KOMP and projected stochastic primal-dual learning."""

from typing import Any, TYPE_CHECKING

from kernel_constrained.core import subquantile
from kernel_constrained.core.constraints import conditional_value_at_risk, CVaR, Expectation
from kernel_constrained.core.kernels import Gaussian, Polynomial
from kernel_constrained.core.learner import PrimalDualLearner, Trace
from kernel_constrained.core.loss_history import LossHistory
from kernel_constrained.core.samples import DivergenceError

__all__ = [
    'conditional_value_at_risk',
    'CVaR',
    'DivergenceError',
    'Expectation',
    'Gaussian',
    'LossHistory',
    'Polynomial',
    'PrimalDualLearner',
    'SubquantileClassifier',
    'SubquantileRegressor',
    'Trace',
]

if TYPE_CHECKING:
    from kernel_constrained.core.subquantile import SubquantileClassifier, SubquantileRegressor
else:

    def __getattr__(name: str) -> Any:
        if name not in ('SubquantileClassifier', 'SubquantileRegressor'):
            raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
        return getattr(subquantile, name)  # imported when they are asked for
