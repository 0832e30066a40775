# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What is ahead of the robot on a reference, and references that are none."""

import math

import numpy as np
import pytest

from kernel_constrained.perception.unusable import Unusable
from kernel_constrained.planning.reference import Reference

LINE = np.stack([np.arange(0.0, 11.0), np.zeros(11)], 1)


def test_single_position_is_a_goal_that_is_straight_ahead():
    goal = Reference(np.array([[5.0, 1.0]]))
    assert goal.is_goal
    for robot in (np.zeros(2), np.array([9.0, 9.0])):
        np.testing.assert_array_equal(goal.ahead(robot), [robot, [5.0, 1.0]])


def test_position_said_twice_is_a_goal_too():
    assert Reference(np.array([[5.0, 1.0], [5.0, 1.0], [5.0, 1.0]])).is_goal


def test_path_ahead_begins_at_the_robot_and_ends_at_the_goal():
    reference = Reference(LINE)
    assert not reference.is_goal
    np.testing.assert_array_equal(reference.goal, [10.0, 0.0])
    for x in (0.0, 0.4, 1.0, 2.7):
        robot = np.array([x, 0.2])
        ahead = reference.ahead(robot)
        np.testing.assert_array_equal(ahead[0], robot)
        np.testing.assert_array_equal(ahead[1:], LINE[LINE[:, 0] > x + 1e-6])


def test_beyond_the_end_only_the_goal_is_ahead():
    reference = Reference(LINE)
    for x in np.arange(0.0, 11.5, 0.5):
        ahead = reference.ahead(np.array([x, 0.1]))
    np.testing.assert_array_equal(ahead, [[11.0, 0.1], [10.0, 0.0]])


def test_robot_on_a_path_that_crosses_itself_is_where_it_came_by():
    """A figure of eight: at the crossing, what is ahead is the half that was not driven."""
    angles = np.linspace(0.0, 2 * math.pi, 400, endpoint=False)[:-8]
    eight = np.stack([4.0 * np.sin(angles), 4.0 * np.sin(angles) * np.cos(angles)], 1)
    reference, left = Reference(eight), []
    for i in range(0, len(eight), 4):
        ahead = reference.ahead(eight[i] + np.array([0.05, -0.05]))  # nearer to the other branch
        left.append(np.linalg.norm(np.diff(ahead, axis=0), axis=1).sum())
    steps = -np.diff(left)
    assert steps.min() > -0.1  # never back
    assert steps.max() < 0.5  # never over to the other branch


def test_path_back_beside_the_way_there_is_not_jumped_to():
    there = np.stack([np.linspace(0.0, 20.0, 81), np.zeros(81)], 1)
    back = there[::-1] + np.array([0.0, 0.3])
    reference = Reference(np.concatenate([there, back]))
    for x in np.arange(0.0, 12.0, 0.5):
        ahead = reference.ahead(np.array([x, 0.25]))  # nearer to the way back
        assert len(ahead) > len(back)


def test_robot_that_was_carried_away_is_found_again():
    reference = Reference(LINE)
    reference.ahead(np.array([0.0, 0.0]))
    ahead = reference.ahead(np.array([8.2, 0.5]))
    np.testing.assert_array_equal(ahead[1:], [[9.0, 0.0], [10.0, 0.0]])
    ahead = reference.ahead(np.array([1.2, 0.5]))
    np.testing.assert_array_equal(ahead[1], [2.0, 0.0])


def test_heights_are_kept():
    reference = Reference(np.column_stack([LINE, np.linspace(1.0, 2.0, 11)]))
    assert reference.dimensions == 3
    ahead = reference.ahead(np.array([0.5, 0.0, 1.0]))
    np.testing.assert_allclose(ahead[1], [1.0, 0.0, 1.1])


def test_what_is_given_is_copied():
    given = LINE.copy()
    reference = Reference(given)
    given[:] = 99.0
    np.testing.assert_array_equal(reference.points, LINE)


@pytest.mark.parametrize(
    ('points', 'reason'),
    [
        (np.empty((0, 2)), 'empty reference'),
        (np.empty(0), 'empty reference'),
        (np.zeros(2), 'empty reference'),
        (np.zeros((2, 2, 2)), 'empty reference'),
        (np.zeros((3, 1)), 'reference of wrong dimension'),
        (np.zeros((3, 4)), 'reference of wrong dimension'),
        (np.array([[0.0, 0.0], [math.nan, 1.0]]), 'non-finite reference'),
        (np.array([[0.0, math.inf]]), 'non-finite reference'),
    ],
)
def test_what_is_no_reference_is_refused(points, reason):
    with pytest.raises(Unusable) as refused:
        Reference(points)
    assert refused.value.reason == reason
