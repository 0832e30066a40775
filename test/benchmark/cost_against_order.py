# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Time per sample against model order: ours, the naive reference, and the floor beneath ours.

The floor is what no exact KOMP step can do without: the kernel vector and one product with the
inverse factor in each direction, timed alone at the same order. Everything is measured side by
side in one run; each figure is the median of several repetitions.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'core'))

from naive import NaiveLearner

from kernel_constrained.core import CVaR, Gaussian, PrimalDualLearner
from kernel_constrained.core.compilation import compiled
from kernel_constrained.core.factor import project
from kernel_constrained.core.kernels import kernel_vector

BANDWIDTH, STEP_SIZE, SAMPLES = 0.3, 0.2, 20_000
# Parsimony constants that give orders from about 10 to 200 on this stream.
PARSIMONIES = (7.0, 0.35, 0.04, 0.0015)
VARIANTS = {
    'POLK': dict(mode='paper'),
    'default': dict(constraint=CVaR(0.9, 0.03)),
}


def stream(seed=0):
    """Make y = sin(3 x1) cos(2 x2) + 0.1 noise on the square [-1, 1]^2."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (SAMPLES, 2))
    y = np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]) + 0.1 * rng.standard_normal(SAMPLES)
    return x, y


def learner(parsimony, **settings):
    return PrimalDualLearner(
        Gaussian(BANDWIDTH), step_size=STEP_SIZE, parsimony=parsimony, regularization=1e-4,
        **settings,
    )  # fmt: skip


def ours(x, y, parsimony, settings, repetitions):
    """Return (microseconds a sample in the steady state, order): the last three quarters."""
    first, times = SAMPLES // 4, []
    for _ in range(repetitions):
        fitted = learner(parsimony, **settings).partial_fit(x[:first], y[:first])
        begun = time.perf_counter()
        fitted.partial_fit(x[first:], y[first:])
        times.append((time.perf_counter() - begun) / (SAMPLES - first) * 1e6)
    return float(np.median(times)), fitted.model_order_


def single_call(x, y, parsimony):
    """Microseconds of a call of partial_fit with one sample, in the steady state."""
    fitted = learner(parsimony, mode='paper').partial_fit(x, y)
    begun = time.perf_counter()
    for i in range(5000):
        fitted.partial_fit(x[i : i + 1], y[i : i + 1])
    return (time.perf_counter() - begun) / 5000 * 1e6


@compiled
def floor_loop(count, code, parameters, points, factor, k, projection, bits, x, order):
    """Evaluate the kernel vector and project it, ``count`` times."""
    total = 0.0
    for i in range(count):
        kernel_vector(code, parameters, points, x[i % x.shape[0]], order, k, bits)
        total += project(factor, k, order, projection)
    return total


def floor(x, y, parsimony, repetitions):
    """Microseconds of a kernel vector and a projection at the order that is reached."""
    fitted = learner(parsimony, mode='paper').partial_fit(x, y)
    a, times = fitted._arrays, []
    arguments = (
        fitted.kernel.code, fitted.kernel.parameters, a['points'], a['factor'], a['scratch'][1],
        a['scratch'][2], a['scratch'][4].view(np.int64), x, fitted.model_order_,
    )  # fmt: skip
    floor_loop(1, *arguments)
    for _ in range(repetitions):
        begun = time.perf_counter()
        floor_loop(5000, *arguments)
        times.append((time.perf_counter() - begun) / 5000 * 1e6)
    return float(np.median(times))


def naive(x, y, parsimony, samples=3):
    """Microseconds a sample of the reference, from the state that ours has reached."""
    fitted = learner(parsimony, mode='paper').partial_fit(x, y)
    reference = NaiveLearner(Gaussian(BANDWIDTH), STEP_SIZE, parsimony, 1e-4)
    reference.atoms, reference.weights = fitted.dictionary_, fitted.weights_[:, None]
    begun = time.perf_counter()
    for i in range(samples):
        reference.step(x[i], y[i])
    return (time.perf_counter() - begun) / samples * 1e6


def measure(repetitions):
    """Return one row of figures for each parsimony constant."""
    x, y = stream()
    learner(1.0, mode='paper').warm_up(2)
    rows = []
    for parsimony in tqdm(PARSIMONIES, desc='orders'):
        row = {'floor': floor(x, y, parsimony, repetitions)}
        for name, settings in VARIANTS.items():
            row[name], row[f'{name} order'] = ours(x, y, parsimony, settings, repetitions)
        row['single call'] = single_call(x, y, parsimony)
        row['naive'] = naive(x, y, parsimony)
        rows.append(row)
    return rows


def table(rows):
    head = 'order   POLK us  / floor   default us (order)  single call us      naive us'
    lines = [
        f'{r["POLK order"]:5d}  {r["POLK"]:8.2f}  {r["POLK"] / r["floor"]:7.2f}  '
        f'{r["default"]:11.2f} ({r["default order"]:5d})  {r["single call"]:14.2f}  '
        f'{r["naive"]:12.0f}'
        for r in rows
    ]
    return '\n'.join([head, *lines])


def draw(rows, path):
    figure = Figure(figsize=(7, 5), layout='constrained')
    axes = figure.subplots()
    orders = [r['POLK order'] for r in rows]
    for name, style in (('naive', 'o-'), ('single call', 's-'), ('POLK', 'o-'), ('floor', 'k--')):
        axes.plot(orders, [r[name] for r in rows], style, label=name)
    axes.plot([r['default order'] for r in rows], [r['default'] for r in rows], 'o-',
              label='default')  # fmt: skip
    axes.set(xscale='log', yscale='log', xlabel='model order', ylabel='microseconds a sample',
             title='Cost against model order')  # fmt: skip
    axes.grid(alpha=0.3, which='both')
    axes.legend()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=Path, default=Path('out/benchmark'))
    parser.add_argument('--repetitions', type=int, default=7)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    rows = measure(arguments.repetitions)
    print(table(rows))
    draw(rows, arguments.output / 'cost_against_order.png')
    print(f'figure: {arguments.output / "cost_against_order.png"}')


if __name__ == '__main__':
    main()
