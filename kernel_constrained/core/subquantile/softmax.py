# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Kernel logistic and softmax regression on weighted samples, in features of a kernel.

A function for each class; the largest one wins. Two classes have functions that are each other's
opposites, ``-f/2`` and ``f/2``: logistic regression of ``f``. The functions are of the kernel
plus a constant, ``k(x, x') + 1``: an offset that no ridge held back would run away where a class
has no sample left.

Products are scipy's, as its minimiser's are: why, says ``ridge``.
"""

import math
from copy import copy

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dgemm
from scipy.optimize import brentq, minimize

Array = npt.NDArray[np.float64]

# Largest curvature of the softmax loss along one of the functions.
CURVATURE = 0.5
# A fit ends where no entry of the gradient, over the root of the curvature, is above this.
EXACT, FINE, ROUGH = 1e-7, 1e-5, 1e-3
MOST_STEPS = 500
# Ridges are raised up to this much, by this factor at once, to bring a function into the ball.
HIGHEST_RIDGE, RIDGE_FACTOR = 1e12, 10.0


def log_sum_exp(scores: Array) -> Array:
    """Return ``log sum_c exp(scores_c)`` of each row, shape (n,)."""
    highest = scores.max(axis=1)
    total: Array = np.exp(scores - highest[:, None]).sum(axis=1)
    return np.asarray(highest + np.log(total))


class Softmax:
    """Minimises ``sum_i w_i loss_i / sum_i w_i + ridge |f|^2``, for some weights after others.

    ``|f|^2`` is ``sum_c |f_c|^2``, for two classes the squared norm of their one function f.

    Features are turned to their principal axes once: there a bound of the Hessian is diagonal
    whatever the ridge, and scales the steps of L-BFGS.

    Parameters
    ----------
    features
        Features of the samples, shape (n, r).
    labels
        Class of each sample, 0 to ``classes - 1``, shape (n,).
    classes
        How many there are.
    radius
        Largest norm ``|f|``.
    """

    def __init__(
        self, features: Array, labels: npt.NDArray[np.intp], classes: int, radius: float = math.inf
    ) -> None:
        with_offset = self._with_offset(features)
        variances, self.axes = np.linalg.eigh(with_offset.T @ with_offset / len(features))
        self.variances = np.maximum(variances, 0.0)
        self.features = with_offset @ self.axes
        self.labels, self.classes, self.radius = labels, classes, radius
        self.one_hot = np.eye(classes)[labels]
        # |f|^2 over the sum of the squares of the coefficients
        self.squares = 2.0 if classes == 2 else 1.0

    @property
    def zero(self) -> Array:
        """Coefficients of functions that are 0, shape (r + 1, classes)."""
        return np.zeros((self.features.shape[1], self.classes))

    def scores(self, coefficients: Array) -> Array:
        """Return the functions at the samples, shape (n, classes)."""
        return np.asarray(dgemm(1.0, coefficients.T, self.features.T).T)

    def losses(self, scores: Array) -> Array:
        """Return ``-log P(label)`` of each sample, shape (n,)."""
        return log_sum_exp(scores) - scores[np.arange(len(scores)), self.labels]

    def norm(self, coefficients: Array) -> float:
        """Return ``|f|``."""
        return math.sqrt(self.squares) * float(np.linalg.norm(coefficients))

    def objective(self, coefficients: Array, scores: Array, weights: Array, ridge: float) -> float:
        """Return the weighted loss and the ridge; weights (n,) add up to 1."""
        penalty = ridge * self.squares * np.sum(coefficients**2)
        return float(weights @ self.losses(scores) + penalty)

    def gradient(self, coefficients: Array, scores: Array, weights: Array, ridge: float) -> Array:
        """Return the gradient of the objective; weights (n,) add up to 1."""
        slope = np.exp(scores - log_sum_exp(scores)[:, None])
        slope -= self.one_hot
        slope *= weights[:, None]
        moment = dgemm(1.0, slope.T, self.features.T, trans_b=1).T
        return np.asarray(moment + 2.0 * ridge * self.squares * coefficients)

    def fit(self, weights: Array, ridge: float, start: Array, accuracy: float = EXACT) -> Array:
        """Minimise over the ball; return the coefficients (r + 1, classes).

        Parameters
        ----------
        weights
            Of the samples, not negative, shape (n,).
        ridge
            Factor of the squared norm.
        start
            Coefficients to begin with.
        accuracy
            Of the gradient.
        """
        fitted = self._fit(weights, ridge, start, accuracy)
        if self.norm(fitted) <= self.radius:
            return fitted
        return self._fit_on_sphere(weights, ridge, fitted, accuracy)

    def _fit(self, weights: Array, ridge: float, start: Array, accuracy: float) -> Array:
        used = np.flatnonzero(weights)
        some = self._rows(used)
        shares = weights[used] / weights.sum()
        curvature = CURVATURE * self.variances + 2.0 * ridge * self.squares
        scale = 1.0 / np.sqrt(curvature)[:, None]

        def value_and_gradient(flat: Array) -> tuple[float, Array]:
            coefficients = flat.reshape(start.shape) * scale
            scores = some.scores(coefficients)
            value = some.objective(coefficients, scores, shares, ridge)
            slope = some.gradient(coefficients, scores, shares, ridge)
            return value, (slope * scale).ravel()

        result = minimize(
            value_and_gradient, (start / scale).ravel(), jac=True, method='L-BFGS-B',
            options={'maxiter': MOST_STEPS, 'gtol': accuracy, 'ftol': 0.0},
        )  # fmt: skip
        return np.asarray(result.x.reshape(start.shape) * scale)

    def _fit_on_sphere(self, weights: Array, ridge: float, start: Array, accuracy: float) -> Array:
        """Raise the ridge, the multiplier of the ball, until the norm is the radius."""
        highest = ridge
        while highest < HIGHEST_RIDGE:
            highest *= RIDGE_FACTOR
            if self.norm(self._fit(weights, highest, start, accuracy)) < self.radius:
                break

        def excess(log_ridge: float) -> float:
            fitted = self._fit(weights, math.exp(log_ridge), start, accuracy)
            return self.norm(fitted) - self.radius

        log_ridge = brentq(excess, math.log(ridge), math.log(highest), xtol=1e-9)
        return self.projected(self._fit(weights, math.exp(log_ridge), start, accuracy))

    def projected(self, coefficients: Array) -> Array:
        """Project on the ball ``|f| <= radius`` (Lemma 18)."""
        norm = self.norm(coefficients)
        return coefficients if norm <= self.radius else coefficients * (self.radius / norm)

    def _rows(self, rows: npt.NDArray[np.intp]) -> 'Softmax':
        """Return the same problem on some of the samples, in the same coordinates."""
        some = copy(self)
        some.features, some.labels = self.features[rows], self.labels[rows]
        some.one_hot = self.one_hot[rows]
        return some

    @staticmethod
    def _with_offset(features: Array) -> Array:
        return np.column_stack([features, np.ones(len(features))])
