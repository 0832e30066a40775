# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What a path keeps clear of: discs, a grid of distances, and a box."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Obstacles(NamedTuple):
    """What the centre of the robot keeps away from, in the frame of the path; metres.

    Obstacles in a plane count as columns of every height for a path in space.

    Attributes
    ----------
    points : (2, n) or (3, n)
        Centres of discs or balls: end points of beams, and the centres of circles.
    keep : (n,)
        Distance that the robot's centre keeps from each: the disc's radius, the robot's, and the
        margin.
    grid : (columns, rows)
        Signed distance to the map's obstacles at the nodes of a grid, first index along x;
        (0, 0) without a map.
    grid_origin : (2,)
        Position of ``grid[0, 0]``.
    grid_spacing : float
        Distance between nodes.
    grid_keep : float
        Distance that the robot's centre keeps from the map's obstacles.
    low, high : (D,)
        Box in which the robot's centre stays.
    """

    points: Array
    keep: Array
    grid: Array
    grid_origin: Array
    grid_spacing: float
    grid_keep: float
    low: Array
    high: Array


def in_the_open(dimensions: int = 2) -> Obstacles:
    """Return no obstacles at all."""
    return Obstacles(
        np.empty((2, 0)), np.empty(0), np.empty((0, 0)), np.zeros(2), 1.0, 0.0,
        np.full(dimensions, -np.inf), np.full(dimensions, np.inf),
    )  # fmt: skip
