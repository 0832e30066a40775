# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Random drives in closed loop: nothing that a scan showed is touched on a path proven from it.

A thousand are driven by ``test/benchmark/planner_closed_loop.py --only episodes``.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / 'benchmark'))

from random_episodes import episodes_planner, fault_of, random_episode

BATCH = 20


@pytest.fixture(scope='module')
def planner():
    return episodes_planner()


@pytest.mark.parametrize('first', range(0, 200, BATCH))
def test_no_path_and_no_motion_along_it_touches_what_the_scan_showed(planner, first):
    episodes = {seed: random_episode(planner, seed) for seed in range(first, first + BATCH)}
    faults = {seed: fault_of(episode) for seed, episode in episodes.items()}
    assert not any(faults.values()), faults
    assert sum(len(episode.proven) for episode in episodes.values()) > 5 * BATCH, 'they move'


def test_the_same_seed_gives_the_same_episode(planner):
    first, again = random_episode(planner, 3), random_episode(planner, 3)
    assert np.array_equal(first.positions, again.positions)


class Reckless:
    """Goes straight to the goal and calls that proven."""

    def reset(self):
        pass

    def set_goal(self, goal):
        self.goal = goal

    def plan(self, stamp, scan, pose, covariance):
        return SimpleNamespace(
            reason='', path=np.array([(pose.x, pose.y), self.goal]), rest=np.empty((0, 2))
        )


def test_a_planner_that_proves_nothing_is_found_out():
    faults = [fault_of(random_episode(Reckless(), seed)) for seed in range(10)]
    assert sum('touch what was there' in fault for fault in faults) > 3
