# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled loop over a stream: ridge regression on the samples of a window that are kept.

Each step takes in the newest sample, gives back the oldest, and lets one more change sides: the
alternating minimisation of Subquantile Minimization, one sample at a time.

A residual is held against its own standard deviation, by the variance that ``P`` gives to a
function learned without the sample: where nothing was learned, a large error is no outlier.
"""

import math

from kernel_constrained.core.compilation import compiled
from kernel_constrained.core.factor import coordinates, NUGGET
from kernel_constrained.core.kernels import kernel_at, kernel_vector, whole_vectors
from kernel_constrained.core.primal_dual import evaluate
from kernel_constrained.core.recursive import least_worth, use_atoms, worth
from kernel_constrained.core.stream import LARGEST_LOSS
from kernel_constrained.core.subquantile.window_layout import (
    CORRUPTION,
    COUNT,
    DIVERGED,
    FULL,
    KEPT,
    LEARNED,
    LIMIT,
    LOOK,
    LOSS_LIMIT,
    NEWEST_LOSS,
    NEWEST_SCORE,
    NEWEST_VARIANCE,
    NEXT_LOOK,
    NEXT_START,
    NOT_FINITE,
    ORDER,
    OVERSPENT,
    REJECTED,
    RIDGE,
    settings_of,
    STATUS,
    TRACE_HEADER,
    TRACE_KEPT,
    TRACE_LIMIT,
    TRACE_LOSS,
    TRACE_ORDER,
    TURN,
    UNIT,
    window_of,
)
from kernel_constrained.core.subquantile.window_updates import (
    admit,
    change,
    current_gain,
    forget_atom,
    update_and_multiply,
    update_and_multiply_two,
)

# Samples of the window whose side is looked at in a step.
LOOKED_AT = 4
# Steps of the logarithm of a local scale, those of what is dropped among them; and its bounds.
SCALE_STEP, OF_DROPPED = 0.1, 0.5
LEAST_SCALE, LARGEST_SCALE = 0.2, 5.0
# A sample is given back only if this much of it is left over: else P would lose all precision.
LEAST_LEFT = 1e-7


@compiled
def all_finite(rows):
    """Whether every number of a table is finite."""
    finite = True
    for i in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            finite &= math.isfinite(rows[i, c])
    return finite


@compiled
def window_stream(state, table, factors, ring, coordinates_, x, y, trace, done):
    """Learn all but the first ``done`` of samples ``x`` (n, p), ``y`` (n, q), in their order.

    Returns how many are done then. ``state[STATUS]`` says how it ended: with all of them, with
    none because of a number that is not finite, before one for which the arrays must grow or
    whose loss is beyond all numbers, or after one with which it is time to look at the window as
    a whole.
    """
    s = settings_of(state)
    w = window_of(s, state, table, factors, ring, coordinates_, x.shape[1], y.shape[1])
    d, values = w.d, w.values
    state[STATUS] = LEARNED
    if done == 0 and not (all_finite(x) and all_finite(y)):
        state[STATUS] = NOT_FINITE
        return 0
    for i in range(done, x.shape[0]):
        order = int(state[ORDER])
        if order == factors.shape[1]:
            state[STATUS] = FULL
            return i
        kernel_vector(d.kernel_code, d.kernel_parameters, d.points, x[i], order, w.k, d.bits)
        squared = coordinates(d.factor, w.k, order, d.coordinates)
        evaluate(d.weights, d.coordinates, order, values)
        loss = 0.0
        for f in range(values.shape[0]):
            loss += (y[i, f] - values[f]) ** 2
        if not loss < LARGEST_LOSS:
            state[STATUS] = DIVERGED
            return i
        if trace.shape[0] > 0:
            for f in range(values.shape[0]):
                trace[i, TRACE_HEADER + f] = values[f]
        step(s, state, w, x[i], y[i], squared, loss)
        if trace.shape[0] > 0:
            trace[i, TRACE_LOSS], trace[i, TRACE_LIMIT] = loss, state[LOSS_LIMIT]
            trace[i, TRACE_KEPT] = loss <= state[LOSS_LIMIT]
            trace[i, TRACE_ORDER] = state[ORDER]
        if state[COUNT] >= state[NEXT_LOOK]:
            state[STATUS] = LOOK
            return i + 1
    return x.shape[0]


@compiled
def step(s, state, w, x, y, squared, loss):
    """Take in one sample, of which coordinates and values are there already."""
    d, samples = w.d, w.samples
    order, place = int(state[ORDER]), int(state[COUNT]) % int(s.window)
    scale = local_scale(w.scales, w.k, order)
    norm = kernel_at(d.kernel_code, d.kernel_parameters, x) * (1.0 + NUGGET)
    gap = max(norm - squared, 0.0)
    needed = s.novelty * norm
    if order >= s.max_order:
        needed = max(needed, worth(d, least_worth(d, order)))
    use_atoms(d, w.k, order, 1.0 - 1.0 / s.window)
    if gap > needed:
        admit(state, w, x, scale, gap, order)
        order, gap = order + 1, 0.0
        state[ORDER] = order

    suspect = find_suspect(s, state, w, order, place)
    if suspect >= 0 or w.signs[2] != 0.0:
        other = samples.c[max(suspect, 0)]
        update_and_multiply(w, d.coordinates, samples.c[place], other, order)
    else:
        update_and_multiply_two(w, d.coordinates, samples.c[place], order)
    keep = take_in(state, w, y, loss, scale, gap, order)
    if samples.kept[place] > 0.0:
        variance = current_gain(w, 1, samples.c[place], order)
        give_back(state, w, place, 1, variance, order)
    put(state, w, x, y, place, scale, gap, keep, order)
    if suspect >= 0:
        change_side(state, w, suspect, order)
    state[COUNT] += 1.0
    if state[UNIT] > 0.0:
        track_scale(state, w, keep, samples.score[place], scale, order)
    if order > s.max_order:
        forget_atom(w, order)
        state[ORDER] = order - 1.0
        state[OVERSPENT] += 1.0


# -- samples come, leave and change sides -------------------------------------------------------


@compiled
def find_suspect(s, state, w, order, place):
    """Look at the next few samples; return one that seems on the wrong side, or -1.

    Its leave-one-out variance is taken as it was when it was last computed.
    """
    count, turn = int(min(state[COUNT], s.window)), int(state[TURN])
    for _ in range(min(LOOKED_AT, count)):
        turn = turn + 1 if turn + 1 < count else 0
        score = score_of(state, w, turn, squared_residual(w, turn, order))
        w.samples.score[turn] = score
        if turn != place and fits(state, w, turn, score) != (w.samples.kept[turn] > 0.0):
            state[TURN] = turn
            return turn
    state[TURN] = turn
    return -1


@compiled
def squared_residual(w, i, order):
    """Find the residuals of sample ``i`` of the window; return the sum of their squares."""
    c, total = w.samples.c[i], 0.0
    for f in range(w.d.weights.shape[0]):
        row, value = w.d.weights[f], 0.0
        for j in range(whole_vectors(order)):
            value += row[j] * c[j]
        residual = w.samples.y[f, i] - value
        w.samples.residuals[f, i] = residual
        total += residual * residual
    return total


@compiled
def score_of(state, w, i, squared):
    """Squared leave-one-out residual of sample ``i``, over its variance when that of noise is 1.

    The leave-one-out residual of what is kept is ``1 + variance`` times the residual.
    """
    known = 1.0 + w.samples.variance[i]
    if w.samples.kept[i] > 0.0:
        squared *= known * known
    return squared / (known + w.samples.gap[i] / state[RIDGE])


@compiled
def fits(state, w, i, score):
    """Whether a sample of the window is within the limit."""
    return math.sqrt(score) <= state[LIMIT] * w.samples.scale[i]


@compiled
def take_in(state, w, y, loss, scale, gap, order):
    """Learn the newest sample if it is no outlier; return whether it was."""
    c = w.d.coordinates
    variance = current_gain(w, 0, c, order)
    known = 1.0 + variance + gap / state[RIDGE]
    state[LOSS_LIMIT] = known * (state[LIMIT] * scale) ** 2
    keep = loss <= state[LOSS_LIMIT]
    if keep:
        change(w, 0, 1.0, variance, c, y, order)
    state[KEPT] += keep
    state[REJECTED] += not keep
    state[NEWEST_LOSS], state[NEWEST_SCORE] = loss, loss / known
    state[NEWEST_VARIANCE] = variance
    return keep


@compiled
def give_back(state, w, i, u, variance, order):
    """Give back sample ``i``, whose gain is ``u``."""
    if 1.0 - variance > LEAST_LEFT:
        change(w, u, -1.0, variance, w.samples.c[i], w.samples.y[:, i], order)
        w.samples.variance[i] = variance / (1.0 - variance)
    else:
        state[NEXT_LOOK] = state[NEXT_START] = 0.0
    w.samples.kept[i] = 0.0
    state[KEPT] -= 1.0


@compiled
def put(state, w, x, y, i, scale, gap, keep, order):
    """Put the newest sample into the window, in place of the one that has left."""
    samples, c = w.samples, w.samples.c[i]
    for j in range(whole_vectors(order)):
        c[j] = w.d.coordinates[j]
    for j in range(whole_vectors(order), c.shape[0]):
        c[j] = 0.0
    for j in range(x.shape[0]):
        samples.x[j, i] = x[j]
    for f in range(y.shape[0]):
        samples.y[f, i] = y[f]
    samples.score[i], samples.variance[i] = state[NEWEST_SCORE], state[NEWEST_VARIANCE]
    samples.gap[i], samples.scale[i], samples.kept[i] = gap, scale, 1.0 if keep else 0.0


@compiled
def change_side(state, w, i, order):
    """Look at a suspect with its variance as it is; drop or re-admit it if that holds."""
    samples = w.samples
    c, kept = samples.c[i], samples.kept[i] > 0.0
    variance = current_gain(w, 2, c, order)
    samples.variance[i] = variance / max(1.0 - variance, LEAST_LEFT) if kept else variance
    score = score_of(state, w, i, squared_residual(w, i, order))
    samples.score[i] = score
    if fits(state, w, i, score) == kept:
        return
    if kept:
        give_back(state, w, i, 2, variance, order)
    else:
        change(w, 2, 1.0, variance, c, samples.y[:, i], order)
        samples.kept[i] = 1.0
        state[KEPT] += 1.0


# -- local scales -------------------------------------------------------------------------------


@compiled
def local_scale(scales, k, order):
    """Mean of the scales at the atoms near a sample, in units of that of the window."""
    total = weight = 0.0
    for j in range(whole_vectors(order)):
        squared = k[j] * k[j]
        weight += squared
        total += squared * scales[j]
    return total / weight if weight > 0.0 else 1.0


@compiled
def track_scale(state, w, keep, score, scale, order):
    """Move the scales at the atoms near the newest sample towards the median of what is kept.

    What is dropped counts less, or a burst of outliers would soon pass for noise; but it does
    count, or noise that is larger somewhere would never be learned. Its usual share is allowed
    for.
    """
    share = state[CORRUPTION]
    above = not keep or math.sqrt(score) > state[UNIT] * scale
    move = 0.5 if above else -0.5
    move = move - 0.5 * OF_DROPPED * share / (1.0 - share) if keep else OF_DROPPED * move
    move *= SCALE_STEP
    nearest = 0.0
    for j in range(order):
        nearest = max(nearest, w.k[j] * w.k[j])
    if nearest > 0.0:
        for j in range(order):
            moved = w.scales[j] * (1.0 + move * w.k[j] * w.k[j] / nearest)
            w.scales[j] = min(max(moved, LEAST_SCALE), LARGEST_SCALE)


# -- prediction ---------------------------------------------------------------------------------


@compiled
def predict(state, table, factors, ring, coordinates_, columns, x, out, support):
    """Fill ``out`` (n, q) with the functions at ``x`` (n, p), and ``support`` (n,) or (0,).

    Support is the share of ``|k(x, .)|^2`` within the span of the dictionary.
    """
    s = settings_of(state)
    w = window_of(s, state, table, factors, ring, coordinates_, x.shape[1], columns)
    d, order = w.d, int(state[ORDER])
    for i in range(x.shape[0]):
        kernel_vector(d.kernel_code, d.kernel_parameters, d.points, x[i], order, w.k, d.bits)
        squared = coordinates(d.factor, w.k, order, d.coordinates)
        evaluate(d.weights, d.coordinates, order, out[i])
        if support.shape[0] > 0:
            norm = kernel_at(d.kernel_code, d.kernel_parameters, x[i])
            support[i] = min(squared / norm, 1.0) if norm > 0.0 else 1.0
