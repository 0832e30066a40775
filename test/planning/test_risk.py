# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Bounds on probabilities of collision: against closed forms, brute force and repetition."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom, ncx2, norm

from kernel_constrained.planning.risk import (
    clopper_pearson,
    LAWS,
    mean_bound,
    sampled_risk,
)

CONFIDENCE = 0.95


# -- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('draws', 'bound'), [(59, 0.05), (299, 0.01), (2995, 0.001)]
)  # fmt: skip
def test_no_hit_in_so_many_draws_bounds_the_probability(draws, bound):
    assert clopper_pearson(0, draws, CONFIDENCE) == pytest.approx(bound, rel=0.01)
    assert clopper_pearson(0, draws, CONFIDENCE) <= bound
    assert mean_bound(0.0, draws, CONFIDENCE) == pytest.approx(
        clopper_pearson(0, draws, CONFIDENCE), abs=1e-11
    )


@pytest.mark.parametrize(('hits', 'draws'), [(0, 7), (3, 7), (6, 7), (20, 299)])
@pytest.mark.parametrize('confidence', [0.5, 0.95, 0.999])
def test_the_bound_is_the_probability_at_which_so_few_hits_get_rare(hits, draws, confidence):
    bound = clopper_pearson(hits, draws, confidence)
    assert binom.cdf(hits, draws, bound) == pytest.approx(1.0 - confidence, rel=1e-6)
    assert bound == pytest.approx(beta.ppf(confidence, hits + 1, draws - hits))


def test_without_draws_or_with_nothing_but_hits_any_probability_is_possible():
    assert clopper_pearson(0, 0, CONFIDENCE) == 1.0
    assert clopper_pearson(5, 5, CONFIDENCE) == 1.0
    assert mean_bound(0.0, 0, CONFIDENCE) == 1.0
    assert mean_bound(1.0, 9, CONFIDENCE) == 1.0


@pytest.mark.parametrize('mean', [1e-4, 0.03, 0.5, 0.97])
def test_the_bound_of_a_mean_is_where_the_divergence_reaches_its_limit(mean):
    p = mean_bound(mean, 299, CONFIDENCE)
    divergence = mean * math.log(mean / p) + (1 - mean) * math.log((1 - mean) / (1 - p))
    assert p > mean
    assert 299 * divergence == pytest.approx(math.log(20.0), rel=1e-6)


@pytest.mark.parametrize('true', [0.002, 0.02, 0.3])
def test_bounds_hold_as_often_as_they_say(true):
    rng = np.random.default_rng(1)
    hits = rng.binomial(100, true, 2000)
    bounds = [clopper_pearson(int(h), 100, CONFIDENCE) for h in hits]
    assert np.mean(np.array(bounds) >= true) >= 0.94
    shares = rng.beta(0.1, 0.1 * (1 - true) / true, (2000, 100)).mean(axis=1)
    bounds = [mean_bound(m, 100, CONFIDENCE) for m in shares]
    assert np.mean(np.array(bounds) >= true) >= 0.94


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ((1, -1, 0.95), 'draws'),
        ((-1, 9, 0.95), 'hits'),
        ((10, 9, 0.95), 'hits'),
        ((0, 9, 1.0), 'confidence'),
        ((0, 9, 0.0), 'confidence'),
        ((0, 9, math.nan), 'confidence'),
    ],
)
def test_numbers_that_give_no_bound_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        clopper_pearson(*arguments)


# -- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', sorted(LAWS))
def test_draws_have_mean_0_and_variance_1(name):
    draws = LAWS[name](np.random.default_rng(2), (2000, 2, 500))
    assert draws.shape == (2000, 2, 500)
    assert draws.mean() == pytest.approx(0.0, abs=5e-3)
    # The fourth moment of Student's t with three degrees of freedom is infinite.
    assert draws.var() == pytest.approx(1.0, rel=0.2 if name == 'student_t3' else 0.01)


def test_there_are_five_laws():
    assert sorted(LAWS) == ['bimodal', 'gaussian', 'laplace', 'outliers', 'student_t3']


# -- sampling -----------------------------------------------------------------------------------


def risk_of(
    positions, points, contact, deviation, draws=20_000, seed=3, time=None, length=None, **more
):  # fmt: skip
    """Return the risk of a path by positions (k, 2) past points (n, 2)."""
    positions, points = np.array(positions, float).T.copy(), np.array(points, float).T.copy()
    k, n = positions.shape[1], points.shape[1]
    return sampled_risk(
        positions,
        np.ones(k) if time is None else np.array(time, float),
        np.ones(k) if length is None else np.array(length, float),
        points, np.broadcast_to(contact, n).astype(float),
        np.broadcast_to(deviation, n).astype(float), np.random.default_rng(seed), draws,
        CONFIDENCE, **more,
    )  # fmt: skip


def contact_probability(distance, contact, deviation):
    """Return the probability that a Gaussian displacement brings a point into contact."""
    return ncx2.cdf((contact / deviation) ** 2, 2, (distance / deviation) ** 2)


def assert_close(estimate, true, draws=20_000):
    """Five standard errors, and half a draw."""
    error = math.sqrt(true * (1 - true) / draws)
    assert abs(estimate - true) < 5 * error + 0.5 / draws, (estimate, true)


LAW = pytest.mark.parametrize('law', [None, LAWS['gaussian']])


@LAW
@pytest.mark.parametrize('distance', [0.0, 0.25, 0.3, 0.35, 0.42, 0.5])
def test_a_point_and_a_position_have_the_probability_of_the_closed_form(distance, law):
    risk = risk_of([[1.0, 2.0]], [[1.0 + distance, 2.0]], 0.3, 0.05, law=law)
    true = contact_probability(distance, 0.3, 0.05)
    for estimate in (risk.by_time_estimate, risk.by_length_estimate, risk.per_path_estimate):
        assert_close(estimate, true)


@LAW
def test_shares_are_weighted_by_time_and_by_length(law):
    risk = risk_of(
        [[0.0, 0.0], [5.0, 0.0]], [[0.35, 0.0]], 0.3, 0.1, law=law, time=[1, 3], length=[4, 1]
    )
    true = contact_probability(0.35, 0.3, 0.1)
    assert risk.by_time_estimate == pytest.approx(0.25 * risk.per_path_estimate)
    assert risk.by_length_estimate == pytest.approx(0.8 * risk.per_path_estimate)
    assert_close(risk.per_path_estimate, true)


@LAW
def test_independent_points_bring_about_contact_independently(law):
    points = [[0.4, 0.0], [0.0, 0.36], [-0.5, 0.0]]
    deviation, contact = np.array([0.05, 0.08, 0.1]), np.array([0.3, 0.3, 0.4])
    risk = risk_of([[0.0, 0.0]], points, contact, deviation, law=law)
    distance = np.array([0.4, 0.36, 0.5])
    true = 1.0 - np.prod(1.0 - contact_probability(distance, contact, deviation))
    assert_close(risk.per_path_estimate, true)


def test_a_displacement_is_the_same_all_along_the_path():
    x = np.linspace(-1.0, 1.0, 101)
    path = np.column_stack([x, np.zeros(101)])
    risk = risk_of(path, [[0.0, 0.4]], 0.3, 0.05)
    assert_close(risk.per_path_estimate, norm.cdf(-0.1 / 0.05))


@pytest.mark.parametrize('name', sorted(LAWS))
@pytest.mark.parametrize('with_pose', [False, True])
def test_sampling_is_brute_force_for_the_same_draws(name, with_pose):
    rng = np.random.default_rng(4)
    positions = np.column_stack([np.linspace(0, 2, 40), 0.1 * rng.normal(size=40)])
    points = rng.uniform([-1, -1], [3, 1], (50, 2))
    points = points[abs(points[:, 1]) > 0.44]
    n, draws = len(points), 300
    deviation, contact = rng.uniform(0.02, 0.1, n), rng.uniform(0.25, 0.35, n)
    time, length = rng.random(40), rng.random(40)
    root = rng.normal(size=(3, 3)) * 0.03
    pose = {'covariance': root @ root.T, 'pivot': np.array([0.5, 0.2])} if with_pose else {}
    risk = risk_of(
        positions, points, contact, deviation, draws, 5, time, length, law=LAWS[name], **pose
    )
    again, moved = np.random.default_rng(5), np.broadcast_to(points, (draws, n, 2))
    if with_pose:
        values, vectors = np.linalg.eigh(pose['covariance'])
        errors = again.standard_normal((draws, 3)) @ (vectors * np.sqrt(values)).T
        c, s = np.cos(errors[:, 2]), np.sin(errors[:, 2])
        turn = np.stack([np.stack([c, -s], 1), np.stack([s, c], 1)], 1)
        arms = points - pose['pivot']
        moved = pose['pivot'] + np.einsum('dij,nj->dni', turn, arms) + errors[:, None, :2]
    moved = moved + (LAWS[name](again, (draws, 2, n)) * deviation).transpose(0, 2, 1)
    distance = np.linalg.norm(moved[:, :, None] - positions, axis=-1)
    hit = (distance < contact[:, None]).any(axis=1)
    assert 0.05 < hit.any(axis=1).mean() < 0.98
    assert risk.per_path_estimate == pytest.approx(hit.any(axis=1).mean(), abs=1e-12)
    assert risk.by_time_estimate == pytest.approx((hit @ time).mean() / time.sum())
    assert risk.by_length_estimate == pytest.approx((hit @ length).mean() / length.sum())


def test_draws_that_matter_alone_are_distributed_as_all_of_them():
    rng = np.random.default_rng(6)
    positions = np.column_stack([np.linspace(0, 2, 30), np.zeros(30)])
    points = rng.uniform([-1, -1], [3, 1], (60, 2))
    points = points[abs(points[:, 1]) > 0.38]
    root = rng.normal(size=(3, 3)) * 0.02
    pose = {'covariance': root @ root.T, 'pivot': np.array([-0.5, 0.2])}
    for more in ({}, pose):
        few = risk_of(positions, points, 0.3, 0.05, **more)
        every = risk_of(positions, points, 0.3, 0.05, seed=7, law=LAWS['gaussian'], **more)
        assert 0.02 < every.per_path_estimate < 0.9
        for name in ('by_time_estimate', 'by_length_estimate', 'per_path_estimate'):
            a, b = getattr(few, name), getattr(every, name)
            assert abs(a - b) < 5 * math.sqrt(2 * b * (1 - b) / 20_000), name


@LAW
def test_an_error_of_the_position_adds_to_that_of_the_point(law):
    risk = risk_of(
        [[0.0, 0.0]], [[0.45, 0.0]], 0.3, 0.06, law=law,
        covariance=np.diag([0.08, 0.08, 0.0]) ** 2, pivot=np.array([0.45, 0.0]),
    )  # fmt: skip
    assert_close(risk.per_path_estimate, contact_probability(0.45, 0.3, 0.1))


@LAW
def test_an_error_of_the_heading_counts_by_the_distance_from_the_pivot(law):
    x = np.linspace(-0.4, 0.4, 201)
    risk = risk_of(  # a point 10 m away, 0.5 beside a path that goes straight to the pivot
        np.column_stack([10.0 + x, np.zeros(201)]), [[10.0, 0.5]], 0.3, 0.0, law=law,
        covariance=np.diag([0.0, 0.0, 0.02**2]), pivot=np.zeros(2),
    )  # fmt: skip
    assert_close(risk.per_path_estimate, norm.cdf(-0.02 / 0.02), 5_000)


def test_the_pose_moves_all_points_together():
    pose = {'covariance': np.diag([0.1, 0.1, 0.0]) ** 2, 'pivot': np.zeros(2)}
    one = risk_of([[0.0, 0.0]], [[0.4, 0.0]], 0.3, 0.0, **pose)
    two = risk_of([[0.0, 0.0]], [[0.4, 0.0]] * 2, 0.3, 0.0, **pose)
    assert one.per_path_estimate == two.per_path_estimate > 0.05


@LAW
@pytest.mark.parametrize(('distance', 'expected'), [(0.299, 1.0), (0.301, 0.0)])
def test_without_noise_contact_is_certain_or_impossible(distance, expected, law):
    risk = risk_of([[0.0, 0.0]], [[distance, 0.0]], 0.3, 0.0, 50, law=law)
    assert risk.by_time_estimate == risk.per_path_estimate == expected


@LAW
def test_without_obstacles_the_bound_is_that_of_the_draws(law):
    risk = risk_of([[0.0, 0.0]], np.empty((0, 2)), 0.3, 0.1, 299, law=law)
    assert risk.per_path_estimate == risk.by_time_estimate == risk.by_length_estimate == 0.0
    for bound in (risk.by_time, risk.by_length, risk.per_path):
        assert bound == pytest.approx(0.00997, abs=1e-5)
    assert (risk.draws, risk.confidence) == (299, CONFIDENCE)


def test_without_draws_nothing_is_known():
    risk = risk_of([[0.0, 0.0]], [[9.0, 0.0]], 0.3, 0.1, 0)
    assert risk.by_time == risk.by_length == risk.per_path == 1.0
    assert math.isnan(risk.by_time_estimate + risk.by_length_estimate + risk.per_path_estimate)


def test_bounds_are_those_of_the_estimates():
    risk = risk_of([[0.0, 0.0], [5.0, 0.0]], [[0.4, 0.0]], 0.3, 0.1, 299)
    hits = round(risk.per_path_estimate * 299)
    assert 0 < hits < 299
    assert risk.per_path == clopper_pearson(hits, 299, CONFIDENCE)
    assert risk.by_time == mean_bound(0.5 * hits / 299, 299, CONFIDENCE)


def test_weights_that_sum_to_nothing_count_the_same():
    risk = risk_of([[0.0, 0.0], [5.0, 0.0]], [[0.1, 0.0]], 0.3, 0.0, 9, time=[0, 0], length=[0, 9])
    assert (risk.by_time_estimate, risk.by_length_estimate) == (0.5, 0.0)


def test_the_same_seed_gives_the_same_risk():
    arguments = ([[0.0, 0.0]], [[0.4, 0.0]], 0.3, 0.1, 299)
    assert risk_of(*arguments, seed=8) == risk_of(*arguments, seed=8)
    assert risk_of(*arguments, seed=8) != risk_of(*arguments, seed=9)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'draws': -1}, 'draws'),
        ({'time': [-1.0]}, 'weights'),
        ({'time': [math.nan]}, 'weights'),
        ({'length': [math.inf]}, 'weights'),
        ({'length': [1.0, 1.0]}, 'weights'),
        ({'positions': np.empty((0, 2))}, 'positions'),
        ({'points': [[0.0, 0.0, 0.0]]}, 'points'),
        ({'covariance': np.eye(3)}, 'pivot'),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    given = dict(positions=[[0.0, 0.0]], points=[[1.0, 0.0]], contact=0.3, deviation=0.1, draws=9)
    with pytest.raises(ValueError, match=message):
        risk_of(**{**given, **change})
