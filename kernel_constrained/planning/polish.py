# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Shortening and straightening of a trajectory that is free already.

Minimises ``1/2 int |f'|^2 + bending/2 int |f''|^2 + attraction/2 int |f - reference|^2`` over the
weights of the dictionary, keeping clear of the obstacles at tabulated times. In each round what is
deepest at each time, and what is deepest on its other side, is replaced by the half-plane that it
leaves where the path is now, and the quadratic program that remains is solved (the convex-concave
procedure; a disc lies on the other side of its half-plane altogether, so that rounds only gain).
What comes out is proven, or not, by the certificate like any other path.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.core.trajectory import Basis
from kernel_constrained.core.trajectory_steps import positions_along
from kernel_constrained.planning.obstacles import deepest_facing, near_piece, Obstacles, PIECE
from kernel_constrained.planning.quadratic import multipliers

Array = npt.NDArray[np.float64]

# Of the tabulated times, those that obstacles are looked at.
STRIDE = 2
# What keeps the system regular where neither obstacles nor energy see a weight.
DAMPING, RIDGE = 1e-6, 1e-7
# How far a force of 1 (energy per metre) may violate its constraint, metres. By how much of itself
# less for each unit of attraction, which pulls a path into what is in between.
SOFTNESS, SHARE = 5e-4, 0.1
# How far a round may move the path, and how far from the path obstacles are looked for, metres.
LONGEST_STEP, LOOK = 0.3, 0.3
# Movement of the path below which it has settled, metres.
SETTLED = 1e-3
# Constraints that can be active at once.
MOST_ACTIVE = 48


class Energy(NamedTuple):
    """What the loop needs of the energy of a path, per coordinate.

    Attributes
    ----------
    values : (n, m), times : (n,)
        Of the basis, where obstacles are looked at.
    answers : (n, m)
        Weights with which the path answers a force at each of these times.
    response : (n, n)
        What that is at each of them.
    of_chord : (m,)
        Weights of the least energy for a chord of 1 m.
    of_reference : (m, m)
        From the weights of the reference to those of the least energy, apart from that.
    softness
        How far a force of 1 may violate a constraint.
    """

    values: Array
    times: Array
    answers: Array
    response: Array
    of_chord: Array
    of_reference: Array
    softness: float


@functools.lru_cache(maxsize=64)
def energy_of(basis: Basis, bending: float, attraction: float) -> Energy:
    """Return what the weights of the energy make of a basis."""
    hessian = (
        basis.speed_energy + bending * basis.bending_energy + attraction * basis.closeness
        + RIDGE * basis.gram + DAMPING * np.eye(basis.count)
    )  # fmt: skip
    inverse = np.linalg.inv(hessian)
    values = np.ascontiguousarray(basis.values[::STRIDE])
    answers = values @ inverse
    return Energy(
        values, np.ascontiguousarray(basis.times[::STRIDE]), answers, answers @ values.T,
        -inverse @ basis.mean_first, attraction * inverse @ basis.closeness,
        SOFTNESS / (1.0 + SHARE * attraction),
    )  # fmt: skip


def polish(
    weights: Array, reference: Array, basis: Basis, ends: tuple[Array, Array],
    obstacles: Obstacles, bending: float, attraction: float, rounds: int,
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
    rounds
        At most.
    """
    energy = energy_of(basis, bending, attraction)
    free = np.multiply.outer(ends[1] - ends[0], energy.of_chord)
    if attraction > 0.0:
        free += reference @ energy.of_reference.T
    result = weights.copy()
    minimise(result, free, energy, ends[0], ends[1], obstacles, rounds)
    return result


@compiled
def fill_half_planes(positions, free, o, flags, near, near_keep, normal, excess):
    """Fill the constraints at positions (n, D): normals (2 n, D), and how far ``free`` exceeds.

    For each time that of what is deepest, and that of what is deepest on its other side; what is
    further away than is looked has an excess of -inf.
    """
    dimensions = positions.shape[1]
    for first in range(0, positions.shape[0], PIECE):
        last = min(first + PIECE, positions.shape[0])
        found = near_piece(positions, first, last, o, LOOK, flags, near, near_keep)
        for k in range(first, last):
            ax = ay = az = 0.0
            for j in range(2 * k, 2 * k + 2):
                depth = deepest_facing(
                    positions[k], near, found, near_keep, o, ax, ay, az, normal[j]
                )
                ax, ay, az = normal[j, 0], normal[j, 1], normal[j, dimensions - 1]
                excess[j] = -np.inf
                if depth > -LOOK:
                    excess[j] = depth
                    for d in range(dimensions):
                        excess[j] += normal[j, d] * (free[k, d] - positions[k, d])


@compiled
def answer(free, answers, normal, force, chosen, count, weights):
    """Fill the weights with which a path answers forces."""
    for d in range(weights.shape[0]):
        for m in range(weights.shape[1]):
            weights[d, m] = free[d, m]
        for a in range(count):
            j = chosen[a]
            along = force[j] * normal[j, d]
            for m in range(weights.shape[1]):
                weights[d, m] -= along * answers[j // 2, m]


@compiled
def longest_move(free, shift, positions):
    """Return how far the path is from where the forces would have it, at most."""
    longest = 0.0
    for k in range(positions.shape[0]):
        squared = 0.0
        for d in range(positions.shape[1]):
            squared += (free[k, d] - shift[k, d] - positions[k, d]) ** 2
        longest = max(longest, squared)
    return math.sqrt(longest)


@compiled_allocating
def minimise(weights, free, energy, start, goal, o, rounds):
    """Run the rounds on ``weights``, in place; ``free`` are those of the least energy."""
    samples, dimensions = energy.values.shape[0], weights.shape[0]
    positions, shift = np.empty((samples, dimensions)), np.empty((samples, dimensions))
    free_positions, wanted = np.empty((samples, dimensions)), np.empty_like(weights)
    normal, excess = np.empty((2 * samples, dimensions)), np.empty(2 * samples)
    near, near_keep = np.empty_like(o.points), np.empty_like(o.keep)
    flags, force = np.empty(o.keep.shape[0], np.uint8), np.zeros(2 * samples)
    chosen, matrix = np.empty(MOST_ACTIVE, np.int64), np.empty((MOST_ACTIVE, MOST_ACTIVE))
    right, solution = np.empty(MOST_ACTIVE), np.empty(MOST_ACTIVE)
    positions_along(energy.values, energy.times, free, start, goal, free_positions)
    positions_along(energy.values, energy.times, weights, start, goal, positions)
    for _ in range(rounds):
        fill_half_planes(positions, free_positions, o, flags, near, near_keep, normal, excess)
        count = multipliers(
            energy.response, energy.softness, normal, excess, force, shift, chosen, matrix,
            right, solution,
        )  # fmt: skip
        answer(free, energy.answers, normal, force, chosen, count, wanted)
        move = longest_move(free_positions, shift, positions)
        share = min(1.0, LONGEST_STEP / (move + 1e-12))
        for d in range(dimensions):
            for m in range(weights.shape[1]):
                weights[d, m] += share * (wanted[d, m] - weights[d, m])
            for k in range(samples):
                to = free_positions[k, d] - shift[k, d]
                positions[k, d] += share * (to - positions[k, d])
        if move < SETTLED:
            break
