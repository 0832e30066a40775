# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Accumulated sub-optimality and violation against the length of the stream, with their slopes.

Koppel, Zhang, Zhu and Başar, Theorem 2: with step size ``1 / sqrt(T)`` and compression budget
``P / T``, ``sum_t S(f_t) - S(f*)`` is O(T^1/2) and ``sum_t [g(f_t)]_+`` is O(T^3/4). ``S`` is the
regularised mean loss, ``g`` the constraint, ``f*`` the optimum under it.

Samples are drawn with replacement from the LIDAR table, so ``S`` and ``g`` are computed exactly;
``f*`` is an interior-point solver's. ``f_t`` is what the learner predicts with: in the default
mode the average of the iterates (gradient steps), in the paper's the iterate itself. The latter
solves another program: Eq. (23) turns its CVaR into the mean loss, and ``f*`` is the optimum under
a bound on that.

Each run has constant step sizes. Those of the dual variable and of the threshold keep the ratio
to ``step_size`` that they have in the learner's defaults; P is its default. The regularisation is
above ``1 / sqrt(T)`` for the shortest stream: the slowest direction of the function relaxes within
``1 / (eta lambda)`` samples, and before that no sum can show its rate.

Where the constraint is violated, ``S(f_t)`` can lie below ``S(f*)``. The theorem bounds the signed
sum, which is fitted; it bounds the sum of absolute values, also shown, through the violation only.
"""

import os

os.environ.update(dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1'))

import argparse
import math
import sys
from pathlib import Path
from typing import NamedTuple

import attrs
import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'core'))

import optimum

from kernel_constrained.core import (
    conditional_value_at_risk,
    CVaR,
    Gaussian,
    PrimalDualLearner,
)

REGULARIZATION = 0.1
SIGNIFICANCE = 0.9
# Of the bound to what it bounds at the free optimum. So low that the script fails for a learner
# without dual ascent; at 0.95 the transient hides that.
RATIO = 0.8
LENGTHS = tuple(round(10**e) for e in np.arange(3.0, 6.1, 0.5))
CHECKPOINTS = 200
DEFAULTS = {field.name: field.default for field in attrs.fields(PrimalDualLearner)}
LIMITS = {'suboptimality': 0.5, 'violation': 0.75}
PANELS = (
    ('suboptimality', r'sub-optimality: $\sum_t\, S(f_t) - S(f^*)$', 'slope 1/2'),
    ('violation', r'violation: $\sum_t\, [g(f_t)]_+$', 'slope 3/4'),
)


class Program(NamedTuple):
    """A mode of the learner, and the optimum it is held against."""

    mode: str
    level: float  # of the CVaR that its constraint bounds; 0 is the mean loss
    tolerance: float
    best: optimum.Optimum


class Run(NamedTuple):
    """What one stream came to, or the medians over several."""

    suboptimality: float
    absolute: float
    violation: float
    order_before: float  # after a tenth of the stream
    order: float


class Slope(NamedTuple):
    """Least squares in log-log, with two standard errors."""

    value: float
    uncertainty: float


def programs(problem):
    free, found = optimum.optimum_of(problem), []
    for mode, level in (('default', SIGNIFICANCE), ('paper', 0.0)):
        tolerance = RATIO * free.cvar(problem, level)
        best = optimum.optimum_of(problem, [(level, tolerance)])
        found.append(Program(mode, level, tolerance, best))
    return found


def learner(program, problem, length):
    """Return a learner with step size ``1 / sqrt(T)``."""
    eta = 1 / math.sqrt(length)
    settings = dict(mode='paper')
    if program.mode == 'default':
        relative = eta / DEFAULTS['step_size']
        settings = dict(
            step='gradient', decay_after=math.inf,
            dual_step_size=relative * DEFAULTS['dual_step_size'],
            quantile_step_size=relative * DEFAULTS['quantile_step_size'],
        )  # fmt: skip
    return PrimalDualLearner(
        Gaussian(problem.bandwidth), constraint=CVaR(SIGNIFICANCE, program.tolerance),
        step_size=eta, regularization=problem.regularization, **settings,
    )  # fmt: skip


def evaluate(program, problem, losses, squared_norm):
    """Return (S(f) - S(f*), g(f))."""
    objective = losses.mean() + problem.regularization / 2 * squared_norm
    return (objective - program.best.objective,
            conditional_value_at_risk(losses, program.level) - program.tolerance)  # fmt: skip


def integral(times, values):
    """Sum over all samples, by trapezoids between the checkpoints."""
    return float(np.sum(np.diff(times) * (values[1:] + values[:-1]) / 2))


def run(program, problem, length, seed):
    rng, fitted = np.random.default_rng([seed, length]), learner(program, problem, length)
    times = np.unique(np.geomspace(1, length, CHECKPOINTS).round().astype(int))
    rows = rng.integers(len(problem.x), size=length)
    curves, orders = [evaluate(program, problem, problem.y**2, 0.0)], []  # at first f = 0
    for chosen in np.split(rows, times[:-1]):
        fitted.partial_fit(problem.x[chosen], problem.y[chosen])
        curves.append(evaluate(program, problem, problem.losses(fitted), fitted.squared_norm_))
        orders.append(fitted.model_order_)
    (above, excess), times_and_start = np.transpose(curves), np.r_[0, times]
    return Run(
        integral(times_and_start, above),
        integral(times_and_start, np.abs(above)),
        integral(times_and_start, np.maximum(excess, 0.0)),
        orders[np.searchsorted(times, length / 10)],
        orders[-1],
    )


def measure(problem, lengths, seeds):
    """Return the runs of each mode, arrays of shape (lengths, seeds, fields), and the programs."""
    found = programs(problem)
    runs = {program.mode: [] for program in found}
    with tqdm(total=len(found) * seeds * sum(lengths), unit='sample', unit_scale=True) as progress:
        for program in found:
            progress.set_description(program.mode)
            for length in lengths:
                members = []
                for seed in range(seeds):
                    members.append(run(program, problem, length, seed))
                    progress.update(length)
                runs[program.mode].append(members)
    return {mode: np.array(members, dtype=float) for mode, members in runs.items()}, found


def column(runs, name):
    return runs[..., Run._fields.index(name)]


def slope(lengths, runs, name):
    """Fit the medians over the seeds, where they are positive: other sums keep any bound."""
    medians = np.median(column(runs, name), axis=1)
    kept = medians > 0
    if kept.sum() < 3:  # fewer do not say how uncertain the slope is
        return Slope(math.nan, math.nan)
    x, y = np.log(np.array(lengths)[kept]), np.log(medians[kept])
    x, y = x - x.mean(), y - y.mean()
    value = (x @ y) / (x @ x)
    residual = y - value * x
    return Slope(value, 2 * math.sqrt(residual @ residual / (len(x) - 2) / (x @ x)))


def failures(lengths, runs):
    """Say where the default mode's slopes exceed the theorem's by more than their uncertainty."""
    said = []
    for name, limit in LIMITS.items():
        fitted = slope(lengths, runs['default'], name)
        if fitted.value - fitted.uncertainty > limit:
            said.append(
                f'{name} of the default mode grows with slope {fitted.value:.3f} +- '
                f'{fitted.uncertainty:.3f}, above {limit:g}'
            )
    return said


# -- table and figure -----------------------------------------------------------------------


def table(problem, found, lengths, runs):
    seeds = next(iter(runs.values())).shape[1]
    lines = [
        f'LIDAR, {len(problem.x)} samples, lambda {problem.regularization:g}; '
        f'medians of {seeds} seeds; slopes with two standard errors'
    ]
    for program in found:
        bounded = f'CVaR at {program.level:g}' if program.level > 0 else 'mean loss'
        lines += [
            '',
            f'{program.mode}: {bounded} at most {program.tolerance:.4g}; '
            f'S(f*) {program.best.objective:.4g}, multiplier {program.best.dual_variables[0]:.3g}',
            '        T  sub-optimality  / T^1/2    absolute   violation  / T^3/4  order  at T/10',
        ]
        for length, members in zip(lengths, runs[program.mode]):
            r = Run(*np.median(members, axis=0))
            lines.append(
                f'{length:9d} {r.suboptimality:15.2f} {r.suboptimality / length**0.5:8.3f} '
                f'{r.absolute:11.2f} {r.violation:11.2f} {r.violation / length**0.75:8.3f} '
                f'{r.order:6.0f} {r.order_before:8.0f}'
            )
        fits = {name: slope(lengths, runs[program.mode], name) for name in Run._fields}
        shown = (f'{name} {fits[name].value:.3f} +- {fits[name].uncertainty:.3f}'
                 for name in ('suboptimality', 'absolute', 'violation', 'order'))  # fmt: skip
        lines.append(f'slopes: {", ".join(shown)}')
    return '\n'.join(lines)


def draw_runs(axes, lengths, runs, name):
    """Each mode's median, every seed as a dot."""
    for color, (mode, members) in zip(('C0', 'C1'), runs.items()):
        values = np.where(column(members, name) > 0, column(members, name), np.nan)
        fitted = slope(lengths, members, name)
        axes.plot(lengths, values, '.', color=color, markersize=4, alpha=0.4)
        axes.plot(lengths, np.median(column(members, name), axis=1), 'o-', color=color,
                  label=f'{mode}: {fitted.value:.3f} ± {fitted.uncertainty:.3f}')  # fmt: skip
    axes.set(xscale='log', xlabel='samples T')
    axes.grid(alpha=0.3)


def draw(lengths, runs, path):
    figure = Figure(figsize=(13, 4.5), layout='constrained')
    *sums, orders = figure.subplots(1, 3)
    for axes, (name, label, reference) in zip(sums, PANELS):
        draw_runs(axes, lengths, runs, name)
        start = 1.5 * np.median(column(runs['default'], name)[0])
        line = start * (np.array(lengths) / lengths[0]) ** LIMITS[name]
        axes.plot(lengths, line, 'k--', linewidth=1, label=reference)
        axes.set(yscale='log', title=label)
        axes.legend(title='slope')
    draw_runs(orders, lengths, runs, 'order')
    orders.set(title='model order at T')
    orders.set_ylim(bottom=0)
    orders.legend(title='slope in log-log', loc='lower right')
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=Path, default=Path('out/benchmark'))
    parser.add_argument('--seeds', type=int, default=10)
    parser.add_argument('--quick', action='store_true', help='streams up to 1e5, three seeds')
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    lengths = tuple(n for n in LENGTHS if n <= 1e5) if arguments.quick else LENGTHS
    problem = optimum.lidar(REGULARIZATION)
    runs, found = measure(problem, lengths, 3 if arguments.quick else arguments.seeds)
    print(text := table(problem, found, lengths, runs))
    (arguments.output / 'rates.txt').write_text(text + '\n')
    draw(lengths, runs, arguments.output / 'rates.png')
    print(f'figure: {arguments.output / "rates.png"}')
    if said := failures(lengths, runs):
        sys.exit('\n'.join(said))


if __name__ == '__main__':
    main()
