# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of the SVM experiment, what one run of each ends with, and how it got there."""

import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core import (
    conditional_value_at_risk,
    CVaR,
    Gaussian,
    PrimalDualLearner,
)
from kernel_constrained.offline.reproduction.svm_draws import CLASSES, Draw

Array = npt.NDArray[np.float64]

# Section V. The paper adds up the gradients of a mini-batch of four, the learner averages them:
# hence a step four times as long, with the same compression budget 3.7 * 0.009^2.
BATCH, ETA, PARSIMONY = 4, 0.009, 3.7
COMMON = {
    'kernel': Gaussian(0.3), 'loss': 'multiclass_hinge', 'classes': CLASSES, 'batch_size': BATCH,
    'regularization': 1e-4, 'dual_regularization': 1e-4,
}  # fmt: skip
PUBLISHED = {'mode': 'paper', 'step_size': BATCH * ETA, 'parsimony': PARSIMONY / BATCH**2}
# Three epochs are short for the dual variable: it has to move faster than by default.
OURS = {'dual_step_size': 0.3}

FREE, HELD, POLK, EQ23, PENALTY = 'free', 'held', 'polk', 'eq23', 'penalty'
METHODS: dict[str, dict[str, Any]] = {
    FREE: {},
    HELD: OURS,
    POLK: PUBLISHED,
    EQ23: PUBLISHED,
    PENALTY: {**PUBLISHED, 'mode': 'penalty'},
}
NAMES = {
    FREE: 'default, unconstrained',
    HELD: 'primal-dual, default',
    POLK: 'POLK',
    EQ23: 'primal-dual, paper mode',
    PENALTY: 'penalty method',
}

# Confident: the highest score exceeds the second by the margin that the hinge asks for.
MARGIN = 1.0
UNSURE, SURE = 0.7, 0.9


class Outcome(NamedTuple):
    """What a function is worth; shares are of the test samples."""

    objective: float
    cvar: float
    test_cvar: float
    accuracy: float
    order: int
    confident_unsure: tuple[int, int]  # samples of posterior < 0.7: confident ones, all
    confident_sure: tuple[int, int]  # samples of posterior > 0.9: confident ones, all
    confident_wrong: tuple[int, int]  # confident samples: those misclassified, all


class Curve(NamedTuple):
    """A method along its samples: an entry for each look."""

    samples: Array
    objective: Array
    cvar: Array
    order: Array
    test_error: Array
    dual_variable: Array


class Result(NamedTuple):
    """All methods on one draw, under one bound."""

    seed: int
    variance: float
    best_accuracy: float
    tolerance: float
    outcomes: dict[str, Outcome]

    @property
    def binds(self) -> bool:
        """Whether the unconstrained function breaks the bound."""
        return self.outcomes[FREE].cvar > self.tolerance


def significance_of(variance: float) -> float:
    """Alpha: the paper's, and where samples hardly overlap one whose tail is inside that."""
    return 0.9 if variance > 0.1 else 0.95


def tolerance_of(variance: float, free_cvar: float) -> float:
    """Choose a gamma below the CVaR of the unconstrained function.

    No less than 1, the CVaR of the function 0: below that a bound may have no solution.
    """
    bound = 0.9 * free_cvar if variance > 0.1 else 1.0 + 0.6 * (free_cvar - 1.0)
    return max(bound, 1.0)


def learner_of(method: str, significance: float, tolerance: float, **other: Any) -> Any:
    """Make the learner of a method; ``other`` settings take precedence."""
    constraint = None
    if method not in (FREE, POLK):
        constraint = CVaR(significance, tolerance)
    return PrimalDualLearner(**{**COMMON, 'constraint': constraint, **METHODS[method], **other})


def hinge_losses(scores: Array, label: Array) -> Array:
    """Multi-class hinge losses (Eq. 72) of scores (n, 5)."""
    rows, columns = np.arange(len(label)), label.astype(int)
    others = scores.copy()
    others[rows, columns] = -np.inf
    return np.maximum(0.0, 1.0 + others.max(axis=1) - scores[rows, columns])


def margins(scores: Array) -> Array:
    """How much the highest score exceeds the second."""
    ordered = np.partition(scores, -2, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])


def objective_of(learner: PrimalDualLearner, losses: Array) -> float:
    """Mean loss plus ``regularization / 2 |f|^2``."""
    gram = learner.kernel(learner.dictionary_, learner.dictionary_)
    norm = np.sum(learner.weights_ * (gram @ learner.weights_))
    return float(losses.mean() + 0.5 * learner.regularization * norm)


def outcome_of(learner: PrimalDualLearner, draw: Draw) -> Outcome:
    """Judge what was learned on the training and the test samples."""
    alpha = significance_of(draw.variance)
    losses = hinge_losses(learner.decision_function(draw.x), draw.label)
    scores = learner.decision_function(draw.test_x)
    wrong = scores.argmax(axis=1) != draw.test_label
    confident = margins(scores) >= MARGIN
    certainty = draw.posterior(draw.test_x).max(axis=1)

    def share(of: npt.NDArray[np.bool_], among: npt.NDArray[np.bool_]) -> tuple[int, int]:
        return int(np.sum(of & among)), int(np.sum(among))

    return Outcome(
        objective_of(learner, losses),
        conditional_value_at_risk(losses, alpha),
        conditional_value_at_risk(hinge_losses(scores, draw.test_label), alpha),
        float(1.0 - wrong.mean()),
        learner.model_order_,
        share(confident, certainty < UNSURE),
        share(confident, certainty > SURE),
        share(wrong, confident),
    )


def learned(draw: Draw, method: str, tolerance: float, **other: Any) -> PrimalDualLearner:
    """Learn the three epochs."""
    learner = learner_of(method, significance_of(draw.variance), tolerance, **other)
    return learner.partial_fit(draw.x[draw.order], draw.label[draw.order])


def compare(draw: Draw, seed: int) -> Result:
    """Run every method on a draw, under a bound that the unconstrained function breaks."""
    free = outcome_of(learned(draw, FREE, np.nan), draw)
    tolerance = tolerance_of(draw.variance, free.cvar)
    outcomes = {
        method: outcome_of(learned(draw, method, tolerance), draw)
        for method in METHODS
        if method != FREE
    }
    return Result(seed, draw.variance, draw.best_accuracy, tolerance, {FREE: free, **outcomes})


def curve_of(
    draw: Draw, method: str, tolerance: float, other: dict[str, Any], looks: int
) -> Curve:
    """Learn the three epochs, and look at the function so many times, evenly spaced."""
    alpha = significance_of(draw.variance)
    learner = learner_of(method, alpha, tolerance, **other)
    seen = []
    for rows in np.array_split(draw.order, looks):
        learner.partial_fit(draw.x[rows], draw.label[rows])
        losses = hinge_losses(learner.decision_function(draw.x), draw.label)
        error = np.mean(learner.predict(draw.test_x) != draw.test_label)
        seen.append((
            learner.samples_, objective_of(learner, losses),
            conditional_value_at_risk(losses, alpha), learner.model_order_, error,
            learner.dual_variable_,
        ))  # fmt: skip
    return Curve(*np.array(seen, dtype=float).T)


def seconds_of(draw: Draw, tolerance: float, repeats: int = 3) -> float:
    """Return the processor time of one constrained run, the shortest of several."""
    times = []
    for _ in range(repeats):
        before = time.thread_time()
        learned(draw, HELD, tolerance)
        times.append(time.thread_time() - before)
    return min(times)
