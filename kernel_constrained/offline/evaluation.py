# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A recording through the filter, without middleware: what it says of each scan, and the truth.

The messages go the same way as in the node, so that a replay in lockstep gives the same numbers.
"""

import math
from collections import Counter, deque
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.bags import decode_input, Message, RecordingError
from kernel_constrained.offline.series import Series
from kernel_constrained.offline.sources import Topics
from kernel_constrained.perception.filter import Estimate, Learned, ScanFilter
from kernel_constrained.perception.geometry import Pose
from kernel_constrained.perception.intake import Intake
from kernel_constrained.perception.messages import stamp_of
from kernel_constrained.perception.node_config import FilterNodeConfig
from kernel_constrained.perception.pairing import Pairing, SECOND
from kernel_constrained.perception.targets import HEADING, Truths, with_heading
from kernel_constrained.perception.unusable import Unusable

Array = npt.NDArray[np.float64]

# What a row of the series is about: learned as it came, from after the split, or from a dropout.
ONLINE, TEST, DROPOUT = 'online', 'test', 'dropout'

# Reason why a message was dropped that is damaged: that is no matter of the robot.
UNDECODABLE = 'cannot be decoded'

UNITS = {'x': 'm', 'y': 'm', 'z': 'm', 'forward': 'm', 'left': 'm', 'yaw': 'rad'}


@attrs.frozen
class Schedule:
    """When the filter learns, and when it is on its own; seconds since the recording began.

    Attributes
    ----------
    test_from
        From here on the filter predicts and does not learn.
    dropouts
        Intervals (begin, end) in which no trusted pose reaches the filter.
    """

    test_from: float = math.inf
    dropouts: tuple[tuple[float, float], ...] = ()

    def section(self, time: float) -> str:
        """Say what a message at a time is for."""
        if any(begin <= time < end for begin, end in self.dropouts):
            return DROPOUT
        return TEST if time >= self.test_from else ONLINE


def component_names(filter_: ScanFilter) -> tuple[str, ...]:
    """Names of the numbers that estimates are published as: a heading is a yaw."""
    names = filter_.target.components
    return (*names[:-2], 'yaw') if names[-2:] == HEADING else names


@attrs.define
class Row:
    """What is known so far of an estimate."""

    number: int
    stamp: int
    time: float
    section: str
    mean: Array
    shown: Array
    deviation: Array
    dual_variable: float
    model_order: int
    learned: bool = False
    rejected: bool = False
    loss: float = math.nan
    cvar: float = math.nan
    truth: Array | None = None
    pose: Pose | None = None


class Evaluation:
    """Feeds a filter and notes what it says of each scan beside the truth.

    Parameters
    ----------
    config
        Of the filter.
    topics
        What is fed to it.
    start
        Stamp at which the recording begins, nanoseconds.
    schedule
        When it learns.

    Attributes
    ----------
    filter : ScanFilter
        As it is by now.
    series : Series
        A row for each estimate, see :meth:`columns`.
    received, used, dropped : Counter
        Messages by ``'scan'`` (or ``'range'``) and ``'pose'``; dropped ones by reason.
    withheld : int
        Poses that did not reach the filter because of a dropout: neither used nor dropped.
    largest_order : int
        Largest model order there was.
    """

    def __init__(
        self, config: FilterNodeConfig, topics: Topics, start: int, schedule: Schedule
    ) -> None:
        self.config, self.topics, self.schedule = config, topics, schedule
        self.filter = ScanFilter(config)
        self.names = component_names(self.filter)
        self.series = Series(self.columns(self.names))
        self.received: Counter[str] = Counter()
        self.used: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.withheld = self.largest_order = 0
        self._start = start
        self._intake = Intake(self.filter, config)
        # With dropouts the truth is paired by itself: it knows poses that the filter does not.
        self._pairing: Pairing[int] | None = None
        if schedule.dropouts:
            self._pairing = Pairing(
                config.pairing.max_gap, config.pairing.queue_size, config.pose.max_jump
            )
        self._truths = Truths()
        self._pending: deque[Row] = deque()
        self._learner_figures = 0.0, 0
        self._most_pending = 3 * config.pairing.queue_size

    @staticmethod
    def columns(names: tuple[str, ...]) -> list[tuple[str, str]]:
        """Columns of the series: name and numpy type."""
        each = [f'{kind}_{name}' for kind in ('estimate', 'truth', 'sd') for name in names]
        figures = ['loss', 'cvar', 'violation', 'dual_variable']
        return [
            ('stamp', 'i8'), ('time', 'f8'), ('section', 'U7'), ('learned', 'i1'),
            ('rejected', 'i1'),
            *((name, 'f8') for name in (*each, *figures)), ('model_order', 'i4'),
            ('pose_x', 'f8'), ('pose_y', 'f8'), ('pose_yaw', 'f8'),
        ]  # fmt: skip

    def take(self, message: Message) -> None:
        """Take a message of the recording; what cannot be used is counted by reason."""
        kind = self.topics.input_type if message.topic == self.topics.input else 'pose'
        time = (message.stamp - self._start) / SECOND
        self.received[kind] += 1
        try:
            decoded = decode_input(message)
            if kind == 'pose':
                self._take_pose(decoded, time)
            else:
                self._take_scan(decoded, time)
        except Unusable as error:
            self.dropped[f'{kind}: {error.reason}'] += 1
        except RecordingError:
            self.dropped[f'{kind}: {UNDECODABLE}'] += 1

    def finish(self) -> None:
        """Write the rows whose truth did not come."""
        while self._pending:
            self._write(self._pending.popleft())

    # -- messages ---------------------------------------------------------------------------

    def _take_scan(self, message: Any, time: float) -> None:
        section = self.schedule.section(time)
        self.filter.learning = time < self.schedule.test_from
        estimate = self._intake.scan(message)
        number = self.filter.scans - 1
        if self._pairing is not None:
            self._pairing.add_scan(stamp_of(message), number)
        if estimate is not None:
            self._pending.append(self._row(number, time, section, estimate))
        self._learn()
        self.used[self.topics.input_type] += 1

    def _take_pose(self, message: Any, time: float) -> None:
        dropped_out = self.schedule.section(time) == DROPOUT
        take = self._intake.checked_pose if dropped_out else self._intake.pose
        stamp, pose = take(message)
        if self._pairing is not None:
            self._pairing.add_pose(stamp, pose)
        self._learn()
        self.withheld += dropped_out
        self.used['pose'] += not dropped_out

    def _row(self, number: int, time: float, section: str, estimate: Estimate) -> Row:
        shown, covariance = estimate.mean, estimate.covariance
        if len(self.names) < len(shown):
            shown, covariance = with_heading(shown, covariance)
        return Row(
            number, estimate.stamp, time, section, estimate.mean, shown,
            np.sqrt(covariance.diagonal()), *self._learner_figures,
        )  # fmt: skip

    def _learn(self) -> None:
        """Let the filter learn; then complete the rows whose truth has become known."""
        for learned in self.filter.learn():
            self._note_learned(learned)
        for pair in self._pairing.pairs() if self._pairing is not None else ():
            truth = self._truths.of(self.filter.target, pair.scan, pair)
            self._complete(pair.scan, truth, pair.pose)
        while len(self._pending) > self._most_pending:
            self._write(self._pending.popleft())

    def _note_learned(self, learned: Learned) -> None:
        """Note figures as the node would publish them after this sample."""
        learner = self.filter.learner
        self._learner_figures = learner.dual_variable_, learner.model_order_
        self.largest_order = max(self.largest_order, learner.model_order_)
        for row in self._pending:
            if row.stamp == learned.stamp and math.isnan(row.loss):
                row.learned, row.loss = self.filter.learning, learned.loss
                row.rejected = learned.rejected is not None
                row.cvar = self.filter.cvar()
                row.dual_variable, row.model_order = self._learner_figures
                break
        else:
            return
        if self._pairing is None:
            self._complete(row.number, learned.truth, learned.pose)

    def _complete(self, number: int, truth: Array | None, pose: Pose) -> None:
        """Write the row of a scan whose truth is known; those before it have none."""
        while self._pending and self._pending[0].number < number:
            self._write(self._pending.popleft())
        if self._pending and self._pending[0].number == number:
            row = self._pending.popleft()
            row.truth, row.pose = truth, pose
            self._write(row)

    # -- rows -------------------------------------------------------------------------------

    def _write(self, row: Row) -> None:
        bound, truth = self.config.learner, row.truth
        shown_truth = [math.nan] * len(self.names)
        if truth is not None:
            if math.isnan(row.loss):  # not shown to the filter: its loss as if it had been
                target = self.filter.target
                residual = target.normalised(row.mean, cut=False) - target.normalised(truth)
                row.loss = float(residual @ residual)
            shown_truth = truth.tolist()
            if len(self.names) < len(truth):
                shown_truth[-2:] = [math.atan2(truth[-1], truth[-2])]
        pose = row.pose or Pose(math.nan, math.nan, math.nan, math.nan)
        self.series.append((
            row.stamp, row.time, row.section, row.learned, row.rejected,
            *row.shown.tolist(), *shown_truth, *row.deviation.tolist(),
            row.loss, row.cvar, row.cvar - bound.tolerance if bound.bounded else math.nan,
            row.dual_variable, row.model_order, pose.x, pose.y, pose.yaw,
        ))  # fmt: skip

    def errors(self, name: str) -> Array:
        """Estimate minus truth of a component, shape (n,); of a yaw the short way round."""
        estimate, truth = self.series.columns(f'estimate_{name}', f'truth_{name}')
        difference: Array = estimate - truth
        return wrapped(difference) if name == 'yaw' else difference


def wrapped(angles: Array) -> Array:
    """Angles the short way round, within half a turn."""
    short: Array = angles - 2.0 * math.pi * np.round(angles / (2.0 * math.pi))
    return short
