# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The online filter: scans in, estimates out, learning wherever a trusted pose is at hand.

The node and the offline commands use this same object: what it is fed decides what it says.
"""

from contextlib import suppress
from typing import Any, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.core import DivergenceError
from kernel_constrained.core.subquantile import SubquantileLearner
from kernel_constrained.perception.config import FilterConfig
from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.perception.inputs import Inputs
from kernel_constrained.perception.learning import plain_scan, ScanLearner
from kernel_constrained.perception.pairing import Pair, Pairing
from kernel_constrained.perception.recent import Recent
from kernel_constrained.perception.scaling import Scaling, thinned
from kernel_constrained.perception.scan import Reading, Scan
from kernel_constrained.perception.targets import Target, Truths
from kernel_constrained.perception.unusable import Unusable

Array = npt.NDArray[np.float64]

FORMAT = 'kernel_constrained.ScanFilter'
# Variance said of an estimate before any error has been seen, in scales squared.
UNKNOWN_VARIANCE = 1e6

# Pairs after which scaling and spread are looked at first, and then every so many.
FIRST_LOOKS, LOOK_EVERY = (10, 25), 50

# Pairs that are learned again by another scaling: few, for messages wait meanwhile.
RELEARNED = 200

# An input's scale is at least this, and at least this share of the root mean square of all: what
# hardly changes is mostly noise.
SMALLEST_SCALE, SMALLEST_SHARE = 0.02, 1.0


class Estimate(NamedTuple):
    """What the filter says of a scan, in SI units.

    Attributes
    ----------
    stamp : int
        The scan's, nanoseconds.
    mean : (components,)
        The quantity; yaw in radians, or as cosine and sine.
    covariance : (components, components)
        From the errors seen so far at scans like this one.
    """

    stamp: int
    mean: Array
    covariance: Array


class Rejected(NamedTuple):
    """Why a truth was not learned when it came; it may be re-admitted later.

    Attributes
    ----------
    loss : float
        The learner's, from before the sample, in scales squared.
    threshold : float
        What it exceeds.
    """

    loss: float
    threshold: float


class Learned(NamedTuple):
    """What became of a scan with a trusted pose.

    Attributes
    ----------
    stamp : int
        The scan's, nanoseconds.
    truth : (components,)
        The quantity by the trusted poses, SI units.
    error : (components,)
        Estimate minus truth, from before the sample was learned.
    loss : float
        Its squared norm in scales, after the target was cut off.
    pose : Pose
        The trusted pose at the stamp.
    rejected : Rejected or None
        Why the truth was taken to be corrupted, where it was.
    """

    stamp: int
    truth: Array
    error: Array
    loss: float
    pose: Pose
    rejected: Rejected | None = None


class Waiting(NamedTuple):
    """A scan that waits for its pose."""

    number: int
    inputs: Array | None
    mean: Array | None
    support: float


class ScanFilter(ScanLearner):
    """Predicts from each scan, and learns from each that is paired with a trusted pose.

    Parameters
    ----------
    config
        Everything that can be chosen.

    Attributes
    ----------
    inputs : Inputs
        From scans to inputs.
    scaling : Scaling
        Offset and scale of the inputs.
    scans : int
        Scans taken, whether or not there was an estimate.
    rejected : int
        Samples whose truth was taken to be corrupted when they came.
    looked : bool
        Whether there were enough pairs for a scaling by their range.
    """

    KIND = FORMAT
    CONFIG = FilterConfig
    LEARNED = (
        *ScanLearner.LEARNED,
        'rejected',
        'looked',
        'scaling',
        'target',
        '_recent',
        '_spread',
    )

    config: FilterConfig

    def __init__(self, config: FilterConfig) -> None:
        super().__init__(config)
        self.pairing: Pairing[Waiting] = Pairing(
            config.pairing.max_gap, config.pairing.queue_size, config.pose.max_jump
        )
        self.scans = 0
        self.inputs = Inputs(config.features, config.target.type == 'motion')
        self._truths = Truths()
        self.reset()

    def reset(self) -> None:
        """Forget everything that was learned."""
        super().reset()
        config = self.config
        self.target = Target(config.target)
        self.learner = config.learner.build()
        self.looked, self.rejected = False, 0
        inputs = self.inputs.count
        self.scaling = Scaling.fixed(np.zeros(inputs), np.ones(inputs))
        if config.features.scaling == 'learned':
            self.scaling = attrs.evolve(
                self.scaling,
                floor=np.full(inputs, SMALLEST_SCALE),
                smallest_share=SMALLEST_SHARE,
            )
        self._spread = UNKNOWN_VARIANCE * np.eye(len(self.target.components))
        self._recent = Recent(config.uncertainty.window, inputs, len(self.target.components))

    def warm_up(self) -> None:
        """Compile what the first message would have to wait for."""
        spare = ScanFilter(self.config)
        spare.mounting = Mounting()  # by which its beams are within the bearings
        pose = Pose(0.0, 0.0, 0.0, 0.0)
        for i in range(FIRST_LOOKS[0] + 2):
            if self.config.features.type == 'range':
                scan: Scan | Reading = Reading(1.0 + i, 0.0, 100.0)
            else:
                scan = plain_scan(self.config.features, 1.0 + i)
            spare.pose(i, pose)
            spare.scan(i, scan)
            spare.learn()
        spare.learner.warm_up(self.inputs.count, len(self.target.components))

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
        features = self.features(scan)
        inputs = self.inputs.of(stamp, features)
        mean, support = self._predict(inputs)
        self.pairing.add_scan(stamp, Waiting(self.scans, inputs, mean, support))
        self.scans += 1
        self.inputs.note(stamp, features)
        if inputs is None or mean is None:
            return None
        return Estimate(stamp, mean, self._covariance(inputs, support) * self.target.scale_squared)

    def features(self, scan: Scan | Reading) -> Array:
        """Features of one scan, in the robot's frame and of order one."""
        return self.inputs.features(scan, self.mounting)

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
            quantity = self._truths.of(self.target, pair.scan.number, pair)
            if quantity is None or pair.scan.inputs is None:
                continue
            try:
                learned.append(self._learn_pair(pair, quantity))
            except DivergenceError:
                diverged = True
        if diverged:
            raise Unusable('learner diverged')
        return learned

    def _learn_pair(self, pair: Pair[Waiting], quantity: Array) -> Learned:
        """Account for the error of a scan, then learn it."""
        _, inputs, mean, support = pair.scan
        assert inputs is not None
        assert mean is not None
        target = self.target.normalised(quantity)
        residual = self.target.normalised(mean, cut=False) - target
        loss = float(residual @ residual)
        self.losses.add(loss)
        rejected = self._learn_sample(self.scaling.scaled(inputs), target)
        if rejected is None:  # else truth and error tell nothing of the robot
            self._recent.add(inputs, quantity, residual, support, self.learning)
            if self._recent.count in FIRST_LOOKS or self._recent.count % LOOK_EVERY == 0:
                if self.learning:
                    self._look_at_scaling()
                self._look_at_spread()
        return Learned(pair.stamp, quantity, mean - quantity, loss, pair.pose, rejected)

    def _learn_sample(self, inputs: Array, target: Array) -> Rejected | None:
        """Hand a sample to the learner, if it is to learn; say whether it took it."""
        if not self.learning:
            return None
        self.learner.partial_fit(inputs[None], target[None])
        self.samples += 1
        if isinstance(self.learner, SubquantileLearner):
            loss, threshold = self.learner.loss_, self.learner.threshold_
            if loss > threshold:
                self.rejected += 1
                return Rejected(loss, threshold)
        return None

    # -- scaling ----------------------------------------------------------------------------

    def _look_at_scaling(self) -> None:
        """Widen the ranges that are learned to what was seen lately, and learn anew by them."""
        learned = self._recent.learned
        if len(learned) < FIRST_LOOKS[0]:
            return
        scaling, range_ = self.scaling, self.target.range
        some = thinned(learned)
        if self.config.features.scaling == 'learned':
            seen = self._recent.inputs_of(some)
            scaling = scaling.widened(seen) if self.looked else scaling.of(seen)
        if self.config.target.scaling == 'learned':
            seen = self._recent.quantities[some]
            range_ = range_.widened(seen) if self.looked else range_.of(seen)
        self.looked = True
        if scaling is not self.scaling or range_ is not self.target.range:
            self._learn_anew(scaling, range_)

    def _look_at_spread(self) -> None:
        """Note how uncertain the quantity is where nothing is known of it, in scales squared."""
        targets = self.target.normalised(self._recent.quantities)
        self._spread = targets.T @ targets / len(targets)

    def _learn_anew(self, scaling: Scaling, range_: Scaling) -> None:
        """Learn the newest pairs by another scaling; of those before, what the function says.

        A learner over a window of samples learns as much of its window as there is: what the
        function says would look like samples without noise.
        """
        learner = self.learner
        window = learner.window if isinstance(learner, SubquantileLearner) else 0
        newest = self._recent.learned[-(window or RELEARNED) :]
        inputs, quantities = self._recent.inputs_of(newest), self._recent.quantities[newest]
        if not window and self.samples > len(newest) and self.learner.model_order_ > 0:
            atoms = self.learner.dictionary_
            values = self.target.denormalised(self.learner.predict(atoms))
            inputs = np.concatenate([self.scaling.original(atoms), inputs])
            quantities = np.concatenate([values, quantities])
        self.scaling, self.target.range = scaling, range_
        self.learner = self.config.learner.build()
        targets = self.target.normalised(quantities)
        for x, y in zip(scaling.scaled(inputs), targets):
            with suppress(DivergenceError):
                self.learner.partial_fit(x[None], y[None])

    def reconfigure(self, config: FilterConfig) -> None:
        """Take the run-time parameters of a configuration; raises as for every learner."""
        super().reconfigure(config)
        self.pairing.max_jump = config.pose.max_jump

    # -- files ------------------------------------------------------------------------------

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Split into (plain values, arrays): what a model file holds, apart from the filter."""
        header, arrays = super().to_parts()
        own = {'looked': self.looked, 'rejected': self.rejected, 'pairs': self._recent.count}
        return {**header, **own}, {
            **arrays,
            'recent': self._recent.to_array(),
            'spread': self._spread,
            'input_range': self.scaling.to_array(),
            'target_range': self.target.range.to_array(),
        }

    def _take_parts(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.looked, self.rejected = bool(header['looked']), int(header.get('rejected', 0))
        self._recent.restore(arrays.pop('recent'), int(header['pairs']))
        self._spread[:] = arrays.pop('spread')
        self.scaling = self.scaling.restored(arrays.pop('input_range'))
        self.target.range = self.target.range.restored(arrays.pop('target_range'))
        super()._take_parts(header, arrays)

    # -- inside -----------------------------------------------------------------------------

    def _predict(self, inputs: Array | None) -> tuple[Array | None, float]:
        """Return the mean in SI units, and its support."""
        if inputs is None:
            return None, 0.0
        if self.learner.model_order_ == 0:
            return self.target.denormalised(np.zeros(len(self.target.components))), 0.0
        values, support = self.learner.predict_with_support(self.scaling.scaled(inputs)[None])
        return self.target.denormalised(values[0]), float(support[0])

    def _covariance(self, inputs: Array, support: float) -> Array:
        """Covariance of an estimate in scales squared.

        What estimates from inputs like these were off by; where less of the function was learned
        near the input than near those, the rest is as uncertain as the quantity itself.
        """
        outputs = len(self.target.components)
        if self._recent.count < FIRST_LOOKS[0]:
            return UNKNOWN_VARIANCE * np.eye(outputs)
        near, support_near = self._recent.errors_near(inputs, self.scaling.scale)
        known = min(support / support_near, 1.0) if support_near > 0.0 else 1.0
        return known * near + (1.0 - known) * self._spread
