# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A look at the whole window: where outliers begin, and now and then a robust start anew.

Step by step a learner can be led astray: where the first sample of a region is wrong, those that
are right look like outliers beside it. So every other window, and more often in the beginning, it
starts anew: from Huber's fit of all samples, by the rounds of Subquantile Minimization (keep all
but the share that may be corrupted, fit what is kept), to rounds that re-admit whatever fits.
"""

import math

from kernel_constrained.core.compilation import compiled
from kernel_constrained.core.factor import coordinates, project
from kernel_constrained.core.kernels import whole_vectors
from kernel_constrained.core.subquantile.window_layout import (
    CORRUPTION,
    COUNT,
    KEPT,
    LIMIT,
    NEXT_LOOK,
    NEXT_START,
    ORDER,
    RIDGE,
    settings_of,
    UNIT,
    window_of,
)
from kernel_constrained.core.subquantile.window_steps import (
    fits,
    LEAST_LEFT,
    score_of,
    squared_residual,
)

# Samples of the first start; looks in a window; the fewest samples between two looks.
FIRST_START, LOOKS, FEWEST = 20, 4, 8
# Samples for each atom without which nothing is dropped, and which trimming leaves: few samples
# can be fitted so well that all others look like outliers.
PER_ATOM = 3
# The limit is so many times as far beyond the median of the residuals' sizes as their upper
# quartile: for normal noise 3.3 standard deviations, for one output as for three; 2.7 in the
# rounds of a start, where a wrong one does more harm than a right one that has to wait.
TAIL, START_TAIL = 5.5, 4.25
# The largest share of outliers that is believed.
MOST = 0.5
# Where Huber's loss is cut off, in medians of the residuals' sizes; iterations, and rounds of
# dropping and re-admitting that follow.
CUT, ITERATIONS, TRIMS, SELECTIONS = 1.0, 8, 2, 2
# Samples that the limit is read from between the steps of a start.
ENOUGH = 500


@compiled
def look(state, table, factors, ring, coordinates_, inputs, columns):
    """Read the limit anew from the residuals of the window; start anew where that is due."""
    s = settings_of(state)
    w = window_of(s, state, table, factors, ring, coordinates_, inputs, columns)
    count, order = int(min(state[COUNT], s.window)), int(state[ORDER])
    if count < PER_ATOM * order:
        state[LIMIT], state[NEXT_START] = math.inf, 1.5 * state[COUNT]
    elif state[COUNT] >= state[NEXT_START]:
        start_anew(s, state, w, factors[2], factors[3], count, order)
        state[NEXT_START] = state[COUNT] + (2 * count if count == s.window else count)
    else:
        read_limit(s, state, w, count, max(count // ENOUGH, 1), TAIL)
    state[NEXT_LOOK] = min(state[NEXT_START], state[COUNT] + max(s.window // LOOKS, FEWEST))


@compiled
def read_limit(s, state, w, count, every, tail):
    """Set the size of a residual beyond which it is an outlier's, in units of its local scale.

    What is beyond the limit is taken out before median and quartile are read again, until the
    share that is taken out no longer changes: the estimate of the corruption. It is read from
    one in ``every`` samples.
    """
    sizes = w.samples.sizes[: count // every]
    find_sizes(w, every, sizes)
    share, limit, middle = MOST, 0.0, 0.0
    for _ in range(sizes.shape[0]):
        middle = quantile(sizes, 0.5 * (1.0 - share))
        limit = middle + tail * (quantile(sizes, 0.75 * (1.0 - share)) - middle)
        beyond = min(share_beyond(sizes, limit), MOST)
        if beyond >= share:
            break
        share = beyond
    state[UNIT], state[CORRUPTION] = middle, share
    if share > s.corruption:
        limit = max(limit, quantile(sizes, 1.0 - s.corruption))
    state[LIMIT] = limit if s.corruption > 0.0 else math.inf


@compiled
def find_sizes(w, every, sizes):
    """Fill ``sizes`` with those of residuals in units of their local scales, in order."""
    samples = w.samples
    for i in range(sizes.shape[0]):
        sizes[i] = math.sqrt(samples.score[i * every]) / samples.scale[i * every]
    order_by_size(sizes)


@compiled
def order_by_size(values):
    """Sort in place, by Shell's method: numpy's would make arrays."""
    gap = values.shape[0]
    while gap > 1:
        gap = max(4 * gap // 9, 1)
        for i in range(gap, values.shape[0]):
            value, place = values[i], i
            while place >= gap and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value


@compiled
def quantile(ordered, level):
    """Value of which a share ``level`` of ordered values is no larger."""
    place = min(max(math.ceil(level * ordered.shape[0]) - 1, 0), ordered.shape[0] - 1)
    return ordered[place]


@compiled
def share_beyond(ordered, limit):
    """Share of ordered values that are larger than a limit."""
    count = 0
    while count < ordered.shape[0] and ordered[ordered.shape[0] - 1 - count] > limit:
        count += 1
    return count / ordered.shape[0]


@compiled
def start_anew(s, state, w, gram, factor, count, order):
    """Choose what is kept from the whole window, and solve ridge regression on it anew."""
    samples = w.samples
    state[RIDGE] = 0.5 * s.regularization * s.window
    samples.kept[:count] = 1.0
    gram[:] = 0.0
    add_all_to_gram(gram, samples.c, count, order)
    invert_factor(gram, factor, state[RIDGE], order)
    fit_huber(w, factor, count, order)
    find_variances(w, factor, count, order)
    share = min(s.corruption, 1.0 - PER_ATOM * order / count)
    for turn in range(TRIMS + SELECTIONS):
        find_scores(state, w, count, order)
        if turn < TRIMS:
            state[LIMIT] = limit_of_share(w, share, count)
        else:
            read_limit(s, state, w, count, max(count // ENOUGH, 1), START_TAIL)
        if change_sides(state, w, gram, count, order) > 0:
            invert_factor(gram, factor, state[RIDGE], order)
        solve(w, factor, count, order)
    find_scores(state, w, count, order)
    read_limit(s, state, w, count, 1, TAIL)
    w.covariance[:] = 0.0
    add_all_to_gram(w.covariance, factor, order, order)
    for i in range(order):
        for j in range(i):
            w.covariance[j, i] = w.covariance[i, j]
    w.signs[:] = 0.0
    state[KEPT] = 0.0
    for i in range(count):
        state[KEPT] += samples.kept[i]


@compiled
def fit_huber(w, factor, count, order):
    """Fit the whole window by Huber's loss: to values that are cut off beside the last fit."""
    samples, weights, right = w.samples, w.d.weights, w.gains[0]
    every = max(count // ENOUGH, 1)
    sizes = samples.sizes[: count // every]
    for f in range(weights.shape[0]):
        weights[f, :] = 0.0
    for _ in range(ITERATIONS):
        for i in range(count):
            samples.score[i] = squared_residual(w, i, order)
        find_sizes(w, every, sizes)
        cut = CUT * quantile(sizes, 0.5)
        for f in range(weights.shape[0]):
            row = weights[f]
            right[:] = 0.0
            for i in range(count):
                size = math.sqrt(samples.score[i]) / samples.scale[i]
                share = cut / size if size > cut else 1.0
                residual = samples.residuals[f, i]
                value = samples.y[f, i] - (1.0 - share) * residual
                add_scaled(right, samples.c[i], value, order)
            project(factor, right, order, w.d.projection)
            for j in range(whole_vectors(order)):
                row[j] = w.d.projection[j]


@compiled
def add_scaled(vector, c, value, order):
    """Add ``value c`` to a vector."""
    for j in range(whole_vectors(order)):
        vector[j] += value * c[j]


@compiled
def find_scores(state, w, count, order):
    """Find the score of every sample of the window."""
    for i in range(count):
        w.samples.score[i] = score_of(state, w, i, squared_residual(w, i, order))


@compiled
def find_variances(w, factor, count, order):
    """Find the leave-one-out variance of every sample of the window."""
    samples = w.samples
    for i in range(count):
        variance = coordinates(factor, samples.c[i], order, w.d.projection)
        if samples.kept[i] > 0.0:
            variance /= max(1.0 - variance, LEAST_LEFT)
        samples.variance[i] = variance


@compiled
def limit_of_share(w, share, count):
    """Limit beyond which a share of the samples lies."""
    every = max(count // ENOUGH, 1)
    sizes = w.samples.sizes[: count // every]
    find_sizes(w, every, sizes)
    return quantile(sizes, 1.0 - share)


@compiled
def change_sides(state, w, gram, count, order):
    """Drop what is beyond the limit and re-admit what is not; return how many moved."""
    samples, moved = w.samples, 0
    for i in range(count):
        kept = samples.kept[i] > 0.0
        if fits(state, w, i, samples.score[i]) != kept:
            add_to_gram(gram, samples.c[i], -1.0 if kept else 1.0, order)
            samples.kept[i] = 0.0 if kept else 1.0
            moved += 1
    return moved


@compiled
def add_to_gram(gram, c, sign, order):
    """Add ``sign c c^T`` to the lower triangle."""
    for i in range(order):
        row, ci = gram[i], sign * c[i]
        for j in range(whole_vectors(i + 1)):
            row[j] += ci * c[j]


@compiled
def add_all_to_gram(gram, c, count, order):
    """Add the outer products of the first ``count`` rows, and of the zeros up to four more."""
    for b in range(0, count, 4):
        c0, c1, c2, c3 = c[b], c[b + 1], c[b + 2], c[b + 3]
        for i in range(order):
            row, a0, a1, a2, a3 = gram[i], c0[i], c1[i], c2[i], c3[i]
            for j in range(whole_vectors(i + 1)):
                row[j] += a0 * c0[j] + a1 * c1[j] + a2 * c2[j] + a3 * c3[j]


@compiled
def solve(w, factor, count, order):
    """Solve ridge regression on what is kept, by the inverse Cholesky factor."""
    samples, right = w.samples, w.gains[0]
    for f in range(w.d.weights.shape[0]):
        right[:] = 0.0
        for i in range(count):
            if samples.kept[i] > 0.0:
                add_scaled(right, samples.c[i], samples.y[f, i], order)
        project(factor, right, order, w.d.projection)
        for j in range(whole_vectors(order)):
            w.d.weights[f, j] = w.d.projection[j]


@compiled
def invert_factor(gram, factor, ridge, order):
    """Fill ``factor`` with ``L^-1``, where ``L L^T`` is the Gram matrix and ``ridge``.

    A row of ``L`` at a time, from the rows of ``L^-1`` before it.
    """
    factor[:] = 0.0
    for i in range(order):
        row, own, left = gram[i], factor[i], gram[i, i] + ridge
        for j in range(i):
            # entry j of this row of L: row j of L^-1 times the row of the Gram matrix
            inverse, value = factor[j], 0.0
            for c in range(j + 1):
                value += inverse[c] * row[c]
            left -= value * value
            for c in range(j + 1):
                own[c] -= value * inverse[c]
        root = 1.0 / math.sqrt(max(left, LEAST_LEFT * ridge))
        for c in range(i):
            own[c] *= root
        own[i] = root
