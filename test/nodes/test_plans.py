# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Paths as messages: where, which way, and nothing left of the message before."""

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from roving import heading

from kernel_constrained.nodes.plans import headings, PathMessage


def test_heading_is_that_to_the_next_position_that_is_another_one():
    path = np.array([(0.0, 0.0), (0.0, 0.0), (1.0, 0.0), (1.0, 2.0), (1.0, 2.0), (0.0, 2.0)])
    quarter = math.pi / 2
    assert headings(path).tolist() == [0.0, 0.0, quarter, math.pi, math.pi, math.pi]
    assert headings(path[:1]).tolist() == [0.0]
    assert headings(path[[0, 0]]).tolist() == [0.0, 0.0]


def test_message_has_stamp_frame_height_and_heading_of_each_path_in_turn():
    writer = PathMessage()
    writer.fill(Time(sec=1), 'odom', np.arange(20.0).reshape(10, 2), 5.0)
    message = writer.fill(Time(sec=2), 'map', np.array([(0.0, 0.0), (0.0, -1.0)]), 0.5)
    assert (message.header.stamp.sec, message.header.frame_id) == (2, 'map')
    assert len(message.poses) == 2
    for pose, y in zip(message.poses, (0.0, -1.0)):
        assert (pose.header.stamp.sec, pose.header.frame_id) == (2, 'map')
        assert (pose.pose.position.x, pose.pose.position.y, pose.pose.position.z) == (0.0, y, 0.5)
        assert heading(pose) == pytest.approx(-math.pi / 2)


def test_a_path_in_space_has_heights_of_its_own():
    line = np.array([(0.0, 0.0, 1.0), (1.0, 0.0, 2.0)])
    message = PathMessage().fill(Time(), 'map', line, 5.0)
    assert [pose.pose.position.z for pose in message.poses] == [1.0, 2.0]
