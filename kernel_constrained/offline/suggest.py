# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Settings that suit what a recording holds, where a person gives none."""

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np

from kernel_constrained.bags import decode_input, LidarRecording, Recording, RecordingError
from kernel_constrained.configuration import from_flat, read_parameter_file
from kernel_constrained.core import conditional_value_at_risk
from kernel_constrained.offline.evaluation import UNDECODABLE
from kernel_constrained.offline.sources import Topics
from kernel_constrained.perception.geometry import motion_between, Pose
from kernel_constrained.perception.messages import pose_of, reading_of, stamp_of
from kernel_constrained.perception.node_config import FilterNodeConfig
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

MODEL_ORDER, REGULARIZATION, SIGNIFICANCE = 150, 3e-4, 0.9

# The bound on the tail is at least this, in scales squared: few motions show no tail.
SMALLEST_TOLERANCE = 4.0


def suggested(recording: Recording, topics: Topics) -> FilterNodeConfig:
    """Return settings for a recording, from a look at its first scans and poses.

    From scans with a pose each the motion between them is learned, from ranges the coordinate x.
    The scales are the spread of the quantity, so that a loss of 1 is an error of one standard
    deviation; the tail of a motion's errors is bounded by what it is where their mean is said.

    Raises
    ------
    RecordingError
        No scan has a pose: there is nothing to learn from.
    """
    if isinstance(recording, LidarRecording):
        given = read_parameter_file(share_folder() / 'config' / 'filter_lidar.yaml', 'filter_node')
        return from_flat(FilterNodeConfig, given)
    scans, poses = _first_pairs(recording, topics)
    settings: dict[str, Any] = {
        'input.type': topics.input_type,
        'pose.type': topics.pose_type,
        'learner.max_model_order': MODEL_ORDER,
        'learner.significance': SIGNIFICANCE,
    }
    if topics.input_type == 'range':
        settings.update(_for_ranges(poses))
    else:
        settings.update(_for_scans(scans, poses))
    return from_flat(FilterNodeConfig, settings)


def _first_pairs(recording: Recording, topics: Topics) -> tuple[list[Any], list[Pose]]:
    """Return the first scans that have a pose, and their poses."""
    pairing: Pairing[Any] = Pairing(max_gap=0.5, queue_size=100)
    scans: list[Any] = []
    poses: list[Pose] = []
    dropped: Counter[str] = Counter()
    for message in recording.messages([topics.input, topics.pose]):
        kind = 'pose' if message.topic == topics.pose else topics.input_type
        try:
            decoded = decode_input(message)
            if kind == 'pose':
                pairing.add_pose(stamp_of(decoded), pose_of(decoded))
            else:
                scan = reading_of(decoded)
                scan.check()
                pairing.add_scan(stamp_of(decoded), scan)
        except Unusable as error:
            dropped[f'{kind}: {error.reason}'] += 1
        except RecordingError:
            dropped[f'{kind}: {UNDECODABLE}'] += 1
        for pair in pairing.pairs():
            scans.append(pair.scan)
            poses.append(pair.pose)
        if len(scans) >= LOOKED_AT:
            break
    if not scans:
        why = f'dropped {counted(dropped)}' if dropped else 'are they of one clock?'
        raise RecordingError(
            f'{recording.name}: no {topics.input_type} on {topics.input} has a pose of '
            f'{topics.pose} at its stamp: nothing to learn from; {why}'
        )
    return scans, poses


def counted(dropped: Counter[str]) -> str:
    """Say how many messages were dropped for which reason."""
    return ', '.join(f'{count} {reason}' for reason, count in sorted(dropped.items()))


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
    position_scale, yaw_scale = _spread(motions[:, 0]), _spread(motions[:, 2])
    of_mean = (motions - motions.mean(axis=0)) / (position_scale, position_scale, yaw_scale)
    tail = conditional_value_at_risk(np.sum(of_mean**2, axis=1), SIGNIFICANCE)
    far = float(np.median([scan.range_max for scan in scans]))
    sectors = 24
    return {
        **_bearings(scans),
        'features.type': 'sectors',
        'features.sectors': sectors,
        'features.far': far if 0.0 < far < 1e3 else 50.0,
        'target.type': 'motion',
        'target.position_scale': position_scale,
        'target.yaw_scale': yaw_scale,
        'learner.tolerance': _two_digits(max(tail, SMALLEST_TOLERANCE)),
        'learner.regularization': REGULARIZATION,
        'learner.bandwidth': round(0.7 * math.sqrt(2 * sectors + 1), 1),
    }


def _spread(values: Any, smallest: float = SMALLEST_SPREAD) -> float:
    return _two_digits(max(float(np.std(values)), smallest))


def _two_digits(value: float) -> float:
    """Round: settings are read by people."""
    return float(f'{value:.1e}')


def _bearings(scans: list[Scan]) -> dict[str, float]:
    """Return the bearings that the sensor sees; nothing where that is all round."""
    ends = [(s.angle_min, s.angle_min + s.angle_increment * (len(s.ranges) - 1)) for s in scans]
    low = float(np.median([min(each) for each in ends]))
    high = float(np.median([max(each) for each in ends]))
    if high - low > ALL_ROUND * 2.0 * math.pi:
        return {}
    return {  # outwards: no beam is cut off
        'features.bearing_min': math.floor(low * 1e4) / 1e4,
        'features.bearing_max': math.ceil(high * 1e4) / 1e4,
    }
