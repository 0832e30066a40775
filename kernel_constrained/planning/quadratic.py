# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Multipliers of a path that is to be moved as little as possible to where it is free.

``min 1/2 <x, H x>`` over displacements ``x`` of a path, subject to ``n_j' x(t_j) <= -e_j``, has
the dual ``min 1/2 l' Q l - e' l`` over ``l >= 0``, with ``Q_ij = G(t_i, t_j) n_i' n_j`` and ``G``
the response of the path at one time to a force at another. Few constraints are active: the method
of Lawson and Hanson (Solving Least Squares Problems, chapter 23) finds which. ``softness`` on the
diagonal of ``Q`` lets those that contradict each other be violated.
"""

import math

from kernel_constrained.core.compilation import compiled

# By how much a constraint may stay violated, metres.
TOLERANCE = 1e-4


@compiled
def multipliers(response, softness, normal, excess, force, shift, chosen, matrix, right, wanted):
    """Solve the dual; ``force`` (2 n,) is where it begins and what comes out.

    There are two constraints for each of n times: with ``normal`` (2 n, D) and ``excess`` (2 n,).
    ``response`` (n, n) is that of the path, ``softness`` how far a force of 1 may violate the
    constraint that it is of. ``shift`` (n, D) is filled with what the forces move
    the path by: ``-x``. ``chosen`` (k,), ``matrix`` (k, k), ``right`` and ``wanted`` (k,) are
    scratch: no more than k constraints can be active.
    """
    count, added = 0, 0
    for j in range(force.shape[0]):
        if force[j] > 0.0 and excess[j] > -math.inf and count < chosen.shape[0]:
            chosen[count] = j
            count += 1
        else:
            force[j] = 0.0
    while True:
        count = settle(
            response, softness, normal, excess, force, chosen, count, matrix, right, wanted
        )
        fill_shift(response, normal, force, chosen, count, shift)
        worst, most = -1, TOLERANCE
        for j in range(force.shape[0]):
            rest = excess[j]
            for d in range(normal.shape[1]):
                rest -= normal[j, d] * shift[j // 2, d]
            if rest > most and force[j] == 0.0:
                worst, most = j, rest
        if worst < 0 or count == chosen.shape[0] or added == 3 * chosen.shape[0]:
            return count
        chosen[count] = worst
        count, added = count + 1, added + 1


@compiled
def settle(response, softness, normal, excess, force, chosen, count, matrix, right, wanted):
    """Find the forces of the chosen constraints, leaving out those that would pull."""
    while count > 0:
        for a in range(count):
            right[a] = excess[chosen[a]]
            for b in range(a + 1):
                product = 0.0
                for d in range(normal.shape[1]):
                    product += normal[chosen[a], d] * normal[chosen[b], d]
                matrix[a, b] = product * response[chosen[a] // 2, chosen[b] // 2]
            matrix[a, a] += softness
        cholesky_solve(matrix, right, count, wanted)
        share = 1.0
        for a in range(count):
            if wanted[a] <= 0.0:
                share = min(share, force[chosen[a]] / (force[chosen[a]] - wanted[a] + 1e-300))
        left = 0
        for a in range(count):
            j = chosen[a]
            force[j] += share * (wanted[a] - force[j])
            if wanted[a] > 0.0 or force[j] > 1e-12:
                chosen[left] = j
                left += 1
            else:
                force[j] = 0.0
        if share == 1.0:
            return left
        count = left
    return 0


@compiled
def fill_shift(response, normal, force, chosen, count, shift):
    """Fill what forces move the path by at all times."""
    for k in range(shift.shape[0]):
        for d in range(shift.shape[1]):
            shift[k, d] = 0.0
    for a in range(count):
        j = chosen[a]
        row = response[j // 2]
        for d in range(shift.shape[1]):
            along = force[j] * normal[j, d]
            for k in range(shift.shape[0]):
                shift[k, d] += along * row[k]


@compiled
def cholesky_solve(matrix, right, count, solution):
    """Solve a positive definite system (count, count); the lower half of it becomes its factor."""
    for j in range(count):
        for i in range(j, count):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = total
        inverse = 1.0 / math.sqrt(max(matrix[j, j], 1e-300))
        for i in range(j, count):
            matrix[i, j] *= inverse
    for i in range(count):
        total = right[i]
        for k in range(i):
            total -= matrix[i, k] * solution[k]
        solution[i] = total / matrix[i, i]
    for i in range(count - 1, -1, -1):
        total = solution[i]
        for k in range(i + 1, count):
            total -= matrix[k, i] * solution[k]
        solution[i] = total / matrix[i, i]
