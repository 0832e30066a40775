# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled loops over a stream: one with mini-batches and KOMP, one with recursive steps."""

import math

from kernel_constrained.core.compilation import compiled
from kernel_constrained.core.factor import coordinates
from kernel_constrained.core.kernels import (
    kernel_at,
    kernel_of_pair,
    kernel_vector,
    whole_vectors,
)
from kernel_constrained.core.komp import add_atom, compress
from kernel_constrained.core.layout import (
    COUNT,
    DEFAULT,
    DIVERGED,
    DUAL,
    FULL,
    LEARNED,
    learner_of,
    LOSS,
    MEAN_DUAL,
    NO_LABEL,
    NOT_FINITE,
    ORDER,
    OVERSPENT,
    PENDING,
    settings_of,
    STATUS,
    TARGET_POWER,
    TRACE_HEADER,
    TRACE_ORDER,
)
from kernel_constrained.core.losses import HUBER, loss_value, SQUARED
from kernel_constrained.core.primal_dual import (
    decay_of,
    default_step,
    evaluate,
    published_step,
)
from kernel_constrained.core.recursive import recursive_step

# A loss beyond this is no longer a number one could go on from.
LARGEST_LOSS = 1e200


@compiled
def refusal(s, x, y):
    """Why the samples cannot be learned, or ``LEARNED`` where they can."""
    finite, known, classes = True, True, s.outputs
    for i in range(x.shape[0]):
        for c in range(x.shape[1]):
            finite &= math.isfinite(x[i, c])
        for c in range(y.shape[1]):
            finite &= math.isfinite(y[i, c])
    if s.labels > 0:
        for i in range(y.shape[0]):
            label = y[i, 0]
            if classes > 1:
                known &= 0 <= label < classes and label == math.floor(label)
            else:
                known &= label == 1.0 or label == -1.0
    if not finite:
        return NOT_FINITE
    return LEARNED if known else NO_LABEL


@compiled
def copy(source, target):
    """Copy a vector: for a few numbers a loop is faster than assigning to a slice."""
    for c in range(source.shape[0]):
        target[c] = source[c]


@compiled
def record(bounds, trace, i, loss, prediction):
    """Write what the trace says of sample ``i``, but for what the step will change."""
    first = TRACE_HEADER + bounds.shape[0]
    trace[i, LOSS] = loss
    copy(prediction, trace[i, first:])


@compiled
def record_outcome(s, state, bounds, trace, i):
    """Write order and dual variables after the step."""
    trace[i, TRACE_ORDER] = state[ORDER]
    column = MEAN_DUAL if s.mode == DEFAULT else DUAL
    for j in range(bounds.shape[0]):
        trace[i, TRACE_HEADER + j] = bounds[j, column]


@compiled
def count_sample(s, state, recent, y, loss):
    """Count a sample, its loss, and the power of its target."""
    recent[int(state[COUNT]) % recent.shape[0]] = loss
    if s.labels == 0:
        power = 0.0
        for c in range(y.shape[0]):
            power += y[c] * y[c]
        state[TARGET_POWER] += (power - state[TARGET_POWER]) / (state[COUNT] + 1.0)


@compiled
def stream(state, table, factors, x, y, functions, trace):
    """Learn from samples ``x`` (n, p), ``y`` (n, columns), one mini-batch after the other.

    Returns how many were learned. ``state[STATUS]`` says how it ended: with all of them, with
    none because of a number that is not finite or no label, or before one for which the arrays
    must grow or whose loss shows that the iterate has diverged.
    """
    s = settings_of(state)
    d, bounds, batch, recent = learner_of(
        s, state, table, factors[0], x.shape[1], y.shape[1], functions
    )
    state[STATUS] = refusal(s, x, y)
    if state[STATUS] != LEARNED:
        return 0
    size, outputs = int(s.batch), int(s.outputs)
    for i in range(x.shape[0]):
        order, b = int(state[ORDER]), int(state[PENDING])
        if order + size > factors.shape[1]:
            state[STATUS] = FULL
            return i
        k, values = batch.k[b], batch.values[b]
        kernel_vector(d.kernel_code, d.kernel_parameters, d.points, x[i], order, k, d.bits)
        evaluate(d.weights, k, order, values)
        predicting = values[functions - outputs :]  # the averages where there are, else iterates
        loss = loss_value(s.loss, s.huber_threshold, predicting, y[i])
        if not loss < LARGEST_LOSS:
            state[STATUS] = DIVERGED
            return i
        copy(x[i], batch.x[b])
        copy(y[i], batch.y[b])
        count_sample(s, state, recent, y[i], loss)
        if trace.shape[0] > 0:
            record(bounds, trace, i, loss, predicting)
        state[PENDING] = b + 1.0
        if b + 1 == size:
            learn_batch(s, state, bounds, d, batch)
        state[COUNT] += 1.0
        if trace.shape[0] > 0:
            record_outcome(s, state, bounds, trace, i)
    return x.shape[0]


@compiled
def learn_batch(s, state, bounds, d, batch):
    """Take the step of Algorithm 1, then KOMP."""
    order, eta = int(state[ORDER]), s.step_size * decay_of(s, state[COUNT])
    budget = (s.parsimony * eta * eta) ** 2
    if s.mode == DEFAULT:
        default_step(s, bounds, state, d, batch, order)
        budget *= squared_unit(s, state)
    else:
        published_step(s, bounds, state, d, batch, order)

    spent = 0.0
    for b in range(batch.x.shape[0]):
        before = order
        order, cost = add_atom(
            d, batch.x[b], batch.k[b], batch.coefficients[b], order, budget - spent
        )
        spent += cost
        if order > before:
            extend_kernel_vectors(d, batch, b, order)
    order, spent = compress(d, order, spent, budget, s.max_order)
    state[OVERSPENT] += spent > budget * (1.0 + 1e-9)
    state[ORDER] = order
    state[PENDING] = 0.0


@compiled
def squared_unit(s, state):
    """Square of what the compression budget of the default mode is measured in.

    The root mean square of the targets; for the Huber loss its threshold, since gross outliers
    must not count; for the absolute loss and labels one, since the step size has their unit.
    """
    if s.loss == SQUARED:
        return state[TARGET_POWER]
    return s.huber_threshold**2 if s.loss == HUBER else 1.0


@compiled
def extend_kernel_vectors(d, batch, b, order):
    """Complete the kernel vectors of the rest of the mini-batch by the atom just appended."""
    for later in range(b + 1, batch.x.shape[0]):
        k = batch.k[later]
        k[order - 1] = kernel_of_pair(
            d.kernel_code, d.kernel_parameters, batch.x[later], batch.x[b]
        )
        for j in range(order, whole_vectors(order)):
            k[j] = 0.0


@compiled
def recursive_stream(state, table, factors, x, y, functions, trace):
    """Learn from samples as :func:`stream` does, by recursive least squares."""
    s = settings_of(state)
    d, bounds, batch, recent = learner_of(
        s, state, table, factors[0], x.shape[1], y.shape[1], functions
    )
    state[STATUS] = refusal(s, x, y)
    if state[STATUS] != LEARNED:
        return 0
    k, values, c = batch.k[0], batch.values[0], d.coordinates
    losses, errors = batch.losses, batch.coefficients[0]
    for i in range(x.shape[0]):
        order = int(state[ORDER])
        if order == factors.shape[1]:
            state[STATUS] = FULL
            return i
        kernel_vector(d.kernel_code, d.kernel_parameters, d.points, x[i], order, k, d.bits)
        squared = coordinates(d.factor, k, order, c)
        evaluate(d.weights, c, order, values)
        loss = loss_value(s.loss, s.huber_threshold, values, y[i])
        if not loss < LARGEST_LOSS:
            state[STATUS] = DIVERGED
            return i
        count_sample(s, state, recent, y[i], loss)
        if trace.shape[0] > 0:
            record(bounds, trace, i, loss, values)
        losses[0] = loss
        order = recursive_step(
            s, state, bounds, d, factors[1], k, squared, x[i], y[i], values, losses, errors
        )
        state[ORDER] = order
        state[COUNT] += 1.0
        if trace.shape[0] > 0:
            record_outcome(s, state, bounds, trace, i)
    return x.shape[0]


@compiled
def predict(state, table, factors, x, columns, functions, out, support):
    """Fill ``out`` (n, q) with the last q functions at ``x`` (n, p), as the stream does it.

    ``support``, shape (n,) or (0,), receives the share of ``|k(x, .)|^2`` within the span.
    """
    s = settings_of(state)
    d, _, batch, _ = learner_of(s, state, table, factors[0], x.shape[1], columns, functions)
    order, values, k, c = int(state[ORDER]), batch.coefficients[0], d.projection, d.cost
    for i in range(x.shape[0]):
        kernel_vector(d.kernel_code, d.kernel_parameters, d.points, x[i], order, k, d.bits)
        squared = 0.0
        if factors.shape[0] > 1 or support.shape[0] > 0:
            squared = coordinates(d.factor, k, order, c)
        evaluate(d.weights, c if factors.shape[0] > 1 else k, order, values)
        for column in range(out.shape[1]):
            out[i, column] = values[functions - out.shape[1] + column]
        if support.shape[0] > 0:
            norm = kernel_at(d.kernel_code, d.kernel_parameters, x[i])
            support[i] = min(squared / norm, 1.0) if norm > 0.0 else 1.0
