# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The inverse Cholesky factor of a dictionary's Gram matrix, grown and shrunk by one atom.

``S`` is lower triangular with ``K^-1 = S^T S``, where ``K`` is the Gram matrix with a nugget on
its diagonal. It drifts by 1e-9 over 1e5 changes where ``K^-1`` itself drifts by 1. Rows have a
stride of whole vectors, and entries right of the diagonal are zero, so that loops can run over
whole vectors.
"""

import math

from kernel_constrained.core.compilation import compiled
from kernel_constrained.core.kernels import whole_vectors

NUGGET = 1e-10


@compiled
def project(factor, k, order, projection):
    """Project ``k(x)`` on the dictionary: ``projection = K^-1 k``; return ``k^T K^-1 k``.

    Four rows at a time, so that ``k`` and the result are loaded once for four rows.
    """
    for j in range(whole_vectors(order)):
        projection[j] = 0.0
    squared = 0.0
    i = 0
    while i + 4 <= order:
        row0, row1, row2, row3 = factor[i], factor[i + 1], factor[i + 2], factor[i + 3]
        count = whole_vectors(i + 4)
        c0 = c1 = c2 = c3 = 0.0
        for j in range(count):
            value = k[j]
            c0 += row0[j] * value
            c1 += row1[j] * value
            c2 += row2[j] * value
            c3 += row3[j] * value
        squared += c0 * c0 + c1 * c1 + c2 * c2 + c3 * c3
        for j in range(count):
            projection[j] += c0 * row0[j] + c1 * row1[j] + c2 * row2[j] + c3 * row3[j]
        i += 4
    while i < order:
        row = factor[i]
        count = whole_vectors(i + 1)
        c = 0.0
        for j in range(count):
            c += row[j] * k[j]
        squared += c * c
        for j in range(count):
            projection[j] += c * row[j]
        i += 1
    return squared


@compiled
def coordinates(factor, k, order, c):
    """Fill ``c = S k``, orthonormal coordinates of ``k(x)``; return their squared norm."""
    squared = 0.0
    i = 0
    while i + 4 <= order:
        row0, row1, row2, row3 = factor[i], factor[i + 1], factor[i + 2], factor[i + 3]
        c0 = c1 = c2 = c3 = 0.0
        for j in range(whole_vectors(i + 4)):
            value = k[j]
            c0 += row0[j] * value
            c1 += row1[j] * value
            c2 += row2[j] * value
            c3 += row3[j] * value
        c[i], c[i + 1], c[i + 2], c[i + 3] = c0, c1, c2, c3
        squared += c0 * c0 + c1 * c1 + c2 * c2 + c3 * c3
        i += 4
    while i < order:
        row = factor[i]
        total = 0.0
        for j in range(whole_vectors(i + 1)):
            total += row[j] * k[j]
        c[i] = total
        squared += total * total
        i += 1
    for j in range(order, whole_vectors(order)):
        c[j] = 0.0
    return squared


@compiled
def append_atom(factor, diagonal, projection, gap, order):
    """Add the last row for an atom with ``projection = K^-1 k`` and Schur complement ``gap``.

    ``diagonal`` holds the diagonal of ``K^-1`` and follows.
    """
    inverse_root = 1.0 / math.sqrt(gap)
    row = factor[order]
    for j in range(order):
        row[j] = -projection[j] * inverse_root
        diagonal[j] += row[j] * row[j]
    row[order] = inverse_root
    diagonal[order] = inverse_root * inverse_root


@compiled
def remove_atom(factor, diagonal, j, order, carry, rotations):
    """Remove atom ``j``; on return ``carry = K^-1 e_j / sqrt((K^-1)_jj)`` in the old numbering.

    ``rotations`` (2, stride) receives cosine and sine of the rotation that row ``i`` took part in.

    Row ``j`` is carried down by Givens rotations, each of which clears column ``j`` of the next
    row; what arrives at the bottom is the only row left with an entry in column ``j``, and is
    dropped. Orthogonal throughout: nothing is subtracted from nearly equal numbers.
    """
    row = factor[j]
    for c in range(order):
        carry[c] = row[c]
    for i in range(j + 1, order):
        above, row = factor[i - 1], factor[i]
        cosine, sine = carry[j], row[j]
        inverse = 1.0 / math.sqrt(cosine * cosine + sine * sine)
        cosine *= inverse
        sine *= inverse
        rotations[0, i], rotations[1, i] = cosine, sine
        for c in range(j):
            value, carried = row[c], carry[c]
            above[c] = cosine * value - sine * carried
            carry[c] = cosine * carried + sine * value
        carry[j] = cosine * carry[j] + sine * row[j]
        for c in range(j + 1, i + 1):
            value, carried = row[c], carry[c]
            above[c - 1] = cosine * value - sine * carried
            carry[c] = cosine * carried + sine * value
        above[i] = 0.0
    last = factor[order - 1]
    for c in range(order):
        last[c] = 0.0
    column_norms(factor, order - 1, diagonal)
    diagonal[order - 1] = 0.0


@compiled
def column_norms(factor, order, diagonal):
    """Fill ``diagonal`` with the squared norms of the columns: the diagonal of ``K^-1``."""
    for j in range(whole_vectors(order)):
        diagonal[j] = 0.0
    for i in range(order):
        row = factor[i]
        for j in range(whole_vectors(i + 1)):
            diagonal[j] += row[j] * row[j]
