# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A replay of scans and trusted poses in a table and a figure: prequential error of the motion."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from kernel_constrained.bags import decode, Recording, RecordingError
from kernel_constrained.offline.recorded import Recorded
from kernel_constrained.offline.summary import ROUNDING
from kernel_constrained.perception.geometry import motion_between, Pose, pose_from_quaternion

Array = npt.NDArray[np.float64]

COMPONENTS = ('forward', 'left', 'yaw')
UNITS = ('m', 'm', 'rad')


class Prequential(NamedTuple):
    """Motions of a replay, each estimated before it was learned.

    Attributes
    ----------
    stamps : (n,)
        Stamps of the scans, nanoseconds.
    truth, estimate, baseline : (n, 3)
        Forward and left (m) and yaw (rad): by the trusted poses, by the filter, and by the mean
        of the motions before.
    """

    stamps: npt.NDArray[np.int64]
    truth: Array
    estimate: Array
    baseline: Array

    def r_squared(self, first: float) -> Array:
        """1 - error / variance over the samples from the share ``first`` on; shape (3,).

        NaN where the truth is the same but for rounding.
        """
        part = slice(int(first * len(self.truth)), None)
        truth, estimate = self.truth[part], self.estimate[part]
        variance = truth.var(axis=0)
        variance[variance <= ROUNDING**2] = np.nan
        return np.asarray(1.0 - ((estimate - truth) ** 2).mean(axis=0) / variance)

    def rmse(self, first: float) -> tuple[Array, Array]:
        """Root mean squared error of the filter and of the running mean; shape (3,) each."""
        part = slice(int(first * len(self.truth)), None)
        truth = self.truth[part]
        return (
            np.sqrt(((self.estimate[part] - truth) ** 2).mean(axis=0)),
            np.sqrt(((self.baseline[part] - truth) ** 2).mean(axis=0)),
        )


def trusted_poses(recording: Recording, topic: str = 'pose') -> dict[int, Pose]:
    """Poses of a recording by their stamps in nanoseconds."""
    poses = {}
    for message in recording.messages([topic]):
        decoded = decode(message)
        stamp, p, q = decoded.header.stamp, decoded.pose.position, decoded.pose.orientation
        pose = pose_from_quaternion((p.x, p.y, p.z), (q.x, q.y, q.z, q.w))
        poses[stamp.sec * 1_000_000_000 + stamp.nanosec] = pose
    return poses


def prequential(recording: Recording, recorded: Recorded) -> Prequential:
    """Join the recorded estimates with the motion between the trusted poses.

    Raises
    ------
    RecordingError
        Where no estimate has the stamp of a trusted pose.
    """
    poses = trusted_poses(recording)
    stamps = sorted(poses)
    motion = {
        after: motion_between(poses[before], poses[after])
        for before, after in zip(stamps, stamps[1:], strict=False)
    }
    known = np.array([stamp in motion for stamp in recorded.stamps.tolist()])
    if not known.any():
        raise RecordingError(f'{recording.name}: no estimate has the stamp of a trusted pose')
    truth = np.array([motion[stamp] for stamp in recorded.stamps[known].tolist()])
    before = np.vstack([np.zeros(3), np.cumsum(truth, axis=0)[:-1]])
    baseline = before / np.maximum(np.arange(len(truth)), 1)[:, None]
    return Prequential(recorded.stamps[known], truth, recorded.estimates[known], baseline)


def format_table(result: Prequential, recorded: Recorded, first: float = 0.7) -> str:
    """Lay errors and figures out as lines of text, over the samples from ``first`` on."""
    r_squared = result.r_squared(first)
    errors, of_mean = result.rmse(first)
    count = len(result.truth) - int(first * len(result.truth))
    figures = recorded.figures
    lines = [
        f'{len(result.truth)} motions, each estimated before it was learned; the last {count}:',
        'component    RMSE filter  RMSE running mean     R2',
    ]
    for name, unit, error, baseline, share in zip(
        COMPONENTS, UNITS, errors, of_mean, r_squared, strict=True
    ):
        lines.append(f'{name:8} {error:11.4f} {unit:<3} {baseline:13.4f} {unit:<4} {share:7.3f}')
    lines.append(
        f'CVaR {figures["cvar"][-1]:.3f}, violation {figures["violation"][-1]:.3f}, '
        f'dual variable {figures["dual_variable"][-1]:.4f}, '
        f'order {figures["model_order"][-1]:.0f}, '
        f'{1e6 * np.median(figures["processing_time"]):.0f} us/scan'
    )
    return '\n'.join(lines)


def draw(result: Prequential, recorded: Recorded, path: Path) -> None:
    """Write the figure: running error of each component, estimate over truth, violation, order."""
    figure = Figure(figsize=(13, 7.5), layout='constrained')
    axes = figure.subplots(2, 3)
    motions = np.arange(1, len(result.truth) + 1)
    window = max(1, len(motions) // 20)

    def running(errors: Array) -> Array:
        squared = np.convolve(errors**2, np.ones(window) / window, mode='valid')
        return np.asarray(np.sqrt(squared))

    for c, (name, unit) in enumerate(zip(COMPONENTS, UNITS, strict=True)):
        for values, label in ((result.baseline, 'running mean'), (result.estimate, 'filter')):
            axes[0, c].plot(motions[window - 1 :], running((values - result.truth)[:, c]),
                            label=label)  # fmt: skip
        axes[0, c].set(title=f'{name}: RMSE over {window} motions [{unit}]', ylim=(0, None))
        axes[0, c].legend()
    part = slice(int(0.7 * len(motions)), None)
    axes[1, 0].plot(result.truth[part, 0], result.estimate[part, 0], '.', markersize=3)
    low, high = np.percentile(result.truth[part, 0], [0.5, 99.5])
    axes[1, 0].plot([low, high], [low, high], 'k', linewidth=0.8)
    axes[1, 0].set(title='forward, last 30 %: estimate over truth [m]', xlim=(low, high),
                   ylim=(low, high), xlabel='truth [m]')  # fmt: skip
    axes[1, 1].plot(recorded.figures['violation'])
    axes[1, 1].axhline(0.0, color='k', linewidth=0.8)
    axes[1, 1].set(title='Constraint violation (newest 1000 losses)')
    axes[1, 2].plot(recorded.figures['model_order'])
    axes[1, 2].set(title='Model order', ylim=(0, None))
    for panel in axes.ravel():
        panel.grid(alpha=0.3)
    for panel in (*axes[0], axes[1, 1], axes[1, 2]):
        panel.set(xlabel='motions')
    figure.savefig(path, dpi=120)
