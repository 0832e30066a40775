# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""How a sensor is mounted, by TF."""

from rclpy.node import Node
from rclpy.time import Time

from kernel_constrained.perception.geometry import Mounting, mounting_from_quaternion
from kernel_constrained.perception.unusable import Unusable


class TransformMounting:
    """Looks a sensor's mounting up in TF.

    Parameters
    ----------
    node
        Who listens.
    base_frame
        The robot's frame.

    Raises
    ------
    ValueError
        Where ``tf2_ros`` is not installed.
    """

    def __init__(self, node: Node, base_frame: str) -> None:
        try:
            import tf2_ros
        except ImportError as error:
            raise ValueError(
                f'mounting.source is tf, but tf2_ros cannot be imported ({error}): install it, '
                'or give mounting.x, y, yaw and upside_down with mounting.source: parameters'
            ) from error
        self._base_frame = base_frame.lstrip('/')  # tf2 refuses a slash
        self._failures = tf2_ros.TransformException
        self._buffer = tf2_ros.Buffer()
        self._listener = tf2_ros.TransformListener(self._buffer, node)

    def of(self, sensor_frame: str) -> Mounting:
        """Return the newest mounting of a sensor; raises ``Unusable`` where there is none yet."""
        try:
            sensor_frame = sensor_frame.lstrip('/')
            found = self._buffer.lookup_transform(self._base_frame, sensor_frame, Time())
        except self._failures as error:
            raise Unusable('no transform', str(error)) from error
        t, q = found.transform.translation, found.transform.rotation
        return mounting_from_quaternion((t.x, t.y, t.z), (q.x, q.y, q.z, q.w))

    def close(self) -> None:
        """Stop listening."""
        self._listener.unregister()
