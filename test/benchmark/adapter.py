# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What every contestant looks like to the benchmark, ours and the peers alike."""

import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from typing import NamedTuple

import numpy as np


class Result(NamedTuple):
    """Seconds per sample of learning, error on the test points, atoms or features."""

    seconds: float
    error: float
    size: int


class Origin(NamedTuple):
    """Where a contestant comes from: why it is absent ('' where it is there), and its version."""

    absence: Callable[[], str]
    version: Callable[[], str]


class Contestant(NamedTuple):
    """One learner with the settings that are tried.

    Attributes
    ----------
    name
        As the table has it.
    origin
        The :class:`Origin`.
    run
        ``run(stream, setting)`` learns the stream once and returns a :class:`Result`.
    grid
        Settings, each a dict; the benchmark adds ``bandwidth``.
    rounds
        Streams that settings are chosen on, at least, and how often each stream is timed
        afterwards: more for the quick, whose times are the noisiest.
    own_bandwidth
        Whether it also competes with a bandwidth of its own choice.
    note
        What a reader of the table has to know.
    """

    name: str
    origin: Origin
    run: Callable
    grid: list
    rounds: int = 1
    own_bandwidth: bool = True
    note: str = ''


def package(name, module=None):
    """Return the origin of a Python package: pip's name for it, and Python's if another."""

    def absence():
        there = find_spec(module or name) is not None
        return '' if there else f'{name} is not installed (pip install {name})'

    return Origin(absence, lambda: f'{name} {version(name)}')


def grid(**axes):
    """Return every combination of the values given, each as a dict."""
    return [dict(zip(axes, values)) for values in product(*axes.values())]


class Stopwatch:
    """``with Stopwatch() as watch: ...``, then ``watch.seconds``."""

    def __enter__(self):
        self.begun = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.begun


class FourierFeatures:
    """Random Fourier features of the Gaussian kernel (Rahimi and Recht), in plain numpy."""

    def __init__(self, inputs, features, bandwidth, seed):
        rng = np.random.default_rng(seed)
        self.frequencies = rng.standard_normal((inputs, features)) / bandwidth
        self.phases = rng.uniform(0, 2 * np.pi, features)
        self.scale = np.sqrt(2 / features)

    def __call__(self, x):
        return self.scale * np.cos(x @ self.frequencies + self.phases)
