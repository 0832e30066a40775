# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What a filter published, read from its recording into arrays."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.bags import decode, open_recording, RecordingError
from kernel_constrained.topics import FIGURES

Array = npt.NDArray[np.float64]


class Recorded(NamedTuple):
    """What a filter node published.

    Attributes
    ----------
    stamps : (n,)
        Stamps of the estimates, nanoseconds.
    estimates : (n, 3)
        x, y (m) and yaw (rad).
    figures : dict of str to array
        The figures published under the node's name, in their order.
    """

    stamps: npt.NDArray[np.int64]
    estimates: Array
    figures: dict[str, Array]


def read_recorded(path: Path, node: str = 'filter_node') -> Recorded:
    """Read the estimates and figures of ``node`` from a recording.

    Raises
    ------
    RecordingError
        Where the recording holds no estimates.
    """
    stamps: list[int] = []
    estimates: list[tuple[float, float, float]] = []
    figures: dict[str, list[float]] = {name: [] for name in FIGURES}
    with open_recording(path) as recording:
        for message in recording.messages():
            topic = message.topic.lstrip('/')
            if topic == 'estimate':
                estimate = decode(message)
                pose = estimate.pose.pose
                stamp = estimate.header.stamp
                stamps.append(stamp.sec * 1_000_000_000 + stamp.nanosec)
                yaw = 2.0 * np.arctan2(pose.orientation.z, pose.orientation.w)
                estimates.append((pose.position.x, pose.position.y, yaw))
            elif topic.startswith(node + '/'):
                figures[topic.removeprefix(node + '/')].append(decode(message).data)
    if not stamps:
        raise RecordingError(f'{path}: no estimate in it; was the filter running?')
    return Recorded(
        np.array(stamps),
        np.array(estimates),
        {name: np.array(values) for name, values in figures.items()},
    )
