# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of the second paper: convergence, error against samples, bounding beside trimming."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kernel_constrained.data import load_lidar
from kernel_constrained.offline.lidar_report import RANGE_MAX, RANGE_MIN
from kernel_constrained.offline.reproduction.subquantile_convergence import (
    ALTERNATING,
    Course,
    Courses,
    FROM,
    PLAIN,
    PROBLEMS,
    SOLVERS,
    TO,
)
from kernel_constrained.offline.reproduction.subquantile_errors import (
    column,
    Errors,
    KINDS,
    ORACLE,
    OURS,
    PUBLISHED,
    slope_of,
)
from kernel_constrained.offline.reproduction.subquantile_errors import (
    PLAIN as UNTRIMMED,
)
from kernel_constrained.offline.reproduction.subquantile_tails import (
    BOUNDED,
    Case,
    Cases,
    CLEAN,
    EXACT,
    GRID,
    Mask,
    METHODS,
    RIDGE,
    SHIFTED,
    SMOOTH,
    TRIMMED,
)

Array = npt.NDArray[np.float64]

LEARNER_STYLES = {
    OURS: ('C0', 'o-'), PUBLISHED: ('C1', 'o-'), UNTRIMMED: ('C2', 'o-'), ORACLE: ('k', 'x--'),
}  # fmt: skip
TAIL_STYLES = {
    RIDGE: ('0.45', '--'), BOUNDED: ('C0', '-'), EXACT: ('C1', ':'), TRIMMED: ('C1', '-'),
}  # fmt: skip


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=75, metadata={'Software': None})


# -- convergence --------------------------------------------------------------------------------


def draw_convergence(courses: Courses, path: Path) -> None:
    """Write the gap of the objective against iterations, by loss and ridge."""
    figure = Figure(figsize=(13, 7), layout='constrained')
    panels = figure.subplots(len(PROBLEMS), 3)
    for row, (loss, problem) in zip(panels, PROBLEMS.items(), strict=True):
        for axes, ridge in zip(row, problem.ridges, strict=True):
            for number, solver in enumerate(SOLVERS):
                _draw_gaps(axes, courses[loss, ridge, solver], f'C{number}', solver)
            plain = courses[loss, ridge, PLAIN][0]
            _draw_rate(axes, plain)
            axes.set(
                title=rf'{loss} loss, $\lambda = {ridge:g}$, $\kappa = {plain.kappa:.0f}$',
                yscale='log', ylim=(1e-12, 5.0), xlim=(0, 1.05 * plain.steps_to(1e-10)),
                xlabel='iterations',
            )  # fmt: skip
            axes.grid(alpha=0.3)
        row[0].set_ylabel('objective minus final, over the first')
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc='outside lower center', ncols=len(labels))
    _save(figure, path)


def _draw_gaps(axes: Axes, members: Sequence[Course], color: str, solver: str) -> None:
    """Draw the course of each seed, the first one in full colour."""
    marker = '.' if solver == ALTERNATING else ''
    for seed, course in reversed(list(enumerate(members))):
        style = {'alpha': 0.25, 'linewidth': 0.7} if seed else {'label': solver}
        share = np.maximum(course.gap / course.gap[0], 1e-16)
        axes.plot(np.arange(1, len(share) + 1), share, color=color, marker=marker, **style)


def _draw_rate(axes: Axes, plain: Course) -> None:
    """Draw the line of ``1 - 2 / kappa`` next to the course that it is of."""
    first, last = plain.steps_to(FROM), plain.steps_to(TO)
    start = 10.0 * plain.gap[first - 1] / plain.gap[0]
    line = start * (1.0 - 2.0 / plain.kappa) ** np.array([0.0, last - first])
    axes.plot([first, last], line, 'k--', linewidth=1.2, label=r'$(1 - 2/\kappa)^k$')


# -- error against samples ----------------------------------------------------------------------


def draw_errors(counts: Sequence[int], errors: Errors, path: Path) -> None:
    """Write both errors of each method against n, by kind of corruption."""
    figure = Figure(figsize=(11, 8), layout='constrained')
    panels = figure.subplots(2, len(KINDS), sharex=True, sharey='row')
    labels = {
        'mean_square': r'mean square of $\hat f - f^*$',
        'leading': r'$|\hat f - f^*|_\mathcal{H}^2$ on 10 eigenfunctions',
    }
    for row, (name, measured) in zip(panels, labels.items(), strict=True):
        row[0].set_ylabel(measured)
        for axes, kind in zip(row, KINDS, strict=True):
            of_kind = {method: errors[kind, method] for method in LEARNER_STYLES}
            _draw_errors_of(axes, counts, of_kind, name)
            axes.set(xscale='log', yscale='log', title=f'20 % of targets {kind}')
            axes.grid(alpha=0.3)
            axes.legend(title='slope', fontsize=8, loc='lower left')
        lowest = min(column(members, name).min() for members in errors.values())
        row[0].set_ylim(bottom=lowest / 10)  # room for legends
    for axes in panels[1]:
        axes.set_xlabel('samples n')
    _save(figure, path)


def _draw_errors_of(
    axes: Axes, counts: Sequence[int], errors: Mapping[str, Array], name: str
) -> None:
    """Draw the median of each method, every seed as a dot; and the slope of the theorem."""
    for method, (color, line) in LEARNER_STYLES.items():
        values, slope = column(errors[method], name), slope_of(counts, errors[method], name)
        axes.plot(counts, values, '.', color=color, markersize=4, alpha=0.4)
        axes.plot(counts, np.median(values, axis=1), line, color=color, label=f'{method}: {slope}')
    start = 2.0 * np.median(column(errors[OURS], name)[0])
    claimed = start * (np.array(counts) / counts[0]) ** -0.5
    axes.plot(counts, claimed, 'k:', label='Theorem 7: -0.5')


# -- bound or trim ------------------------------------------------------------------------------


def draw_tails(cases: Cases, path: Path) -> None:
    """Write fits to the first split and the tails of all test losses, clean and corrupted."""
    figure = Figure(figsize=(12, 8), layout='constrained')
    panels = figure.subplots(2, 2, gridspec_kw={'width_ratios': (3, 2)})
    titles = {
        CLEAN: 'clean: bound the tail',
        SHIFTED: '20 % of targets shifted: trim it',
    }
    for (fits, tails), (kind, title) in zip(panels, titles.items(), strict=True):
        _draw_fits(fits, cases[SMOOTH, kind][0])
        _draw_tails(tails, cases[SMOOTH, kind])
        fits.set(title=title, xlabel='range [m]', ylabel='log ratio', ylim=(-1.05, 0.6))
        tails.set(
            title='clean test losses of all splits', xlabel='squared error above',
            ylabel='share of the test rows', xscale='log', yscale='log',
            xlim=(1e-4, 1.0), ylim=(2e-3, 1.0),
        )  # fmt: skip
        tails.legend(title='medians of mean, CVaR at 0.9', fontsize=8, loc='lower left')
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc='outside lower center', ncols=4, fontsize=9)
    _save(figure, path)


def _draw_fits(axes: Axes, case: Case) -> None:
    """Draw the functions; training rows that are corrupted, and that were dropped, stand out."""
    ranges = load_lidar().range[case.rows]
    dropped = ~case.fits[TRIMMED].kept
    marks: tuple[tuple[Mask, dict[str, Any], str], ...] = (
        (~case.corrupted, {'marker': '.', 'color': '0.6', 's': 18}, 'training rows'),
        (case.corrupted, {'marker': '.', 'color': 'C3', 's': 30}, 'corrupted'),
        (dropped, {'marker': 'o', 'facecolors': 'none', 'edgecolors': 'C1', 's': 60},
         'dropped by the subquantile, default'),
    )  # fmt: skip
    for rows, style, label in marks:
        axes.scatter(ranges[rows], case.targets[rows], label=label, linewidths=0.9, **style)
    for method in METHODS:
        color, line = TAIL_STYLES[method]
        axes.plot(RANGE_MIN + GRID * (RANGE_MAX - RANGE_MIN), case.fits[method].curve, line,
                  color=color, label=method)  # fmt: skip
    axes.grid(alpha=0.3)


def _draw_tails(axes: Axes, members: Sequence[Case]) -> None:
    """Draw which share of the test losses is above a value, for all splits together."""
    for method in METHODS:
        fits, (color, line) = [case.fits[method] for case in members], TAIL_STYLES[method]
        losses = np.sort(np.concatenate([fit.losses for fit in fits]))
        share = 1.0 - np.arange(len(losses)) / len(losses)
        mean = np.median([fit.losses.mean() for fit in fits])
        cvar = np.median([fit.cvar for fit in fits])
        axes.step(losses, share, line, color=color, label=f'{method}: {mean:.4f}, {cvar:.3f}')
    axes.grid(alpha=0.3)
