# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the filter learns to estimate, from trusted poses to numbers of order one and back."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kernel_constrained.perception.config import TargetConfig
from kernel_constrained.perception.geometry import motion_between, Pose
from kernel_constrained.perception.pairing import Pair
from kernel_constrained.perception.scaling import Scaling

Array = npt.NDArray[np.float64]

# A heading is learned as the cosine and sine of it, which do not jump where the angle does.
HEADING = ('cos_yaw', 'sin_yaw')
COMPONENTS = {'motion': ('forward', 'left', 'yaw'), 'pose': ('x', 'y', *HEADING)}

# Variance of a heading that may be any.
ANY_HEADING = math.pi**2 / 3.0

# Smallest range that is learned of a quantity, in scales: what is cut off is never less than that.
SMALLEST_RANGE = 0.1


class Target:
    """Trusted poses to targets in units of the loss, and estimates back to SI units.

    Parameters
    ----------
    config
        What is estimated.

    Attributes
    ----------
    components : tuple of str
        What the numbers of a quantity are.
    scale : (components,)
        Units of the loss: ``position_scale`` and ``yaw_scale``.
    scale_squared : (components, components)
        From a covariance in scales to SI units.
    range : Scaling
        Where quantities lie: its middle is the target's zero, and what is ``clip`` of its scales
        away is cut off. Given by the configuration, or learned.
    """

    def __init__(self, config: TargetConfig) -> None:
        self.config = config
        heading = config.type == 'axis' and config.axis == 'yaw'
        self.components = HEADING if heading else COMPONENTS.get(config.type, (config.axis,))
        angular = ['yaw' in name for name in self.components]
        self.scale = np.where(angular, config.yaw_scale, config.position_scale)
        self.scale_squared = np.outer(self.scale, self.scale)
        offset = np.zeros(len(self.components))
        if not angular[0]:
            offset[0] = config.position_offset
        self.range = Scaling.fixed(offset, self.scale)
        if config.scaling == 'learned':
            self.range = Scaling(offset, 2.0 * self.scale, SMALLEST_RANGE * self.scale)

    @property
    def needs_previous(self) -> bool:
        """Whether the target is about two scans."""
        return self.config.type == 'motion'

    def quantity(self, pose: Pose, previous: Pose | None) -> Array:
        """Quantity in SI units, shape (components,)."""
        heading = np.cos(pose.yaw), np.sin(pose.yaw)
        if self.config.type == 'axis':
            one = self.config.axis
            return np.array(heading if one == 'yaw' else [getattr(pose, one)])
        if self.config.type == 'pose':
            return np.array([pose.x, pose.y, *heading])
        if previous is None:
            raise ValueError('motion needs the pose at the previous scan')
        return np.array(motion_between(previous, pose))

    @property
    def range(self) -> Scaling:
        """Where quantities lie."""
        return self._range

    @range.setter
    def range(self, range_: Scaling) -> None:
        self._range = range_
        self._limit = self.config.clip * range_.scale / self.scale

    def normalised(self, quantity: Array, cut: bool = True) -> Array:
        """Quantity (..., components) as the learner sees it, by default cut off at ``clip``."""
        normalised: Array = (quantity - self._range.offset) / self.scale
        if not cut:
            return normalised
        cut_off: Array = np.minimum(np.maximum(normalised, -self._limit), self._limit)
        return cut_off

    def denormalised(self, output: Array) -> Array:
        """Learner's output (..., components) in SI units."""
        return output * self.scale + self._range.offset


class Truths:
    """The quantity at each of a sequence of pairs, from their trusted poses."""

    def __init__(self) -> None:
        self._before: tuple[int, Pair[Any]] | None = None

    def of(self, target: Target, number: int, pair: Pair[Any]) -> Array | None:
        """Truth of a pair in SI units, shape (components,).

        Parameters
        ----------
        target
            What is asked for.
        number
            The scan's among all scans: a motion is known between neighbours only.
        pair
            The scan and its pose; the oldest first.

        Returns
        -------
        array or None
            None for a motion whose beginning is not known, or that was interrupted.
        """
        before, self._before = self._before, (number, pair)
        if not target.needs_previous:
            return target.quantity(pair.pose, None)
        if before is None or before[0] != number - 1 or before[1].track != pair.track:
            return None
        return target.quantity(pair.pose, before[1].pose)


def with_heading(mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Turn cosine and sine, the last two components, into the yaw that they point to.

    Its variance is propagated to first order, and is at most that of any heading.
    """
    cosine, sine = mean[-2:]
    length = max(math.hypot(cosine, sine), 1e-9)
    to_yaw = np.array([-sine, cosine]) / length**2
    count = len(mean) - 1
    jacobian = np.zeros((count, count + 1))
    jacobian[:-1, :-2] = np.eye(count - 1)
    variance = float(to_yaw @ covariance[-2:, -2:] @ to_yaw)
    jacobian[-1, -2:] = to_yaw * min(1.0, math.sqrt(ANY_HEADING / max(variance, 1e-300)))
    yaw = math.atan2(sine, cosine)
    return np.append(mean[:-2], yaw), jacobian @ covariance @ jacobian.T
