# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The covariance of a windowed learner: rank-one updates, and atoms that come and go.

A sample that comes, leaves or changes sides is a rank-one update of the covariance ``P`` of the
weights in orthonormal coordinates. ``P`` is read and written once a step: the products with all
three samples are formed while the updates of the step before are written, and brought up to those
of the same step one by one.
"""

import math

from kernel_constrained.core.compilation import compiled
from kernel_constrained.core.factor import append_atom, project, remove_atom
from kernel_constrained.core.kernels import kernel_at, whole_vectors
from kernel_constrained.core.komp import append_point, remove_point
from kernel_constrained.core.recursive import (
    condition_on_last,
    least_worth,
    rotate_rows,
    transpose,
)
from kernel_constrained.core.subquantile.window_layout import RIDGE


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
