# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Corollary 2: with constant step size and budget the model order stays bounded.

The table has 179 training points, which would bound the order anyway. So every sample here is
another one: a row of the table drawn at random, its range shifted by up to half the spacing of the
table; or two inputs drawn uniformly, with a smooth function of them and noise.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core import CVaR, Gaussian, PrimalDualLearner
from kernel_constrained.core.komp import DEPENDENT
from kernel_constrained.data import load_lidar
from kernel_constrained.offline.reproduction import rates_figure
from kernel_constrained.offline.reproduction.optimum import lidar_inputs
from kernel_constrained.offline.reproduction.parallel import over_cores
from kernel_constrained.offline.reproduction.report import Row

Array = npt.NDArray[np.float64]
Orders = npt.NDArray[np.int64]

# Of Fig. 3, but for the step size.
PAPER = {
    'mode': 'paper', 'constraint': CVaR(0.99, 0.8), 'parsimony': 0.008, 'regularization': 1e-5,
}  # fmt: skip
DEFAULT = {'constraint': CVaR(0.9, 0.035), 'regularization': 1e-5}


class Case(NamedTuple):
    """A stream, and what learns it."""

    name: str
    inputs: int
    settings: Mapping[str, Any]


CASES = (
    Case('LIDAR, paper, eta = 0.1 as in Fig. 3', 1, {**PAPER, 'step_size': 0.1}),
    Case('LIDAR, paper, eta = 0.01', 1, {**PAPER, 'step_size': 0.01}),
    Case('LIDAR, paper, eta = 1/sqrt(T) = 0.001', 1, {**PAPER, 'step_size': 0.001}),
    Case('LIDAR, default, recursive steps', 1, DEFAULT),
    Case('two inputs, paper, eta = 0.1', 2, {**PAPER, 'step_size': 0.1, 'parsimony': 0.08}),
)  # fmt: skip


def samples_of(inputs: int, count: int, seed: int = 0) -> tuple[Array, Array]:
    """Draw samples of which no two have the same input; (count, inputs) and (count,)."""
    rng = np.random.default_rng(seed)
    if inputs == 1:
        table, targets = lidar_inputs(), load_lidar().logratio
        rows = rng.integers(len(table), size=count)
        spacing = 1 / (len(table) - 1)
        return table[rows] + spacing * rng.uniform(-0.5, 0.5, (count, 1)), targets[rows]
    x = rng.uniform(-1.0, 1.0, (count, inputs))
    return x, np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]) + 0.1 * rng.standard_normal(count)


class Outcome(NamedTuple):
    """The model order after each sample, shape (count,), and what limits it."""

    order: Orders
    limit: int


def outcome_of(case: Case, count: int) -> Outcome:
    """Learn so many samples of a stream."""
    kernel, (x, y) = Gaussian(0.04 if case.inputs == 1 else 0.5), samples_of(case.inputs, count)
    learner = PrimalDualLearner(kernel, **case.settings)
    order = learner.prequential(x, y).model_order
    return Outcome(order, limit_of(learner, x, y))


def limit_of(learner: PrimalDualLearner, x: Array, y: Array) -> int:
    """Count the samples that lie too far from the span of those before to be projected on it.

    That is the covering number of the corollary's proof: a step is ``eta L`` long at most, with L
    the steepest slope of the loss, so that what lies within ``P eta / L`` of the span of the
    dictionary adds no atom. The learner that counts takes in whatever lies beyond ``novelty``.
    """
    novelty = learner.novelty
    if learner.mode == 'paper':
        steepest = 2 * np.abs(y).max()
        novelty = (learner.parsimony * learner.step_size / steepest) ** 2
    counting = PrimalDualLearner(learner.kernel, novelty=max(novelty, DEPENDENT))
    return counting.partial_fit(x, y).model_order_


def row_of(name: str, outcome: Outcome) -> Row:
    """Say how large the order was up to powers of ten, and what limits it."""
    order = outcome.order
    exponents = [exponent for exponent in range(3, 10) if 10**exponent <= len(order)]
    largest = ', '.join(str(order[: 10**exponent].max()) for exponent in exponents)
    return Row(
        f'Corollary 2: model order, {name}', 'bounded',
        f'at most {largest} within {", ".join(f"1e{exponent}" for exponent in exponents)} samples',
        f'covering number on this stream: {outcome.limit}',
    )  # fmt: skip


def run(output: Path, count: int) -> list[Row]:
    """Learn each stream and look at the order after each sample; write ``model_order.png``."""
    results = over_cores(outcome_of, [(case, count) for case in CASES], 'model order')
    outcomes = {case.name: outcome for case, outcome in zip(CASES, results, strict=True)}
    rates_figure.draw_orders(
        {name: outcome.order for name, outcome in outcomes.items()}, output / 'model_order.png'
    )
    return [row_of(name, outcome) for name, outcome in outcomes.items()]
