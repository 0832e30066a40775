# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Proofs that curvature and speed of a trajectory stay within bounds, between its samples too.

With ``v, a, j`` the first three derivatives at ``t`` and the bounds ``M_n`` of those of ``h``, on
``[t - d, t + d]`` the speed is within ``r = |a| d + M_3 d^2 / 2`` of ``|v|``, and ``|v x a|``,
whose derivative is ``|v x j|``, exceeds what it is at ``t`` by at most
``d (|v| + r) (|j| + M_4 d)``.
"""

import math

import numpy as np

from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.core.trajectory import Trajectory
from kernel_constrained.core.trajectory_steps import evaluate
from kernel_constrained.planning.certificate import DEPTH, length_of

PIECES = 32


def within_limits(
    trajectory: Trajectory, curvature: float, speed: float, since: float = 0.0
) -> bool:
    """Whether curvature (1/m) and speed (metres per unit of ``t``) are proven to be bounded.

    Parameters
    ----------
    trajectory
        In two or three dimensions.
    curvature, speed
        Bounds; inf for none.
    since
        Where the proof begins, 0 to 1.
    """
    if math.isinf(curvature) and math.isinf(speed):
        return True
    proven: bool = limits_proven(
        since, trajectory.atoms, trajectory.coefficients, trajectory.bandwidth, trajectory.start,
        trajectory.goal, trajectory.derivative_bound(3), trajectory.derivative_bound(4),
        curvature, speed,
    )  # fmt: skip
    return proven


@compiled
def bounds_on_piece(f, half, third_bound, fourth_bound):
    """Upper bounds of speed and curvature within ``half`` of where ``f`` (4, D) was evaluated."""
    dimensions = f.shape[1]
    speed, second = length_of(f[1], dimensions), length_of(f[2], dimensions)
    third, along = length_of(f[3], dimensions), 0.0
    for d in range(dimensions):
        along += f[1, d] * f[2, d]
    across = math.sqrt(max(speed * speed * second * second - along * along, 0.0))
    change = half * (second + 0.5 * third_bound * half)
    across += half * (speed + change) * (third + fourth_bound * half)
    slowest = speed - change
    curvature = across / (slowest * slowest * slowest) if slowest > 0.0 else np.inf
    return speed + change, curvature


@compiled_allocating
def limits_proven(
    since, atoms, coefficients, bandwidth, start, goal, third_bound, fourth_bound, curvature,
    speed,
):  # fmt: skip
    """Halve pieces until both bounds are proven on all, or one is not at a midpoint."""
    stride = (atoms.shape[0] + 7) & ~7
    scratch, bits = np.empty((4, stride)), np.empty(stride, np.int64)
    f = np.empty((4, start.shape[0]))
    begin, half = np.empty(PIECES + DEPTH), np.empty(PIECES + DEPTH)
    widest = 0.5 * (1.0 - since) / PIECES
    for i in range(PIECES):
        begin[i], half[i] = since + 2 * i * widest, widest
    waiting = PIECES
    while waiting > 0:
        waiting -= 1
        earliest, width = begin[waiting], half[waiting]
        evaluate(earliest + width, atoms, coefficients, bandwidth, start, goal, f, scratch, bits)
        fastest, sharpest = bounds_on_piece(f, width, third_bound, fourth_bound)
        if fastest <= speed and sharpest <= curvature:
            continue
        fastest, sharpest = bounds_on_piece(f, 0.0, third_bound, fourth_bound)
        if fastest > speed or sharpest > curvature or width * (1 << DEPTH) <= widest:
            return False
        half[waiting] = half[waiting + 1] = 0.5 * width
        begin[waiting], begin[waiting + 1] = earliest + width, earliest
        waiting += 2
    return True
