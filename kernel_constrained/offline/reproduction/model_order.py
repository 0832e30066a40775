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
from kernel_constrained.data import load_lidar
from kernel_constrained.offline.reproduction import rates_figure
from kernel_constrained.offline.reproduction.optimum import lidar_inputs
from kernel_constrained.offline.reproduction.parallel import over_cores
from kernel_constrained.offline.reproduction.report import Row

Array = npt.NDArray[np.float64]
Orders = npt.NDArray[np.int64]

SAMPLES = 1_000_000

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
    Case('LIDAR, default, gradient steps, constant', 1,
         {**DEFAULT, 'step': 'gradient', 'decay_after': float('inf')}),
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


def orders_of(case: Case, count: int) -> Orders:
    """Return the model order after each sample, shape (count,)."""
    kernel = Gaussian(0.04 if case.inputs == 1 else 0.5)
    learner = PrimalDualLearner(kernel, **case.settings)
    return learner.prequential(*samples_of(case.inputs, count)).model_order


def row_of(name: str, order: Orders) -> Row:
    """Say how large the order was and when; of powers of ten, and at its largest."""
    ends = [10**e for e in range(3, 10) if 10**e <= len(order)]
    path = ', '.join(str(order[end - 1]) for end in ends)
    first = int(np.argmax(order)) + 1
    return Row(
        f'Corollary 2: model order, {name}', 'bounded',
        f'{path} after {", ".join(f"1e{len(str(end)) - 1}" for end in ends)} samples',
        f'never above {order.max()}, first so after {first:,} samples of {len(order):,}',
    )  # fmt: skip


def run(output: Path, count: int = SAMPLES) -> list[Row]:
    """Learn each stream and look at the order after each sample; write ``model_order.png``."""
    results = over_cores(orders_of, [(case, count) for case in CASES], 'model order')
    orders = {case.name: order for case, order in zip(CASES, results, strict=True)}
    rates_figure.draw_orders(orders, output / 'model_order.png')
    return [row_of(name, order) for name, order in orders.items()]
