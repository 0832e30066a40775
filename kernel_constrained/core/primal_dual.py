# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of projected stochastic primal-dual learning (Koppel et al., Algorithm 1).

Three updates share the stream: the default one, which reaches the constrained optimum, the
paper's, and the penalty method. Why the default differs from the paper is in ``doc/notes.md``.
Each adds up a mini-batch, and leaves the newcomers' coefficients for KOMP.
"""

import math

import numpy as np

from kernel_constrained.core.compilation import compiled
from kernel_constrained.core.constraints import LARGEST_VIOLATION
from kernel_constrained.core.kernels import kernel_at, whole_vectors
from kernel_constrained.core.layout import (
    COUNT,
    DEFAULT,
    DUAL,
    DUAL_CAP,
    MEAN_DUAL,
    PAPER,
    POWER,
    SIGNIFICANCE,
    SMOOTHING,
    THRESHOLD,
    TOLERANCE,
)
from kernel_constrained.core.losses import implicit_step, loss_derivative, loss_value

# However short the averaging window, the size of a constraint is averaged over 100 steps.
SHORTEST_MEMORY = 0.01
# A shorter implicit step is an explicit one, but loses most digits in the difference it ends with.
SHORTEST_IMPLICIT = 1e-8


@compiled
def evaluate(weights, k, order, values):
    """Fill ``values`` with every function at the sample whose kernel vector is ``k``."""
    for f in range(weights.shape[0]):
        row = weights[f]
        total = 0.0
        for j in range(whole_vectors(order)):
            total += row[j] * k[j]
        values[f] = total


@compiled
def scale(weights, functions, order, factor):
    """Multiply the weights of the first ``functions`` by ``factor``."""
    for f in range(functions):
        row = weights[f]
        for j in range(whole_vectors(order)):
            row[j] *= factor


@compiled
def average(weights, outputs, order, weight, coefficients):
    """Move the averages towards the iterates, stored atoms and the newcomers alike."""
    for c in range(outputs):
        iterate, mean = weights[c], weights[outputs + c]
        for j in range(whole_vectors(order)):
            mean[j] += weight * (iterate[j] - mean[j])
        for b in range(coefficients.shape[0]):
            coefficients[b, outputs + c] = weight * coefficients[b, c]


@compiled
def decay_of(s, count):
    """Factor ``1 / sqrt(1 + t / decay_after)`` by which the step sizes have shrunk."""
    if s.mode != DEFAULT:
        return 1.0
    return 1.0 / math.sqrt(1.0 + count / s.decay_after)


@compiled
def averaging_weight(s, count):
    """Weight 2 / (t + 2) of the newest iterate, no less than one over the window."""
    return max(2.0 / (count / s.batch + 2.0), min(s.batch / s.averaging_window, 1.0))


@compiled
def multiplier_of(bounds, loss):
    """One plus the dual variables of the constraints in whose tail the loss lies."""
    total = 1.0
    for j in range(bounds.shape[0]):
        if loss > bounds[j, THRESHOLD]:
            total += bounds[j, DUAL]
    return total


@compiled
def default_step(s, bounds, state, d, batch, order):
    """Normalised primal step; tails, duals and thresholds are those of the average.

    The step is ``eta / (1 + sum mu)``, so that the multipliers cannot make it unstable, and goes
    no further than the smallest loss of the sample. Whether a sample lies in the tail is
    decided by the average: deciding by the iterate, or an implicit step, would distort the
    multipliers.
    """
    outputs, size = int(s.outputs), batch.x.shape[0]
    decay, weight = decay_of(s, state[COUNT]), averaging_weight(s, state[COUNT])
    eta = s.step_size * decay / multiplier_of(bounds, np.inf)

    # f <- (1 - eta lambda) f - eta (1 + sum mu_j [loss > z_j]) loss'(f(x), y) k(x, .)
    for b in range(size):
        y, values, newcomer = batch.y[b], batch.values[b], batch.coefficients[b]
        loss = loss_value(s.loss, s.huber_threshold, values[outputs:], y)
        norm = kernel_at(d.kernel_code, d.kernel_parameters, batch.x[b])
        longest = loss_derivative(s.loss, s.huber_threshold, values[:outputs], y, newcomer)
        step = min(eta * norm * multiplier_of(bounds, loss), longest)
        for c in range(outputs):
            newcomer[c] *= -step / (max(norm, 1e-300) * size)
        batch.losses[b] = loss
    scale(d.weights, outputs, order, max(1.0 - eta * s.regularization, 0.0))

    for j in range(bounds.shape[0]):
        dual_step(s, state, bounds[j], batch.losses)
    average(d.weights, outputs, order, weight, batch.coefficients)


@compiled
def dual_step(s, state, bound, losses):
    """Ascend in the dual variable and follow the quantile, for one constraint.

    ``h(f, z) = (1 - alpha)(z - gamma) + (loss - z)_+`` is divided by its running root mean
    square: the step needs no tuning to the units or the tail of the loss. Constraints share it.
    """
    decay, weight = decay_of(s, state[COUNT]), averaging_weight(s, state[COUNT])
    tail, threshold = 1.0 - bound[SIGNIFICANCE], bound[THRESHOLD]
    violation, share = tail * (threshold - bound[TOLERANCE]), 0.0
    for b in range(losses.shape[0]):
        violation += max(losses[b] - threshold, 0.0) / losses.shape[0]
        share += (1.0 if losses[b] > threshold else 0.0) / losses.shape[0]
    violation = min(violation, LARGEST_VIOLATION)
    scaling = min(weight, max(2.0 / (state[COUNT] / s.batch + 2.0), SHORTEST_MEMORY))
    bound[POWER] += scaling * (violation * violation - bound[POWER])
    # mu <- [(1 - eta_mu^2 delta) mu + eta_mu h / rms(h)]_+
    ascent = s.dual_step_size * decay / s.constraints
    dual = (1.0 - ascent * ascent * s.dual_regularization) * bound[DUAL]
    dual += ascent * violation / math.sqrt(bound[POWER] + 1e-300)
    bound[DUAL] = min(max(dual, 0.0), bound[DUAL_CAP])
    bound[MEAN_DUAL] += weight * (bound[DUAL] - bound[MEAN_DUAL])
    # z <- z - eta_z ((1 - alpha) - P(loss > z))
    descent = s.quantile_step_size * decay * bound[TOLERANCE]
    bound[THRESHOLD] = max(threshold - descent * (tail - share), 0.0)


@compiled
def published_step(s, bounds, state, d, batch, order):
    """Algorithm 1 with the constraint of Eq. (23), or the penalty method, as published.

    The penalty method replaces mu by ``rho [g]_+``, the gradient of ``rho/2 [g]_+^2``, with a
    coefficient rho that keeps doubling; its step is implicit, since rho outgrows any explicit
    one.
    """
    outputs, size = int(s.outputs), batch.x.shape[0]
    eta = s.step_size
    losses, tail, multipliers = batch.losses, batch.tail, batch.multipliers
    for b in range(size):
        losses[b] = loss_value(s.loss, s.huber_threshold, batch.values[b], batch.y[b])
        multipliers[b] = 1.0
    for j in range(bounds.shape[0]):
        g = collapsed_constraint(bounds[j], losses, tail)
        dual = bounds[j, DUAL]
        if s.mode == PAPER:
            # mu <- [(1 - eta^2 delta) mu + eta g(f(x), y)]_+, after the primal step
            following = (1.0 - eta * eta * s.dual_regularization) * dual + eta * g
        else:
            doublings = min(math.floor(state[COUNT] / s.batch / s.penalty_doubling), 900.0)
            dual = s.penalty * 2.0**doublings * max(g, 0.0)
            dual = following = min(dual, bounds[j, DUAL_CAP])
        bounds[j, DUAL] = min(max(following, 0.0), bounds[j, DUAL_CAP])
        for b in range(size):
            multipliers[b] += dual * tail[b] * size

    # f <- (1 - eta lambda) f - eta (loss' + sum mu_j g_j')
    for b in range(size):
        y, values, newcomer = batch.y[b], batch.values[b], batch.coefficients[b]
        norm = kernel_at(d.kernel_code, d.kernel_parameters, batch.x[b])
        step = eta * norm * multipliers[b]
        if s.mode == PAPER or step < SHORTEST_IMPLICIT:
            loss_derivative(s.loss, s.huber_threshold, values, y, newcomer)
            for c in range(outputs):
                newcomer[c] *= -eta * multipliers[b] / size
        else:
            implicit_step(s.loss, s.huber_threshold, values, y, step, newcomer)
            for c in range(outputs):
                newcomer[c] = (newcomer[c] - values[c]) / (norm * size)
    shrinkage = 1.0 - eta * s.regularization
    scale(d.weights, outputs, order, shrinkage if s.mode == PAPER else max(shrinkage, 0.0))


@compiled
def collapsed_constraint(bound, losses, tail):
    """Eq. (23) over a mini-batch: ``min_z z + mean((loss - z)_+) / (1 - alpha) - gamma``.

    Fills ``tail`` with its derivatives by the losses. Of a single sample what is left is the
    loss, plus a constant where the positive part is smoothed.
    """
    size, share = losses.shape[0], 1.0 - bound[SIGNIFICANCE]
    if bound[SMOOTHING] > 0.0 and share < 1.0:
        return smoothed_constraint(bound, losses, tail)
    for b in range(size):
        tail[b] = 0.0
    left, total = 1.0, 0.0
    while left > 1e-12:
        worst = -1
        for b in range(size):
            if tail[b] == 0.0 and (worst < 0 or losses[b] > losses[worst]):
                worst = b
        if worst < 0:
            break
        tail[worst] = min(1.0 / (size * share), left)
        left -= tail[worst]
        total += tail[worst] * losses[worst]
    return total - bound[TOLERANCE]


@compiled
def smoothed_constraint(bound, losses, tail):
    """Eq. (23) with the softplus of temperature ``s``; z by bisection of its derivative."""
    size, share, s = losses.shape[0], 1.0 - bound[SIGNIFICANCE], bound[SMOOTHING]
    edge = s * math.log(bound[SIGNIFICANCE] / share)  # z - loss of a single sample
    low = high = losses[0] + edge
    for b in range(1, size):
        low, high = min(low, losses[b] + edge), max(high, losses[b] + edge)
    for _ in range(60):
        z = 0.5 * (low + high)
        above = 0.0
        for b in range(size):
            above += 1.0 / (1.0 + math.exp(min((z - losses[b]) / s, 700.0))) / size
        if above > share:
            low = z
        else:
            high = z
    z = 0.5 * (low + high)
    total = z
    for b in range(size):
        excess = (losses[b] - z) / s
        softplus = math.log1p(math.exp(-abs(excess))) + max(excess, 0.0)
        total += s * softplus / (size * share)
        tail[b] = 1.0 / (1.0 + math.exp(min(-excess, 700.0))) / (size * share)
    return total - bound[TOLERANCE]
