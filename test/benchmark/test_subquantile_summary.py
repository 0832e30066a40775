# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of the benchmark under corruption say what its runs say."""

import math

import numpy as np
import pytest

pytest.importorskip('sklearn', reason='scikit-learn comes with the extra "benchmark"')

from subquantile_corruption import corrupt
from subquantile_data import Sample
from subquantile_runs import Cell, cells_of, ESTIMATED, gross_outliers, NONE, ORACLE, OURS, Run
from subquantile_summary import (
    close_to_best,
    estimate_lines,
    group_lines,
    ratio,
    read_runs,
    Results,
    write_runs,
)

CELL = 'smooth', 'shift', 0.2


def runs_of(method, errors, cell=CELL, **more):
    """Return runs with these errors on the seeds from 0 on."""
    numbers = dict(
        distance=math.nan, seconds=0.001, found=math.nan, dropped=math.nan, share_said=math.nan
    )
    return [
        Run(*cell, seed, method, error, **(numbers | more)) for seed, error in enumerate(errors)
    ]


def results_with(ours):
    """Return results in which the best peer has mean 2 and standard error 1."""
    return Results([
        *runs_of(OURS, [ours, ours]), *runs_of('SEVER', [1.0, 3.0]),
        *runs_of('plain', [2.5, 2.5]), *runs_of(ORACLE, [0.1, 0.1]),
    ])  # fmt: skip


def test_within_a_standard_error_of_the_best_peer_is_close_to_it():
    assert close_to_best(results_with(2.9), CELL, OURS) == (True, 'SEVER')
    assert close_to_best(results_with(3.1), CELL, OURS) == (False, 'SEVER')


def test_cells_are_counted_by_group_and_lost_ones_are_named():
    won, lost = (
        '\n'.join(group_lines(results_with(2.9), [OURS])),
        group_lines(results_with(3.1), [OURS]),
    )
    assert 'labels, to 0.4 | 95% | 1/1 = 100%' in won
    assert 'labels, to 0.4 | 95% | 0/1 = 0%' in '\n'.join(lost)
    assert lost[-1] == '| smooth, shift, 0.2 | 3.100 | SEVER 2.000 |'


def test_a_ratio_is_of_the_means_over_the_same_seeds():
    results = Results(runs_of(OURS, [2.0, 4.0]) + runs_of(ORACLE, [1.0, 2.0]))
    assert ratio(results, CELL, OURS, ORACLE) == '2.000 (2.000 to 2.000)'


def test_estimates_are_held_against_the_true_share():
    cell = 'smooth', NONE, 0.0
    runs = [*runs_of(ESTIMATED, [1.0], cell, share_said=0.1),
            *runs_of(ESTIMATED, [1.0], CELL, share_said=0.15)]  # fmt: skip
    lines = estimate_lines(Results(runs))
    assert lines[-2] == '| regression: none | +0.100 (0.100) | - |'
    assert lines[-1] == '| regression: shift | - | -0.050 (0.050) |'


def test_runs_are_read_as_they_were_written(tmp_path):
    runs = runs_of(OURS, [0.25, 1.0 / 3.0], found=0.5)
    write_runs(runs, tmp_path / 'runs.csv')
    np.testing.assert_equal(read_runs(tmp_path / 'runs.csv'), runs)


def test_there_is_one_cell_without_corruption_for_each_seed():
    cells = cells_of('smooth', ['shift', 'flip'], range(3))
    assert len(cells) == 3 * (1 + 2 * 4)
    assert sum(cell.kind == NONE for cell in cells) == 3


def test_gross_outliers_are_wrong_by_two_deviations_or_leverage_points():
    y = np.random.default_rng(0).standard_normal(100)
    sample = Sample(np.zeros((100, 1)), y, np.zeros((0, 1)), y[:0])
    for kind, gross in ('shift', 30), ('leverage cluster', 30), ('features', 0):
        shown = corrupt(sample.x, y, kind, 0.3, np.random.default_rng(1))
        found = gross_outliers(Cell('smooth', kind, 0.3, 0), sample, shown)
        assert found.sum() == gross
        assert not (found & ~shown.mask).any()
