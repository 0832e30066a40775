# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The stochastic primal-dual method on trajectories (Koppel et al., Example 2, Algorithm 1).

A trajectory ``f = reference + h`` is learned from random times: it stays near the reference,
``min E_t |h(t)|^2 / 2 + lambda |h|^2 / 2``, under the chance constraint that ``g(f(t)) > 0``
(inside an obstacle) has a probability of at most ``tolerance``, by its convex bound
(core/chance.py). Bounds on curvature and speed are constraints of the same kind.
"""

import functools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.chance import per_sample_slopes
from kernel_constrained.core.trajectory import Basis
from kernel_constrained.planning.config import PlannerConfig
from kernel_constrained.planning.obstacles import Obstacles
from kernel_constrained.planning.steps import (
    learn_until_proven,
    Noise,
    Settings,
    Tables,
    take_steps,
)

Array = npt.NDArray[np.float64]

# Constraints, and where their dual variables stand.
COLLISION, CURVATURE, SPEED = 0, 1, 2
# Dual variables begin at this over the tolerance.
DUAL_START = 1.0
# From a bow, whose side nobody has chosen, ways out of obstacles are looked for as far as this
# across the path, metres, and steps are longer than those to an optimum by this factor.
WAY_OUT, HASTE = 4.0, 4.0
# Steps from a bow before others have their turn; in each round twice as many, all in all.
TURN = 16
# Random times are drawn once and used in turn.
JITTERS = 64


class Learned(NamedTuple):
    """What came of some steps.

    Attributes
    ----------
    proven
        Whether the trajectory is.
    steps
        How many were taken.
    dual_variables : (3,)
        Of the constraints on collision, curvature and speed.
    scale
        Of the surrogate, metres.
    violation
        Value of the surrogate constraint in the last step: at most 0 where it holds.
    """

    proven: bool
    steps: int
    dual_variables: Array
    scale: float
    violation: float


@functools.lru_cache(maxsize=64)
def tables_of(basis: Basis) -> Tables:
    """Collect the tables of a basis."""
    return Tables(
        basis.bandwidth, basis.times, basis.values, basis.first, basis.second, basis.projected,
        basis.projected_first, basis.projected_second, basis.gram, basis.atoms, basis.expansion,
    )  # fmt: skip


def settings_of(config: PlannerConfig) -> Settings:
    """Collect the numbers of a configuration."""
    chance, learner, limits = config.chance, config.trajectory, config.limits
    inside, outside = per_sample_slopes(chance.surrogate, chance.tolerance)
    return Settings(
        chance.surrogate == 'exp', chance.mode == 'paper', inside, outside, chance.tolerance,
        chance.scale, learner.regularization, learner.step_size, limits.curvature,
        limits.speed * limits.duration, 0.0,
    )  # fmt: skip


def initial_dual(settings: Settings) -> Array:
    """Return the dual variables before the first step."""
    return np.array([DUAL_START / settings.tolerance, 0.0, 0.0])


def bow(basis: Basis, ends: tuple[Array, Array], aside: float) -> Array:
    """Return weights (D, m) of half a sine upon the chord, in the plane, metres to its left."""
    along = ends[1] - ends[0]
    across = np.zeros_like(along)
    across[:2] = -along[1], along[0]
    return np.multiply.outer(aside / max(np.hypot(*across[:2]), 1e-9) * across, sine_of(basis))


@functools.lru_cache(maxsize=64)
def sine_of(basis: Basis) -> Array:
    """Return weights (m,) of half a sine."""
    return basis.fit(np.sin(np.pi * basis.times)[:, None])[0]


class TrajectoryLearner:
    """Learns weights of a trajectory until it is proven.

    Parameters
    ----------
    config
        Of the planner.
    seed
        Of the random times and of the noise.
    """

    def __init__(self, config: PlannerConfig, seed: int = 0) -> None:
        self.settings = settings_of(config)
        self._without_side = self.settings._replace(
            step_size=HASTE * self.settings.step_size, way_out=WAY_OUT
        )
        self._check_every = config.trajectory.check_every
        rng = np.random.default_rng(seed)
        self._jitter = rng.random((JITTERS, config.trajectory.samples))

    def learn(
        self, weights: Array, reference: Array, basis: Basis, ends: tuple[Array, Array],
        obstacles: Obstacles, proof: Obstacles, steps: int,
    ) -> Learned:  # fmt: skip
        """Take steps on ``weights`` (D, m), in place, until the trajectory is proven.

        Parameters
        ----------
        weights, reference : (D, m)
            Of the trajectory and of the reference, both upon the chord between the ends.
        basis
            What they are weights of.
        ends
            Start and goal, (D,) each.
        obstacles
            What to learn to keep clear of.
        proof
            What the trajectory must be proven to keep clear of.
        steps
            How many at most; none where it is proven as it is.
        """
        return self._go_on(
            self._begun(), steps, self.settings, weights, reference, basis, ends, obstacles, proof
        )

    def learn_from_bows(
        self, asides: Iterable[float], basis: Basis, ends: tuple[Array, Array],
        obstacles: Obstacles, proof: Obstacles, steps: int,
    ) -> tuple[Array, Learned]:  # fmt: skip
        """Learn from several bows by turns until one of them is proven; near the straight line.

        A few steps tell most starts that lead from those that do not, so that each has a few of
        them before any has more.

        Parameters
        ----------
        asides
            How far aside of the straight line each bow begins, metres; 0 for the line itself.
        basis, ends, obstacles, proof
            As :meth:`learn` takes them.
        steps
            How many at most from each.

        Returns
        -------
        weights : (D, m)
            Of the path that is proven, else of the last one.
        learned
            What came of that one's steps.
        """
        sides = list(asides)
        if not sides:
            raise ValueError('asides must not be empty: 0 is the straight line')
        starts, so_far = list[Array](), list[Learned]()
        straight = bow(basis, ends, 0.0)
        until = 0
        while until < steps or not starts:
            until = min(max(2 * until, TURN), steps)
            for k, aside in enumerate(sides):
                if len(starts) == k:  # many never have a turn
                    starts.append(bow(basis, ends, aside))
                    so_far.append(self._begun())
                so_far[k] = self._go_on(
                    so_far[k], until, self._without_side, starts[k], straight, basis, ends,
                    obstacles, proof,
                )  # fmt: skip
                if so_far[k].proven:
                    return starts[k], so_far[k]
        return starts[-1], so_far[-1]

    def _begun(self) -> Learned:
        return Learned(False, 0, initial_dual(self.settings), self.settings.scale, 0.0)

    def _go_on(
        self, so_far: Learned, until: int, settings: Settings, weights: Array, reference: Array,
        basis: Basis, ends: tuple[Array, Array], obstacles: Obstacles, proof: Obstacles,
    ) -> Learned:  # fmt: skip
        """Take steps on ``weights`` and dual variables, in place, up to so many in all."""
        taken, proven, scale, violation = learn_until_proven(
            so_far.steps, until, self._check_every, weights, reference, tables_of(basis), ends[0],
            ends[1], obstacles, proof, settings, so_far.dual_variables, so_far.scale,
            self._jitter,
        )  # fmt: skip
        return Learned(proven, taken, so_far.dual_variables, scale, violation)

    def learn_under_noise(
        self, weights: Array, reference: Array, basis: Basis, ends: tuple[Array, Array],
        obstacles: Obstacles, noise: Noise, steps: int,
    ) -> Learned:  # fmt: skip
        """Take all of the steps with obstacles displaced at random; ``weights`` become their mean.

        The constraint is that on time *and* noise: what is learned meets the tolerance under the
        law that the noise was drawn from. The first half of the steps does not count in the mean.
        """
        dual, scale = initial_dual(self.settings), self.settings.scale
        tables = tables_of(basis)
        near_to = basis.trajectory(reference, *ends)(basis.times)
        mean, nothing = np.zeros_like(weights), np.empty((0, 0))
        for begin, end, averaged in (0, steps // 2, nothing), (steps // 2, steps, mean):
            scale, violation = take_steps(
                begin, end, weights, reference, near_to, tables, ends[0], ends[1], obstacles,
                self.settings, dual, scale, self._jitter, noise, averaged,
            )  # fmt: skip
        weights[:] = mean
        return Learned(False, steps, dual, scale, violation)
