# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Honest uncertainty: a stated 90 % interval covers 87 to 93 % of what was not learned from."""

import math
from functools import cache

import numpy as np
import pytest
from made_scans import room_scan

from kernel_constrained.configuration import from_flat
from kernel_constrained.perception.config import FilterConfig
from kernel_constrained.perception.filter import ScanFilter, UNKNOWN_VARIANCE
from kernel_constrained.perception.geometry import Pose
from kernel_constrained.perception.scan import Reading

LEARNED, HELD_OUT = 2000, 4000
DEVIATIONS = 1.645  # either side of the mean of a normal distribution: 90 %
SQUARED_RADIUS = {2: 4.605, 3: 6.251}  # chi-square's 90 % quantile, by degrees of freedom
SETTINGS = {'features.type': 'range', 'pairing.max_gap': 0.0, 'learner.bandwidth': 0.5}


def made_filter(kind, **more):
    return ScanFilter(from_flat(FilterConfig, {**SETTINGS, 'target.type': kind, **more}))


def stream(count, noise, seed=0):
    """Return ranges and poses; noise is ten times larger for ranges beyond 5, and correlated."""
    rng = np.random.default_rng(seed)
    ranges = rng.uniform(0.0, 10.0, count)
    draw = {'normal': rng.standard_normal, 'laplace': lambda n: rng.laplace(0, math.sqrt(0.5), n)}
    errors = draw[noise]((count, 3))
    errors[:, 1] = 0.8 * errors[:, 0] + 0.6 * errors[:, 1]
    errors *= np.where(ranges < 5.0, 0.05, 0.5)[:, None] * [1.0, 1.0, 0.3]
    x, y, yaw = 2 * np.sin(0.6 * ranges), np.cos(0.6 * ranges), 1 + 0.3 * np.sin(0.5 * ranges)
    truth = np.stack([x, y, yaw], axis=1) + errors
    return [(r, Pose(x, y, 0.0, yaw)) for r, (x, y, yaw) in zip(ranges.tolist(), truth.tolist())]


def feed(filter_, samples, start=0):
    """Feed samples; return (range, estimate, truth minus estimate) of each."""
    results = []
    for i, (distance, pose) in enumerate(samples, start):
        estimate = filter_.scan(i, Reading(distance, 0.0, 10.0))
        filter_.pose(i, pose)
        filter_.learn()
        truth = filter_.target.quantity(pose, None)
        results.append((distance, estimate, truth - estimate.mean))
    return results


@cache
def held_out(kind, noise, learning):
    filter_ = made_filter(kind)
    samples = stream(LEARNED + HELD_OUT, noise)
    feed(filter_, samples[:LEARNED])
    filter_.learning = learning
    return feed(filter_, samples[LEARNED:], LEARNED)


def coverage(results, inside):
    """Share of estimates that hold the truth: of all, of ranges below 5, of those beyond."""
    held = np.array([inside(estimate, error) for _, estimate, error in results])
    near = np.array([distance < 5.0 for distance, *_ in results])
    return held.mean(), held[near].mean(), held[~near].mean()


def within_interval(component):
    def inside(estimate, error):
        deviation = math.sqrt(estimate.covariance[component, component])
        return abs(error[component]) <= DEVIATIONS * deviation

    return inside


ALL_WAYS = pytest.mark.parametrize('learning', [True, False], ids=['prequential', 'frozen'])
NOISES = pytest.mark.parametrize('noise', ['normal', 'laplace'])


@ALL_WAYS
@NOISES
@pytest.mark.parametrize(
    ('kind', 'component'), [('axis', 0), *[('pose', component) for component in range(4)]]
)
def test_interval_of_90_percent_covers_that_of_all_and_of_each_half(
    kind, component, noise, learning
):
    for share in coverage(held_out(kind, noise, learning), within_interval(component)):
        assert 0.87 <= share <= 0.93


@ALL_WAYS
@pytest.mark.parametrize('parts', ['position', 'position and yaw'])
def test_ellipse_of_90_percent_covers_that_too_so_correlations_are_right(parts, learning):
    def inside(estimate, error):
        # Cosine and sine have one direction to be off in, along the circle.
        yaw = math.atan2(estimate.mean[3], estimate.mean[2])
        along = np.zeros((3, 4))
        along[0, 0] = along[1, 1] = 1.0
        along[2, 2:] = -math.sin(yaw), math.cos(yaw)
        along = along[:2] if parts == 'position' else along
        off, covariance = along @ error, along @ estimate.covariance @ along.T
        return off @ np.linalg.solve(covariance, off) <= SQUARED_RADIUS[len(off)]

    for share in coverage(held_out('pose', 'normal', learning), inside):
        assert 0.87 <= share <= 0.93


def test_covariance_knows_that_errors_go_together():
    correlations = []
    for _, estimate, _ in held_out('pose', 'normal', False):
        covariance = estimate.covariance
        assert np.array_equal(covariance, covariance.T)
        assert np.linalg.eigvalsh(covariance).min() >= -1e-12
        correlations.append(covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]))
    assert np.mean(correlations) == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize('kind', ['axis', 'pose'])
def test_stated_deviation_is_that_of_the_noise_on_either_side(kind):
    stated = {True: [], False: []}
    for distance, estimate, _ in held_out(kind, 'normal', False):
        if not 4.0 < distance < 6.0:
            stated[distance < 5.0].append(math.sqrt(estimate.covariance[0, 0]))
    assert np.mean(stated[True]) == pytest.approx(0.05, rel=0.15)
    assert np.mean(stated[False]) == pytest.approx(0.5, rel=0.15)


@pytest.mark.parametrize('scales', [(1.0, 1.0), (0.1, 0.02)])
def test_covariance_does_not_depend_on_the_unit_of_the_loss(scales):
    units = {'target.position_scale': scales[0], 'target.yaw_scale': scales[1]}
    filter_ = made_filter('pose', **units, **{'learner.constrained': False})
    results = feed(filter_, stream(1000, 'normal'))[-300:]
    found = np.mean([np.sqrt(np.diag(estimate.covariance)) for _, estimate, _ in results], axis=0)
    off = np.sqrt(np.mean([error**2 for *_, error in results], axis=0))
    assert found == pytest.approx(off, rel=0.4)


# -- where nothing is known ---------------------------------------------------------------------


@pytest.mark.parametrize('kind', ['axis', 'pose'])
def test_far_from_all_that_was_seen_an_estimate_is_as_uncertain_as_the_quantity(kind):
    filter_ = made_filter(kind)
    samples = [(0.3 * distance, pose) for distance, pose in stream(LEARNED, 'normal')]
    feed(filter_, samples)
    quantities = np.array([filter_.target.quantity(pose, None) for _, pose in samples[-1000:]])
    for i, distance in enumerate((4.5, 7.0, 10.0)):
        estimate = filter_.scan(LEARNED + i, Reading(distance, 0.0, 10.0))
        variances = np.diag(estimate.covariance)
        spread = np.mean((quantities - estimate.mean) ** 2, axis=0)
        assert (variances > 0.9 * quantities.var(axis=0)).all()
        assert variances == pytest.approx(spread, rel=0.1), 'and no more'
    known = filter_.scan(LEARNED + 9, Reading(0.7, 0.0, 10.0))
    assert known.covariance[0, 0] < 0.01


def test_a_new_part_of_a_room_is_more_uncertain_than_the_part_that_was_learned():
    settings = {'features.sectors': 12, 'features.far': 15.0, 'pairing.max_gap': 0.0}
    rng = np.random.default_rng(0)
    filter_ = ScanFilter(from_flat(FilterConfig, {**settings, 'target.type': 'pose'}))
    deviations = []
    for i in range(1300):
        low, high = (1.0, 4.0) if i < 1200 else (7.0, 9.0)
        pose = Pose(*map(float, rng.uniform((low, 1, 0, -0.5), (high, 5, 0, 0.5))))
        filter_.learning = i < 1200
        estimate = filter_.scan(i, room_scan(pose))
        deviations.append(math.sqrt(estimate.covariance[0, 0]))
        filter_.pose(i, pose)
        if i < 1200:
            filter_.learn()
    assert np.median(deviations[1200:]) > 10 * np.median(deviations[1000:1200])


@pytest.mark.parametrize('kind', ['axis', 'pose'])
def test_a_filter_that_has_seen_little_says_that_it_knows_nothing(kind):
    filter_ = made_filter(kind, **{'target.position_scale': 2.0, 'target.yaw_scale': 0.1})
    early = feed(filter_, stream(11, 'normal'))
    unknown = UNKNOWN_VARIANCE * np.diag(filter_.target.scale**2)
    for _, estimate, _ in early[:10]:
        assert estimate.covariance == pytest.approx(unknown)
    assert early[10][1].covariance[0, 0] < 100.0


def test_a_frozen_filter_learns_how_wrong_it_has_become():
    filter_ = made_filter('axis')
    feed(filter_, stream(1500, 'normal'))
    filter_.learning = False
    moved = [(r, pose._replace(x=pose.x + 3.0)) for r, pose in stream(1500, 'normal', seed=1)]
    results = feed(filter_, moved, 1500)[-300:]
    assert np.mean([error for *_, error in results]) == pytest.approx(3.0, abs=0.3)
    deviations = [math.sqrt(estimate.covariance[0, 0]) for _, estimate, _ in results]
    assert np.median(deviations) == pytest.approx(3.0, abs=0.3)
    assert min(deviations) > 2.0
