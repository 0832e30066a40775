# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Paths as positions joined by straight pieces."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def arc_lengths(line: Array) -> Array:
    """Distance along a polyline (k, D) from its beginning to each of its positions, (k,)."""
    steps = np.diff(line, axis=0)
    return np.concatenate([[0.0], np.cumsum(np.sqrt((steps * steps).sum(1)))])


def at_lengths(line: Array, lengths: Array, wanted: Array) -> Array:
    """Positions at distances ``wanted`` (n,) along a polyline with its arc lengths, (n, D)."""
    return np.stack([np.interp(wanted, lengths, line[:, d]) for d in range(line.shape[1])], 1)


def resampled(line: Array, count: int) -> Array:
    """Positions at equal distances along a polyline, its ends among them, (count, D)."""
    lengths = arc_lengths(line)
    return at_lengths(line, lengths, np.linspace(0.0, lengths[-1], count))


def cut(line: Array, length: float) -> Array:
    """Return the beginning of a polyline, at most ``length`` metres of it."""
    lengths = arc_lengths(line)
    if lengths[-1] <= length:
        return line
    end = at_lengths(line, lengths, np.array([length]))
    return np.concatenate([line[lengths < length], end])


def nearest_length(line: Array, lengths: Array, position: Array) -> tuple[float, float]:
    """Return where along a polyline it is nearest to a position, and how near, metres."""
    if len(line) == 1:
        return 0.0, float(np.linalg.norm(line[0] - position))
    steps = np.diff(line, axis=0)
    squared = np.maximum((steps * steps).sum(1), 1e-300)
    share = np.clip(((position - line[:-1]) * steps).sum(1) / squared, 0.0, 1.0)
    gaps = line[:-1] + share[:, None] * steps - position
    distance = (gaps * gaps).sum(1)
    i = int(distance.argmin())
    along = lengths[i] + share[i] * (lengths[i + 1] - lengths[i])
    return float(along), float(np.sqrt(distance[i]))
