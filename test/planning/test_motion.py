# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What comes towards free space is seen to, and where it will be; what stands still is not."""

import numpy as np
import pytest

from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.planning.config import SensingConfig
from kernel_constrained.planning.lidar import Lidar
from kernel_constrained.planning.motion import Advance, STEP
from kernel_constrained.planning.sensing import view_of
from kernel_constrained.planning.worlds import Mover, World

RADIUS = 0.4


def views(world, poses, period=0.1, deviation=0.03, seed=0, **lidar):
    rng = np.random.default_rng(seed)
    sensor = Lidar(range_max=5.0, deviation=deviation, **lidar)
    for k, pose in enumerate(poses):
        scan = sensor.scan(world, k * period, pose, rng)
        yield view_of(int(1e9 + k * period * 1e9), scan, pose, Mounting(), SensingConfig())


def world_with(movers=(), circles=()):
    return World(
        np.array([0.0, 0.0]), np.array([9.0, 0.0]), np.array(circles, float).reshape(-1, 3),
        movers=movers,
    )  # fmt: skip


@pytest.mark.parametrize('speed', [0.5, 0.8])
def test_where_a_disc_comes_to_is_ahead_of_it_within_its_speed(speed):
    disc = Mover(np.array([3.0, 0.0]), np.array([-3.0, 0.0]), speed, RADIUS)
    advance = Advance(1.0, 1.5)
    here = [Pose(0.0, 0.0, 0.0, 0.0)] * 12
    for k, view in enumerate(views(world_with([disc]), here)):
        found = advance.ahead(view)
        surface = 3.0 - speed * 0.1 * k - RADIUS
    assert found.shape[1] >= round(1.0 / STEP)
    assert np.abs(found[1]).max() < RADIUS + speed  # what is at its side spreads out
    nearest = found[0].min()  # of the points one second ahead
    assert surface - 1.7 * speed < nearest < surface - 0.5 * speed


def test_what_stands_still_is_not_seen_to_move_by_a_robot_that_drives_past():
    circles = [(2.0, 1.0, 0.4), (3.0, -1.0, 0.6), (4.5, 0.9, 0.5), (1.0, -1.6, 0.3)]
    poses = [Pose(0.05 * k, 0.0, 0.0, 0.02 * k) for k in range(60)]
    counts, advance = [], Advance(1.0, 1.5)
    for view in views(world_with(circles=circles), poses):
        counts.append(advance.ahead(view).shape[1])
    assert np.mean(np.array(counts) > 0) < 0.2


def test_what_goes_away_needs_no_room():
    disc = Mover(np.array([1.0, 0.0]), np.array([9.0, 0.0]), 0.6, RADIUS)
    advance = Advance(1.0, 1.5)
    for view in views(world_with([disc]), [Pose(0.0, 0.0, 0.0, 0.0)] * 15, deviation=0.0):
        assert advance.ahead(view).shape[1] == 0


def test_looking_ahead_for_no_time_sees_nothing():
    disc = Mover(np.array([3.0, 0.0]), np.array([-3.0, 0.0]), 0.8, RADIUS)
    advance = Advance(0.0, 1.5)
    for view in views(world_with([disc]), [Pose(0.0, 0.0, 0.0, 0.0)] * 12):
        assert advance.ahead(view).shape == (2, 0)


def test_scans_too_far_apart_say_nothing_of_motion():
    disc = Mover(np.array([3.0, 0.0]), np.array([-3.0, 0.0]), 0.3, RADIUS)
    advance = Advance(1.0, 1.5)
    for view in views(world_with([disc]), [Pose(0.0, 0.0, 0.0, 0.0)] * 4, period=2.0):
        assert advance.ahead(view).shape[1] == 0
