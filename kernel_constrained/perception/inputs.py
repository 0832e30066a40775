# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""From a stream of scans to the inputs of the learner."""

import numpy as np
import numpy.typing as npt

from kernel_constrained.perception.config import FeatureConfig, ScanFeatureConfig
from kernel_constrained.perception.features import beam_ranges, range_feature, sector_ranges
from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.perception.pairing import SECOND
from kernel_constrained.perception.scan import Reading, Scan
from kernel_constrained.perception.unusable import Unusable

Array = npt.NDArray[np.float64]


def scan_features(scan: Scan, config: ScanFeatureConfig, mounting: Mounting) -> Array:
    """Features of a scan, of order one, shape (config.count,).

    Raises
    ------
    Unusable
        Where no beam of the scan can be used.
    """
    of_type = sector_ranges if config.type == 'sectors' else beam_ranges
    ranges = of_type(
        scan, config.count, config.bearing_min, config.bearing_max, config.far, mounting
    )
    return (ranges / (ranges + config.half_range) - 0.5) / 0.25


class Inputs:
    """Features of each scan; for a motion those of the scan before, too, and the time between.

    Parameters
    ----------
    config
        What features.
    with_previous
        Whether an input is about two scans.

    Attributes
    ----------
    count : int
        Numbers in an input.
    """

    def __init__(self, config: FeatureConfig, with_previous: bool) -> None:
        self.config, self.with_previous = config, with_previous
        self.count = 2 * config.count + 1 if with_previous else config.count
        self._previous: tuple[int, Array] | None = None

    def features(self, scan: Scan | Reading, mounting: Mounting) -> Array:
        """Features of one scan, of order one, shape (config.count,).

        Raises
        ------
        Unusable
            Where the scan cannot be used, or is of the other kind.
        """
        if isinstance(scan, Reading) != (self.config.type == 'range'):
            raise Unusable(f'{type(scan).__name__} where features.type is {self.config.type}')
        if isinstance(scan, Reading):
            return range_feature(scan)
        return scan_features(scan, self.config, mounting)

    def of(self, stamp: int, features: Array) -> Array | None:
        """Input for a scan, shape (count,); None where the scan before is not known."""
        if not self.with_previous:
            return features
        if self._previous is None:
            return None
        before, previous = self._previous
        if stamp <= before:
            return None
        elapsed = min((stamp - before) / SECOND, self.config.max_elapsed)
        return np.concatenate([features, previous, [elapsed]])

    def note(self, stamp: int, features: Array) -> None:
        """Remember a scan as the previous one."""
        self._previous = stamp, features
