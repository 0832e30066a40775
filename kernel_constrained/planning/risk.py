# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Probabilities of collision, bounded from draws of the noise."""

import math
from collections.abc import Callable

import attrs
import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from kernel_constrained.core.compilation import compiled, compiled_allocating

Array = npt.NDArray[np.float64]
Law = Callable[[np.random.Generator, tuple[int, ...]], Array]

# A point that one draw in so many would bring into contact is left out.
NEVER = 1e-16


@attrs.frozen
class Risk:
    """Probabilities that a path meets an obstacle, where obstacles are not quite known.

    Each bound holds at ``confidence`` by itself.

    Attributes
    ----------
    by_time, by_length
        Upper bounds on the probability of contact at a random time, and at a random place, of
        the path.
    per_path
        Upper bound on the probability that the path meets anything at all.
    by_time_estimate, by_length_estimate, per_path_estimate
        Shares among the draws; NaN without any.
    draws
        How many.
    confidence
        Probability with which draws give a bound that is one.
    """

    by_time: float
    by_length: float
    per_path: float
    by_time_estimate: float
    by_length_estimate: float
    per_path_estimate: float
    draws: int
    confidence: float


def clopper_pearson(hits: int, draws: int, confidence: float) -> float:
    """Return the upper bound on a probability of which ``hits`` of ``draws`` came true.

    One-sided; exact in that it holds with ``confidence`` at least (Clopper and Pearson, 1934).

    Raises
    ------
    ValueError
        Where there are more hits than draws, or ``confidence`` is not between 0 and 1.
    """
    check_draws(draws, confidence)
    if not 0 <= hits <= draws:
        raise ValueError(f'hits must be from 0 to draws (got {hits} of {draws})')
    return 1.0 if hits == draws else float(betaincinv(hits + 1.0, draws - hits, confidence))


def check_draws(draws: int, confidence: float) -> None:
    """Raise ``ValueError`` where these give no bound."""
    if draws < 0:
        raise ValueError(f'draws must not be negative (got {draws})')
    if not 0.0 < confidence < 1.0:
        raise ValueError(f'confidence must be between 0 and 1 (got {confidence})')


def mean_bound(mean: float, draws: int, confidence: float) -> float:
    """Return the upper bound on the mean of a quantity in [0, 1] by that of independent draws.

    The largest p for which draws * KL(mean | p) <= log(1 / (1 - confidence)), KL being that of
    two coins (Hoeffding, 1963, theorem 1). For a mean of 0 it is that of Clopper and Pearson.
    """
    check_draws(draws, confidence)
    if draws == 0 or mean >= 1.0:
        return 1.0
    bound: float = solve_mean_bound(max(mean, 0.0), -math.log1p(-confidence) / draws)
    return bound


@compiled
def solve_mean_bound(mean, divergence):
    """Solve KL(mean | p) = divergence for p > mean, from above."""
    low, high = mean, 1.0
    while high - low > 1e-12:
        p = 0.5 * (low + high)
        kl = (1.0 - mean) * (math.log1p(-mean) - math.log1p(-p))
        if mean > 0.0:
            kl += mean * math.log(mean / p)
        if kl > divergence:
            high = p
        else:
            low = p
    return high


# -- laws of the noise: independent draws with mean 0 and variance 1 ------------------------------


def gaussian(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw from the normal distribution."""
    return rng.standard_normal(shape)


def laplace(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw from the two-sided exponential distribution."""
    return rng.laplace(0.0, math.sqrt(0.5), shape)


def student_t3(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw from Student's distribution with three degrees of freedom."""
    return rng.standard_t(3.0, shape) / math.sqrt(3.0)


def bimodal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw from two narrow normal distributions on either side of zero."""
    sides = np.where(rng.random(shape) < 0.5, -0.9, 0.9)
    return sides + math.sqrt(1.0 - 0.9**2) * rng.standard_normal(shape)


def outliers(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw from a normal distribution of which one draw in twenty is five times as wide."""
    wide = np.where(rng.random(shape) < 0.05, 5.0, 1.0)
    return wide * rng.standard_normal(shape) / math.sqrt(0.95 + 0.05 * 5.0**2)


LAWS: dict[str, Law] = {
    law.__name__: law for law in (gaussian, laplace, student_t3, bimodal, outliers)
}


# -- sampling -------------------------------------------------------------------------------------


def sampled_risk(
    positions: Array, time_weights: Array, length_weights: Array, points: Array, contact: Array,
    deviation: Array, rng: np.random.Generator, draws: int, confidence: float,
    covariance: Array | None = None, pivot: Array | None = None, law: Law | None = None,
) -> Risk:  # fmt: skip
    """Bound the probabilities that a path meets obstacles of uncertain position.

    Each draw displaces every point by itself, along x and y independently with ``deviation``, and
    all of them together as an error of the pose would: shifted, and turned about ``pivot``.
    Contact is looked for at ``positions`` only: they should be no further apart than is small
    beside ``contact``, since between two of them a distance d apart the centre comes closer to a
    point by d^2 / (8 contact) at most.

    Parameters
    ----------
    positions : (2, k)
        Of the robot's centre along the path.
    time_weights, length_weights : (k,)
        Share of the time, and of the length, that each stands for, in any unit; all the same
        where they sum to 0.
    points : (2, n)
        Where obstacles are thought to be.
    contact : (n,)
        Distance between centre and point below which they touch.
    deviation : (n,)
        Standard deviation of each point's position along either axis, without the pose's.
    rng
        Source of the draws.
    draws
        How many; with 0 nothing is known, and the bounds are 1.
    confidence
        Of each bound.
    covariance : (3, 3), optional
        Of the pose's x, y and yaw, where it is not exact; Gaussian.
    pivot : (2,), optional
        Position of the robot when the points were seen; needed with ``covariance``.
    law : optional
        Of the displacement of single points, one of :data:`LAWS`; Gaussian by default, for which
        only those draws are made that can matter.

    Raises
    ------
    ValueError
        Where shapes do not fit, weights are negative or not finite, or a pivot is missing.
    """
    check_draws(draws, confidence)
    positions, points, contact, deviation = checked_arrays(positions, points, contact, deviation)
    weights = np.stack(
        [normalized(time_weights, positions), normalized(length_weights, positions)]
    )
    if draws == 0:
        return Risk(1.0, 1.0, 1.0, math.nan, math.nan, math.nan, 0, confidence)
    poses, around = pose_errors(rng, draws, covariance, pivot)
    hit = drawn_contacts(
        rng, draws, positions, points, contact, deviation, poses, around, law
    )  # fmt: skip
    return risk_of(hit, weights, confidence)


def drawn_contacts(
    rng: np.random.Generator, draws: int, positions: Array, points: Array, contact: Array,
    deviation: Array, poses: Array, around: Array, law: Law | None,
) -> npt.NDArray[np.uint8]:  # fmt: skip
    """Draw the displacements; return which positions of the path touch, (draws, k)."""
    hit = np.zeros((draws, positions.shape[1]), dtype=np.uint8)
    gaps, slides = np.empty(points.shape[1]), np.empty(points.shape[1])
    fill_gaps(positions, points, contact, gaps)
    fill_slides(points, poses, around, slides)
    if law is None:
        hit_by_few(
            rng, positions, points, contact, deviation, gaps, slides, poses, around, hit
        )  # fmt: skip
    else:
        offsets = law(rng, (draws, 2, points.shape[1])) * deviation
        hit_by_all(offsets, positions, points, contact, gaps, poses, around, hit)
    return hit


def risk_of(hit: npt.NDArray[np.uint8], weights: Array, confidence: float) -> Risk:
    """Return the bounds by contacts (draws, k) at positions of weights (2, k): time and length."""
    draws = len(hit)
    by_time, by_length, paths = shares(hit, weights)
    return Risk(
        mean_bound(by_time, draws, confidence),
        mean_bound(by_length, draws, confidence),
        clopper_pearson(paths, draws, confidence),
        by_time, by_length, paths / draws, draws, confidence,
    )  # fmt: skip


def checked_arrays(
    positions: Array, points: Array, contact: Array, deviation: Array
) -> tuple[Array, Array, Array, Array]:
    """Return what the compiled code takes; raises ``ValueError`` where it does not fit together.

    Arrays of another layout would be compiled for anew, while the robot waits.
    """
    positions, points, contact, deviation = (
        np.ascontiguousarray(array, dtype=np.float64)
        for array in (positions, points, contact, deviation)
    )
    if positions.ndim != 2 or positions.shape[0] != 2 or positions.shape[1] == 0:
        raise ValueError(f'positions must be (2, k), k > 0 (got {positions.shape})')
    count = points.shape[-1]
    if points.shape != (2, count) or contact.shape != (count,) or deviation.shape != (count,):
        raise ValueError(
            'points, contact and deviation must be (2, n), (n,) and (n,) '
            f'(got {points.shape}, {contact.shape} and {deviation.shape})'
        )
    return positions, points, contact, deviation


def normalized(weights: Array, positions: Array) -> Array:
    """Return weights that sum to one; raises ``ValueError`` where that cannot be."""
    count, total = positions.shape[1], float(weights.sum())
    if weights.shape != (count,) or not 0.0 <= total < math.inf or weights.min() < 0.0:
        raise ValueError(
            f'weights must be {count} finite numbers and not negative (got {weights.shape} from '
            f'{weights.min():g} to {weights.max():g})'
        )
    return weights / total if total > 0.0 else np.full(count, 1.0 / count)


def pose_errors(
    rng: np.random.Generator, draws: int, covariance: Array | None, pivot: Array | None
) -> tuple[Array, Array]:
    """Return draws of an error of the pose, and what the error of yaw turns about.

    The former are x, y, cosine and sine of yaw, shape (draws, 4), or (0, 4) for an exact pose.
    """
    if covariance is None:
        return np.empty((0, 4)), np.zeros(2)
    if pivot is None:
        raise ValueError('a covariance of the pose needs a pivot: where the robot was')
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    errors, poses = rng.standard_normal((draws, 3)) @ root.T, np.empty((draws, 4))
    poses[:, :2] = errors[:, :2]
    poses[:, 2], poses[:, 3] = np.cos(errors[:, 2]), np.sin(errors[:, 2])
    return poses, np.ascontiguousarray(pivot, dtype=np.float64)


@compiled
def fill_gaps(positions, points, contact, gaps):
    """Fill ``gaps`` (n,) with how far each point is from touching the robot on its path."""
    x, y = points[0], points[1]
    for i in range(gaps.shape[0]):
        gaps[i] = math.inf
    for j in range(positions.shape[1]):  # inside, since a minimum over a loop is not vectorised
        px, py = positions[0, j], positions[1, j]
        for i in range(gaps.shape[0]):
            dx, dy = x[i] - px, y[i] - py
            squared = dx * dx + dy * dy
            gaps[i] = squared if squared < gaps[i] else gaps[i]
    for i in range(gaps.shape[0]):
        gaps[i] = math.sqrt(gaps[i]) - contact[i]


@compiled
def fill_slides(points, poses, pivot, slides):
    """Fill ``slides`` (n,) with how far at most the errors of the pose displace each point."""
    shift, turning = 0.0, 0.0
    for draw in range(poses.shape[0]):
        shift = max(shift, math.hypot(poses[draw, 0], poses[draw, 1]))
        turning = max(turning, math.hypot(1.0 - poses[draw, 2], poses[draw, 3]))
    for i in range(slides.shape[0]):
        slides[i] = shift + turning * math.hypot(points[0, i] - pivot[0], points[1, i] - pivot[1])


@compiled_allocating
def hit_by_few(rng, positions, points, contact, deviation, gaps, slides, poses, pivot, hit):
    """Mark which positions are hit in which draw, by Gaussian displacements of the points.

    A displacement in the plane exceeds s with probability p = exp(-s^2 / (2 deviation^2)). Which
    draws these are is drawn first, by the steps from one to the next, which are geometric; then
    how large they are, given that they are larger than s. No other can bring the point near.
    """
    draws = hit.shape[0]
    for i in range(points.shape[1]):
        least, variance = max(gaps[i] - slides[i], 0.0), deviation[i] ** 2
        p = 1.0
        if least > 0.0:
            p = math.exp(-0.5 * least * least / variance) if variance > 0.0 else 0.0
        if p < NEVER:
            continue
        draw = 0
        while True:
            if p < 1.0:
                skipped = math.log(1.0 - rng.random()) / math.log1p(-p)
                draw += int(min(skipped, draws))
            if draw >= draws:
                break
            size = math.sqrt(least * least + 2.0 * variance * rng.standard_exponential())
            bearing = 2.0 * math.pi * rng.random()
            mark(
                positions, points, contact, gaps, i, size * math.cos(bearing),
                size * math.sin(bearing), poses, pivot, draw, hit,
            )  # fmt: skip
            draw += 1


@compiled
def hit_by_all(offsets, positions, points, contact, gaps, poses, pivot, hit):
    """Mark which positions are hit in which draw, by given displacements (draws, 2, n)."""
    for draw in range(offsets.shape[0]):
        for i in range(points.shape[1]):
            mark(
                positions, points, contact, gaps, i, offsets[draw, 0, i], offsets[draw, 1, i],
                poses, pivot, draw, hit,
            )  # fmt: skip


@compiled
def mark(positions, points, contact, gaps, i, dx, dy, poses, pivot, draw, hit):
    """Mark the positions that point ``i`` touches when it is displaced by ``dx, dy``."""
    x, y = points[0, i], points[1, i]
    if poses.shape[0] > 0:
        ahead, left, cosine, sine = x - pivot[0], y - pivot[1], poses[draw, 2], poses[draw, 3]
        dx += poses[draw, 0] - (1.0 - cosine) * ahead - sine * left
        dy += poses[draw, 1] - (1.0 - cosine) * left + sine * ahead
    if gaps[i] > 0.0 and dx * dx + dy * dy < gaps[i] * gaps[i]:
        return
    x, y, squared, touched = x + dx, y + dy, contact[i] ** 2, hit[draw]
    for j in range(touched.shape[0]):
        away, aside = positions[0, j] - x, positions[1, j] - y
        touched[j] |= away * away + aside * aside < squared


@compiled
def shares(hit, weights):
    """Return the mean shares of time and length in contact, and in how many draws there is any."""
    by_time, by_length, paths = 0.0, 0.0, 0
    for draw in range(hit.shape[0]):
        touched, any_contact = hit[draw], 0
        for j in range(touched.shape[0]):
            any_contact |= touched[j]
        if any_contact == 0:
            continue
        paths += 1
        for j in range(touched.shape[0]):
            by_time += weights[0, j] * touched[j]
            by_length += weights[1, j] * touched[j]
    return by_time / hit.shape[0], by_length / hit.shape[0], paths
