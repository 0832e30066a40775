# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Which labels are right: where to begin, how often each class is mislabelled, what to drop.

Three facts decide. A heavily regularised fit does not follow wrong labels. Fitted so that every
class weighs the same, it stays where it is when one class is mislabelled more often than another:
the error averaged over classes has the same minimiser (Menon, van Rooyen, Ong and Williamson,
2015). And a sample that a fit which has not seen it is sure of tells how often its class is
mislabelled (Northcutt, Jiang and Chuang, 2021), which tells a wrong label from a close call.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from kernel_constrained.core.subquantile.selection import count_kept, smallest
from kernel_constrained.core.subquantile.softmax import ROUGH, Softmax

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.intp]

# Ridges of the fits that the start goes through, relative to the one asked for.
RIDGES = (30.0, 10.0, 3.0, 1.0, 1.0)
FOLDS = 5
# Share of the samples that is left out to estimate how many are mislabelled, and the most that
# they are said to be.
LEFT_OUT, HIGHEST = 0.3, 0.45
# Share of the samples of a class, those with the clearest scores, that its mislabelling is read
# from, and the samples' worth of all classes' rate that is mixed in.
CONFIDENT, PRIOR = 0.5, 1.0
# A label is dropped where it is right with less than this probability.
RIGHT = 0.2
# Scores are multiplied by a factor between these to become probabilities.
SHARPEST, FLATTEST = 10.0, 0.1


class Judgement(NamedTuple):
    """What is thought of the labels.

    Attributes
    ----------
    right : (n,)
        Probability that each is right.
    mislabelled : float
        Share of the samples that are not.
    """

    right: Array
    mislabelled: float


def balanced(labels: Labels, kept: Mask, classes: int) -> Array:
    """Return weights (n,) by which each class weighs the same, 0 for what is not kept."""
    counts = np.bincount(labels[kept], minlength=classes)
    return kept / np.maximum(counts, 1)[labels]


def walk(problem: Softmax, corruption: float, ridge: float) -> tuple[Mask, Array]:
    """Let go of more and more samples while the ridge comes down; return the kept, and a fit.

    Each class weighs the same.
    """
    kept, coefficients = np.ones(len(problem.labels), dtype=bool), problem.zero
    for step, factor in enumerate(RIDGES, start=1):
        weights = balanced(problem.labels, kept, problem.classes)
        coefficients = problem.fit(weights, factor * ridge, coefficients, ROUGH)
        losses = problem.losses(problem.scores(coefficients))
        count = count_kept(len(losses), corruption * step / len(RIDGES))
        kept = smallest(losses, count)
    return kept, coefficients


def judge(problem: Softmax, kept: Mask, ridge: float, coefficients: Array) -> Judgement:
    """Judge the labels by scores of fits, on the kept samples, that have not seen them."""
    scores = cross_fitted(problem, kept, ridge, coefficients)
    confusion = confusion_of(scores, problem.one_hot)
    sizes = np.bincount(scores.argmax(axis=1), minlength=problem.classes) / len(scores)
    right = probability_right(scores, problem.one_hot, confusion)
    return Judgement(right, float(sizes @ (1.0 - confusion.diagonal())))


def estimate(problem: Softmax, ridge: float) -> float:
    """Return the share of samples that are mislabelled, judged where more than these are left out.

    Labels drawn at random are right once in as many times as there are classes.
    """
    kept, coefficients = walk(problem, LEFT_OUT, ridge)
    return min(judge(problem, kept, ridge, coefficients).mislabelled, HIGHEST)


def folds_of(labels: Labels, classes: int) -> Labels:
    """Deal the samples of each class to the folds in turn; return the fold of each, shape (n,)."""
    fold = np.zeros(len(labels), dtype=np.intp)
    for label in range(classes):
        rows = np.flatnonzero(labels == label)
        fold[rows] = np.arange(len(rows)) % FOLDS
    return fold


def cross_fitted(problem: Softmax, kept: Mask, ridge: float, coefficients: Array) -> Array:
    """Return scores (n, classes), each of a fit to the kept samples of the other folds."""
    fold = folds_of(problem.labels, problem.classes)
    scores = np.zeros_like(problem.one_hot)
    for number in range(FOLDS):
        out = fold == number
        weights = balanced(problem.labels, kept & ~out, problem.classes)
        fitted = problem.fit(weights, ridge, coefficients, ROUGH)
        scores[out] = problem.features[out] @ fitted
    return scores


def confusion_of(scores: Array, one_hot: Array) -> Array:
    """Return how often samples of each class (rows) bear each label (columns).

    Counted among the samples whose class is clear, for which the class is the one of the highest
    score. A few samples' worth of the rate of all classes together, even among wrong labels, is
    mixed in: it stands for classes that have none.
    """
    classes = scores.shape[1]
    highest = scores.argmax(axis=1)
    ordered = np.sort(scores, axis=1)
    lead = ordered[:, -1] - ordered[:, -2]
    counts = np.zeros((classes, classes))
    for label in range(classes):
        rows = np.flatnonzero(highest == label)
        clear = rows[np.argsort(lead[rows])][int(len(rows) * (1.0 - CONFIDENT)) :]
        counts[label] = one_hot[clear].sum(axis=0)
    wrong = 1.0 - counts.trace() / counts.sum()
    counts += PRIOR * classes * wrong / (classes - 1)
    counts[np.diag_indices(classes)] += PRIOR * classes * (1.0 - wrong - wrong / (classes - 1))
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def probability_right(scores: Array, one_hot: Array, confusion: Array) -> Array:
    """Return the probability that each label is right, shape (n,).

    Bayes's rule with the class probabilities ``softmax(factor scores)`` and the confusion; the
    factor makes the labels, as they are, the likeliest.
    """

    def of_class_and_label(log_factor: float) -> tuple[Array, Array]:
        probabilities = softmax(math.exp(log_factor) * scores, axis=1)
        labelled = np.sum(probabilities * (one_hot @ confusion.T), axis=1)
        right = np.sum(probabilities * one_hot, axis=1) * (one_hot @ confusion.diagonal())
        return right, np.maximum(labelled, np.finfo(float).tiny)

    best = minimize_scalar(
        lambda log_factor: -np.sum(np.log(of_class_and_label(log_factor)[1])),
        bounds=(math.log(FLATTEST), math.log(SHARPEST)), method='bounded',
        options={'xatol': 0.05},
    )  # fmt: skip
    right, labelled = of_class_and_label(best.x)
    return right / labelled


def trusted(right: Array, corruption: float) -> Mask:
    """Return which samples to learn from: at most the share ``corruption`` is dropped."""
    kept = right > RIGHT
    least = count_kept(len(kept), corruption)
    return kept if int(kept.sum()) >= least else smallest(-right, least)
