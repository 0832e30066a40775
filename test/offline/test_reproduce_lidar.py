# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Fig. 3 at small size: what is measured is what it says, and the claims that the page makes."""

import numpy as np
import pytest

from kernel_constrained.core import conditional_value_at_risk, CVaR
from kernel_constrained.data import lidar_split, load_lidar
from kernel_constrained.offline.reproduction import lidar, lidar_runs
from kernel_constrained.offline.reproduction.lidar_runs import (
    AS_PUBLISHED,
    BINDING,
    course_of,
    DEFAULT,
    GRADIENT,
    GRID,
    learner_of,
    looks_of,
    METHODS,
    PAPER,
    PENALTY,
    POLK,
    Setting,
    split_of,
)
from kernel_constrained.offline.reproduction.optimum import lidar_inputs, lidar_problem

SHORT = Setting(0.9, 0.02, 0.0, 2)


@pytest.fixture(scope='module')
def published():
    return [split_of(AS_PUBLISHED, seed) for seed in range(3)]


@pytest.fixture(scope='module')
def binding():
    return [split_of(BINDING, seed) for seed in range(3)]


@pytest.mark.parametrize('method', METHODS)
def test_a_course_ends_with_what_one_long_call_learns(method):
    course = course_of(method, SHORT, 0.02, seed=4)
    problem, split = lidar_problem(lidar_runs.REGULARIZATION, 4), lidar_split(4)
    learner = learner_of(method, SHORT, 0.02).partial_fit(*problem.epochs(2, 4))
    errors = learner.predict(lidar_inputs()) - load_lidar().logratio
    train, test = errors[split.train] ** 2, errors[split.test] ** 2
    regularized = train.mean() + 0.5e-5 * learner.squared_norm_
    cvar = conditional_value_at_risk(train, 0.9)
    expected = (regularized, train.mean(), test.mean(), cvar, learner.model_order_)
    assert course.looks[-1] == pytest.approx(expected)
    assert course.curve == pytest.approx(learner.predict(GRID[:, None]))
    assert len(course.atoms) == learner.model_order_
    assert course.dual.shape == (SHORT.samples,) == (358,)
    assert len(course.looks) == len(SHORT.checkpoints)


def test_checkpoints_begin_with_the_first_sample_and_have_the_end_of_every_epoch():
    checkpoints = AS_PUBLISHED.checkpoints
    assert checkpoints[0] == 1
    assert set(range(179, 1791, 179)) <= set(checkpoints)
    assert checkpoints[-1] == AS_PUBLISHED.samples == 1790


def test_the_settings_are_those_of_the_paper():
    learner = learner_of(PAPER, AS_PUBLISHED, AS_PUBLISHED.tolerance)
    assert learner.constraint == CVaR(0.99, 0.8)
    assert (learner.step_size, learner.parsimony) == (0.1, 0.008)
    assert (learner.regularization, learner.dual_regularization) == (1e-5, 1e-5)
    assert learner.kernel.bandwidth == 0.04
    assert learner_of(POLK, AS_PUBLISHED, 0.8).constraint is None


@pytest.mark.parametrize('method', METHODS)
def test_errors_and_order_are_as_small_as_the_paper_says(published, method):
    train, test, order = (
        np.median(looks_of(published, method, name)[:, -1]) for name in ('train', 'test', 'order')
    )
    assert train <= 0.0065
    assert test <= 0.0090
    assert order <= 45


def test_the_published_bound_does_not_bind(published):
    for split in published:
        assert split.multiplier == pytest.approx(0.0, abs=1e-6)
        assert split.free_cvar < 0.15 * AS_PUBLISHED.tolerance
        assert (split.courses[PAPER].dual[179:] == 0).all()


def test_the_constraint_as_printed_diverges():
    ends = [lidar.samples_until_divergence(seed) for seed in range(3)]
    assert all(100 < end < 250 for end in ends)


def test_only_the_default_mode_keeps_a_bound_that_binds(binding):
    def ratio(method):
        ratios = [split.courses[method].looks[-1, 3] / split.tolerance for split in binding]
        return np.median(ratios)

    assert ratio(DEFAULT) <= lidar.KEPT
    assert ratio(GRADIENT) <= 1.03
    for method in (PAPER, POLK, PENALTY):
        assert ratio(method) > 1.05
    assert all(split.multiplier > 0.01 for split in binding)


def test_the_default_reaches_the_optimum_under_the_bound(binding):
    above = [split.courses[DEFAULT].looks[-1, 0] / split.objective - 1 for split in binding]
    assert abs(np.median(above)) <= 0.01


def test_the_bound_that_binds_is_just_under_what_is_had_for_nothing(binding):
    for split in binding:
        assert split.tolerance == pytest.approx(0.97 * split.free_cvar)


def test_last_before_is_the_last_sample_that_holds():
    samples = np.array([1, 5, 9])
    assert lidar.last_before(np.array([True, False, False]), samples) == 1
    assert lidar.last_before(np.array([True, False, True]), samples) == 9
    assert lidar.last_before(np.array([False, False, False]), samples) == 0


def test_a_spread_is_the_median_and_the_deciles():
    assert lidar.spread(np.arange(11), 1) == '5.0 [1.0, 9.0]'


def test_rows_have_a_claim_of_the_paper_or_a_method_each(published, binding):
    rows = [*lidar.rows_as_published(published), *lidar.rows_binding(binding)]
    claims = [row.paper for row in rows if row.paper]
    assert 'settles to null' in claims
    assert sum('CVaR over gamma' in row.what for row in rows) == len(METHODS)
    assert any(row.measured.startswith('diverges on 3 of 3 splits') for row in rows)


def test_run_writes_both_figures(tmp_path):
    lidar.run(tmp_path, seeds=1)
    for name in ('lidar.png', 'lidar_binding.png'):
        assert (tmp_path / name).read_bytes().startswith(b'\x89PNG')
