# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The worlds that planners are compared on, and what is measured of a path.

All worlds are drawn by one rule. Those of the kinds ``base`` and ``extended`` are in the shared
file, too, rounded to four decimals; they are read from there if it is there, so that figures stay
comparable with those that others have from that file.
"""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kernel_constrained.planning.polyline import arc_lengths, resampled
from kernel_constrained.planning.worlds import random_world, World

SHARED = Path(__file__).resolve().parents[3] / 'shared' / 'data' / 'planning_worlds.json'
SEEDS = {'base': range(20), 'extended': range(1000, 1100), 'fresh': range(2000, 2200)}
TUNING_SEEDS = range(5000, 5200)  # on which the peers' settings were chosen, and nothing measured

CHECKED = 100_001  # points at which a path has to be free
END_TOLERANCE = 1e-3  # how far a path may begin and end from where it should, metres
BOX_TOLERANCE = 1e-6
SAMPLED = 4_001  # points from which curvature is taken
WINDOW = 0.3  # length over which turning is averaged into curvature, metres


class Measures(NamedTuple):
    """What is measured of a path.

    Attributes
    ----------
    free
        Whether it leads from start to goal, inside the square, and touches nothing.
    clearance
        Least distance from the robot's rim to a disc, metres; negative inside.
    length
        Metres.
    curvature_p95, curvature_max
        Of the turning within :data:`WINDOW`, by arc length, 1/m.
    """

    free: bool
    clearance: float
    length: float
    curvature_p95: float
    curvature_max: float


def read(kind):
    """Return the worlds of a kind in the shared file; none where there is no such file."""
    if kind == 'fresh' or not SHARED.exists():
        return []
    shared = json.loads(SHARED.read_text())
    low, high = shared['bounds']
    return [
        World(
            shared['start'], shared['goal'], np.column_stack([entry['centers'], entry['radii']]),
            bounds=((low, low), (high, high)), radius=shared['robot_radius'],
        )
        for entry in shared[kind]
    ]  # fmt: skip


@cache
def worlds(kind, limit=None):
    """Return the first ``limit`` worlds of a kind: ``base``, ``extended`` or ``fresh``."""
    return read(kind)[:limit] or [random_world(seed) for seed in SEEDS[kind][:limit]]


def curvatures(path):
    """Return curvature along a path: turning to either side within a window over its length.

    A window makes polylines comparable with smooth curves: between its corners a polyline has no
    curvature, and at them no finite one. A robot does not follow finer than about its radius.
    """
    steps = np.diff(resampled(path, SAMPLED), axis=0)
    heading = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
    turned = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(heading)))])
    spacing = arc_lengths(path)[-1] / (SAMPLED - 1)
    window = max(1, round(WINDOW / spacing))
    return (turned[window:] - turned[:-window]) / (window * spacing)


def measure(world, positions):
    """Return the :class:`Measures` of a path (k, 2), straight between its positions."""
    path = np.asarray(positions, dtype=float)
    clearance = float(world.clearance(resampled(path, CHECKED)).min())
    arrives = np.abs(path[[0, -1]] - (world.start, world.goal)).max() <= END_TOLERANCE
    inside = world.outside(path).max() <= BOX_TOLERANCE
    bending = curvatures(path)
    return Measures(
        bool(arrives and inside and clearance >= 0), clearance, float(arc_lengths(path)[-1]),
        float(np.percentile(bending, 95)), float(bending.max()),
    )  # fmt: skip


def nearest_disc(world, points):
    """Return the distance (k,) of points (k, 2) to the nearest disc, and its gradient (k, 2)."""
    away = points[:, None] - world.circles[:, :2]
    apart = np.sqrt((away**2).sum(-1))
    row, nearest = np.arange(len(points)), (apart - world.circles[:, 2]).argmin(1)
    at = apart[row, nearest]
    return at - world.circles[nearest, 2], away[row, nearest] / at[:, None]


def box(world):
    """Return the corners (2,) and (2,) of where the robot's centre may be."""
    return world.bounds[0] + world.radius, world.bounds[1] - world.radius
