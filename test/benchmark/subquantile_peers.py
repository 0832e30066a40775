# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Peers of the trimmed learners, all on the same features of the kernel and with the same ridge.

Every function takes a ``Problem`` and returns a ``Fit``. Those of scikit-learn are for regression
only; the others are written for any loss in ``LOSSES``.
"""

import warnings
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor, RANSACRegressor, TheilSenRegressor

NORMAL = 1.4826  # deviation of a normal variable over its median distance from 0
HELD_OUT = 0.25  # share of the samples on which the tilt is chosen
ROUNDS = 4  # fits of SEVER, as in its authors' experiments
RANSAC_SAMPLES, RANSAC_TRIALS = 20, 100
THEIL_SEN_DIRECTIONS, THEIL_SEN_SUBSETS = 20, 300


class Problem(NamedTuple):
    """What is to be learned.

    Attributes
    ----------
    z : (n, r)
        Features; what is learned is linear in them.
    y : (n,)
        Targets, or classes 0, 1, ... .
    ridge : float
        Factor of the squared norm, beside the mean loss.
    share : float
        Of the samples that are corrupted, for those who want to be told.
    clean : (n,) of bool
        The samples that are not, for the oracle.
    rng : numpy.random.Generator
        What is drawn.
    """

    z: np.ndarray
    y: np.ndarray
    ridge: float
    share: float
    clean: np.ndarray
    rng: np.random.Generator


class Fit(NamedTuple):
    """What was learned: predictions or scores are ``z @ weights``.

    Attributes
    ----------
    weights : (r,) or (r, classes)
        Of the features.
    kept : (n,) of bool, or None
        The samples that it was learned from, where it tells samples apart.
    """

    weights: np.ndarray
    kept: np.ndarray | None = None


# -- losses ---------------------------------------------------------------------------------


def squared_fit(z, y, ridge, share_of_each, start=None):
    """Minimise the weighted mean of the squared errors, and the ridge; weights add up to 1."""
    weighted = z * share_of_each[:, None]
    gram = weighted.T @ z
    gram[np.diag_indices_from(gram)] += ridge
    return cho_solve(cho_factor(gram), weighted.T @ y)


def squared_losses(z, y, weights):
    return (z @ weights - y) ** 2


def squared_gradients(z, y, weights):
    return (z @ weights - y)[:, None] * z


def softmax_fit(z, y, ridge, share_of_each, start=None):
    """Minimise the weighted mean of the logarithmic losses, and the ridge; weights add up to 1.

    Two classes are one function f: their scores are -f/2 and f/2, and half their squared norm
    is a quarter of f's.
    """
    shape = z.shape[1], y.max() + 1
    ridge = 2.0 * ridge if shape[1] == 2 else ridge
    rows = np.arange(len(y))

    def objective(flat):
        weights = flat.reshape(shape)
        log_p = log_softmax(z @ weights, axis=1)
        excess = np.exp(log_p)
        excess[rows, y] -= 1.0
        value = -share_of_each @ log_p[rows, y] + ridge * flat @ flat
        gradient = z.T @ (share_of_each[:, None] * excess) + 2.0 * ridge * weights
        return value, gradient.ravel()

    begin = np.zeros(shape) if start is None else start
    options = {'maxiter': 1000, 'gtol': 1e-4}
    found = minimize(objective, begin.ravel(), jac=True, method='L-BFGS-B', options=options)
    return found.x.reshape(shape)


def softmax_losses(z, y, weights):
    return -log_softmax(z @ weights, axis=1)[np.arange(len(y)), y]


def softmax_gradients(z, y, weights):
    excess = np.exp(log_softmax(z @ weights, axis=1))
    excess[np.arange(len(y)), y] -= 1.0
    return (z[:, :, None] * excess[:, None, :]).reshape(len(z), -1)


# What fits, its losses, and each sample's gradient (n, number of weights).
SQUARED = SimpleNamespace(fit=squared_fit, losses=squared_losses, gradients=squared_gradients)
SOFTMAX = SimpleNamespace(fit=softmax_fit, losses=softmax_losses, gradients=softmax_gradients)


def loss_of(y):
    """Return the loss for targets or classes."""
    return SOFTMAX if np.issubdtype(y.dtype, np.integer) else SQUARED


def evenly(kept):
    """Weigh the samples that are kept alike."""
    return kept / kept.sum()


# -- peers for both -------------------------------------------------------------------------


def plain(problem):
    """Kernel ridge regression, or kernel logistic regression, on all samples."""
    everything = np.ones(len(problem.y), dtype=bool)
    return oracle(problem._replace(clean=everything))._replace(kept=None)


def oracle(problem):
    """Know which samples are clean, and learn from these: not a competitor."""
    z, y, ridge, _, clean, _ = problem
    return Fit(loss_of(y).fit(z, y, ridge, evenly(clean)), clean)


def tilted(problem, tilts=None):
    """Tilted empirical risk minimisation with a negative tilt (Li, Beirami, Sanjabi, Smith 2021).

    The tilt with the least median loss on held-out samples, of three: of the squared error in
    units of the spread of the plain fit's errors, of the logarithmic loss as it is.
    """
    z, y, ridge, *_ = problem
    loss = loss_of(y)
    if tilts is None:
        variance = 0.5
        if loss is SQUARED:
            losses = loss.losses(z, y, loss.fit(z, y, ridge, evenly(np.ones(len(y)))))
            variance = NORMAL**2 * max(np.median(losses), 1e-12)
        tilts = [-0.5 / (factor * variance) for factor in (1.0, 4.0, 16.0)]
    held = problem.rng.random(len(y)) < HELD_OUT

    def median_loss(tilt):
        weights = tilted_fit(loss, z[~held], y[~held], ridge, tilt)
        return np.median(loss.losses(z[held], y[held], weights))

    # A subset without the last class has too few scores; the classes of all are in the fit.
    if loss is SOFTMAX and y[~held].max() < y.max():
        held[np.flatnonzero(y == y.max())[0]] = False
    tilt = min(tilts, key=median_loss) if len(tilts) > 1 else tilts[0]
    return Fit(tilted_fit(loss, z, y, ridge, tilt))


def tilted_fit(loss, z, y, ridge, tilt, rounds=30, tolerance=1e-3):
    """Minimise ``log(mean(exp(tilt loss))) / tilt`` and the ridge, for a tilt below 0.

    The risk is concave in the losses: a fit with the weights of its tangent, each in proportion
    to ``exp(tilt loss)``, never raises it.
    """
    weights = loss.fit(z, y, ridge, np.full(len(y), 1.0 / len(y)))
    for _ in range(rounds):
        losses = loss.losses(z, y, weights)
        of_each = np.exp(tilt * (losses - losses.min()))
        before, weights = weights, loss.fit(z, y, ridge, of_each / of_each.sum(), weights)
        if np.linalg.norm(weights - before) <= tolerance * np.linalg.norm(before):
            break
    return weights


def sever(problem):
    """SEVER (Diakonikolas, Kamath, Kane, Li, Steinhardt, Stewart 2019), told the share.

    After each fit but the last, half that share of the samples left, whose gradients go farthest
    along the direction in which the gradients vary most, are left out.
    """
    z, y, ridge, share, *_ = problem
    loss, kept = loss_of(y), np.ones(len(y), dtype=bool)
    weights = loss.fit(z, y, ridge, evenly(kept))
    for _ in range(ROUNDS - 1):
        rows = np.flatnonzero(kept)
        gradients = loss.gradients(z[rows], y[rows], weights)
        left_out = round(0.5 * share * len(rows))
        scores = outlier_scores(gradients)
        kept[rows[np.argsort(scores)[len(rows) - left_out :]]] = False
        weights = loss.fit(z, y, ridge, evenly(kept), weights)
    return Fit(weights, kept)


def outlier_scores(gradients):
    """Squared components of centred gradients (n, d) along their first singular direction."""
    centred = gradients - gradients.mean(axis=0)
    # The first left singular vector times its value, from the smaller of the two products.
    if centred.shape[1] <= len(centred):
        direction = np.linalg.eigh(centred.T @ centred)[1][:, -1]
        return (centred @ direction) ** 2
    values, vectors = np.linalg.eigh(centred @ centred.T)
    return values[-1] * vectors[:, -1] ** 2


# -- scikit-learn's, for regression ---------------------------------------------------------


class MeanRidge(BaseEstimator):
    """Ridge regression of the mean, not the sum, of the squared errors: for any subset."""

    def __init__(self, ridge=1.0):
        self.ridge = ridge

    def fit(self, X, y):
        self.coef_ = squared_fit(X, y, self.ridge, np.full(len(y), 1.0 / len(y)))
        return self

    def predict(self, X):
        return X @ self.coef_

    def score(self, X, y):
        return -np.mean((self.predict(X) - y) ** 2)


def huber(problem, iterations=200):
    """scikit-learn's HuberRegressor with its own epsilon.

    Its loss is the squared error over the deviation that it estimates: it is fitted a second time
    with the ridge that this deviation makes.
    """
    z, y, ridge, *_ = problem
    deviation = NORMAL * np.median(np.abs(y - np.median(y)))
    for _ in range(2):
        alpha = ridge * len(y) / max(deviation, 1e-6)
        model = HuberRegressor(alpha=alpha, fit_intercept=False, max_iter=iterations)
        with warnings.catch_warnings():  # the last digits take as long again
            warnings.simplefilter('ignore', ConvergenceWarning)
            deviation = model.fit(z, y).scale_
    return Fit(model.coef_)


def ransac(problem):
    """scikit-learn's RANSACRegressor with its own threshold, of ridge regression on 20 samples."""
    z, y, ridge, *_ = problem
    model = RANSACRegressor(
        MeanRidge(ridge), min_samples=RANSAC_SAMPLES, max_trials=RANSAC_TRIALS,
        random_state=int(problem.rng.integers(2**31)),
    ).fit(z, y)  # fmt: skip
    return Fit(model.estimator_.coef_, model.inlier_mask_)


def theil_sen(problem):
    """scikit-learn's TheilSenRegressor, which has no ridge, on the features' main directions."""
    z, y, *_ = problem
    count = min(THEIL_SEN_DIRECTIONS, z.shape[1])
    directions = np.linalg.svd(z, full_matrices=False)[2][:count].T
    model = TheilSenRegressor(
        fit_intercept=False, max_subpopulation=THEIL_SEN_SUBSETS, n_subsamples=3 * count,
        random_state=int(problem.rng.integers(2**31)),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ConvergenceWarning)
        model.fit(z @ directions, y)
    return Fit(directions @ model.coef_)


BOTH = {'plain': plain, 'tilted': tilted, 'SEVER': sever}
REGRESSION_PEERS = {**BOTH, 'Huber': huber, 'RANSAC': ransac, 'Theil-Sen': theil_sen}
