# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The filter node: range scans in, estimates of a pose quantity out, learned as it runs."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from geometry_msgs.msg import PoseWithCovarianceStamped
from std_msgs.msg import Float64
from std_srvs.srv import SetBool, Trigger

from kernel_constrained.nodes import diagnostics
from kernel_constrained.nodes.managed import ManagedNode
from kernel_constrained.nodes.messages import (
    fill_estimate,
    INPUT_TYPES,
    nanoseconds,
    pose_of,
    POSE_TYPES,
    reading_of,
)
from kernel_constrained.nodes.qos import overridable, RECORDING, RESULTS, SENSOR_DATA
from kernel_constrained.nodes.running import run
from kernel_constrained.perception.config import FilterNodeConfig
from kernel_constrained.perception.filter import Estimate, Learned, ScanFilter

FIGURES = ('loss', 'cvar', 'violation', 'dual_variable', 'model_order', 'processing_time')

PURPOSE = 'Learns online from range scans with a trusted pose, and estimates from every scan.'


class FilterNode(ManagedNode):
    """Learns online from scans with a trusted pose, and estimates from every scan.

    An estimate is published before its scan is learned, so that its error is honest.
    """

    def __init__(self, **arguments: Any) -> None:
        self._frames = {'scan': '', 'pose': ''}
        self._cvar = 0.0
        self._violated_since: float | None = None
        super().__init__('filter_node', FilterNodeConfig, **arguments)

    def build(self) -> None:
        """Make and compile the filter, with the model of the file where that is asked for."""
        self.filter = ScanFilter(self.config)
        self.filter.warm_up()
        if self.config.model.load_at_start:
            self.filter.restore(self.config.model.path)

    def connect(self) -> list[Any]:
        """Create publishers and services, subscriptions last."""
        kind = self.config.input.type
        pose_type = POSE_TYPES[self.config.pose.type]
        options: dict[str, Any] = {'qos_overriding_options': overridable()}
        self._estimates = self.create_publisher(PoseWithCovarianceStamped, 'estimate', RESULTS)
        self._figures = {
            name: self.create_publisher(Float64, f'~/{name}', RECORDING) for name in FIGURES
        }
        return [
            self._estimates,
            *self._figures.values(),
            self.create_service(Trigger, '~/save', self._serve(lambda _: self._save())),
            self.create_service(Trigger, '~/load', self._serve(lambda _: self._load())),
            self.create_service(Trigger, '~/reset', self._serve(lambda _: self._reset())),
            self.create_service(SetBool, '~/set_learning', self._serve(self._set_learning)),
            self.create_subscription(
                pose_type, 'pose', lambda m: self.take('pose', m, self._use_pose),
                SENSOR_DATA, **options,
            ),
            self.create_subscription(
                INPUT_TYPES[kind], kind, lambda m: self.take(kind, m, self._use_scan),
                SENSOR_DATA, **options,
            ),
        ]  # fmt: skip

    def reconfigure(self, config: FilterNodeConfig) -> None:
        """Hand run-time parameters to the learner."""
        self.filter.reconfigure(config)

    def release(self) -> None:
        """Save the model where that is asked for."""
        if self.config.model.save_at_end:
            self.get_logger().info(self._save())

    # -- messages ---------------------------------------------------------------------------

    def _use_scan(self, message: Any) -> None:
        begun = time.perf_counter()
        self._frames['scan'] = message.header.frame_id
        try:
            estimate = self.filter.scan(nanoseconds(message.header.stamp), reading_of(message))
            if estimate is not None:
                self._publish_estimate(message.header.stamp, estimate)
            self._learn()
        finally:
            self._publish_figure('processing_time', lambda: time.perf_counter() - begun)

    def _use_pose(self, message: Any) -> None:
        self._frames['pose'] = message.header.frame_id
        self.filter.pose(nanoseconds(message.header.stamp), pose_of(message))
        self._learn()

    def _publish_estimate(self, stamp: Any, estimate: Estimate) -> None:
        message = PoseWithCovarianceStamped()
        message.header.stamp = stamp
        source = 'scan' if self.filter.target.needs_previous else 'pose'
        message.header.frame_id = self.config.frame_id or self._frames[source]
        fill_estimate(message, self.filter.target.components, estimate.mean, estimate.covariance)
        self._estimates.publish(message)

    def _learn(self) -> None:
        """Learn what has become complete, and publish the figures of it."""
        for learned in self.filter.learn():
            self._cvar = self.filter.cvar()
            self._publish_figures(learned)

    def _publish_figures(self, learned: Learned) -> None:
        learner = self.filter.learner
        self._publish_figure('loss', lambda: learned.loss)
        self._publish_figure('cvar', lambda: self._cvar)
        self._publish_figure('violation', lambda: self._violation)
        self._publish_figure('dual_variable', lambda: learner.dual_variable_)
        self._publish_figure('model_order', lambda: float(learner.model_order_))

    def _publish_figure(self, name: str, value: Callable[[], float]) -> None:
        """Publish a figure if someone listens; else it is not even computed."""
        if self._figures[name].get_subscription_count():
            self._figures[name].publish(Float64(data=value()))

    # -- services ---------------------------------------------------------------------------

    def _serve(self, action: Callable[[Any], str]) -> Callable[[Any, Any], Any]:
        """Make a service callback that answers with what the action says or why it failed."""

        def callback(request: Any, response: Any) -> Any:
            try:
                response.message = action(request)
                response.success = True
            except (OSError, ValueError) as error:
                response.message = str(error)
                response.success = False
            return response

        return callback

    def _save(self) -> str:
        self.filter.save(self._model_path())
        return f'saved {self._model_path().resolve()}'

    def _load(self) -> str:
        self.filter.restore(self._model_path())
        return f'loaded {self._model_path().resolve()}'

    def _model_path(self) -> Path:
        if not self.config.model.path:
            raise ValueError('parameter model.path is empty: name the model file there')
        return Path(self.config.model.path)

    def _reset(self) -> str:
        self.filter.reset()
        return 'forgot everything that was learned'

    def _set_learning(self, request: Any) -> str:
        self.filter.learning = request.data
        return 'learning' if request.data else 'frozen: predicting without learning'

    @property
    def _violation(self) -> float:
        """Violation as of the newest sample; NaN without a constraint."""
        bound = self.config.learner
        return self._cvar - bound.tolerance if bound.constrained else math.nan

    # -- diagnostics ------------------------------------------------------------------------

    def figures(self) -> dict[str, Any]:
        """Return the state of the learner and of the pairing."""
        learner, pairing = self.filter.learner, self.filter.pairing
        return {
            'samples learned': learner.samples_,
            'model order': learner.model_order_,
            'cvar': self._cvar,
            'violation': self._violation,
            'dual variable': learner.dual_variable_,
            'steps over the compression budget': learner.overspent_,
            'scans without a pose': pairing.unpaired,
            'clock jumps': pairing.jumps,
        }

    def level(self) -> diagnostics.Level:
        """Say how the filter is doing, the worst first."""
        now, limits = time.monotonic(), self.config.diagnostics
        if not self.active:
            return diagnostics.Level(diagnostics.OK, 'inactive')
        if now - self.last_input > limits.stale_after:
            silence = f'no input for {now - self.last_input:.0f} s'
            return diagnostics.Level(diagnostics.STALE, silence)
        if not self._violation > 0.0:
            self._violated_since = None
        else:
            self._violated_since = self._violated_since or now
            lasting = now - self._violated_since
            return diagnostics.Level(
                diagnostics.ERROR if lasting > limits.error_after else diagnostics.WARN,
                f'CVaR over its tolerance by {self._violation:.3g} for {lasting:.0f} s',
            )
        if self.filter.learner.dual_cap_binds_:
            return diagnostics.Level(diagnostics.WARN, 'the dual variable is held by its cap')
        if now - self.last_drop < limits.stale_after:
            text = f'dropped {self.dropped.total()} messages so far'
            return diagnostics.Level(diagnostics.WARN, text)
        learning = 'learning' if self.filter.learning else 'frozen'
        return diagnostics.Level(diagnostics.OK, learning)


def main(args: list[str] | None = None) -> int:
    """Run the filter node."""
    return run(FilterNode, 'filter_node', PURPOSE, FilterNodeConfig, args)
