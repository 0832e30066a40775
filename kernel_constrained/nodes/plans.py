# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Paths as messages."""

from typing import Any

import numpy as np
import numpy.typing as npt
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path

Array = npt.NDArray[np.float64]


def headings(path: Array) -> Array:
    """Direction (k,) of a path (k, D) in the plane at each of its positions, radians.

    It is that to the next position that is another one, at the end that from the one before.
    """
    steps = np.diff(path[:, :2], axis=0)
    moved = np.flatnonzero((steps * steps).sum(1) > 0.0)
    if not len(moved):
        return np.zeros(len(path))
    following = np.searchsorted(moved, np.arange(len(path)))
    step = steps[moved[np.minimum(following, len(moved) - 1)]]
    return np.asarray(np.arctan2(step[:, 1], step[:, 0]))


class PathMessage:
    """One message that paths are written into, one after the other."""

    def __init__(self) -> None:
        self.message = Path()
        self._poses: list[Any] = []

    def fill(self, stamp: Any, frame_id: str, path: Array, height: float) -> Any:
        """Write a path (k, D); ``height`` is that of a path in the plane.

        Returns
        -------
        nav_msgs.msg.Path
            The message, which the next call overwrites.
        """
        header = self.message.header
        header.stamp, header.frame_id = stamp, frame_id
        while len(self._poses) < len(path):
            self._poses.append(PoseStamped(header=header))
        heights = path[:, 2] if path.shape[1] > 2 else np.full(len(path), height)
        half = 0.5 * headings(path)
        rows = zip(
            self._poses, path[:, 0].tolist(), path[:, 1].tolist(), heights.tolist(),
            np.sin(half).tolist(), np.cos(half).tolist(),
        )  # fmt: skip
        for stamped, x, y, z, sine, cosine in rows:
            position, turn = stamped.pose.position, stamped.pose.orientation
            position.x, position.y, position.z = x, y, z
            turn.z, turn.w = sine, cosine
        self.message.poses = self._poses[: len(path)]
        return self.message
