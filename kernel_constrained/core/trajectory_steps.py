# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled code of trajectories: a path along its atoms, and its weights after KOMP."""

import math

import numpy as np

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.core.kernels import exponential, whole_vectors


@compiled
def operator_norm(weights, gram):
    """Operator norm of ``u -> sum_d u_d h_d`` for functions with weights (D, m).

    The root of the largest eigenvalue of ``W K W^T``, in three dimensions that of its Frobenius
    norm, which is no less.
    """
    dimensions, total = weights.shape[0], 0.0
    xx = xy = yy = 0.0
    for a in range(dimensions):
        for b in range(dimensions):
            product = 0.0
            for m in range(weights.shape[1]):
                along = 0.0
                for n in range(weights.shape[1]):
                    along += gram[m, n] * weights[b, n]
                product += weights[a, m] * along
            total += product * product
            if a == 0 and b == 0:
                xx = product
            elif a == 1 and b == 1:
                yy = product
            else:
                xy = product
    if dimensions == 2:
        largest = 0.5 * (xx + yy) + math.sqrt(0.25 * (xx - yy) ** 2 + xy * xy)
        return math.sqrt(max(largest, 0.0))
    return math.sqrt(math.sqrt(total))


@compiled_allocating
def compressed_parts(points, weights, order, dictionary, expansion, gram):
    """Return atoms (n + 2,), their coefficients (D, n + 2) and norm of what KOMP left."""
    dimensions, count = weights.shape[0], dictionary.shape[0]
    whole, coefficients = np.zeros((dimensions, count)), np.zeros((dimensions, order + 2))
    atoms = np.empty(order + 2)
    place = 0
    for k in range(order):
        while dictionary[place] != points[0, k]:
            place += 1
        atoms[k] = dictionary[place]
        for d in range(dimensions):
            whole[d, place] = coefficients[d, k] = weights[d, k]
            for end in range(2):
                coefficients[d, order + end] += weights[d, k] * expansion[count + end, place]
    atoms[order], atoms[order + 1] = 0.0, 1.0
    return atoms, coefficients, operator_norm(whole, gram)


@compiled
def expand(weights, expansion, coefficients):
    """Fill coefficients (D, m + 2) of Gaussians with those of ``k0`` (D, m)."""
    for d in range(weights.shape[0]):
        for j in range(expansion.shape[0]):
            total = 0.0
            for m in range(weights.shape[1]):
                total += expansion[j, m] * weights[d, m]
            coefficients[d, j] = total


@compiled
def evaluate(t, atoms, coefficients, bandwidth, start, goal, out, scratch, bits):
    """Fill ``out`` (4, D) with position and the first three derivatives at ``t``.

    ``scratch`` (4, m) and ``bits`` (m,) have whole vectors of eight.
    """
    inverse = 1.0 / bandwidth
    count = atoms.shape[0]
    kernel = scratch[0]
    for j in range(whole_vectors(count)):
        kernel[j] = 0.0
    for j in range(count):
        x = (t - atoms[j]) * inverse
        kernel[j] = -0.5 * x * x
    exponential(kernel, whole_vectors(count), bits)
    first, second, third = scratch[1], scratch[2], scratch[3]
    for j in range(count):
        x = (t - atoms[j]) * inverse
        k = kernel[j]
        first[j] = -x * inverse * k
        second[j] = (x * x - 1.0) * inverse * inverse * k
        third[j] = (3.0 - x * x) * x * inverse * inverse * inverse * k
    for d in range(coefficients.shape[0]):
        row = coefficients[d]
        f0 = f1 = f2 = f3 = 0.0
        for j in range(count):
            f0 += row[j] * kernel[j]
            f1 += row[j] * first[j]
            f2 += row[j] * second[j]
            f3 += row[j] * third[j]
        chord = goal[d] - start[d]
        out[0, d] = start[d] + t * chord + f0
        out[1, d] = chord + f1
        out[2, d] = f2
        out[3, d] = f3


@compiled
def positions_along(values, times, weights, start, goal, positions):
    """Fill ``positions`` (k, D) with the trajectory at the rows of ``values``."""
    for k in range(values.shape[0]):
        for d in range(weights.shape[0]):
            total = 0.0
            for m in range(weights.shape[1]):
                total += values[k, m] * weights[d, m]
            positions[k, d] = start[d] + times[k] * (goal[d] - start[d]) + total


@compiled_allocating
def nearest_time(atoms, coefficients, bandwidth, start, goal, position, low, high, count):
    """Return the time in [low, high] at which a path is nearest to a position, and how near.

    Of ``count`` equally spaced times the best, moved to where the tangent is at a right angle.
    """
    dimensions, stride = start.shape[0], (atoms.shape[0] + 7) & ~7
    scratch, bits = np.empty((4, stride)), np.empty(stride, np.int64)
    f = np.empty((4, dimensions))
    best, least = low, np.inf
    for k in range(count + 2):
        t = low + (high - low) * k / (count - 1)
        if k >= count:  # a step of Newton's from the best, and one more
            evaluate(best, atoms, coefficients, bandwidth, start, goal, f, scratch, bits)
            along = squared = 0.0
            for d in range(dimensions):
                along += (position[d] - f[0, d]) * f[1, d]
                squared += f[1, d] * f[1, d]
            t = min(max(best + along / max(squared, 1e-12), low), high)
        evaluate(t, atoms, coefficients, bandwidth, start, goal, f, scratch, bits)
        distance = 0.0
        for d in range(dimensions):
            distance += (position[d] - f[0, d]) ** 2
        if distance < least:
            best, least = t, distance
    return best, math.sqrt(least)


@compiled_allocating
def sample(atoms, coefficients, bandwidth, start, goal, since, line, lengths):
    """Fill positions (k, D) at equal times from ``since`` to 1, and lengths (k,) up to each."""
    stride, count = (atoms.shape[0] + 7) & ~7, atoms.shape[0]
    kernel, bits = np.zeros(stride), np.empty(stride, np.int64)
    inverse, length = 1.0 / bandwidth, 0.0
    for k in range(line.shape[0]):
        t = since + (1.0 - since) * k / (line.shape[0] - 1)
        for j in range(count):
            x = (t - atoms[j]) * inverse
            kernel[j] = -0.5 * x * x
        exponential(kernel, stride, bits)
        squared = 0.0
        for d in range(line.shape[1]):
            row, total = coefficients[d], 0.0
            for j in range(count):
                total += row[j] * kernel[j]
            line[k, d] = start[d] + t * (goal[d] - start[d]) + total
            squared += (line[k, d] - line[max(k - 1, 0), d]) ** 2
        length += math.sqrt(squared)
        lengths[k] = length
