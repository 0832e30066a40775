# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Proofs against 100,001 positions of each path: none is false, and hardly one is missed."""

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from truth import along, bow, circles_of, clearance, discs, distances, MANY, table

from kernel_constrained.core.trajectory import basis_of
from kernel_constrained.planning.certificate import prove, Status
from kernel_constrained.planning.exact import distances_to, walls_of
from kernel_constrained.planning.grid import distance_grid
from kernel_constrained.planning.obstacles import in_the_open
from kernel_constrained.planning.worlds import random_world

BANDWIDTHS = (0.1, 0.2)
PIECE = 1.0 / 32.0
NOTHING = np.empty((0, 3)), np.empty((0, 7))


def drawn(rng, bandwidth, dimensions=2):
    """Return a random path of some 10 m, gentle or wild: the trajectory and its positions."""
    basis = basis_of(bandwidth)
    size = 10.0 ** rng.uniform(-2.0, 0.5)
    weights = size * rng.standard_normal((dimensions, basis.count))
    start, goal = rng.uniform(0.0, 10.0, (2, dimensions))
    line = along(bandwidth, weights, start, goal)
    return basis.trajectory(weights, start, goal), line


def around(rng, line, count, plane=2):
    """Return points (plane, count) near a path and their true distances to it."""
    near = line[:plane, rng.integers(line.shape[1], size=count)]
    points = near + rng.normal(0.0, 1.0, near.shape)
    return points, distances(line, points)


def judge(proof, trajectory, left, since=0.0, enough=1e-3):
    """Hold a proof against what is left at 100,001 times from 0 to 1."""
    times = np.linspace(0.0, 1.0, MANY)
    ahead = times >= since
    left, times = left[ahead], times[ahead]
    if proof.status == Status.PROVEN:
        assert left.min() > 0.0, 'false proof'
        assert proof.where == 1.0
    else:
        assert left.min() < enough, f'free by {left.min()} and not proven'
        assert since - 1e-12 <= proof.where <= 1.0
        if proof.where > since:
            assert left[times < proof.where].min(initial=np.inf) > 0.0, (
                'a fault before the first fault'
            )
    if proof.status == Status.VIOLATED:
        assert left.min() < 1e-4  # the deepest position may lie between two that are looked at
        fault = times[np.argmax(left < 1e-4)]
        assert fault <= proof.where + PIECE * (1.0 - since) + 1e-4
    return proof.status


def test_paths_are_proven_exactly_where_they_are_free_of_discs():
    rng, statuses = np.random.default_rng(1), []
    for number in range(240):
        trajectory, line = drawn(rng, BANDWIDTHS[number % 2])
        points, apart = around(rng, line, 10)
        gap = rng.choice([-1e-4, 1e-6, 1e-3, 1e-2, 0.1]) * rng.uniform(1.0, 3.0, 10)
        keep = np.maximum(apart - np.abs(gap), 0.0)
        keep[0] = max(apart[0] - gap[0], 0.0)
        obstacles = discs(points, keep)
        left = clearance(line, obstacles)
        statuses.append(judge(prove(trajectory, obstacles), trajectory, left))
    assert statuses.count(Status.PROVEN) > 100
    assert statuses.count(Status.VIOLATED) > 30


def test_paths_are_proven_exactly_where_they_are_free_of_many_points():
    rng, proven = np.random.default_rng(2), 0
    for number in range(30):
        trajectory, line = drawn(rng, BANDWIDTHS[number % 2])
        points, apart = around(rng, line, 100)
        keep = rng.uniform(0.3, 0.4)
        points = points[:, apart > keep + rng.choice([-0.1, 2e-3])]
        obstacles = discs(points, keep)
        left = clearance(line, obstacles)
        proven += judge(prove(trajectory, obstacles), trajectory, left) == Status.PROVEN
    assert 8 <= proven <= 22


def test_proofs_from_a_time_on_speak_of_what_comes_after_it():
    rng, proven = np.random.default_rng(3), 0
    for number in range(60):
        trajectory, line = drawn(rng, BANDWIDTHS[number % 2])
        since = rng.uniform(0.0, 1.0)
        ahead = line[:, int(np.ceil(since * (MANY - 1))) :]
        points, apart = around(rng, ahead, 5)
        # Met before, and free after by a millimetre or more.
        keep = np.maximum(apart - rng.uniform(1e-3, 0.2, 5), 0.0)
        points = np.column_stack([points, line[:, 0]])
        keep = np.append(keep, max(distances(ahead, line[:, :1])[0] - 2e-3, 0.0))
        obstacles = discs(points, keep)
        left = clearance(line, obstacles)
        proof = prove(trajectory, obstacles, since)
        proven += judge(proof, trajectory, left, since) == Status.PROVEN
    assert proven == 60


def test_first_fault_is_that_of_the_first_obstacle():
    basis = basis_of(0.2)
    straight = basis.trajectory(np.zeros((2, basis.count)), np.zeros(2), np.array([10.0, 0.0]))
    for x in (2.0, 4.9, 8.3):
        proof = prove(straight, discs([[x, 9.0], [0.0, 0.0]], 0.5))
        assert proof.status == Status.VIOLATED
        assert 0.1 * (x - 0.5) - PIECE <= proof.where <= 0.1 * (x - 0.5)


def test_worlds_take_few_evaluations():
    evaluations, statuses = [], []
    for seed in range(12):
        world = random_world(seed)
        obstacles = circles_of(world)
        across = np.array([-1.0, 1.0]) / np.sqrt(2.0)
        for sideways in np.linspace(-4.0, 4.0, 17):
            basis = basis_of(BANDWIDTHS[seed % 2])
            weights = bow(basis, sideways * across)
            line = along(basis.bandwidth, weights, world.start, world.goal)
            trajectory = basis.trajectory(weights, world.start, world.goal)
            # What it would touch gives way until some centimetres are left.
            apart = distances(line, obstacles.points)
            keep = np.minimum(obstacles.keep, apart - 0.02)
            obstacles_left = discs(obstacles.points[:, keep > 0.0], keep[keep > 0.0])
            proof = prove(trajectory, obstacles_left)
            statuses.append(judge(proof, trajectory, clearance(line, obstacles_left)))
            evaluations.append(proof.evaluations)
    assert set(statuses) == {Status.PROVEN}
    assert np.percentile(evaluations, 95) <= 64
    assert min(evaluations) >= 8


def test_box_is_stayed_inside():
    rng, proven = np.random.default_rng(4), 0
    for number in range(60):
        trajectory, line = drawn(rng, BANDWIDTHS[number % 2])
        gap = rng.choice([-1e-3, 1.1e-3, 0.1], 2)
        box = in_the_open()._replace(low=line.min(1) - gap[0], high=line.max(1) + gap[1])
        left = clearance(line, box)
        proven += judge(prove(trajectory, box), trajectory, left) == Status.PROVEN
    assert 10 < proven < 50


def test_nothing_in_the_way_is_proven_at_once():
    trajectory, _ = drawn(np.random.default_rng(5), 0.1)
    assert prove(trajectory, in_the_open()) == (Status.PROVEN, 1.0, 8)


@pytest.mark.parametrize('dimensions', [2, 3])
def test_nothing_is_proven_of_what_is_no_number(dimensions):
    trajectory, _ = drawn(np.random.default_rng(5), 0.1, dimensions)
    obstacles = discs([[50.0], [50.0]], 0.3, dimensions, -100.0, 100.0)
    assert prove(trajectory, obstacles).status == Status.PROVEN
    nowhere, wrong = np.full(dimensions, np.nan), trajectory.coefficients.copy()
    wrong[1, 2] = np.nan
    for change in (
        {'start': nowhere}, {'goal': nowhere}, {'coefficients': wrong}, {'norm': np.nan},
        {'start': nowhere + np.inf},
    ):  # fmt: skip
        assert prove(attrs.evolve(trajectory, **change), obstacles).status != Status.PROVEN
    for change in (
        {'points': obstacles.points * np.nan}, {'keep': np.array([np.nan])},
        {'low': nowhere}, {'high': nowhere},
    ):  # fmt: skip
        assert prove(trajectory, obstacles._replace(**change)).status != Status.PROVEN


# -- maps ---------------------------------------------------------------------------------------


def test_walls_are_kept_clear_of_by_what_is_true_of_them():
    """No proof is false; and room of twice the distance to a node suffices for one."""
    rng, statuses = np.random.default_rng(6), []
    for number in range(60):
        trajectory, line = drawn(rng, BANDWIDTHS[number % 2])
        resolution = rng.choice([0.05, 0.2, 0.5])
        shape = np.array([int(14 / resolution)] * 2)
        cells, origin = np.zeros(shape, dtype=bool), np.array([-2.0, -2.0])
        for i, j in rng.integers(0, shape, (8, 2)):
            cells[i : i + rng.integers(1, 6), j : j + rng.integers(1, 6)] = True
        grid, sparse = distance_grid(cells, origin, resolution), line[:, ::10].T
        true = np.empty(len(sparse))
        walls = walls_of(cells, origin, resolution)
        distances_to(np.ascontiguousarray(sparse), np.zeros(len(sparse)), *NOTHING, *walls, true)
        keep = max(true.min() - rng.choice([-0.05, 1e-3, 0.75 * resolution]), 0.0)
        obstacles = in_the_open()._replace(
            grid=grid.values, grid_origin=grid.origin, grid_spacing=grid.spacing, grid_keep=keep
        )
        proof = prove(trajectory, obstacles)
        statuses.append(proof.status)
        if proof.status == Status.PROVEN:
            assert true.min() > keep
        else:
            assert true.min() < keep + 1.45 * grid.spacing
    assert 10 < statuses.count(Status.PROVEN) < 50


# -- three dimensions ---------------------------------------------------------------------------


def test_discs_are_columns_for_a_path_in_space():
    rng, proven = np.random.default_rng(7), 0
    for number in range(60):
        trajectory, line = drawn(rng, BANDWIDTHS[number % 2], 3)
        points, apart = around(rng, line, 6)
        obstacles = discs(points, np.maximum(apart - rng.choice([-1e-3, 1.1e-3, 0.2]), 0.0), 3)
        left = clearance(line, obstacles)
        proven += judge(prove(trajectory, obstacles), trajectory, left) == Status.PROVEN
    assert 20 < proven < 55


def test_balls_are_passed_above_and_below():
    rng, proven = np.random.default_rng(8), 0
    for number in range(60):
        trajectory, line = drawn(rng, BANDWIDTHS[number % 2], 3)
        points, apart = around(rng, line, 6, plane=3)
        obstacles = discs(points, np.maximum(apart - rng.choice([-1e-3, 1.1e-3, 0.2]), 0.0), 3)
        left = clearance(line, obstacles)
        proven += judge(prove(trajectory, obstacles), trajectory, left) == Status.PROVEN
    assert 20 < proven < 55


def test_ball_above_is_no_obstacle_where_a_column_is():
    basis = basis_of(0.2)
    start, goal = np.zeros(3), np.array([10.0, 0.0, 0.0])
    straight = basis.trajectory(np.zeros((3, basis.count)), start, goal)
    ball, column = np.array([[5.0], [0.0], [2.0]]), np.array([[5.0], [0.0]])
    assert prove(straight, discs(ball, 1.9, 3)).status == Status.PROVEN
    assert prove(straight, discs(ball, 2.1, 3)).status == Status.VIOLATED
    assert prove(straight, discs(column, 0.1, 3)).status == Status.VIOLATED


@pytest.mark.parametrize('plane', [2, 3])
@pytest.mark.parametrize('box', [2, 3])
def test_dimensions_that_do_not_fit_are_refused(plane, box):
    basis = basis_of(0.2)
    flat = basis.trajectory(np.zeros((2, basis.count)), np.zeros(2), np.ones(2))
    obstacles = discs(np.full((plane, 1), 9.0), 0.1, box)
    if plane == box == 2:
        assert prove(flat, obstacles).status == Status.PROVEN
    else:
        with pytest.raises(ValueError, match='2 dimensions cannot be held against'):
            prove(flat, obstacles)


# -- properties ---------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6), x=st.floats(-3.0, 13.0), y=st.floats(-3.0, 13.0),
    gap=st.one_of(st.sampled_from([0.0, 1e-9, -1e-9, 1e-3]), st.floats(-0.5, 0.5)),
    since=st.one_of(st.just(0.0), st.just(1.0), st.floats(0.0, 1.0)),
    bandwidth=st.sampled_from(BANDWIDTHS), dimensions=st.sampled_from([2, 3]),
)  # fmt: skip
def test_no_proof_is_false_and_a_millimetre_suffices(
    seed, x, y, gap, since, bandwidth, dimensions
):
    trajectory, line = drawn(np.random.default_rng(seed), bandwidth, dimensions)
    ahead = line[:, int(np.ceil(since * (MANY - 1))) :]
    points = np.array([[x], [y]])
    obstacles = discs(points, max(distances(ahead, points)[0] - gap, 0.0), dimensions)
    judge(prove(trajectory, obstacles, since), trajectory, clearance(line, obstacles), since)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_of_a_path_moved_with_its_obstacles_the_same_is_proven(seed, dimensions):
    rng = np.random.default_rng(seed)
    trajectory, line = drawn(rng, 0.2, dimensions)
    points, apart = around(rng, line[:, ::100], 4)
    obstacles = discs(points, np.maximum(apart - rng.uniform(-0.01, 0.1), 0.0), dimensions)
    shift = np.round(rng.uniform(-50.0, 50.0, dimensions))
    moved = attrs.evolve(trajectory, start=trajectory.start + shift, goal=trajectory.goal + shift)
    beside = obstacles._replace(points=points + shift[:2, None])
    assert prove(moved, beside).status == prove(trajectory, obstacles).status


def test_table_of_the_truth_is_that_of_the_trajectory():
    trajectory, line = drawn(np.random.default_rng(9), 0.1, 3)
    times, _ = table(0.1)
    np.testing.assert_allclose(line[:, ::1000].T, trajectory(times[::1000]), atol=1e-9)
