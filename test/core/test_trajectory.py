# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The conditioned kernel, bounds on what it spans, compression, and the compiled evaluation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import komp

from kernel_constrained.core.trajectory import basis_of, Trajectory, weights_at_ends
from kernel_constrained.core.trajectory_steps import evaluate, nearest_time, positions_along

BANDWIDTHS = (0.06, 0.1, 0.17, 0.35)
DENSE = np.linspace(0.0, 1.0, 20001)

bandwidths = st.sampled_from(BANDWIDTHS)
seeds = st.integers(0, 10**6)
dimensions_ = st.sampled_from([2, 3])


def gaussian(s, t, bandwidth):
    return np.exp(-(np.subtract.outer(s, t) ** 2) / (2.0 * bandwidth**2))


def conditioned(s, t, bandwidth):
    """Return k(s, t) - k(s, A) k(A, A)^-1 k(A, t) with A = (0, 1), as the formula stands."""
    ends = np.array([0.0, 1.0])
    among = gaussian(ends, ends, bandwidth)
    to, from_ = gaussian(s, ends, bandwidth), gaussian(ends, t, bandwidth)
    return gaussian(s, t, bandwidth) - to @ np.linalg.solve(among, from_)


def drawn(seed, bandwidth, dimensions=2, size=1.0):
    """Return a basis, random weights upon it, and ends."""
    rng, basis = np.random.default_rng(seed), basis_of(bandwidth)
    weights = size * rng.standard_normal((dimensions, basis.count))
    return basis, weights, *rng.uniform(-3.0, 3.0, (2, dimensions))


def made(seed, bandwidth, dimensions=2, size=1.0):
    basis, weights, start, goal = drawn(seed, bandwidth, dimensions, size)
    return basis.trajectory(weights, start, goal)


def of_atoms(dictionary, weights, bandwidth):
    """Return sum_m w_m k0(., d_m) from 0 to 0, for a dictionary of one's own."""
    atoms = np.concatenate([dictionary, [0.0, 1.0]])
    ends = weights_at_ends(dictionary, bandwidth)
    norm = math.sqrt(np.linalg.eigvalsh(
        weights @ conditioned(dictionary, dictionary, bandwidth) @ weights.T)[-1])  # fmt: skip
    nothing = np.zeros(len(weights))
    coefficients = np.concatenate([weights, weights @ ends.T], axis=1)
    return Trajectory(bandwidth, atoms, coefficients, nothing, nothing, norm)


def evaluated(trajectory, t):
    """Return what the compiled evaluation fills in: (4, D)."""
    stride = (len(trajectory.atoms) + 7) & ~7
    out = np.full((4, len(trajectory.start)), np.nan)
    evaluate(
        t, trajectory.atoms, trajectory.coefficients, trajectory.bandwidth, trajectory.start,
        trajectory.goal, out, np.full((4, stride), np.nan), np.zeros(stride, np.int64),
    )  # fmt: skip
    return out


# -- the kernel ---------------------------------------------------------------------------------


@pytest.mark.parametrize('bandwidth', BANDWIDTHS)
def test_kernel_is_that_of_the_formula(bandwidth):
    basis = basis_of(bandwidth)
    expected = conditioned(basis.times, basis.dictionary, bandwidth)
    np.testing.assert_allclose(basis.values, expected, atol=1e-12)
    among = conditioned(basis.dictionary, basis.dictionary, bandwidth)
    np.testing.assert_allclose(basis.gram, among, atol=1e-12)


@settings(deadline=None)
@given(seeds, bandwidths, dimensions_)
def test_ends_are_exact(seed, bandwidth, dimensions):
    trajectory = made(seed, bandwidth, dimensions)
    ends = trajectory([0.0, 1.0])
    scale = 1e-12 * (1.0 + np.abs(trajectory.coefficients).sum())
    np.testing.assert_allclose(ends[0], trajectory.start, atol=scale)
    np.testing.assert_allclose(ends[1], trajectory.goal, atol=scale)


@pytest.mark.parametrize('bandwidth', BANDWIDTHS)
def test_derivatives_are_limits_of_differences(bandwidth):
    trajectory, step = made(1, bandwidth, 3), 1e-5
    t = np.linspace(0.01, 0.99, 50)
    for order in (1, 2):
        difference = (
            trajectory.derivative(t + step, order - 1) - trajectory.derivative(t - step, order - 1)
        ) / (2.0 * step)
        exact = trajectory.derivative(t, order)
        np.testing.assert_allclose(difference, exact, atol=1e-6 * np.abs(exact).max())
    table = basis_of(bandwidth)
    for lower, upper in ((table.values, table.first), (table.first, table.second)):
        middle = 0.5 * (upper[1:] + upper[:-1])
        slopes = np.diff(lower, axis=0) / np.diff(table.times)[:, None]
        np.testing.assert_allclose(slopes, middle, atol=0.01 * np.abs(upper).max())


@pytest.mark.parametrize('dimensions', [2, 3])
def test_norm_is_the_largest_over_all_directions(dimensions):
    basis, weights, start, goal = drawn(3, 0.13, dimensions)
    trajectory = basis.trajectory(weights, start, goal)
    gram = conditioned(basis.dictionary, basis.dictionary, 0.13)
    directions = np.random.default_rng(0).standard_normal((20000, dimensions))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    products = weights @ gram @ weights.T
    squared = ((directions @ products) * directions).sum(1)
    assert trajectory.norm**2 >= squared.max() * (1.0 - 1e-9)
    # Exact in the plane, a bound in space.
    most = 1.005 if dimensions == 2 else 3.0**0.5
    assert trajectory.norm**2 <= most * squared.max()


def test_norm_is_zero_for_the_straight_way():
    basis = basis_of(0.2)
    trajectory = basis.trajectory(np.zeros((2, basis.count)), np.zeros(2), np.array([3.0, 4.0]))
    assert trajectory.norm == 0.0
    assert trajectory.length() == pytest.approx(5.0, abs=1e-12)
    np.testing.assert_array_equal(trajectory.curvature(DENSE), 0.0)


# -- bounds on derivatives ----------------------------------------------------------------------


def hermite(order, x):
    """Return the n-th derivative of exp(-x^2 / 2) over itself."""
    if order == 0:
        return np.ones_like(x)
    return [-x, x * x - 1.0, -(x**3) + 3.0 * x, x**4 - 6.0 * x * x + 3.0][order - 1]


def highest(trajectory, order, t=DENSE):
    """Return the largest length of derivative ``order`` of what bends the chord."""
    x = np.subtract.outer(t, trajectory.atoms) / trajectory.bandwidth
    rows = hermite(order, x) * np.exp(-0.5 * x * x) / trajectory.bandwidth**order
    return np.linalg.norm(rows @ trajectory.coefficients.T, axis=1).max()


@settings(deadline=None, max_examples=40)
@given(seeds, bandwidths, dimensions_)
def test_no_derivative_exceeds_its_bound(seed, bandwidth, dimensions):
    trajectory = made(seed, bandwidth, dimensions)
    for order in (1, 2, 3, 4):
        bound = trajectory.derivative_bound(order)
        assert highest(trajectory, order, DENSE[::20]) <= bound * (1.0 + 1e-9)


@pytest.mark.parametrize('order', [1, 2, 3, 4])
def test_bounds_are_attained(order):
    """By the kernel of the derivative itself: a difference of kernels, far from both ends."""
    bandwidth, step = 0.05, 0.004
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) * step
    # Weights whose sums of powers of x are those of the derivative at 0.
    powers = np.vander(x / step, 5, increasing=True).T
    wanted = np.zeros(5)
    wanted[order] = 1.0
    weights = np.linalg.solve(powers, wanted)
    bump = of_atoms(0.5 + x, np.stack([weights, np.zeros(5)]), bandwidth)
    assert highest(bump, order) == pytest.approx(bump.derivative_bound(order), rel=0.02)


# -- the compiled evaluation --------------------------------------------------------------------


@settings(deadline=None)
@given(seeds, bandwidths, dimensions_, st.floats(0.0, 1.0))
def test_evaluation_is_position_and_three_derivatives(seed, bandwidth, dimensions, t):
    trajectory = made(seed, bandwidth, dimensions)
    found = evaluated(trajectory, t)
    x = (t - trajectory.atoms) / bandwidth
    scale = np.abs(trajectory.coefficients).sum()
    for order in range(4):
        row = hermite(order, x) * np.exp(-0.5 * x * x) / bandwidth**order
        expected = trajectory.coefficients @ row
        if order < 2:
            chord = trajectory.goal - trajectory.start
            expected = expected + (trajectory.start + t * chord, chord)[order]
        np.testing.assert_allclose(found[order], expected, atol=1e-12 * scale / bandwidth**order)


def test_samples_are_those_of_the_trajectory():
    trajectory = made(7, 0.1, 3)
    for since in (0.0, 0.37):
        times = np.linspace(since, 1.0, 129)
        line, lengths = trajectory.sampled(since, 129)
        np.testing.assert_allclose(line, trajectory(times), atol=1e-11)
        steps = np.linalg.norm(np.diff(trajectory(times), axis=0), axis=1)
        np.testing.assert_allclose(lengths, np.concatenate([[0.0], np.cumsum(steps)]), atol=1e-10)


def test_length_is_that_of_a_fine_polyline():
    trajectory = made(7, 0.17, 2)
    for since in (0.0, 0.4):
        line = trajectory(np.linspace(since, 1.0, 100001))
        exact = np.linalg.norm(np.diff(line, axis=0), axis=1).sum()
        assert trajectory.length(since) == pytest.approx(exact, rel=2e-3)


def test_curvature_is_how_the_heading_turns_per_metre():
    trajectory = made(3, 0.2, 2, size=0.3)
    t, step = np.linspace(0.05, 0.95, 200), 1e-5
    before, after = trajectory.derivative(t - step), trajectory.derivative(t + step)
    turn = np.arctan2(
        before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0], (before * after).sum(1)
    )
    speed = np.linalg.norm(trajectory.derivative(t), axis=1)
    curvature = trajectory.curvature(t)
    np.testing.assert_allclose(np.abs(turn) / (2 * step * speed), curvature, rtol=1e-4, atol=1e-5)


def test_curvature_in_space_is_that_in_the_plane_of_the_path():
    flat = made(3, 0.2, 2, size=0.3)
    turned, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))
    turned = turned[:, :2]
    tilted = Trajectory(
        flat.bandwidth, flat.atoms, turned @ flat.coefficients, turned @ flat.start,
        turned @ flat.goal, flat.norm,
    )  # fmt: skip
    np.testing.assert_allclose(tilted.curvature(DENSE), flat.curvature(DENSE), rtol=1e-6)


@settings(deadline=None)
@given(seeds, bandwidths, dimensions_, st.floats(0.0, 0.9), st.floats(0.02, 0.4))
def test_nearest_time_is_at_least_as_near_as_any_of_many(seed, bandwidth, dimensions, low, width):
    trajectory = made(seed, bandwidth, dimensions, size=0.3)
    high = min(low + width, 1.0)
    rng = np.random.default_rng(seed)
    position = trajectory(rng.uniform(low, high))[0] + 0.05 * rng.standard_normal(dimensions)
    t, distance = nearest_time(
        trajectory.atoms, trajectory.coefficients, trajectory.bandwidth, trajectory.start,
        trajectory.goal, position, low, high, 24,
    )  # fmt: skip
    assert low <= t <= high
    assert distance == pytest.approx(np.linalg.norm(trajectory(t)[0] - position), abs=1e-9)
    times = np.linspace(low, high, 24)
    coarse = np.linalg.norm(trajectory(times) - position, axis=1).min()
    assert distance <= coarse + 1e-12


def test_nearest_time_of_a_position_on_a_gentle_path_is_when_it_is_there():
    basis = basis_of(0.35)
    weights = np.zeros((2, basis.count))
    weights[1, 1] = 0.5
    trajectory = basis.trajectory(weights, np.zeros(2), np.array([10.0, 0.0]))
    for t in np.linspace(0.1, 0.34, 11):
        found, distance = nearest_time(
            trajectory.atoms, trajectory.coefficients, trajectory.bandwidth, trajectory.start,
            trajectory.goal, trajectory(t)[0], 0.1, 0.35, 24,
        )  # fmt: skip
        assert found == pytest.approx(t, abs=1e-4)
        assert distance < 1e-3


def test_nearest_time_stays_between_its_limits():
    trajectory = made(2, 0.35, 2, size=0.1)
    for position, expected in ((trajectory.goal, 0.5), (trajectory.start, 0.3)):
        t, _ = nearest_time(
            trajectory.atoms, trajectory.coefficients, trajectory.bandwidth, trajectory.start,
            trajectory.goal, position, 0.3, 0.5, 24,
        )  # fmt: skip
        assert t == pytest.approx(expected, abs=0.02)


def test_positions_along_a_table_are_those_of_the_trajectory():
    basis, weights, start, goal = drawn(5, 0.1, 3)
    positions = np.empty((len(basis.times), 3))
    positions_along(basis.values, basis.times, weights, start, goal, positions)
    expected = basis.trajectory(weights, start, goal)(basis.times)
    np.testing.assert_allclose(positions, expected, atol=1e-11)


# -- projections, energies, fits ----------------------------------------------------------------


def test_projection_gives_back_what_the_basis_spans():
    basis, weights, *_ = drawn(4, 0.1)
    # <h, k0(t, .)> = h(t): weights of the projection times the Gram matrix are the kernel.
    for projected, table in (
        (basis.projected, basis.values), (basis.projected_first, basis.first),
        (basis.projected_second, basis.second),
    ):  # fmt: skip
        np.testing.assert_allclose(
            weights @ basis.gram @ projected.T, weights @ table.T,
            atol=1e-5 * np.abs(weights @ table.T).max(),
        )  # fmt: skip


def test_energies_are_integrals_of_squared_derivatives():
    basis, weights, *_ = drawn(4, 0.1)
    bump = basis.trajectory(weights, np.zeros(2), np.zeros(2))
    for order, energy in ((1, basis.speed_energy), (2, basis.bending_energy)):
        squared = (bump.derivative(DENSE, order) ** 2).sum(1)
        assert np.einsum('dm,mn,dn', weights, energy, weights) == pytest.approx(
            0.5 * (squared[1:] + squared[:-1]).mean(), rel=1e-3
        )


@pytest.mark.parametrize('bandwidth', BANDWIDTHS)
def test_the_dictionary_is_spread_evenly_between_the_ends(bandwidth):
    basis = basis_of(bandwidth)
    assert np.diff(basis.atoms[:-2]) == pytest.approx(1.0 / (basis.count + 1))
    assert basis.dictionary == pytest.approx(1.0 - basis.dictionary[::-1])
    assert basis.dictionary[0] == pytest.approx(1.0 / (basis.count + 1))


@pytest.mark.parametrize('bandwidth', BANDWIDTHS)
def test_a_straight_path_is_its_chord_and_has_no_weights(bandwidth):
    start, goal, basis = np.array([3.0, -1.0]), np.array([-5.0, 40.0]), basis_of(bandwidth)
    path = start + np.multiply.outer(basis.times, goal - start)
    assert np.abs(basis.fit(path)).max() < 1e-9


def test_fit_gives_back_a_path_of_the_basis():
    basis, weights, start, goal = drawn(6, 0.2, 3, size=0.3)
    trajectory = basis.trajectory(weights, start, goal)
    again = basis.trajectory(basis.fit(trajectory(basis.times)), start, goal)
    np.testing.assert_allclose(again(basis.times), trajectory(basis.times), atol=0.02)


def test_fit_stays_near_a_corner():
    basis = basis_of(0.1)
    corner = np.stack([np.minimum(2 * basis.times, 1.0), np.maximum(2 * basis.times - 1, 0.0)], 1)
    fitted = basis.trajectory(basis.fit(corner), corner[0], corner[-1])
    gaps = np.linalg.norm(fitted(basis.times) - corner, axis=1)
    assert gaps.max() < 0.08
    np.testing.assert_allclose(gaps[[0, -1]], 0.0, atol=1e-9)


# -- compression --------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(seeds, bandwidths, dimensions_, st.sampled_from([1e-4, 1e-3, 1e-2]))
def test_compression_moves_no_position_by_more_than_the_budget(
    seed, bandwidth, dimensions, budget
):
    basis, weights, start, goal = drawn(seed, bandwidth, dimensions)
    full = basis.trajectory(weights, start, goal)
    small = basis.compressed(weights, start, goal, budget)
    assert small.model_order <= full.model_order == basis.count
    assert np.linalg.norm(full(DENSE[::20]) - small(DENSE[::20]), axis=1).max() <= budget
    np.testing.assert_allclose(small([0.0, 1.0]), [start, goal], atol=1e-9)
    gram = conditioned(small.atoms[:-2], small.atoms[:-2], bandwidth)
    weights = small.coefficients[:, :-2]
    exact = math.sqrt(max(np.linalg.eigvalsh(weights @ gram @ weights.T)[-1], 0.0))
    most = 1.0 if dimensions == 2 else 3.0**0.25
    assert exact * (1.0 - 1e-4) - 1e-6 <= small.norm <= most * exact * (1.0 + 1e-4) + 1e-6


@pytest.mark.parametrize('budget', [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize('dimensions', [2, 3])
def test_compression_is_that_of_naive_komp(budget, dimensions):
    bandwidth = 0.13
    basis, weights, start, goal = drawn(11, bandwidth, dimensions)
    smooth = np.linalg.solve(basis.gram + 1e-3 * np.eye(basis.count), (weights * 0.1).T).T

    def kernel(a, b):
        return conditioned(a[:, 0], b[:, 0], bandwidth)

    atoms, kept = komp(kernel, basis.dictionary[:, None], smooth.T, budget)
    small = basis.compressed(smooth, start, goal, budget)
    assert set(np.round(small.atoms[:-2], 9)) == set(np.round(atoms[:, 0], 9))
    np.testing.assert_allclose(
        small.coefficients[:, :-2], kept[np.argsort(atoms[:, 0])].T,
        atol=1e-4 * np.abs(kept).max(),
    )  # fmt: skip


def test_straight_way_needs_no_point_at_all():
    basis = basis_of(0.1)
    small = basis.compressed(np.zeros((2, basis.count)), np.zeros(2), np.array([1.0, 2.0]), 1e-3)
    assert small.model_order == 0
    np.testing.assert_allclose(small(0.5)[0], [0.5, 1.0])
