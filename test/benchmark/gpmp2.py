# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A planner in the manner of GPMP2: a Gaussian process as prior, obstacles as a likelihood.

After Mukadam et al., "Continuous-time Gaussian process motion planning via probabilistic
inference" (2018): positions and velocities at a few support times have the prior of white noise on
acceleration; a hinge of the clearance is the residual at the support times and, by the process's
own interpolation, in between. The factor graph is a chain, so that Levenberg-Marquardt solves
with a banded matrix, as sparse elimination would.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from planning_worlds import box, nearest_disc
from scipy.linalg import solveh_banded

from kernel_constrained.planning.polyline import resampled

INTERVALS = 20  # between support times, of a path that is run through in unit time
CHECKS = 4  # residuals in an interval
SHOWN = 10  # positions of the result in an interval
REACH = 0.03  # clearance beyond the margin below which there is a residual, metres
DEVIATION = 3e-4  # of a residual, metres, where the power of the noise on acceleration is one
FIXED = 1e-6  # deviation of the end points, likewise
DAMPING, SMALLEST_DAMPING, LARGEST_DAMPING = 1e-2, 1e-8, 1e6
DECREASE = 1e-3  # relative, of the cost, at which the iteration ends
ITERATIONS = 60

BLOCK = 4  # position and velocity of one support time


class Chain(NamedTuple):
    """What does not depend on the world.

    Attributes
    ----------
    checks, shown : (k, 4)
        Weights of (position, velocity) at either end of an interval in a position within it.
    prior : (8, n)
        Information matrix of the prior and the fixed ends, lower bands.
    places : (intervals * 64,)
        Where the entries of the intervals' 8 x 8 blocks are in the flattened bands; those above
        the diagonal go to one place past the end.
    """

    checks: np.ndarray
    shown: np.ndarray
    prior: np.ndarray
    places: np.ndarray


def interpolation(share, duration):
    """Return the weights (k, 4) of the process's mean at shares (k,) of an interval."""
    s = share[:, None]
    return np.hstack([
        1 - 3 * s**2 + 2 * s**3, duration * (s - 2 * s**2 + s**3),
        3 * s**2 - 2 * s**3, duration * (s**3 - s**2),
    ])  # fmt: skip


@cache
def chain():
    """Return the :class:`Chain`."""
    duration = 1.0 / INTERVALS
    noise = np.array([[duration**3 / 3, duration**2 / 2], [duration**2 / 2, duration]])
    step = np.hstack([np.array([[-1.0, -duration], [0.0, -1.0]]), np.eye(2)])
    information = np.kron(step.T @ np.linalg.inv(noise) @ step, np.eye(2))
    size = BLOCK * (INTERVALS + 1)
    row, column = np.divmod(np.arange(4 * BLOCK**2), 2 * BLOCK)
    first = BLOCK * np.arange(INTERVALS)[:, None]
    places = np.where(row >= column, (row - column) * size + column + first, 2 * BLOCK * size)
    prior = banded(places.ravel(), np.broadcast_to(information, (INTERVALS, 8, 8)), size)
    prior[0, [0, 1, size - 4, size - 3]] += 1 / FIXED**2
    return Chain(
        interpolation((np.arange(CHECKS) + 1) / CHECKS, duration),
        interpolation(np.arange(SHOWN) / SHOWN, duration), prior, places.ravel(),
    )  # fmt: skip


def banded(places, blocks, size):
    """Add up 8 x 8 blocks of the intervals into the lower bands (8, size)."""
    flat = np.bincount(places, blocks.ravel(), 2 * BLOCK * size + 1)
    return flat[:-1].reshape(2 * BLOCK, size)


def times_vector(bands, vector):
    """Multiply the symmetric matrix of lower ``bands`` by a vector."""
    product = bands[0] * vector
    for offset in range(1, len(bands)):
        below = bands[offset, :-offset]
        product[offset:] += below * vector[:-offset]
        product[:-offset] += below * vector[offset:]
    return product


def positions_within(weights, states):
    """Return positions (intervals, k, 2) of states (intervals + 1, 4)."""
    ends = np.concatenate([states[:-1], states[1:]], axis=1).reshape(-1, 4, 2)
    return np.einsum('kb,ibd->ikd', weights, ends)


def straight(world):
    """Return the states (intervals + 1, 4) of the prior's mean: the line, at constant speed."""
    share, way = np.linspace(0, 1, INTERVALS + 1)[:, None], world.goal - world.start
    return np.hstack([world.start + share * way, np.broadcast_to(way, (len(share), 2))])


def seeded(polyline):
    """Return states (intervals + 1, 4) along a polyline at constant speed."""
    path = resampled(polyline, INTERVALS + 1)
    return np.hstack([path, np.gradient(path, 1.0 / INTERVALS, axis=0)])


def residuals(world, points, margin):
    """Return hinge residuals (k, 3) of disc, x and y of the box, and gradients (k, 3, 2).

    Both rise from ``REACH`` on; the box is what limits of joints are to an arm, without margin.
    """
    distance, outward = nearest_disc(world, points)
    short = REACH + margin + world.radius - distance
    low, high = box(world)
    below, above = np.maximum(low + REACH - points, 0.0), np.maximum(points - high + REACH, 0.0)
    values = np.column_stack([np.maximum(short, 0.0), below + above])
    gradients = np.zeros((len(points), 3, 2))
    gradients[:, 0] = -outward * (short > 0)[:, None]
    gradients[:, [1, 2], [0, 1]] = np.sign(above) - np.sign(below)
    return values, gradients


def linearise(world, states, margin):
    """Return (cost, gradient (n,), lower bands (8, n)) of the posterior's negative logarithm."""
    parts = chain()
    values, gradients = residuals(
        world, positions_within(parts.checks, states).reshape(-1, 2), margin
    )
    slopes = np.einsum(
        'cb,icrd->icrbd', parts.checks, gradients.reshape(INTERVALS, CHECKS, 3, 2)
    ).reshape(INTERVALS, CHECKS * 3, 2 * BLOCK) / DEVIATION  # fmt: skip
    errors = values.reshape(INTERVALS, CHECKS * 3, 1) / DEVIATION
    blocks, pulls = slopes.mT @ slopes, (slopes.mT @ errors)[..., 0]
    off = (states - straight(world)).ravel()
    gradient = times_vector(parts.prior, off)
    cost = 0.5 * (off @ gradient + (errors**2).sum())
    gradient[:-BLOCK] += pulls[:, :BLOCK].ravel()
    gradient[BLOCK:] += pulls[:, BLOCK:].ravel()
    return cost, gradient, parts.prior + banded(parts.places, blocks, len(off))


def optimise(world, seed, margin):
    """Return the path (k, 2) of the largest posterior near a polyline."""
    states, damping = seeded(seed), DAMPING
    cost, gradient, bands = linearise(world, states, margin)
    for _ in range(ITERATIONS):
        damped = bands.copy()
        damped[0] *= 1 + damping
        trial = states - solveh_banded(damped, gradient, lower=True).reshape(states.shape)
        trial_cost, *linearised = linearise(world, trial, margin)
        if trial_cost < cost:
            decrease = (cost - trial_cost) / cost
            states, cost, (gradient, bands) = trial, trial_cost, linearised
            damping = max(damping / 10, SMALLEST_DAMPING)
            if decrease < DECREASE:
                break
        elif (damping := damping * 10) > LARGEST_DAMPING:
            break
    within = positions_within(chain().shown, states).reshape(-1, 2)
    return np.vstack([within, states[-1, :2]])
