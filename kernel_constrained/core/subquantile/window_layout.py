# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Where everything lies in the arrays that a learner over a sliding window consists of.

``state`` (one dimension)
    settings; counters and thresholds.
``table`` (rows of one stride)
    coordinates of the atoms; weights of the functions in orthonormal coordinates; a row for each
    thing that an atom has; scratch.
``factors`` (4, capacity, stride)
    the inverse Cholesky factor of the dictionary; the covariance of the weights; two of scratch.
``ring`` (rows, width)
    the samples of the window, one a column.
``coordinates`` (width, stride)
    their orthonormal coordinates, one sample a row.
"""

from typing import NamedTuple

import numpy as np

from kernel_constrained.core.compilation import compiled
from kernel_constrained.core.komp import Dictionary


class Settings(NamedTuple):
    """What the compiled steps need of the configuration, all floats; the kernel's come first."""

    kernel_0: float
    kernel_1: float
    kernel_code: float
    window: float
    corruption: float
    regularization: float
    novelty: float
    max_order: float


# Counters and thresholds, behind the settings.
(COUNT, ORDER, OVERSPENT, REJECTED, KEPT, TURN, RIDGE, LIMIT, UNIT, CORRUPTION, NEXT_LOOK,
 NEXT_START, LOSS_LIMIT, NEWEST_LOSS, NEWEST_SCORE, NEWEST_VARIANCE, STATUS,
 SIGNS) = range(
    len(Settings._fields), len(Settings._fields) + 18
)  # fmt: skip

STATE = SIGNS + 3

# How a call of the stream ended.
LEARNED, FULL, LOOK, DIVERGED, NOT_FINITE = range(5)

# Rows of the table behind coordinates and weights.
DIAGONAL, USAGE, SCALES, SCRATCH = range(4)
# Rows of scratch that hold the late updates, which are no scratch between two samples.
LATE, TABLE = 11, SCRATCH + 14

# Rows of the ring behind inputs and targets: squared residual over its variance, leave-one-out
# variance, squared distance from the span, local scale, whether it is kept; scratch, one row and
# one for each target.
SCORE, VARIANCE, GAP, SCALE, IS_KEPT, RING_SCRATCH = range(6)

# Entries of a trace row before the prediction.
TRACE_LOSS, TRACE_LIMIT, TRACE_KEPT, TRACE_ORDER, TRACE_HEADER = range(5)


class Samples(NamedTuple):
    """The samples of the window; ``width`` is that of the window in whole vectors."""

    x: np.ndarray  # (p, width)
    y: np.ndarray  # (q, width)
    score: np.ndarray  # (width,)
    variance: np.ndarray  # (width,)
    gap: np.ndarray  # (width,)
    scale: np.ndarray  # (width,)
    kept: np.ndarray  # (width,)
    sizes: np.ndarray  # (width,): scratch
    residuals: np.ndarray  # (q, width): scratch
    c: np.ndarray  # (width, stride): coordinates


class Window(NamedTuple):
    """All that a step reads and writes, as views of the arrays."""

    d: Dictionary
    covariance: np.ndarray  # (capacity, stride): P
    scales: np.ndarray  # (stride,): local scale at each atom
    k: np.ndarray  # (stride,): kernel vector of the newest sample
    gains: np.ndarray  # (3, stride): P c of the sample that comes, that leaves, that changes
    late: np.ndarray  # (3, stride): updates that P has yet to receive
    signs: np.ndarray  # (3,): of these: 1 for a sample that came, -1 for one that left, or 0
    values: np.ndarray  # (q,): functions at the newest sample
    samples: Samples


@compiled
def settings_of(a):
    """Read the settings."""
    return Settings(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7])


@compiled
def window_of(s, state, table, factors, ring, coordinates, inputs, columns):
    """Lay the views."""
    first = inputs + columns
    own, scratch = table[first:], table[first + SCRATCH :]
    d = Dictionary(
        int(s.kernel_code), state[:2], table[:inputs], table[inputs:first], factors[0],
        own[DIAGONAL], scratch[0], own[USAGE], scratch[1], scratch[2],
        scratch[3].view(np.int64), scratch[4:6], scratch[6],
    )  # fmt: skip
    r = ring[first:]
    samples = Samples(
        ring[:inputs], ring[inputs:first], r[SCORE], r[VARIANCE], r[GAP], r[SCALE], r[IS_KEPT],
        r[RING_SCRATCH], r[RING_SCRATCH + 1 :], coordinates,
    )  # fmt: skip
    return Window(
        d, factors[1], own[SCALES], scratch[7], scratch[8:11], scratch[LATE : LATE + 3],
        state[SIGNS:STATE], state[STATE:], samples,
    )  # fmt: skip
