# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What a batch method makes of all samples at once: the line that nobody can be far below.

Kernel ridge regression on a dense grid of centres (subset of regressors). The centres are a
fraction of a bandwidth apart, so the error is that of all samples as centres to six digits, as
``python batch_ridge.py`` shows.
"""

from typing import NamedTuple

import numpy as np
from streams import make, square

CENTRES = 400
PENALTIES = tuple(10.0 ** np.arange(-4, 2.1, 0.5))  # N lambda


class BatchRidge(NamedTuple):
    """Best error over the penalties, the penalty and the bandwidth."""

    error: float
    penalty: float
    bandwidth: float


def gaussian(a, b, bandwidth):
    squares = sum(np.subtract.outer(u, v) ** 2 for u, v in zip(a.T, b.T))
    return np.exp(-0.5 / bandwidth**2 * squares)


def grid_of_centres(x):
    side = round(CENTRES ** (1 / x.shape[1]))
    axes = [np.linspace(low, high, side) for low, high in zip(x.min(axis=0), x.max(axis=0))]
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, x.shape[1])


def errors(stream, bandwidth, centres=None):
    """Error for each of the penalties, in the centres' whitened coordinates."""
    centres = grid_of_centres(stream.x) if centres is None else centres
    values, vectors = np.linalg.eigh(gaussian(centres, centres, bandwidth))
    keep = values > 1e-12 * values[-1]
    whiten = vectors[:, keep] / np.sqrt(values[keep])
    features = gaussian(stream.x, centres, bandwidth) @ whiten
    test = gaussian(stream.test_x, centres, bandwidth) @ whiten
    gram, target = features.T @ features, features.T @ stream.y
    eye = np.eye(len(gram))
    return [
        stream.error(test @ np.linalg.solve(gram + penalty * eye, target)) for penalty in PENALTIES
    ]


def batch_ridge(streams, bandwidth):
    """Best of the penalties by the median over ``streams``."""
    medians = np.median([errors(stream, bandwidth) for stream in streams], axis=0)
    best = int(np.argmin(medians))
    return BatchRidge(float(medians[best]), PENALTIES[best], bandwidth)


def main():
    for stream in (square(0, samples=2_000), make('sigmoid', 0)):
        for bandwidth in stream.bandwidths:
            few, all_of_them = errors(stream, bandwidth), errors(stream, bandwidth, stream.x)
            ratio = np.max(np.abs(np.divide(few, all_of_them) - 1))
            print(f'{stream.name}, bandwidth {bandwidth}: relative difference {ratio:.1e}')


if __name__ == '__main__':
    main()
