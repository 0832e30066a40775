# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Fig. 3 with several methods, medians over splits with bands of 10 to 90 %."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kernel_constrained.data import load_lidar
from kernel_constrained.offline.lidar_report import RANGE_MAX, RANGE_MIN
from kernel_constrained.offline.reproduction.lidar_runs import (
    DEFAULT,
    GRID,
    looks_of,
    METHODS,
    PAPER,
    POLK,
    Setting,
    Split,
)

Array = npt.NDArray[np.float64]

COLORS = {method: f'C{number}' for number, method in enumerate(METHODS)}
# Where both have the same course, the one below shows through.
STYLES = {POLK: '--'}


def draw(setting: Setting, splits: Sequence[Split], path: Path) -> None:
    """Write objective, violation, order, train and test error against samples, and the function.

    Parameters
    ----------
    setting
        The bound, and how long was learned.
    splits
        What came of it.
    path
        Of the PNG file.
    """
    figure = Figure(figsize=(13, 7.5), layout='constrained')
    panels = figure.subplots(2, 3)
    (objective, violation, order), (train, test, function) = panels
    samples = setting.checkpoints
    tolerance = np.array([[split.tolerance] for split in splits])
    for method in METHODS:
        for axes, name in ((objective, 'objective'), (order, 'order'), (train, 'train'),
                           (test, 'test')):  # fmt: skip
            _draw_band(axes, samples, looks_of(splits, method, name), method)
        cvar = looks_of(splits, method, 'cvar')
        _draw_band(violation, samples, cvar - tolerance, method)
    best = float(np.median([split.objective for split in splits]))
    objective.axhline(best, color='k', linewidth=0.8, linestyle=':', label='optimum')
    violation.axhline(0.0, color='k', linewidth=0.8)
    violation.set(title=rf'(b) violation: CVaR$_{{{setting.significance:g}}}$ $-\ \gamma$')
    if setting.tolerance is None:  # violations are small there
        violation.set_yscale('symlog', linthresh=0.01)
    objective.set(title='objective', yscale='log')
    order.set(title='(c) model order', ylim=(0, None))
    train.set(title='(a) mean squared error, training points', yscale='log')
    test.set(title='(a) mean squared error, test points', yscale='log')
    for axes in panels.ravel()[:-1]:
        axes.set(xscale='log', xlabel='samples')
        axes.grid(alpha=0.3)
    _draw_functions(function, splits)
    handles, labels = objective.get_legend_handles_labels()
    figure.legend(handles, labels, loc='outside lower center', ncols=len(labels), fontsize=9)
    figure.savefig(path, dpi=75, metadata={'Software': None})


def _draw_band(axes: Axes, x: npt.ArrayLike, values: Array, method: str) -> None:
    """Draw the median over the splits, and the band between the 10 and 90 % quantiles."""
    low, median, high = np.quantile(values, [0.1, 0.5, 0.9], axis=0)
    axes.fill_between(x, low, high, color=COLORS[method], alpha=0.15, linewidth=0)
    axes.plot(x, median, STYLES.get(method, '-'), color=COLORS[method], label=method)


def _draw_functions(axes: Axes, splits: Sequence[Split]) -> None:
    """Draw the table, what was learned of it, and the dictionaries of the first split below."""
    lidar = load_lidar()
    axes.plot(lidar.range, lidar.logratio, '.', color='0.6', markersize=4)
    lowest = lidar.logratio.min()
    for row, method in enumerate((PAPER, DEFAULT), start=1):
        curves = np.array([split.courses[method].curve for split in splits])
        _draw_band(axes, RANGE_MIN + GRID * (RANGE_MAX - RANGE_MIN), curves, method)
        atoms = RANGE_MIN + splits[0].courses[method].atoms * (RANGE_MAX - RANGE_MIN)
        level = np.full(len(atoms), lowest - 0.05 * row)
        axes.plot(atoms, level, '|', color=COLORS[method], markersize=7)
    axes.set(title='learned functions, dictionaries', xlabel='range [m]')
    axes.grid(alpha=0.3)
