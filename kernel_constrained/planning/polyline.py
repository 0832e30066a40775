# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Paths as positions joined by straight pieces."""

import math

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled

Array = npt.NDArray[np.float64]


def arc_lengths(line: Array) -> Array:
    """Distance along a polyline (k, D) from its beginning to each of its positions, (k,)."""
    lengths = np.empty(len(line))
    fill_lengths(np.ascontiguousarray(line, dtype=np.float64), lengths)
    return lengths


def length_of(line: Array) -> float:
    """Length of a polyline (k, D), metres."""
    return float(arc_lengths(line)[-1])


def at_lengths(line: Array, lengths: Array, wanted: Array) -> Array:
    """Positions at distances ``wanted`` (n,), ascending, along a polyline, (n, D).

    Beyond its ends these are its ends.
    """
    positions = np.empty((len(wanted), line.shape[1]))
    fill_positions(np.ascontiguousarray(line, dtype=np.float64), lengths, wanted, positions)
    return positions


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
    along, distance = nearest_on(np.ascontiguousarray(line, dtype=np.float64), lengths, position)
    return float(along), float(distance)


@compiled
def nearest_on(line, lengths, position):
    """Return where along a polyline (k, D) it is nearest to a position, and how near."""
    along, nearest = 0.0, np.inf
    for k in range(line.shape[0]):
        end = min(k + 1, line.shape[0] - 1)
        product, squared, distance = 0.0, 1e-300, 0.0
        for d in range(line.shape[1]):
            step = line[end, d] - line[k, d]
            product += (position[d] - line[k, d]) * step
            squared += step * step
        share = min(max(product / squared, 0.0), 1.0)
        for d in range(line.shape[1]):
            gap = line[k, d] + share * (line[end, d] - line[k, d]) - position[d]
            distance += gap * gap
        if distance < nearest:
            nearest, along = distance, lengths[k] + share * (lengths[end] - lengths[k])
    return along, math.sqrt(nearest)


@compiled
def fill_lengths(line, lengths):
    """Fill the distances (k,) along a polyline (k, D)."""
    length = 0.0
    for k in range(line.shape[0]):
        squared = 0.0
        for d in range(line.shape[1]):
            squared += (line[k, d] - line[max(k - 1, 0), d]) ** 2
        length += math.sqrt(squared)
        lengths[k] = length


@compiled
def fill_positions(line, lengths, wanted, positions):
    """Fill positions (n, D) at ascending distances along a polyline."""
    after, last = 1, line.shape[0] - 1
    for i in range(wanted.shape[0]):
        while after < last and lengths[after] < wanted[i]:
            after += 1
        before = max(after - 1, 0)
        end = min(after, last)
        gap = lengths[end] - lengths[before]
        share = (wanted[i] - lengths[before]) / gap if gap > 0.0 else 0.0
        share = min(max(share, 0.0), 1.0)
        for d in range(line.shape[1]):
            positions[i, d] = line[before, d] + share * (line[end, d] - line[before, d])
