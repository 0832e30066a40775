# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The planner and its peers, side by side: on the same worlds, with the same checks, in one run.

Every path is taken as its positions joined by straight pieces, and has to be free at 100,001
points. Times are CPU time of the one thread that plans, seeds included.
"""

import os

os.environ.update(dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1'))

import argparse
import platform
from pathlib import Path
from time import thread_time
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from planner_ours import OURS
from planning_peers import energy, ipopt, MARGIN, PEERS
from planning_worlds import measure, Measures, SEEDS, WINDOW, worlds
from tqdm import tqdm

REFERENCE = 'A* + ipopt, energy'  # whose lengths others are held against
FINISHED = 'best of two seeds, polished'  # ours
QUICK = 10  # worlds of a kind
PICTURED = 4  # worlds whose paths are drawn
COLORS = ('black', *(f'C{i}' for i in range(10)), 'gold', 'navy', 'lime')
LONGER = 1.0  # percent beyond which a path counts as longer than the best known

COLUMNS = (
    f'{"planner":26s} {"version":13s} {"free: base":>10s} {"extended":>9s} {"fresh":>9s} '
    f'{"proven":>9s} {"ms median":>9s} {"p95":>7s} {"length":>7s} {"to best %":>9s} {"max":>6s} '
    f'{"longer":>7s} {"to energy %":>11s} {"max":>6s} {"curvature":>9s} {"max":>5s} '
    f'{"clearance":>9s}'
)
EXPLAINED = (
    'free       paths that arrive and touch nothing, of the worlds tried',
    'proven     worlds in which a planner that returns only what it has proven returned a path',
    'length     median over the free paths of the base worlds, metres',
    'to best    length against the shortest free path that anybody here found in that world, '
    'median and largest',
    f'longer     share of worlds in which it is more than {LONGER:g} % longer than that',
    f'to energy  length against that of "{REFERENCE}" in that world, median and largest',
    'curvature  the 95th percentile along a path, and the largest: turning within '
    f'{WINDOW:g} m, 1/m; medians',
    'clearance  the least of all paths, metres beyond the radius; all aim at '
    f'{MARGIN:g} except A* alone',
)


class Run(NamedTuple):
    """One world: seconds it took, the path (n, 2) if there is one, and its measures."""

    seconds: float
    path: np.ndarray | None
    measures: Measures | None

    @property
    def free(self):
        return self.measures is not None and self.measures.free


def run(entrant, world):
    """Plan once; return the :class:`Run`."""
    begun = thread_time()
    path = entrant.plan(world)
    seconds = thread_time() - begun
    return Run(seconds, path, None if path is None else measure(world, path))


def race(entrants, limit):
    """Return {name: {(kind, number): Run}} of every entrant on its worlds."""
    counts = [
        {kind: min(len(SEEDS[kind]), e.limit or limit, limit) for kind in SEEDS} for e in entrants
    ]
    results = {}
    with tqdm(total=sum(sum(count.values()) for count in counts), disable=None) as progress:
        for entrant, count in zip(entrants, counts):
            progress.set_description(entrant.name)
            entrant.plan(worlds('base')[0])  # what is compiled or built once is not timed
            mine = results[entrant.name] = {}
            for kind, number in count.items():
                for i, world in enumerate(worlds(kind)[:number]):
                    mine[kind, i] = run(entrant, world)
                    progress.update()
    return results


def lengths(runs):
    """Return the lengths of the free paths by world."""
    return {world: run.measures.length for world, run in runs.items() if run.free}


def excess(mine, other):
    """Return by how many percent lengths exceed others', (n,), where both are."""
    both = [world for world in mine if world in other]
    return np.array([100 * (mine[world] / other[world] - 1) for world in both])


def best_known(results):
    """Return the length of the shortest free path by world."""
    best = {}
    for runs in results.values():
        for world, length in lengths(runs).items():
            best[world] = min(length, best.get(world, np.inf))
    return best


# -- the table ------------------------------------------------------------------------------


def count_of(runs, what):
    return f'{sum(what(run) for run in runs)}/{len(runs)}' if runs else '-'


def line(entrant, results, best):
    """Return the line of one entrant."""
    runs = results[entrant.name]
    free = [run.measures for run in runs.values() if run.free]
    counts = [
        count_of([run for (k, _), run in runs.items() if k == kind], lambda run: run.free)
        for kind in SEEDS
    ]
    proven = count_of(runs.values(), lambda run: run.path is not None) if entrant.proves else '-'
    milliseconds = 1e3 * np.array([run.seconds for run in runs.values()])
    text = (
        f'{entrant.name:26s} {entrant.origin.version():13s} {counts[0]:>10s} {counts[1]:>9s} '
        f'{counts[2]:>9s} {proven:>9s} {np.median(milliseconds):9.2f} '
        f'{np.percentile(milliseconds, 95):7.2f}'
    )
    if not free:
        return text
    base = [length for (kind, _), length in lengths(runs).items() if kind == 'base']
    to_best = excess(lengths(runs), best)
    to_energy = excess(lengths(runs), lengths(results.get(REFERENCE, {})))
    energy = (np.median(to_energy), to_energy.max()) if len(to_energy) else (np.nan, np.nan)
    bending = np.median([(m.curvature_p95, m.curvature_max) for m in free], axis=0)
    least = min(run.measures.clearance for run in runs.values() if run.measures)
    return (
        f'{text} {np.median(base) if base else np.nan:7.3f} {np.median(to_best):9.2f} '
        f'{to_best.max():6.2f} {100 * (to_best > LONGER).mean():5.1f} % {energy[0]:11.2f} '
        f'{energy[1]:6.2f} {bending[0]:9.2f} {bending[1]:5.2f} {least:9.3f}'
    )


def table(entrants, results):
    """Return the lines of the table."""
    best = best_known(results)
    return [
        '', COLUMNS, *(line(entrant, results, best) for entrant in entrants), '', *EXPLAINED, '',
        *(f'{entrant.name}: {entrant.note}' for entrant in entrants if entrant.note),
    ]  # fmt: skip


def environment():
    """Return the line at the head: the machine, and how busy it is."""
    cpuinfo = Path('/proc/cpuinfo')
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [text.split(':')[1].strip() for text in lines if text.startswith('model name')]
    return [
        f'{models[0] if models else platform.processor()}, {os.cpu_count()} cores, Python '
        f'{platform.python_version()}, load average {os.getloadavg()[0]:.1f}; one thread each'
    ]


def from_same_side(entrants, results):
    """Return a line that holds our finished paths against the solver from these very paths.

    Where others are shorter than either, they pass obstacles on other sides.
    """
    names = {entrant.name for entrant in entrants}
    if FINISHED not in names or REFERENCE not in names:
        return []
    mine, other = lengths(results[FINISHED]), {}
    for kind, i in mine:
        path = ipopt(energy, worlds(kind)[i], results[FINISHED][kind, i].path)
        other[kind, i] = measure(worlds(kind)[i], path).length
    longer = excess(mine, other)
    return [
        '', f'"{FINISHED}" against "{REFERENCE}" from the same sides: {np.median(longer):+.2f} % '
        f'at the median, {np.percentile(longer, 95):+.2f} % at the 95th percentile, '
        f'{longer.max():+.2f} % at most',
    ]  # fmt: skip


# -- the figure -----------------------------------------------------------------------------


def most_disputed(results):
    """Return the base worlds in which lengths differ most."""
    found = [lengths(runs) for runs in results.values()]
    spread = {}
    for world in {world for each in found for world in each if world[0] == 'base'}:
        here = [each[world] for each in found if world in each]
        spread[world] = max(here) / min(here)
    return sorted(spread, key=spread.get, reverse=True)[:PICTURED]


def draw_world(axes, key, results, colors):
    """Draw one world and everybody's path through it."""
    kind, number = key
    world = worlds(kind)[number]
    for x, y, radius in world.circles:
        axes.add_patch(Circle((x, y), radius, color='0.75'))
    for name, runs in results.items():
        if key in runs and runs[key].path is not None:
            style = '-' if runs[key].free else ':'
            axes.plot(*runs[key].path.T, style, color=colors[name], linewidth=1.3)
    low, high = world.bounds
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect='equal',
             title=f'{kind} {number}')  # fmt: skip


def draw_times(axes, results, colors):
    """Draw time against length: medians, with lines to the 95th percentiles."""
    best = best_known(results)
    for name, runs in results.items():
        longer = excess(lengths(runs), best)
        if not len(longer):
            continue
        times = np.percentile([1e3 * run.seconds for run in runs.values()], (50, 95))
        lower, upper = np.percentile(longer, (50, 95))
        axes.plot(times, [lower, lower], color=colors[name], linewidth=1)
        axes.plot([times[0]] * 2, [lower, upper], color=colors[name], linewidth=1)
        axes.plot(times[0], lower, 'o', color=colors[name])
    axes.set(
        xscale='log', xlabel='milliseconds: median, and a line to the 95th percentile',
        ylabel='longer than the best known, %: likewise', title='time against length',
    )  # fmt: skip
    axes.set_yscale('symlog', linthresh=0.1)
    axes.set_ylim(bottom=-0.02)
    axes.grid(alpha=0.3, which='both')


def draw(results, path):
    """Write the figure."""
    colors = dict(zip(results, COLORS))
    pictured = most_disputed(results)
    figure = Figure(figsize=(16, 9), layout='constrained')
    left, right = figure.subfigures(1, 2, width_ratios=(9, 7))
    for axes, key in zip(left.subplots(2, 2).flat, pictured):
        draw_world(axes, key, results, colors)
    draw_times(right.subplots(), results, colors)
    handles = [right.axes[0].plot([], [], 'o-', color=colors[n], label=n)[0] for n in results]
    figure.legend(handles=handles, loc='outside lower center', ncols=5)
    figure.savefig(path, dpi=110)


def present(only):
    """Return ours and the peers, without whom ``only`` does not name or who is not installed."""
    found = []
    for entrant in OURS + PEERS:
        if only and only.lower() not in entrant.name.lower():
            continue
        absence = entrant.origin.absence()
        if absence:
            print(f'{entrant.name} is left out: {absence}')
        else:
            found.append(entrant)
    return found


def main():
    """Measure, print a table, and draw a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=Path, default=Path('out/benchmark'))
    parser.add_argument('--only', metavar='NAME', help='planners whose name holds this')
    parser.add_argument('--quick', action='store_true', help=f'{QUICK} worlds of a kind')
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    entrants = present(arguments.only)
    if not entrants:
        parser.error(f'there is no planner {arguments.only}')
    lines = environment()
    results = race(entrants, QUICK if arguments.quick else max(map(len, SEEDS.values())))
    lines += table(entrants, results) + from_same_side(entrants, results)
    print(*lines, sep='\n')
    (arguments.output / 'planner_peers.txt').write_text('\n'.join(lines) + '\n')
    draw(results, arguments.output / 'planner_peers.png')
    print(f'figure: {arguments.output / "planner_peers.png"}')


if __name__ == '__main__':
    main()
