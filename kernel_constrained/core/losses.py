# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Losses: the value and the implicit step that the primal update takes."""

import math

from kernel_constrained.core.compilation import compiled


@compiled
def squared_loss(prediction, target):
    """Squared Euclidean distance ``|prediction - target|^2``, both shape (q,)."""
    total = 0.0
    for c in range(target.shape[0]):
        residual = prediction[c] - target[c]
        total += residual * residual
    return total


@compiled
def squared_loss_shrinkage(loss, step, multiplier, threshold):
    """Factor by which an implicit step shrinks the residual.

    Solves ``min_f |f - f_t|^2 / 2 step + loss(f) + multiplier (loss(f) - threshold)_+`` for the
    squared loss: below the kink the residual shrinks by ``1 / (1 + 2 step)``, above it by
    ``1 / (1 + 2 step (1 + multiplier))``, and between the two it lands on the kink. ``step`` is
    the step size times the kernel of the sample with itself.
    """
    above = 1.0 / (1.0 + 2.0 * step * (1.0 + multiplier))
    if above * above * loss > threshold:
        return above
    below = 1.0 / (1.0 + 2.0 * step)
    if below * below * loss <= threshold:
        return below
    return math.sqrt(threshold / loss)
