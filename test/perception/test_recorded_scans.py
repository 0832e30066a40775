# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The filter on scans that robots recorded, with the parameters that the package ships."""

from pathlib import Path

import numpy as np
import pytest

from kernel_constrained.bags import decode, open_recording
from kernel_constrained.configuration import from_flat, read_parameter_file
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.perception.geometry import pose_from_quaternion
from kernel_constrained.perception.node_config import FilterNodeConfig
from kernel_constrained.perception.scan import Scan

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDED = [('aces', 440), ('intel', 910)]


@pytest.fixture
def recorded():
    """Return a function from a robot log's name to its messages; skips where it is absent."""

    def read(name):
        path = REPOSITORY.parent / 'shared' / 'data' / 'scans' / f'{name}-corrected.log.gz'
        if not path.exists():
            pytest.skip(f'shared data is absent: {path.name}')
        with open_recording(path) as recording:
            return [(m.topic, m.stamp, decode(m)) for m in recording.messages()]

    return read


def shipped_filter():
    given = read_parameter_file(REPOSITORY / 'config' / 'filter_scans.yaml', 'filter_node')
    return ScanFilter(from_flat(FilterNodeConfig, given))


def play(filter_, messages):
    learned = []
    for topic, stamp, message in messages:
        if topic == 'pose':
            p, q = message.pose.position, message.pose.orientation
            filter_.pose(stamp, pose_from_quaternion((p.x, p.y, p.z), (q.x, q.y, q.z, q.w)))
        else:
            filter_.scan(
                stamp,
                Scan(
                    message.ranges, message.angle_min, message.angle_increment,
                    message.range_min, message.range_max,
                ),
            )  # fmt: skip
        learned += filter_.learn()
    return learned


@pytest.mark.parametrize(('name', 'scans'), RECORDED)
def test_every_recorded_scan_but_the_first_becomes_a_motion_in_every_pass(recorded, name, scans):
    filter_, messages = shipped_filter(), recorded(name)
    passes = [play(filter_, messages) for _ in range(2)]
    for learned in passes:
        assert len(learned) == scans - 1
        assert np.isfinite([sample.error for sample in learned]).all()
    assert filter_.pairing.jumps == 1
    first, second = (np.mean([min(s.loss, 100.0) for s in learned]) for learned in passes)
    assert second < first, 'what was learned is of use the second time'
