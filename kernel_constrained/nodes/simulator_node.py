# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The simulator: a robot with a range finder that drives along the paths it is given."""

import math
import time
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import OccupancyGrid, Path
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import LaserScan
from std_msgs.msg import Float64, Header
from tqdm import tqdm

from kernel_constrained.configuration import flatten, from_flat
from kernel_constrained.nodes.consumers import Consumers
from kernel_constrained.nodes.messages import POSE_TYPES
from kernel_constrained.nodes.parameters import change_at_runtime, declare
from kernel_constrained.nodes.qos import ANSWERS, LATCHED, overridable, RECORDING, RESULTS, SETTLE
from kernel_constrained.nodes.running import run
from kernel_constrained.perception.geometry import Pose, quaternion_from_yaw
from kernel_constrained.perception.scan import Scan
from kernel_constrained.planning.maps import OccupancyMap
from kernel_constrained.planning.simulator import SimulatorConfig

Array = npt.NDArray[np.float64]

# Seconds after which waiting looks about itself.
PATIENCE = 0.5

STAND: Array = np.empty((0, 2))

PURPOSE = 'Drives a simulated robot with a range finder along the paths on topic plan.'


def filled_pose(pose: Any, x: float, y: float, yaw: float) -> Any:
    """Fill a geometry_msgs/Pose in."""
    pose.position.x, pose.position.y = x, y
    q = pose.orientation
    q.x, q.y, q.z, q.w = quaternion_from_yaw(yaw)
    return pose


def filled_header(header: Any, stamp: int, frame_id: str) -> None:
    """Fill a std_msgs/Header in; the stamp is in nanoseconds."""
    header.stamp.sec, header.stamp.nanosec = divmod(stamp, 1_000_000_000)
    header.frame_id = frame_id


def scan_message(scan: Scan, period: float) -> LaserScan:
    """Return a scan as a message without header."""
    last = scan.angle_min + (len(scan.ranges) - 1) * scan.angle_increment
    message = LaserScan(
        angle_min=scan.angle_min, angle_max=last, angle_increment=scan.angle_increment,
        range_min=scan.range_min, range_max=scan.range_max, scan_time=period,
    )  # fmt: skip
    message.ranges = scan.ranges
    return message


def map_message(map_: OccupancyMap) -> OccupancyGrid:
    """Return a map as a message without header."""
    message, info = OccupancyGrid(), OccupancyGrid().info
    info.height, info.width = map_.data.shape
    info.resolution = map_.resolution
    x, y, yaw = map_.origin
    filled_pose(info.origin, x, y, yaw)
    message.info, message.data = info, map_.data.ravel()
    return message


class SimulatorNode(Node):
    """A robot in a world: publishes what it senses, and follows the newest path.

    One timer drives it. What it does next is ``_act``: wait for consumers, then scan and step.
    Where no path came for a scan, or none for ``robot.plan_timeout``, the robot stands.

    Attributes
    ----------
    finished : bool
        Whether the goal was reached or the time is over.
    exit_code : int
        0 when the robot reached its goal and touched nothing.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__('simulate', **arguments)
        self.config = declare(self, SimulatorConfig)
        self.executor_kind = self.config.executor
        self.finished, self.exit_code, self.reached = False, 0, False
        self.simulation = self.config.build()
        self._scans, self._plans, self._refused = 0, 0, 0
        self._planned = self._sensed = self.simulation.stamp - 1
        self._least = math.inf
        self._asked, self._unanswered = math.inf, set[str]()
        self._anchor = (0.0, 0.0)
        self._progress: Any = None
        self._make_topics()
        heard = {'scan': self._scan, 'pose': self._pose}
        if self.config.send_goal:
            heard['goal_pose'] = self._goal
        self._goal_listeners, self._goal_due = 0, 0.0
        # of a replay's configuration it reads what we have too
        self._consumers = Consumers(self, heard, cast(Any, self.config))
        change_at_runtime(self, SimulatorConfig, self._change)
        self._act = self._await_consumers
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self.create_timer(0.05, lambda: self._act(), clock=steady)

    def _make_topics(self) -> None:
        config, options = self.config, overridable()
        # before the answers, so that of both at once the path is read first
        self.create_subscription(
            Path, 'plan', self._on_plan, RESULTS, qos_overriding_options=options
        )
        if config.lockstep:
            self.create_subscription(Header, config.answer_topic, self._on_answer, ANSWERS)
        self._time = self.create_publisher(ClockMessage, '/clock', RECORDING)
        self._scan, self._pose, self._goal = (
            self.create_publisher(kind, topic, RESULTS, qos_overriding_options=options)
            for kind, topic in (
                (LaserScan, 'scan'), (POSE_TYPES[config.pose_type], 'pose'),
                (PoseStamped, 'goal_pose'),
            )
        )  # fmt: skip
        self._map = None
        map_ = self.simulation.world.map
        if map_ is not None and config.world.publish_map:
            self._map = self.create_publisher(OccupancyGrid, 'map', LATCHED)
            message = map_message(map_)
            filled_header(message.header, self.simulation.stamp, config.frame_id)
            self._map.publish(message)
        self._true_pose = self.create_publisher(PoseStamped, '~/true_pose', RECORDING)
        self._clearance = self.create_publisher(Float64, '~/clearance', RECORDING)

    # -- before driving ---------------------------------------------------------------------

    def _await_consumers(self) -> None:
        try:
            ready = self._consumers.ready()
        except TimeoutError as error:
            self._fail(str(error))
            return
        self._wake_in(0.05)
        if ready:
            self._publish_time()  # a planner on simulated time takes nothing before
            self._act = self._begin
            self._wake_in(SETTLE)

    def _begin(self) -> None:
        self._progress = tqdm(
            total=self._to_goal(), desc='simulate', disable=None,
            bar_format='{desc}: {percentage:3.0f} % of the way|{bar}| {postfix}',
        )  # fmt: skip
        self._anchor = (time.monotonic(), self.simulation.time)
        self._send_goal()
        self._act = self._scan_first
        # in lockstep it must not be chance whether the goal is there before the first scan
        self._wake_in(SETTLE if self.config.lockstep else 0.0)

    def _scan_first(self) -> None:
        self._act = self._go_on
        self._look_around()

    # -- driving ----------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Step if it is time to; scan where a period is over."""
        now = time.monotonic()
        if self._asked < math.inf:
            self._check_patience(now)
            self._wake_in(PATIENCE)
        elif (wait := self._due() - now) > 0.0:
            self._wake_in(min(wait, PATIENCE))
        else:
            if wait < -PATIENCE:  # held up: do not race to catch up
                self._anchor = (now, self.simulation.time)
            self._step()

    def _due(self) -> float:
        """When, by the steady clock, the next step is due."""
        begun, then = self._anchor
        if self.config.rate == 0.0:
            return begun
        return begun + (self.simulation.time + self.config.step - then) / self.config.rate

    def _step(self) -> None:
        simulation = self.simulation
        if simulation.stamp - self._planned > self.config.robot.plan_timeout * 1e9:
            simulation.follow(STAND)
        simulation.move(self.config.step)
        self._publish_time()
        self._publish_truth()
        self.reached = self._to_goal() <= self.config.goal_tolerance
        if (self.reached and self.config.end_at_goal) or simulation.time >= self.config.time_limit:
            self.finished = True
        elif simulation.time > self._scans * self.config.period - 0.5 * self.config.step:
            self._look_around()
        else:
            self._wake_in(0.0)

    def _look_around(self) -> None:
        """Publish a scan, and the pose that the robot believes it was taken at."""
        scan, believed = self.simulation.sense()
        self._scans += 1
        self._sensed = self.simulation.stamp
        self._send_goal()
        self._publish_pose(believed)
        message = scan_message(scan, self.config.period)
        filled_header(message.header, self._sensed, self.config.scan_frame_id)
        if self.config.lockstep:
            self._asked, self._unanswered = time.monotonic(), {'pose', 'scan'}
        self._scan.publish(message)
        self._judge()
        self._show_progress()
        self._wake_in(PATIENCE if self.config.lockstep else 0.0)

    def _on_plan(self, plan: Path) -> None:
        """Take up a path, unless it is older than the one there is."""
        stamp = plan.header.stamp.sec * 1_000_000_000 + plan.header.stamp.nanosec
        if plan.header.frame_id != self.config.frame_id:
            self.get_logger().error(
                f'a path in frame {plan.header.frame_id!r} is not followed: this robot knows '
                f'{self.config.frame_id!r}', once=True,
            )  # fmt: skip
            return
        if not self._planned <= stamp <= self.simulation.stamp:
            return
        path = np.array([(p.pose.position.x, p.pose.position.y) for p in plan.poses])
        if not np.isfinite(path).all():
            self.get_logger().error('a path with a non-finite position is not followed')
            path = STAND
        self._planned = stamp
        self._plans += 1
        gap = self.simulation.follow(path.reshape(-1, 2))
        if gap > self.config.robot.reach:
            self._refused += 1
            self.get_logger().warning(
                f'a path that begins {gap:.2f} m away is not followed, the robot stands'
            )

    def _on_answer(self, answer: Header) -> None:
        """Go on once the newest scan and its pose are dealt with; without a path of it, stand."""
        stamp = answer.stamp.sec * 1_000_000_000 + answer.stamp.nanosec
        if stamp != self._sensed or answer.frame_id not in self._unanswered:
            return
        self._unanswered.remove(answer.frame_id)
        if not self._unanswered:
            self._asked = math.inf
            if self._planned < stamp:
                self.simulation.follow(STAND)
            self._wake_in(0.0)

    def _check_patience(self, now: float) -> None:
        if now - self._asked > self.config.answer_timeout:
            self._fail(
                f'no answer on {self.config.answer_topic} within '
                f'{self.config.answer_timeout:g} s to {" and ".join(sorted(self._unanswered))} '
                f'{self._scans}'
            )

    def _to_goal(self) -> float:
        simulation = self.simulation
        return math.dist(simulation.position, simulation.world.goal)

    def _show_progress(self) -> None:
        if not self._progress.disable:
            self._progress.set_postfix_str(f'{self.simulation.time:.1f} s', refresh=False)
            self._progress.update(self._progress.total - self._to_goal() - self._progress.n)

    def _wake_in(self, delay: float) -> None:
        self._timer.timer_period_ns = max(int(delay * 1e9), 1)
        self._timer.reset()

    # -- publishing -------------------------------------------------------------------------

    def _publish_time(self) -> None:
        message = ClockMessage()
        stamp = self.simulation.stamp
        message.clock.sec, message.clock.nanosec = divmod(stamp, 1_000_000_000)
        self._time.publish(message)

    def _publish_pose(self, believed: Pose) -> None:
        message = POSE_TYPES[self.config.pose_type]()
        filled_header(message.header, self._sensed, self.config.frame_id)
        pose = message.pose
        if self.config.pose_type == 'PoseWithCovarianceStamped':
            covariance = np.zeros(36)
            known = self.simulation.robot.covariance
            if known is not None:
                covariance[[0, 7, 35]] = np.diag(known)
            pose.covariance = covariance
            pose = pose.pose
        filled_pose(pose, believed.x, believed.y, believed.yaw)
        self._pose.publish(message)

    def _send_goal(self) -> None:
        """Publish the goal at first, and again once somebody new listens."""
        now, listeners = time.monotonic(), self._goal.get_subscription_count()
        if listeners > self._goal_listeners and self._scans > 1:
            self._goal_due = now + SETTLE
        self._goal_listeners = listeners
        if self.config.send_goal and now >= self._goal_due:
            self._goal_due = math.inf
            message = PoseStamped()
            filled_header(message.header, self.simulation.stamp, self.config.frame_id)
            x, y = self.simulation.world.goal.tolist()
            filled_pose(message.pose, x, y, 0.0)
            self._goal.publish(message)

    def _publish_truth(self) -> None:
        if self._true_pose.get_subscription_count():
            message, pose = PoseStamped(), self.simulation.pose
            filled_header(message.header, self.simulation.stamp, self.config.frame_id)
            filled_pose(message.pose, pose.x, pose.y, pose.yaw)
            self._true_pose.publish(message)

    def _judge(self) -> None:
        """Publish the smallest true clearance since the scan before."""
        least = min(float(part.min()) for part in self.simulation.clearances)
        self._least = min(self._least, least)
        self._clearance.publish(Float64(data=least))
        self.simulation.forget()

    # -- changing and ending ----------------------------------------------------------------

    def _change(self, values: dict[str, Any]) -> None:
        self.config = from_flat(SimulatorConfig, {**flatten(self.config), **values})
        self.simulation.lidar = self.config.sensor()
        self._anchor = (time.monotonic(), self.simulation.time)

    def _fail(self, reason: str) -> None:
        self.finished, self.exit_code = True, 1
        self.get_logger().error(reason)

    def close(self) -> None:
        """Say what became of the drive."""
        if not self._scans:
            return
        self._progress.close()
        if self.simulation.clearances:
            self._judge()
        touched = self._least < 0.0
        if touched or (self.finished and self.config.end_at_goal and not self.reached):
            self.exit_code = 1
        self.get_logger().info(
            f'goal {"reached" if self.reached else "not reached"} after '
            f'{self.simulation.time:.1f} s and {self.simulation.travelled:.2f} m, smallest '
            f'clearance {self._least:.3f} m{", COLLIDED" if touched else ""}; '
            f'{self._scans} scans, {self._plans} paths, {self._refused} not taken up'
        )


def main(args: list[str] | None = None) -> int:
    """Run the simulator."""
    return run(SimulatorNode, 'simulate', PURPOSE, SimulatorConfig, args)
