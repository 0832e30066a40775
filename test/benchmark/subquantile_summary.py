# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the runs of the trimmed learners and their peers come to: tables in markdown."""

import csv
from collections import defaultdict

import numpy as np
from scipy.stats import t as student
from subquantile_data import CLASSIFICATION, DATA, REGRESSION
from subquantile_runs import ESTIMATED, kinds_of, NONE, ORACLE, OURS, Run

CONFIDENCE = 0.95
LABELS = ('random', 'shift', 'flip')
CLUSTER = 'leverage cluster'
NOTHING = '-'

# Cells of the table: title, data, whether a kind belongs, largest share, target.
GROUPS = (
    ('regression: random, shifted and flipped labels, to 0.4', REGRESSION,
     lambda kind: kind in LABELS, 0.4, 0.95),
    ('regression: all kinds, to 0.3', REGRESSION, lambda kind: True, 0.3, 0.85),
    ('classification: all kinds but leverage clusters, to 0.3', CLASSIFICATION,
     lambda kind: kind != CLUSTER, 0.3, 0.75),
    ('classification: leverage clusters, to 0.3', CLASSIFICATION,
     lambda kind: kind == CLUSTER, 0.3, None),
    ('classification: all kinds but leverage clusters, at 0.4', CLASSIFICATION,
     lambda kind: kind != CLUSTER, None, None),
)  # fmt: skip


class Results:
    """Runs by cell and method.

    Attributes
    ----------
    runs : list of Run
        All of them.
    cells : list of (data, kind, share)
        In the order of the data sets, their kinds and shares.
    methods : list of str
        In the order they were run.
    """

    def __init__(self, runs):
        self.runs = runs
        self._of = defaultdict(lambda: defaultdict(list))
        for run in runs:
            self._of[run.data, run.kind, run.share][run.method].append(run)
        self.cells = sorted(self._of, key=place)
        self.methods = list(
            dict.fromkeys(run.method for run in sorted(runs, key=regression_first))
        )

    def of(self, cell, method):
        """Return the runs of a method in a cell, in the order of the seeds."""
        return sorted(self._of[cell].get(method, []), key=lambda run: run.seed)

    def values(self, cell, method, name='error'):
        """Return a number of these runs, those that are NaN left out."""
        values = np.array([getattr(run, name) for run in self.of(cell, method)])
        return values[np.isfinite(values)]

    def mean(self, cell, method, name='error'):
        """Return the mean of a number, and half the width of its confidence interval."""
        values = self.values(cell, method, name)
        if len(values) == 0:
            return np.nan, np.nan
        if len(values) == 1:
            return values[0], np.nan
        half = student.ppf(0.5 + 0.5 * CONFIDENCE, len(values) - 1) * standard_error(values)
        return values.mean(), half


def row(*texts):
    """Return a line of a table."""
    return f'| {" | ".join(texts)} |'


def header(*titles):
    """Return the lines at the head of a table."""
    return [row(*titles), row(*['---'] * len(titles))]


def place(cell):
    """Return where a cell stands in tables."""
    data, kind, share = cell
    return list(DATA).index(data), [NONE, *kinds_of(data)].index(kind), share


def regression_first(run):
    """Return where a run stands when methods are listed: the most methods are for regression."""
    return run.data not in REGRESSION


def standard_error(values):
    return values.std(ddof=1) / np.sqrt(len(values))


def is_peer(method):
    return not method.startswith(OURS) and method != ORACLE


# -- cells in which ours is best ------------------------------------------------------------


def close_to_best(results, cell, method):
    """Return whether a method is within a standard error of the best peer, whose name comes too.

    The standard error is that of the best peer's mean over the seeds.
    """
    peers = {m: results.values(cell, m) for m in results.methods if is_peer(m)}
    peers = {m: values for m, values in peers.items() if len(values)}
    best = min(peers, key=lambda m: peers[m].mean())
    allowed = peers[best].mean() + standard_error(peers[best])
    return results.values(cell, method).mean() <= allowed, best


def group_lines(results, ours):
    """Return the shares of cells in which each of ours is best or close to it, and the others."""
    lines = header('cells', 'target', *ours)
    lost = []
    for title, data, belongs, largest, target in GROUPS:
        cells = [
            (d, kind, share) for d, kind, share in results.cells
            if d in data and kind != NONE and belongs(kind)
            and (share == 0.4 if largest is None else share <= largest)
        ]  # fmt: skip
        if not cells:
            continue
        texts = []
        for method in ours:
            verdicts = {cell: close_to_best(results, cell, method) for cell in cells}
            won = sum(close for close, _ in verdicts.values())
            texts.append(f'{won}/{len(cells)} = {won / len(cells):.0%}')
            if method == OURS:
                lost += [(cell, best) for cell, (close, best) in verdicts.items() if not close]
        asked = f'{target:.0%}' if target else NOTHING
        lines.append(row(title, asked, *texts))
    lines += ['', f'Where "{OURS}" is not:', '', *header('cell', OURS, 'best peer')]
    for cell, best in dict(lost).items():
        own, other = results.mean(cell, OURS)[0], results.mean(cell, best)[0]
        lines.append(row(', '.join(map(str, cell)), f'{own:.3f}', f'{best} {other:.3f}'))
    return lines


# -- the other figures of the table -------------------------------------------------


def ratio(results, cell, method, other):
    """Return the ratio of mean errors, and the paired interval of it by the bootstrap."""
    a, b = results.values(cell, method), results.values(cell, other)
    if len(a) == 0 or len(a) != len(b):
        return 'n/a'
    drawn = np.random.default_rng(0).integers(len(a), size=(2000, len(a)))
    tail = 50.0 * (1.0 - CONFIDENCE)
    low, high = np.percentile(
        a[drawn].mean(axis=1) / np.maximum(b[drawn].mean(axis=1), 1e-12), [tail, 100.0 - tail]
    )
    return f'{a.mean() / max(b.mean(), 1e-12):.3f} ({low:.3f} to {high:.3f})'


def ratio_lines(results, title, cell_of, pairs):
    """Return ratios of mean errors by data set, of pairs of methods."""
    lines = header(title, *(f'{a} / {b}' for a, b in pairs))
    for data in DATA:
        if cell_of(data) in results.cells:
            texts = [ratio(results, cell_of(data), *pair) for pair in pairs]
            lines.append(row(data, *texts))
    return lines


def outlier_lines(results):
    """Return how many gross outliers are found and clean samples dropped, over all shares."""
    methods = [OURS, ESTIMATED, 'SEVER', 'RANSAC']
    lines = header('found / dropped', *methods)
    for data in DATA:
        for kinds in (('shift', 'random'), None):
            cells = [
                c for c in results.cells
                if c[0] == data and c[1] != NONE and ((c[1] in kinds) if kinds else c[2] <= 0.3)
            ]  # fmt: skip
            if not cells:
                continue
            texts = []
            for method in methods:
                found, dropped = (
                    np.concatenate([results.values(c, method, name) for c in cells])
                    for name in ('found', 'dropped')
                )
                texts.append(
                    f'{found.mean():.3f} / {dropped.mean():.3f}' if len(found) else NOTHING
                )
            named = ' and '.join(k for k in kinds if k in kinds_of(data)) if kinds else None
            title = f'{named}, to 0.4' if named else 'all kinds, to 0.3'
            lines.append(row(f'{data}: {title}', *texts))
    return lines


def estimate_lines(results):
    """Return how far estimates of the corrupted share are off: mean error and mean distance."""
    shares = sorted({share for _, _, share in results.cells})
    title = 'estimated minus true share, mean (mean distance)'
    lines = header(title, *(f'{share:g}' for share in shares))
    for name, group in ('regression', REGRESSION), ('classification', CLASSIFICATION):
        mine = [c for c in results.cells if c[0] in group]
        for kind in dict.fromkeys(kind for _, kind, _ in mine):
            texts = []
            for share in shares:
                off = [results.values(c, ESTIMATED, 'share_said') - share
                       for c in mine if c[1:] == (kind, share)]  # fmt: skip
                off = np.concatenate(off) if off else np.zeros(0)
                texts.append(
                    f'{off.mean():+.3f} ({np.abs(off).mean():.3f})' if len(off) else NOTHING
                )
            lines.append(row(f'{name}: {kind}', *texts))
    return lines


# -- tables of everything -------------------------------------------------------------------


def table(results, data, name, digits=3):
    """Return the means of a number in all cells of a data set, with confidence intervals."""
    cells = [cell for cell in results.cells if cell[0] == data]
    methods = [m for m in results.methods if any(len(results.values(c, m, name)) for c in cells)]
    if not methods:
        return []
    lines = header(data, *methods)
    for cell in cells:
        texts = []
        for method in methods:
            mean, half = results.mean(cell, method, name)
            texts.append(f'{mean:.{digits}f} ± {half:.{digits}f}')
        _, kind, share = cell
        lines.append(row(f'{kind}, {share:g}', *texts))
    return [*lines, '']


def time_lines(results):
    """Return the median milliseconds of a fit by data set."""
    lines = header('milliseconds', *results.methods)
    for data in dict.fromkeys(cell[0] for cell in results.cells):
        texts = []
        for method in results.methods:
            seconds = [r.seconds for r in results.runs if (r.data, r.method) == (data, method)]
            texts.append(f'{1e3 * np.median(seconds):.1f}' if seconds else NOTHING)
        lines.append(row(data, *texts))
    return lines


def report(results):
    """Return all tables."""
    ours = [m for m in results.methods if m.startswith(OURS)]
    seeds = sorted({run.seed for run in results.runs})
    lines = [
        f'Seeds {seeds[0]} to {seeds[-1]}, {len(seeds)} of them; ± and intervals in brackets are '
        f'of {CONFIDENCE:.0%}.',
        '', '## Best, or within one standard error of the best peer', '',
        *group_lines(results, ours),
        '', '## Without corruption, against the plain fit', '',
        *ratio_lines(results, 'share 0', lambda data: (data, NONE, 0.0),
                     [(OURS, 'plain'), (ESTIMATED, 'plain')]),
        '', '## Random labels, share 0.2, against the oracle', '',
        *ratio_lines(results, 'share 0.2', lambda data: (data, 'random', 0.2),
                     [(OURS, ORACLE), (ESTIMATED, ORACLE)]),
        '', '## Gross outliers found, untouched samples dropped', '', *outlier_lines(results),
        '', '## Share of corruption by its own estimate', '', *estimate_lines(results),
        '', '## Time of a fit with its features, median, one thread', '', *time_lines(results),
        '', '## Error on clean test points', '',
        'Mean squared error over the variance; in classification the share that is wrong.', '',
    ]  # fmt: skip
    chosen = dict.fromkeys(cell[0] for cell in results.cells)
    for data in chosen:
        lines += table(results, data, 'error')
    lines += [
        '## Distance from the truth, where it is known', '',
        'Root mean square; in classification the share of points not given their likeliest class.',
        '',
    ]  # fmt: skip
    for data in chosen:
        lines += table(results, data, 'distance')
    return lines


# -- the file of all runs -------------------------------------------------------------------


def write_runs(runs, path):
    with path.open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(Run._fields)
        writer.writerows(runs)


def read_runs(path):
    with path.open(newline='') as file:
        return [
            Run(**{k: convert(k, text) for k, text in row.items()}) for row in csv.DictReader(file)
        ]


def convert(name, text):
    if name in ('data', 'kind', 'method'):
        return text
    return int(text) if name == 'seed' else float(text)
