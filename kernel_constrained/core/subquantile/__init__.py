# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Subquantile Minimization: learning when a share of the data is corrupted."""

from kernel_constrained.core.subquantile.classification import SubquantileClassifier
from kernel_constrained.core.subquantile.regression import SubquantileRegressor
from kernel_constrained.core.subquantile.window import SubquantileLearner

__all__ = ['SubquantileClassifier', 'SubquantileLearner', 'SubquantileRegressor']
