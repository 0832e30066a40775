# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Learning from data of which a share is corrupted: the trimmed learners beside their peers.

Every method is shown the same corrupted rows, has the same kernel and ridge, and is judged on
clean test points. Settings were looked for on seeds 0 to 9 only.
"""

import os

os.environ.update(dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1'))

import argparse
from pathlib import Path
from time import thread_time

import numpy as np
from joblib import delayed, Parallel
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from planner_peers import environment
from subquantile_corruption import CLASSIFICATION_KINDS, corrupt, REGRESSION_KINDS, SWAPPED
from subquantile_data import absent, CLASSIFICATION, DATA, REGRESSION, smooth
from subquantile_peers import plain, Problem
from subquantile_runs import (
    cells_of,
    choose,
    ESTIMATED,
    features_of,
    measured,
    NONE,
    ORACLE,
    OURS,
    Settings,
)
from subquantile_summary import header, read_runs, report, Results, row, write_runs
from tqdm import tqdm

from kernel_constrained.core import Gaussian, SubquantileRegressor

DESIGN, HELD_OUT, SEEDS = 0, 100, 20
KINDS = list(dict.fromkeys([*REGRESSION_KINDS, SWAPPED, *CLASSIFICATION_KINDS]))
SIZES, TIMED = (2_000, 20_000), Settings(0.5, 1e-4)  # of the fits that are timed alone
NAME = 'subquantile'


def in_parallel(function, tasks, jobs, title):
    """Return what a function makes of each of the tasks, in any order."""
    calls = Parallel(n_jobs=jobs, return_as='generator_unordered')(
        delayed(function)(*task) for task in tasks
    )
    return list(tqdm(calls, total=len(tasks), desc=title, disable=None))


def named_choice(data):
    return data, choose(data)


# -- time -----------------------------------------------------------------------------------


def timed(fit, *arguments):
    """Return the least seconds of three fits, thread CPU time, as text."""
    seconds = []
    for _ in range(3):
        begun = thread_time()
        fit(*arguments)
        seconds.append(thread_time() - begun)
    return f'{min(seconds):.3f} s'


def ours_of(x, y, corruption):
    """Fit ours."""
    SubquantileRegressor(
        kernel=Gaussian(TIMED.bandwidth), regularization=TIMED.ridge, corruption=corruption
    ).fit(x, y)  # fmt: skip


def plain_of(x, y):
    """Fit the ridge regression, with its features."""
    rng = np.random.default_rng(0)
    z = features_of(x, TIMED, rng)(x)
    plain(Problem(z, y, TIMED.ridge, 0.0, np.ones(len(y), dtype=bool), rng))


def size_lines():
    """Return the time of a fit of many samples, a fifth of them with random targets."""
    lines = header('samples', 'ours, given', 'ours, estimated', 'plain ridge')
    for size in SIZES:
        sample = smooth(0, count=size, tests=1)
        x, y, _ = corrupt(sample.x, sample.y, 'random', 0.2, np.random.default_rng(0))
        times = timed(ours_of, x, y, 0.2), timed(ours_of, x, y, None), timed(plain_of, x, y)
        lines.append(row(f'{size:,}', *times))
    return lines


# -- figures --------------------------------------------------------------------------------

MOST = 100.0  # times the least error: what is worse than that is not shown
STYLES = {
    OURS: {'color': 'C3', 'linewidth': 2.2, 'marker': 'o'},
    ESTIMATED: {'color': 'C3', 'linewidth': 1.4, 'linestyle': '--', 'marker': 'o'},
    'plain': {'color': '0.45', 'marker': 's'},
    'tilted': {'color': 'C0', 'marker': '^'},
    'SEVER': {'color': 'C2', 'marker': 'v'},
    'Huber': {'color': 'C1', 'marker': 'D'},
    'RANSAC': {'color': 'C4', 'marker': 'P'},
    'Theil-Sen': {'color': 'C5', 'marker': 'X'},
    ORACLE: {'color': 'black', 'linestyle': ':', 'marker': None},
}


def draw(results, kind, path):
    """Draw error against share for a kind of corruption: a panel for each data set."""
    names = [d for d in DATA if any(c[:2] == (d, kind) for c in results.cells)]
    groups = [[d for d in names if d in group] for group in (REGRESSION, CLASSIFICATION)]
    groups = [group for group in groups if group]
    columns = max(map(len, groups))
    size = max(3.6 * columns, 8.0), 3.2 * len(groups) + 1.2
    figure = Figure(figsize=size, layout='constrained')
    handles = {}
    for group, panels in zip(groups, figure.subplots(len(groups), columns, squeeze=False)):
        for axes, data in zip(panels, group):
            draw_panel(axes, results, data, kind)
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels())))
        for axes in panels[len(group) :]:
            axes.set_axis_off()
    figure.suptitle(f'Error on clean test points by the share corrupted: {kind}')
    figure.legend(handles.values(), handles, loc='outside lower center', ncols=5)
    figure.savefig(path, dpi=110)


def draw_panel(axes, results, data, kind):
    """Draw the mean errors on a data set with their confidence bands."""
    cells = [c for c in results.cells if c[0] == data and c[1] in (kind, NONE)]
    shares = np.array([share for _, _, share in cells])
    seen = []
    for method in results.methods:
        means, halves = np.array([results.mean(cell, method) for cell in cells]).T
        if np.isnan(means).all():
            continue
        style = {'markersize': 4.5, **STYLES.get(method, {})}
        line = axes.plot(shares, means, label=method, **style)[0]
        low, high = means - halves, means + halves
        axes.fill_between(shares, low, high, color=line.get_color(), alpha=0.12, linewidth=0)
        seen.append(means)
    regression = data in REGRESSION
    axes.set(title=data, xlabel='share corrupted', xticks=shares,
             ylabel='MSE / variance' if regression else 'share wrong')  # fmt: skip
    if regression:
        least = np.nanmin(seen)
        axes.set(yscale='log', ylim=(0.9 * least, min(1.1 * np.nanmax(seen), MOST * least)))
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter('{x:g}')
    axes.grid(alpha=0.3)


# -- the run --------------------------------------------------------------------------------


def measure(arguments):
    """Return all runs, which are in the file of runs too, and lines about the settings."""
    chosen = []
    for data in arguments.data:
        if reason := absent(data):
            print(f'{data} is left out: {reason}')
        else:
            chosen.append(data)
    jobs = arguments.jobs
    found = dict(in_parallel(named_choice, [(d,) for d in chosen], jobs, 'settings'))
    lines = header('data', 'bandwidth', 'ridge')
    lines += [row(d, f'{found[d].bandwidth:.3g}', f'{found[d].ridge:g}') for d in chosen]
    first = DESIGN if arguments.design else arguments.first_seed
    seeds = range(first, first + (10 if arguments.design else arguments.seeds))
    runs = []
    for data in chosen:  # what is there is written, should the next one not come to its end
        cells = cells_of(data, arguments.kind, seeds)
        tasks = [(cell, found[data], arguments.start) for cell in cells]
        order = {cell: i for i, cell in enumerate(cells)}
        new = [run for some in in_parallel(measured, tasks, jobs, data) for run in some]
        runs += sorted(new, key=lambda run: order[run[:4]])
        write_runs(runs, arguments.output / f'{NAME}.csv')
    return runs, lines


def parsed():
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=Path, default=Path('out/benchmark'))
    parser.add_argument('--data', nargs='+', choices=DATA, default=list(DATA))
    parser.add_argument('--kind', nargs='+', choices=KINDS, default=[], help='default: all')
    parser.add_argument('--seeds', type=int, default=SEEDS, help='how many')
    parser.add_argument('--first-seed', type=int, default=HELD_OUT)
    parser.add_argument('--design', action='store_true', help='seeds 0 to 9, to look at')
    parser.add_argument('--start', nargs='+', default=[], help='other starts of ours, too')
    parser.add_argument('--jobs', type=int, default=2, help='processes')
    parser.add_argument('--runs', type=Path, help='make tables of this file of runs, measure none')
    return parser.parse_args()


def main():
    arguments = parsed()
    arguments.output.mkdir(parents=True, exist_ok=True)
    lines = ['# Learning from corrupted data', '', *environment(), '']
    if arguments.runs:
        runs = read_runs(arguments.runs)
    else:
        runs, settings = measure(arguments)
        lines += [*settings, '', '## Time of a fit of many samples', '', *size_lines(), '']
    results = Results(runs)
    lines += report(results)
    text = '\n'.join(lines) + '\n'
    print(text.split('## Error on clean')[0])
    (arguments.output / f'{NAME}.md').write_text(text)
    for kind in dict.fromkeys(kind for _, kind, _ in results.cells if kind != NONE):
        draw(results, kind, arguments.output / f'{NAME}_{kind.replace(" ", "_")}.png')
    print(f'all tables: {arguments.output / NAME}.md; figures: {arguments.output / NAME}_*.png')


if __name__ == '__main__':
    main()
