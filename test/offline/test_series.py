# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A table on disk gives back what was put into it."""

import csv
import math

import numpy as np
import pytest

from kernel_constrained.offline.series import BLOCK, Series

COLUMNS = [('stamp', 'i8'), ('value', 'f8'), ('kind', 'U7')]


def row(i):
    return 10**18 + i, 0.1 * i, 'even' if i % 2 == 0 else 'odd'


@pytest.mark.parametrize('count', [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5])
def test_rows_come_back_as_they_were(count):
    with Series(COLUMNS) as series:
        for i in range(count):
            series.append(row(i))
        assert len(series) == count
        stamps, values = series.columns('stamp', 'value')
        assert stamps.tolist() == [10**18 + i for i in range(count)]
        assert values.tolist() == [0.1 * i for i in range(count)]
        assert series.where('kind', 'odd').tolist() == [i % 2 == 1 for i in range(count)]
        assert sum(len(block) for block in series.blocks()) == count


def test_rows_may_be_chosen_by_their_numbers():
    chosen = np.array([0, 7, BLOCK - 1, BLOCK, 2 * BLOCK + 4])
    with Series(COLUMNS) as series:
        for i in range(2 * BLOCK + 5):
            series.append(row(i))
        (stamps,) = series.columns('stamp', rows=chosen)
        assert stamps.tolist() == (10**18 + chosen).tolist()
        assert series.columns('value', rows=chosen[:0])[0].tolist() == []


def test_reading_does_not_disturb_writing():
    with Series(COLUMNS) as series:
        for i in range(3 * BLOCK):
            if i % 1000 == 0:
                series.columns('value')
            series.append(row(i))
        assert series.columns('stamp')[0].tolist() == [10**18 + i for i in range(3 * BLOCK)]


def test_a_file_has_every_digit_and_nothing_for_nan(tmp_path):
    values = [1 / 3, math.nan, -0.0, 1e-300, math.pi]
    with Series(COLUMNS) as series:
        for i, value in enumerate(values):
            series.append((i, value, 'a'))
        series.write_csv(tmp_path / 'series.csv')
    with (tmp_path / 'series.csv').open(newline='') as file:
        rows = list(csv.DictReader(file))
    assert [r['stamp'] for r in rows] == ['0', '1', '2', '3', '4']
    assert [r['value'] for r in rows] == [
        '0.3333333333333333',
        '',
        '-0.0',
        '1e-300',
        repr(math.pi),
    ]
    assert b'\r' not in (tmp_path / 'series.csv').read_bytes()


def test_nothing_is_left_behind():
    series = Series(COLUMNS)
    file = series._file
    with series:
        series.append(row(0))
    assert file.closed
