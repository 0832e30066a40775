# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""From a rough way to a proven path: fit, learn, polish, compress, prove."""

import functools
import math
from collections.abc import Iterator

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.core.trajectory import Basis, basis_of, TABULATED, Trajectory
from kernel_constrained.planning.certificate import prove, Status
from kernel_constrained.planning.config import PlannerConfig
from kernel_constrained.planning.learning import Learned, TrajectoryLearner
from kernel_constrained.planning.limits import within_limits
from kernel_constrained.planning.noise import UnderNoise
from kernel_constrained.planning.polish import polish
from kernel_constrained.planning.polyline import arc_lengths, resampled
from kernel_constrained.planning.scene import Scene

Array = npt.NDArray[np.float64]

# Shares of the proof margin that a proof is attempted at, and the least that a new path is taken
# with as long as there may be a better one.
LEVELS = (1.0, 0.5, 0.2, 0.0)
GOOD = 0.5
# Bandwidths are powers of this below the widest one, so that their tables are made once.
RATIO = 1.15
WIDEST = 0.35
# Factors on the weight of bending that are tried where curvature is bounded.
STIFFNESSES = (1.0, 10.0, 100.0)


@attrs.frozen(eq=False)
class Candidate:
    """A path, and what is known of it.

    Attributes
    ----------
    trajectory
        The path.
    since
        Time on it at which the robot is.
    level
        Share of the proof margin that it is proven with, -1 where nothing is proven.
    length
        From its beginning to its end, metres.
    learned
        How it was learned.
    final
        Whether it ends at the goal.
    """

    trajectory: Trajectory
    since: float
    level: float
    length: float
    learned: Learned
    final: bool

    def at(self, since: float, level: float) -> 'Candidate':
        """Return the same path with the robot elsewhere on it, proven anew."""
        return Candidate(self.trajectory, since, level, self.length, self.learned, self.final)

    def is_short(self, share: float) -> bool:
        """Whether it ends before the goal and less than a share of it is left."""
        return not self.final and self.rest() < share * self.length

    def rest(self) -> float:
        """Length from the robot on, metres."""
        return self.trajectory.length(self.since, 33) if self.since > 0.0 else self.length


class CandidateMaker:
    """Makes candidates of rough ways.

    Parameters
    ----------
    config
        Of the planner.
    """

    def __init__(self, config: PlannerConfig) -> None:
        self._config = config
        self._learner = TrajectoryLearner(config)
        self.noise = UnderNoise(config)

    def basis(self, length: float) -> Basis:
        """Return the basis for a path of a length, metres."""
        relative = self._config.trajectory.bandwidth / max(length, 1e-3)
        steps = (
            math.ceil(math.log(WIDEST / relative) / math.log(RATIO)) if relative < WIDEST else 0
        )
        return basis_of(WIDEST / RATIO**steps)

    def margin(self, level: float) -> float:
        """Return the margin of a proof at a level, metres."""
        return level * self._config.robot.proof_margin

    def level(
        self, trajectory: Trajectory, scene: Scene, since: float = 0.0, at_most: float = 1.0
    ) -> float:
        """Return the highest level at which a trajectory is proven, -1 for none."""
        limits = self._config.limits
        if not within_limits(trajectory, limits.curvature, limits.speed * limits.duration, since):
            return -1.0
        for level in (level for level in LEVELS if level <= at_most):
            proof = prove(trajectory, scene.obstacles(self.margin(level)), since)
            if proof.status == Status.PROVEN:
                return level
        return -1.0

    def make(
        self, line: Array, scene: Scene, steps: int, near_to: Array | None = None,
        final: bool = True, under_noise: bool = False,
    ) -> Candidate:  # fmt: skip
        """Learn a path from a rough way that begins at the robot.

        Parameters
        ----------
        line : (k, D)
            The rough way.
        scene
            What is to be kept clear of.
        steps
            Of the learner, at most; with none a way counts only where it is free as it is.
        near_to : (k, D), optional
            A path to stay near; None for the straight way, which only learning stays near.
        final
            Whether the way ends at the goal.
        under_noise
            Whether the path is held to the probability of collision under noise, if one is asked.
        """
        length = arc_lengths(line)[-1]
        basis = self.basis(length)
        ends = line[0].copy(), line[-1].copy()
        weights = basis.fit(resampled(line, TABULATED))
        reference, attraction = np.zeros_like(weights), 0.0
        if near_to is not None:
            reference = basis.fit(resampled(near_to, TABULATED))
            attraction = (length / self._config.polish.reference_length) ** 2
        wanted = scene.obstacles(self._config.robot.margin)
        enough = scene.obstacles(self.margin(GOOD))
        learned = self._learner.learn(weights, reference, basis, ends, wanted, enough, steps)
        if steps == 0 and not learned.proven:
            trajectory = basis.trajectory(weights, *ends)
            return Candidate(trajectory, 0.0, -1.0, length, learned, final)
        best: Candidate | None = None
        for trajectory, allowed in self._versions(
            weights, reference, attraction, basis, ends, scene,
            steps, under_noise and self.noise.is_asked,
        ):  # fmt: skip
            level = self.level(trajectory, scene) if allowed else -1.0
            if best is None or level > best.level:
                best = Candidate(trajectory, 0.0, level, trajectory.length(), learned, final)
            if level >= GOOD:
                break
        assert best is not None
        return best

    def _versions(
        self, weights: Array, reference: Array, attraction: float, basis: Basis,
        ends: tuple[Array, Array], scene: Scene, steps: int,
        under_noise: bool,
    ) -> Iterator[tuple[Trajectory, bool]]:  # fmt: skip
        """Yield paths to be proven, the best first: polished, then as they were learned.

        With each comes whether noise allows it. Where the same margin does not fit everywhere,
        learning under noise may still find what fits.
        """
        settings, margin = self._config.polish, self._config.robot.margin

        def polished(spread: float, stiffness: float) -> Array:
            return polish(
                weights, reference, basis, ends, scene.obstacles(margin, spread),
                stiffness * settings.bending, attraction, settings.rounds,
            )  # fmt: skip

        def finished(version: Array) -> Trajectory:
            return basis.compressed(version, *ends, self._config.trajectory.budget)

        if settings.enabled:
            bounded = math.isfinite(self._config.limits.curvature)
            for stiffness in STIFFNESSES if bounded else STIFFNESSES[:1]:
                made = functools.partial(polished, stiffness=stiffness)
                if under_noise:
                    judged = self.noise.least_wide(made, finished, scene)
                    yield judged.trajectory, judged.bound <= self.noise.tolerance
                else:
                    yield finished(made(0.0)), True
        if under_noise:
            wanted = scene.obstacles(margin)
            noise = self.noise.displacements(scene, wanted.points.shape[1])
            self._learner.learn_under_noise(weights, reference, basis, ends, wanted, noise, steps)
        trajectory = finished(weights)
        yield trajectory, not under_noise or self.noise.allows(trajectory, scene)
