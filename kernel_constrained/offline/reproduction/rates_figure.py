# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of the rates: sums against the length of the stream, model order against samples."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kernel_constrained.offline.reproduction.accumulation import column, LIMITS, Runs, slope_of

PANELS = (
    ('suboptimality', r'sub-optimality: $\sum_t\, S(f_t) - S(f^*)$', 'slope 1/2'),
    ('violation', r'violation: $\sum_t\, [g(f_t)]_+$', 'slope 3/4'),
)


def draw(lengths: Sequence[int], runs: Runs, path: Path) -> None:
    """Write the sums and the model order of each mode against T, and the theorem's slopes."""
    figure = Figure(figsize=(13, 4.5), layout='constrained')
    *sums, orders = figure.subplots(1, 3)
    for axes, (name, label, reference) in zip(sums, PANELS, strict=True):
        _draw_runs(axes, lengths, runs, name)
        start = 1.5 * np.median(column(runs['default'], name)[0])
        line = start * (np.array(lengths) / lengths[0]) ** LIMITS[name]
        axes.plot(lengths, line, 'k--', linewidth=1, label=reference)
        axes.set(yscale='log', title=label)
        axes.legend(title='slope')
    _draw_runs(orders, lengths, runs, 'order')
    orders.set(title='model order at T')
    orders.set_ylim(bottom=0)
    orders.legend(title='slope in log-log', loc='lower right')
    figure.savefig(path, dpi=90, metadata={'Software': None})


def _draw_runs(axes: Axes, lengths: Sequence[int], runs: Runs, name: str) -> None:
    """Draw each mode's median, every seed as a dot."""
    for color, (mode, members) in zip(('C0', 'C1'), runs.items(), strict=True):
        values = np.where(column(members, name) > 0, column(members, name), np.nan)
        axes.plot(lengths, values, '.', color=color, markersize=4, alpha=0.4)
        axes.plot(lengths, np.median(column(members, name), axis=1), 'o-', color=color,
                  label=f'{mode}: {slope_of(lengths, members, name)}')  # fmt: skip
    axes.set(xscale='log', xlabel='samples T')
    axes.grid(alpha=0.3)


def draw_orders(orders: Mapping[str, npt.NDArray[np.int64]], path: Path) -> None:
    """Write the model order of each stream, sample by sample; its largest as a dot."""
    figure = Figure(figsize=(9, 4.5), layout='constrained')
    axes = figure.subplots()
    for name, order in orders.items():
        shown = np.unique(np.geomspace(1, len(order), 600).round().astype(int))
        largest = int(np.argmax(order))
        (line,) = axes.plot(shown, order[shown - 1], linewidth=1, label=name)
        axes.plot(largest + 1, order[largest], 'o', color=line.get_color(), markersize=5)
    axes.set(xscale='log', xlabel='samples', title='Model order; dot: its largest, when first')
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(loc='upper left', fontsize=8)
    figure.savefig(path, dpi=90, metadata={'Software': None})
