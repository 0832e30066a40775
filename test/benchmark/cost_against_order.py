# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Time per sample against model order: ours, the naive reference, and the lower bound.

The lower bound is what no KOMP step can do without at this order: the arithmetic of a kernel
vector and of a product with each triangle of the inverse factor at the machine's measured peak,
or reading the triangle once at the measured speed of memory that is this large, whichever takes
longer. Everything is measured side by side in one run; each figure is the median of several
repetitions, in the steady state: the last three quarters of a stream.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from streams import square
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'core'))

from naive import NaiveLearner

from kernel_constrained.core import CVaR, Gaussian, PrimalDualLearner
from kernel_constrained.core.compilation import compiled

BANDWIDTH = 0.3
# Settings that give orders of about 10, 50, 100 and 200 on this stream.
GRADIENT = {'step_size': 0.2, 'regularization': 1e-4}
VARIANTS = {
    'POLK': [dict(mode='paper', parsimony=p, **GRADIENT) for p in (2.0, 0.35, 0.04, 0.0011)],
    'gradient': [
        dict(step='gradient', constraint=CVaR(0.9, 0.03), parsimony=p, **GRADIENT)
        for p in (25.0, 1.6, 0.35, 0.02)
    ],
    'recursive': [
        {'step': 'recursive', 'constraint': CVaR(0.9, 0.03), 'novelty': n}
        for n in (0.8, 0.1, 5e-3, 2e-6)
    ],
}


class Row(NamedTuple):
    """A variant at one order: microseconds a sample, and of a call with a single sample."""

    order: int
    stream: float
    single: float
    bound: float
    naive: float


def learner(settings):
    return PrimalDualLearner(Gaussian(BANDWIDTH), **settings)


def in_one_call(stream, settings):
    """Return (microseconds a sample in the steady state, order)."""
    first = len(stream.x) // 4
    fitted = learner(settings).partial_fit(stream.x[:first], stream.y[:first])
    begun = time.perf_counter()
    fitted.partial_fit(stream.x[first:], stream.y[first:])
    return (time.perf_counter() - begun) / (len(stream.x) - first) * 1e6, fitted.model_order_


def in_single_calls(stream, settings, calls=3000):
    """Microseconds of a call of partial_fit with one sample, in the steady state."""
    fitted = learner(settings).partial_fit(stream.x, stream.y)
    samples = [(stream.x[i : i + 1], stream.y[i : i + 1]) for i in range(calls)]
    begun = time.perf_counter()
    for x, y in samples:
        fitted.partial_fit(x, y)
    return (time.perf_counter() - begun) / calls * 1e6


def naive(stream, settings, samples=3):
    """Microseconds a sample of the reference, from the state that ours has reached."""
    fitted = learner(settings).partial_fit(stream.x, stream.y)
    reference = NaiveLearner(
        Gaussian(BANDWIDTH), settings['step_size'], settings['parsimony'], 1e-4
    )
    reference.atoms, reference.weights = fitted.dictionary_, fitted.weights_[:, None]
    begun = time.perf_counter()
    for i in range(samples):
        reference.step(stream.x[i], stream.y[i])
    return (time.perf_counter() - begun) / samples * 1e6


# -- the lower bound ------------------------------------------------------------------------


@compiled
def multiply_add(repetitions, a, b, out):
    """Eight independent sums of products over the same short vectors: arithmetic only."""
    for _ in range(repetitions):
        for j in range(a.shape[0]):
            product = a[j]
            for _ in range(8):
                product = product * a[j] + b[j]
            out[j] = product
    return out[0]


@compiled
def read(repetitions, a):
    """Sum a vector again and again: memory only."""
    total = 0.0
    for r in range(repetitions):
        for j in range(a.shape[0]):
            total += a[j]
        a[r % a.shape[0]] += 1e-9
    return total


def fastest(function, *arguments):
    """Shortest of several runs, seconds."""
    function(1, *arguments)
    times = []
    for _ in range(15):
        begun = time.perf_counter()
        function(200, *arguments)
        times.append((time.perf_counter() - begun) / 200)
    return min(times)


def lower_bound(order, inputs=2):
    """Microseconds of the arithmetic, or of reading the triangle, whichever takes longer."""
    short = np.full(512, 0.5)
    flops = 512 * 16 / fastest(multiply_add, short, short, np.zeros(512))
    triangle = np.ones(order * order // 2 + 8)
    reading = fastest(read, triangle)
    arithmetic = (2 * order * order + order * (3 * inputs + 30)) / flops
    return max(arithmetic, reading) * 1e6


# -- tables and figure ----------------------------------------------------------------------


def measure(repetitions):
    """Return the rows of each variant."""
    stream, rows = square(seed=0), {}
    for name, choices in (progress := tqdm(VARIANTS.items(), desc='cost against order')):
        learner(choices[0]).warm_up(2)
        rows[name] = []
        for settings in choices:
            progress.set_postfix_str(name)
            times, orders = zip(*(in_one_call(stream, settings) for _ in range(repetitions)))
            single = np.median([in_single_calls(stream, settings) for _ in range(repetitions)])
            rows[name].append(
                Row(orders[0], float(np.median(times)), float(single), lower_bound(orders[0]),
                    naive(stream, settings) if name == 'POLK' else np.nan)
            )  # fmt: skip
    return rows


def table(rows):
    lines = ['microseconds a sample; "bound" is the lower bound, "single" a call with one sample',
             'variant    order   in a stream  / bound     single        naive']  # fmt: skip
    for name, members in rows.items():
        for r in members:
            reference = f'{r.naive:12.0f}' if np.isfinite(r.naive) else ''
            lines.append(
                f'{name:9s} {r.order:6d}  {r.stream:12.2f}  {r.stream / r.bound:7.2f}  '
                f'{r.single:9.2f} {reference}'
            )
    return '\n'.join(lines)


def draw(rows, path):
    figure = Figure(figsize=(7, 5.5), layout='constrained')
    axes = figure.subplots()
    for color, (name, members) in zip(('C0', 'C1', 'C2'), rows.items(), strict=True):
        orders = [r.order for r in members]
        axes.plot(orders, [r.stream for r in members], 'o-', color=color, label=name)
        axes.plot(orders, [r.single for r in members], 's:', color=color, alpha=0.6,
                  label=f'{name}, a sample a call')  # fmt: skip
    polk = rows['POLK']
    axes.plot([r.order for r in polk], [r.naive for r in polk], 'x-', color='0.4',
              label='naive KOMP (POLK)')  # fmt: skip
    bounds = sorted({(r.order, r.bound) for members in rows.values() for r in members})
    axes.plot(*zip(*bounds, strict=True), 'k--', label='lower bound (arithmetic, memory)')
    axes.set(xscale='log', yscale='log', xlabel='model order', ylabel='microseconds a sample',
             title='Cost against model order')  # fmt: skip
    axes.grid(alpha=0.3, which='both')
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=Path, default=Path('out/benchmark'))
    parser.add_argument('--repetitions', type=int, default=7)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    text = table(rows := measure(arguments.repetitions))
    print(text)
    (arguments.output / 'cost_against_order.txt').write_text(text + '\n')
    draw(rows, arguments.output / 'cost_against_order.png')
    print(f'figure: {arguments.output / "cost_against_order.png"}')


if __name__ == '__main__':
    main()
