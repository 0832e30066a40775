# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Estimates as messages."""

from typing import Any

import numpy as np
import numpy.typing as npt
from geometry_msgs.msg import PoseWithCovarianceStamped

from kernel_constrained.perception.geometry import quaternion_from_yaw
from kernel_constrained.perception.targets import with_heading

Array = npt.NDArray[np.float64]

# Where the components of a target stand in a pose's position and 6 x 6 covariance.
PLACES = {'x': 0, 'forward': 0, 'y': 1, 'left': 1, 'z': 2, 'yaw': 5}

# Variance of x, y and yaw where they are not estimated; a planar robot's z, roll and pitch have 0.
UNKNOWN = 1e6


class EstimateMessage:
    """One message that estimates are written into, one after the other.

    Parameters
    ----------
    components
        What the numbers of an estimate are.
    """

    def __init__(self, components: tuple[str, ...]) -> None:
        self.components = components
        self.message = PoseWithCovarianceStamped()
        self._heading = 'cos_yaw' in components
        named = (*components[:-2], 'yaw') if self._heading else components
        places = np.array([PLACES[name] for name in named])
        self._places = places
        self._entries = (6 * places[:, None] + places[None, :]).ravel()
        self._values = np.zeros(6)
        self._covariance = np.diag([UNKNOWN, UNKNOWN, 0.0, 0.0, 0.0, UNKNOWN]).ravel()

    def fill(self, stamp: Any, frame_id: str, mean: Array, covariance: Array) -> Any:
        """Write an estimate; cosine and sine of a yaw as a normalised quaternion.

        Returns
        -------
        geometry_msgs.msg.PoseWithCovarianceStamped
            The message, which the next call overwrites.
        """
        if self._heading:
            mean, covariance = with_heading(mean, covariance)
        self._values[self._places] = mean
        self._covariance[self._entries] = covariance.ravel()
        message = self.message
        message.header.stamp, message.header.frame_id = stamp, frame_id
        pose = message.pose.pose
        x, y, z, _, _, yaw = self._values.tolist()
        pose.position.x, pose.position.y, pose.position.z = x, y, z
        q = pose.orientation
        q.x, q.y, q.z, q.w = quaternion_from_yaw(yaw)
        message.pose.covariance = self._covariance
        return message
