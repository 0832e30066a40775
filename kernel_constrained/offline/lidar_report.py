# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The LIDAR demonstration in a table and a figure (Koppel et al., Fig. 3)."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kernel_constrained.bags import LidarRecording, RecordingError
from kernel_constrained.core import conditional_value_at_risk
from kernel_constrained.data import lidar_split, load_lidar
from kernel_constrained.offline.recorded import Recorded
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.perception.scan import Reading

Array = npt.NDArray[np.float64]

RANGE_MIN, RANGE_MAX = 390.0, 720.0


class EpochFigures(NamedTuple):
    """What an epoch ended with; losses are squared errors of the log ratio."""

    epoch: int
    train_mse: float
    test_mse: float
    cvar: float
    violation: float
    dual_variable: float
    model_order: int
    microseconds: float


def epoch_table(
    recording: LidarRecording, recorded: Recorded, significance: float, tolerance: float
) -> list[EpochFigures]:
    """Figures of each epoch, from what was recorded of a replay with ``evaluate_epochs``.

    Errors and CVaR are those of the function at the end of the epoch, on the training points and
    on the test points.

    Raises
    ------
    RecordingError
        Where messages are missing from what was recorded.
    """
    rows = recording.rows
    if not np.array_equal(recorded.stamps, [row.stamp for row in rows]):
        raise RecordingError(
            f'{len(recorded.stamps)} estimates were recorded of {len(rows)} ranges: '
            'some were lost on the way'
        )
    epoch = np.array([row.epoch for row in rows])
    kind = np.array([row.kind for row in rows])
    truth = load_lidar().logratio[[row.row for row in rows]]
    losses = (recorded.estimates[:, 0] - truth) ** 2
    learned = np.cumsum(kind == 'train')
    table = []
    for number in range(1, int(epoch.max()) + 1):
        of_epoch = epoch == number
        train = losses[of_epoch & (kind == 'evaluate_train')]
        test = losses[of_epoch & (kind == 'test')]
        last = learned[of_epoch][-1] - 1
        cvar = conditional_value_at_risk(train, significance)
        times = recorded.figures['processing_time'][of_epoch & (kind == 'train')]
        table.append(
            EpochFigures(
                number, train.mean(), test.mean(), cvar, cvar - tolerance,
                recorded.figures['dual_variable'][last],
                int(recorded.figures['model_order'][last]), 1e6 * float(np.median(times)),
            )
        )  # fmt: skip
    return table


def format_table(table: list[EpochFigures]) -> str:
    """Lay the epochs out as lines of text."""
    head = 'epoch  train MSE  test MSE     CVaR  violation    dual  order  us/message'
    lines = [
        f'{e.epoch:5d}  {e.train_mse:9.5f}  {e.test_mse:8.5f}  {e.cvar:7.4f}  {e.violation:9.4f}'
        f'  {e.dual_variable:6.3f}  {e.model_order:5d}  {e.microseconds:10.0f}'
        for e in table
    ]
    return '\n'.join([head, *lines])


def draw(
    table: list[EpochFigures], recorded: Recorded, model: ScanFilter, seed: int, path: Path
) -> None:
    """Write the figure: objective, violation and order against samples, and the fitted curve."""
    figure = Figure(figsize=(11, 8), layout='constrained')
    objective, violation, order, curve = figure.subplots(2, 2).ravel()
    samples = np.arange(1, len(recorded.figures['loss']) + 1)
    ends = samples[-1] / len(table) * np.array([e.epoch for e in table])

    window = max(1, int(ends[0]))
    mean = np.convolve(recorded.figures['loss'], np.ones(window) / window, mode='valid')
    objective.plot(samples[window - 1 :], mean, color='0.7', label='before learning each sample')
    objective.plot(ends, [e.train_mse for e in table], 'o-', label='training points')
    objective.plot(ends, [e.test_mse for e in table], 's-', label='test points')
    objective.set(title='Objective: mean squared error', yscale='log')
    objective.legend()

    violation.plot(samples, recorded.figures['violation'], color='0.7', label='newest 1000 losses')
    violation.plot(ends, [e.violation for e in table], 'o-', label='training points')
    violation.axhline(0.0, color='k', linewidth=0.8)
    violation.set(title='Constraint violation, CVaR $-$ tolerance')
    violation.legend()

    order.plot(samples, recorded.figures['model_order'])
    order.set(title='Model order', ylim=(0, None))
    for axes in (objective, violation, order):
        axes.set(xlabel='samples')
        axes.grid(alpha=0.3)
    draw_curve(curve, table[-1], model, seed)
    figure.savefig(path, dpi=120)


def draw_curve(axes: Axes, last: EpochFigures, model: ScanFilter, seed: int) -> None:
    """Draw data, fitted curve, dictionary points and the band of the tail."""
    lidar, split = load_lidar(), lidar_split(seed)
    grid = np.linspace(RANGE_MIN, RANGE_MAX, 661)
    fitted = predict_ranges(model, grid)
    band = np.sqrt(last.cvar)
    atoms = RANGE_MIN + model.learner.dictionary_[:, 0] * (RANGE_MAX - RANGE_MIN)
    axes.fill_between(
        grid, fitted - band, fitted + band, alpha=0.2, label=r'tail band $\pm\sqrt{\mathrm{CVaR}}$'
    )
    axes.plot(lidar.range[split.train], lidar.logratio[split.train], '.', color='0.5',
              markersize=4, label='training points')  # fmt: skip
    axes.plot(lidar.range[split.test], lidar.logratio[split.test], 'x', color='C3',
              markersize=5, label='test points')  # fmt: skip
    axes.plot(grid, fitted, color='C0', label='learned function')
    axes.plot(atoms, predict_ranges(model, atoms), 'o', color='k', markersize=4,
              label=f'dictionary ({len(atoms)})')  # fmt: skip
    axes.set(title='LIDAR: log ratio over range', xlabel='range [m]')
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)


def predict_ranges(model: ScanFilter, ranges: Array) -> Array:
    """Predict the log ratio at ranges in metres."""
    inputs = np.array([model.features(Reading(r, RANGE_MIN, RANGE_MAX)) for r in ranges])
    return model.target.denormalised(model.learner.predict(inputs))[:, 0]
