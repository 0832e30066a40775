# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The LIDAR table and its split."""

import numpy as np

from kernel_constrained.data import lidar_split, load_lidar


def test_table_has_the_published_shape_and_extent():
    distance, logratio = load_lidar()
    assert distance.shape == logratio.shape == (221,)
    assert (distance[0], distance[-1]) == (390.0, 720.0)
    assert set(np.diff(distance)) == {1.0, 2.0}


def test_spread_grows_with_range_as_published():
    distance, logratio = load_lidar()
    assert np.std(logratio[distance < 550]) < 0.05
    assert np.std(logratio[distance >= 600]) > 0.13


def test_split_takes_ends_of_one_permutation():
    permutation = np.random.default_rng(3).permutation(221)
    split = lidar_split(3)
    np.testing.assert_array_equal(split.train, permutation[:179])
    np.testing.assert_array_equal(split.test, permutation[-22:])


def test_split_uses_every_row_once():
    split = lidar_split()
    assert [len(part) for part in split] == [179, 22, 20]
    assert sorted(np.concatenate(split)) == list(range(221))


def test_split_depends_on_the_seed():
    assert lidar_split(0).train.tolist() == lidar_split(0).train.tolist()
    assert lidar_split(0).train.tolist() != lidar_split(1).train.tolist()
