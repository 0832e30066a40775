# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Kernel ridge regression where a share of the samples is corrupted."""

from typing import Any, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.configuration import parameter
from kernel_constrained.core.subquantile.estimator import (
    as_targets,
    as_vector,
    checked_later,
)
from kernel_constrained.core.subquantile.refinement import keep_the_rare, refine
from kernel_constrained.core.subquantile.ridge import SubsetRidge
from kernel_constrained.core.subquantile.selection import (
    alternate,
    count_kept,
    descend,
    Minimum,
    objective,
    smallest,
)
from kernel_constrained.core.subquantile.starts import (
    crowd_weights,
    huber_fit,
    path_start,
    RIDGE_MULTIPLES,
    search,
)
from kernel_constrained.core.subquantile.trimmed import TrimmedEstimator

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

STARTS = ('search', 'path', 'huber', 'zero')
# Starts are searched for among at most so many samples.
SEARCHED = 500
# Corruption that is assumed where it is to be estimated, to begin with.
UNKNOWN_CORRUPTION = 0.4


class Start(NamedTuple):
    """Where the solver begins: coefficients (r + 1,) and samples to keep (n,)."""

    coefficients: Array
    kept: Mask

    @classmethod
    def of(cls, problem: SubsetRidge, coefficients: Array, count: int) -> 'Start':
        """Keep the samples that a function fits best."""
        return cls(coefficients, smallest(problem.residuals(coefficients) ** 2, count))


@attrs.define(eq=False, slots=False, repr=False, field_transformer=checked_later)
class SubquantileRegressor(TrimmedEstimator):
    """Kernel ridge regression where a share of the samples is corrupted.

    Subquantile minimisation (Rathnashyam and Gittens, Algorithm 1): the mean squared loss of the
    ``(1 - corruption) n`` samples of smallest loss, plus a ridge, is minimised over function and
    samples kept. By default it starts from the best of several robust fits, and lets honest
    samples come back (``refine``); ``solver='gradient', start='zero', refine=False`` is the
    algorithm as published.

    Parameters
    ----------
    kernel
        :class:`Gaussian`, or :class:`Polynomial` (of degree 1 and offset 0 the linear one); None
        for a Gaussian as wide as the median distance of two samples.
    corruption
        Share of the samples that is corrupted, from 0 to below 0.5; None to estimate it. Rather
        too high than too low.
    regularization
        Lambda of ``mean squared loss + lambda |f|^2``; the intercept is free.
    solver
        ``'alternating'``: fit the kept exactly, keep the best, until they stay the same.
        ``'gradient'``: steps against the gradient, as published.
    start
        ``'search'``: the best of what follows and more. ``'path'``: from a very smooth robust
        fit by falling ridges. ``'huber'``: a Huber fit. ``'zero'``: no function.
    refine
        Whether honest samples that were dropped come back, and each counts by the probability
        that it is honest; else exactly the stated share is dropped.
    acceleration
        Nesterov's momentum, for the gradient.
    radius
        Largest norm of the function in the RKHS (Lemma 18), in units of the targets.
    max_features
        Landmarks that span the functions, at most.
    max_iterations
        Of the solver.
    tolerance
        Relative size of a gradient step at which the solver is done.
    random_state
        Seed by which landmarks are drawn.

    Attributes
    ----------
    kept_ : (n,) of bool
        Samples that were not found to be corrupted.
    outliers_ : (k,) of int
        Indices of the others, the worst first.
    corruption_ : float
        Share of corrupted samples, as given or estimated.
    objective_ : list of float
        Objective after each iteration of the solver.
    n_iter_ : int
        Its iterations.
    kernel_ : Kernel
        The kernel.
    features_ : KernelFeatures
        Landmarks and coordinates.
    coef_ : (r,)
        Coefficients of the features; their norm is that of the function in the RKHS.
    intercept_ : float
        Added to the function.
    """

    kind = 'regressor'

    start: str = parameter('search', 'where to begin', choices=STARTS)

    def predict(self, X: npt.ArrayLike) -> Array:
        """Return the function at inputs (n, p), shape (n,)."""
        return self._functions(X)

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Return the coefficient of determination, R squared."""
        targets = as_targets(as_vector(y))
        errors = targets - self.predict(X)
        return float(1.0 - (errors**2).sum() / ((targets - targets.mean()) ** 2).sum())

    # -- inside -----------------------------------------------------------------------------

    def _learn(self, inputs: Array, targets: npt.NDArray[Any]) -> None:
        """Learn from inputs (n, p) and targets (n,)."""
        targets = as_targets(targets)
        random = np.random.default_rng(self.random_state)
        features = self._features_of(inputs, random)
        centre, unit = float(np.median(targets)), float(targets.std()) or 1.0
        problem = SubsetRidge(features, (targets - centre) / unit, self.radius / unit)
        coefficients = self._minimise(problem, random)
        self.coef_ = unit * coefficients[:-1]
        self.intercept_ = float(unit * coefficients[-1] + centre)

    def _minimise(self, problem: SubsetRidge, random: np.random.Generator) -> Array:
        """Find the function and the samples to keep; return its coefficients."""
        share = UNKNOWN_CORRUPTION if self.corruption is None else self.corruption
        minimum = self._solve(problem, self._start(problem, share, random), share)
        self.objective_, self.n_iter_ = minimum.objective, len(minimum.objective)
        coefficients, kept, self.corruption_ = minimum.coefficients, minimum.kept, share
        errors = problem.residuals(coefficients)
        if self.refine and share > 0.0:
            refined = refine(problem, kept, self.regularization, self.corruption)
            if self.corruption is None:
                refined = keep_the_rare(problem, refined, self.regularization)
                self.corruption_ = refined.corruption
            coefficients, kept, errors = refined.coefficients, refined.kept, refined.residuals
        self._drop(kept, np.abs(errors))
        return coefficients

    def _start(self, problem: SubsetRidge, share: float, random: np.random.Generator) -> Start:
        """Return a first fit, of some of the samples where there are many."""
        count, ridge = count_kept(len(problem), share), self.regularization
        if self.start == 'zero' or share == 0.0:
            return Start.of(problem, np.zeros(self.features_.count + 1), count)
        rows = np.sort(random.permutation(len(problem))[:SEARCHED])
        some, rotation = problem.condensed(rows, ridge)
        if self.start == 'huber':
            first = huber_fit(some, np.ones(len(some)), ridge, share)
        elif self.start == 'path':
            weights = crowd_weights(some, ridge)
            first = some.fit(path_start(some, weights, ridge, RIDGE_MULTIPLES[-1], share), ridge)
        else:
            found = search(some, ridge, share, self.corruption is not None)
            first = found.coefficients
            if self.refine and len(rows) == len(problem):
                return Start(rotation @ first, found.kept)
        return Start.of(problem, rotation @ first, count)

    def _solve(self, problem: SubsetRidge, start: Start, share: float) -> Minimum:
        """Minimise from a first fit."""
        ridge = self.regularization
        if self.solver == 'gradient':
            return descend(
                problem, start.coefficients, count_kept(len(problem), share), ridge,
                self.max_iterations, self.tolerance, self.acceleration,
            )  # fmt: skip
        if self.refine and self.start == 'search':  # which ends where refinement begins
            coefficients = problem.fit(start.kept, ridge)
            value = objective(problem, coefficients, start.kept, ridge)
            return Minimum(coefficients, start.kept, [value])
        return alternate(problem, start.kept, ridge, self.max_iterations)
