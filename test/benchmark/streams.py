# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The streams on which error is held against cost."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kernel_constrained.data import lidar_split, load_lidar


class Stream(NamedTuple):
    """Samples in the order they are learned, and the points predictions are held against.

    Attributes
    ----------
    name, seed
        What was drawn.
    x : (N, p)
        Inputs.
    y : (N,)
        Targets.
    test_x : (n, p)
        Fresh inputs.
    test_y : (n,)
        Their targets: without noise where ``merit`` is the excess MSE.
    bandwidth
        Of the Gaussian kernel that everybody uses.
    bandwidths
        What each may choose from in the variant with a bandwidth of its own.
    merit
        What the error is called.
    noise
        Mean square of the noise in ``test_y``: the error of the true function; NaN where nobody
        knows it.
    """

    name: str
    seed: int
    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    bandwidth: float
    bandwidths: tuple
    merit: str
    noise: float

    @property
    def variance(self):
        """Error of the mean of ``test_y``, the best constant."""
        return float(np.var(self.test_y))

    def error(self, prediction):
        """Mean squared difference of predictions of ``test_x`` from ``test_y``."""
        return float(np.mean((prediction - self.test_y) ** 2))


def square(seed, samples=20_000, tests=5_000):
    """Make y = sin(3 x1) cos(2 x2) + 0.1 noise on the square [-1, 1]^2; tested without noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (samples + tests, 2))
    clean = np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1])
    y = clean[:samples] + 0.1 * rng.standard_normal(samples)
    return Stream(
        'square', seed, x[:samples], y, x[samples:], clean[samples:],
        0.3, (0.3, 0.5, 0.8, 1.2), 'excess MSE', 0.0,
    )  # fmt: skip


def sigmoid(seed, samples=2_000, tests=5_000):
    """Make y = 1 / (1 + exp(-12 (x - 1/2))) + (0.02 + 0.08 x) noise on [0, 1]."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, samples + tests)
    deviation = 0.02 + 0.08 * x
    noise = deviation * rng.standard_normal(len(x))
    y = 1 / (1 + np.exp(-12 * (x - 0.5))) + noise
    return Stream(
        'sigmoid', seed, x[:samples, None], y[:samples], x[samples:, None], y[samples:],
        0.06, (0.06,), 'test MSE', float(np.mean(noise[samples:] ** 2)),
    )  # fmt: skip


def lidar(seed, epochs=10):
    """Take the LIDAR table: ten epochs of 179 rows, each in an order of its own; 22 to test."""
    table, split = load_lidar(), lidar_split(seed)
    x, y = (table.range[:, None] - 390) / 330, table.logratio
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(split.train) for _ in range(epochs)])
    return Stream(
        'lidar', seed, x[order], y[order], x[split.test], y[split.test],
        0.04, (0.04,), 'test MSE', float('nan'),
    )  # fmt: skip


MAKERS = {'square': square, 'sigmoid': sigmoid, 'lidar': lidar}
# Streams in a repetition: the error of one split of the LIDAR table, on 22 points, says little.
SPLITS = {'square': 1, 'sigmoid': 1, 'lidar': 5}
# Streams that settings are chosen on, at least.
CHOSEN_ON = {'square': 1, 'sigmoid': 2, 'lidar': 10}


@lru_cache(maxsize=32)
def make(name, seed, quick=False):
    """Return a stream; ``quick`` cuts the long one to a fifth."""
    return square(seed, samples=4_000) if quick and name == 'square' else MAKERS[name](seed)
