# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Figs. 1 and 2: methods against samples, and the decision surfaces of two of them."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kernel_constrained.core import PrimalDualLearner
from kernel_constrained.offline.reproduction.svm_draws import CLASSES, Draw
from kernel_constrained.offline.reproduction.svm_runs import Curve, MARGIN, margins, NAMES, POLK

COLOURS = ('#4477aa', '#ee6677', '#228833', '#ccbb44', '#aa3377')
GRID = 240


class Surface(NamedTuple):
    """What a method has learned of a draw."""

    title: str
    draw: Draw
    learner: PrimalDualLearner


def draw_curves(
    curves: Mapping[str, Curve], tolerance: float, best_accuracy: float, path: Path
) -> None:
    """Write objective, infeasibility, model order and test error against samples."""
    figure = Figure(figsize=(11, 8), layout='constrained')
    objective, infeasibility, order, error = figure.subplots(2, 2).ravel()
    for method, curve in curves.items():
        line = {'label': NAMES[method], 'linestyle': '--' if method == POLK else '-'}
        objective.plot(curve.samples, curve.objective, **line)
        infeasibility.plot(curve.samples, curve.cvar - tolerance, **line)
        order.plot(curve.samples, curve.order, **line)
        error.plot(curve.samples, 100 * curve.test_error, **line)
    infeasibility.axhline(0.0, color='k', linewidth=0.8)
    error.axhline(
        100 * (1 - best_accuracy), color='k', linewidth=0.8, linestyle='--', label='Bayes'
    )
    objective.set(title='(1a) Objective on the training points')
    infeasibility.set(title=rf'(1b) Infeasibility, CVaR $-\,\gamma$, $\gamma$ = {tolerance:.3f}')
    order.set(title='(1c) Model order', ylim=(0, None))
    error.set(title='(2a) Test error, %')
    for axes in (objective, infeasibility, order, error):
        axes.set(xlabel='samples')
        axes.grid(alpha=0.3)
    objective.legend()
    error.legend()
    figure.savefig(path, dpi=120)


def draw_surfaces(rows: list[list[Surface]], path: Path) -> None:
    """Write decision surfaces with dictionary and contours of confidence, a row for each draw."""
    figure = Figure(figsize=(11, 5.3 * len(rows)), layout='constrained')
    cells = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for axes, surface in zip(cells.ravel(), chain.from_iterable(rows), strict=True):
        draw_surface(axes, surface)
    figure.savefig(path, dpi=110)


def draw_surface(axes: Axes, surface: Surface) -> None:
    """Draw the classes, the training points, the dictionary, and where the margin is 1."""
    draw, learner = surface.draw, surface.learner
    low, high = np.quantile(draw.x, 0.002, axis=0) - 0.2, np.quantile(draw.x, 0.998, axis=0) + 0.2
    x, y = np.linspace(low[0], high[0], GRID), np.linspace(low[1], high[1], GRID)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    scores = learner.decision_function(points)
    levels = np.arange(CLASSES + 1) - 0.5
    axes.contourf(x, y, scores.argmax(axis=1).reshape(GRID, GRID), levels, colors=COLOURS,
                  alpha=0.3)  # fmt: skip
    shown = draw.x[::4]
    axes.scatter(shown[:, 0], shown[:, 1], s=2, c=np.array(COLOURS)[draw.label[::4].astype(int)])
    axes.plot(learner.dictionary_[:, 0], learner.dictionary_[:, 1], 'ko', markersize=2.5)
    axes.contour(x, y, margins(scores).reshape(GRID, GRID), [MARGIN], colors='k', linewidths=1.2)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), title=surface.title)
