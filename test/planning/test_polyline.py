# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Lengths, positions and nearest places of polylines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_constrained.planning.polyline import (
    arc_lengths,
    at_lengths,
    cut,
    length_of,
    nearest_length,
    resampled,
)

CORNER = np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]])
seeds = st.integers(0, 10**6)


def drawn(seed):
    rng = np.random.default_rng(seed)
    line = rng.uniform(-5.0, 5.0, (rng.integers(2, 8), rng.integers(2, 4)))
    return np.repeat(line, rng.integers(1, 3, len(line)), axis=0)  # some positions twice


def length(line):
    return sum(np.linalg.norm(b - a) for a, b in zip(line, line[1:]))


def test_lengths_are_those_of_the_pieces():
    np.testing.assert_allclose(arc_lengths(CORNER), [0.0, 3.0, 7.0])
    np.testing.assert_array_equal(arc_lengths(CORNER[:1]), [0.0])
    assert length_of(CORNER) == 7.0


def test_positions_are_found_by_length_in_space_too():
    line = np.column_stack([CORNER, [0.0, 0.0, 1.0]])
    lengths = arc_lengths(line)
    middle = at_lengths(line, lengths, np.array([1.5, lengths[-1]]))
    np.testing.assert_allclose(middle, [[1.5, 0.0, 0.0], [3.0, 4.0, 1.0]])


@settings(deadline=None)
@given(seeds, st.integers(2, 50))
def test_resampled_line_has_its_ends_and_equal_steps(seed, count):
    line = drawn(seed)
    found = resampled(line, count)
    assert found.shape == (count, line.shape[1])
    np.testing.assert_allclose(found[[0, -1]], line[[0, -1]])
    along = [nearest_length(line, arc_lengths(line), position) for position in found]
    assert max(distance for _, distance in along) < 1e-9
    assert (
        np.linalg.norm(np.diff(found, axis=0), axis=1).max() <= length(line) / (count - 1) + 1e-9
    )


@settings(deadline=None)
@given(seeds, st.floats(0.01, 60.0))
def test_cut_line_is_its_beginning(seed, wanted):
    line = drawn(seed)
    found = cut(line, wanted)
    assert length(found) == pytest.approx(min(wanted, length(line)))
    np.testing.assert_array_equal(found[0], line[0])
    np.testing.assert_array_equal(found[:-1], line[: len(found) - 1])


@settings(deadline=None)
@given(seeds)
def test_nearest_place_is_that_of_many(seed):
    line, rng = drawn(seed), np.random.default_rng(seed)
    lengths, position = arc_lengths(line), rng.uniform(-6.0, 6.0, line.shape[1])
    along, distance = nearest_length(line, lengths, position)
    many = at_lengths(line, lengths, np.linspace(0.0, lengths[-1], 5001))
    gaps = np.linalg.norm(many - position, axis=1)
    step = lengths[-1] / 5000
    assert gaps.min() - step <= distance <= gaps.min() + 1e-12
    there = at_lengths(line, lengths, np.array([along]))[0]
    assert np.linalg.norm(there - position) == pytest.approx(distance, abs=1e-9)


def test_nearest_place_of_a_single_position_is_it():
    along, distance = nearest_length(CORNER[:1], np.zeros(1), np.array([3.0, 4.0]))
    assert (along, distance) == (0.0, 5.0)
