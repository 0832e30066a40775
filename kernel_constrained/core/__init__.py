# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The mathematics: kernels, KOMP and projected stochastic primal-dual learning."""

from kernel_constrained.core.constraints import conditional_value_at_risk, CVaR, Expectation
from kernel_constrained.core.kernels import Gaussian, Polynomial
from kernel_constrained.core.learner import DivergenceError, PrimalDualLearner, Trace
from kernel_constrained.core.loss_history import LossHistory
from kernel_constrained.core.subquantile import SubquantileClassifier, SubquantileRegressor

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
