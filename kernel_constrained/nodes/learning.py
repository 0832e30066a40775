# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the nodes that learn from scans have in common: model file, services, figures, level."""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rclpy.clock import Clock, ClockType
from std_msgs.msg import Float64
from std_srvs.srv import SetBool

from kernel_constrained import model_file
from kernel_constrained.nodes import diagnostics
from kernel_constrained.nodes.diagnostics import LOOK_PERIOD
from kernel_constrained.nodes.managed import ManagedNode
from kernel_constrained.nodes.mounting import TransformMounting
from kernel_constrained.nodes.qos import RECORDING
from kernel_constrained.nodes.saving import check_place, Saver
from kernel_constrained.nodes.services import answering, offer
from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.perception.intake import ScanIntake
from kernel_constrained.perception.learning import ScanLearner


class LearningNode(ManagedNode):
    """A managed node whose model learns from scans and is kept in a file.

    Beside what a managed node is made of, a subclass says by :meth:`make_model` and
    :meth:`make_intake` what learns; its configuration has groups ``learner``, ``mounting``,
    ``model``, ``publish`` and ``diagnostics``.

    Attributes
    ----------
    model : ScanLearner
        What learns.
    intake : ScanIntake
        The way in for its messages.
    """

    # The input without which there is nothing to estimate from.
    kind = 'scan'

    def __init__(self, name: str, config_class: type, **arguments: Any) -> None:
        self._mounting: TransformMounting | None = None
        self._saver, self._saved = Saver(), 0
        self._figures: dict[str, Any] = {}
        self._heard: set[str] = set()
        self._next_look = 0.0
        self._violated_since: float | None = None
        super().__init__(name, config_class, **arguments)

    def make_model(self) -> ScanLearner:
        """Make what learns, by the configuration."""
        raise NotImplementedError

    def make_intake(self, mounting_of: Callable[[str], Mounting] | None) -> ScanIntake:
        """Make the way into the model; ``mounting_of`` as :class:`ScanIntake` has it."""
        raise NotImplementedError

    def build(self) -> None:
        """Make and compile the model, and read the one of the file where that is asked for."""
        self.model = self.make_model()
        self.model.warm_up()
        file, path = self.config.model, Path(self.config.model.path)
        if file.saves:
            check_place(path)
        if file.load_at_start == 'always' or (
            file.load_at_start == 'if_present' and path.exists()
        ):
            self.model.restore(path)
            self.get_logger().info(f'goes on with {self.model.samples} samples of {path}')
        self._saved = self.model.samples
        if self.config.mounting.source == 'tf':
            self._mounting = TransformMounting(self, self.config.mounting.base_frame)
        self.intake = self.make_intake(self._mounting.of if self._mounting is not None else None)
        self._autosave = self.create_timer(
            file.autosave_period or 1.0, self._save_in_background,
            clock=Clock(clock_type=ClockType.STEADY_TIME), autostart=file.autosave_period > 0.0,
        )  # fmt: skip

    def serve(self) -> list[Any]:
        """Create the services."""
        return [
            *offer(self, {'save': self._save, 'load': self._load, 'reset': self._reset}),
            self.create_service(SetBool, '~/set_learning', answering(self, self._set_learning)),
        ]

    def reconfigure(self, config: Any) -> None:
        """Hand run-time parameters to the learner."""
        self.model.reconfigure(config)

    def keep(self) -> None:
        """Say what was learned, and save the model where that is asked for."""
        learner, cvar = self.model.learner, self.model.cvar()
        self.get_logger().info(
            f'learned {self.model.samples} samples, model order {learner.model_order_}, '
            f'CVaR {cvar:.3g}'
        )
        self._saver.wait()
        if self.config.model.save_at_end:
            self.get_logger().info(self._save())

    def release(self) -> None:
        """Save no more, and stop listening to TF."""
        self.destroy_timer(self._autosave)
        if self._mounting is not None:
            self._mounting.close()
            self._mounting = None

    # -- figures ----------------------------------------------------------------------------

    def publish_on_demand(self, names: tuple[str, ...]) -> list[Any]:
        """Create and return the publishers of figures; each is published while someone listens."""
        self._figures = {
            name: self.create_publisher(Float64, f'~/{name}', RECORDING) for name in names
        }
        return list(self._figures.values())

    def publish_learned(self, loss: float) -> None:
        """Publish the figures of a sample whose truth has become known."""
        learner = self.model.learner
        self.publish_figure('loss', lambda: loss)
        self.publish_figure('cvar', self.model.cvar)
        self.publish_figure('violation', lambda: self._violation)
        self.publish_figure('dual_variable', lambda: learner.dual_variable_)
        self.publish_figure('model_order', lambda: float(learner.model_order_))

    def publish_figure(self, name: str, value: Callable[[], float]) -> None:
        """Publish a figure if someone listens; else it is not even computed."""
        now = time.monotonic()
        if now >= self._next_look:  # asking the middleware each time costs more than a figure
            self._next_look = now + LOOK_PERIOD
            heard = self._figures.items() if self.config.publish.figures else ()
            self._heard = {one for one, output in heard if output.get_subscription_count()}
        if name in self._heard:
            self._figures[name].publish(Float64(data=value()))

    # -- services ---------------------------------------------------------------------------

    def _save_in_background(self) -> None:
        """Save what was learned by now, while messages come."""
        nothing_new = self.model.samples == self._saved and not self._saver.failed
        if nothing_new or self._saver.busy:
            return
        self._saved = self.model.samples
        kind, (header, arrays) = self.model.KIND, self.model.to_parts()
        path = self._model_path()
        self._saver.start(lambda: model_file.write(path, kind, header, arrays))

    def _save(self) -> str:
        path = self._model_path()
        self._saver.now(lambda: self.model.save(path))
        return f'saved {path.resolve()}'

    def _load(self) -> str:
        self.model.restore(self._model_path())
        self.intake.not_finite = False
        return f'loaded {self._model_path().resolve()}'

    def _model_path(self) -> Path:
        if not self.config.model.path:
            raise ValueError('parameter model.path is empty: name the model file there')
        return Path(self.config.model.path)

    def _reset(self) -> str:
        self.model.reset()
        self.intake.reset()
        return 'forgot everything that was learned'

    def _set_learning(self, request: Any) -> str:
        self.model.learning = request.data
        return 'learning' if request.data else 'frozen: predicting without learning'

    @property
    def _violation(self) -> float:
        """Violation as of the newest sample; NaN without a constraint."""
        return self._over_tolerance(self.model.cvar())

    def _over_tolerance(self, cvar: float) -> float:
        bound = self.config.learner
        return cvar - bound.tolerance if bound.bounded else math.nan

    # -- diagnostics ------------------------------------------------------------------------

    def figures(self) -> dict[str, Any]:
        """Return the state of the learner and of the model file."""
        learner = self.model.learner
        since_start = self.model.cvar_since_start()
        return {
            'samples learned': self.model.samples,
            'model order': learner.model_order_,
            'cvar': self.model.cvar(),
            'violation': self._violation,
            'cvar since start': since_start,
            'violation since start': self._over_tolerance(since_start),
            'dual variable': learner.dual_variable_,
            'steps over the compression budget': learner.overspent_,
            'model file': self._saver.outcome or 'not saved yet',
        }

    def level(self) -> diagnostics.Level:
        """Say how the node is doing, the worst first."""
        if not self.active:
            level = diagnostics.ERROR if self.refusal else diagnostics.OK
            return diagnostics.Level(level, self.refusal or 'inactive')
        silence = self.inputs[self.kind].silent_for
        if self.intake.not_finite:
            text = 'the estimate was not finite: ~/reset or ~/load a model'
            return diagnostics.Level(diagnostics.ERROR, text)
        if silence > self.config.diagnostics.stale_after:
            text = f'no {self.kind} for {silence:.0f} s'
            if not self.received[self.kind]:
                text = f'{text}: {self.inputs[self.kind].why_silent()}'
            return diagnostics.Level(diagnostics.STALE, text)
        violated = self._violation_level()
        if violated is not None:
            return violated
        for warning in self._warnings():
            return diagnostics.Level(diagnostics.WARN, warning)
        text = 'learning' if self.model.learning else 'frozen'
        return diagnostics.Level(diagnostics.OK, text + self.remark())

    def remark(self) -> str:
        """Say what a person should know though all is well; begins with ``; `` or is empty."""
        return ''

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
        """Say what is not as it should be, though the node works."""
        if self.model.learner.dual_cap_binds_:
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
