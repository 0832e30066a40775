# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Error against cost: ours and the peers, each over a small grid of settings of its own.

Settings are chosen on streams of their own seeds: those where no other setting of the same
contestant is both better and cheaper. They are then measured on other seeds; the table holds the
medians of those that are still on that front. Nobody uses more than one thread.
"""

import os

os.environ.update(dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1'))

import argparse
import platform
import time
from pathlib import Path
from typing import NamedTuple

import dlib_krls
import numpy as np
from adapter import Contestant, Result
from batch_ridge import batch_ridge
from matplotlib.figure import Figure
from ours import CONTESTANTS
from peers import PEERS
from streams import CHOSEN_ON, make, MAKERS, SPLITS
from tqdm import tqdm

TUNING_SEED = 1000
PATIENCE = 3.0  # seconds for one setting: the slow are measured on fewer streams
SLACK = 1.1  # times within this factor are the same time
GAIN = 0.95  # a dearer setting is shown if it lowers the error at least to this share
LEARNED = 0.75  # of the variance of the test targets: whoever errs by more has learned nothing
LINES = (
    ('black', '--', 'batch ridge'),
    ('black', ':', 'hollow, dotted: bandwidth of its own choice'),
    ('0.6', '-', 'noise in the test points'),
)
MARKERS = 'osD^v<>pPX*hdH'


class Row(NamedTuple):
    """One line of the table: medians over ``runs`` streams."""

    contestant: Contestant
    own_bandwidth: bool
    setting: dict
    result: Result
    runs: int


def passes(contestant, streams, setting, patience):
    """Results on one stream after the other, until patience is lost; [] where it diverges."""
    results, begun = [], time.perf_counter()
    for stream in streams:
        try:
            results.append(contestant.run(stream, setting))
        except (ArithmeticError, ValueError) as error:
            tqdm.write(f'{contestant.name}, {shown(setting)}: {error}')
            return []
        if time.perf_counter() - begun > patience:
            break
    return results if np.isfinite(results).all() else []


def measure(contestant, streams, settings, rounds=1):
    """Return triples (setting, median result, runs), without the settings that diverge.

    Each round takes every setting once, so that a busy moment of the machine is not all one's.
    """
    results = [[] for _ in settings]
    for _ in range(rounds):
        for setting, mine in zip(settings, results):
            mine += passes(contestant, streams, setting, PATIENCE / rounds)
    triples = []
    for setting, mine in zip(settings, results):
        if mine:
            seconds, error, size = np.median(mine, axis=0)
            triples.append((setting, Result(float(seconds), float(error), int(size)), len(mine)))
    return triples


def front(tried, floor, ceiling):
    """Return the settings that no other beats in error at the same cost, from cheap to accurate.

    ``tried`` are pairs (setting, result); gains count above ``floor``, the noise.
    """
    learned = [pair for pair in tried if pair[1].error < ceiling]
    alive = [
        (setting, result)
        for setting, result in learned
        if not any(
            other.error < result.error and other.seconds < SLACK * result.seconds
            for _, other in learned
        )
    ]
    chosen, best = [], np.inf
    for setting, result in sorted(alive, key=lambda pair: pair[1].seconds):
        if result.error - floor < GAIN * best:
            chosen.append(setting)
            best = result.error - floor
    return chosen


def compete(contestant, tuning, streams):
    """Return the rows of one contestant: its fronts with everybody's bandwidth and its own."""
    first = tuning[0]
    bandwidths = first.bandwidths if contestant.own_bandwidth else (first.bandwidth,)
    settings = [{'bandwidth': b, **chosen} for b in bandwidths for chosen in contestant.grid]
    tried = [triple[:2] for triple in measure(contestant, tuning, settings)]
    given = [pair for pair in tried if pair[0]['bandwidth'] == first.bandwidth]
    limits = np.nan_to_num(first.noise), LEARNED * first.variance
    fronts = {False: front(given, *limits), True: front(tried, *limits)}
    chosen = [s for s in settings if s in fronts[False] or s in fronts[True]]
    measured = measure(contestant, streams, chosen, contestant.rounds)
    rows = []
    for own, members in fronts.items():
        mine = [triple for triple in measured if triple[0] in members]
        kept = front([triple[:2] for triple in mine], *limits)
        mine.sort(key=lambda triple: triple[1].seconds)
        rows += [Row(contestant, own, *triple) for triple in mine if triple[0] in kept]
    return rows


def race(name, contestants, repetitions, quick):
    """Measure everybody on one stream; return what :func:`table` and the figure take."""
    streams = [make(name, i, quick) for i in range(repetitions * SPLITS[name])]
    rows = []
    for contestant in (progress := tqdm(contestants, desc=name)):
        progress.set_postfix_str(contestant.name)
        count = max(contestant.rounds, CHOSEN_ON[name])
        tuning = [make(name, TUNING_SEED + i, quick) for i in range(count)]
        rows += compete(contestant, tuning, streams)
    first = streams[0]
    ridges = [batch_ridge(streams, bandwidth) for bandwidth in first.bandwidths]
    given = ridges[first.bandwidths.index(first.bandwidth)]
    return first, rows, [given, min(ridges)]


# -- the table ------------------------------------------------------------------------------


def shown(setting):
    return ', '.join(
        f'{k} {v:g}' if isinstance(v, float) else f'{k} {v}'
        for k, v in setting.items()
        if k != 'bandwidth'
    )


def line(row, version):
    bandwidth = f'{row.setting["bandwidth"]:g}{" own" if row.own_bandwidth else ""}'
    return (
        f'{row.contestant.name:31s} {version:22s} {bandwidth:>9s}  {shown(row.setting):55s} '
        f'{row.result.seconds * 1e6:9.2f} {row.result.error:9.2e} {row.result.size:5d} '
        f'{row.runs:4d}'
    )


def table(stream, rows, ridges):
    """Return the lines on one stream; rows of both fronts stand there once."""
    shared = [row.setting for row in rows if not row.own_bandwidth]
    rows = [row for row in rows if not (row.own_bandwidth and row.setting in shared)]
    versions = {row.contestant.name: row.contestant.origin.version() for row in rows}
    head = (
        f'{stream.name}: {len(stream.x)} samples, {len(stream.test_x)} test points, '
        f'bandwidth {stream.bandwidth:g}; the error is the {stream.merit}'
    )
    columns = (
        f'{"contestant":31s} {"version":22s} {"bandwidth":>9s}  {"setting":55s} us/sample'
        f'     error  size runs'
    )
    batch = [
        f'batch ridge, bandwidth {r.bandwidth:g}, N lambda {r.penalty:.2g}: {r.error:.2e}'
        for r in dict.fromkeys(ridges)
    ]
    noise = [f'noise in the test points: {stream.noise:.2e}'] if stream.noise > 0 else []
    lines = [line(row, versions[row.contestant.name]) for row in rows]
    return ['', head, *batch, *noise, columns, *lines]


def grids(contestants):
    """Say what was tried, and what has to be known of each contestant."""
    lines = ['', 'Grids that were tried ("any": with every bandwidth that the stream allows):']
    for contestant in contestants:
        axes = {}
        for setting in contestant.grid:
            for key, value in setting.items():
                axes.setdefault(key, []).append(
                    f'{value:g}' if isinstance(value, float) else value
                )
        values = '; '.join(f'{k} {", ".join(map(str, dict.fromkeys(v)))}' for k, v in axes.items())
        count = f'{len(contestant.grid)} settings{", any" if contestant.own_bandwidth else ""}'
        lines.append(f'{contestant.name} ({count}): {values}')
        if contestant.note:
            lines.append(f'    {contestant.note}')
    return lines


def environment(repetitions):
    """Return the lines at the head: machine and settings."""
    cpuinfo = Path('/proc/cpuinfo')
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [text.split(':')[1].strip() for text in lines if text.startswith('model name')]
    model = models[0] if models else platform.processor()
    return [
        f'{model}, {os.cpu_count()} cores; Python {platform.python_version()}; one thread each',
        f'medians over {repetitions} streams (lidar: {repetitions * SPLITS["lidar"]} splits), '
        f'fewer where one setting takes more than {PATIENCE:g} s; "own": bandwidth of its own '
        'choice',
    ]


# -- the figure -----------------------------------------------------------------------------


def draw_panel(axes, stream, rows, ridges, styles):
    for name, style in styles.items():
        for own in (False, True):
            mine = [r for r in rows if r.contestant.name == name and r.own_bandwidth == own]
            if own and all(row.setting['bandwidth'] == stream.bandwidth for row in mine):
                continue
            axes.plot(
                [r.result.seconds * 1e6 for r in mine], [r.result.error for r in mine],
                linestyle=':' if own else '-', markerfacecolor='none' if own else None,
                markersize=6, linewidth=1.2, **style,
            )  # fmt: skip
    axes.axhline(ridges[0].error, color='k', linestyle='--', linewidth=1)
    if ridges[1] != ridges[0]:
        axes.axhline(ridges[1].error, color='k', linestyle=':', linewidth=1)
    if stream.noise > 0:
        axes.axhline(stream.noise, color='0.6', linewidth=1)
    axes.set(xscale='log', yscale='log', xlabel='microseconds a sample', ylabel=stream.merit,
             title=f'{stream.name}, {len(stream.x)} samples')  # fmt: skip
    axes.grid(alpha=0.3, which='both')


def draw(races, contestants, path):
    colors = [f'C{i}' for i in range(10)] + ['gold', 'navy', 'lime', 'black']
    styles = {
        c.name: {'color': color, 'marker': marker}
        for c, color, marker in zip(contestants, colors, MARKERS)
    }
    figure = Figure(figsize=(6 * len(races), 6.5), layout='constrained')
    for axes, (stream, rows, ridges) in zip(
        figure.subplots(1, len(races), squeeze=False)[0], races
    ):
        draw_panel(axes, stream, rows, ridges, styles)
    handles = [axes.plot([], [], label=name, **style)[0] for name, style in styles.items()]
    for color, style, label in LINES:
        handles += axes.plot([], [], color=color, linestyle=style, linewidth=1, label=label)
    figure.legend(handles=handles, loc='outside lower center', ncols=min(4, 2 * len(races)))
    figure.savefig(path, dpi=120)


def contestants_present(only):
    """Leave out whom ``only`` does not name and who is not installed, which is said."""
    present = []
    for contestant in CONTESTANTS + PEERS:
        if only and only.lower() not in contestant.name.lower():
            continue
        absence = contestant.origin.absence()
        if absence:
            print(f'{contestant.name} is left out: {absence}')
        else:
            present.append(contestant)
    return present


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=Path, default=Path('out/benchmark'))
    parser.add_argument('--repetitions', type=int, default=3)
    parser.add_argument('--only', metavar='NAME', help='contestants whose name holds this')
    parser.add_argument('--streams', nargs='+', choices=MAKERS, default=list(MAKERS))
    parser.add_argument('--quick', action='store_true', help='a short stream, one repetition')
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    dlib_krls.FOLDER = arguments.output
    repetitions = 1 if arguments.quick else arguments.repetitions
    contestants = contestants_present(arguments.only)
    if not contestants:
        parser.error(f'there is no contestant {arguments.only}')
    lines = environment(repetitions)
    print(*lines, sep='\n')
    races = []
    for name in arguments.streams:
        races.append(race(name, contestants, repetitions, arguments.quick))
        lines += (part := table(*races[-1]))
        print(*part, sep='\n', flush=True)
    lines += (part := grids(contestants))
    print(*part, sep='\n')
    (arguments.output / 'error_against_cost.txt').write_text('\n'.join(lines) + '\n')
    draw(races, contestants, arguments.output / 'error_against_cost.png')
    print(f'figure: {arguments.output / "error_against_cost.png"}')


if __name__ == '__main__':
    main()
