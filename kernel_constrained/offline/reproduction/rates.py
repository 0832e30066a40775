# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The rates of Theorem 2 and the model order of Corollary 2, beside what was measured."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kernel_constrained.offline.reproduction import model_order, rates_figure
from kernel_constrained.offline.reproduction.accumulation import (
    LIMITS,
    measure,
    Program,
    programs,
    Runs,
    slope_of,
    Sums,
)
from kernel_constrained.offline.reproduction.optimum import lidar_problem, Problem
from kernel_constrained.offline.reproduction.report import Row
from kernel_constrained.offline.reproduction.slopes import Slope

REGULARIZATION = 0.1
LENGTHS = tuple(round(10**e) for e in np.arange(3.0, 6.1, 0.5))
SEEDS = 10


def text_of(problem: Problem, found: list[Program], lengths: Sequence[int], runs: Runs) -> str:
    """Lay out the medians of every length, and the slopes."""
    seeds = next(iter(runs.values())).shape[1]
    lines = [
        f'LIDAR, {len(problem.x)} samples, lambda {problem.regularization:g}; '
        f'medians of {seeds} seeds; slopes with two standard errors'
    ]
    for program in found:
        lines += [
            '',
            f'{program.mode}: {bounded_by(program)} at most {program.tolerance:.4g}; '
            f'S(f*) {program.best.objective:.4g}, multiplier {program.best.dual_variables[0]:.3g}',
            '        T  sub-optimality  / T^1/2    absolute   violation  / T^3/4  order  at T/10',
        ]
        for length, members in zip(lengths, runs[program.mode], strict=True):
            s = Sums(*np.median(members, axis=0))
            lines.append(
                f'{length:9d} {s.suboptimality:15.2f} {s.suboptimality / length**0.5:8.3f} '
                f'{s.absolute:11.2f} {s.violation:11.2f} {s.violation / length**0.75:8.3f} '
                f'{s.order:6.0f} {s.order_before:8.0f}'
            )
        names = ('suboptimality', 'absolute', 'violation', 'order')
        slopes = (f'{name} {slope_of(lengths, runs[program.mode], name)}' for name in names)
        lines.append(f'slopes: {", ".join(slopes)}')
    return '\n'.join(lines) + '\n'


def bounded_by(program: Program) -> str:
    """Say what the constraint bounds."""
    return f'CVaR at {program.level:g}' if program.level > 0 else 'mean loss'


def rows_of(found: list[Program], lengths: Sequence[int], runs: Runs) -> list[Row]:
    """Compare the slopes with the theorem's."""
    claims = {
        'suboptimality': ('Theorem 2: sum of S(f_t) - S(f*)', 'grows as T^0.5 at most'),
        'violation': ('Theorem 2: sum of violations', 'grows as T^0.75 at most'),
    }
    rows = []
    for name, (what, paper) in claims.items():
        for program in found:
            slope = slope_of(lengths, runs[program.mode], name)
            rows.append(Row(f'{what}, mode {program.mode}', paper, f'T^({slope})',
                            verdict(slope, LIMITS[name], program)))  # fmt: skip
    return rows


def verdict(slope: Slope, limit: float, program: Program) -> str:
    """Say whether the bound holds within two standard errors, and for which program."""
    held = 'holds' if slope.value - slope.uncertainty <= limit else 'does not hold'
    return f'{held}; f* is the optimum with the {bounded_by(program)} bounded'


def run(output: Path, lengths: Sequence[int] = LENGTHS, seeds: int = SEEDS) -> list[Row]:
    """Measure the rates of Theorem 2 and the model order of Corollary 2.

    Writes ``rates.png``, ``rates.txt`` and ``model_order.png`` to ``output``.

    Returns
    -------
    list of Row
        The theorem's exponents and those measured; the bound on the order, and the orders.
    """
    problem = lidar_problem(REGULARIZATION)
    found = programs(problem)
    runs = measure(problem, found, lengths, seeds)
    (output / 'rates.txt').write_text(text_of(problem, found, lengths, runs), encoding='utf-8')
    rates_figure.draw(lengths, runs, output / 'rates.png')
    return [*rows_of(found, lengths, runs), *model_order.run(output, max(lengths))]
