# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What a classifier says of a recording's scans: without middleware, or as its node published it.

The messages go the same way as in the node, so that a replay in lockstep gives the same numbers.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.bags import decode, decode_input, open_recording, Recording, RecordingError
from kernel_constrained.perception.classifier import Classification, PlaceClassifier
from kernel_constrained.perception.classifier_config import ClassifierNodeConfig
from kernel_constrained.perception.classifier_intake import ClassifierIntake
from kernel_constrained.perception.unusable import Unusable
from kernel_constrained.topics import MARGIN, SCORE

Array = npt.NDArray[np.float64]


class Said(NamedTuple):
    """What was said of scans, each before it was learned.

    Attributes
    ----------
    stamps : (n,)
        Of the scans, nanoseconds.
    labels : (n,) of str
        The label with the highest score, empty before one is known.
    margins : (n,)
        What its score is ahead of the next.
    unsure : (n,)
        Whether that is too little.
    scores : list of dict
        Scores of the labels that were known.
    """

    stamps: npt.NDArray[np.int64]
    labels: npt.NDArray[np.str_]
    margins: Array
    unsure: npt.NDArray[np.bool_]
    scores: list[dict[str, float]]


def as_said(classifications: list[Classification], name: str) -> Said:
    """Lay classifications side by side.

    Raises
    ------
    RecordingError
        Where there is none.
    """
    if not classifications:
        raise RecordingError(f'{name}: no scan was classified')
    return Said(
        np.array([one.stamp for one in classifications]),
        np.array([one.label for one in classifications]),
        np.array([one.margin for one in classifications]),
        np.array([one.unsure for one in classifications]),
        [one.scores for one in classifications],
    )


def classify(
    recording: Recording, config: ClassifierNodeConfig
) -> tuple[Said, PlaceClassifier]:  # fmt: skip
    """Run a classifier over topics ``scan`` and ``label`` of a recording.

    Returns
    -------
    said : Said
        What it says of each scan that can be used.
    classifier : PlaceClassifier
        As it is in the end.

    Raises
    ------
    RecordingError
        Where there is no such topic, a message is damaged, or no scan can be used.
    """
    classifier = PlaceClassifier(config)
    intake = ClassifierIntake(classifier, config)
    classifications: list[Classification] = []
    for message in recording.messages(['scan', 'label']):
        try:
            if message.topic.lstrip('/') == 'label':
                intake.label(decode(message))
                continue
            classifications.append(intake.scan(decode_input(message)))
            classifier.learn()
        except Unusable:
            continue
    return as_said(classifications, recording.name), classifier


def read_said(path: Path) -> Said:
    """Read what classifier_node published on ``label_scores`` from a recording of it.

    Raises
    ------
    RecordingError
        Where nothing is there.
    """
    classifications = []
    with open_recording(path) as recording:
        for message in recording.messages(['label_scores']):
            decoded = decode(message)
            stamp, status = decoded.header.stamp, decoded.status[0]
            values = {entry.key: float(entry.value) for entry in status.values}
            margin = values.pop(MARGIN)
            classifications.append(
                Classification(
                    stamp.sec * 1_000_000_000 + stamp.nanosec, status.message, margin,
                    {key.removeprefix(SCORE): score for key, score in values.items()},
                    status.level > 0,
                )
            )  # fmt: skip
    return as_said(classifications, str(path))
