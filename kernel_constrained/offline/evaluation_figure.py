# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluations as figures.

Drawing takes a large part of the time of an evaluation. So axes are placed by hand, ticks are
given and bars are one artist: a layout engine, mathtext and minor ticks take longer than the rest.
"""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from kernel_constrained.core import conditional_value_at_risk
from kernel_constrained.offline.drift import drifts_of
from kernel_constrained.offline.evaluation import Evaluation
from kernel_constrained.offline.evaluation_report import Compared, components_of, SECTIONS

Array = npt.NDArray[np.float64]

# Pieces of time that a curve is drawn with, positions on the map, and worst estimates marked.
PIECES, POSITIONS, WORST = 250, 4000, 20

TRUTH, ESTIMATE, BAD, DRIFT, GREY = 'C0', 'C1', 'C3', 'C2', '0.4'

# Place of the stack of curves over time, in shares of the figure: left, width, bottom, top.
LEFT, WIDTH, BOTTOM, TOP = 0.08, 0.48, 0.06, 0.93

POSITION_PARTS = {'motion': ('forward', 'left'), 'pose': ('x', 'y')}


def draw(evaluation: Evaluation, result: dict[str, Any], path: Path) -> None:
    """Write the figure: errors and figures over time, the map, the distribution of the losses."""
    figure = Figure(figsize=(15, 8.5))
    time, loss = evaluation.series.columns('time', 'loss')
    _draw_over_time(figure, evaluation, time)
    _draw_map(figure.add_axes((0.61, 0.42, 0.375, 0.51)), evaluation, loss)
    _draw_distribution(figure.add_axes((0.61, BOTTOM, 0.375, 0.26)), evaluation, loss)
    figure.text(LEFT, 0.965, _title(result), fontsize='large')
    figure.savefig(path, dpi=100, pil_kwargs={'compress_level': 1})


def _title(result: dict[str, Any]) -> str:
    learner = result['learner']
    return (
        f'{result["recording"]["name"]}: {result["errors"]["all"]["count"]} estimates scored, '
        f'{learner["samples"]} learned'
    )


# -- over time ----------------------------------------------------------------------------------


def _draw_over_time(figure: Figure, evaluation: Evaluation, time: Array) -> None:
    """Draw a stack of curves over the same time."""
    errors = _error_sizes(evaluation)
    figures = [
        (name, label)
        for name, label in (
            ('violation', 'violation'),
            ('dual_variable', 'dual variable'),
            ('model_order', 'model order'),
        )
        if name == 'model_order' or evaluation.config.learner.bounded
    ]
    heights = np.array([1.6] * len(errors) + [1.0] * len(figures))
    tops = TOP - (TOP - BOTTOM) * np.concatenate([[0.0], np.cumsum(heights)]) / heights.sum()
    stack = [
        figure.add_axes((LEFT, below + 0.012, WIDTH, above - below - 0.024))
        for above, below in zip(tops, tops[1:], strict=False)
    ]
    for axes, (label, size) in zip(stack, errors.items(), strict=False):
        _draw_error(axes, time, size)
        axes.set_ylabel(label)
    for axes, (name, label) in zip(stack[len(errors) :], figures, strict=True):
        _draw_last(axes, time, evaluation.series.columns(name)[0].astype(float))
        axes.set_ylabel(label)
        if name == 'violation':
            axes.axhline(0.0, color='k', linewidth=0.8)
        else:
            axes.set_ylim(bottom=0.0)
    for axes in stack:
        _shade_sections(axes, evaluation)
        axes.set_xlim(time[0], max(time[-1], time[0] + 1e-3))
        axes.tick_params(labelbottom=axes is stack[-1])
        axes.yaxis.set_label_coords(-0.11, 0.5)
        axes.grid(alpha=0.3)
    stack[-1].set_xlabel('seconds since the recording began')
    _legend_above(stack[0])


def _error_sizes(evaluation: Evaluation) -> dict[str, Array]:
    """Sizes of the errors by what they are called: of the position in the plane, of the yaw."""
    names = evaluation.names
    parts = POSITION_PARTS.get(evaluation.config.target.type)
    if parts is None:
        unit = 'rad' if names[0] == 'yaw' else 'm'
        return {f'error of {names[0]} [{unit}]': np.abs(evaluation.errors(names[0]))}
    first, second = (evaluation.errors(name) for name in parts)
    return {
        'position error [m]': np.hypot(first, second),
        'heading error [rad]': np.abs(evaluation.errors('yaw')),
    }


def _pieces(time: Array, values: Array) -> list[tuple[float, Array]]:
    """Split what is known of a curve into pieces of equal duration."""
    known = ~np.isnan(values)
    time, values = time[known], values[known]
    if not len(time):
        return []
    places = np.searchsorted(time, np.linspace(time[0], time[-1], PIECES + 1)[1:-1])
    parts = zip(np.split(time, places), np.split(values, places), strict=True)
    return [(float(when.mean()), part) for when, part in parts if len(part)]


def _draw_error(axes: Axes, time: Array, size: Array) -> None:
    """Draw median, 90 % and largest error of each piece of time."""
    pieces = [(when, np.sort(part)) for when, part in _pieces(time, size)]
    when = [t for t, _ in pieces]
    largest, most, median = (
        np.array([part[int(share * (len(part) - 1))] for _, part in pieces])
        for share in (1.0, 0.9, 0.5)
    )
    axes.plot(when, largest, color=BAD, linewidth=0.8, label='largest')
    axes.plot(when, most, color=ESTIMATE, label='90 %')
    axes.plot(when, median, color=TRUTH, label='median')
    _logarithmic(axes, 'y', np.concatenate([largest, median]))


def _draw_last(axes: Axes, time: Array, values: Array) -> None:
    """Draw the last value of each piece of time."""
    pieces = _pieces(time, values)
    axes.plot([t for t, _ in pieces], [part[-1] for _, part in pieces], color=TRUTH)
    _few_ticks(axes.yaxis)


def _few_ticks(axis: Axis) -> None:
    axis.set_major_locator(MaxNLocator(4))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f'{value:.6g}'))


def _shade_sections(axes: Axes, evaluation: Evaluation) -> None:
    """Mark dropouts, and where learning ends."""
    schedule = evaluation.schedule
    for i, interval in enumerate(schedule.dropouts):
        axes.axvspan(*interval, color=BAD, alpha=0.12, linewidth=0,
                     label=None if i else 'no trusted pose')  # fmt: skip
    if math.isfinite(schedule.test_from):
        axes.axvline(schedule.test_from, color=GREY, linestyle='--', linewidth=1.0,
                     label='learning ends')  # fmt: skip


def _legend_above(axes: Axes) -> None:
    axes.legend(loc='lower right', bbox_to_anchor=(1.0, 1.0), ncols=5, frameon=False,
                borderaxespad=0.1, fontsize='small')  # fmt: skip


def _logarithmic(axes: Axes, which: str, values: Array) -> None:
    """Make an axis logarithmic over the range of what is positive, with few ticks."""
    values = values[values > 0.0]
    if not len(values):
        return
    axis = axes.yaxis if which == 'y' else axes.xaxis
    low = max(float(np.quantile(values, 0.002)), float(values.max()) * 1e-6)
    high = max(float(values.max()) * 1.2, low * 2.0)
    (axes.set_yscale if which == 'y' else axes.set_xscale)('log')
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1.0, 3.0) if len(decades) < 5 else (1.0,)
    ticks = [step * 10.0**k for k in decades for step in steps]
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f'{value:g}'))
    axis.set_minor_locator(NullLocator())
    (axes.set_ylim if which == 'y' else axes.set_xlim)(low, high)


# -- distribution -------------------------------------------------------------------------------


def _draw_distribution(axes: Axes, evaluation: Evaluation, loss: Array) -> None:
    """Draw the distribution of the losses with the tail that is bounded marked."""
    bound = evaluation.config.learner
    loss = loss[~np.isnan(loss)]
    cvar = conditional_value_at_risk(loss, bound.significance)
    low, high = max(float(np.quantile(loss, 0.002)), 1e-12), float(loss.max())
    edges = np.geomspace(low, max(high, 2.0 * low), 61)
    quantile = float(np.quantile(loss, bound.significance))
    loss = np.maximum(loss, low)  # the few that are smaller stand at the left end
    share = f'{1 - bound.significance:.2g}'
    for part, color, label in (
        (loss, TRUTH, 'losses'),
        (loss[loss > quantile], BAD, f'the worst {share} of them'),
    ):
        axes.stairs(np.histogram(part, edges)[0], edges, fill=True, color=color, label=label)
    axes.axvline(cvar, color=BAD, linestyle='--', label=f'their mean (CVaR) {cvar:.3g}')
    if bound.bounded:
        axes.axvline(bound.tolerance, color='k', label=f'tolerance {bound.tolerance:g}')
        edges = np.append(edges, bound.tolerance)  # which is to be seen wherever it is
    _logarithmic(axes, 'x', edges)
    axes.set(xlabel='loss: squared error in scales', ylabel='estimates')
    axes.grid(alpha=0.3)
    axes.legend(loc='upper left', fontsize='small')


# -- map ----------------------------------------------------------------------------------------


def _draw_map(axes: Axes, evaluation: Evaluation, loss: Array) -> None:
    """Draw where the robot was, where the estimates put it, and the worst of them."""
    if evaluation.config.target.type == 'axis':
        _draw_against_truth(axes, evaluation, loss)
    else:
        _draw_positions(axes, evaluation, loss)
    axes.grid(alpha=0.3)
    _legend_above(axes)


def _draw_positions(axes: Axes, evaluation: Evaluation, loss: Array) -> None:
    known = np.flatnonzero(~np.isnan(loss))
    x, y, there_x, there_y = _positions(evaluation, known[:: math.ceil(len(known) / POSITIONS)])
    axes.plot(there_x, there_y, '.', color=ESTIMATE, markersize=3, label='estimates')
    axes.plot(x, y, '-', color=TRUTH, linewidth=1.0, label='trusted poses')
    worst = np.sort(known[np.argsort(loss[known])[-WORST:]])
    x, y, there_x, there_y = _positions(evaluation, worst)
    axes.plot([x, there_x], [y, there_y], color=BAD, linewidth=0.8)
    axes.plot(there_x, there_y, 'o', color=BAD, fillstyle='none', markersize=5,
              label=f'worst {len(worst)}')  # fmt: skip
    if evaluation.config.target.type == 'motion':
        _draw_drifts(axes, evaluation)
    axes.set(xlabel='x [m]', ylabel='y [m]')
    axes.set_aspect('equal', adjustable='datalim')


def _draw_drifts(axes: Axes, evaluation: Evaluation) -> None:
    """Draw where the motions alone lead in each dropout, from the last trusted pose on."""
    for i, drift in enumerate(drifts_of(evaluation)):
        x, y = drift.path[-1]
        axes.plot(*drift.truth.T, color=BAD, linewidth=7.0, alpha=0.25)
        axes.plot(*drift.path.T, color=DRIFT, label=None if i else 'motions alone')
        axes.plot(*np.stack([drift.path[-1], drift.truth[-1]]).T, color=DRIFT, linestyle=':')
        axes.plot(x, y, 's', color=DRIFT, markersize=5)
        axes.annotate(
            f'{drift.error:.3g} m', (x, y), xytext=(8, 4), textcoords='offset points', color=DRIFT,
            bbox={'facecolor': 'white', 'edgecolor': 'none', 'alpha': 0.5, 'pad': 1.0},
        )  # fmt: skip


def _positions(evaluation: Evaluation, rows: npt.NDArray[np.intp]) -> tuple[Array, ...]:
    """Where the robot was and where estimates put it: x, y, x, y of some rows.

    An estimated motion puts it where it leads to from the pose before.
    """
    columns = partial(evaluation.series.columns, rows=rows)
    x, y, yaw = columns('pose_x', 'pose_y', 'pose_yaw')
    if evaluation.config.target.type == 'pose':
        return (x, y, *columns('estimate_x', 'estimate_y'))
    forward, left, turned = columns('truth_forward', 'truth_left', 'truth_yaw')
    estimated = columns('estimate_forward', 'estimate_left')
    forward, left = estimated[0] - forward, estimated[1] - left
    before = yaw - turned  # heading at the scan before, in whose frame a motion is
    return (
        x, y,
        x + np.cos(before) * forward - np.sin(before) * left,
        y + np.sin(before) * forward + np.cos(before) * left,
    )  # fmt: skip


def _draw_against_truth(axes: Axes, evaluation: Evaluation, loss: Array) -> None:
    (name,) = evaluation.names
    known = np.flatnonzero(~np.isnan(loss))
    shown = known[:: math.ceil(len(known) / POSITIONS)]
    estimate, truth = evaluation.series.columns(f'estimate_{name}', f'truth_{name}', rows=shown)
    axes.plot(truth, estimate, '.', color=ESTIMATE, markersize=3, label='estimates')
    ends = [np.min(truth), np.max(truth)]
    axes.plot(ends, ends, color=TRUTH, linewidth=1.0, label='no error')
    axes.set(xlabel=f'trusted {name}', ylabel=f'estimate of {name}')


# -- several evaluations ------------------------------------------------------------------------


def draw_comparison(rows: list[Compared], path: Path) -> None:
    """Write a figure of the RMSE of several evaluations, a panel for each component."""
    sections = [row.result['errors'][row.section] for row in rows]
    names = list(dict.fromkeys(name for errors in sections for name in components_of(errors)))
    labels = [f'{row.recording}\n{row.settings} ({SECTIONS[row.section]})' for row in rows]
    figure = Figure(figsize=(4.0 + 3.0 * len(names), 1.5 + 0.5 * len(rows)), layout='constrained')
    panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
    places = np.arange(len(rows))
    for axes, name in zip(panels, names, strict=True):
        found = [components_of(errors).get(name, {}) for errors in sections]
        axes.barh(places, [each.get('rmse', math.nan) for each in found], label='filter')
        axes.plot([each.get('rmse_of_running_mean', math.nan) for each in found], places, 'k|',
                  markersize=14, label='running mean')  # fmt: skip
        unit = next(each['unit'] for each in found if each)
        axes.set(xlabel=f'RMSE of {name} [{unit}]')
        _few_ticks(axes.xaxis)
        axes.grid(alpha=0.3, axis='x')
    panels[0].set_yticks(places, labels)
    panels[0].invert_yaxis()
    figure.legend(*panels[0].get_legend_handles_labels(), loc='outside upper right', ncols=2)
    figure.savefig(path, dpi=100)
