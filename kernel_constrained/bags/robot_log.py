# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What CARMEN logs and g2o files share: laser scans with a pose each, as a recording."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt

from kernel_constrained.bags.cdr import pose_bytes, scan_bytes
from kernel_constrained.bags.recording import Message, Recording, RecordingError, Topic
from kernel_constrained.bags.robot_lines import LogScan
from kernel_constrained.bags.serialization import POSE_TYPE, SCAN_TYPE

__all__ = ['RobotLog', 'estimate_range_max']

FloatArray = npt.NDArray[np.float64]

# Nearer than any laser scanner sees; zeros and other error readings lie below.
RANGE_MIN = 0.05

# Rate given to the scans of a log without stamps, and when the first was taken (stamp 0 means
# "no time" to ROS). SLAM-corrected logs keep about one scan a second.
MADE_UP_RATE = 1.0
MADE_UP_START = 10**9

# How `estimate_range_max` tells the no-return codes of a sensor from its real returns.
CODE_BAND = 0.99
CODE_REPEATS = 10
CODE_SHARE = 2e-4
CODE_GAP = 2.0
SMALLEST_CODE = 8.183


class RobotLog(Recording):
    """Scans and poses of a robot log as the topics ``pose`` and ``scan``.

    ``pose`` is a PoseStamped in frame ``map``, ``scan`` a LaserScan in frame ``laser``; a scan and
    its pose have the same stamp. Readings at or beyond ``range_max`` become +inf (REP-117). Stamps
    that run backwards are put in order; where all are equal they are made up, one a second.

    Parameters
    ----------
    name
        What to call it.
    scans
        The scans in the order of the log.
    range_max
        Largest real range in metres, or None to find it by :func:`estimate_range_max`.
    losses
        What could not be read of the log.

    Raises
    ------
    RecordingError
        No scans, or a ``range_max`` that is not a positive number.
    """

    def __init__(
        self,
        name: str,
        scans: Sequence[LogScan],
        *,
        range_max: float | None = None,
        losses: Sequence[str] = (),
    ) -> None:
        super().__init__(name)
        if not scans:
            raise RecordingError(
                f'{name}: no usable laser scan in it (FLASER or ROBOTLASER1 lines); '
                + ('; '.join(losses) or 'is it a robot log?')
            )
        self.losses.extend(losses)
        self._scans = sorted(self._with_stamps(scans), key=lambda scan: scan.stamp)
        self._limit_ranges(range_max)
        self._warn_of_mounting()
        self.topics = {
            'pose': Topic(POSE_TYPE, len(scans)),
            'scan': Topic(SCAN_TYPE, len(scans)),
        }
        self.start = self._scans[0].stamp
        self.end = self._scans[-1].stamp

    def _with_stamps(self, scans: Sequence[LogScan]) -> Sequence[LogScan]:
        steps = [after.stamp - before.stamp for before, after in pairwise(scans)]
        if scans[0].stamp == 0 and not any(steps):
            for index, scan in enumerate(scans):
                scan.stamp = MADE_UP_START + round(index * 1e9 / MADE_UP_RATE)
            self.warnings.append(
                f'all {len(scans)} stamps are 0: made up at {MADE_UP_RATE:g} Hz from 1 s on'
            )
            return scans
        if backward := sum(step < 0 for step in steps):
            self.warnings.append(
                f'{backward} of {len(scans)} scan stamps run backwards: '
                'messages are in the order of stamps, not of the log'
            )
        if repeated := sum(step == 0 for step in steps):
            self.warnings.append(f'{repeated} of {len(scans)} scans repeat the stamp before')
        return scans

    def _limit_ranges(self, range_max: float | None) -> None:
        readings = np.concatenate([scan.ranges for scan in self._scans])
        header = min(scan.header_range_max for scan in self._scans)
        if range_max is None:
            range_max = estimate_range_max(readings, header)
        elif not 0.0 < range_max < math.inf:
            raise RecordingError(
                f'{self.name}: range_max must be a positive number of metres (got {range_max})'
            )
        # compared as single precision, as every reader of the message will
        self.range_max = float(np.float32(range_max))
        codes = np.unique(readings[readings.astype(np.float32) >= self.range_max])
        for scan in self._scans:
            scan.ranges = np.where(
                scan.ranges.astype(np.float32) >= self.range_max, np.inf, scan.ranges
            )
        if codes.size:
            count = np.count_nonzero(readings >= codes[0])
            self.warnings.append(
                f'{count} of {readings.size} readings ({count / readings.size:.1%}) from '
                f'{codes[0]:g} to {codes[-1]:g} m taken as no return (+inf); range_max is '
                f'{self.range_max:.4g} m'
                + (f', the header says {header:g} m' if header < math.inf else '')
            )

    def _warn_of_mounting(self) -> None:
        mounting = np.median([scan.mounting for scan in self._scans], axis=0)
        if np.abs(mounting).max() > 1e-3:
            self.warnings.append(
                "poses are the robot's; its laser is mounted at x, y, yaw = "
                + ', '.join(f'{value:.3f}' for value in mounting)
            )

    def _read(self, topics: set[str], begin: int, finish: int | None) -> Iterator[Message]:
        for stamp, group in groupby(self._scans, key=lambda scan: scan.stamp):
            if stamp < begin or (finish is not None and stamp >= finish):
                continue
            scans = list(group)
            if 'pose' in topics:
                yield from (self._pose_message(scan) for scan in scans)
            if 'scan' in topics:
                yield from (self._scan_message(scan) for scan in scans)

    def _pose_message(self, scan: LogScan) -> Message:
        data = pose_bytes(scan.stamp, scan.x, scan.y, scan.yaw)
        return Message('pose', POSE_TYPE, scan.stamp, data)

    def _scan_message(self, scan: LogScan) -> Message:
        data = scan_bytes(
            scan.stamp,
            scan.ranges,
            angle_min=scan.angle_min,
            angle_increment=scan.angle_increment,
            range_min=RANGE_MIN,
            range_max=self.range_max,
        )
        return Message('scan', SCAN_TYPE, scan.stamp, data)


def estimate_range_max(readings: FloatArray, header_range_max: float = math.inf) -> float:
    """Find a limit above every real return and below every no-return code.

    Where nothing comes back, a sensor writes a code instead of a range: SICK's are 8183 to 8191
    or 32759 to 32767 in its own units, but what a log holds depends on the driver, and headers
    do not tell (one says 50 m where codes are 51.05 to 51.16 and real returns reach 51.01).
    Codes show in the data in one of two ways. Only the *band* of readings within 1 % of the
    largest is looked at, since real returns are never far beyond others in great number.

    * A *spike*: a value in the band that occurs ten times as often as the values just below the
      band typically do (the median over the highest tenth of them), and is at least 0.02 % of
      all readings. Everything from the lowest spike on is a code.
    * A *gap*: the band lies beyond twice the next lower reading, and beyond the smallest code of
      any known sensor, 8.183 m. All of it is codes. This serves short logs.

    Without either, readings at or beyond the header's maximum are codes.

    The limit is the header's maximum where that separates the two, else 1 % above the largest
    real return, or half way to the lowest code where that is nearer.

    Parameters
    ----------
    readings : array of shape (n,)
        All readings of a log in metres.
    header_range_max
        The maximum that the log's header states, in metres.

    Returns
    -------
    float
        The limit in metres.
    """
    values, counts = np.unique(readings[np.isfinite(readings)], return_counts=True)
    lowest_code = _lowest_code(values, counts)
    if lowest_code == math.inf and (beyond := values[values >= header_range_max]).size:
        lowest_code = float(beyond[0])
    real = values[(values < lowest_code) & (values > RANGE_MIN)]
    largest = float(real[-1]) if real.size else RANGE_MIN
    if largest < header_range_max < lowest_code:
        return header_range_max
    return min(1.01 * largest, (largest + lowest_code) / 2)


def _lowest_code(values: FloatArray, counts: npt.NDArray[np.int64]) -> float:
    """Return the lowest no-return code among the distinct ``values``, infinite without one."""
    if not values.size:
        return math.inf
    in_band = values >= CODE_BAND * values[-1]
    below, below_counts = values[~in_band], counts[~in_band]
    if not below.size:
        return math.inf
    typical = np.median(below_counts[-max(1, below.size // 10) :])
    often = max(CODE_REPEATS * typical, CODE_SHARE * counts.sum())
    spikes = values[in_band & (counts >= often)]
    if spikes.size:
        return float(spikes[0])
    lowest_in_band = float(values[in_band][0])
    alone = lowest_in_band > max(CODE_GAP * below[-1], SMALLEST_CODE - 1e-6)
    return lowest_in_band if alone else math.inf
