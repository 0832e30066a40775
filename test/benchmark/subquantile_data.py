# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Data that the trimmed learners and their peers learn from once part of it is corrupted.

Real tables are split anew by each seed, made ones are drawn anew. Inputs have mean 0 and
deviation 1 over the training rows as they were before anything was corrupted.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

from kernel_constrained.bags import decode_input, open_recording, RecordingError
from kernel_constrained.bags.g2o import killian_path
from kernel_constrained.data import load_lidar
from kernel_constrained.offline.scan_report import trusted_poses
from kernel_constrained.perception.config import ScanFeatureConfig
from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.perception.inputs import scan_features
from kernel_constrained.perception.messages import reading_of, stamp_of

LONGEST = 5.0  # seconds between scans: longer ones are called this
LEAST_DEVIATION = 1.0  # of a pixel, of 16 levels: those at the rim hardly vary


class Sample(NamedTuple):
    """What is learned from, before it is corrupted, and what is tested on.

    Attributes
    ----------
    x, y : (n, p), (n,)
        Inputs, and targets or classes 0, 1, ... .
    test_x, test_y : (m, p), (m,)
        Clean test points.
    truth : (m,) or None
        Mean of the target at the test points, or their likeliest class; None if nobody knows.
    swapped : (n,) or None
        Targets as they are if a pose is mistaken for another one; None where there are no poses.
    """

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    truth: np.ndarray | None = None
    swapped: np.ndarray | None = None


def standardised(sample):
    """Give the inputs of a sample mean 0 and deviation 1 over its training rows."""
    mean, deviation = sample.x.mean(axis=0), sample.x.std(axis=0)
    return sample._replace(
        x=(sample.x - mean) / deviation, test_x=(sample.test_x - mean) / deviation
    )


def split(x, y, seed, count, tests):
    """Draw rows of a table to learn from and to test on."""
    rows = np.random.default_rng(seed).permutation(len(y))
    train, test = rows[:count], rows[count : count + tests]
    return standardised(Sample(x[train], y[train], x[test], y[test]))


# -- regression -----------------------------------------------------------------------------


def lidar(seed):
    """Take the LIDAR table: light returned against distance, noisier the farther."""
    table = load_lidar()
    return split(table.range[:, None], table.logratio, seed, 160, 61)


def smooth(seed, count=300, tests=1000):
    """Make a smooth function on the square [-1, 1]^2 with noise of deviation 0.2."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (count + tests, 2))
    truth = np.sin(3.0 * x[:, 0]) * np.cos(2.0 * x[:, 1]) + 0.5 * x[:, 0] ** 2
    y = truth + 0.2 * rng.standard_normal(len(x))
    return standardised(Sample(x[:count], y[:count], x[count:], y[count:], truth[count:]))


def diabetes(seed):
    """Take the diabetes table: progression after a year against ten measurements."""
    return split(*load_diabetes(return_X_y=True), seed, 300, 142)


def houses(seed, count=400, tests=1000):
    """Make prices like California's: skewed inputs, and errors that grow with the price.

    Income, age, rooms, bedrooms, population and household size of a block, and where it is: the
    price grows with income, which saturates, and near two cities on the coast. Errors multiply.
    """
    rng = np.random.default_rng(seed)
    size = count + tests
    income = rng.gamma(4.0, 1.0, size)
    age = rng.uniform(1.0, 52.0, size)
    rooms = np.exp(1.3 + 0.1 * income / 2.0 + 0.2 * rng.standard_normal(size))
    bedrooms = rooms * rng.uniform(0.15, 0.3, size)
    population = np.exp(7.0 + 0.7 * rng.standard_normal(size))
    household = np.exp(1.0 + 0.25 * rng.standard_normal(size))
    along = rng.uniform(0.0, 10.0, size)
    inland = rng.gamma(1.5, 1.0, size)
    cities = np.exp(-((along - 2.5) ** 2) / 2.0) + 0.8 * np.exp(-((along - 7.5) ** 2) / 1.5)
    price = (
        0.5 + 4.0 * income / (income + 5.0) + 1.5 * cities * np.exp(-inland / 2.0)
        + 0.005 * age - 1.0 * np.tanh(household / 3.0 - 0.9)
    )  # fmt: skip
    x = np.stack([income, age, rooms, bedrooms, population, household, along, inland], axis=1)
    spread = 0.15
    y = price * np.exp(spread * rng.standard_normal(size))
    truth = price * np.exp(spread**2 / 2.0)
    return standardised(Sample(x[:count], y[:count], x[count:], y[count:], truth[count:]))


def motion(seed, count=400, tests=1000):
    """Take scans of Killian Court: how far the robot went forward between two of them."""
    x, before, after = killian_motions()
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(x))
    train, test = rows[:count], rows[count : count + tests]
    elsewhere = after[rng.integers(len(after), size=count)]
    return standardised(
        Sample(
            x[train], forward(before[train], after[train]),
            x[test], forward(before[test], after[test]),
            swapped=forward(before[train], elsewhere),
        )
    )  # fmt: skip


@lru_cache(maxsize=1)
def killian_motions():
    """Return inputs of pairs of successive scans, and the trusted poses (x, y, yaw) at each."""
    config = ScanFeatureConfig(sectors=12, bearing_min=-math.pi / 2, bearing_max=math.pi / 2)
    features, taken, stamps = [], [], []
    with open_recording('killian') as recording:
        poses = trusted_poses(recording, 'pose')
        for message in recording.messages(['scan']):
            scan = decode_input(message)
            if stamp_of(scan) in poses:
                features.append(scan_features(reading_of(scan), config, Mounting()))
                taken.append(poses[stamp_of(scan)])
                stamps.append(stamp_of(scan))
    features, poses = np.array(features), np.array([(p.x, p.y, p.yaw) for p in taken])
    elapsed = np.minimum(np.diff(stamps) / 1e9, LONGEST)
    return np.c_[features[1:], features[:-1], elapsed], poses[:-1], poses[1:]


def forward(before, after):
    """Return how far ahead, metres, poses (n, 3) are of those before."""
    dx, dy = (after - before)[:, :2].T
    return np.cos(before[:, 2]) * dx + np.sin(before[:, 2]) * dy


# -- classification -------------------------------------------------------------------------


def cancer(seed):
    """Take the breast cancer table: two classes, thirty measurements."""
    return split(*load_breast_cancer(return_X_y=True), seed, 300, 269)


def digits(seed):
    """Take the table of hand-written digits: ten classes, those of 64 pixels that vary."""
    x, y = load_digits(return_X_y=True)
    return split(x[:, x.std(axis=0) > LEAST_DEVIATION], y, seed, 400, 800)


def wine(seed):
    """Take the wine table: three growers, thirteen measurements."""
    return split(*load_wine(return_X_y=True), seed, 120, 58)


def waves(seed, count=300, tests=1000):
    """Make two classes on the square [-1, 1]^2, a wave between them; the truth is Bayes's rule.

    Bayes's rule errs at about one point in ten.
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (count + tests, 2))
    height = 6.0 * (x[:, 1] - 0.5 * np.sin(3.0 * x[:, 0]))
    y = (rng.uniform(size=len(x)) < 1.0 / (1.0 + np.exp(-height))).astype(int)
    truth = (height > 0.0).astype(int)
    return standardised(Sample(x[:count], y[:count], x[count:], y[count:], truth[count:]))


REGRESSION = {
    'lidar': lidar, 'smooth': smooth, 'diabetes': diabetes, 'houses': houses,
    'motion': motion,
}  # fmt: skip
CLASSIFICATION = {'cancer': cancer, 'digits': digits, 'wine': wine, 'waves': waves}
DATA = REGRESSION | CLASSIFICATION


def absent(name):
    """Say why data cannot be had; empty where they can."""
    if name == 'motion':
        try:
            killian_path()
        except RecordingError as error:
            return str(error)
    return ''


@lru_cache(maxsize=8)
def sample_of(name, seed):
    """Return the sample of a seed."""
    return DATA[name](seed)
