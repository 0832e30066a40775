# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""An evaluation as lines of text and as a figure."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

from kernel_constrained.core import conditional_value_at_risk
from kernel_constrained.offline.evaluation import DROPOUT, Evaluation, TEST

Array = npt.NDArray[np.float64]

SECTIONS = {
    'all': 'all',
    'late': 'last 30 %',
    TEST: 'test (not learned)',
    DROPOUT: 'dropouts (no pose)',
}

# Points that a curve is drawn with at most, and worst estimates that the map marks.
POINTS, WORST = 400, 20


def text_of(result: dict[str, Any]) -> str:
    """Lay the figures of an evaluation out as lines of text."""
    lines = [*_lines_of_messages(result), '']
    lines.append(
        f'{"":19} {"":8} {"count":>6} {"RMSE":>10} {"MAE":>9} {"p95":>9} {"largest":>9} {"R2":>7}'
        f' {"RMSE of mean":>13} {"in 90 %":>8}'
    )
    for section, errors in result['errors'].items():
        components = [name for name in errors if name not in ('count', 'loss')]
        for name in components:
            e = errors[name]
            head = SECTIONS[section] if name == components[0] else ''
            lines.append(
                f'{head:19} {name:8} {errors["count"]:6d} {e["rmse"]:10.4g} {e["mae"]:9.4g} '
                f'{e["p95"]:9.4g} {e["largest"]:9.4g} {_share(e["r_squared"]):>7} '
                f'{e["rmse_of_running_mean"]:9.4g} {e["unit"]:<3} '
                f'{100 * e["within_90_percent"]:6.0f} %'
            )
    return '\n'.join([*lines, '', *_lines_of_learner(result)])


def _share(value: float | None) -> str:
    return 'n/a' if value is None else f'{value:.3f}'


def _lines_of_messages(result: dict[str, Any]) -> list[str]:
    recording, messages = result['recording'], result['messages']
    used = ', '.join(
        f'{messages["used"].get(kind, 0)} of {count} {kind}'
        for kind, count in sorted(messages['received'].items())
    )
    lines = [f'{recording["name"]}: {recording["seconds"]:.0f} s; used {used}']
    lines += [f'  dropped {count} {reason}' for reason, count in messages['dropped'].items()]
    if messages['scans_without_a_pose']:
        lines.append(f'  {messages["scans_without_a_pose"]} scans without a pose')
    return lines


def _lines_of_learner(result: dict[str, Any]) -> list[str]:
    learner, bound = result['learner'], result['constraint']
    lines = [
        f'learned {learner["samples"]}, model order {learner["model_order"]}, '
        f'dual variable {learner["dual_variable"]:.4g}'
    ]
    if bound is not None and bound['cvar'] is not None:
        lines.append(
            f'mean of the worst {1 - bound["significance"]:.2g} of the losses (CVaR): '
            f'{bound["cvar"]:.3g} (newest {bound["window"]}), '
            f'{bound["cvar_since_start"]:.3g} (all); tolerance {bound["tolerance"]:g}, '
            f'violation {bound["violation"]:.3g}'
        )
    return lines


def table_of(rows: list[tuple[str, str, dict[str, Any]]]) -> str:
    """Lay several evaluations out as a table.

    Parameters
    ----------
    rows
        Recording, settings and result of each.
    """
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    lines: list[str] = []
    for recording, settings, result in rows:
        errors = result['errors']
        section = next(name for name in (DROPOUT, TEST, 'late') if name in errors)
        components = {k: v for k, v in errors[section].items() if k not in ('count', 'loss')}
        if not lines:
            heads = ''.join(f' {name:>10}' for name in components)
            lines = [f'{"recording":{widths[0]}}  {"settings":{widths[1]}}  {"scored":10}{heads}'
                     f' {"violation":>10} {"order":>6}']  # fmt: skip
        cells = ''.join(f' {each["rmse"]:10.4g}' for each in components.values())
        violation = errors[section]['loss']['violation']
        lines.append(
            f'{recording:{widths[0]}}  {settings:{widths[1]}}  {section:10}{cells}'
            f' {"n/a" if violation is None else f"{violation:.3g}":>10}'
            f' {result["learner"]["model_order"]:6d}'
        )
    return '\n'.join(lines)


# -- figure -------------------------------------------------------------------------------------


def draw(evaluation: Evaluation, title: str, path: Path) -> None:
    """Write the figure: error over time, its distribution, violation, dual, order and the map."""
    figure = Figure(figsize=(15, 8.5))
    # placed by hand: a layout engine takes as long as the drawing
    figure.subplots_adjust(left=0.045, right=0.985, bottom=0.07, top=0.9, wspace=0.17, hspace=0.27)
    axes = figure.subplots(2, 3).ravel()
    time, loss = evaluation.series.columns('time', 'loss')
    _draw_errors(axes[0], evaluation, time, np.sqrt(loss))
    _draw_distribution(axes[1], evaluation, loss)
    _draw_map(axes[2], evaluation, loss)
    for panel, (column, label) in zip(
        axes[3:],
        (
            ('violation', 'Violation: CVaR of the newest losses - tolerance'),
            ('dual_variable', 'Dual variable'),
            ('model_order', 'Model order'),
        ),
        strict=True,
    ):
        (values,) = evaluation.series.columns(column)
        _draw_over_time(panel, time, values.astype(float))
        panel.set(title=label)
        if column == 'violation':
            panel.axhline(0.0, color='k', linewidth=0.8)
        else:
            panel.set(ylim=(0, None))
    for panel in (axes[0], *axes[3:]):
        _shade_sections(panel, evaluation)
        panel.set(xlabel='time since the recording began [s]')
    for panel in axes:
        panel.grid(alpha=0.3)
    figure.suptitle(title)
    figure.savefig(path, dpi=110)


def _binned(time: Array, values: Array) -> list[tuple[float, Array]]:
    """Split what is known of a curve into at most :data:`POINTS` pieces of equal duration."""
    known = ~np.isnan(values)
    time, values = time[known], values[known]
    if not len(time):
        return []
    edges = np.linspace(time[0], time[-1], POINTS + 1)[1:-1]
    pieces = np.split(values, np.searchsorted(time, edges))
    times = np.split(time, np.searchsorted(time, edges))
    return [(float(t.mean()), v) for t, v in zip(times, pieces, strict=True) if len(v)]


def _draw_errors(axes: Axes, evaluation: Evaluation, time: Array, size: Array) -> None:
    """Draw median, 90 % and largest error of each piece of time."""
    pieces = _binned(time, size)
    when = [t for t, _ in pieces]
    axes.plot(when, [v.max() for _, v in pieces], color='C3', linewidth=0.8, label='largest')
    axes.plot(when, [np.quantile(v, 0.9) for _, v in pieces], color='C1', label='90 %')
    axes.plot(when, [np.median(v) for _, v in pieces], color='C0', label='median')
    axes.set(title='Error: root of the loss [scales]', yscale='log')
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.legend(loc='upper right')


def _draw_distribution(axes: Axes, evaluation: Evaluation, loss: Array) -> None:
    """Draw the distribution of the losses with the tail that is bounded marked."""
    bound = evaluation.config.learner
    loss = loss[~np.isnan(loss)]
    if not len(loss):
        return
    low = max(float(np.quantile(loss, 0.001)), 1e-12)
    edges = np.geomspace(low, max(float(loss.max()), 2.0 * low), 60).tolist()
    quantile = float(np.quantile(loss, bound.significance))
    cvar = conditional_value_at_risk(loss, bound.significance)
    share = f'{1 - bound.significance:.2g}'
    axes.hist(loss[loss <= quantile], edges, color='C0', label='losses')
    axes.hist(loss[loss > quantile], edges, color='C3', label=f'the worst {share} of them')
    axes.axvline(cvar, color='C3', linestyle='--', label=f'their mean (CVaR) {cvar:.3g}')
    if bound.constrained:
        axes.axvline(bound.tolerance, color='k', label=f'tolerance {bound.tolerance:g}')
    axes.set(title='Distribution of the losses', xscale='log', xlabel='loss [scales squared]')
    axes.legend(fontsize=8)


def _draw_over_time(axes: Axes, time: Array, values: Array) -> None:
    pieces = _binned(time, values)
    axes.plot([t for t, _ in pieces], [v[-1] for _, v in pieces])


def _shade_sections(axes: Axes, evaluation: Evaluation) -> None:
    """Mark dropouts, and where learning ends."""
    for begin, end in evaluation.schedule.dropouts:
        axes.axvspan(begin, end, color='C3', alpha=0.12)
    if np.isfinite(evaluation.schedule.test_from):
        axes.axvline(evaluation.schedule.test_from, color='0.4', linestyle=':')


def _draw_map(axes: Axes, evaluation: Evaluation, loss: Array) -> None:
    """Draw where the robot was, where the estimates put it, and the worst of them."""
    if evaluation.config.target.type == 'axis':
        _draw_against_truth(axes, evaluation)
        return
    x, y = evaluation.series.columns('pose_x', 'pose_y')
    there_x, there_y = _estimated_positions(evaluation)
    known = np.flatnonzero(~np.isnan(loss) & ~np.isnan(there_x))
    shown = known[:: max(len(known) // 5000, 1)]
    axes.plot(x[shown], y[shown], '-', color='C0', linewidth=0.8, label='trusted poses')
    axes.plot(there_x[shown], there_y[shown], '.', color='C1', markersize=2, label='estimates')
    worst = known[np.argsort(loss[known])[-WORST:]]
    axes.plot([x[worst], there_x[worst]], [y[worst], there_y[worst]], color='C3', linewidth=0.8)
    axes.plot(x[worst], y[worst], 'o', color='C3', fillstyle='none', label=f'worst {len(worst)}')
    axes.set(title='Map [m]', aspect='equal', adjustable='datalim')
    axes.legend(fontsize=8)


def _estimated_positions(evaluation: Evaluation) -> tuple[Array, Array]:
    """Where each estimate puts the robot; that of a motion, seen from the pose before it."""
    series = evaluation.series
    if evaluation.config.target.type == 'pose':
        x, y = series.columns('estimate_x', 'estimate_y')
        return x, y
    x, y, yaw = series.columns('pose_x', 'pose_y', 'pose_yaw')
    forward, left = (evaluation.errors(name) for name in ('forward', 'left'))
    (turned,) = series.columns('truth_yaw')
    before = yaw - turned  # heading at the scan before, in whose frame a motion is
    return (
        x + np.cos(before) * forward - np.sin(before) * left,
        y + np.sin(before) * forward + np.cos(before) * left,
    )


def _draw_against_truth(axes: Axes, evaluation: Evaluation) -> None:
    (name,) = evaluation.names
    estimate, truth = evaluation.series.columns(f'estimate_{name}', f'truth_{name}')
    known = np.flatnonzero(~np.isnan(truth))
    shown = known[:: max(len(known) // 5000, 1)]
    axes.plot(truth[shown], estimate[shown], '.', markersize=2)
    ends = [np.min(truth[shown]), np.max(truth[shown])] if len(shown) else [0.0, 1.0]
    axes.plot(ends, ends, color='k', linewidth=0.8)
    axes.set(title=f'Estimate over truth of {name}', xlabel='truth', ylabel='estimate')
