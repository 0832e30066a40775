# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A filter that drops truths that look corrupted: which ones, and what becomes of the rest."""

import math

import numpy as np
import pytest
from made_scans import room_scan, SECOND

from kernel_constrained.configuration import ConfigurationError, from_flat
from kernel_constrained.core import PrimalDualLearner
from kernel_constrained.core.subquantile import SubquantileLearner
from kernel_constrained.perception.config import FilterConfig, LearnerConfig
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.perception.geometry import Pose

TENTH = SECOND // 10
NOISE = 0.1  # m, of the trusted pose
SETTINGS = {
    'features.sectors': 12, 'features.far': 15.0, 'target.type': 'axis', 'target.axis': 'x',
    'learner.algorithm': 'subquantile', 'learner.window': 300, 'learner.bandwidth': 2.5,
    'learner.max_model_order': 40,
}  # fmt: skip


def config(**more):
    more = {name.replace('__', '.'): value for name, value in more.items()}
    return from_flat(FilterConfig, {**SETTINGS, **more})


def wrong(number):
    """Whether the pose at a scan is one of elsewhere."""
    return number >= 150 and number % 7 == 0


def drive(filter_, begin, end):
    """Drive round a room; return what was learned and the true x of each."""
    learned, truths = [], []
    for i in range(begin, end):
        x, y = 5.0 + 3.0 * math.sin(0.37 * i), 3.0 + 1.5 * math.sin(0.23 * i)
        given = x + NOISE * np.random.default_rng(i).standard_normal()
        filter_.pose(i * TENTH, Pose(given + (3.0 if wrong(i) else 0.0), y, 0.0, 0.0))
        filter_.scan(i * TENTH, room_scan(Pose(x, y, 0.0, 0.0)))
        for one in filter_.learn():
            learned.append(one)
            truths.append(x)
    return learned, np.array(truths)


@pytest.fixture(scope='module')
def driven():
    filter_ = ScanFilter(config())
    return filter_, *drive(filter_, 0, 900)


def test_wrong_poses_are_rejected_and_right_ones_are_not(driven):
    _, learned, _ = driven
    assert len(learned) == 900
    for begin, end, found, dropped in ((150, 400, 0.8, 0.06), (400, 900, 0.97, 0.03)):
        part = learned[begin:end]
        bad = np.array([wrong(begin + i) for i in range(len(part))])
        rejected = np.array([one.rejected is not None for one in part])
        assert rejected[bad].mean() >= found
        assert rejected[~bad].mean() <= dropped


def test_a_rejection_says_loss_and_threshold_and_is_counted(driven):
    filter_, learned, _ = driven
    rejected = [one for one in learned if one.rejected is not None]
    assert filter_.rejected == len(rejected)
    assert filter_.samples == 900, 'they are taken all the same'
    for one in rejected:
        assert one.rejected.loss > one.rejected.threshold
        assert one.rejected.loss == pytest.approx(one.loss, rel=1e-6)


def test_what_is_learned_is_the_robot_not_the_wrong_poses(driven):
    _, learned, truths = driven
    late = slice(500, None)
    errors = np.array([one.truth[0] + one.error[0] for one in learned]) - truths
    assert np.sqrt(np.mean(errors[late] ** 2)) < 0.15
    plain = ScanFilter(config(learner__algorithm='primal_dual', learner__constrained=False))
    others, _ = drive(plain, 0, 900)
    of_plain = np.array([one.truth[0] + one.error[0] for one in others]) - truths
    assert np.mean(errors[late] ** 2) < 0.2 * np.mean(of_plain[late] ** 2)


def test_the_covariance_is_that_of_right_poses(driven):
    filter_, _, _ = driven
    estimate = filter_.scan(900 * TENTH, room_scan(Pose(5.0, 3.0, 0.0, 0.0)))
    assert math.sqrt(estimate.covariance[0, 0]) < 0.5, 'wrong poses are 3 m off'


def test_a_frozen_filter_rejects_nothing(driven):
    filter_ = ScanFilter(config())
    drive(filter_, 0, 300)
    before, filter_.learning = filter_.rejected, False
    learned, _ = drive(filter_, 300, 350)
    assert all(one.rejected is None for one in learned)
    assert filter_.rejected == before


def test_a_saved_filter_goes_on_bit_for_bit(tmp_path):
    filter_ = ScanFilter(config())
    drive(filter_, 0, 400)
    filter_.save(tmp_path / 'model.npz')
    loaded = ScanFilter.load(tmp_path / 'model.npz')
    restored = ScanFilter(config(learner__corruption=0.3))
    restored.restore(tmp_path / 'model.npz')
    assert loaded.rejected == restored.rejected == filter_.rejected > 0
    assert restored.learner.corruption == 0.3, 'what may change at run time stays'
    first, _ = drive(filter_, 500, 600)
    second, _ = drive(loaded, 500, 600)
    assert [one[2:4] for one in first] == [one[2:4] for one in second]
    assert [one.rejected for one in first] == [one.rejected for one in second]


def test_reset_forgets_what_was_rejected():
    filter_ = ScanFilter(config())
    drive(filter_, 0, 300)
    filter_.reset()
    assert filter_.rejected == filter_.samples == 0


def test_ranges_that_widen_are_learned_from_the_window_without_its_rejected_truths():
    filter_ = ScanFilter(config())
    drive(filter_, 0, 400)
    before = filter_.learner
    scaling, range_ = filter_.scaling, filter_.target.range
    filter_._learn_anew(scaling, range_)
    assert filter_.learner is not before
    assert 200 < filter_.learner.samples_ <= 300, 'the window without them'
    assert filter_.learner.corruption_ < 0.05


# -- settings -----------------------------------------------------------------------------------


def test_the_algorithm_decides_what_learns():
    learner = LearnerConfig(algorithm='subquantile', corruption=0.2, window=50, novelty=0.1)
    built = learner.build()
    assert isinstance(built, SubquantileLearner)
    assert (built.corruption, built.window, built.novelty) == (0.2, 50, 0.1)
    assert isinstance(LearnerConfig().build(), PrimalDualLearner)


def test_subquantile_has_no_constraint_whatever_constrained_says():
    assert not LearnerConfig(algorithm='subquantile', constrained=True).bounded
    assert LearnerConfig(constrained=True).bounded
    assert ScanFilter(config(learner__constrained=True)).learner.dual_variable_ == 0.0


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'mode': 'paper'}, 'algorithm subquantile needs mode default (got paper)'),
        ({'step': 'gradient'}, 'algorithm subquantile needs step auto or recursive'),
        ({'batch_size': 4}, r'algorithm subquantile needs batch_size 1 (got 4)'),
    ],
)
def test_what_subquantile_cannot_do_is_refused(given, message):
    with pytest.raises(ConfigurationError) as error:
        LearnerConfig(algorithm='subquantile', **given)
    assert message in str(error.value)
    LearnerConfig(**given)


def test_the_share_may_change_at_run_time_and_the_window_may_not():
    filter_ = ScanFilter(config())
    drive(filter_, 0, 50)
    filter_.reconfigure(config(learner__corruption=0.1, learner__step_size=0.3))
    assert filter_.learner.corruption == 0.1
    with pytest.raises(ConfigurationError, match=r'learner\.window is 50 there and 300 here'):
        filter_.reconfigure(config(learner__window=50))
    with pytest.raises(ConfigurationError, match=r'learner\.algorithm is primal_dual there'):
        filter_.reconfigure(config(learner__algorithm='primal_dual'))
