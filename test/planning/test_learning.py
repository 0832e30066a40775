# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The learner of trajectories: what it solves alone, under noise, and within limits."""

import attrs
import numpy as np
import pytest
from truth import along, bow, circles_of, clearance, discs

from kernel_constrained.core.trajectory import basis_of
from kernel_constrained.planning.certificate import prove, Status
from kernel_constrained.planning.config import (
    ChanceConfig,
    LimitConfig,
    PlannerConfig,
    TrajectoryConfig,
)
from kernel_constrained.planning.learning import bow as bow_of
from kernel_constrained.planning.learning import settings_of, TrajectoryLearner
from kernel_constrained.planning.risk import LAWS
from kernel_constrained.planning.steps import (
    curvature_gradient,
    LARGEST_SCALE,
    Noise,
    SMALLEST_SCALE,
    surrogate_step,
)
from kernel_constrained.planning.worlds import random_world

NOISES = 256
BASIS = basis_of(0.1)
ACROSS = np.array([-1.0, 1.0]) / np.sqrt(2.0)
BOWS = (0.0, 2.0, -2.0, 4.0, -4.0)
MARGIN, PROOF = 0.1, 0.05
WORLDS = range(8)
TOLERANCE, DEVIATION = 0.05, 0.1


def learner(**chance):
    return TrajectoryLearner(PlannerConfig(chance=ChanceConfig(tolerance=TOLERANCE, **chance)))


def solve(world, starts=BOWS, steps=600, by=None):
    """Return weights of a proven path and what was learned, from the first start that leads."""
    ends = world.start, world.goal
    reference, learned, weights = np.zeros((2, BASIS.count)), None, None
    for sideways in starts:
        weights = bow(BASIS, sideways * ACROSS)
        learned = (by or learner()).learn(
            weights, reference, BASIS, ends, circles_of(world, MARGIN), circles_of(world, PROOF),
            steps,
        )  # fmt: skip
        if learned.proven:
            break
    return weights, learned


# -- alone --------------------------------------------------------------------------------------


@pytest.mark.parametrize('seed', WORLDS)
def test_worlds_are_solved_from_the_straight_way_and_bows(seed):
    world = random_world(seed)
    assert not solve(world, starts=(0.0,), steps=0)[1].proven  # the straight way is blocked
    weights, learned = solve(world)
    assert learned.proven
    trajectory = BASIS.trajectory(weights, world.start, world.goal)
    assert prove(trajectory, circles_of(world, PROOF)).status == Status.PROVEN
    line = along(BASIS.bandwidth, weights, world.start, world.goal, 20001)
    assert world.clearance(line.T).min() > PROOF
    assert clearance(line, circles_of(world, PROOF)).min() > 0.0


def test_most_worlds_are_solved_from_the_straight_way_alone():
    learned = [solve(random_world(seed), starts=(0.0,))[1] for seed in range(30)]
    assert sum(one.proven for one in learned) >= 15
    assert all(one.steps > 0 for one in learned)


def from_bows(world, asides=BOWS, steps=300):
    """Return weights and what was learned, the bows taking turns."""
    ends = world.start, world.goal
    return learner().learn_from_bows(
        asides, BASIS, ends, circles_of(world, MARGIN), circles_of(world, PROOF), steps
    )


def test_bows_that_take_turns_solve_all_worlds():
    for seed in range(3000, 3060):
        world = random_world(seed)
        weights, learned = from_bows(world)
        assert learned.proven, seed
        line = along(BASIS.bandwidth, weights, world.start, world.goal, 20001)
        assert world.clearance(line.T).min() > PROOF


def test_path_between_discs_that_overlap_gets_past_them():
    """Each disc pushes it into the other; the way out of both is past the smaller one."""
    overlapping = discs(np.array([[5.0, 5.0], [0.9, -0.7]]), 1.0)
    ends = np.array([0.0, 0.0]), np.array([10.0, 0.0])
    weights = np.zeros((2, BASIS.count))
    stuck = learner().learn(
        weights, np.zeros_like(weights), BASIS, ends, overlapping, overlapping, 300
    )
    assert not stuck.proven
    weights, learned = learner().learn_from_bows([0.0], BASIS, ends, overlapping, overlapping, 300)
    assert learned.proven
    line = along(BASIS.bandwidth, weights, *ends, 20001)
    assert clearance(line, overlapping).min() > 0.0
    assert line[1].min() < -1.5  # the nearer way out


def test_every_bow_has_its_steps_where_there_is_no_way():
    wall = discs(np.stack([np.full(41, 5.0), np.linspace(-20.0, 20.0, 41)]), 1.0)
    ends = np.array([0.0, 0.0]), np.array([10.0, 0.0])
    for steps in (0, 5, 40):
        weights, learned = learner().learn_from_bows(BOWS, BASIS, ends, wall, wall, steps)
        assert (learned.proven, learned.steps) == (False, steps)
        assert np.isfinite(weights).all()
    with pytest.raises(ValueError, match='asides must not be empty'):
        learner().learn_from_bows([], BASIS, ends, wall, wall, 5)


def test_bow_begins_and_ends_at_the_ends_and_is_as_far_aside_as_asked():
    ends = np.array([1.0, 2.0]), np.array([5.0, 5.0])
    path = BASIS.trajectory(bow_of(BASIS, ends, 2.0), *ends)([0.0, 0.5, 1.0])
    wanted = np.array([[1.0, 2.0], [3.0 - 1.2, 3.5 + 1.6], [5.0, 5.0]])
    np.testing.assert_allclose(path, wanted, atol=0.02)


@pytest.mark.parametrize('surrogate', ['cvar', 'exp'])
def test_both_surrogates_solve_a_world(surrogate):
    assert solve(random_world(0), by=learner(surrogate=surrogate))[1].proven


def test_what_is_proven_already_is_left_as_it_is():
    world = random_world(0)
    weights, _ = solve(world)
    before = weights.copy()
    learned = learner().learn(
        weights, np.zeros_like(weights), BASIS, (world.start, world.goal),
        circles_of(world, MARGIN), circles_of(world, PROOF), 100,
    )  # fmt: skip
    assert (learned.proven, learned.steps) == (True, 0)
    np.testing.assert_array_equal(weights, before)


def test_steps_are_what_they_are_limited_to_where_there_is_no_way():
    wall = discs(np.stack([np.full(41, 5.0), np.linspace(-20.0, 20.0, 41)]), 1.0)
    ends = np.array([0.0, 0.0]), np.array([10.0, 0.0])
    for steps in (0, 1, 37):
        weights = np.zeros((2, BASIS.count))
        learned = learner().learn(weights, np.zeros_like(weights), BASIS, ends, wall, wall, steps)
        assert (learned.proven, learned.steps) == (False, steps)
        assert steps == 0 or learned.violation > 0.0
        assert np.isfinite(weights).all()


def test_same_seed_learns_the_same():
    world = random_world(3)
    np.testing.assert_array_equal(solve(world)[0], solve(world)[0])


def test_path_stays_near_the_reference():
    """Once past the disc, it is where it was asked to be and not on the chord."""
    ends = np.array([0.0, 0.0]), np.array([10.0, 0.0])
    reference = bow(BASIS, [0.0, 2.0])
    weights = np.zeros_like(reference)
    disc = discs([[1.5], [1.0]], 0.7)
    learner().learn_under_noise(
        weights, reference, BASIS, ends, disc, Noise(np.zeros(1), np.zeros((NOISES, 2, 1))), 600
    )
    found = BASIS.trajectory(weights, *ends)([0.6, 0.75])
    wanted = BASIS.trajectory(reference, *ends)([0.6, 0.75])
    assert np.abs(found - wanted).max() < 0.25


def test_reference_that_is_free_is_what_is_learned():
    """Nothing pulls it away, and the mean of many times the same is the same."""
    ends = np.array([0.0, 0.0]), np.array([10.0, 0.0])
    reference = bow(BASIS, [0.0, 2.0])
    weights, far = reference.copy(), discs([[5.0], [50.0]], 1.0)
    noise = Noise(np.zeros(1), np.zeros((NOISES, 2, 1)))
    learner().learn_under_noise(weights, reference, BASIS, ends, far, noise, 100)
    np.testing.assert_allclose(weights, reference, atol=1e-9)


# -- dual variable and scale --------------------------------------------------------------------


def test_dual_variable_falls_to_nothing_where_nothing_is_near():
    far = discs([[5.0], [50.0]], 1.0)
    weights = np.zeros((2, BASIS.count))
    learned = learner().learn_under_noise(
        weights, weights.copy(), BASIS, (np.zeros(2), np.array([10.0, 0.0])), far,
        Noise(np.zeros(1), np.zeros((NOISES, 2, 1))), 400,
    )  # fmt: skip
    assert learned.dual_variables[0] == 0.0
    assert learned.violation < 0.0
    np.testing.assert_array_equal(weights, 0.0)


def test_dual_variable_rises_and_is_capped_where_there_is_no_way():
    wall = discs(np.stack([np.full(41, 5.0), np.linspace(-20.0, 20.0, 41)]), 1.0)
    weights = np.zeros((2, BASIS.count))
    ends = np.zeros(2), np.array([10.0, 0.0])
    few, many = (
        learner().learn(
            weights.copy(), weights, BASIS, ends, wall, wall, steps
        ) for steps in (10, 400)
    )  # fmt: skip
    assert 1.0 / TOLERANCE < few.dual_variables[0] < many.dual_variables[0]
    assert many.dual_variables[0] <= 20.0 / TOLERANCE + 1e-9
    for learned in (few, many):
        assert SMALLEST_SCALE <= learned.scale <= LARGEST_SCALE
        np.testing.assert_array_equal(learned.dual_variables[1:], 0.0)  # no such limits
        assert learned.scale < 0.3  # what it begins with


# -- slopes -------------------------------------------------------------------------------------


@pytest.mark.parametrize('chance', [{}, {'surrogate': 'exp'}, {'mode': 'paper'}])
def test_slopes_of_the_constraint_are_limits_of_differences(chance):
    settings, step = settings_of(PlannerConfig(chance=ChanceConfig(**chance))), 1e-6
    for g in (-0.9, -0.1, 0.05, 0.6):
        for scale in (0.07, 0.3):
            _, by_g, by_scale = surrogate_step(g, settings, scale)
            more, less = (surrogate_step(g + side * step, settings, scale)[0] for side in (1, -1))
            assert by_g == pytest.approx((more - less) / (2 * step), rel=1e-4, abs=1e-7)
            more, less = (surrogate_step(g, settings, scale + side * step)[0] for side in (1, -1))
            assert by_scale == pytest.approx((more - less) / (2 * step), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize('dimensions', [2, 3])
def test_gradient_of_curvature_is_the_limit_of_differences(dimensions):
    rng, step = np.random.default_rng(0), 1e-6

    def curvature(v, a):
        squared = v @ v
        return np.sqrt(max(squared * (a @ a) - (v @ a) ** 2, 0.0)) / squared**1.5

    scratch = np.empty(dimensions), np.empty(dimensions)
    for _ in range(20):
        v, a = 3.0 * rng.standard_normal((2, dimensions))
        by_v, by_a = np.empty(dimensions), np.empty(dimensions)
        value = curvature_gradient(v, a, by_v, by_a)
        assert value == pytest.approx(curvature(v, a))
        for d in range(dimensions):
            off = np.zeros(dimensions)
            off[d] = step
            for moved, found in (((off, 0.0), by_v), ((0.0, off), by_a)):
                more, less = (
                    curvature_gradient(v + side * moved[0], a + side * moved[1], *scratch)
                    for side in (1, -1)
                )
                slope = (more - less) / (2 * step)
                assert found[d] == pytest.approx(slope, rel=1e-4, abs=1e-6)


# -- limits -------------------------------------------------------------------------------------


def learned_within(limits, steps=600):
    """Return the path past one disc that is learned within limits."""
    config = PlannerConfig(
        chance=ChanceConfig(tolerance=TOLERANCE), limits=limits, trajectory=TrajectoryConfig()
    )
    ends = np.zeros(2), np.array([10.0, 0.0])
    weights = bow(BASIS, [0.0, 0.5])
    learned = TrajectoryLearner(config).learn_under_noise(
        weights, np.zeros_like(weights), BASIS, ends, discs([[5.0], [-0.4]], 1.5),
        Noise(np.zeros(1), np.zeros((NOISES, 2, 1))), steps,
    )  # fmt: skip
    return BASIS.trajectory(weights, *ends), learned


def test_bound_on_curvature_straightens_the_path():
    times = np.linspace(0.02, 0.98, 500)
    free, nothing = learned_within(LimitConfig())
    bound = 0.5 * free.curvature(times).max()
    gentle, learned = learned_within(LimitConfig(curvature=bound))
    assert nothing.dual_variables[1] == 0.0 < learned.dual_variables[1]
    assert (gentle.curvature(times) > bound).mean() <= TOLERANCE
    assert (free.curvature(times) > bound).mean() > 2 * TOLERANCE


def test_bound_on_speed_slows_the_path():
    times = np.linspace(0.0, 1.0, 500)

    def speeds(path):
        return np.linalg.norm(path.derivative(times), axis=1)

    free, nothing = learned_within(LimitConfig())
    bound = 0.5 * (speeds(free).max() + 10.0)
    slow, learned = learned_within(LimitConfig(speed=bound / 10.0, duration=10.0))
    assert nothing.dual_variables[2] == 0.0 < learned.dual_variables[2]
    assert speeds(slow).max() < speeds(free).max()
    assert (speeds(slow) > bound).mean() <= TOLERANCE < (speeds(free) > bound).mean()


# -- noise --------------------------------------------------------------------------------------


def noise_of(law, count, seed=0):
    draws = LAWS[law](np.random.default_rng(seed), (NOISES, 2, count))
    return Noise(np.full(count, DEVIATION), draws)


def share_in_collision(weights, world, law, draws=150):
    """Return the probability of contact at a random time, from fresh draws."""
    times = np.linspace(0.0, 1.0, 201)
    line = BASIS.trajectory(weights, world.start, world.goal)(times).T[:, :, None]
    rng, obstacles, hits = np.random.default_rng(99), circles_of(world), 0.0
    for _ in range(draws):
        moved = obstacles.points + DEVIATION * LAWS[law](rng, obstacles.points.shape)
        gaps = np.sqrt(((line - moved[:, None]) ** 2).sum(0))
        hits += (gaps < obstacles.keep).any(1).mean()
    return hits / draws


def learned_under(world, law, **chance):
    weights, _ = solve(world)
    obstacles = circles_of(world)
    learned = learner(**chance).learn_under_noise(
        weights, np.zeros_like(weights), BASIS, (world.start, world.goal), obstacles,
        noise_of(law, obstacles.points.shape[1]), 600,
    )  # fmt: skip
    return weights, learned


@pytest.mark.parametrize('law', list(LAWS))
def test_tolerance_is_met_under_every_law_of_noise(law):
    for seed in (0, 1, 2):
        world = random_world(seed)
        weights, learned = learned_under(world, law)
        assert share_in_collision(weights, world, law) <= TOLERANCE
        assert learned.steps == 600


def test_paper_mode_accepts_what_the_default_does_not():
    """The per-sample infimum counts itself satisfied while the probability is too high."""
    shares = {}
    for mode in ('paper', 'default'):
        shares[mode] = []
        for seed in (0, 1, 2):
            world = random_world(seed)
            weights, _ = learned_under(world, 'gaussian', mode=mode)
            shares[mode].append(share_in_collision(weights, world, 'gaussian'))
    assert max(shares['default']) <= TOLERANCE < min(shares['paper'])


# -- three dimensions ---------------------------------------------------------------------------


def test_ball_is_passed_above_and_column_beside():
    ends = np.array([0.0, 0.0, 1.0]), np.array([10.0, 0.0, 1.0])
    start = basis_weights = np.zeros((3, BASIS.count))
    basis_weights[2] = bow(BASIS, [0.0, 0.4])[1]
    basis_weights[1] = bow(BASIS, [0.0, 0.1])[1]
    for points in (np.array([[5.0], [0.0], [1.0]]), np.array([[5.0], [0.0]])):
        weights = start.copy()
        wanted, enough = discs(points, 1.1, 3), discs(points, 1.05, 3)
        learned = learner().learn(
            weights, np.zeros_like(weights), BASIS, ends, wanted, enough, 600
        )
        assert learned.proven
        line = along(BASIS.bandwidth, weights, *ends, 20001)
        assert clearance(line, enough).min() > 0.0
        sideways, upwards = np.abs(line[1]).max(), np.abs(line[2] - 1.0).max()
        assert (upwards > sideways) == (len(points) == 3)


def test_configuration_is_what_is_learned_by():
    config = PlannerConfig()
    other = attrs.evolve(config, chance=ChanceConfig(tolerance=0.2, surrogate='exp', scale=0.5))
    settings = settings_of(other)
    assert (settings.tolerance, settings.scale) == (0.2, 0.5)
    assert settings.exponential
    assert not settings.per_sample
    assert not settings_of(config).exponential
