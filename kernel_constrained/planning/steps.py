# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of the stochastic primal-dual method on trajectories, compiled."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.chance import surrogate_value
from kernel_constrained.core.compilation import compiled, compiled_allocating
from kernel_constrained.core.trajectory_steps import expand, operator_norm, positions_along
from kernel_constrained.planning.certificate import proven_from
from kernel_constrained.planning.obstacles import deepest, deepest_along, shorter_way_out

Array = npt.NDArray[np.float64]

# Bounds of the shared scale, metres.
SMALLEST_SCALE, LARGEST_SCALE = 0.02, 2.0
# Dual variables step by and are capped at these over the tolerance.
DUAL_STEP, DUAL_CAP = 1.0, 20.0
SCALE_STEP = 0.05
# What is learned from does not look further than this beyond what is kept clear, metres.
LOOK = 2.0


class Tables(NamedTuple):
    """What the loop needs of a basis; see :class:`~kernel_constrained.core.trajectory.Basis`."""

    bandwidth: float
    times: Array
    values: Array
    first: Array
    second: Array
    projected: Array
    projected_first: Array
    projected_second: Array
    gram: Array
    atoms: Array
    expansion: Array


class Settings(NamedTuple):
    """What the loop needs of the configuration.

    With ``way_out`` above 0, ``g`` inside obstacles is the shorter way out of all of them across
    the path, looked for as far as that (metres), in place of the depth in the deepest one: the
    path may change sides.
    """

    exponential: bool
    per_sample: bool
    slope_inside: float
    slope_outside: float
    tolerance: float
    scale: float
    regularization: float
    step_size: float
    curvature: float
    speed: float
    way_out: float


class Noise(NamedTuple):
    """Random displacements of the discs: ``draws[k, :, i % m] * deviation[i]``; none where empty.

    Attributes
    ----------
    deviation : (n,)
        Standard deviation of each centre, metres.
    draws : (k, 2, m)
        Unit draws, used in turn; centres beyond m have those of the ones before. Of a few hundred
        the learner learns the peculiar ones, some thousands are needed; (0, 2, 0) for no noise.
    """

    deviation: Array
    draws: Array


@compiled
def positions_at(rows, table, weights, offset, slope, times, out):
    """Fill ``out`` (k, D) with ``offset + t slope + table @ weights`` at table rows (k,)."""
    for k in range(rows.shape[0]):
        row = table[rows[k]]
        for d in range(weights.shape[0]):
            total = 0.0
            for m in range(weights.shape[1]):
                total += row[m] * weights[d, m]
            out[k, d] = offset[d] + times[rows[k]] * slope[d] + total


@compiled
def displaced_depths(positions, o, noise, number, near, depth, gradient):
    """Fill ``depth`` and ``gradient`` with discs displaced anew for each position."""
    draws = noise.draws.shape[0]
    for k in range(positions.shape[0]):
        draw = noise.draws[(number * positions.shape[0] + k) % draws]
        for i in range(o.points.shape[1]):
            for d in range(o.points.shape[0]):
                near[d, i] = o.points[d, i] + noise.deviation[i] * draw[d, i % draw.shape[1]]
        depth[k] = deepest(positions[k], near, o.points.shape[1], o.keep, o, gradient[k])


@compiled
def across_path(gradient, velocity):
    """Take from a gradient what only shifts the path along itself."""
    squared, along = 1e-300, 0.0
    for d in range(velocity.shape[0]):
        squared += velocity[d] * velocity[d]
        along += velocity[d] * gradient[d]
    for d in range(velocity.shape[0]):
        gradient[d] -= along / squared * velocity[d]


@compiled
def curvature_gradient(velocity, acceleration, by_velocity, by_acceleration):
    """Return the curvature and fill its gradients.

    With ``a`` the part of the acceleration across ``v``, it is ``|a| / |v|^2``.
    """
    squared, along = 1e-12, 0.0
    for d in range(velocity.shape[0]):
        squared += velocity[d] * velocity[d]
        along += velocity[d] * acceleration[d]
    across = 0.0
    for d in range(velocity.shape[0]):
        by_acceleration[d] = acceleration[d] - along / squared * velocity[d]
        across += by_acceleration[d] * by_acceleration[d]
    across = math.sqrt(across)
    for d in range(velocity.shape[0]):
        unit = by_acceleration[d] / max(across, 1e-12)
        by_acceleration[d] = unit / squared
        by_velocity[d] = -(along * unit + 2.0 * across * velocity[d]) / (squared * squared)
    return across / squared


@compiled
def surrogate_step(g, settings, scale):
    """Return value of the constraint at a sample, its slope in ``g`` and in the scale."""
    if settings.per_sample:
        slope = settings.slope_inside if g > 0.0 else settings.slope_outside
        return slope * g, slope, 0.0
    z = g / scale
    value, slope = surrogate_value(settings.exponential, z)
    return (
        scale * (value - settings.tolerance),
        slope,
        value - z * slope - settings.tolerance,
    )


@compiled
def add_scaled(step, scale, row, direction):
    """Add ``scale * direction`` times a row of projections to a step (D, m)."""
    for d in range(step.shape[0]):
        value = scale * direction[d]
        for m in range(step.shape[1]):
            step[d, m] += value * row[m]


@compiled_allocating
def take_steps(
    begin, end, weights, reference, near_to, tables, start, goal, o, settings, dual, scale, jitter,
    noise, averaged,
):  # fmt: skip
    """Run the steps; ``weights``, ``dual`` and ``averaged`` change in place.

    ``near_to`` (n, D) is the reference at the tabulated times.

    Per step, with mu the dual variables: f goes down the gradient of the Lagrangian over
    1 + sum mu, the scale likewise, and each mu follows its constraint.
    """
    samples, dimensions, count = jitter.shape[1], weights.shape[0], weights.shape[1]
    rows = np.empty(samples, np.int64)
    position, velocity = (
        np.empty((samples, dimensions)),
        np.empty((samples, dimensions)),
    )
    acceleration, offset = (
        np.empty((samples, dimensions)),
        np.empty((samples, dimensions)),
    )
    gradient, depth = np.empty((samples, dimensions)), np.empty(samples)
    by_velocity, by_acceleration = np.empty(dimensions), np.empty(dimensions)
    near, near_keep = np.empty_like(o.points), np.empty_like(o.keep)
    flags = np.empty(o.keep.shape[0], np.uint8)
    enter, leave = np.empty_like(o.keep), np.empty_like(o.keep)
    step = np.empty((dimensions, count))
    nothing, chord = np.zeros(dimensions), goal - start
    dual_step, dual_cap = DUAL_STEP / settings.tolerance, DUAL_CAP / settings.tolerance
    length = 0.0
    for k in range(1, near_to.shape[0]):
        length += math.sqrt(((near_to[k] - near_to[k - 1]) ** 2).sum())
    unit = tables.bandwidth * length + 1e-6  # width of the kernel in metres
    last, violation = tables.times.shape[0] - 1, 0.0
    bends, hurries = settings.curvature < np.inf, settings.speed < np.inf
    for number in range(begin, end):
        row_of = jitter[number % jitter.shape[0]]
        for k in range(samples):
            rows[k] = int((k + row_of[k]) * last / samples + 0.5)
        for d in range(dimensions):
            for m in range(count):
                step[d, m] = settings.regularization * (weights[d, m] - reference[d, m])
        positions_at(rows, tables.values, weights, start, chord, tables.times, position)
        positions_at(rows, tables.first, weights, chord, nothing, tables.times, velocity)
        if noise.draws.shape[0] > 0:
            displaced_depths(position, o, noise, number, near, depth, gradient)
        else:
            deepest_along(position, o, LOOK, flags, near, near_keep, depth, gradient)
        if bends:
            positions_at(
                rows,
                tables.second,
                weights,
                nothing,
                nothing,
                tables.times,
                acceleration,
            )
        share, by_scale, value, curved, fast = 1.0 / samples, 0.0, 0.0, 0.0, 0.0
        for k in range(samples):
            across_path(gradient[k], velocity[k])
            if settings.way_out > 0.0:
                depth[k] = shorter_way_out(
                    position[k], depth[k], gradient[k], o, settings.way_out, enter, leave
                )
            v, slope, s = surrogate_step(max(depth[k], -LOOK), settings, scale)
            value += share * v
            by_scale += share * s
            for d in range(dimensions):
                offset[k, d] = (
                    position[k, d] - near_to[rows[k], d] + dual[0] * slope * gradient[k, d]
                )
            add_scaled(step, share, tables.projected[rows[k]], offset[k])
            if bends:
                bend = curvature_gradient(
                    velocity[k], acceleration[k], by_velocity, by_acceleration
                )
                v, slope, s = surrogate_step(
                    (bend - settings.curvature) * unit * unit, settings, scale
                )
                curved += share * v
                weight = share * dual[1] * slope * unit * unit
                add_scaled(step, weight, tables.projected_second[rows[k]], by_acceleration)
                add_scaled(step, weight, tables.projected_first[rows[k]], by_velocity)
            if hurries:
                speed = math.sqrt((velocity[k] * velocity[k]).sum()) + 1e-12
                v, slope, s = surrogate_step(
                    (speed - settings.speed) * tables.bandwidth, settings, scale
                )
                fast += share * v
                weight = share * dual[2] * slope * tables.bandwidth / speed
                add_scaled(step, weight, tables.projected_first[rows[k]], velocity[k])
        size = settings.step_size / (1.0 + dual[0] + dual[1] + dual[2])
        for d in range(dimensions):
            for m in range(count):
                weights[d, m] -= size * step[d, m]
        if averaged.shape[0] > 0:
            part = 1.0 / (number - begin + 1)
            for d in range(dimensions):
                for m in range(count):
                    averaged[d, m] += part * (weights[d, m] - averaged[d, m])
        if not settings.per_sample:
            scale -= SCALE_STEP * min(dual[0], 5.0) * by_scale
            scale = min(max(scale, SMALLEST_SCALE), LARGEST_SCALE)
        dual[0] = min(max(dual[0] + dual_step * value, 0.0), dual_cap)
        if bends:
            dual[1] = min(max(dual[1] + dual_step * curved, 0.0), dual_cap)
        if hurries:
            dual[2] = min(max(dual[2] + dual_step * fast, 0.0), dual_cap)
        violation = value
    return scale, violation


@compiled_allocating
def learn_until_proven(
    taken, until, check_every, weights, reference, tables, start, goal, o, proof, settings, dual,
    scale, jitter,
):  # fmt: skip
    """Alternate attempts at a proof and steps; return (steps, proven, scale, violation)."""
    violation = 0.0
    noise, nothing = Noise(np.empty(0), np.empty((0, 2, 0))), np.empty((0, 0))
    near_to = np.empty((tables.times.shape[0], weights.shape[0]))
    coefficients = np.empty((weights.shape[0], tables.atoms.shape[0]))
    positions_along(tables.values, tables.times, reference, start, goal, near_to)
    while True:
        expand(weights, tables.expansion, coefficients)
        norm = operator_norm(weights, tables.gram)
        status, _, _ = proven_from(
            0.0, tables.atoms, coefficients, tables.bandwidth, norm, start, goal, proof
        )
        if status == 1:
            return taken, True, scale, violation
        if taken >= until:
            return taken, False, scale, violation
        end = min(taken + check_every, until)
        scale, violation = take_steps(
            taken, end, weights, reference, near_to, tables, start, goal, o, settings, dual,
            scale, jitter, noise, nothing,
        )  # fmt: skip
        taken = end
