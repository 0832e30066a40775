# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What became of a drive."""

import math

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.planning.polyline import length_of

Array = npt.NDArray[np.float64]


@attrs.frozen(eq=False)
class Episode:
    """What became of a drive; metres and seconds.

    Attributes
    ----------
    reached : bool
        Whether the robot came to the goal.
    times, positions, clearances : (n,), (n, 2), (n,)
        Where it truly was when, and the distance of its disc to the nearest obstacle.
    outside : float
        How far the disc stuck out of the world's bounds at most.
    unproven : int
        Scans after which the robot moved without a proven path, or away from it. Must be 0.
    gap : float
        Largest distance at which a path was taken up.
    reasons : tuple of str
        Why there was no path, scan by scan; empty where there was one.
    proven : (m,)
        Smallest true clearance of each path that was said to be proven, as the world was at the
        time of its scan.
    deeper : (j,)
        By how much each of these paths, and each motion along one, touched what was there at its
        scan more than the robot did already; 0 where it did not.
    churn : (k,)
        How far the next three metres of a path were from those of the one before.
    cpu : (scans,)
        Thread time of each call of the planner.
    """

    reached: bool
    times: Array
    positions: Array
    clearances: Array
    outside: float
    unproven: int
    gap: float
    reasons: tuple[str, ...]
    proven: Array
    deeper: Array
    churn: Array
    cpu: Array

    @property
    def clearance(self) -> float:
        """Smallest distance between the robot's disc and an obstacle; negative in collision."""
        return float(self.clearances.min())

    @property
    def collided(self) -> bool:
        """Whether the disc ever overlapped an obstacle."""
        return self.clearance < 0.0

    @property
    def collided_at(self) -> float:
        """When it first did; NaN if never."""
        return float(self.times[np.argmax(self.clearances < 0.0)]) if self.collided else math.nan

    @property
    def exposure(self) -> float:
        """Share of the time spent in collision."""
        return float(np.diff(self.times)[self.clearances[1:] < 0.0].sum() / self.duration)

    @property
    def duration(self) -> float:
        """Seconds from beginning to end."""
        return float(self.times[-1])

    @property
    def length(self) -> float:
        """Way that the robot went, metres."""
        return length_of(self.positions)

    @property
    def stood(self) -> int:
        """Count the scans without a proven path."""
        return sum(bool(reason) for reason in self.reasons)
