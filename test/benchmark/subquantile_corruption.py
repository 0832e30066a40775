# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Kinds of corruption: what may have happened to a share of what a learner is shown.

Each kind changes the given rows of inputs and targets, in place. All rows are drawn at random but
those of near-boundary flips, which are the worst ones, and those of uneven flips.
"""

import math
from typing import NamedTuple

import numpy as np

SHIFT = 3.0  # of targets, in their standard deviations
FAR = 10.0  # distance of far leverage points, in those that inputs have from their mean
TIGHT = 0.1  # deviation of a cluster of leverage points in each of the standardised inputs
UNEVEN = 2.0  # odds at which a row of an even class is flipped, against one of an odd class


class Corrupted(NamedTuple):
    """Rows as a learner is shown them.

    Attributes
    ----------
    x, y : (n, p), (n,)
        Inputs and targets.
    mask : (n,) of bool
        The rows that were touched. Some may be right nonetheless: a random class often is.
    """

    x: np.ndarray
    y: np.ndarray
    mask: np.ndarray


def corrupt(x, y, kind, share, rng, swapped=None):
    """Corrupt exactly ``round(share n)`` of the rows of a regression or a classification.

    Parameters
    ----------
    x, y : (n, p), (n,)
        Clean rows, which stay as they are; integer ``y`` are classes.
    kind
        One of ``REGRESSION_KINDS`` or ``CLASSIFICATION_KINDS``, or ``SWAPPED``.
    share
        Of the rows.
    rng
        Generator that everything is drawn from.
    swapped : (n,), optional
        What targets become by kind ``SWAPPED``.
    """
    count = round(share * len(y))
    mask, x, y = np.zeros(len(y), dtype=bool), x.copy(), y.copy()
    if count == 0:
        return Corrupted(x, y, mask)
    rows = choose(x, y, kind, count, rng)
    mask[rows] = True
    if kind == SWAPPED:
        y[rows] = swapped[rows]
    else:
        classes = np.issubdtype(y.dtype, np.integer)
        (CLASSIFICATION_KINDS if classes else REGRESSION_KINDS)[kind](x, y, rows, rng)
    return Corrupted(x, y, mask)


def choose(x, y, kind, count, rng):
    """Draw the rows that are corrupted."""
    if kind == 'boundary flips':
        return np.argsort(nearest_of_another_class(x, y)[0])[:count]
    odds = np.where(y % 2 == 0, UNEVEN, 1.0) if kind == 'uneven flips' else np.ones(len(y))
    return rng.choice(len(y), count, replace=False, p=odds / odds.sum())


def nearest_of_another_class(x, y):
    """Return the squared distance of each row to the nearest of another class, and that class."""
    squared = np.sum(x**2, axis=1)
    distances = squared[:, None] + squared - 2.0 * x @ x.T
    distances[y[:, None] == y] = np.inf
    nearest = distances.argmin(axis=1)
    return distances[np.arange(len(y)), nearest], y[nearest]


def scrambled(x, count, rng):
    """Draw rows each of whose columns comes from another row: in the range, but meaningless."""
    return np.stack([rng.choice(column, count) for column in x.T], axis=1)


def outside(x, count, rng):
    """Draw inputs far outside, all in one direction."""
    direction = rng.standard_normal(x.shape[1])
    direction *= FAR * math.sqrt(x.shape[1]) / np.linalg.norm(direction)
    place = x.mean(axis=0) + x.std(axis=0) * direction
    return place + rng.standard_normal((count, x.shape[1]))


def cluster(x, rng, count):
    """Draw inputs that crowd around one of the rows; return them, and which row."""
    row = rng.integers(len(x))
    return x[row] + TIGHT * rng.standard_normal((count, x.shape[1])), row


# -- regression -----------------------------------------------------------------------------


def random_targets(x, y, rows, rng):
    """Take the targets of any rows."""
    y[rows] = rng.choice(y, len(rows))


def shifted_targets(x, y, rows, rng):
    """Move all targets the same way."""
    y[rows] += rng.choice([-SHIFT, SHIFT]) * y.std()


def flipped_targets(x, y, rows, rng):
    """Mirror targets about the median."""
    y[rows] = 2.0 * np.median(y) - y[rows]


def far_leverage(x, y, rows, rng):
    """Move inputs far outside, where no others are, and give them a target out of the range."""
    wrong = np.median(y) + rng.choice([-SHIFT, SHIFT]) * y.std()
    x[rows], y[rows] = outside(x, len(rows), rng), wrong


def leverage_cluster(x, y, rows, rng):
    """Crowd inputs around one of the rows, with a wrong target."""
    crowd, row = cluster(x, rng, len(rows))
    wrong = y[row] + rng.choice([-SHIFT, SHIFT]) * y.std()
    x[rows], y[rows] = crowd, wrong


def scrambled_inputs(x, y, rows, rng):
    """Replace inputs by meaningless ones; in classification likewise."""
    x[rows] = scrambled(x, len(rows), rng)


def scrambled_and_shifted(x, y, rows, rng):
    """Replace inputs by meaningless ones, and shift the targets."""
    scrambled_inputs(x, y, rows, rng)
    shifted_targets(x, y, rows, rng)


# -- classification -------------------------------------------------------------------------


def random_classes(x, y, rows, rng):
    """Draw any class, the right one included."""
    y[rows] = rng.integers(y.max() + 1, size=len(rows))


def next_classes(x, y, rows, rng):
    """Turn each class into the next one."""
    y[rows] = (y[rows] + 1) % (y.max() + 1)


def boundary_classes(x, y, rows, rng):
    """Give rows the class of the nearest row of another class."""
    y[rows] = nearest_of_another_class(x, y)[1][rows]


def far_classes(x, y, rows, rng):
    """Move inputs far outside, with one class for all."""
    x[rows], y[rows] = outside(x, len(rows), rng), rng.integers(y.max() + 1)


def class_cluster(x, y, rows, rng):
    """Crowd inputs around one of the rows, with another class than that row's."""
    crowd, row = cluster(x, rng, len(rows))
    wrong = (y[row] + rng.integers(1, y.max() + 1)) % (y.max() + 1)
    x[rows], y[rows] = crowd, wrong


def scrambled_and_next(x, y, rows, rng):
    """Replace inputs by meaningless ones, and turn each class into the next one."""
    scrambled_inputs(x, y, rows, rng)
    next_classes(x, y, rows, rng)


REGRESSION_KINDS = {
    'random': random_targets,
    'shift': shifted_targets,
    'flip': flipped_targets,
    'leverage far': far_leverage,
    'leverage cluster': leverage_cluster,
    'features': scrambled_inputs,
    'both': scrambled_and_shifted,
}
CLASSIFICATION_KINDS = {
    'random': random_classes,
    'uneven flips': next_classes,
    'boundary flips': boundary_classes,
    'features': scrambled_inputs,
    'both': scrambled_and_next,
    'leverage far': far_classes,
    'leverage cluster': class_cluster,
}
SWAPPED = 'swapped poses'
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4)
