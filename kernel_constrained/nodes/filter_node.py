# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The filter node: range scans in, estimates of a pose quantity out, learned as it runs."""

import time
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseWithCovarianceStamped
from rclpy.time import Time

from kernel_constrained.core.subquantile import SubquantileLearner
from kernel_constrained.nodes.estimates import EstimateMessage
from kernel_constrained.nodes.learning import LearningNode
from kernel_constrained.nodes.messages import INPUT_TYPES, POSE_TYPES
from kernel_constrained.nodes.qos import RESULTS
from kernel_constrained.nodes.running import run
from kernel_constrained.perception.filter import Estimate, Learned, Rejected, ScanFilter
from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.perception.intake import Intake
from kernel_constrained.perception.node_config import FilterNodeConfig
from kernel_constrained.topics import FIGURES, LOSS, REJECTED, THRESHOLD, TRUTH

PURPOSE = 'Learns online from range scans with a trusted pose, and estimates from every scan.'


class FilterNode(LearningNode):
    """Learns online from scans with a trusted pose, and estimates from every scan.

    An estimate is published before its scan is learned, so that its error is honest.
    """

    intake: Intake

    def __init__(self, **arguments: Any) -> None:
        super().__init__('filter_node', FilterNodeConfig, **arguments)

    def make_model(self) -> ScanFilter:
        """Make the filter."""
        self.kind = self.config.input.type
        self.filter = ScanFilter(self.config)
        return self.filter

    def make_intake(self, mounting_of: Callable[[str], Mounting] | None) -> Intake:
        """Make the way into the filter."""
        return Intake(self.filter, self.config, mounting_of)

    def connect(self) -> list[Any]:
        """Create publishers, then subscribe."""
        self._estimates = self.create_publisher(PoseWithCovarianceStamped, 'estimate', RESULTS)
        self._rejections = self.create_publisher(DiagnosticArray, f'~/{REJECTED}', RESULTS)
        self._message = EstimateMessage(self.filter.target.components)
        figures = self.publish_on_demand(FIGURES)
        # Scans first: of two that wait, the executor takes the scan, and its estimate is not late.
        self.listen(self.kind, INPUT_TYPES[self.kind], self._use_scan)
        self.listen('pose', POSE_TYPES[self.config.pose.type], self._use_pose)
        return [self._estimates, self._rejections, *figures]

    # -- messages ---------------------------------------------------------------------------

    def _use_scan(self, message: Any) -> None:
        begun = time.perf_counter()
        try:
            estimate = self.intake.scan(message)
            if estimate is not None and self.config.publish.estimate:
                self._publish_estimate(message.header.stamp, estimate)
            self._learn()
        finally:
            self.publish_figure('processing_time', lambda: time.perf_counter() - begun)

    def _use_pose(self, message: Any) -> None:
        self.intake.pose(message)
        self._learn()

    def _publish_estimate(self, stamp: Any, estimate: Estimate) -> None:
        message = self._message.fill(
            stamp, self.intake.estimate_frame, estimate.mean, estimate.covariance
        )
        self._estimates.publish(message)

    def _learn(self) -> None:
        """Learn what has become complete, and publish the figures of it."""
        for learned in self.filter.learn():
            self.publish_learned(learned.loss)
            if learned.rejected is not None:
                self._rejections.publish(self._rejection(learned, learned.rejected))

    def _rejection(self, learned: Learned, rejected: Rejected) -> DiagnosticArray:
        """Write which truth was taken to be corrupted, under its scan's stamp."""
        numbers = {LOSS: rejected.loss, THRESHOLD: rejected.threshold}
        components = self.filter.target.components
        numbers |= {TRUTH + name: value for name, value in zip(components, learned.truth.tolist())}
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN,
            name='trusted pose',
            message=f'loss {rejected.loss:.3g} is beyond {rejected.threshold:.3g}: not learned',
            values=[KeyValue(key=key, value=repr(value)) for key, value in numbers.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = Time(nanoseconds=learned.stamp).to_msg()
        message.header.frame_id = self.intake.estimate_frame
        return message

    # -- diagnostics ------------------------------------------------------------------------

    def figures(self) -> dict[str, Any]:
        """Return the state of the learner and of the pairing."""
        pairing = self.filter.pairing
        return {
            **super().figures(),
            **self._figures_of_window(),
            'scans that wait for a pose': pairing.waiting,
            'scans without a pose': pairing.unpaired,
            'clock jumps': pairing.jumps,
            'pose jumps': pairing.pose_jumps,
        }

    def _figures_of_window(self) -> dict[str, Any]:
        """Return what a learner says that drops what looks corrupted."""
        learner = self.filter.learner
        if not isinstance(learner, SubquantileLearner):
            return {}
        return {
            'rejected': self.filter.rejected,
            'share dropped in the window': learner.dropped_share_,
            'estimated corruption': learner.corruption_,
        }

    def remark(self) -> str:
        """Say for how long no pose has come."""
        without = self.inputs['pose'].silent_for
        if without > self.config.diagnostics.stale_after:
            return f'; no trusted pose for {without:.0f} s'
        return ''


def main(args: list[str] | None = None) -> int:
    """Run the filter node."""
    return run(FilterNode, 'filter_node', PURPOSE, FilterNodeConfig, args)
