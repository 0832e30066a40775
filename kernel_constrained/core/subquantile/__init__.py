# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Subquantile Minimization: learning when a share of the data is corrupted."""

from importlib import import_module
from typing import Any, TYPE_CHECKING

from kernel_constrained.core.subquantile.window import SubquantileLearner

__all__ = ['SubquantileClassifier', 'SubquantileLearner', 'SubquantileRegressor']

if TYPE_CHECKING:
    from kernel_constrained.core.subquantile.classification import SubquantileClassifier
    from kernel_constrained.core.subquantile.regression import SubquantileRegressor
else:
    # Imported when they are asked for: they need scipy, which takes as long as all the rest.
    BATCH = {'SubquantileClassifier': 'classification', 'SubquantileRegressor': 'regression'}

    def __getattr__(name: str) -> Any:
        if name not in BATCH:
            raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
        return getattr(import_module(f'{__name__}.{BATCH[name]}'), name)
