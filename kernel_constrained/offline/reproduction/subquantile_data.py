# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Data of which the function is known: two inputs, a sum of eight kernel functions, corruption."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from kernel_constrained.core import Gaussian

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

KERNEL = Gaussian(0.5)
CORRUPTION = 0.2
# Of the targets, where the function's own deviation is 1.
NOISE = 0.2
# Targets that are shifted are so by this; random ones are as far to both sides.
SHIFT = 3.0
# Labels are 1 with the probability expit(STEEPNESS f).
STEEPNESS = 4.0
# Inputs are in the square from -1 to 1; functions are compared on a grid in it.
GRID_SIDE = 24


class Samples(NamedTuple):
    """Samples, some of them corrupted: inputs (n, 2), targets or labels (n,), which ones (n,)."""

    X: Array
    y: Array
    corrupted: Mask


class Truth(NamedTuple):
    """The function behind the samples: ``sum_j weights_j k(centres_j, .)``."""

    centres: Array
    weights: Array

    def __call__(self, X: Array) -> Array:
        """Values at inputs (n, 2), shape (n,)."""
        values: Array = KERNEL(X, self.centres) @ self.weights
        return values


@cache
def grid() -> Array:
    """Midpoints of a grid over the square of the inputs, shape (GRID_SIDE^2, 2)."""
    side = (2.0 * np.arange(GRID_SIDE) + 1.0) / GRID_SIDE - 1.0
    return np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)


@cache
def truth() -> Truth:
    """Return the function, the same one for all samples; its deviation over the square is 1."""
    random = np.random.default_rng(0)
    drawn = Truth(random.uniform(-1.0, 1.0, (8, 2)), random.normal(size=8))
    return drawn._replace(weights=drawn.weights / drawn(grid()).std())


def shifted(targets: Array, random: np.random.Generator) -> Array:
    """Return targets that are all too high by the same."""
    return targets + SHIFT


def anywhere(targets: Array, random: np.random.Generator) -> Array:
    """Return targets that have nothing to do with the inputs."""
    return random.uniform(-SHIFT, SHIFT, len(targets))


def flipped(labels: Array, random: np.random.Generator) -> Array:
    """Return the other labels."""
    return 1.0 - labels


CORRUPTIONS: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    'shifted': shifted,
    'random': anywhere,
    'flipped': flipped,
}


def samples_of(corruption: str, count: int, seed: int) -> Samples:
    """Draw samples, and corrupt a share of them; flipped are labels, the others are targets."""
    random = np.random.default_rng([seed, count])
    X = random.uniform(-1.0, 1.0, (count, 2))
    if corruption == 'flipped':
        y = (random.uniform(size=count) < expit(STEEPNESS * truth()(X))).astype(float)
    else:
        y = truth()(X) + NOISE * random.normal(size=count)
    corrupted = np.zeros(count, dtype=bool)
    corrupted[random.permutation(count)[: round(CORRUPTION * count)]] = True
    y[corrupted] = CORRUPTIONS[corruption](y[corrupted], random)
    return Samples(X, y, corrupted)
