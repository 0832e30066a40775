# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled loop over a stream: ridge regression on the samples of a window that are kept.

Each step takes in the newest sample, gives back the oldest, and lets one more change sides: the
alternating minimisation of Subquantile Minimization, one sample at a time. All three are rank-one
updates of the covariance ``P`` of the weights in orthonormal coordinates. ``P`` is read and
written once a step: the products with all three samples are formed while the updates of the step
before are written, and brought up to those of the same step one by one.

A residual is held against its own standard deviation, by the variance that ``P`` gives to a
function learned without the sample: where nothing was learned, a large error is no outlier.
"""

import math

from kernel_constrained.core.compilation import compiled
from kernel_constrained.core.factor import append_atom, coordinates, NUGGET, project, remove_atom
from kernel_constrained.core.kernels import kernel_at, kernel_vector, whole_vectors
from kernel_constrained.core.komp import append_point, remove_point
from kernel_constrained.core.primal_dual import evaluate
from kernel_constrained.core.recursive import (
    condition_on_last,
    least_worth,
    rotate_rows,
    transpose,
    use_atoms,
    worth,
)
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
def window_stream(state, table, factors, ring, coordinates_, x, y, trace):
    """Learn from samples ``x`` (n, p), ``y`` (n, q) in their order; return how many.

    ``state[STATUS]`` says how it ended: with all of them, with none because of a number that is
    not finite, before one for which the arrays must grow or whose loss is beyond all numbers, or
    after one with which it is time to look at the window as a whole.
    """
    s = settings_of(state)
    w = window_of(s, state, table, factors, ring, coordinates_, x.shape[1], y.shape[1])
    d, values = w.d, w.values
    state[STATUS] = LEARNED
    if not (all_finite(x) and all_finite(y)):
        state[STATUS] = NOT_FINITE
        return 0
    for i in range(x.shape[0]):
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
def update_and_multiply_two(w, c0, c1, order):
    """Do what :func:`update_and_multiply` does where no sample changes or has changed sides."""
    h0, h1 = w.late[0], w.late[1]
    s0, s1 = w.signs[0], w.signs[1]
    count = whole_vectors(order)
    for i in range(0, count, 4):
        row0, row1, row2, row3 = (
            w.covariance[i], w.covariance[i + 1], w.covariance[i + 2], w.covariance[i + 3],
        )  # fmt: skip
        a0, a1, a2, a3 = s0 * h0[i], s0 * h0[i + 1], s0 * h0[i + 2], s0 * h0[i + 3]
        b0, b1, b2, b3 = s1 * h1[i], s1 * h1[i + 1], s1 * h1[i + 2], s1 * h1[i + 3]
        t0 = t1 = t2 = t3 = u0 = u1 = u2 = u3 = 0.0
        for j in range(count):
            hj, gj, cj, ej = h0[j], h1[j], c0[j], c1[j]
            p0, p1 = row0[j] - a0 * hj - b0 * gj, row1[j] - a1 * hj - b1 * gj
            p2, p3 = row2[j] - a2 * hj - b2 * gj, row3[j] - a3 * hj - b3 * gj
            row0[j], row1[j], row2[j], row3[j] = p0, p1, p2, p3
            t0 += p0 * cj
            t1 += p1 * cj
            t2 += p2 * cj
            t3 += p3 * cj
            u0 += p0 * ej
            u1 += p1 * ej
            u2 += p2 * ej
            u3 += p3 * ej
        w.gains[0, i], w.gains[0, i + 1], w.gains[0, i + 2], w.gains[0, i + 3] = t0, t1, t2, t3
        w.gains[1, i], w.gains[1, i + 1], w.gains[1, i + 2], w.gains[1, i + 3] = u0, u1, u2, u3
    w.signs[0] = w.signs[1] = 0.0


@compiled
def update_and_multiply(w, c0, c1, c2, order):
    """Write the late updates into ``P``; fill the gains with ``P c`` of three samples.

    Two rows at a time. ``P`` stays symmetric to the last bit.
    """
    h0, h1, h2 = w.late[0], w.late[1], w.late[2]
    s0, s1, s2 = w.signs[0], w.signs[1], w.signs[2]
    count = whole_vectors(order)
    for i in range(0, count, 2):
        row, next_row = w.covariance[i], w.covariance[i + 1]
        a0, a1, a2 = s0 * h0[i], s1 * h1[i], s2 * h2[i]
        b0, b1, b2 = s0 * h0[i + 1], s1 * h1[i + 1], s2 * h2[i + 1]
        t0 = t1 = t2 = u0 = u1 = u2 = 0.0
        for j in range(count):
            p = row[j] - a0 * h0[j] - a1 * h1[j] - a2 * h2[j]
            q = next_row[j] - b0 * h0[j] - b1 * h1[j] - b2 * h2[j]
            row[j], next_row[j] = p, q
            t0 += p * c0[j]
            t1 += p * c1[j]
            t2 += p * c2[j]
            u0 += q * c0[j]
            u1 += q * c1[j]
            u2 += q * c2[j]
        w.gains[0, i], w.gains[1, i], w.gains[2, i] = t0, t1, t2
        w.gains[0, i + 1], w.gains[1, i + 1], w.gains[2, i + 1] = u0, u1, u2
    w.signs[0] = w.signs[1] = w.signs[2] = 0.0


@compiled
def current_gain(w, u, c, order):
    """Bring gain ``u``, that of ``c``, up to the updates of this step; return ``c . P c``."""
    gain, count = w.gains[u], whole_vectors(order)
    for earlier in range(u):
        h, total = w.late[earlier], 0.0
        for j in range(count):
            total += h[j] * c[j]
        total *= w.signs[earlier]
        for j in range(count):
            gain[j] -= total * h[j]
    variance = 0.0
    for j in range(count):
        variance += gain[j] * c[j]
    return variance


@compiled
def change(w, u, sign, variance, c, y, order):
    """Take in (``sign`` 1) or give back (-1) the observation ``v . c = y``; gain ``u`` is its."""
    gain, h, count = w.gains[u], w.late[u], whole_vectors(order)
    left = 1.0 + sign * variance
    for f in range(y.shape[0]):
        row, value = w.d.weights[f], 0.0
        for j in range(count):
            value += row[j] * c[j]
        move = sign * (y[f] - value) / left
        for j in range(count):
            row[j] += move * gain[j]
    root = 1.0 / math.sqrt(left)
    for j in range(count):
        h[j] = root * gain[j]
    w.signs[u] = sign


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


# -- the dictionary -----------------------------------------------------------------------------


@compiled
def write_late(w, order):
    """Write the late updates into ``P`` now."""
    count = whole_vectors(order)
    for u in range(w.signs.shape[0]):
        h, sign = w.late[u], w.signs[u]
        if sign != 0.0:
            for i in range(count):
                row, hi = w.covariance[i], sign * h[i]
                for j in range(count):
                    row[j] -= hi * h[j]
        w.signs[u] = 0.0


@compiled
def admit(state, w, x, scale, gap, order):
    """Append an atom: one more coordinate, of which nothing but the regularisation is known.

    Samples of the window count as if they had nothing in its direction.
    """
    d = w.d
    write_late(w, order)
    project(d.factor, w.k, order, d.projection)
    append_atom(d.factor, d.diagonal, d.projection, gap, order)
    append_point(d, x, order)
    d.coordinates[order] = math.sqrt(gap)
    w.k[order] = kernel_at(d.kernel_code, d.kernel_parameters, x)
    d.usage[order], w.scales[order] = 0.0, scale
    w.covariance[order, order] = 1.0 / state[RIDGE]


@compiled
def forget_atom(w, order):
    """Remove the atom worth least but the newest, and condition on its coordinate being zero."""
    d, last = w.d, order - 1
    write_late(w, order)
    j = least_worth(d, last)
    remove_atom(d.factor, d.diagonal, j, order, d.projection, d.rotations)
    remove_point(d, j, order)
    for i in range(j, last):
        d.usage[i], w.scales[i] = d.usage[i + 1], w.scales[i + 1]
    d.usage[last] = w.scales[last] = 0.0
    for f in range(d.weights.shape[0]):
        rotate(d.weights[f], d.rotations, j, order)
    rotate_samples(w.samples, d.rotations, j, order)
    # P <- Q P Q^T
    rotate_rows(w.covariance, j, order, d.rotations)
    transpose(w.covariance, order)
    rotate_rows(w.covariance, j, order, d.rotations)
    for f in range(d.weights.shape[0]):
        row = d.weights[f]
        step_ = row[last] / w.covariance[last, last]
        for i in range(last):
            row[i] -= step_ * w.covariance[last, i]
        row[last] = 0.0
    condition_on_last(w.covariance, last)


@compiled
def rotate(row, rotations, j, order):
    """Carry entry ``j`` of a vector down to its last."""
    for i in range(j + 1, order):
        cosine, sine = rotations[0, i], rotations[1, i]
        carried, value = row[i - 1], row[i]
        row[i - 1] = cosine * value - sine * carried
        row[i] = cosine * carried + sine * value


@compiled
def rotate_samples(samples, rotations, j, order):
    """Carry coordinate ``j`` of all samples down to the last, which is then cleared.

    Eight samples at a time: one rotation of a sample has to wait for the one before.
    """
    c, last = samples.c, order - 1
    for first in range(0, c.shape[0], 8):
        for i in range(j + 1, order):
            cosine, sine = rotations[0, i], rotations[1, i]
            for b in range(first, first + 8):
                carried, value = c[b, i - 1], c[b, i]
                c[b, i - 1] = cosine * value - sine * carried
                c[b, i] = cosine * carried + sine * value
        for b in range(first, first + 8):
            samples.gap[b] += c[b, last] * c[b, last]
            c[b, last] = 0.0


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
