# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The online classifier of places: scans in, labels out, learning wherever a label is given.

The node and the offline commands use this same object: what it is fed decides what it says.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core import DivergenceError, PrimalDualLearner
from kernel_constrained.perception.classifier_config import ClassifierConfig, UNSURE, wrong_label
from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.perception.inputs import scan_features
from kernel_constrained.perception.learning import plain_scan, ScanLearner
from kernel_constrained.perception.pairing import check_jump, SECOND, Stamps
from kernel_constrained.perception.scan import Reading, Scan
from kernel_constrained.perception.unusable import Unusable

Array = npt.NDArray[np.float64]

FORMAT = 'kernel_constrained.PlaceClassifier'

# Unknown labels that are counted by name each; more of them are counted together.
NAMED = 20

# Classes that the learner has at least: before the second label, the other one stands for all
# that is not the first.
FEWEST_CLASSES = 2


class Classification(NamedTuple):
    """What the classifier says of a scan.

    Attributes
    ----------
    stamp : int
        The scan's, nanoseconds.
    label : str
        The known label with the highest score; empty where none is known.
    margin : float
        What its score is ahead of the next; negative where all that is not the only known label
        is ahead of it.
    scores : dict of str to float
        Score of each known label.
    unsure : bool
        Whether the margin is too small.
    """

    stamp: int
    label: str
    margin: float
    scores: dict[str, float]
    unsure: bool

    @property
    def said(self) -> str:
        """Return the label, or that there is none to go by."""
        return UNSURE if self.unsure else self.label


class Learned(NamedTuple):
    """What became of a scan with a label.

    Attributes
    ----------
    stamp : int
        The scan's, nanoseconds.
    label : str
        The label that was given.
    loss : float
        Multi-class hinge of the scores from before the scan was learned: 1 plus the highest
        other score minus the label's, at least 0.
    """

    stamp: int
    label: str
    loss: float


class Label(NamedTuple):
    """A label that was given, and the stamp of the first scan that it holds for, once there."""

    text: str
    since: int | None


class Waiting(NamedTuple):
    """A scan that was classified and can be learned."""

    stamp: int
    features: Array
    scores: Array


class PlaceClassifier(ScanLearner):
    """Classifies each scan, and learns from each that comes while a label holds.

    A multi-class kernel support vector machine with the CVaR constraint on its hinge loss
    (Koppel, Zhang, Zhu and Başar, Eq. 72). A label that was never there before adds a class.

    Parameters
    ----------
    config
        Everything that can be chosen.

    Attributes
    ----------
    labels : dict of str to int
        Samples learned of each label, in the order of the classes.
    jumps : int
        How often the clock jumped back.
    """

    KIND = FORMAT
    CONFIG = ClassifierConfig
    LEARNED = (*ScanLearner.LEARNED, 'labels')

    config: ClassifierConfig
    learner: PrimalDualLearner

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__(config)
        self.jumps = 0
        self._stamps = Stamps()
        self._waiting: Waiting | None = None
        self._unknown: set[str] = set()
        self._given = Label('', None)
        self._before_leap = self._given
        self.reset()

    def reset(self) -> None:
        """Forget everything that was learned."""
        super().reset()
        self.labels = dict.fromkeys(self.config.labels, 0)
        self.learner = self.config.learner.build(
            loss='multiclass_hinge', classes=max(len(self.labels), FEWEST_CLASSES)
        )

    def warm_up(self) -> None:
        """Compile what the first message would have to wait for."""
        features = self.config.features
        scan_features(plain_scan(features, 1.0), features, Mounting())
        self.learner.warm_up(features.count)

    # -- labels -----------------------------------------------------------------------------

    def label(self, text: str) -> None:
        """Take a label for the scans that follow; an empty one takes back the one before.

        Raises
        ------
        Unusable
            Where it is no label, or unknown where all are given, or one too many. The one before
            holds no longer in any case.
        """
        self._give('')
        text = text.strip()
        if not text:
            return
        problem = wrong_label(text)
        if problem:
            raise Unusable('no label', problem)
        if text not in self.labels:
            self._check_new(text)
        self._give(text)

    def _give(self, text: str) -> None:
        """Let a label hold from the next scan on, whatever its stamp."""
        self._given = self._before_leap = Label(text, None)

    def _check_new(self, label: str) -> None:
        """Refuse a label that cannot be added, by its name."""
        known = ', '.join(self.labels)
        if self.config.labels:
            if len(self._unknown) < NAMED:
                self._unknown.add(label)
            named = f' {label!r}' if label in self._unknown else ''
            raise Unusable(
                f'unknown label{named}', f'{label!r}; parameter labels has {known} and no other'
            )
        if len(self.labels) >= self.config.max_labels:
            raise Unusable(
                'too many labels', f'{label!r} beside {known}; see parameter max_labels'
            )

    @property
    def label_in_force(self) -> str:
        """Return the label of the next scan, if it comes soon enough; empty for none."""
        return self._given.text

    def _label_at(self, stamp: int) -> str:
        """Label that holds at a scan that has just come; it begins to hold with the first."""
        text, since = self._given
        if since is None:
            self._given = Label(text, stamp)
        elif (stamp - since) / SECOND > self.config.label.hold:
            self._given = Label('', since)
        return self._given.text

    # -- scans ------------------------------------------------------------------------------

    def scan(self, stamp: int, scan: Scan | Reading) -> Classification:
        """Take a scan and classify it; call :meth:`learn` after publishing what it says.

        Parameters
        ----------
        stamp
            Nanoseconds.
        scan
            What was seen; a single range is not enough.

        Raises
        ------
        Unusable
            Where the scan cannot be used, or its stamp was there before or is late; nothing has
            changed then.
        """
        if isinstance(scan, Reading):
            raise Unusable('a single range where a scan is expected')
        newest = self._stamps.newest
        if newest is not None and stamp <= newest:
            check_jump(stamp, newest)
        features = scan_features(scan, self.config.features, self.mounting)
        scores = self._scores(features)
        self._take_stamp(stamp)
        self._waiting = Waiting(stamp, features, scores)
        return self._classification(stamp, scores)

    def _take_stamp(self, stamp: int) -> None:
        """Follow the clock: in a bag that begins again a label of the pass before does not hold.

        After a few wrong stamps it does.
        """
        stamps = self._stamps
        back = stamps.newest is not None and stamp <= stamps.newest
        self.jumps += back
        if stamps.resumes_at(stamp):
            stamps.resume()
            self._given = self._before_leap
        else:
            if stamps.leaps_at(stamp):
                self._before_leap = self._given
            if back and self._given.since is not None:
                self._given = Label('', None)
        stamps.take(stamp)

    def learn(self) -> Learned | None:
        """Learn the newest scan, once, if a label holds for it; return what became of it.

        Raises
        ------
        Unusable
            Where the learner diverged at it.
        """
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return None
        label = self._label_at(waiting.stamp)
        if not label:
            return None
        number = self._number_of(label)
        loss = max(1.0 - lead(waiting.scores, number), 0.0)
        self.losses.add(loss)
        if self.learning:
            self._learn(waiting.features, label, number)
        return Learned(waiting.stamp, label, loss)

    def _number_of(self, label: str) -> int:
        """Class of a label; of a new one that which it will be."""
        return list(self.labels).index(label) if label in self.labels else len(self.labels)

    def _learn(self, features: Array, label: str, number: int) -> None:
        """Learn a sample; a label that is new adds a class, whose function is zero."""
        if number >= self.learner.classes:
            self.learner = self.learner.with_classes(number + 1)
        self.labels.setdefault(label, 0)
        try:
            self.learner.partial_fit(features[None], np.array([float(number)]))
        except DivergenceError as error:
            raise Unusable('learner diverged', str(error)) from error
        self.labels[label] += 1
        self.samples += 1

    def accuracy(self) -> float:
        """Share of the newest labelled scans whose label was estimated; NaN where there is none.

        Without regard to how sure: a loss below 1 is a score ahead of the others.
        """
        newest = self.losses.newest
        return float(np.mean(newest < 1.0)) if len(newest) else math.nan

    # -- files ------------------------------------------------------------------------------

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Split into (plain values, arrays): what a model file holds."""
        header, arrays = super().to_parts()
        return {**header, 'labels': dict(self.labels)}, arrays

    def restore(self, path: str | Path) -> None:
        """Take what was learned from a file; a label that was given before holds no longer."""
        super().restore(path)
        self.label('')

    def _take_parts(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.labels = {str(label): int(count) for label, count in header['labels'].items()}
        super()._take_parts(header, arrays)
        inputs, classes = self.config.features.count, max(len(self.labels), FEWEST_CLASSES)
        if self.learner.classes != classes:
            raise ValueError(f'{len(self.labels)} labels, {self.learner.classes} classes')
        if self.samples and self.learner.dictionary_.shape[1] != inputs:
            raise ValueError(
                f'atoms have {self.learner.dictionary_.shape[1]} inputs, not {inputs}'
            )

    # -- inside -----------------------------------------------------------------------------

    def _scores(self, features: Array) -> Array:
        """Scores of the learner's classes, shape (classes,); zeros before the first sample."""
        if self.learner.samples_ == 0:
            return np.zeros(self.learner.classes)
        scores: Array = self.learner.decision_function(features[None])[0]
        return scores

    def _classification(self, stamp: int, scores: Array) -> Classification:
        labels = list(self.labels)
        if not labels:
            return Classification(stamp, '', 0.0, {}, True)
        best = int(scores[: len(labels)].argmax())
        margin = lead(scores, best)
        known = dict(zip(labels, scores.tolist()))
        return Classification(stamp, labels[best], margin, known, margin < self.config.margin)


def lead(scores: Array, number: int) -> float:
    """Return what a class is ahead of the highest other; one that is yet to come has score 0."""
    own = float(scores[number]) if number < len(scores) else 0.0
    return own - float(scores[np.arange(len(scores)) != number].max())
