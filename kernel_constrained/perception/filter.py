# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The online filter: scans in, estimates out, learning wherever a trusted pose is at hand.

The node and the offline commands use this same object: what it is fed decides what it says.
"""

from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained import model_file
from kernel_constrained.configuration import ConfigurationError, fields, flatten, from_flat
from kernel_constrained.core import (
    conditional_value_at_risk,
    DivergenceError,
    PrimalDualLearner,
)
from kernel_constrained.model_file import ModelFileError
from kernel_constrained.perception.config import FilterConfig, LearnerConfig
from kernel_constrained.perception.features import range_feature, sector_ranges
from kernel_constrained.perception.geometry import Pose
from kernel_constrained.perception.pairing import Pair, Pairing, SECOND
from kernel_constrained.perception.scan import Reading, Scan
from kernel_constrained.perception.targets import Target
from kernel_constrained.perception.unusable import Unusable

Array = npt.NDArray[np.float64]

FORMAT = 'kernel_constrained.ScanFilter'
# Variance said of an estimate before any error has been seen, in scales squared.
UNKNOWN_VARIANCE = 1e6


class Estimate(NamedTuple):
    """What the filter says of a scan, in SI units.

    Attributes
    ----------
    stamp : int
        The scan's, nanoseconds.
    mean : (components,)
        The quantity; yaw in radians.
    covariance : (components, components)
        From the errors seen so far.
    """

    stamp: int
    mean: Array
    covariance: Array


class Learned(NamedTuple):
    """What became of a scan with a trusted pose.

    Attributes
    ----------
    stamp : int
        The scan's, nanoseconds.
    error : (components,)
        Estimate minus truth in SI units, from before the sample was learned.
    loss : float
        Its squared norm in scales, after the target was cut off.
    """

    stamp: int
    error: Array
    loss: float


class Waiting(NamedTuple):
    """A scan that waits for its pose."""

    number: int
    inputs: Array | None
    output: Array | None


class ScanFilter:
    """Predicts from each scan, and learns from each that is paired with a trusted pose.

    Parameters
    ----------
    config
        Everything that can be chosen.

    Attributes
    ----------
    learner : PrimalDualLearner
        What has been learned.
    learning : bool
        False to go on predicting without learning.
    """

    def __init__(self, config: FilterConfig) -> None:
        self.config = config
        self.target = Target(config.target)
        self.learner = config.learner.build()
        self.learning = True
        self.pairing: Pairing[Waiting] = Pairing(config.pairing.max_gap, config.pairing.queue_size)
        self._scans = 0
        self._previous_scan: tuple[int, Array] | None = None
        self._previous_pair: Pair[Waiting] | None = None
        self._errors = self._no_errors()

    def warm_up(self) -> None:
        """Compile what the first message would have to wait for."""
        spare = ScanFilter(self.config)
        pose = Pose(0.0, 0.0, 0.0, 0.0)
        for i in range(4):
            if self.config.features.type == 'range':
                scan: Scan | Reading = Reading(1.0 + 0.1 * i, 0.0, 2.0)
            else:
                beams = np.full(8, 1.0 + i, dtype=np.float32)
                scan = Scan(beams, self.config.features.bearing_min, 1e-3, 0.0, 100.0)
            spare.pose(i, pose)
            spare.scan(i, scan)
            spare.learn()

    def scan(self, stamp: int, scan: Scan | Reading) -> Estimate | None:
        """Take a scan and predict from it; call :meth:`learn` after publishing the estimate.

        Parameters
        ----------
        stamp
            Nanoseconds.
        scan
            A :class:`Scan`, or a :class:`Reading` where ``features.type`` is ``range``.

        Returns
        -------
        Estimate or None
            None for a motion whose previous scan is not known, or is of before the clock jumped.

        Raises
        ------
        Unusable
            Where the scan cannot be used; nothing has changed then.
        """
        values = self.features(scan)
        inputs = self._inputs(stamp, values)
        output = self._predict(inputs)
        self.pairing.add_scan(stamp, Waiting(self._scans, inputs, output))
        self._scans += 1
        self._previous_scan = (stamp, values)
        if output is None:
            return None
        scale = self.target.scale
        covariance = self._errors.covariance * np.outer(scale, scale)
        return Estimate(stamp, self.target.denormalised(output), covariance)

    def pose(self, stamp: int, pose: Pose) -> None:
        """Take a trusted pose; raises :class:`Unusable` for a stamp out of order."""
        self.pairing.add_pose(stamp, pose)

    def learn(self) -> list[Learned]:
        """Learn from the pairs that have become complete, oldest first.

        Raises
        ------
        Unusable
            Where the learner diverged at one of them; the others have been learned.
        """
        learned, diverged = [], False
        for pair in self.pairing.pairs():
            before, self._previous_pair = self._previous_pair, pair
            if pair.scan.inputs is None or pair.scan.output is None:
                continue
            if self.target.needs_previous:
                if before is None or before.scan.number != pair.scan.number - 1:
                    continue
                quantity = self.target.quantity(pair.pose, before.pose)
            else:
                quantity = self.target.quantity(pair.pose, None)
            try:
                learned.append(self._learn_pair(pair, quantity))
            except DivergenceError:
                diverged = True
        if diverged:
            raise Unusable('learner diverged')
        return learned

    def _learn_pair(self, pair: Pair[Waiting], quantity: Array) -> Learned:
        """Account for the error of a scan, then learn it."""
        inputs, output = pair.scan.inputs, pair.scan.output
        assert inputs is not None
        assert output is not None
        target = self.target.normalised(quantity)
        residual = output - target
        self._errors.add(residual)
        if self.learning:
            self.learner.partial_fit(inputs[None], target[None])
        error = self.target.denormalised(output) - quantity
        return Learned(pair.stamp, error, float(residual @ residual))

    def reset(self) -> None:
        """Forget everything that was learned."""
        self.learner = self.config.learner.build()
        self._errors = self._no_errors()

    def reconfigure(self, config: FilterConfig) -> None:
        """Take the run-time parameters of a configuration; they are the learner's.

        Raises
        ------
        ConfigurationError
            Where another parameter differs; nothing has changed then.
        """
        differing = self._fixed_differences(config)
        if differing:
            raise ConfigurationError(f'cannot change while running: {"; ".join(differing)}')
        names = [f.name for f in attrs.fields(LearnerConfig) if f.metadata['runtime']]
        if not config.learner.constrained:
            names = [name for name in names if name not in ('significance', 'tolerance')]
        self.learner.set_parameters(**{name: getattr(config.learner, name) for name in names})
        self.config = config

    def restore(self, path: str | Path) -> None:
        """Take what was learned from a file that :meth:`save` wrote under the same configuration.

        Run-time parameters may differ; those in force stay.

        Raises
        ------
        ModelFileError
            Where the file cannot be read or other parameters differ; nothing has changed then.
        """
        loaded = ScanFilter.load(path)
        differing = self._fixed_differences(loaded.config)
        if differing:
            raise ModelFileError(f'{path} was learned otherwise: {"; ".join(differing)}')
        self.learner, self._errors = loaded.learner, loaded._errors
        self.reconfigure(self.config)

    def cvar(self) -> float:
        """CVaR of the newest losses, also of a filter that is frozen or has no constraint."""
        return conditional_value_at_risk(self._errors.recent, self.config.learner.significance)

    # -- files ------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write configuration and what was learned; the file is replaced whole or not at all."""
        header, arrays = self.learner.to_parts()
        model_file.write(
            path,
            FORMAT,
            {'config': self._filter_settings(), 'learner': header},
            {**arrays, 'residuals': self._errors.residuals, 'losses': self._errors.losses},
        )

    @classmethod
    def load(cls, path: str | Path) -> 'ScanFilter':
        """Read what :meth:`save` wrote.

        Raises
        ------
        ModelFileError
            Where the file is damaged, of another kind, or of a version this one cannot read.
        """
        header, arrays = model_file.read(path, FORMAT)
        try:
            filter_ = cls(from_flat(FilterConfig, header['config']))
            filter_._errors.residuals[:] = arrays.pop('residuals')
            filter_._errors.losses[:] = arrays.pop('losses')
            filter_.learner = PrimalDualLearner.from_parts(header['learner'], arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f'{path} does not fit this version ({error})') from error
        return filter_

    def _filter_settings(self) -> dict[str, Any]:
        """Return the parameters that are the filter's own, without those of a node around it."""
        names = {name for name, _ in fields(FilterConfig)}
        return {name: value for name, value in flatten(self.config).items() if name in names}

    # -- inside -----------------------------------------------------------------------------

    def _fixed_differences(self, other: FilterConfig) -> list[str]:
        """Say which of the filter's parameters differ that cannot change at run time."""
        mine, theirs = flatten(self.config), flatten(other)
        return [
            f'{name} is {theirs[name]} there and {mine[name]} here'
            for name, field in fields(FilterConfig)
            if not field.metadata['runtime'] and mine[name] != theirs[name]
        ]

    def _no_errors(self) -> 'RunningErrors':
        return RunningErrors(len(self.target.components), self.config.learner.loss_window)

    def features(self, scan: Scan | Reading) -> Array:
        """Features of one scan, of order one."""
        config = self.config.features
        if isinstance(scan, Reading) != (config.type == 'range'):
            raise Unusable(f'{type(scan).__name__} where features.type is {config.type}')
        if isinstance(scan, Reading):
            return range_feature(scan)
        ranges = sector_ranges(
            scan, config.sectors, config.bearing_min, config.bearing_max, config.far
        )
        return (ranges / (ranges + config.half_range) - 0.5) / 0.25

    def _inputs(self, stamp: int, values: Array) -> Array | None:
        """Learner's input: the features, for a motion those of the previous scan too."""
        if not self.target.needs_previous:
            return values
        if self._previous_scan is None:
            return None
        before, previous = self._previous_scan
        if stamp <= before:
            return None
        elapsed = min((stamp - before) / SECOND, self.config.features.max_elapsed)
        return np.concatenate([values, previous, [elapsed]])

    def _predict(self, inputs: Array | None) -> Array | None:
        if inputs is None:
            return None
        if self.learner.model_order_ == 0:
            return np.zeros(len(self.target.components))
        output: Array = self.learner.predict(inputs[None])[0]
        return output


class RunningErrors:
    """What the newest estimates were off by.

    Parameters
    ----------
    outputs
        Components of a residual.
    window
        Newest losses that are kept.

    Attributes
    ----------
    residuals : (outputs * outputs + 1,)
        Running mean of the residuals' outer products, over about the newest thousand, flat; and
        how many there were.
    losses : (window,)
        The newest losses, in a ring.
    """

    MEMORY = 1000.0

    def __init__(self, outputs: int, window: int) -> None:
        self.outputs = outputs
        self.residuals = np.zeros(outputs * outputs + 1)
        self.losses = np.zeros(window)

    def add(self, residual: Array) -> None:
        """Take one residual, shape (outputs,), in scales."""
        self.losses[int(self.residuals[-1]) % len(self.losses)] = residual @ residual
        self.residuals[-1] += 1.0
        weight = 1.0 / min(self.residuals[-1], self.MEMORY)
        self.residuals[:-1] += weight * (
            np.outer(residual, residual).ravel() - self.residuals[:-1]
        )

    @property
    def recent(self) -> Array:
        """The newest losses, in no order."""
        return self.losses[: int(self.residuals[-1])]

    @property
    def covariance(self) -> Array:
        """The mean, shape (outputs, outputs); large and diagonal before there is enough."""
        if self.residuals[-1] < self.outputs + 1:
            return UNKNOWN_VARIANCE * np.eye(self.outputs)
        return self.residuals[:-1].reshape(self.outputs, self.outputs)
