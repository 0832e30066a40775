# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The second paper: convergence and error of subquantile minimisation, and trimming beside CVaR.

Rathnashyam and Gittens, Theorems 7 and 9. Figures are medians over seeds.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kernel_constrained.offline.reproduction import subquantile_figure
from kernel_constrained.offline.reproduction.lidar import spread
from kernel_constrained.offline.reproduction.optimum import lidar_inputs
from kernel_constrained.offline.reproduction.report import Row
from kernel_constrained.offline.reproduction.subquantile_convergence import (
    ALTERNATING,
    CLOSE,
    Course,
    Courses,
    courses,
    NESTEROV,
    PLAIN,
    PROBLEMS,
    SAMPLES,
)
from kernel_constrained.offline.reproduction.subquantile_data import CORRUPTION
from kernel_constrained.offline.reproduction.subquantile_errors import (
    column,
    COUNTS,
    Errors,
    KINDS,
    measure,
    OURS,
    slope_of,
)
from kernel_constrained.offline.reproduction.subquantile_errors import (
    METHODS as LEARNERS,
)
from kernel_constrained.offline.reproduction.subquantile_tails import (
    Case,
    Cases,
    cases,
    FAR,
    METHODS,
    SMOOTH,
)

SEEDS = 10
THEOREMS = {'squared': 'Theorem 7', 'logistic': 'Theorem 9'}


def run(output: Path, counts: Sequence[int] = COUNTS, seeds: int = SEEDS) -> list[Row]:
    """Measure what the second paper claims.

    Writes ``subquantile_convergence.png``, ``subquantile_errors.png`` and
    ``subquantile_tails.png`` to ``output``.

    Returns
    -------
    list of Row
        Rates of convergence, slopes of the error against n, and the tails of test losses.
    """
    converged, errors, tails = courses(seeds), measure(counts, seeds), cases(range(seeds))
    subquantile_figure.draw_convergence(converged, output / 'subquantile_convergence.png')
    subquantile_figure.draw_errors(counts, errors, output / 'subquantile_errors.png')
    subquantile_figure.draw_tails(tails, output / 'subquantile_tails.png')
    return [*rows_of_rates(converged), *rows_of_errors(counts, errors), *rows_of_tails(tails)]


# -- Theorems 7 and 9: convergence --------------------------------------------------------------


def rows_of_rates(found: Courses) -> list[Row]:
    """Compare the measured factor per step with ``1 - 2 / kappa`` and with the paper's."""
    rows = []
    for loss, problem in PROBLEMS.items():
        for ridge in problem.ridges:
            plain = found[loss, ridge, PLAIN]
            rate = np.median([course.rate for course in plain])
            kappa = np.median([course.kappa for course in plain])
            claimed = math.log(CLOSE) / math.log(problem.contraction)
            rows.append(
                Row(
                    f'{THEOREMS[loss]}: {loss} loss, lambda {ridge:g}',
                    f'linear, factor {problem.contraction:g} per step: {claimed:.0f} steps to '
                    f'{CLOSE:g}',
                    f'linear, factor {rate:.4f}, 1 - 2/kappa = {1 - 2 / kappa:.4f}, kappa = '
                    f'{kappa:.0f}: {(1 - rate) * kappa / 2:.2f} of 2/kappa; {steps(plain)} steps '
                    f'to {CLOSE:g}',
                    f'Nesterov {steps(found[loss, ridge, NESTEROV])} steps, alternating '
                    f'{steps(found[loss, ridge, ALTERNATING])} rounds to '
                    f'{against(found[loss, ridge, ALTERNATING], plain)} of its final value; '
                    f'{spread([course.corrupted for course in plain], 0)} of '
                    f'{CORRUPTION * SAMPLES:.0f} corrupted kept',
                )
            )  # fmt: skip
    return rows


def steps(members: Sequence[Course]) -> str:
    """Say after how many iterations the gap is small."""
    return spread([course.steps_to(CLOSE) for course in members], 0)


def against(members: Sequence[Course], others: Sequence[Course]) -> str:
    """Say how the final values compare, seed by seed."""
    ratios = [one.final / other.final for one, other in zip(members, others, strict=True)]
    return spread(ratios, 3)


# -- Theorem 7: error against samples -----------------------------------------------------------


def rows_of_errors(counts: Sequence[int], errors: Errors) -> list[Row]:
    """Compare how the errors fall with the paper's n^-1/2."""
    return [
        row_of_error(counts, errors, kind, method) for kind in KINDS for method in LEARNERS
    ]  # fmt: skip


def row_of_error(counts: Sequence[int], errors: Errors, kind: str, method: str) -> Row:
    """Say how fast the errors of one method fall, and where they end."""
    members = errors[kind, method]
    mean_square = np.median(column(members, 'mean_square'), axis=1)
    return Row(
        f'Theorem 7: error, {CORRUPTION:.0%} of targets {kind}; {method}',
        'squared RKHS distance falls as n^-0.5 or faster' if method == OURS else '',
        f'n^({slope_of(counts, members, "leading")}) on 10 eigenfunctions; mean square '
        f'n^({slope_of(counts, members, "mean_square")})',
        f'mean square {mean_square[0]:.4f} at n = {counts[0]}, {mean_square[-1]:.5f} at '
        f'{counts[-1]}; distance in the whole RKHS n^({slope_of(counts, members, "whole")})',
    )  # fmt: skip


# -- bound or trim ------------------------------------------------------------------------------


def rows_of_tails(found: Cases) -> list[Row]:
    """List mean and CVaR of the clean test losses of each method."""
    return [
        row_of_tail(members, method, f'{kind}, {"smooth" if setting == SMOOTH else "free"} model')
        for (setting, kind), members in found.items()
        for method in METHODS
    ]


def row_of_tail(members: Sequence[Case], method: str, data: str) -> Row:
    """Say how large the losses are on clean rows, and what was dropped."""
    fits = [case.fits[method] for case in members]
    over_bound = spread([fit.over_bound for fit in fits], 2)
    return Row(
        f'LIDAR, {data}: {method}', '',
        f'clean test losses: mean {spread([fit.losses.mean() for fit in fits], 4)}, CVaR at 0.9 '
        f'{spread([fit.cvar for fit in fits], 3)}',
        f'CVaR of the training losses {over_bound} of gamma{dropped_by(members, method)}',
    )  # fmt: skip


def dropped_by(members: Sequence[Case], method: str) -> str:
    """Say how many rows were dropped on average, and which; nothing if none were."""
    counts = []
    for case in members:
        dropped = ~case.fits[method].kept
        far = lidar_inputs()[case.rows, 0] > FAR
        counts.append([dropped.sum(), (dropped & case.corrupted).sum(), (dropped & far).sum()])
    rows, corrupted, beyond = np.mean(counts, axis=0)
    if rows == 0:
        return ''
    return f'; {rows:.0f} rows dropped, {corrupted:.0f} corrupted, {beyond:.0f} beyond 600 m'
