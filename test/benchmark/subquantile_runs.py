# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""One run of the trimmed learners and of their peers on corrupted data, and what everybody uses.

The bandwidth and the ridge are chosen once for each data set, for all methods, and without any
clean data: on the corrupted training rows of seed 0 (random labels, share 0.2), by what a fit
that is not ours predicts of the rows that it was not fitted to.
"""

from time import thread_time
from typing import NamedTuple

import numpy as np
from subquantile_corruption import (
    CLASSIFICATION_KINDS,
    corrupt,
    REGRESSION_KINDS,
    SHARES,
    SWAPPED,
)
from subquantile_data import CLASSIFICATION, REGRESSION, sample_of
from subquantile_peers import BOTH, huber, oracle, plain, Problem, REGRESSION_PEERS

from kernel_constrained.core import Gaussian, SubquantileClassifier, SubquantileRegressor
from kernel_constrained.core.subquantile.features import KernelFeatures, median_bandwidth

FEATURES, LEFT = 200, 0.1  # at most, and trace that is left of the kernel's, in ridges: as ours
CONSTANT = 3.0  # a feature of all: the ridge on its weight is a ninth of what it is on others
BANDWIDTHS = (0.25, 0.5, 1.0, 2.0)  # in median distances between inputs
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
FOLDS, CHOSEN_AT = 4, 0.2
PATIENCE = 100  # iterations of Huber's regression while settings are chosen
NONE = 'none'  # the kind of corruption where the share is 0
GROSS = 2.0  # standard deviations: a target that is this wrong has to be found
OURS, ESTIMATED, ORACLE = 'ours', 'ours, estimated', 'oracle'


class Settings(NamedTuple):
    """What all methods use on a data set."""

    bandwidth: float
    ridge: float


class Cell(NamedTuple):
    """Data of a seed, and how they are corrupted."""

    data: str
    kind: str
    share: float
    seed: int


class Run(NamedTuple):
    """What a method made of a cell.

    Attributes
    ----------
    error : float
        On the clean test points: mean squared error over their variance, or share that is wrong.
    distance : float
        Root mean square distance to the true function, or share of the points whose likeliest
        class was not found; NaN where nobody knows them.
    seconds : float
        Of the fit and the features that it uses, thread CPU time.
    found, dropped : float
        Shares of the gross outliers and of the untouched samples that were not learned from; NaN
        where a method does not tell, or there are none.
    share_said : float
        Share that is corrupted by its own estimate; NaN where it does not tell.
    """

    data: str
    kind: str
    share: float
    seed: int
    method: str
    error: float
    distance: float
    seconds: float
    found: float
    dropped: float
    share_said: float


def kinds_of(data):
    """Return the kinds of corruption of a data set."""
    if data in CLASSIFICATION:
        return list(CLASSIFICATION_KINDS)
    return [SWAPPED] if data == 'motion' else list(REGRESSION_KINDS)


def cells_of(data, kinds, seeds):
    """Return the cells of a data set: without corruption once, and each kind at each share."""
    ways = [(NONE, 0.0)]
    ways += [(k, s) for k in kinds_of(data) if not kinds or k in kinds for s in SHARES if s > 0.0]
    return [Cell(data, kind, share, seed) for seed in seeds for kind, share in ways]


def corrupted(cell):
    """Return the sample of a cell, and the rows that are shown of it."""
    sample = sample_of(cell.data, cell.seed)
    kind = [NONE, 'random', *kinds_of(cell.data)].index(cell.kind)
    rng = np.random.default_rng([cell.seed, kind, round(100 * cell.share)])
    return sample, corrupt(sample.x, sample.y, cell.kind, cell.share, rng, sample.swapped)


# -- settings -------------------------------------------------------------------------------


def features_of(x, settings, rng):
    """Return the features of the kernel with a constant one, as a function of inputs."""
    kernel = Gaussian(settings.bandwidth)
    features = KernelFeatures.of(kernel, x, FEATURES, LEFT * settings.ridge, rng)
    return lambda inputs: np.c_[np.full(len(inputs), CONSTANT), features(inputs)]


def choose(data):
    """Choose the settings of a data set by cross-validation: see the module."""
    _, shown = corrupted(Cell(data, 'random', CHOSEN_AT, 0))
    rng = np.random.default_rng(0)
    median = median_bandwidth(shown.x, rng)
    fold = rng.permutation(len(shown.y)) % FOLDS
    settings = [Settings(b * median, r) for b in BANDWIDTHS for r in RIDGES]
    # Of equal ones that with more ridge, which is the later one.
    return min(reversed(settings), key=lambda s: validated(shown, fold, s, data in REGRESSION))


def validated(shown, fold, settings, regression):
    """Return the mean absolute error, or the share of errors, of what was not fitted to.

    Random labels add about the same to it whatever the settings are.
    """
    rng = np.random.default_rng(0)
    z = features_of(shown.x, settings, rng)(shown.x)
    centre = np.median(shown.y) if regression else 0
    errors = np.zeros(len(fold))
    for k in range(FOLDS):
        rest, out = fold != k, fold == k
        problem = Problem(
            z[rest], shown.y[rest] - centre, settings.ridge, CHOSEN_AT, rest[rest], rng
        )
        fit = huber(problem, PATIENCE) if regression else plain(problem)
        said = z[out] @ fit.weights
        if regression:
            errors[out] = np.abs(said + centre - shown.y[out])
        else:
            errors[out] = said.argmax(axis=1) != shown.y[out]
    return errors.mean()


# -- runs -----------------------------------------------------------------------------------


def measured(cell, settings, starts=()):
    """Return the runs of all methods on a cell; ours with other starts, too, if there are any."""
    sample, shown = corrupted(cell)
    variants = {OURS: {}, ESTIMATED: {'corruption': None}}
    variants |= {f'{OURS}, start {start}': {'start': start} for start in starts}
    runs = [ours(name, more, cell, settings, sample, shown) for name, more in variants.items()]
    return runs + peers(cell, settings, sample, shown)


def ours(name, more, cell, settings, sample, shown):
    """Return the run of our estimator."""
    make = SubquantileRegressor if cell.data in REGRESSION else SubquantileClassifier
    parameters = {
        'kernel': Gaussian(settings.bandwidth), 'regularization': settings.ridge,
        'corruption': cell.share, **more,
    }  # fmt: skip
    begun = thread_time()
    model = make(**parameters).fit(shown.x, shown.y)
    seconds = thread_time() - begun
    said = model.predict(sample.test_x)
    estimate = float(model.corruption_) if parameters['corruption'] is None else np.nan
    return judged(cell, name, sample, shown, said, model.kept_, seconds, estimate)


def peers(cell, settings, sample, shown):
    """Return the runs of the peers, on features that are made once."""
    regression = cell.data in REGRESSION
    rng = np.random.default_rng(cell.seed)
    begun = thread_time()
    features = features_of(shown.x, settings, rng)
    z = features(shown.x)
    of_features = thread_time() - begun
    test_z, centre = features(sample.test_x), np.median(shown.y) if regression else 0
    runs = []
    for name, peer in {**(REGRESSION_PEERS if regression else BOTH), ORACLE: oracle}.items():
        problem = Problem(z, shown.y - centre, settings.ridge, cell.share, ~shown.mask, rng)
        begun = thread_time()
        weights, kept = peer(problem)
        seconds = of_features + thread_time() - begun
        said = test_z @ weights + centre if regression else (test_z @ weights).argmax(axis=1)
        runs.append(judged(cell, name, sample, shown, said, kept, seconds, np.nan))
    return runs


def judged(cell, name, sample, shown, said, kept, seconds, estimate):
    """Return a run from what a method said of the test points."""
    distance = np.nan
    if cell.data in REGRESSION:
        error = np.mean((said - sample.test_y) ** 2) / np.var(sample.test_y)
        if sample.truth is not None:
            distance = np.sqrt(np.mean((said - sample.truth) ** 2))
    else:
        error = np.mean(said != sample.test_y)
        if sample.truth is not None:
            distance = np.mean(said != sample.truth)
    gross = gross_outliers(cell, sample, shown)
    found = np.mean(~kept[gross]) if kept is not None and gross.any() else np.nan
    dropped = np.mean(~kept[~shown.mask]) if kept is not None else np.nan
    return Run(
        *cell, name, float(error), float(distance), seconds, float(found), float(dropped), estimate
    )


def gross_outliers(cell, sample, shown):
    """Return which samples have to be found: those whose targets, or classes, are plainly wrong.

    A leverage point is one in any case, a scrambled input alone is not.
    """
    if 'leverage' in cell.kind:
        return shown.mask
    if cell.data in CLASSIFICATION:
        return shown.y != sample.y
    return np.abs(shown.y - sample.y) > GROSS * sample.y.std()
