# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The filter node: range scans in, estimates of a pose quantity out, learned as it runs."""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from geometry_msgs.msg import PoseWithCovarianceStamped
from rclpy.clock import Clock, ClockType
from std_msgs.msg import Float64
from std_srvs.srv import SetBool, Trigger

from kernel_constrained.nodes import diagnostics
from kernel_constrained.nodes.diagnostics import LOOK_PERIOD
from kernel_constrained.nodes.managed import ManagedNode
from kernel_constrained.nodes.messages import EstimateMessage, INPUT_TYPES, POSE_TYPES
from kernel_constrained.nodes.mounting import TransformMounting
from kernel_constrained.nodes.qos import RECORDING, RESULTS
from kernel_constrained.nodes.running import run
from kernel_constrained.nodes.saving import Saver
from kernel_constrained.perception.config import FilterNodeConfig
from kernel_constrained.perception.filter import Estimate, Learned, ScanFilter, write_filter
from kernel_constrained.perception.intake import Intake
from kernel_constrained.topics import FIGURES

PURPOSE = 'Learns online from range scans with a trusted pose, and estimates from every scan.'


class FilterNode(ManagedNode):
    """Learns online from scans with a trusted pose, and estimates from every scan.

    An estimate is published before its scan is learned, so that its error is honest.
    """

    def __init__(self, **arguments: Any) -> None:
        self._mounting: TransformMounting | None = None
        self._saver, self._saved = Saver(), 0
        self._heard: set[str] = set()
        self._next_look = 0.0
        self._violated_since: float | None = None
        super().__init__('filter_node', FilterNodeConfig, **arguments)

    def build(self) -> None:
        """Make and compile the filter, with the model of the file where that is asked for."""
        self.filter = ScanFilter(self.config)
        self.filter.warm_up()
        model, path = self.config.model, Path(self.config.model.path)
        if model.load_at_start == 'always' or (
            model.load_at_start == 'if_present' and path.exists()
        ):
            self.filter.restore(path)
            self.get_logger().info(f'goes on with {self.filter.samples} samples of {path}')
        self._saved = self.filter.samples
        if self.config.mounting.source == 'tf':
            self._mounting = TransformMounting(self, self.config.mounting.base_frame)
        mounting_of = self._mounting.of if self._mounting is not None else None
        self.intake = Intake(self.filter, self.config, mounting_of)
        self._autosave = self.create_timer(
            model.autosave_period or 1.0, self._save_in_background,
            clock=Clock(clock_type=ClockType.STEADY_TIME), autostart=model.autosave_period > 0.0,
        )  # fmt: skip

    def serve(self) -> list[Any]:
        """Create the services."""
        return [
            self.create_service(Trigger, '~/save', self._serve(lambda _: self._save())),
            self.create_service(Trigger, '~/load', self._serve(lambda _: self._load())),
            self.create_service(Trigger, '~/reset', self._serve(lambda _: self._reset())),
            self.create_service(SetBool, '~/set_learning', self._serve(self._set_learning)),
        ]

    def connect(self) -> list[Any]:
        """Create publishers, then subscribe."""
        self._estimates = self.create_publisher(PoseWithCovarianceStamped, 'estimate', RESULTS)
        self._message = EstimateMessage(self.filter.target.components)
        self._figures = {
            name: self.create_publisher(Float64, f'~/{name}', RECORDING) for name in FIGURES
        }
        kind = self.config.input.type
        # Scans first: of two that wait, the executor takes the scan, and its estimate is not late.
        self.listen(kind, INPUT_TYPES[kind], self._use_scan)
        self.listen('pose', POSE_TYPES[self.config.pose.type], self._use_pose)
        return [self._estimates, *self._figures.values()]

    def reconfigure(self, config: FilterNodeConfig) -> None:
        """Hand run-time parameters to the learner."""
        self.filter.reconfigure(config)

    def release(self) -> None:
        """Save the model where that is asked for."""
        self.destroy_timer(self._autosave)
        self._saver.wait()
        if self._mounting is not None:
            self._mounting.close()
            self._mounting = None
        if self.config.model.save_at_end:
            self.get_logger().info(self._save())

    # -- messages ---------------------------------------------------------------------------

    def _use_scan(self, message: Any) -> None:
        begun = time.perf_counter()
        try:
            estimate = self.intake.scan(message)
            if estimate is not None and self.config.publish.estimate:
                self._publish_estimate(message.header.stamp, estimate)
            self._learn()
        finally:
            self._publish_figure('processing_time', lambda: time.perf_counter() - begun)

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
            self._publish_figures(learned)

    def _publish_figures(self, learned: Learned) -> None:
        learner = self.filter.learner
        self._publish_figure('loss', lambda: learned.loss)
        self._publish_figure('cvar', self.filter.cvar)
        self._publish_figure('violation', lambda: self._violation)
        self._publish_figure('dual_variable', lambda: learner.dual_variable_)
        self._publish_figure('model_order', lambda: float(learner.model_order_))

    def _publish_figure(self, name: str, value: Callable[[], float]) -> None:
        """Publish a figure if someone listens; else it is not even computed."""
        now = time.monotonic()
        if now >= self._next_look:  # asking the middleware each time costs more than a figure
            self._next_look = now + LOOK_PERIOD
            heard = self._figures.items() if self.config.publish.figures else ()
            self._heard = {one for one, output in heard if output.get_subscription_count()}
        if name in self._heard:
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

    def _save_in_background(self) -> None:
        """Save what was learned by now, while messages come."""
        nothing_new = self.filter.samples == self._saved and not self._saver.failed
        if nothing_new or self._saver.busy:
            return
        self._saved = self.filter.samples
        header, arrays = self.filter.to_parts()
        path = self._model_path()
        self._saver.start(lambda: write_filter(path, header, arrays))

    def _save(self) -> str:
        self._saver.wait()
        self.filter.save(self._model_path())
        return f'saved {self._model_path().resolve()}'

    def _load(self) -> str:
        self.filter.restore(self._model_path())
        self.intake.not_finite = False
        return f'loaded {self._model_path().resolve()}'

    def _model_path(self) -> Path:
        if not self.config.model.path:
            raise ValueError('parameter model.path is empty: name the model file there')
        return Path(self.config.model.path)

    def _reset(self) -> str:
        self.filter.reset()
        self.intake.reset()
        return 'forgot everything that was learned'

    def _set_learning(self, request: Any) -> str:
        self.filter.learning = request.data
        return 'learning' if request.data else 'frozen: predicting without learning'

    @property
    def _violation(self) -> float:
        """Violation as of the newest sample; NaN without a constraint."""
        return self._over_tolerance(self.filter.cvar())

    def _over_tolerance(self, cvar: float) -> float:
        bound = self.config.learner
        return cvar - bound.tolerance if bound.constrained else math.nan

    # -- diagnostics ------------------------------------------------------------------------

    def figures(self) -> dict[str, Any]:
        """Return the state of the learner and of the pairing."""
        learner, pairing = self.filter.learner, self.filter.pairing
        since_start = self.filter.cvar_since_start()
        return {
            'samples learned': self.filter.samples,
            'model order': learner.model_order_,
            'cvar': self.filter.cvar(),
            'violation': self._violation,
            'cvar since start': since_start,
            'violation since start': self._over_tolerance(since_start),
            'dual variable': learner.dual_variable_,
            'steps over the compression budget': learner.overspent_,
            'scans that wait for a pose': pairing.waiting,
            'scans without a pose': pairing.unpaired,
            'clock jumps': pairing.jumps,
            'pose jumps': pairing.pose_jumps,
            'model file': self._saver.outcome or 'not saved yet',
        }

    def level(self) -> diagnostics.Level:
        """Say how the filter is doing, the worst first."""
        if not self.active:
            level = diagnostics.ERROR if self.refusal else diagnostics.OK
            return diagnostics.Level(level, self.refusal or 'inactive')
        limits, kind = self.config.diagnostics, self.config.input.type
        silence = self.inputs[kind].silent_for
        if self.intake.not_finite:
            text = 'the estimate was not finite: ~/reset or ~/load a model'
            return diagnostics.Level(diagnostics.ERROR, text)
        if silence > limits.stale_after:
            text = f'no {kind} for {silence:.0f} s'
            if not self.received[kind]:
                text = f'{text}: {self.inputs[kind].why_silent()}'
            return diagnostics.Level(diagnostics.STALE, text)
        violated = self._violation_level()
        if violated is not None:
            return violated
        for warning in self._warnings():
            return diagnostics.Level(diagnostics.WARN, warning)
        text = 'learning' if self.filter.learning else 'frozen'
        without = self.inputs['pose'].silent_for
        if without > limits.stale_after:
            text += f'; no trusted pose for {without:.0f} s'
        return diagnostics.Level(diagnostics.OK, text)

    def _violation_level(self) -> diagnostics.Level | None:
        """Say how long the constraint has been violated, if it is."""
        violation = self._violation
        if not violation > 0.0:
            self._violated_since = None
            return None
        now = time.monotonic()
        self._violated_since = self._violated_since or now
        lasting = now - self._violated_since
        return diagnostics.Level(
            diagnostics.ERROR
            if lasting > self.config.diagnostics.error_after
            else diagnostics.WARN,
            f'CVaR over its tolerance by {violation:.3g} for {lasting:.0f} s',
        )

    def _warnings(self) -> Iterator[str]:
        """Say what is not as it should be, though the filter works."""
        if self.filter.learner.dual_cap_binds_:
            yield 'the dual variable is held by its cap'
        for entry in self.inputs.values():
            if entry.incompatible and not self.received[entry.topic]:
                yield entry.incompatible
            if time.monotonic() - entry.last_loss < self.config.diagnostics.stale_after:
                yield f'{entry.lost} messages on {entry.topic} came faster than they were read'
        if self._saver.failed:
            yield f'model {self._saver.outcome}'
        if time.monotonic() - self.last_drop < self.config.diagnostics.stale_after:
            reason, count = self.dropped.most_common(1)[0]
            yield f'dropped {self.dropped.total()} messages so far, {count} of them {reason}'


def main(args: list[str] | None = None) -> int:
    """Run the filter node."""
    return run(FilterNode, 'filter_node', PURPOSE, FilterNodeConfig, args)
