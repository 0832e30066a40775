# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Shortening and straightening of a trajectory that is free already.

Minimises ``1/2 int |f'|^2 + bending/2 int |f''|^2 + attraction/2 int |f - reference|^2`` over the
weights of the dictionary, keeping clear of the obstacles at tabulated times: Gauss-Newton steps on
the augmented Lagrangian (Nocedal and Wright, Numerical Optimization, section 17.4). What comes
out is proven, or not, by the certificate like any other path.
"""

import functools
import math

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.core.trajectory import Basis, positions_along
from kernel_constrained.planning.obstacles import deepest_along, Obstacles

Array = npt.NDArray[np.float64]

# Of the tabulated times, those that obstacles are looked at.
STRIDE = 2
# Weight of squared violations in the augmented Lagrangian, 1/m^2 of energy.
PENALTY = 3e3
# By how much of itself, for each unit of attraction, which pulls a path into what is in between.
SHARE = 0.1
# What keeps the system regular where neither obstacles nor energy see a weight.
DAMPING, RIDGE = 1e-6, 1e-7
# How far a step may move the path, and how far from the path obstacles are looked for, metres.
LONGEST_STEP, LOOK = 0.3, 0.3
# Movement of the path below which a minimisation has settled, metres.
SETTLED = 1e-3


@functools.lru_cache(maxsize=64)
def energy_of(basis: Basis, bending: float, attraction: float) -> Array:
    """Hessian (m, m) of the energy in the weights of one coordinate."""
    return np.ascontiguousarray(
        basis.speed_energy + bending * basis.bending_energy + attraction * basis.closeness
        + RIDGE * basis.gram + DAMPING * np.eye(basis.count)
    )  # fmt: skip


def polish(
    weights: Array, reference: Array, basis: Basis, ends: tuple[Array, Array],
    obstacles: Obstacles, bending: float, attraction: float, rounds: int, inner_rounds: int,
) -> Array:  # fmt: skip
    """Return polished weights (D, m).

    Parameters
    ----------
    weights, reference : (D, m)
        Of the trajectory and of the reference, both upon the chord between the ends.
    basis
        What they are weights of.
    ends
        Start and goal, (D,) each.
    obstacles
        What to keep clear of.
    bending, attraction
        Weights of squared second derivatives and of the distance to the reference.
    rounds, inner_rounds
        Updates of the multipliers, and Gauss-Newton steps between them.
    """
    result = weights.copy()
    minimise(
        result, basis.values[::STRIDE], basis.times[::STRIDE], basis.mean_first,
        energy_of(basis, bending, attraction), attraction * (reference @ basis.closeness), ends[0],
        ends[1], obstacles,
        PENALTY * (1.0 + SHARE * attraction), rounds, inner_rounds,
    )  # fmt: skip
    return result


@compiled
def energy_system(weights, mean_first, energy, pull, start, goal, matrix, right):
    """Fill the Newton system of the energy alone; ``pull`` (D, m) is that of the reference."""
    dimensions, count = weights.shape
    for row in range(dimensions * count):
        for column in range(dimensions * count):
            matrix[row, column] = 0.0
    for d in range(dimensions):
        for m in range(count):
            total = (goal[d] - start[d]) * mean_first[m] - pull[d, m]
            for n in range(count):
                total += energy[m, n] * weights[d, n]
                matrix[d * count + m, d * count + n] = energy[m, n]
            right[d * count + m] = total


@compiled
def add_constraint(force, stiffness, values, gradient, matrix, right):
    """Add a violated constraint with gradient (D,) at a time with basis ``values`` (m,)."""
    dimensions, count = gradient.shape[0], values.shape[0]
    for d in range(dimensions):
        for m in range(count):
            along = values[m] * gradient[d]
            right[d * count + m] += force * along
            along *= stiffness
            for e in range(dimensions):
                slope = along * gradient[e]
                row = matrix[d * count + m, e * count : (e + 1) * count]
                for n in range(count):
                    row[n] += slope * values[n]


@compiled
def longest_move(values, step, dimensions):
    """Largest distance by which a step of weights moves the path at every fourth time."""
    count, longest = values.shape[1], 0.0
    for k in range(0, values.shape[0], 4):
        squared = 0.0
        for d in range(dimensions):
            move = 0.0
            for m in range(count):
                move += values[k, m] * step[d * count + m]
            squared += move * move
        longest = max(longest, squared)
    return math.sqrt(longest)


@compiled_allocating
def minimise(
    weights, values, times, mean_first, energy, pull, start, goal, o, penalty, rounds,
    inner_rounds,
):  # fmt: skip
    """Run the augmented Lagrangian method on ``weights``, in place."""
    dimensions, count = weights.shape
    samples, size = values.shape[0], dimensions * count
    positions, gradient = (
        np.empty((samples, dimensions)),
        np.empty((samples, dimensions)),
    )
    depth, multiplier = np.empty(samples), np.zeros(samples)
    near, near_keep = np.empty_like(o.points), np.empty_like(o.keep)
    flags = np.empty(o.keep.shape[0], np.uint8)
    matrix, right = np.empty((size, size)), np.empty(size)
    for _ in range(rounds):
        for _ in range(inner_rounds):
            positions_along(values, times, weights, start, goal, positions)
            deepest_along(positions, o, LOOK, flags, near, near_keep, depth, gradient)
            energy_system(weights, mean_first, energy, pull, start, goal, matrix, right)
            for k in range(samples):
                force = multiplier[k] + penalty * depth[k]
                if force > 0.0:
                    add_constraint(
                        force / samples,
                        penalty / samples,
                        values[k],
                        gradient[k],
                        matrix,
                        right,
                    )
            step = np.linalg.solve(matrix, right)
            move = longest_move(values, step, dimensions)
            scale = min(1.0, LONGEST_STEP / (move + 1e-12))
            for d in range(dimensions):
                for m in range(count):
                    weights[d, m] -= scale * step[d * count + m]
            if move < SETTLED:
                break
        positions_along(values, times, weights, start, goal, positions)
        deepest_along(positions, o, LOOK, flags, near, near_keep, depth, gradient)
        for k in range(samples):
            multiplier[k] = max(0.0, multiplier[k] + penalty * depth[k])
