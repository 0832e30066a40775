# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Messages into what learns from scans: the one way in, for nodes and offline commands alike."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kernel_constrained.perception.filter import Estimate, ScanFilter
from kernel_constrained.perception.geometry import Mounting, Pose
from kernel_constrained.perception.learning import ScanLearner
from kernel_constrained.perception.messages import checked_frame, pose_of, reading_of, stamp_of
from kernel_constrained.perception.node_config import FilterNodeConfig
from kernel_constrained.perception.unusable import Unusable

Array = npt.NDArray[np.float64]
T = TypeVar('T')


class ScanIntake:
    """Checks messages and hands what they say to what learns from scans.

    Parameters
    ----------
    learner
        What learns.
    config
        What is expected of the messages.
    mounting
        From the frame of a scan to where its sensor is mounted, or None where that is fixed.

    Attributes
    ----------
    frames : dict of str to str
        Frame of the messages used so far, by input.
    not_finite : bool
        Whether what was learned gave a number that is not finite.
    """

    def __init__(
        self,
        learner: ScanLearner,
        config: Any,
        mounting: Callable[[str], Mounting] | None = None,
    ) -> None:
        self._learner, self.config = learner, config
        self._mounting = mounting
        self.frames: dict[str, str] = {}
        self.not_finite = False

    def read_scan(self, message: Any, take: Callable[[int, Any], T]) -> T:
        """Check a LaserScan or Range and return what ``take(stamp, reading)`` makes of it.

        Raises
        ------
        Unusable
            It has no stamp, is in the wrong frame, or ``take`` refuses it.
        """
        stamp = stamp_of(message)
        frame = self._checked_frame('scan', self.config.input.frame_id, message)
        if self._mounting is not None:
            self._learner.mounting = self._mounting(message.header.frame_id)
        taken = take(stamp, reading_of(message))
        self.frames['scan'] = frame
        return taken

    def check_finite(self, values: Array) -> None:
        """Note, and raise ``Unusable``, where what is to be published holds no numbers."""
        if not math.isfinite(values.sum()):
            self.not_finite = True
            raise Unusable('estimate not finite', f'{values}')

    def reset(self) -> None:
        """Forget the frames, and that an estimate was not finite."""
        self.frames, self.not_finite = {}, False

    def _checked_frame(self, source: str, expected: str, message: Any) -> str:
        """Refuse a message in another frame than is expected, or than the first used was in."""
        return checked_frame(message, expected, self.frames.get(source))


class Intake(ScanIntake):
    """Checks messages and hands what they say to a filter; parameters as :class:`ScanIntake`."""

    def __init__(
        self,
        filter_: ScanFilter,
        config: FilterNodeConfig,
        mounting: Callable[[str], Mounting] | None = None,
    ) -> None:
        super().__init__(filter_, config, mounting)
        self.filter = filter_

    def scan(self, message: Any) -> Estimate | None:
        """Take a LaserScan or Range; returns and raises as :meth:`ScanFilter.scan` does.

        Raises
        ------
        Unusable
            Also for a message without a stamp or in the wrong frame, and where the estimate is
            not finite.
        """
        estimate = self.read_scan(message, self.filter.scan)
        if estimate is not None:
            self.check_finite(estimate.mean)
        return estimate

    def pose(self, message: Any) -> tuple[int, Pose]:
        """Take a trusted pose; returns and raises as :meth:`checked_pose` does."""
        stamp, pose = self.checked_pose(message)
        self.filter.pose(stamp, pose)
        self.frames['pose'] = message.header.frame_id.lstrip('/')
        return stamp, pose

    def checked_pose(self, message: Any) -> tuple[int, Pose]:
        """Return stamp and pose of a message, which the filter does not get.

        Raises
        ------
        Unusable
            It has no stamp, is no pose, or is in the wrong frame.
        """
        stamp, pose = stamp_of(message), pose_of(message)
        self._checked_frame('pose', self.config.pose.frame_id, message)
        return stamp, pose

    @property
    def estimate_frame(self) -> str:
        """Frame of the estimate; without a pose yet, and none configured, it has no name."""
        given, frames = self.config, self.frames
        if not self.filter.target.needs_previous:
            frame = given.frame_id or given.pose.frame_id or frames.get('pose', '')
        elif self._mounting is not None or self.filter.mounting != Mounting():
            frame = given.frame_id or given.mounting.base_frame
        else:
            frame = given.frame_id or given.input.frame_id or frames.get('scan', '')
        return str(frame.lstrip('/'))
