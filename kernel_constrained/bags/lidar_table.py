# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The LIDAR table as a recording, so that a filter can learn it like a robot's messages."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from kernel_constrained.bags.cdr import pose_bytes, range_bytes
from kernel_constrained.bags.recording import Message, Recording, RecordingError, Topic
from kernel_constrained.bags.serialization import POSE_TYPE, RANGE_TYPE
from kernel_constrained.data import lidar_split, load_lidar

__all__ = ['LidarRecording', 'LidarRow']

START = 10**9
STEP = 10**8
RANGE_MIN, RANGE_MAX = 390.0, 720.0

Kind: TypeAlias = Literal['train', 'evaluate_train', 'test']


class LidarRow(NamedTuple):
    """What a ``range`` message of the recording stands for.

    ``epoch`` counts from 1, ``row`` is the table's; only kind ``'train'`` comes with a pose.
    """

    stamp: int
    epoch: int
    row: int
    kind: Kind


class LidarRecording(Recording):
    """The LIDAR table in epochs: topics ``pose`` and ``range``.

    Each epoch shuffles the 179 training pairs anew; ``range`` is a sensor_msgs/Range and ``pose``
    a PoseStamped with the same stamp whose ``position.x`` is the log ratio. The 22 test points
    follow the last epoch in the order of the table, as ranges without a pose. Stamps begin at 1 s
    and step by 0.1 s.

    Parameters
    ----------
    seed
        Seed of the split (:func:`kernel_constrained.data.lidar_split`) and of the shuffles.
    epochs
        How often the training pairs are shown.
    evaluate_epochs
        Whether after each epoch the training points and then the test points are asked for
        without a pose, in the order of the table. Those of the last epoch end the recording.

    Attributes
    ----------
    rows : tuple of LidarRow
        One for each ``range`` message, in order, to match estimates by stamp.

    Raises
    ------
    RecordingError
        ``epochs`` is not a positive integer.
    """

    def __init__(self, *, seed: int = 0, epochs: int = 10, evaluate_epochs: bool = False) -> None:
        super().__init__('lidar')
        if epochs != int(epochs) or epochs < 1:
            raise RecordingError(f'lidar: epochs must be a positive integer (got {epochs})')
        self.rows = tuple(_rows(seed, int(epochs), evaluate_epochs))
        self._range, self._logratio = load_lidar()
        trained = sum(row.kind == 'train' for row in self.rows)
        self.topics = {
            'pose': Topic(POSE_TYPE, trained),
            'range': Topic(RANGE_TYPE, len(self.rows)),
        }
        self.start = self.rows[0].stamp
        self.end = self.rows[-1].stamp

    def _read(self, topics: set[str], begin: int, finish: int | None) -> Iterator[Message]:
        for stamp, _, row, kind in self.rows:
            if stamp < begin or (finish is not None and stamp >= finish):
                continue
            if kind == 'train' and 'pose' in topics:
                data = pose_bytes(stamp, float(self._logratio[row]), 0.0, 0.0)
                yield Message('pose', POSE_TYPE, stamp, data)
            if 'range' in topics:
                data = range_bytes(
                    stamp, float(self._range[row]), range_min=RANGE_MIN, range_max=RANGE_MAX
                )
                yield Message('range', RANGE_TYPE, stamp, data)


def _rows(seed: int, epochs: int, evaluate_epochs: bool) -> Iterator[LidarRow]:
    split = lidar_split(seed)
    train, test = sorted(split.train.tolist()), sorted(split.test.tolist())
    # a stream of its own: the split has used up the start of default_rng(seed)
    shuffle = np.random.default_rng([seed, 1])
    stamp = START
    for epoch in range(1, epochs + 1):
        shown: list[tuple[int, Kind]] = [
            (row, 'train') for row in shuffle.permutation(split.train).tolist()
        ]
        if evaluate_epochs:
            shown += [(row, 'evaluate_train') for row in train]
        if evaluate_epochs or epoch == epochs:
            shown += [(row, 'test') for row in test]
        for row, kind in shown:
            yield LidarRow(stamp, epoch, row, kind)
            stamp += STEP
