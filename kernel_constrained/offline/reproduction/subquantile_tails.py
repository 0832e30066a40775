# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The two papers on the same data: when to bound the tail (CVaR), when to trim it (subquantile).

The LIDAR table, whose noise grows with range, clean and with a fifth of its training targets
corrupted. Losses are those of clean rows that were not trained on.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core import (
    conditional_value_at_risk,
    CVaR,
    Gaussian,
    PrimalDualLearner,
    SubquantileRegressor,
)
from kernel_constrained.data import lidar_split, load_lidar
from kernel_constrained.offline.reproduction.optimum import lidar_inputs, optimum_of, Problem
from kernel_constrained.offline.reproduction.parallel import over_cores

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

BANDWIDTH = 0.08
SIGNIFICANCE, CORRUPTION, EPOCHS = 0.9, 0.2, 50
# Log ratios are from -0.95 to 0.03.
SHIFT = 0.5
KINDS = CLEAN, SHIFTED, RANDOM = 'clean', 'shifted', 'random'
RIDGE, BOUNDED, EXACT, TRIMMED = METHODS = (
    'kernel ridge regression', 'CVaR bounded', 'subquantile, exact count', 'subquantile, default',
)  # fmt: skip
# Where learned functions are compared, in scaled range; far is beyond 600 m.
GRID = np.linspace(0.0, 1.0, 331)
FAR = (600 - 390) / 330


class Setting(NamedTuple):
    """How smooth a function is asked for, and how far below its own CVaR the bound is.

    Attributes
    ----------
    regularization
        Lambda of ``mean loss + lambda / 2 |f|^2``.
    ratio
        Gamma over the CVaR of the training losses without a bound.
    """

    regularization: float
    ratio: float


# A model too smooth to follow the table, where it matters which losses it is asked to keep small;
# and one that can follow it, where almost nothing below the CVaR it has anyway is feasible.
SMOOTH, FREE = Setting(0.03, 0.85), Setting(1e-3, 0.97)


class Fit(NamedTuple):
    """What one method made of one split.

    Attributes
    ----------
    curve : (grid,)
        The function.
    losses : (test rows,)
        Squared errors at clean rows that were not trained on.
    kept : (training rows,)
        Rows that were not dropped.
    over_bound
        CVaR of the training losses over gamma.
    """

    curve: Array
    losses: Array
    kept: Mask
    over_bound: float

    @property
    def cvar(self) -> float:
        """Return the CVaR of the test losses."""
        return conditional_value_at_risk(self.losses, SIGNIFICANCE)


class Case(NamedTuple):
    """One split: training rows (n,), their targets (n,), which are corrupted (n,); the fits."""

    rows: npt.NDArray[np.int64]
    targets: Array
    corrupted: Mask
    fits: dict[str, Fit]


# The cases of each setting and kind of corruption, one for each split.
Cases = dict[tuple[Setting, str], list[Case]]


def corrupt(targets: Array, kind: str, seed: int) -> tuple[Array, Mask]:
    """Return targets (n,) of which a fifth is corrupted, and which ones (n,)."""
    random, table = np.random.default_rng(seed), load_lidar().logratio
    corrupted = np.zeros(len(targets), dtype=bool)
    if kind != CLEAN:
        corrupted[random.permutation(len(targets))[: round(CORRUPTION * len(targets))]] = True
    wrong = random.uniform(table.min(), table.max(), len(targets))
    return np.where(corrupted, targets + SHIFT if kind == SHIFTED else wrong, targets), corrupted


def case_of(setting: Setting, kind: str, seed: int) -> Case:
    """Let each method learn one split."""
    split, inputs, table = lidar_split(seed), lidar_inputs(), load_lidar().logratio
    rows, test = split.train, np.concatenate([split.test, split.left_out])
    targets, corrupted = corrupt(table[rows], kind, seed)
    centre = float(np.median(targets))
    problem = Problem(inputs[rows], targets - centre, BANDWIDTH, setting.regularization)
    tolerance = setting.ratio * optimum_of(problem).cvar(problem, SIGNIFICANCE)

    def fit_of(function: PrimalDualLearner | SubquantileRegressor, kept: Mask) -> Fit:
        losses = (function.predict(problem.x) - problem.y) ** 2
        over_bound = conditional_value_at_risk(losses, SIGNIFICANCE) / tolerance
        errors = function.predict(inputs[test]) + centre - table[test]
        curve = function.predict(GRID[:, None]) + centre
        return Fit(curve, errors**2, kept, over_bound)

    fits, everything = {}, np.ones(len(rows), dtype=bool)
    for method, constraint in ((RIDGE, None), (BOUNDED, CVaR(SIGNIFICANCE, tolerance))):
        learner = PrimalDualLearner(
            Gaussian(BANDWIDTH), constraint=constraint, regularization=setting.regularization
        )
        fits[method] = fit_of(learner.partial_fit(*problem.epochs(EPOCHS, seed)), everything)
    for method, refine in ((EXACT, False), (TRIMMED, True)):
        regressor = SubquantileRegressor(
            Gaussian(BANDWIDTH), corruption=CORRUPTION, refine=refine,
            regularization=setting.regularization / 2,
        ).fit(problem.x, problem.y)  # fmt: skip
        fits[method] = fit_of(regressor, regressor.kept_)
    return Case(rows, targets, corrupted, fits)


def cases(seeds: Sequence[int]) -> Cases:
    """Do so for many splits, each kind of corruption, and both settings."""
    for constraint in (None, CVaR(SIGNIFICANCE, 1.0)):
        PrimalDualLearner(Gaussian(BANDWIDTH), constraint=constraint).warm_up()
    keys = [(setting, kind) for setting in (SMOOTH, FREE) for kind in KINDS]
    tasks = [(*key, seed) for key in keys for seed in seeds]
    results = iter(over_cores(case_of, tasks, 'bound or trim'))
    return {key: [next(results) for _ in seeds] for key in keys}
