# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the filter learns to estimate, from trusted poses to numbers of order one and back."""

import numpy as np
import numpy.typing as npt

from kernel_constrained.perception.config import TargetConfig
from kernel_constrained.perception.geometry import motion_between, Pose
from kernel_constrained.perception.scaling import Scaling

Array = npt.NDArray[np.float64]

# A heading is learned as the cosine and sine of it, which do not jump where the angle does.
HEADING = ('cos_yaw', 'sin_yaw')
COMPONENTS = {'motion': ('forward', 'left', 'yaw'), 'pose': ('x', 'y', *HEADING)}

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
