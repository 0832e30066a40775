# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A planner in the manner of CHOMP: covariant gradient descent on a path's points.

After Zucker et al., "CHOMP: Covariant Hamiltonian optimization for motion planning" (2013): the
obstacle functional is a potential of the clearance integrated over arc length, its gradient the
part across the path less potential times curvature, and a step is preconditioned by the metric of
the smoothness term, here that of half the integral of squared first derivatives and ``BENDING``
times squared second ones.
"""

from functools import cache

import numpy as np
from planning_worlds import box, nearest_disc

from kernel_constrained.planning.polyline import resampled

POINTS = 60
BENDING = 1e-3
REACH = 0.05  # clearance beyond the margin from which the potential rises, metres
WEIGHT = 1500.0  # of the obstacle functional
STEP, STEADY = 0.1, 5  # on the covariant gradient, and iterations after which steps shrink
LONGEST_STEP = 0.1  # of any point, metres
SETTLED = 1e-3  # largest movement after which a path without contact is taken, metres
ITERATIONS = 100


@cache
def metric():
    """Return the smoothness metric (n, n) of the inner points, and its inverse."""
    intervals = POINTS - 1
    first = np.diff(np.eye(POINTS), axis=0) * intervals
    second = np.diff(first, axis=0) * intervals
    whole = (first.T @ first + BENDING * second.T @ second) / intervals
    return whole[1:-1], np.linalg.inv(whole[1:-1, 1:-1])


def potential(clearance):
    """Return CHOMP's potential of a clearance less margin, and its derivative."""
    inside, near = clearance < 0, clearance < REACH
    short = np.where(near, clearance - REACH, 0.0)
    value = np.where(inside, REACH / 2 - clearance, short**2 / (2 * REACH))
    return value, np.where(inside, -1.0, short / REACH)


def obstacle_gradient(path, clearance, gradient):
    """Return the functional's gradient (n, 2) at the inner points of ``path``."""
    intervals = len(path) - 1
    velocity = (path[2:] - path[:-2]) * intervals / 2
    acceleration = (path[2:] - 2 * path[1:-1] + path[:-2]) * intervals**2
    speed = np.sqrt((velocity**2).sum(1, keepdims=True)) + 1e-9
    tangent = velocity / speed

    def across(vectors):
        return vectors - (vectors * tangent).sum(1, keepdims=True) * tangent

    value, slope = potential(clearance)
    bend = across(acceleration) / speed**2
    return speed * (across(slope[:, None] * gradient) - value[:, None] * bend) / intervals


def optimise(world, seed, margin):
    """Return the path (POINTS, 2) that descent from a polyline comes to rest at."""
    smoothness, inverse = metric()
    low, high = box(world)
    path = resampled(seed, POINTS)
    for iteration in range(ITERATIONS):
        clearance, gradient = nearest_disc(world, path[1:-1])
        clearance -= world.radius + margin
        descent = inverse @ (
            smoothness @ path + WEIGHT * obstacle_gradient(path, clearance, gradient)
        )
        step = STEP / np.sqrt(1 + iteration / STEADY) * descent
        longest = np.abs(step).max()
        path[1:-1] -= step * min(1.0, LONGEST_STEP / (longest + 1e-12))
        np.clip(path, low, high, out=path)
        if longest < SETTLED and clearance.min() > -margin:
            break
    return path
