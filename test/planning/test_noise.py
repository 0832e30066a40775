# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Paths held to a probability of collision: fresh draws, proofs, lengths, what is refused."""

import attrs
import numpy as np
import pytest

from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.perception.geometry import Pose
from kernel_constrained.planning.candidates import CandidateMaker
from kernel_constrained.planning.certificate import prove, Status
from kernel_constrained.planning.config import (
    CertificateConfig,
    ChanceConfig,
    PlannerConfig,
    RobotConfig,
    SensingConfig,
)
from kernel_constrained.planning.noise import contacts, draws_of, UnderNoise
from kernel_constrained.planning.planner import Planner
from kernel_constrained.planning.risk import LAWS
from kernel_constrained.planning.scene import NO_GRID, Scene
from kernel_constrained.planning.simulation import Lidar
from kernel_constrained.planning.worlds import World

TOLERANCE, DEVIATION, RADIUS = 0.02, 0.1, 0.3
# Centres and radii of discs, one of them in the way and one that leaves a gap beside it.
DISCS = np.array([[3.0, 0.2, 0.8], [6.0, -0.9, 0.6], [5.0, 3.0, 0.7], [7.5, 1.8, 0.5]])
WAY = np.array([[0.0, 0.0], [3.0, -1.4], [6.0, 0.2], [9.0, 0.0]])


def config_of(under_noise='path', law='gaussian', tolerance=TOLERANCE, **chance):
    return PlannerConfig(
        robot=RobotConfig(margin=0.01, proof_margin=0.0), scan=SensingConfig(noise=law),
        chance=ChanceConfig(tolerance=tolerance, under_noise=under_noise, **chance),
        certificate=CertificateConfig(confidence=0.999),
    )  # fmt: skip


def scene_of(config, discs=DISCS, deviation=DEVIATION):
    points, radii = np.ascontiguousarray(discs[:, :2].T), np.ascontiguousarray(discs[:, 2])
    spread = np.broadcast_to(np.asarray(deviation, dtype=float), radii.shape).copy()
    return Scene(points, radii, spread, NO_GRID, WAY[0], config)


def made(config, **scene):
    return CandidateMaker(config).make(WAY, scene_of(config, **scene), 60, under_noise=True)


def probabilities(trajectory, law, draws=20_000, seed=99, discs=DISCS):
    """Return by time and per path the probability of contact, by drawing."""
    line = trajectory(np.linspace(0.0, 1.0, 201))
    offsets = DEVIATION * LAWS[law](np.random.default_rng(seed), (draws, len(discs), 2))
    touched = np.zeros((draws, len(line)), dtype=bool)
    for disc in range(len(discs)):
        centres = discs[disc, :2] + offsets[:, disc]
        gaps = np.linalg.norm(centres[:, None] - line, axis=2)
        touched |= gaps < discs[disc, 2] + RADIUS
    return touched.mean(), touched.any(axis=1).mean()


@pytest.mark.parametrize('law', LAWS)
@pytest.mark.parametrize(('under_noise', 'which'), [('time', 0), ('path', 1)])
def test_fresh_draws_collide_no_more_often_than_tolerated(law, under_noise, which):
    config = config_of(under_noise, law)
    path = made(config)
    assert path.level >= 0.0
    risk = probabilities(path.trajectory, law)[which]
    assert 0.3 * TOLERANCE < risk <= TOLERANCE  # and what is tolerated is made use of
    known = scene_of(config).obstacles(0.0)
    assert prove(path.trajectory, known).status == Status.PROVEN


def test_without_regard_to_noise_paths_are_shorter_and_collide():
    ignorant = made(config_of('ignored'))
    assert probabilities(ignorant.trajectory, 'gaussian')[1] > 0.5
    by_time, per_path = made(config_of('time')), made(config_of('path'))
    assert ignorant.length < by_time.length < per_path.length < 1.05 * ignorant.length


def test_only_what_is_uncertain_is_kept_further_away_from():
    sure = np.array([0.0, DEVIATION, DEVIATION, DEVIATION])
    config = config_of()
    line = made(config, deviation=sure).trajectory(np.linspace(0.0, 1.0, 2001))
    gaps = np.linalg.norm(line[:, None] - DISCS[:, :2], axis=2).min(0) - DISCS[:, 2] - RADIUS
    assert 0.0 <= gaps[0] < 0.02
    assert gaps[1] > 0.2


def test_no_path_is_said_to_be_safe_where_there_is_no_room_for_one():
    gate = np.array([[4.5, 1.0, 0.65], [4.5, -1.0, 0.65], [4.5, 2.4, 0.75], [4.5, -2.4, 0.75]])
    walls = np.array([[4.5, sign * y, 0.5] for sign in (-1, 1) for y in np.arange(3.0, 12.0, 0.8)])
    discs = np.concatenate([gate, walls])
    way = WAY[[0, 3]]
    for under_noise, level in (('ignored', 1.0), ('path', -1.0)):
        config = config_of(under_noise)
        scene = scene_of(config, discs)
        assert CandidateMaker(config).make(way, scene, 60, under_noise=True).level == level


def test_probabilities_are_those_of_draws_of_points_one_by_one():
    rng = np.random.default_rng(3)
    points, contact = rng.uniform(-2.0, 2.0, (2, 70)), rng.uniform(0.1, 0.3, 70)
    deviation, draws = rng.uniform(0.0, 0.3, 70), draws_of('student_t3', 3000)
    positions = np.stack([np.linspace(-1.0, 1.0, 40), np.linspace(0.0, 0.5, 40)])
    by_time, paths = contacts(positions, points, contact, deviation, draws)
    offsets = deviation * LAWS['student_t3'](rng, (3000, 2, 70))
    gaps = np.linalg.norm((points + offsets)[..., None] - positions[:, None], axis=1)
    touched = (gaps < contact[:, None]).any(axis=1)
    assert by_time == pytest.approx(touched.mean(), abs=0.02)
    assert paths / 3000 == pytest.approx(touched.any(axis=1).mean(), abs=0.02)


def test_no_two_points_are_displaced_alike():
    positions, points = np.zeros((2, 1)), np.full((2, 64), 0.5)
    points[0] += 0.1 * np.arange(64) // 32  # the second half uses the draws of the first
    one, other, both = (
        contacts(positions, points[:, which], np.full(len(which), 0.3),
                 np.full(len(which), 0.2), draws_of('gaussian', 4096))[1] / 4096
        for which in (np.arange(1), np.arange(1), np.array([0, *[33] * 31, 32]))
    )  # fmt: skip
    assert 0.0 < one == other < both


def test_bound_falls_with_the_way_that_is_left():
    config = config_of()
    path, judge, scene = made(config), UnderNoise(config), scene_of(config)
    bounds = [judge.bound(path.trajectory, scene, since) for since in (0.0, 0.5, 0.95)]
    assert TOLERANCE >= bounds[0] > bounds[1] > bounds[2] > 0.0


def test_too_few_draws_for_the_tolerance_are_refused():
    with pytest.raises(ConfigurationError, match=r'chance\.tolerance must be at least 0\.0017'):
        config_of(tolerance=1e-4)
    assert config_of('ignored', tolerance=1e-4).chance.tolerance == 1e-4
    assert config_of(tolerance=1e-4, draws=80_000).chance.draws == 80_000
    with pytest.raises(ConfigurationError, match=r'more chance\.draws'):
        attrs.evolve(config_of(), certificate=CertificateConfig(confidence=0.999999),
                     chance=ChanceConfig(0.002, under_noise='time', draws=1000))  # fmt: skip


@pytest.mark.parametrize('law', ['normal', ''])
def test_laws_that_are_none_are_refused(law):
    with pytest.raises(ConfigurationError, match='noise'):
        SensingConfig(noise=law)


def plan_past(disc, **config):
    of = Planner(PlannerConfig(**config))
    of.set_goal(np.array([2.5, 0.0]))
    world = World((0.0, 0.0), (9.0, 9.0), circles=[disc])
    scan = Lidar(deviation=0.0).scan(
        world, 0.0, Pose(0.0, 0.0, 0.0, 0.0), np.random.default_rng(0)
    )
    return of, [of.plan(stamp, scan, Pose(0.0, 0.0, 0.0, 0.0)) for stamp in (1, 100_000_001)]


def test_planner_publishes_what_the_tolerance_allows():
    disc, tight = (1.3, 0.1, 0.2), RobotConfig(margin=0.02, proof_margin=0.0)
    scan = SensingConfig(range_deviation=0.05)
    of, plans = plan_past(disc, robot=tight, scan=scan)
    assert of.risk(plans[1]).per_path > 0.5
    chance = ChanceConfig(tolerance=0.05, under_noise='path')
    certificate = CertificateConfig(draws=5000)
    of, plans = plan_past(disc, robot=tight, scan=scan, chance=chance, certificate=certificate)
    assert plans[0].proven
    assert plans[1].proven
    assert of.risk(plans[0], seed=5).per_path_estimate <= 0.05


def test_planner_says_so_where_noise_leaves_no_path():
    chance = ChanceConfig(tolerance=0.01, under_noise='path')
    scan = SensingConfig(range_deviation=0.3)
    _, plans = plan_past((0.6, 0.1, 0.1), scan=scan, chance=chance)
    assert plans[0].reason == 'budget spent without a proof'
