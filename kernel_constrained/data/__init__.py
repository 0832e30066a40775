# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The LIDAR table: light returned from two laser sources against the distance it travelled.

221 rows of ``range`` (m, 390 to 720) and ``logratio`` (logarithm of the ratio of light received);
the spread of ``logratio`` grows with range. Sources: Sigrist, *Air Monitoring by Spectroscopic
Techniques* (1994); Holst, Hössjer, Björklund, Ragnarson and Edner (1996); Ruppert, Wand and
Carroll, *Semiparametric Regression* (2003).
"""

from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ['LidarSplit', 'LidarTable', 'lidar_split', 'load_lidar']

ROWS, TRAINING_ROWS, TEST_ROWS = 221, 179, 22


class LidarTable(NamedTuple):
    """The table's columns, each of shape (221,), by ascending range.

    Attributes
    ----------
    range
        Distance the light travelled before it was reflected, in metres.
    logratio
        Logarithm of the ratio of received light from two laser sources.
    """

    range: npt.NDArray[np.float64]
    logratio: npt.NDArray[np.float64]


class LidarSplit(NamedTuple):
    """Row indices of the LIDAR table by what they are for."""

    train: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]
    left_out: npt.NDArray[np.int64]


def load_lidar() -> LidarTable:
    """Read the table that comes with the package."""
    with files(__name__).joinpath('lidar.csv').open(encoding='ascii') as table:
        return LidarTable(*np.loadtxt(table, delimiter=',', skiprows=1, unpack=True))


def lidar_split(seed: int = 0) -> LidarSplit:
    """Draw the rows to train on (179), to test on (22) and to leave out (20).

    One permutation ``default_rng(seed).permutation(221)`` decides: its first 179 entries are the
    training rows and its last 22 the test rows, each in the order drawn.

    Parameters
    ----------
    seed
        Seed of the permutation.
    """
    permutation = np.random.default_rng(seed).permutation(ROWS)
    return LidarSplit(
        train=permutation[:TRAINING_ROWS],
        test=permutation[-TEST_ROWS:],
        left_out=permutation[TRAINING_ROWS:-TEST_ROWS],
    )
