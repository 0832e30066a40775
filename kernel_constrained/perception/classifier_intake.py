# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Messages into the classifier: the one way in, for the node and for the offline commands."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernel_constrained.perception.classifier import Classification, PlaceClassifier
from kernel_constrained.perception.classifier_config import ClassifierNodeConfig
from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.perception.intake import ScanIntake


class ClassifierIntake(ScanIntake):
    """Checks messages and hands what they say to a classifier."""

    def __init__(
        self,
        classifier: PlaceClassifier,
        config: ClassifierNodeConfig,
        mounting: Callable[[str], Mounting] | None = None,
    ) -> None:
        super().__init__(classifier, config, mounting)
        self.classifier = classifier

    def scan(self, message: Any) -> Classification:
        """Take a LaserScan; returns and raises as :meth:`PlaceClassifier.scan` does.

        Raises
        ------
        Unusable
            Also for a message without a stamp or in the wrong frame, and where the scores are
            not finite.
        """
        classification = self.read_scan(message, self.classifier.scan)
        self.check_finite(np.array([classification.margin, *classification.scores.values()]))
        return classification

    def label(self, message: Any) -> None:
        """Take a std_msgs String; raises as :meth:`PlaceClassifier.label` does."""
        self.classifier.label(message.data)
