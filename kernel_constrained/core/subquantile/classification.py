# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Kernel logistic and softmax regression where a share of the samples is corrupted."""

from functools import partial
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from kernel_constrained.configuration import parameter
from kernel_constrained.core.subquantile.class_selection import (
    alternate,
    as_many_of_each,
    descend,
    Select,
)
from kernel_constrained.core.subquantile.estimator import checked_later
from kernel_constrained.core.subquantile.labels import estimate, judge, trusted, walk
from kernel_constrained.core.subquantile.selection import count_kept, Minimum, smallest
from kernel_constrained.core.subquantile.softmax import Softmax
from kernel_constrained.core.subquantile.starts import ALTERNATIONS
from kernel_constrained.core.subquantile.trimmed import TrimmedEstimator

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.intp]

STARTS = ('path', 'zero')


@attrs.define(eq=False, slots=False, repr=False, field_transformer=checked_later)
class SubquantileClassifier(TrimmedEstimator):
    """Kernel classification by the logistic or softmax loss where a share of samples is corrupted.

    Subquantile minimisation (Rathnashyam and Gittens, Algorithm 2; for several classes by the
    softmax loss): the mean loss of the ``(1 - corruption) n`` samples of smallest loss, plus a
    ridge, is minimised over functions and samples kept. By default it starts from smooth fits in
    which each class weighs the same, keeps as many of each label as that start does, and lets
    samples come back whose labels are not clearly wrong by fits that have not seen them
    (``refine``); ``solver='gradient', start='zero', refine=False`` is the algorithm as published.

    Parameters
    ----------
    kernel
        :class:`Gaussian`, or :class:`Polynomial` (of degree 1 and offset 0 the linear one); None
        for a Gaussian as wide as the median distance of two samples.
    corruption
        Largest share of the samples to leave out, from 0 to below 0.5; None to leave out as many
        as seem mislabelled.
    regularization
        Lambda of ``mean loss + lambda |f|^2``; f is the function of two classes, or all those of
        several, in the RKHS of the kernel plus 1.
    solver
        ``'alternating'``: fit the kept exactly, select anew, until they stay the same.
        ``'gradient'``: steps against the gradient, as published.
    start
        ``'path'``: by falling ridges from a very smooth fit. ``'zero'``: no function.
    refine
        Whether samples come back whose labels are not clearly wrong; else exactly the stated
        share is dropped.
    acceleration
        Nesterov's momentum, for the gradient.
    radius
        Largest norm of the function in the RKHS (Lemma 18).
    max_features
        Landmarks that span the functions, at most.
    max_iterations
        Of the solver; before samples come back, the alternating one makes 10 at most.
    tolerance
        Relative size of a gradient step at which the solver is done.
    random_state
        Seed by which landmarks are drawn.

    Attributes
    ----------
    classes_ : (C,)
        Labels, sorted.
    kept_ : (n,) of bool
        Samples that the functions were fitted to.
    outliers_ : (k,) of int
        Indices of the others, the worst first.
    corruption_ : float
        Share of corrupted samples as given, or of wrong labels as estimated. Labels drawn at
        random are right once in C times.
    objective_ : list of float
        Objective after each iteration of the solver.
    n_iter_ : int
        Its iterations.
    kernel_ : Kernel
        The kernel.
    features_ : KernelFeatures
        Landmarks and coordinates.
    coef_ : (r,) or (r, C)
        Coefficients of the features, of the one function of two classes or of those of several.
    intercept_ : float or (C,)
        Added to the functions.
    """

    kind = 'classifier'

    start: str = parameter('path', 'where to begin', choices=STARTS)

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Return the functions at inputs (n, p): of two classes shape (n,), of several (n, C).

        The function of two classes is positive where the second one is the likelier.
        """
        return self._functions(X)

    def predict_proba(self, X: npt.ArrayLike) -> Array:
        """Return the probabilities of the classes at inputs (n, p), shape (n, C)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([-0.5 * scores, 0.5 * scores])
        return np.asarray(softmax(scores, axis=1))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the likeliest class at inputs (n, p), shape (n,)."""
        scores = self.decision_function(X)
        highest = (scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[highest])

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Return the share of inputs (n, p) whose label (n,) is predicted."""
        return float(np.mean(self.predict(X) == np.asarray(y).ravel()))

    # -- inside -----------------------------------------------------------------------------

    def _learn(self, inputs: Array, targets: npt.NDArray[Any]) -> None:
        """Learn from inputs (n, p) and labels (n,)."""
        self.classes_, numbers = classes_of(targets)
        random = np.random.default_rng(self.random_state)
        features = self._features_of(inputs, random)
        problem = Softmax(features, numbers, len(self.classes_), self.radius)
        functions = problem.axes @ self._minimise(problem)
        if len(self.classes_) == 2:
            functions = functions[:, 1] - functions[:, 0]
        self.coef_, self.intercept_ = functions[:-1], functions[-1]

    def _minimise(self, problem: Softmax) -> Array:
        """Find the functions and the samples to keep; return the functions' coefficients."""
        ridge = self.regularization
        self.corruption_ = self.corruption
        if self.corruption_ is None:
            self.corruption_ = estimate(problem, ridge)
        coefficients, kept, self.objective_ = self._solve(problem, self.corruption_)
        self.n_iter_ = len(self.objective_)
        badness = problem.losses(problem.scores(coefficients))
        if self.refine and self.corruption_ > 0.0:
            right = judge(problem, kept, ridge, coefficients).right
            kept, badness = trusted(right, self.corruption_), -right
            coefficients = problem.fit(kept.astype(float), ridge, coefficients)
        self._drop(kept, badness)
        return coefficients

    def _solve(self, problem: Softmax, corruption: float) -> Minimum:
        """Minimise the objective from the chosen start by the chosen solver."""
        coefficients, kept, select = self._begin(problem, corruption)
        if self.solver == 'alternating':
            most = self.max_iterations
            if self.refine:  # what is found is only where refinement begins
                most = min(most, ALTERNATIONS)
            return alternate(problem, coefficients, kept, select, self.regularization, most)
        return descend(
            problem, coefficients, kept, select, self.regularization, self.max_iterations,
            self.tolerance, self.acceleration,
        )  # fmt: skip

    def _begin(self, problem: Softmax, corruption: float) -> tuple[Array, Mask, Select]:
        """Return functions and samples to start from, and how samples are selected later."""
        everything = np.ones(len(problem.labels), dtype=bool)
        if self.start == 'zero' or corruption == 0.0:
            count = count_kept(len(everything), corruption)
            return problem.zero, everything, partial(smallest, count=count)
        kept, coefficients = walk(problem, corruption, self.regularization)
        return coefficients, kept, as_many_of_each(problem.labels, kept)


def classes_of(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Labels]:
    """Return the classes, sorted, and the number of each label's class, shape (n,).

    Raises
    ------
    ValueError
        Where labels are not finite or not of a finite number of kinds, or all the same.
    """
    if np.issubdtype(labels.dtype, np.floating):
        if not np.isfinite(labels).all():
            raise ValueError(
                f'Input y contains NaN or infinity: {int((~np.isfinite(labels)).sum())} of '
                f'{len(labels)} labels'
            )
        if np.any(labels != np.round(labels)):
            raise ValueError(
                'Unknown label type: continuous. Labels are classes: whole numbers or strings '
                f'(got {labels[labels != np.round(labels)][0]:g}); numbers to predict are for '
                'SubquantileRegressor'
            )
    classes, numbers = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f'Classifier needs at least two classes to tell apart, y holds one class: {classes[0]}'
        )
    return classes, numbers
