# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The trade-off that a sweep found, as a figure: error against tail, and against order."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kernel_constrained.offline.sweep_table import Criteria, Row

Point = tuple[float, float]

# Errors that differ by more than this factor are drawn on a logarithmic scale.
WIDE = 30.0


def front(points: Sequence[Point]) -> list[Point]:
    """Return the points that none is better than in both respects, by the first one."""
    best: list[Point] = []
    for point in sorted(points):
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best


def draw_tradeoff(rows: Sequence[Row], criteria: Criteria, title: str, path: Path) -> None:
    """Write the figure; settings that failed are not in it.

    Parameters
    ----------
    rows
        The best one first.
    criteria
        What they were compared by.
    title
        Above it.
    path
        Of the PNG file.
    """
    complete = [row for row in rows if row.scores is not None]
    figure = Figure(figsize=(12, 5.4), layout='constrained')
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_points(left, complete, complete, 'tail')
    _draw_bound(left, complete, criteria)
    left.set(title='Error against tail', xlabel=f'{criteria.tail}, worst recording',
             ylabel=f'{criteria.error}, mean over recordings')  # fmt: skip
    _draw_points(right, complete, [row for row in complete if row.feasible] or complete, 'order')
    right.set(title='Error against order', xlabel='largest model order')
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    errors = [row.scores.error for row in complete if row.scores]
    if min(errors) > 0.0 and max(errors) > WIDE * min(errors):
        left.set_yscale('log')
    for axes in (left, right):
        axes.grid(alpha=0.3)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc='outside lower center', ncols=len(labels), fontsize=9)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=110, metadata={'Software': None})


def _draw_points(axes: Axes, rows: Sequence[Row], eligible: Sequence[Row], name: str) -> None:
    """Draw the settings over one of their figures, the best one, and the front of some."""
    points = _points(rows, name)
    x, y = _columns(front(_points(eligible, name)))
    axes.step(x, y, where='post', color='0.55', zorder=1, label='Pareto front')
    kinds = ((True, 'C0', 'o', 'feasible'), (False, 'C3', 'x', 'violated'))
    for feasible, color, marker, label in kinds:
        chosen = [point for point, row in zip(points, rows, strict=True)
                  if row.feasible == feasible]  # fmt: skip
        if chosen:
            x, y = _columns(chosen)
            axes.scatter(x, y, s=36, color=color, marker=marker, zorder=2, label=label)
    (x, y), best = _columns(points[:1]), 'best' if rows[0].feasible else 'least violation'
    axes.scatter(x, y, s=230, color='C1', marker='*', edgecolor='k', zorder=3, label=best)


def _points(rows: Sequence[Row], name: str) -> list[Point]:
    return [(getattr(row.scores, name), row.scores.error) for row in rows if row.scores]


def _columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _draw_bound(axes: Axes, rows: Sequence[Row], criteria: Criteria) -> None:
    """Mark where the tail is allowed to be; by several tolerances, those of each."""
    bounds = {criteria.constraint.value}
    if criteria.tail != criteria.constraint.name:
        bounds = {row.setting.config.learner.tolerance + criteria.constraint.value for row in rows}
    ends = axes.get_xlim()
    low, high = min(*ends, *bounds), max(*ends, *bounds)
    below = criteria.constraint.relation == '<='
    for bound in sorted(bounds):
        axes.axvline(bound, color='k', linewidth=0.9)
        axes.axvspan(low if below else bound, bound if below else high,
                     color='C2', alpha=0.25 / len(bounds), linewidth=0.0,
                     label='allowed' if bound == min(bounds) else None)  # fmt: skip
    margin = 0.03 * (high - low)
    axes.set_xlim(low - (not below) * margin, high + margin)
