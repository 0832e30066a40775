# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Projected stochastic primal-dual learning in an RKHS, compiled (Koppel et al., Algorithm 1).

Three updates share the stream: the default one, which reaches the constrained optimum, the
paper's, and the penalty method. Why the default differs from the paper is in ``doc/notes.md``.
"""

import math
from typing import NamedTuple

import numpy as np

from kernel_constrained.core.compilation import compiled
from kernel_constrained.core.kernels import kernel_at, kernel_vector, whole_vectors
from kernel_constrained.core.komp import add_atom, compress, Dictionary
from kernel_constrained.core.losses import squared_loss, squared_loss_shrinkage

DEFAULT, PAPER, PENALTY = 0.0, 1.0, 2.0

# How a call of the stream ended.
LEARNED, FULL, DIVERGED, NOT_FINITE = range(4)

# Entries of the state array.
DUAL, THRESHOLD, COUNT, ORDER, OVERSPENT = range(5)

# Entries of a trace row before the prediction.
LOSS, TRACE_ORDER, TRACE_DUAL, TRACE_HEADER = range(4)


class Settings(NamedTuple):
    """What the compiled step needs of the configuration, all floats; the kernel's come first."""

    kernel_0: float
    kernel_1: float
    kernel_code: float
    mode: float
    step_size: float
    decay_after: float
    parsimony: float
    regularization: float
    constrained: float
    significance: float
    tolerance: float
    collapsed_offset: float
    dual_step_size: float
    dual_regularization: float
    dual_cap: float
    quantile_step_size: float
    averaging_window: float
    penalty: float
    penalty_doubling: float
    max_order: float


@compiled
def settings_of(a):
    """Read settings from an array: one argument is cheaper to pass from Python than twenty."""
    return Settings(
        a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
        a[14], a[15], a[16], a[17], a[18], a[19],
    )  # fmt: skip


@compiled
def dictionary_of(settings, points, weights, factor, scratch):
    """Put the arrays of a learner together; ``scratch`` has five rows."""
    return Dictionary(
        int(settings[2]), settings[:2], points, weights, factor,
        scratch[0], scratch[1], scratch[2], scratch[3], scratch[4].view(np.int64),
    )  # fmt: skip


@compiled
def all_finite(table):
    """Whether every number of a matrix is finite."""
    finite = True
    for i in range(table.shape[0]):
        for c in range(table.shape[1]):
            finite &= math.isfinite(table[i, c])
    return finite


@compiled
def evaluate(d, order, values):
    """Fill ``values`` with every function at the sample whose kernel vector is in ``d.k``."""
    for f in range(d.weights.shape[0]):
        row = d.weights[f]
        total = 0.0
        for j in range(whole_vectors(order)):
            total += row[j] * d.k[j]
        values[f] = total


@compiled
def scale(d, first, last, order, factor):
    """Multiply the weights of functions ``first`` to ``last - 1`` by ``factor``."""
    for f in range(first, last):
        row = d.weights[f]
        for j in range(whole_vectors(order)):
            row[j] *= factor


@compiled
def average(d, outputs, order, weight, coefficients):
    """Move the averages towards the iterates, stored atoms and the newcomer alike."""
    for c in range(outputs):
        iterate, mean = d.weights[c], d.weights[outputs + c]
        for j in range(whole_vectors(order)):
            mean[j] += weight * (iterate[j] - mean[j])
        coefficients[outputs + c] = weight * coefficients[c]


@compiled
def default_step(d, s, state, order, eta, norm, values, y, loss, coefficients):
    """Implicit primal step; dual and threshold steps fed by the average, of loss ``loss``."""
    outputs = y.shape[0]
    dual, threshold = state[DUAL], state[THRESHOLD]
    loss_of_iterate = squared_loss(values[:outputs], y)

    # f <- argmin |f - f_t|^2 / 2 eta + loss(f) + mu (loss(f) - z)_+, then shrink by eta lambda
    shrinkage = squared_loss_shrinkage(loss_of_iterate, eta * norm, dual, threshold)
    for c in range(outputs):
        coefficients[c] = (shrinkage - 1.0) * (values[c] - y[c]) / norm
    scale(d, 0, outputs, order, 1.0 - eta * s.regularization)

    if s.constrained > 0:
        # h(f, z) = (1 - alpha)(z - gamma) + (loss - z)_+, in units of gamma
        tail = 1.0 - s.significance
        excess = max(loss - threshold, 0.0)
        violation = tail * (threshold - s.tolerance) + excess
        # mu <- [(1 - eta_mu^2 delta) mu + eta_mu h]_+
        decay = eta / s.step_size
        ascent = s.dual_step_size * decay
        dual *= 1.0 - ascent * ascent * s.dual_regularization
        dual += ascent * violation / s.tolerance
        state[DUAL] = min(max(dual, 0.0), s.dual_cap)
        # z <- z - eta_z ((1 - alpha) - 1[loss > z])
        slope = tail - (1.0 if loss > threshold else 0.0)
        descent = s.quantile_step_size * decay * s.tolerance
        state[THRESHOLD] = max(threshold - descent * slope, 0.0)

    average(d, outputs, order, averaging_weight(s, state[COUNT]), coefficients)


@compiled
def averaging_weight(s, count):
    """Weight 2 / (t + 2) of the newest iterate, no less than one over the window."""
    return max(2.0 / (count + 2.0), 1.0 / s.averaging_window)


@compiled
def paper_step(d, s, state, order, eta, values, y, loss, coefficients):
    """Explicit step of Algorithm 1 with the constraint of Eq. (23)."""
    multiplier = state[DUAL] if s.constrained > 0 else 0.0
    # f <- (1 - eta lambda) f - eta (1 + mu) loss'(f(x), y) k(x, .)
    for c in range(y.shape[0]):
        coefficients[c] = -2.0 * eta * (1.0 + multiplier) * (values[c] - y[c])
    scale(d, 0, y.shape[0], order, 1.0 - eta * s.regularization)
    # mu <- [(1 - eta^2 delta) mu + eta g(f(x), y)]_+, where min over z leaves g = loss - gamma
    if s.constrained > 0:
        g = loss + s.collapsed_offset - s.tolerance
        dual = (1.0 - eta * eta * s.dual_regularization) * multiplier + eta * g
        state[DUAL] = min(max(dual, 0.0), s.dual_cap)


@compiled
def penalty_step(d, s, state, order, eta, norm, values, y, loss, coefficients):
    """Step of the penalty method: Eq. (23) squared, with a coefficient that keeps doubling.

    The gradient of ``rho/2 [g]_+^2`` is ``rho [g]_+ g'``: the multiplier of the primal step. The
    step is implicit in the loss, since the coefficient outgrows any explicit one.
    """
    multiplier = 0.0
    if s.constrained > 0:
        doublings = min(math.floor(state[COUNT] / s.penalty_doubling), 900.0)
        g = loss + s.collapsed_offset - s.tolerance
        multiplier = min(s.penalty * 2.0**doublings * max(g, 0.0), s.dual_cap)
        state[DUAL] = multiplier
    shrinkage = 1.0 / (1.0 + 2.0 * eta * norm * (1.0 + multiplier))
    for c in range(y.shape[0]):
        coefficients[c] = (shrinkage - 1.0) * (values[c] - y[c]) / norm
    scale(d, 0, y.shape[0], order, 1.0 - eta * s.regularization)


@compiled
def stream(settings, state, points, weights, factor, scratch, recent, x, y, trace):
    """Learn from samples ``x`` (n, p), ``y`` (n, q), one after the other.

    Returns how many were learned, and how it ended: all of them, or none because of a number
    that is not finite, or those before one for which the arrays must grow or whose loss shows
    that the iterate has diverged.
    """
    if not (all_finite(x) and all_finite(y)):
        return 0, NOT_FINITE
    s = settings_of(settings)
    d = dictionary_of(settings, points, weights, factor, scratch)
    outputs = y.shape[1]
    f, coefficients = np.empty(weights.shape[0]), np.empty(weights.shape[0])
    predicting = f[f.shape[0] - outputs :]  # the averages where there are, else the iterates
    order = int(state[ORDER])
    for i in range(x.shape[0]):
        if order == factor.shape[0]:
            return i, FULL
        kernel_vector(d.kernel_code, d.kernel_parameters, points, x[i], order, d.k, d.bits)
        evaluate(d, order, f)
        loss = squared_loss(predicting, y[i])
        if not loss < 1e200:
            return i, DIVERGED
        if trace.shape[0] > 0:
            trace[i, TRACE_HEADER:] = predicting
        eta = s.step_size / math.sqrt(1.0 + state[COUNT] / s.decay_after)
        norm = kernel_at(d.kernel_code, d.kernel_parameters, x[i])

        if s.mode == DEFAULT:
            default_step(d, s, state, order, eta, norm, f, y[i], loss, coefficients)
        elif s.mode == PAPER:
            paper_step(d, s, state, order, eta, f, y[i], loss, coefficients)
        else:
            penalty_step(d, s, state, order, eta, norm, f, y[i], loss, coefficients)

        budget = (s.parsimony * eta * eta) ** 2
        order, spent = add_atom(d, x[i], coefficients, order, budget)
        order, spent = compress(d, order, spent, budget, s.max_order)
        state[OVERSPENT] += spent > budget * (1.0 + 1e-9)

        recent[int(state[COUNT]) % recent.shape[0]] = loss
        state[COUNT] += 1.0
        state[ORDER] = order
        if trace.shape[0] > 0:
            trace[i, LOSS], trace[i, TRACE_ORDER], trace[i, TRACE_DUAL] = loss, order, state[DUAL]
    return x.shape[0], LEARNED


@compiled
def predict(settings, points, weights, factor, scratch, order, x, out):
    """Fill ``out`` (n, q) with the last q functions at ``x`` (n, p), as the stream does it."""
    d = dictionary_of(settings, points, weights, factor, scratch)
    values = np.empty(weights.shape[0])
    for i in range(x.shape[0]):
        kernel_vector(d.kernel_code, d.kernel_parameters, points, x[i], order, d.k, d.bits)
        evaluate(d, order, values)
        out[i] = values[values.shape[0] - out.shape[1] :]
