# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the filter learns to estimate, from trusted poses to numbers of order one and back."""

import numpy as np
import numpy.typing as npt

from kernel_constrained.perception.config import TargetConfig
from kernel_constrained.perception.geometry import motion_between, Pose

Array = npt.NDArray[np.float64]

COMPONENTS = {
    'motion': ('forward', 'left', 'yaw'),
    'pose': ('x', 'y', 'cos_yaw', 'sin_yaw'),
}


class Target:
    """Trusted poses to targets of order one, and estimates back to SI units.

    Parameters
    ----------
    config
        What is estimated.
    """

    def __init__(self, config: TargetConfig) -> None:
        self.config = config
        self.components = COMPONENTS.get(config.type, (config.axis,))
        angular = [name == 'yaw' for name in self.components]
        self.scale = np.where(angular, config.yaw_scale, config.position_scale)
        self.offset = np.zeros(len(self.components))
        if not angular[0]:
            self.offset[0] = config.position_offset
        if config.type == 'pose':
            self.scale[2:] = 1.0

    @property
    def needs_previous(self) -> bool:
        """Whether the target is about two scans."""
        return self.config.type == 'motion'

    def quantity(self, pose: Pose, previous: Pose | None) -> Array:
        """Quantity in SI units, shape (components,)."""
        if self.config.type == 'axis':
            return np.array([getattr(pose, self.config.axis)])
        if self.config.type == 'pose':
            return np.array([pose.x, pose.y, np.cos(pose.yaw), np.sin(pose.yaw)])
        if previous is None:
            raise ValueError('motion needs the pose at the previous scan')
        return np.array(motion_between(previous, pose))

    def normalised(self, quantity: Array) -> Array:
        """Quantity as the learner sees it, cut off at ``clip`` scales."""
        clip = self.config.clip
        return np.clip((quantity - self.offset) / self.scale, -clip, clip)

    def denormalised(self, output: Array) -> Array:
        """Learner's output in SI units."""
        return output * self.scale + self.offset
