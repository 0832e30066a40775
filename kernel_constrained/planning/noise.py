# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Paths whose probability of collision is bounded where obstacles are not quite known.

Each obstacle is kept clear of by so many standard deviations of its position in addition: by the
least number with which the probability, bounded from draws of the noise, is at most the tolerance.
The draws are made once and used for every path, so that paths differ in what they risk and not in
their luck.

The bound holds although the number is chosen by the draws that it comes from. Both the probability
and its bound fall with the number. Let the probability be the tolerance at k: a smaller number is
only chosen where the bound at k is less than the probability there, which is as rare as the
confidence says (Angelopoulos et al., Learn then Test, section 3: fixed sequence testing).
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from kernel_constrained.core.compilation import compiled_allocating
from kernel_constrained.core.trajectory import Trajectory
from kernel_constrained.planning.config import IGNORED, PATH, PlannerConfig
from kernel_constrained.planning.risk import (
    clopper_pearson,
    fill_gaps,
    LAWS,
    mean_bound,
    shares,
)
from kernel_constrained.planning.scene import Scene
from kernel_constrained.planning.steps import Noise

Array = npt.NDArray[np.float64]

# Positions along a path at which it is held against the draws.
POSITIONS = 128
# Points beyond so many use the draws of those before, in another order: by this share of them on.
COLUMNS, SHIFT = 32, 0.381966
# Standard deviations that are kept at most, and how many paths are tried.
MOST, ATTEMPTS = 8.0, 8
# Least step to more of them, and by how much steps go beyond what they should suffice.
LEAST_STEP, BEYOND = 0.25, 1.1
# Least that is believed of how the quantile of the probability grows with the number.
FLATTEST = 0.3
# Standard deviations by which paths differ at most that are mixed in place of a polished one.
NEAR = 1.0
# Share of the tolerance from which a bound is near enough to it.
CLOSE = 0.9
# Probabilities nearer to 0 or 1 than this count as this: there draws say nothing of them.
RAREST = 1e-4
# Share of the bound below which keeping more has to bring it, for still more to be tried.
WORTH = 0.95


class Draws(NamedTuple):
    """Displacements of points in standard deviations, for each column the largest first.

    Attributes
    ----------
    size, x, y : (COLUMNS, draws)
        The displacements, and how long they are.
    number : (COLUMNS, draws)
        Which draw each belongs to.
    """

    size: Array
    x: Array
    y: Array
    number: npt.NDArray[np.int64]


class Judged(NamedTuple):
    """A path, how many standard deviations it keeps, and the bound on its probability."""

    spread: float
    weights: Array
    trajectory: Trajectory
    bound: float


@functools.lru_cache(maxsize=16)
def unsorted_draws(law: str, count: int) -> Array:
    """Return so many draws from one of ``risk.LAWS``, (count, 2, COLUMNS), always the same."""
    return LAWS[law](np.random.default_rng(0), (count, 2, COLUMNS))


@functools.lru_cache(maxsize=16)
def draws_of(law: str, count: int) -> Draws:
    """Return the same, sorted by size."""
    x, y = unsorted_draws(law, count).transpose(1, 2, 0)
    size = np.hypot(x, y)
    number = np.argsort(-size, axis=1)
    size, x, y = (np.take_along_axis(a, number, axis=1) for a in (size, x, y))
    return Draws(size, x, y, number)


class UnderNoise:
    """Judges paths, and makes them, by their probability of collision under the sensor's noise.

    Each point of a scene is displaced by itself, along x and y independently, with its standard
    deviation; the map and circles are exact. Errors of the pose are not in it: they are kept
    clear of by the scene itself.

    Parameters
    ----------
    config
        Of the planner: ``chance.under_noise`` says which probability is bounded.

    Attributes
    ----------
    tolerance
        What it is to be at most.
    """

    def __init__(self, config: PlannerConfig) -> None:
        chance = config.chance
        self.tolerance = chance.tolerance
        self._of = chance.under_noise
        self._confidence = config.certificate.confidence
        self._law, self._count = config.scan.noise, chance.draws

    @property
    def is_asked(self) -> bool:
        """Whether any probability is to be bounded."""
        return self._of != IGNORED

    def allows(self, trajectory: Trajectory, scene: Scene, since: float = 0.0) -> bool:
        """Tell whether the probability is bounded by the tolerance, or none is asked."""
        return not self.is_asked or self.bound(trajectory, scene, since) <= self.tolerance

    def bound(self, trajectory: Trajectory, scene: Scene, since: float = 0.0) -> float:
        """Return the upper bound, from time ``since`` on.

        Parameters
        ----------
        trajectory
            The path; obstacles are columns for one in space.
        scene
            What it may collide with.
        since
            Time on the path, 0 to 1, at which the robot is.
        """
        positions = trajectory.sampled(since, POSITIONS)[0][:, :2].T
        by_time, paths = contacts(
            np.ascontiguousarray(positions), scene.points, scene.contact, scene.deviation,
            draws_of(self._law, self._count),
        )  # fmt: skip
        if self._of == PATH:
            return clopper_pearson(paths, self._count, self._confidence)
        return mean_bound(by_time, self._count, self._confidence)

    def displacements(self, scene: Scene, count: int) -> Noise:
        """Return the noise for the learner, of ``count`` points that begin with the scene's."""
        exact = np.zeros(count - len(scene.deviation))
        deviation = np.concatenate([scene.deviation, exact])
        return Noise(deviation, unsorted_draws(self._law, self._count))

    def least_wide(
        self, made: Callable[[float], Array], finished: Callable[[Array], Trajectory],
        scene: Scene,
    ) -> Judged:  # fmt: skip
        """Return the path that keeps the fewest standard deviations with a bound that will do.

        Where none will do, that with the least bound. By interpolation in the normal quantile of
        the bound, which grows about as the number does.

        Parameters
        ----------
        made
            Makes the weights (D, m) of a path that keeps so many standard deviations.
        finished
            Makes the path of weights.
        scene
            What it may collide with.
        """

        def judged(spread: float, weights: Array) -> Judged:
            trajectory = finished(weights)
            return Judged(spread, weights, trajectory, self.bound(trajectory, scene))

        wanted = quantile(0.5 * (1.0 + CLOSE) * self.tolerance)
        low, high = judged(0.0, made(0.0)), None
        if low.bound <= self.tolerance:
            return low
        slope = 1.0
        for _ in range(ATTEMPTS):
            missing = wanted - quantile(low.bound)
            if high is None:
                if low.spread >= MOST:
                    break
                spread = min(low.spread + max(BEYOND * missing / slope, LEAST_STEP), MOST)
                one = judged(spread, made(spread))
                slope = (quantile(one.bound) - quantile(low.bound)) / (spread - low.spread)
                slope = max(slope, FLATTEST)
            else:
                share = missing / (quantile(high.bound) - quantile(low.bound))
                spread = low.spread + share * (high.spread - low.spread)
                if high.spread - low.spread < NEAR:
                    one = judged(spread, low.weights + share * (high.weights - low.weights))
                else:
                    one = judged(spread, made(spread))
            if one.bound <= self.tolerance:
                high = one
                if one.bound >= CLOSE * self.tolerance:
                    break
            elif high is None and one.bound > WORTH * low.bound and low.spread > 0.0:
                return min(low, one, key=lambda a: a.bound)
            else:
                low = one
        return high or low


def quantile(probability: float) -> float:
    """Return by how many standard deviations a normal variable is exceeded this seldom."""
    return float(-ndtri(min(max(probability, RAREST), 1.0 - RAREST)))


@compiled_allocating
def contacts(positions, points, contact, deviation, draws):
    """Return the share of time in contact, and in how many draws there is any.

    Draws are sorted: a point is looked at in those only that are large enough to bring it to the
    path, and only where on the path they may. Rows of ``hit`` are for the draws that are, in the
    order in which they come.
    """
    count, of = draws.size.shape[1], positions.shape[1]
    hit, row_of, rows = np.empty((count, of), np.uint8), np.full(count, -1), 0
    gaps, apart = np.empty(points.shape[1]), np.empty(of)
    fill_gaps(positions, points, contact, gaps)
    for i in range(points.shape[1]):
        if deviation[i] * draws.size[i % COLUMNS, 0] < gaps[i]:
            continue
        column, shift = i % COLUMNS, int((i // COLUMNS) * SHIFT * count)
        for j in range(of):
            away, aside = positions[0, j] - points[0, i], positions[1, j] - points[1, i]
            apart[j] = math.sqrt(away * away + aside * aside) - contact[i]
        first, last, squared = 0, of, contact[i] * contact[i]
        for place in range(count):
            size = deviation[i] * draws.size[column, place]
            while first < last and apart[first] > size:
                first += 1
            while first < last and apart[last - 1] > size:
                last -= 1
            if first == last:
                break
            number = (draws.number[column, place] + shift) % count
            if row_of[number] < 0:
                row_of[number] = rows
                hit[rows] = 0
                rows += 1
            x = points[0, i] + deviation[i] * draws.x[column, place]
            y = points[1, i] + deviation[i] * draws.y[column, place]
            touched = hit[row_of[number]]
            for j in range(first, last):
                away, aside = positions[0, j] - x, positions[1, j] - y
                touched[j] |= away * away + aside * aside < squared
    if rows == 0:
        return 0.0, 0
    by_time, _, paths = shares(hit[:rows], np.full((2, of), 1.0 / of))
    return by_time * rows / count, paths
