# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What can be chosen of the planner: the one source of its parameters."""

import math

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.configuration import ConfigurationError, group, parameter
from kernel_constrained.core.chance import SURROGATES
from kernel_constrained.perception.config import MountingConfig
from kernel_constrained.planning.risk import clopper_pearson, LAWS

UNSEEN = ('free', 'blocked')
# Probabilities of collision under noise that can be bounded: none, at a random time, of the path.
UNDER_NOISE = IGNORED, TIME, PATH = 'ignored', 'time', 'path'


@attrs.frozen
class RobotConfig:
    """The disc that must not touch anything."""

    radius: float = parameter(
        0.3, 'radius of a disc around the robot', unit='m', low=1e-3, high=1e3
    )
    margin: float = parameter(
        0.12, 'distance beyond the radius that paths are learned to keep where there is room',
        unit='m', low=0.0, high=1e3,
    )  # fmt: skip
    proof_margin: float = parameter(
        0.06, 'distance beyond the radius that is proven where there is room; at most margin',
        unit='m', low=0.0, high=1e3,
    )  # fmt: skip

    tracking: float = parameter(
        0.05, 'distance of the robot from its path beyond which it is planned anew', unit='m',
        low=0.0, high=1e3,
    )  # fmt: skip
    goal_distance: float = parameter(
        0.1, 'distance from the goal at which it is reached', unit='m', low=1e-3, high=1e3
    )

    def __attrs_post_init__(self) -> None:
        """Refuse proofs of more than is learned."""
        if self.proof_margin > self.margin:
            raise ConfigurationError(
                f'proof_margin must not exceed margin (got {self.proof_margin:g} and '
                f'{self.margin:g}): what was not learned to be kept is rarely proven'
            )


@attrs.frozen
class SensingConfig:
    """What a scan says of obstacles."""

    max_age: float = parameter(
        0.5, 'age of a scan beyond which nothing is planned from it', unit='s', low=0.0,
        runtime=True,
    )  # fmt: skip
    max_range: float = parameter(
        math.inf, 'range beyond which a beam counts as having met nothing', unit='m', low=1e-3,
        runtime=True,
    )  # fmt: skip
    range_deviation: float = parameter(
        0.03, 'standard deviation of a range', unit='m', low=0.0, high=1e3
    )
    noise: str = parameter(
        'gaussian', 'law of the errors of end points that probabilities of collision are of',
        choices=tuple(LAWS),
    )  # fmt: skip
    unseen: str = parameter(
        'free', 'whether a path may be planned through space that was not seen; what is published '
        'as proven never is', choices=UNSEEN,
    )  # fmt: skip


@attrs.frozen
class WorkspaceConfig:
    """The box that the robot's disc stays inside, in the frame of the path."""

    x_min: float = parameter(-math.inf, 'smallest x', unit='m')
    x_max: float = parameter(math.inf, 'largest x', unit='m')
    y_min: float = parameter(-math.inf, 'smallest y', unit='m')
    y_max: float = parameter(math.inf, 'largest y', unit='m')
    z_min: float = parameter(-math.inf, 'smallest z of a path in three dimensions', unit='m')
    z_max: float = parameter(math.inf, 'largest z of a path in three dimensions', unit='m')

    def __attrs_post_init__(self) -> None:
        """Refuse an empty box."""
        for axis in 'xyz':
            low, high = getattr(self, f'{axis}_min'), getattr(self, f'{axis}_max')
            if not low < high:
                raise ConfigurationError(
                    f'{axis}_max must exceed {axis}_min (got {high:g} and {low:g})'
                )


@attrs.frozen
class MapConfig:
    """What an occupancy grid says of obstacles."""

    occupied_at: int = parameter(
        65, 'occupancy from which a cell is an obstacle, in percent', low=1, high=100
    )
    unknown: str = parameter('free', 'whether cells that are unknown block', choices=UNSEEN)


def circles_of(texts: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Return circles (3, n) of texts 'x y radius'; raises ConfigurationError."""
    circles = []
    for text in texts:
        try:
            x, y, radius = (float(word) for word in text.split())
        except ValueError:
            x = y = radius = math.nan
        if not (math.isfinite(x + y + radius) and radius >= 0.0):
            raise ConfigurationError(
                f"obstacles.circles must be 'x y radius' in metres (got {text!r})"
            )
        circles.append((x, y, radius))
    return np.array(circles).reshape(-1, 3).T.copy()


@attrs.frozen
class ObstacleConfig:
    """What is known beforehand."""

    circles: tuple[str, ...] = parameter(
        (), "circles to keep clear of, each as 'x y radius' in metres"
    )

    def __attrs_post_init__(self) -> None:
        """Refuse what is no circle."""
        circles_of(self.circles)


@attrs.frozen
class MemoryConfig:
    """What is remembered of earlier scans."""

    enabled: bool = parameter(True, 'whether earlier scans are remembered')
    voxel: float = parameter(
        0.1, 'side of the cells in which end points are averaged', unit='m', low=1e-3, high=1e3
    )
    radius: float = parameter(
        15.0, 'distance from the robot beyond which points are forgotten', unit='m', low=1e-2,
        high=1e3,
    )  # fmt: skip
    min_hits: int = parameter(2, 'end points in a cell from which it counts', low=1, high=1000)


@attrs.frozen
class MovingConfig:
    """Room for what comes towards free space."""

    lookahead: float = parameter(
        1.0, 'time for which the advance of what moves is kept clear of; 0 for not at all',
        unit='s', low=0.0, high=60.0,
    )  # fmt: skip
    fastest: float = parameter(
        1.5, 'speed of it that is believed at most', unit='m/s', low=0.0, high=1e2
    )


@attrs.frozen
class ChanceConfig:
    """The constraint P(collision) <= tolerance and its convex surrogate."""

    tolerance: float = parameter(
        0.05, 'bound on the probability of collision at a random time of the path', low=1e-6,
        high=0.999,
    )  # fmt: skip
    surrogate: str = parameter(
        'cvar', 'convex bound on the probability: CVaR or exponential (Bernstein)',
        choices=SURROGATES,
    )  # fmt: skip
    mode: str = parameter(
        'default', 'the scale as a shared primal variable, or per sample as Eq. (24) of the paper '
        'has it, which bounds nothing', choices=('default', 'paper'),
    )  # fmt: skip
    scale: float = parameter(
        0.3, 'scale of the surrogate at the beginning', unit='m', low=1e-6, high=1e6
    )
    under_noise: str = parameter(
        IGNORED, 'which probability of collision under the noise of the sensor the tolerance is '
        'for, too: none, at a random time of the path, or anywhere on the path',
        choices=UNDER_NOISE,
    )  # fmt: skip
    draws: int = parameter(
        4096, 'draws of the noise from which that is bounded, with certificate.confidence',
        low=1, high=100000,
    )  # fmt: skip


@attrs.frozen
class TrajectoryConfig:
    """The learner of a trajectory."""

    bandwidth: float = parameter(
        1.3, 'width of the kernel along the path', unit='m', low=1e-3, high=1e3
    )
    regularization: float = parameter(1e-3, 'weight of the squared RKHS norm', low=0.0)
    step_size: float = parameter(0.5, 'step size on the gradient over 1 + dual variable', low=1e-6)
    samples: int = parameter(32, 'random times of a step', low=1, high=4096)
    max_steps: int = parameter(300, 'steps after which a candidate is given up', low=0)
    quick_steps: int = parameter(16, 'steps after which another candidate is tried first', low=0)
    check_every: int = parameter(4, 'steps from one attempt at a proof to the next', low=1)
    budget: float = parameter(
        1e-3, 'largest displacement by which a path is compressed', unit='m', low=0.0, high=1e3
    )


@attrs.frozen
class LimitConfig:
    """Bounds on the shape of a path."""

    curvature: float = parameter(math.inf, 'largest curvature, inf for none', unit='1/m', low=1e-6)
    speed: float = parameter(
        math.inf, 'largest speed where the path is run through in duration, inf for none',
        unit='m/s', low=1e-6,
    )  # fmt: skip
    duration: float = parameter(
        10.0, 'time in which a path is run through from one end to the other', unit='s', low=1e-3
    )


@attrs.frozen
class SeedConfig:
    """The grid search that finds the sides on which obstacles can be passed."""

    spacing: float = parameter(0.125, 'spacing of the grid', unit='m', low=1e-3, high=1e3)
    window: float = parameter(
        3.0,
        'how far the search goes beyond robot, reference and goal',
        unit='m',
        low=0.0,
        high=1e4,
    )
    alternatives: int = parameter(2, 'sides that are tried', low=1, high=16)
    switch_gain: float = parameter(
        0.1, 'share by which another side must be shorter to be changed to', low=0.0, high=1.0
    )
    horizon: float = parameter(
        15.0, 'length of path that is planned at once', unit='m', low=1e-2, high=1e4
    )


@attrs.frozen
class PolishConfig:
    """Shortening and straightening of a feasible path."""

    enabled: bool = parameter(True, 'whether feasible paths are polished')
    bending: float = parameter(
        1e-3, 'weight of squared second against squared first derivatives', low=0.0
    )
    rounds: int = parameter(
        6, 'times that obstacles are replaced by half-planes at most', low=1, high=1000
    )
    reference_length: float = parameter(
        0.3, 'length over which a reference path is smoothed; less stays nearer to it', unit='m',
        low=1e-3, high=1e6,
    )  # fmt: skip


@attrs.frozen
class CertificateConfig:
    """Proofs, and probabilities by sampling."""

    seen_slack: float = parameter(
        0.05, 'how far the disc may stick out of what was seen', unit='m', low=0.0, high=1e2
    )
    draws: int = parameter(
        299, 'draws of the noise from which probabilities of collision are bounded; 299 without a '
        'collision bound it by 0.01', low=0, high=1000000,
    )  # fmt: skip
    confidence: float = parameter(0.95, 'confidence of these bounds', low=0.5, high=0.999999)
    spacing: float = parameter(
        0.1, 'distance between the positions that are published', unit='m', low=1e-3, high=1e2
    )


@attrs.frozen
class PlannerConfig:
    """All that decides which path is planned from a stream of scans and poses."""

    robot: RobotConfig = group(RobotConfig)
    scan: SensingConfig = group(SensingConfig)
    mounting: MountingConfig = group(MountingConfig)
    workspace: WorkspaceConfig = group(WorkspaceConfig)
    map: MapConfig = group(MapConfig)
    obstacles: ObstacleConfig = group(ObstacleConfig)
    memory: MemoryConfig = group(MemoryConfig)
    moving: MovingConfig = group(MovingConfig)
    chance: ChanceConfig = group(ChanceConfig)
    trajectory: TrajectoryConfig = group(TrajectoryConfig)
    limits: LimitConfig = group(LimitConfig)
    seed: SeedConfig = group(SeedConfig)
    polish: PolishConfig = group(PolishConfig)
    certificate: CertificateConfig = group(CertificateConfig)

    def __attrs_post_init__(self) -> None:
        """Refuse a tolerance that so few draws never bound a probability by."""
        chance = self.chance
        least = clopper_pearson(0, chance.draws, self.certificate.confidence)
        if chance.under_noise != IGNORED and least > chance.tolerance:
            raise ConfigurationError(
                f'chance.tolerance must be at least {least:.2g} under noise, which is what '
                f'{chance.draws} draws without a collision bound (got {chance.tolerance:g}): '
                'more chance.draws, or a larger tolerance'
            )
