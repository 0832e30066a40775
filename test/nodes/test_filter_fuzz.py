# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Ten thousand messages that nobody would send, taken by a node in this process."""

import itertools
import math

import numpy as np
import pytest
import rclpy
from geometry_msgs.msg import PoseStamped
from hypothesis import given, HealthCheck, settings
from hypothesis import strategies as st
from rclpy.parameter import Parameter
from sensor_msgs.msg import LaserScan

from kernel_constrained.nodes.filter_node import FilterNode

STEP = 50_000_000  # ns
BEARINGS = np.arange(-1.5, 1.51, 0.25)
STRANGE = (math.nan, math.inf, -math.inf, 0.0, -0.0, -1.0, 1e-30, 1e30, 3.4e38, -3.4e38, 1e-45)


def numbers(usual):
    """Return a strategy of single-precision numbers, mostly usual."""
    return st.one_of(*[usual] * 12, st.sampled_from(STRANGE), st.floats(width=32))


# How far a stamp is from where it should be: mostly nothing, now and then anything.
errors = st.sampled_from(
    [0] * 12 + [-1, 10**6, -(10**8), -(10**10), 10**12, 3 * 10**18, -(3 * 10**18)]
)
frames = st.sampled_from(['laser', 'map'] * 10 + ['', '/laser', 'a' * 300, 'ä'])


@st.composite
def scans(draw):
    scan = LaserScan()
    scan.ranges = draw(st.lists(numbers(st.floats(0.125, 30.0, width=32)), max_size=12))
    scan.angle_min = draw(numbers(st.just(-1.5)))
    scan.angle_max = draw(numbers(st.just(1.5)))
    scan.angle_increment = draw(numbers(st.just(0.25)))
    scan.range_min = draw(numbers(st.just(0.0)))
    scan.range_max = draw(numbers(st.just(30.0)))
    scan.header.frame_id = draw(frames)
    return scan


@st.composite
def poses(draw):
    message = PoseStamped()
    position, orientation = message.pose.position, message.pose.orientation
    position.x, position.y, position.z = (
        draw(st.one_of(*[st.floats(-1, 1)] * 8, st.floats())) for _ in range(3)
    )
    orientation.x, orientation.y, orientation.z, orientation.w = draw(
        st.one_of(
            st.sampled_from([(0.0, 0.0, 0.0, 1.0)] * 8 + [(0.0, 0.0, 0.7, 0.7)]),
            st.tuples(*[st.floats()] * 4),
        )
    )
    message.header.frame_id = draw(frames)
    return message


def finite(parts):
    """Whether all that a filter has learned is finite."""
    return all(np.isfinite(array).all() for array in parts[1].values())


def make_node(context, target, features):
    values = {
        'target.type': target, 'features.type': features, 'features.sectors': 6,
        'features.beams': 8, 'features.bearing_min': -1.6, 'features.bearing_max': 1.6,
        'pairing.max_gap': 2.0, 'pose.max_jump': 3.0, 'pairing.queue_size': 10,
    }  # fmt: skip
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    return FilterNode(context=context, parameter_overrides=overrides)


def good(i):
    """Return what a robot sends that drives to and fro, at its i-th step."""
    x = math.sin(0.02 * i)
    pose, scan = PoseStamped(), LaserScan()
    pose.pose.position.x, pose.pose.orientation.w = x, 1.0
    scan.angle_min, scan.angle_max, scan.angle_increment = -1.5, 1.5, 0.25
    scan.range_max, scan.ranges = 30.0, [(3.0 - x) / math.cos(0.5 * b) for b in BEARINGS]
    pose.header.frame_id, scan.header.frame_id = 'map', 'laser'
    return ('pose', pose), ('scan', scan)


def take(node, kind, message, stamp):
    seconds, message.header.stamp.nanosec = divmod(stamp, 10**9)
    message.header.stamp.sec = (seconds + 2**31) % 2**32 - 2**31  # as it overflows
    dropped = node.dropped.total()
    node.take(kind, message, node._use_pose if kind == 'pose' else node._use_scan)
    assert node.received[kind] == node.used[kind] + sum(
        count for reason, count in node.dropped.items() if reason.startswith(kind + ':')
    )
    assert node.dropped.total() - dropped in (0, 1)
    assert not any('internal error' in reason for reason in node.dropped), node.dropped


@pytest.fixture
def nodes(domain):
    """Make nodes of different inputs and targets, which take the same messages."""
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    kinds = ('motion', 'sectors'), ('pose', 'beams'), ('axis', 'sectors')
    nodes = {kind: make_node(context, *kind) for kind in kinds}
    yield nodes
    for node in nodes.values():
        node.close()
        node.destroy_node()
    context.try_shutdown()


def test_any_message_is_used_or_dropped_and_nothing_is_poisoned(nodes):
    steps = itertools.count()

    @settings(
        max_examples=3400, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.one_of(scans(), poses()), errors)
    def among_good_ones(message, error):
        i = next(steps)
        now = 10**18 + i * STEP
        strange = 'scan' if isinstance(message, LaserScan) else 'pose'
        for node in nodes.values():
            for kind, usual in good(i):
                take(node, kind, usual, now)
            take(node, strange, message, now + error + STEP // 2)

    among_good_ones()
    assert next(steps) >= 3400
    for kind, node in nodes.items():
        assert node.filter.samples > 3000, f'{kind}: what could be learned was'
        assert finite(node.filter.to_parts()), kind
        assert len(node.dropped) < 60, f'{kind}: reasons are few, whatever comes'
        assert node.level().message
        node._diagnostics.publish()
