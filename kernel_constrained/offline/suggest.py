# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Settings that suit what a recording holds, where a person gives none."""

import math
from itertools import pairwise
from typing import Any

import numpy as np

from kernel_constrained.bags import decode, LidarRecording, Recording, RecordingError
from kernel_constrained.configuration import from_flat, read_parameter_file
from kernel_constrained.offline.sources import Topics
from kernel_constrained.perception.config import FilterNodeConfig
from kernel_constrained.perception.geometry import motion_between, Pose
from kernel_constrained.perception.messages import pose_of, reading_of
from kernel_constrained.perception.pairing import Pairing
from kernel_constrained.perception.scan import Scan
from kernel_constrained.perception.unusable import Unusable
from kernel_constrained.share import share_folder

# Scans that are looked at.
LOOKED_AT = 300

# Share of a turn from which a sensor sees all round.
ALL_ROUND = 0.9

# A motion's spread is at least this, m and rad: a robot that stands shows no scale.
SMALLEST_SPREAD = 0.01


MODEL_ORDER = 150

# Bound on the mean loss of the worst tenth, in squared standard deviations of the motion.
TOLERANCE = 4.0


def suggested(recording: Recording, topics: Topics) -> FilterNodeConfig:
    """Return settings for a recording, from a look at its first scans and poses.

    From scans with a pose each the motion between them is learned, from ranges the coordinate x.
    The scales are the spread of the quantity, so that a loss of 1 is an error of one standard
    deviation.

    Raises
    ------
    RecordingError
        No scan has a pose: there is nothing to learn from.
    """
    if isinstance(recording, LidarRecording):
        given = read_parameter_file(share_folder() / 'config' / 'filter_lidar.yaml', 'filter_node')
        return from_flat(FilterNodeConfig, given)
    scans, quantities = _first_pairs(recording, topics)
    settings: dict[str, Any] = {
        'input.type': topics.input_type,
        'pose.type': topics.pose_type,
        'learner.max_model_order': MODEL_ORDER,
    }
    if topics.input_type == 'range':
        settings.update(_for_ranges(quantities))
    else:
        settings.update(_for_scans(scans, quantities))
    return from_flat(FilterNodeConfig, settings)


def _first_pairs(recording: Recording, topics: Topics) -> tuple[list[Any], list[Pose]]:
    """Return the first scans that have a pose, and their poses."""
    pairing: Pairing[Any] = Pairing(max_gap=0.5, queue_size=100)
    scans: list[Any] = []
    poses: list[Pose] = []
    stamps: list[int] = []
    for message in recording.messages([topics.input, topics.pose]):
        try:
            if message.topic == topics.pose:
                pairing.add_pose(message.stamp, pose_of(decode(message)))
            else:
                scan = reading_of(decode(message))
                scan.check()
                pairing.add_scan(message.stamp, scan)
        except (Unusable, RecordingError):
            continue  # the filter will count it
        for pair in pairing.pairs():
            scans.append(pair.scan)
            poses.append(pair.pose)
            stamps.append(pair.stamp)
        if len(scans) >= LOOKED_AT:
            break
    if not scans:
        raise RecordingError(
            f'{recording.name}: no {topics.input_type} on {topics.input} has a pose of '
            f'{topics.pose} at its stamp: nothing to learn from; are they of one clock?'
        )
    return scans, poses


def _for_ranges(poses: list[Pose]) -> dict[str, Any]:
    return {
        'features.type': 'range',
        'target.type': 'axis',
        'target.axis': 'x',
        'target.position_scale': _spread([pose.x for pose in poses], 1e-6),
        'learner.bandwidth': 0.3,
    }


def _for_scans(scans: list[Scan], poses: list[Pose]) -> dict[str, Any]:
    motions = np.array([motion_between(*both) for both in pairwise(poses)] or [(0.0, 0.0, 0.0)])
    far = float(np.median([scan.range_max for scan in scans]))
    sectors = 24
    return {
        **_bearings(scans),
        'features.type': 'sectors',
        'features.sectors': sectors,
        'features.far': far if 0.0 < far < 1e3 else 50.0,
        'target.type': 'motion',
        'target.position_scale': _spread(motions[:, 0]),
        'target.yaw_scale': _spread(motions[:, 2]),
        'learner.tolerance': TOLERANCE,
        'learner.bandwidth': round(0.7 * math.sqrt(2 * sectors + 1), 1),
    }


def _spread(values: Any, smallest: float = SMALLEST_SPREAD) -> float:
    """Return the standard deviation to two digits: settings are read by people."""
    return float(f'{max(float(np.std(values)), smallest):.1e}')


def _bearings(scans: list[Scan]) -> dict[str, float]:
    """Return the bearings that the sensor sees; nothing where that is all round."""
    ends = [(s.angle_min, s.angle_min + s.angle_increment * (len(s.ranges) - 1)) for s in scans]
    low = float(np.median([min(each) for each in ends]))
    high = float(np.median([max(each) for each in ends]))
    if high - low > ALL_ROUND * 2.0 * math.pi:
        return {}
    return {'features.bearing_min': round(low, 4), 'features.bearing_max': round(high, 4)}
