# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""How far estimated motions lead astray, one after the other: what matters without a pose."""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.offline.evaluation import Evaluation, wrapped

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Track(NamedTuple):
    """Trusted poses and estimated motions of the scans that there is an estimate for.

    Attributes
    ----------
    stamps : (n,)
        Stamps of the scans, nanoseconds.
    time : (n,)
        When they were recorded, seconds since the recording began.
    poses : (n, 3)
        Trusted poses x, y (m) and yaw (rad); NaN where there is none.
    motions : (n, 3)
        Estimated motion since the scan before: forward, left (m), yaw (rad).
    """

    stamps: npt.NDArray[np.int64]
    time: Array
    poses: Array
    motions: Array


class Drift(NamedTuple):
    """What became of a pose that went on by estimated motions alone.

    Attributes
    ----------
    begin, end
        The interval without a trusted pose, seconds since the recording began.
    distance
        Driven from the last trusted pose before it to the last scan in it, m.
    error, yaw_error
        Where the motions lead minus where the robot was: m, and rad the short way round.
    path : (m, 2)
        Positions by the motions, from the last trusted pose on, m.
    truth : (k, 2)
        Positions where the robot was, from the same on.
    """

    begin: float
    end: float
    distance: float
    error: float
    yaw_error: float
    path: Array
    truth: Array

    @property
    def percent(self) -> float:
        """Error in percent of the distance; NaN for a robot that stood."""
        return 100.0 * self.error / self.distance if self.distance > 0.0 else math.nan


def track_of(evaluation: Evaluation, rows: npt.NDArray[np.intp] | None = None) -> Track:
    """Return the track of an evaluation of target ``motion``, or some rows of it."""
    columns = partial(evaluation.series.columns, rows=rows)
    stamps, time = columns('stamp', 'time')
    poses = np.stack(columns('pose_x', 'pose_y', 'pose_yaw'), axis=1)
    motions = np.stack(columns('estimate_forward', 'estimate_left', 'estimate_yaw'), axis=1)
    return Track(stamps, time, poses, motions)


def chained(motions: Array) -> Array:
    """Poses after each of a sequence of motions, seen from before the first; shape (n, 3)."""
    yaw = np.cumsum(motions[:, 2])
    ahead, left = _turned(motions[:, :2], yaw - motions[:, 2])
    return np.stack([np.cumsum(ahead), np.cumsum(left), yaw], axis=1)


def moved(poses: Array, motions: Array) -> Array:
    """Poses (n, 3) after a motion (n, 3) from each."""
    x, y = _turned(motions[:, :2], poses[:, 2])
    return np.stack([poses[:, 0] + x, poses[:, 1] + y, poses[:, 2] + motions[:, 2]], axis=1)


def between(first: Array, second: Array) -> Array:
    """Motions (n, 3) that lead from the first poses (n, 3) to the second."""
    ahead, left = _turned(second[:, :2] - first[:, :2], -first[:, 2])
    return np.stack([ahead, left, second[:, 2] - first[:, 2]], axis=1)


def drifts_of(evaluation: Evaluation) -> list[Drift]:
    """Drift in each dropout of an evaluation, but where no trusted pose came before."""
    time, x = evaluation.series.columns('time', 'pose_x')
    known = ~np.isnan(x)
    found = []
    for begin, end in evaluation.schedule.dropouts:
        before = np.flatnonzero((time < begin) & known)
        inside = np.flatnonzero((begin <= time) & (time < end) & known)
        if before.size and inside.size:
            track = track_of(evaluation, np.arange(before[-1], inside[-1] + 1))
            found.append(drift_along(track, begin, end))
    return found


def drift_along(track: Track, begin: float, end: float) -> Drift:
    """Drift of a dropout.

    Parameters
    ----------
    track
        From the last trusted pose before it to the last one that is known in it.
    begin, end
        Of the dropout, seconds since the recording began.
    """
    path = moved(track.poses[:1], chained(track.motions[1:]))
    truth = track.poses[~np.isnan(track.poses[:, 0])]
    x, y, yaw = path[-1] - truth[-1]
    return Drift(
        begin, end, float(np.sum(_steps(truth))), math.hypot(x, y),
        math.remainder(yaw, 2.0 * math.pi), np.concatenate([track.poses[:1], path])[:, :2],
        truth[:, :2],
    )  # fmt: skip


def drift_over(track: Track, length: float, used: Mask) -> tuple[int, float, float]:
    """Drift over all stretches of a driven distance, as KITTI and rpg_trajectory_evaluation say.

    Parameters
    ----------
    track
        Poses and motions.
    length
        Distance driven, m.
    used : (n,)
        Rows at which a stretch may begin and end.

    Returns
    -------
    tuple
        Number of stretches; means of the error in percent of the distance and of the change in
        heading that is wrong, rad/m. NaN without any.
    """
    by_motions = chained(track.motions)
    rows = np.flatnonzero(used & ~np.isnan(track.poses[:, 0]))
    truth, passes = track.poses[rows], np.cumsum(np.diff(track.stamps[rows], prepend=0) < 0)
    driven = np.concatenate([[0.0], np.cumsum(_steps(truth))])[: len(rows)]
    ends = np.searchsorted(driven, driven + length)
    begins = np.flatnonzero(ends < len(rows))
    ends = ends[begins]
    same_pass = passes[begins] == passes[ends]
    begins, ends = begins[same_pass], ends[same_pass]
    if not len(begins):
        return 0, math.nan, math.nan
    wrong = between(
        between(truth[begins], truth[ends]),
        between(by_motions[rows[begins]], by_motions[rows[ends]]),
    )
    distance = driven[ends] - driven[begins]
    turned = wrapped(wrong[:, 2])
    return (
        len(begins),
        float(np.mean(100.0 * np.hypot(wrong[:, 0], wrong[:, 1]) / distance)),
        float(np.mean(np.abs(turned) / distance)),
    )


def _steps(poses: Array) -> Array:
    """Distances from each pose to the next."""
    steps: Array = np.hypot(*np.diff(poses[:, :2], axis=0).T)
    return steps


def _turned(positions: Array, yaw: Array) -> Sequence[Array]:
    """Turn each position (n, 2) by an angle."""
    cosine, sine, x, y = np.cos(yaw), np.sin(yaw), positions[:, 0], positions[:, 1]
    return cosine * x - sine * y, sine * x + cosine * y
