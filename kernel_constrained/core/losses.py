# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Losses: value, derivative, implicit step, and how far an explicit step may go.

A prediction ``f`` has shape (q,). A target ``y`` of a regression has shape (q,), a label of a
binary classification is -1 or 1, one of several classes its number, both of shape (1,). A new
loss is one row of :data:`LOSSES` and one branch in each function below.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled

Array = npt.NDArray[np.float64]

SQUARED, HUBER, ABSOLUTE, LOGISTIC, HINGE, MULTICLASS_HINGE, SOFTMAX = range(7)


class Loss(NamedTuple):
    """What is known of a loss outside the compiled code."""

    code: int
    labels: bool  # targets are labels, not numbers
    several: bool  # one function for each class

    def not_labels(self, name: str, targets: Array, classes: int) -> str:
        """Name a target that is no label of this loss; empty where all are."""
        known = np.arange(classes) if self.several else np.array([-1.0, 1.0])
        wrong = targets[~np.isin(targets, known)]
        meant = f'0 to {classes - 1}' if self.several else '-1 and 1'
        return f'labels of loss {name} are {meant} (got {wrong[0]:g})' if len(wrong) else ''


LOSSES = {
    'squared': Loss(SQUARED, False, False),
    'huber': Loss(HUBER, False, False),
    'absolute': Loss(ABSOLUTE, False, False),
    'logistic': Loss(LOGISTIC, True, False),
    'hinge': Loss(HINGE, True, False),
    'multiclass_hinge': Loss(MULTICLASS_HINGE, True, True),
    'softmax': Loss(SOFTMAX, True, True),
}


@compiled
def squared_distance(f, y):
    """Return ``|f - y|^2``."""
    total = 0.0
    for c in range(y.shape[0]):
        residual = f[c] - y[c]
        total += residual * residual
    return total


@compiled
def runner_up(f, label):
    """Return the class other than ``label`` with the highest score."""
    best = 1 if label == 0 else 0
    for c in range(f.shape[0]):
        if c != label and f[c] > f[best]:
            best = c
    return best


@compiled
def log_sum_exp(f):
    """Return ``log sum exp(f)``."""
    highest = f[0]
    for c in range(1, f.shape[0]):
        highest = max(highest, f[c])
    total = 0.0
    for c in range(f.shape[0]):
        total += math.exp(f[c] - highest)
    return highest + math.log(total)


@compiled
def loss_value(code, threshold, f, y):
    """Loss of a prediction.

    squared ``|r|^2`` with ``r = f - y``; Huber: the same up to ``|r| = threshold``, its tangent
    beyond; absolute ``|r|``; logistic ``log(1 + exp(-y f))``; hinge ``(1 - y f)_+``; multi-class
    hinge ``(1 + max_{c != y} f_c - f_y)_+`` (Koppel et al., Eq. 72); softmax ``log sum exp(f) -
    f_y``.
    """
    if code == SQUARED:
        return squared_distance(f, y)
    if code == HUBER:
        squared = squared_distance(f, y)
        if squared <= threshold * threshold:
            return squared
        return threshold * (2.0 * math.sqrt(squared) - threshold)
    if code == ABSOLUTE:
        return math.sqrt(squared_distance(f, y))
    if code == LOGISTIC:
        margin = y[0] * f[0]
        return math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0)
    if code == HINGE:
        return max(1.0 - y[0] * f[0], 0.0)
    label = int(y[0])
    if code == MULTICLASS_HINGE:
        return max(1.0 + f[runner_up(f, label)] - f[label], 0.0)
    return log_sum_exp(f) - f[label]


@compiled
def loss_derivative(code, threshold, f, y, out):
    """Fill ``out`` (q,) with a subgradient of the loss; return the longest explicit step.

    An explicit step ``f - t out`` of at most that length is stable whatever the step size: it
    ends no further than the smallest loss along its way (squared 1/2, absolute ``|r|``, hinge
    ``1 - y f``, and so on), or is no longer than one over the largest curvature (logistic 4,
    softmax 2).
    """
    if code <= ABSOLUTE:
        distance = math.sqrt(squared_distance(f, y))
        scale, longest = 2.0, 0.5
        if code == HUBER and distance > threshold:
            scale, longest = 2.0 * threshold / distance, 0.5 * distance / threshold
        if code == ABSOLUTE:
            scale, longest = (1.0 / distance if distance > 0.0 else 0.0), distance
        for c in range(f.shape[0]):
            out[c] = scale * (f[c] - y[c])
        return longest
    if code == LOGISTIC:
        out[0] = -y[0] / (1.0 + math.exp(min(y[0] * f[0], 700.0)))
        return 4.0
    if code == HINGE:
        gap = 1.0 - y[0] * f[0]
        out[0] = -y[0] if gap > 0.0 else 0.0
        return max(gap, 0.0)
    label = int(y[0])
    if code == MULTICLASS_HINGE:
        other = runner_up(f, label)
        gap = 1.0 + f[other] - f[label]
        for c in range(f.shape[0]):
            out[c] = 0.0
        if gap > 0.0:
            out[label], out[other] = -1.0, 1.0
        return 0.5 * max(gap, 0.0)
    total = log_sum_exp(f)
    for c in range(f.shape[0]):
        out[c] = math.exp(f[c] - total)
    out[label] -= 1.0
    return 2.0


@compiled
def implicit_step(code, threshold, f, y, step, out):
    """Fill ``out`` (q,) with ``argmin_u |u - f|^2 / 2 step + loss(u)``, which is always stable.

    The logistic and softmax losses have no closed form: theirs is the explicit step, no longer
    than :func:`loss_derivative` allows.
    """
    if code == MULTICLASS_HINGE:
        multiclass_hinge_step(f, int(y[0]), step, out)
    elif code == HINGE:
        out[0] = f[0] + y[0] * min(max(1.0 - y[0] * f[0], 0.0), step)
    elif code <= ABSOLUTE:
        shrinkage = 1.0 / (1.0 + 2.0 * step)
        if code != SQUARED:
            distance = math.sqrt(squared_distance(f, y))
            if code == ABSOLUTE:
                shrinkage = max(1.0 - step / distance, 0.0) if distance > 0.0 else 0.0
            elif distance * shrinkage > threshold:
                shrinkage = 1.0 - 2.0 * step * threshold / distance
        for c in range(f.shape[0]):
            out[c] = y[c] + shrinkage * (f[c] - y[c])
    else:
        length = min(step, loss_derivative(code, threshold, f, y, out))
        for c in range(f.shape[0]):
            out[c] = f[c] - length * out[c]


@compiled
def multiclass_hinge_step(f, label, step, out):
    """Raise the label's score and lower the highest others to one level, by the same amount.

    The amount ``sum_{c != y} (f_c - level)_+`` is ``step``, or less where that brings the loss
    to zero. The level is found from below: classes it has passed are left out of the sum.
    """
    for c in range(f.shape[0]):
        out[c] = f[c]
    if 1.0 + f[runner_up(f, label)] - f[label] <= 0.0:
        return
    level = -math.inf
    while True:
        total, count = 0.0, 0
        for c in range(f.shape[0]):
            if c != label and f[c] > level:
                total += f[c]
                count += 1
        if count == 0:
            break
        reached = max((total - step) / count, (total - 1.0 + f[label]) / (count + 1))
        if reached <= level:
            break
        level = reached
    for c in range(f.shape[0]):
        if c != label and f[c] > level:
            out[label] += f[c] - level
            out[c] = level
