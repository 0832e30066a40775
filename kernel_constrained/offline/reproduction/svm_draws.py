# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The data of the SVM experiment, and what the best possible classifier says of it."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

CLASSES, MODES = 5, 3
TRAIN, TEST, EPOCHS = 5000, 2500, 3


class Draw(NamedTuple):
    """One realisation of the mixture, its samples and the order of learning.

    Attributes
    ----------
    means : (5, 3, 2)
        Centres of the three Gaussians of each class.
    variance : float
        Of each Gaussian, in each direction.
    x, label : (n, 2), (n,)
        Training samples.
    test_x, test_label : (m, 2), (m,)
        Test samples.
    order : (3 n,)
        Rows of the training samples as they are learned: three epochs, each shuffled anew.
    """

    means: Array
    variance: float
    x: Array
    label: Array
    test_x: Array
    test_label: Array
    order: npt.NDArray[np.int64]

    def posterior(self, x: Array) -> Array:
        """Probability of each class at ``x`` (n, 2), shape (n, 5)."""
        squared = np.sum((x[:, None, None] - self.means) ** 2, axis=-1)
        nearest = squared.min(axis=(1, 2), keepdims=True)  # else all vanish far from everything
        density = np.exp(-0.5 * (squared - nearest) / self.variance).sum(axis=2)
        return np.asarray(density / density.sum(axis=1, keepdims=True))

    @property
    def best_accuracy(self) -> float:
        """Accuracy of the Bayes classifier on the test samples."""
        return float(np.mean(self.posterior(self.test_x).argmax(axis=1) == self.test_label))


def draw_of(seed: int, variance: float, train: int = TRAIN, test: int = TEST) -> Draw:
    """Draw the data of section V: labels uniform, each class three Gaussians around its place.

    The places of the classes are evenly spaced on the unit circle; around them the centres are
    drawn with variance 1, and around these the samples with ``variance``.
    """
    random = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(CLASSES) / CLASSES
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    means = places[:, None] + random.standard_normal((CLASSES, MODES, 2))

    def samples(n: int) -> tuple[Array, Array]:
        label = random.integers(CLASSES, size=n)
        centre = means[label, random.integers(MODES, size=n)]
        x = centre + np.sqrt(variance) * random.standard_normal((n, 2))
        return x, label.astype(float)

    x, label = samples(train)
    test_x, test_label = samples(test)
    order = np.concatenate([random.permutation(train) for _ in range(EPOCHS)])
    return Draw(means, variance, x, label, test_x, test_label, order)
