# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Theorem 2 and Corollary 2 at small size, and that it would show if they did not hold."""

import numpy as np
import pytest

from kernel_constrained.core import Gaussian, PrimalDualLearner
from kernel_constrained.offline.reproduction import accumulation, model_order, rates
from kernel_constrained.offline.reproduction.accumulation import (
    LIMITS,
    programs,
    slope_of,
    Sums,
    sums_of,
)
from kernel_constrained.offline.reproduction.optimum import lidar_inputs, lidar_problem

LENGTHS = (1000, 3162, 10000, 31623)


@pytest.fixture(scope='module')
def problem():
    return lidar_problem(rates.REGULARIZATION)


@pytest.fixture(scope='module')
def found(problem):
    return programs(problem)


def measured(program, problem):
    """Return the sums of two seeds at each length, without processes."""
    return np.array(
        [[sums_of(program, problem, n, seed) for seed in range(2)] for n in LENGTHS], dtype=float
    )


@pytest.mark.parametrize('number', [0, 1], ids=['default', 'paper'])
def test_sums_grow_no_faster_than_the_theorem_says(problem, found, number):
    runs = measured(found[number], problem)
    for name, limit in LIMITS.items():
        slope = slope_of(LENGTHS, runs, name)
        assert slope.value - slope.uncertainty <= limit
        assert slope.value > 0.2, 'sums that hardly grow would say nothing'


def test_without_dual_ascent_the_violation_grows_faster(problem, found, monkeypatch):
    monkeypatch.setattr(accumulation, 'DEFAULTS', PrimalDualLearner(dual_step_size=0.0))
    program = found[0]
    slope = slope_of(LENGTHS, measured(program, problem), 'violation')
    assert slope.value - slope.uncertainty > LIMITS['violation']
    row = rates.verdict(slope, LIMITS['violation'], program)
    assert row == 'does not hold; f* is the optimum with the CVaR at 0.9 bounded'


def test_sums_are_those_of_every_sample(problem, found):
    """With as many checkpoints as samples the integral is the sum, but for the ends."""
    program = found[1]
    sums = sums_of(program, problem, 30, 0)
    rng = np.random.default_rng([0, 30])
    rows = rng.integers(len(problem.x), size=30)
    learner = accumulation.learner_of(program, problem, 30)
    above = [np.mean(problem.y**2) - program.best.objective]
    for row in rows:
        learner.partial_fit(problem.x[[row]], problem.y[[row]])
        above.append(problem.objective(learner) - program.best.objective)
    assert sums.suboptimality == pytest.approx(sum(above) - (above[0] + above[-1]) / 2)
    assert sums.order == learner.model_order_


def runs_of(values):
    """Make runs of one seed whose sub-optimality is given."""
    runs = np.zeros((len(values), 1, len(Sums._fields)))
    runs[:, 0, Sums._fields.index('suboptimality')] = values
    return runs


def test_slope_is_the_exponent_of_a_power_law():
    lengths = np.array([10, 100, 1000, 10000])
    slope = slope_of(lengths, runs_of(3 * lengths**0.5), 'suboptimality')
    assert slope.value == pytest.approx(0.5)
    assert slope.uncertainty == pytest.approx(0.0, abs=1e-7)


def test_slope_of_less_than_three_positive_sums_is_not_known():
    slope = slope_of([10, 100, 1000], runs_of([1.0, -1.0, 2.0]), 'suboptimality')
    assert np.isnan(slope).all()


# -- Corollary 2 --------------------------------------------------------------------------------


@pytest.mark.parametrize('inputs', [1, 2])
def test_no_two_samples_have_the_same_input(inputs):
    x, y = model_order.samples_of(inputs, 20000)
    assert x.shape == (20000, inputs)
    assert len(np.unique(x, axis=0)) == len(y) == 20000


def test_inputs_stay_next_to_the_row_of_the_table_they_come_from():
    x, y = model_order.samples_of(1, 1000)
    table, targets = lidar_inputs()[:, 0], model_order.load_lidar().logratio
    assert all(
        (np.abs(table - here)[targets == target] <= 0.51 / 220).any()
        for here, target in zip(x[:, 0], y, strict=True)
    )


@pytest.mark.parametrize('case', model_order.CASES, ids=lambda case: case.name)
def test_order_stays_within_the_covering_number(case):
    order, limit = model_order.outcome_of(case, 20000)
    assert order.shape == (20000,)
    assert 20 < order.max() <= limit < 100
    assert order.max() < 1.3 * order[:2000].max()


def test_without_compression_the_order_has_no_bound_of_that_kind():
    case = model_order.CASES[0]
    kept = case._replace(settings={**case.settings, 'parsimony': 0.0})
    assert model_order.outcome_of(kept, 5000).order.max() > 55


def test_the_row_has_the_largest_order_up_to_powers_of_ten():
    order = np.r_[np.arange(1500), np.full(8500, 7)]
    row = model_order.row_of('x', model_order.Outcome(order, 12))
    assert row.measured == 'at most 999, 1499 within 1e3, 1e4 samples'
    assert row.remark.endswith(': 12')


def test_the_covering_number_counts_what_lies_beyond_the_reach_of_a_step():
    """Far apart each sample counts, and the same one again does not."""
    x = np.r_[0.0, 10.0, 20.0, 0.0][:, None]
    learner = PrimalDualLearner(Gaussian(1.0), mode='paper', step_size=0.1, parsimony=0.1)
    assert model_order.limit_of(learner, x, np.ones(4)) == 3
    near = np.r_[0.0, 1e-3][:, None]  # |k(x, .) - k(x', .)| = 1e-3, P eta / L = 5e-3 and 5e-4
    assert model_order.limit_of(learner, near, np.ones(2)) == 1
    assert model_order.limit_of(learner, near, np.full(2, 10.0)) == 2


def test_run_writes_figures_and_a_row_for_each_claim(tmp_path):
    rows = rates.run(tmp_path, (300, 1000, 3000), 1)
    assert [row.paper for row in rows[:4]] == ['grows as T^0.5 at most'] * 2 + [
        'grows as T^0.75 at most'
    ] * 2
    assert len(rows) == 4 + len(model_order.CASES)
    for name in ('rates.png', 'model_order.png'):
        assert (tmp_path / name).read_bytes().startswith(b'\x89PNG')
    text = (tmp_path / 'rates.txt').read_text(encoding='utf-8')
    assert 'slopes: suboptimality ' in text
    assert text.count('\n     3000 ') == 2
