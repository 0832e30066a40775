# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The classifier node: range scans and labels in, what place it is out, learned as it runs."""

import time
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from sensor_msgs.msg import LaserScan
from std_msgs.msg import Header, String

from kernel_constrained.nodes.learning import LearningNode
from kernel_constrained.nodes.qos import RESULTS
from kernel_constrained.nodes.running import run
from kernel_constrained.perception.classifier import Classification, PlaceClassifier
from kernel_constrained.perception.classifier_config import ClassifierNodeConfig
from kernel_constrained.perception.classifier_intake import ClassifierIntake
from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.topics import CLASSIFIER_FIGURES, MARGIN, SCORE

PURPOSE = 'Learns places online from range scans and labels, and says of every scan which it is.'


class ClassifierNode(LearningNode):
    """Learns places online from scans and labels, and classifies every scan.

    What is said of a scan is published before it is learned, so that its error is honest.
    """

    intake: ClassifierIntake

    def __init__(self, **arguments: Any) -> None:
        super().__init__('classifier_node', ClassifierNodeConfig, **arguments)

    def make_model(self) -> PlaceClassifier:
        """Make the classifier."""
        self.classifier = PlaceClassifier(self.config)
        return self.classifier

    def make_intake(self, mounting_of: Callable[[str], Mounting] | None) -> ClassifierIntake:
        """Make the way into the classifier."""
        return ClassifierIntake(self.classifier, self.config, mounting_of)

    def connect(self) -> list[Any]:
        """Create publishers, then subscribe."""
        self._labels = self.create_publisher(String, 'label_estimate', RESULTS)
        self._scores = self.create_publisher(DiagnosticArray, 'label_scores', RESULTS)
        figures = self.publish_on_demand(CLASSIFIER_FIGURES)
        # Labels first: of two that wait, the executor takes the label, which the scan is learned
        # with.
        self.listen('label', String, self.intake.label, RESULTS)
        self.listen('scan', LaserScan, self._use_scan)
        return [self._labels, self._scores, *figures]

    # -- messages ---------------------------------------------------------------------------

    def _use_scan(self, message: Any) -> None:
        begun = time.perf_counter()
        try:
            classification = self.intake.scan(message)
            if self.config.publish.estimate:
                self._labels.publish(String(data=classification.said))
                self._scores.publish(scores_message(message.header, classification))
            self.publish_figure('margin', lambda: classification.margin)
            learned = self.classifier.learn()
            if learned is not None:
                self.publish_learned(learned.loss)
        finally:
            self.publish_figure('processing_time', lambda: time.perf_counter() - begun)

    # -- diagnostics ------------------------------------------------------------------------

    def figures(self) -> dict[str, Any]:
        """Return the state of the learner and of the labels."""
        classifier = self.classifier
        return {
            **super().figures(),
            'accuracy': classifier.accuracy(),
            'label in force': classifier.label_in_force or 'none',
            **{f'samples: {label}': count for label, count in classifier.labels.items()},
            'clock jumps': classifier.jumps,
        }

    def remark(self) -> str:
        """Say what the next scan is learned as."""
        given = self.classifier.label_in_force
        return f'; label {given}' if given else '; no label'


def scores_message(header: Header, classification: Classification) -> DiagnosticArray:
    """Write what is said of a scan, under the scan's header.

    The one status has the label with the highest score as its message and level WARN where that
    is unsure; its values are margin and scores, with all their digits.
    """
    numbers = {MARGIN: classification.margin}
    numbers |= {SCORE + label: score for label, score in classification.scores.items()}
    status = DiagnosticStatus(
        level=DiagnosticStatus.WARN if classification.unsure else DiagnosticStatus.OK,
        name='place',
        message=classification.label,
        values=[KeyValue(key=key, value=repr(value)) for key, value in numbers.items()],
    )
    return DiagnosticArray(header=header, status=[status])


def main(args: list[str] | None = None) -> int:
    """Run the classifier node."""
    return run(ClassifierNode, 'classifier_node', PURPOSE, ClassifierNodeConfig, args)
