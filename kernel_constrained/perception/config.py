# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What can be chosen of the filter: the one source of its parameters."""

import math
from typing import Any

import attrs

from kernel_constrained.configuration import ConfigurationError, group, parameter, same_as
from kernel_constrained.core import CVaR, Gaussian, Polynomial, PrimalDualLearner
from kernel_constrained.core.subquantile import SubquantileLearner
from kernel_constrained.perception.geometry import Mounting

LEARNER = attrs.fields_dict(PrimalDualLearner)
BOUND = attrs.fields_dict(CVaR)
WINDOW = attrs.fields_dict(SubquantileLearner)

TARGETS = ('axis', 'motion', 'pose')
AXES = ('x', 'y', 'z', 'yaw')
SCALINGS = ('learned', 'fixed')

# Radians; a little more than a turn, so that 3.15 may stand for pi.
FULL_TURN = 6.3


@attrs.frozen
class ScanFeatureConfig:
    """How a scan becomes the learner's inputs."""

    type: str = parameter(
        'sectors', 'features of a scan: median ranges of sectors, or ranges at a grid of bearings',
        choices=('sectors', 'beams'),
    )  # fmt: skip
    sectors: int = parameter(24, 'equal sectors of bearing of type sectors', low=1, high=4096)
    beams: int = parameter(72, 'bearings of the grid of type beams', low=2, high=4096)
    bearing_min: float = parameter(
        -math.pi, "bearing at which the first sector begins, in the robot's frame", unit='rad',
        low=-7.0, high=7.0,
    )  # fmt: skip
    bearing_max: float = parameter(
        math.pi, "bearing at which the last sector ends, in the robot's frame", unit='rad',
        low=-7.0, high=7.0,
    )  # fmt: skip
    far: float = parameter(
        50.0, 'range that stands for no return and for where there is no valid beam', unit='m',
        low=1e-3, high=1e9,
    )  # fmt: skip
    half_range: float = parameter(
        2.0, 'range r0 in the feature r / (r + r0): how near is near', unit='m', low=1e-3, high=1e9
    )

    @property
    def count(self) -> int:
        """Features of a scan."""
        return self.sectors if self.type == 'sectors' else self.beams

    def __attrs_post_init__(self) -> None:
        """Refuse sectors that are empty or overlap."""
        if not 0.0 < self.bearing_max - self.bearing_min <= FULL_TURN:
            raise ConfigurationError(
                'bearing_max must exceed bearing_min by at most a full turn '
                f'(got {self.bearing_max:g} and {self.bearing_min:g})'
            )


@attrs.frozen
class FeatureConfig(ScanFeatureConfig):
    """How a scan, or a single range, becomes the learner's inputs."""

    type: str = parameter(
        'sectors', 'features of a scan: median ranges of sectors, ranges at a grid of bearings, '
        'or a single range', choices=('sectors', 'beams', 'range'),
    )  # fmt: skip
    max_elapsed: float = parameter(
        10.0, 'elapsed time beyond which a motion counts as this long', unit='s', low=0.0, high=1e9
    )
    scaling: str = parameter(
        'learned', 'whether features are scaled by the range that they have had', choices=SCALINGS
    )

    @property
    def count(self) -> int:
        """Features of a scan, or of a range."""
        return 1 if self.type == 'range' else super().count


@attrs.frozen
class MountingConfig:
    """Where the sensor sits on the robot; features are those of the robot's frame."""

    x: float = parameter(
        0.0, "sensor ahead of the robot's centre", unit='m', low=-1e3, high=1e3, runtime=True
    )
    y: float = parameter(
        0.0, "sensor left of the robot's centre", unit='m', low=-1e3, high=1e3, runtime=True
    )
    yaw: float = parameter(
        0.0, "bearing of the sensor's forward axis", unit='rad', low=-7.0, high=7.0, runtime=True
    )
    upside_down: bool = parameter(
        False, 'whether the sensor is rolled over: its bearings run the other way', runtime=True
    )


def mounting_of(config: MountingConfig) -> Mounting:
    """Mounting by its parameters."""
    return Mounting(config.x, config.y, config.yaw, config.upside_down)


@attrs.frozen
class TargetConfig:
    """What the filter estimates, and the scale of it.

    The learner sees ``(quantity - offset) / scale``: its loss, tolerance and step sizes are in
    these units. A position has scale ``position_scale``; an angle, and cosine and sine of one,
    ``yaw_scale``.
    """

    type: str = parameter('motion', 'quantity that is estimated', choices=TARGETS)
    axis: str = parameter('x', 'coordinate of type axis', choices=AXES)
    position_scale: float = parameter(
        1.0, 'unit of the loss for a position or displacement', unit='m', low=1e-9, high=1e9
    )
    position_offset: float = parameter(
        0.0, 'typical value of the first position or displacement, where scaling is fixed',
        unit='m', low=-1e9, high=1e9,
    )  # fmt: skip
    yaw_scale: float = parameter(
        1.0, 'unit of the loss for an angle or rotation', unit='rad', low=1e-9, high=1e9
    )
    scaling: str = parameter(
        'learned', 'whether offset and cut-off follow the range that the quantity has had',
        choices=SCALINGS,
    )  # fmt: skip
    clip: float = parameter(
        4.0, 'where a target is cut off before it is learned: scales, or quarters of its range',
        low=0.1,
    )  # fmt: skip


@attrs.frozen
class UncertaintyConfig:
    """What the covariance of an estimate is made of."""

    window: int = parameter(
        1000, 'newest pairs that covariance and scaling are learned from', low=20, high=100000
    )


@attrs.frozen
class PoseConfig:
    """What is believed of the trusted pose."""

    max_jump: float = parameter(
        math.inf, 'distance between two poses beyond which it was no motion', unit='m', low=0.0,
        runtime=True,
    )  # fmt: skip


@attrs.frozen
class PairingConfig:
    """How scans and trusted poses are joined by stamp."""

    max_gap: float = parameter(
        0.5, 'largest gap between two poses to interpolate in', unit='s', low=0.0
    )
    queue_size: int = parameter(100, 'scans and poses that wait for each other', low=1)


@attrs.frozen
class KernelLearnerConfig:
    """The learner, on inputs of order one, by steps of first order."""

    kernel: str = parameter('gaussian', 'kernel', choices=('gaussian', 'polynomial'))
    bandwidth: float = parameter(
        3.5,
        'width of the Gaussian kernel on scaled inputs, about 0.7 sqrt(their number)',
        low=1e-6,
    )
    degree: int = same_as(attrs.fields(Polynomial).degree)
    offset: float = same_as(attrs.fields(Polynomial).offset)
    constrained: bool = parameter(True, 'whether the tail of the loss is bounded')
    significance: float = same_as(BOUND['significance'])
    tolerance: float = same_as(BOUND['tolerance'])
    mode: str = same_as(LEARNER['mode'])
    step_size: float = same_as(LEARNER['step_size'])
    parsimony: float = same_as(LEARNER['parsimony'])
    regularization: float = same_as(LEARNER['regularization'])
    dual_regularization: float = same_as(LEARNER['dual_regularization'])
    batch_size: int = same_as(LEARNER['batch_size'])
    dual_step_size: float = same_as(LEARNER['dual_step_size'])
    quantile_step_size: float = same_as(LEARNER['quantile_step_size'])
    dual_cap: float = same_as(LEARNER['dual_cap'])
    averaging_window: float = same_as(LEARNER['averaging_window'], 1000.0)
    decay_after: float = same_as(LEARNER['decay_after'], math.inf)
    penalty: float = same_as(LEARNER['penalty'])
    penalty_doubling: float = same_as(LEARNER['penalty_doubling'])
    max_model_order: int = same_as(LEARNER['max_model_order'], 300)
    loss_window: int = same_as(LEARNER['loss_window'])

    @property
    def bounded(self) -> bool:
        """Whether there is a constraint on the tail of the loss."""
        return self.constrained

    def build(self, **more: Any) -> Any:
        """Make the learner, which has seen nothing; ``more`` is what is no parameter of ours."""
        bound = CVaR(self.significance, self.tolerance) if self.bounded else None
        return PrimalDualLearner(**{**self._shared_with(LEARNER), 'constraint': bound, **more})

    def runtime_values(self) -> dict[str, Any]:
        """Return the parameters of the learner that may change while it learns."""
        mine = attrs.fields_dict(type(self))
        bound = BOUND if self.bounded else {}
        return {
            name: getattr(self, name)
            for name in (*LEARNER, *bound)
            if name in mine and mine[name].metadata['runtime']
        }

    def _shared_with(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters that a learner has too, its kernel among them."""
        kernel = (
            Gaussian(self.bandwidth)
            if self.kernel == 'gaussian'
            else Polynomial(self.degree, self.offset)
        )
        return {**{n: getattr(self, n) for n in fields if hasattr(self, n)}, 'kernel': kernel}


@attrs.frozen
class LearnerConfig(KernelLearnerConfig):
    """The learner, on inputs and targets of order one.

    Algorithm ``primal_dual`` bounds the tail of the loss where it is constrained; ``subquantile``
    drops it, has no constraint whatever ``constrained`` says, and of the other parameters takes
    those of the kernel, ``regularization``, ``novelty`` and ``max_model_order``.
    """

    algorithm: str = parameter(
        'primal_dual', 'whether the tail of the loss is bounded, or dropped as corrupted',
        choices=('primal_dual', 'subquantile'),
    )  # fmt: skip
    step: str = same_as(LEARNER['step'])
    novelty: float = same_as(LEARNER['novelty'])
    corruption: float = same_as(WINDOW['corruption'])
    window: int = same_as(WINDOW['window'])

    def __attrs_post_init__(self) -> None:
        """Refuse what ``subquantile`` cannot do."""
        wanted = {'mode': ('default',), 'step': ('auto', 'recursive'), 'batch_size': (1,)}
        if self.algorithm == 'subquantile':
            for name, possible in wanted.items():
                if getattr(self, name) not in possible:
                    raise ConfigurationError(
                        f'algorithm subquantile needs {name} {" or ".join(map(str, possible))} '
                        f'(got {getattr(self, name)})'
                    )

    @property
    def bounded(self) -> bool:
        """Whether there is a constraint on the tail of the loss."""
        return self.constrained and self.algorithm == 'primal_dual'

    def build(self, **more: Any) -> Any:
        """Make the learner, which has seen nothing; ``more`` is what is no parameter of ours."""
        if self.algorithm == 'primal_dual':
            return super().build(**more)
        return SubquantileLearner(**{**self._shared_with(WINDOW), **more})

    def runtime_values(self) -> dict[str, Any]:
        """Return the parameters of the learner that may change while it learns."""
        if self.algorithm == 'primal_dual':
            return super().runtime_values()
        return {n: getattr(self, n) for n, f in WINDOW.items() if f.metadata.get('runtime')}


@attrs.frozen
class FilterConfig:
    """All that decides what the filter says of a stream of scans and poses."""

    features: FeatureConfig = group(FeatureConfig)
    mounting: MountingConfig = group(MountingConfig)
    target: TargetConfig = group(TargetConfig)
    pose: PoseConfig = group(PoseConfig)
    pairing: PairingConfig = group(PairingConfig)
    learner: LearnerConfig = group(LearnerConfig)
    uncertainty: UncertaintyConfig = group(UncertaintyConfig)
