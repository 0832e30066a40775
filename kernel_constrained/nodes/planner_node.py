# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The planner node: range scans and a pose in, proven paths out."""

import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import OccupancyGrid, Path
from rclpy.clock import Clock, ClockType
from rclpy.time import Time
from sensor_msgs.msg import LaserScan
from visualization_msgs.msg import MarkerArray

from kernel_constrained.nodes import diagnostics
from kernel_constrained.nodes.diagnostics import Level, LOOK_PERIOD
from kernel_constrained.nodes.managed import ManagedNode
from kernel_constrained.nodes.markers import MarkerMessages
from kernel_constrained.nodes.messages import POSE_TYPES
from kernel_constrained.nodes.mounting import TransformMounting
from kernel_constrained.nodes.plans import PathMessage
from kernel_constrained.nodes.qos import MAP, NEWEST, RESULTS
from kernel_constrained.nodes.running import run
from kernel_constrained.nodes.services import offer
from kernel_constrained.perception.unusable import Unusable
from kernel_constrained.planning.config import circles_of
from kernel_constrained.planning.intake import AGED, Planned, PlannerIntake
from kernel_constrained.planning.node_config import PlannerNodeConfig
from kernel_constrained.planning.planner import AT_GOAL, NO_GOAL, Plan, Planner

PURPOSE = 'Plans a path for each range scan and publishes the part of it that is proven free.'

# Without a path the node is well nevertheless.
NOTHING_TO_DO = (NO_GOAL, AT_GOAL)

# Scans that the figures of latency are of.
LATENCIES = 1000


class PlannerNode(ManagedNode):
    """Plans a path for each scan; what is not proven free is not published.

    Attributes
    ----------
    newest : Planned or None
        What came of the newest scan that was planned from; None where planning failed.
    """

    def __init__(self, **arguments: Any) -> None:
        self._tf: TransformMounting | None = None
        self.newest: Planned | None = None
        self._latencies: deque[float] = deque(maxlen=LATENCIES)
        self._marked, self._next_look = False, 0.0
        super().__init__('planner_node', PlannerNodeConfig, **arguments)

    def build(self) -> None:
        """Make and compile the planner."""
        self.planner = Planner(self.config)
        self.planner.warm_up()
        if self.config.mounting.source == 'tf':
            self._tf = TransformMounting(self, self.config.mounting.base_frame)
        mounting_of = self._tf.of if self._tf is not None else None
        self.newest = None
        self.intake = PlannerIntake(
            self.planner, self.config, lambda: self.get_clock().now().nanoseconds, self._take_back,
            mounting_of,
        )  # fmt: skip
        self._path_message = PathMessage()
        circles = circles_of(self.config.obstacles.circles)
        self._marker_messages = MarkerMessages(self.config.robot.radius, circles)
        # A scan that does not come updates nothing: what looks for it must come by itself.
        self._watch = self.create_timer(
            LOOK_PERIOD, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def serve(self) -> list[Any]:
        """Create the services."""
        return offer(self, {'reset': self._reset})

    def connect(self) -> list[Any]:
        """Create publishers, then subscribe."""
        self._plans = self.create_publisher(Path, 'plan', RESULTS)
        self._drawings = self.create_publisher(MarkerArray, '~/markers', RESULTS)
        # The scan last: of what waits, the executor takes first what it is planned with.
        self.listen('map', OccupancyGrid, self.intake.map, MAP)
        self.listen('reference', Path, self.intake.reference, RESULTS)
        self.listen('goal_pose', PoseStamped, self.intake.goal, RESULTS)
        self.listen('pose', POSE_TYPES[self.config.pose.type], self._use_pose)
        self.listen('scan', LaserScan, self._use_scan, NEWEST)
        return [self._plans, self._drawings]

    def reconfigure(self, config: PlannerNodeConfig) -> None:
        """Hand run-time parameters on."""
        self.intake.reconfigure(config)

    def release(self) -> None:
        """Stop watching."""
        self.destroy_timer(self._watch)
        if self._tf is not None:
            self._tf.close()
            self._tf = None

    # -- messages ---------------------------------------------------------------------------

    def _use_scan(self, message: Any) -> None:
        self.intake.scan(message)
        self._plan()

    def _use_pose(self, message: Any) -> None:
        self.intake.pose(message)
        self._plan()

    def _plan(self) -> None:
        """Plan from the scans that can be planned from by now, and publish what is proven."""
        newest, self.newest = self.newest, None  # what fails on the way has no path
        for planned in self.intake.plans():
            newest = planned
            self._publish(planned)
        self.newest = newest

    def _publish(self, planned: Planned) -> None:
        plan, stamp = planned.plan, Time(nanoseconds=planned.plan.stamp).to_msg()
        frame, height = self.intake.path_frame, planned.pose.z
        if plan.proven:
            self._plans.publish(self._path_message.fill(stamp, frame, plan.path, height))
        self._latencies.append(time.perf_counter() - planned.arrived)
        if self._are_marked():
            robot = np.array([planned.pose.x, planned.pose.y])
            self._drawings.publish(self._marker_messages.draw(stamp, frame, plan, robot, height))

    def _are_marked(self) -> bool:
        """Whether someone listens to markers; asking the middleware each time costs too much."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_PERIOD
            wanted = self.config.publish.markers
            self._marked = wanted and self._drawings.get_subscription_count() > 0
        return self._marked

    def _take_back(self, kind: str, error: Unusable) -> None:
        """Count a message as dropped that was counted as used when it was kept for later."""
        self.used[kind] -= 1
        self._drop(kind, error.reason, str(error))

    def _reset(self) -> str:
        self.planner.reset()
        self.newest = None
        return 'forgot the path and what was seen'

    # -- diagnostics ------------------------------------------------------------------------

    def _look(self) -> None:
        if self._diagnostics is not None:
            self._diagnostics.update()

    def figures(self) -> dict[str, Any]:
        """Return what was planned last, and how long it took."""
        pairing = self.intake.pairing
        return {
            **self._figures_of_plan(),
            **self._figures_of_latency(),
            'scans that wait for a pose': pairing.waiting,
            'scans without a pose': pairing.unpaired,
            'clock jumps': pairing.jumps,
            'pose jumps': pairing.pose_jumps,
        }

    def _figures_of_plan(self) -> dict[str, Any]:
        if self.newest is None:
            return {'reason': 'nothing planned'}
        plan = self.newest.plan
        figures = {
            'reason': plan.reason or 'none: there is a proven path',
            'detail': plan.detail,
            'stamp, s': f'{plan.stamp / 1e9:.3f}',
            'proven and seen, m': plan.horizon,
            'planned, m': plan.length,
            'ends at the goal': plan.final,
            'clearance proven, m': plan.clearance,
            'kept from the scan before': plan.kept,
            'ways considered': len(plan.alternatives),
            'dual variable': plan.dual_variable,
            'scale, m': plan.scale,
            'violation, m': plan.violation,
            'steps of the learner': plan.steps,
            'order': plan.order,
        }
        return {**figures, **self._figures_of_risk(plan)} if plan.proven else figures

    def _figures_of_risk(self, plan: Plan) -> dict[str, Any]:
        """Return bounds on the probability of collision; drawn now, as nobody else needs them."""
        risk = self.planner.risk(plan)
        if risk is None:
            return {}
        bound = f'at most, with confidence {risk.confidence:g}'
        return {
            f'P(collision) at a random time, {bound}': risk.by_time,
            f'P(collision) at a random place, {bound}': risk.by_length,
            f'P(collision) anywhere, {bound}': risk.per_path,
            'P(collision) at a random time, share of draws': risk.by_time_estimate,
            'P(collision) at a random place, share of draws': risk.by_length_estimate,
            'P(collision) anywhere, share of draws': risk.per_path_estimate,
            'draws': risk.draws,
        }

    def _figures_of_latency(self) -> dict[str, Any]:
        if not self._latencies:
            return {}
        middle, late, last = np.quantile(self._latencies, [0.5, 0.99, 1.0]).tolist()
        return {
            'latency, s': self._latencies[-1],
            f'latency, median of {len(self._latencies)}, s': middle,
            f'latency, 99 % of {len(self._latencies)}, s': late,
            f'latency, largest of {len(self._latencies)}, s': last,
        }

    def level(self) -> Level:
        """Say how the planner is doing, the worst first."""
        if not self.active:
            level = diagnostics.ERROR if self.refusal else diagnostics.OK
            return Level(level, self.refusal or 'inactive')
        silence = self.inputs['scan'].silent_for
        if silence > self.config.diagnostics.stale_after:
            return Level(diagnostics.STALE, self._silence('scan'))
        stale = self._stale()
        if stale:
            return Level(diagnostics.ERROR, stale)
        if self.newest is None:
            return Level(diagnostics.ERROR, 'nothing was planned from the newest scan')
        return self._level_of(self.newest.plan)

    def _level_of(self, plan: Plan) -> Level:
        if plan.reason in NOTHING_TO_DO:
            return Level(diagnostics.OK, plan.reason)
        if not plan.proven:
            return Level(diagnostics.ERROR, ': '.join(filter(None, (plan.reason, plan.detail))))
        text = f'proven for {plan.horizon:.2f} m'
        for warning in self._warnings(plan):
            return Level(diagnostics.WARN, f'{warning}; {text}')
        return Level(diagnostics.OK, text)

    def _stale(self) -> str:
        """Say why there is no plan that the robot may still go by, if so."""
        intake, allowed = self.intake, self.config.scan.max_age
        planned, come = intake.newest_planned, intake.newest_scan
        if planned is not None and intake.age(planned) <= allowed:
            return ''
        if abs(intake.age_on_arrival) > allowed:
            return f'scans are {intake.age_on_arrival:.3g} s old when they come: {AGED}'
        if come in (None, planned) or self.inputs['scan'].silent_for > allowed:
            return f'stale scan: {self._silence("scan")}'
        if self.inputs['pose'].silent_for > self.config.pairing.max_gap:
            return self._silence('pose')
        return 'scans come, but none that can be planned from'

    def _silence(self, kind: str) -> str:
        """Say for how long nothing came, and where nothing ever did why."""
        entry = self.inputs[kind]
        text = f'no {kind} for {entry.silent_for:.1f} s'
        return text if self.received[kind] else f'{text}: {entry.why_silent()}'

    def _warnings(self, plan: Plan) -> Iterator[str]:
        """Say what is not as it should be, though there is a path."""
        wanted = self.config.robot.proof_margin
        if plan.clearance < wanted:
            yield f'narrow: {plan.clearance:.3f} m of clearance are proven, wanted {wanted:g} m'
        recently = self.config.diagnostics.stale_after
        for entry in self.inputs.values():
            if entry.incompatible and not self.received[entry.topic]:
                yield entry.incompatible
            # Scans are: only the newest is wanted.
            if entry.topic != 'scan' and time.monotonic() - entry.last_loss < recently:
                yield f'{entry.lost} messages on {entry.topic} came faster than they were read'
        if time.monotonic() - self.last_drop < recently:
            reason, count = self.dropped.most_common(1)[0]
            yield f'dropped {self.dropped.total()} messages so far, {count} of them {reason}'


def main(args: list[str] | None = None) -> int:
    """Run the planner node."""
    return run(PlannerNode, 'planner_node', PURPOSE, PlannerNodeConfig, args)
