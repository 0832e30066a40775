# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""planner_node as a process: scans, poses and goals in over DDS, proven paths out."""

import math
import re

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from feeding import MILLISECOND, set_parameters, stamp, Watch
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from lifecycle_msgs.srv import ChangeState
from nav_msgs.msg import Odometry
from probing import CONFIG, ended_by
from rosgraph_msgs.msg import Clock
from roving import (
    BEARINGS,
    HALF,
    heading,
    LATCHED,
    map_of,
    nanoseconds,
    path_of,
    placed,
    positions,
    RADIUS,
    ranges_from,
    Rover,
    SECOND,
)
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker, MarkerArray

from kernel_constrained.configuration import from_flat, read_parameter_file
from kernel_constrained.planning.node_config import PlannerNodeConfig
from kernel_constrained.planning.planner import Planner

OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
ERROR, STALE = DiagnosticStatus.ERROR, DiagnosticStatus.STALE
GIVEN = read_parameter_file(CONFIG / 'planner.yaml', '/planner_node')
MARGIN = from_flat(PlannerNodeConfig, GIVEN).robot.proof_margin
DISC = (1.5, 0.1, 0.4)  # between the robot and a goal ahead of it
BESIDE = (1.5, 0.5, 0.4)  # in the way to (3, -0.3), which is seen beside it


@pytest.fixture(scope='module', autouse=True)
def compiled():
    """Compile once, or each node would wait for it to be done."""
    Planner(from_flat(PlannerNodeConfig, {})).warm_up()


def clearance(line, circles):
    """Distance between the robot's disc along a polyline and the nearest of circles."""
    fine = np.concatenate([np.linspace(a, b, 50) for a, b in zip(line[:-1], line[1:])] or [line])
    return min(
        (np.hypot(fine[:, 0] - x, fine[:, 1] - y) - r).min() for x, y, r in circles
    ) - RADIUS  # fmt: skip


def told(watch, condition):
    """Return a function that says whether ``condition(level, message, values)`` holds by now."""

    def holds():
        return bool(watch.messages) and condition(
            watch.status.level, watch.status.message, watch.values
        )

    return holds


@pytest.mark.parametrize('executor', ['single', 'events'])
def test_proven_paths_to_the_goal_are_published_scan_by_scan(probe, start, executor):
    process = start('planner_node', CONFIG / 'planner.yaml', executor=executor)
    watch = Watch(probe)
    with ended_by(process):
        rover = Rover(probe, [BESIDE])
        rover.goals.publish(placed(3.0, -0.3))
        plan = rover.plan()
        line = positions(plan)
        assert plan.header.frame_id == 'map'
        assert {p.header.frame_id for p in plan.poses} == {'map'}
        assert np.allclose(line[0], 0.0, atol=1e-9)
        assert np.allclose(line[-1], (3.0, -0.3), atol=1e-9)
        assert MARGIN - 1e-3 < clearance(line, [BESIDE]) < 0.2, 'it bends no more than it must'
        steps = np.diff(line, axis=0)
        assert np.hypot(*steps.T).max() < 0.2
        headings = [heading(pose) for pose in plan.poses]
        assert np.allclose(headings[:-1], np.arctan2(steps[:, 1], steps[:, 0]))
        assert headings[-1] == headings[-2]

        before = len(rover.plans)
        stamps = [rover.look() for _ in range(20)]
        newest = rover.plan()
        stamps += [nanoseconds(newest)]
        answered = [nanoseconds(plan) for plan in rover.plans[before:]]
        assert answered == sorted(set(answered))
        assert len(set(answered) & set(stamps)) > 10, (
            'those that come while it is busy are skipped'
        )
        assert all(np.allclose(positions(p), line, atol=1e-9) for p in rover.plans[-10:]), (
            'it is kept'
        )
        watch.wait(lambda level, text, _: level == OK and text.startswith('proven for'))
        values = watch.values
        assert float(values['proven and seen, m']) == pytest.approx(3.1, abs=0.2)
        assert float(values['clearance proven, m']) == MARGIN
        assert (values['ends at the goal'], values['kept from the scan before']) == ('True',) * 2
        assert float(values['latency, s']) < 1.0
        names = [n for n in values if n.startswith('P(collision)')]
        assert len(names) == 6
        assert all(0.0 <= float(values[n]) < 0.02 for n in names), 'noise of 3 cm, 5 cm apart'
        assert values['draws'] == '299'


def test_without_a_goal_or_at_it_nothing_is_published_and_all_is_well(probe, start):
    with ended_by(start('planner_node', CONFIG / 'planner.yaml')):
        watch = Watch(probe)
        rover = Rover(probe)
        rover.look(20)
        watch.wait(lambda level, text, _: (level, text) == (OK, 'no goal'))
        rover.goals.publish(placed(0.05, 0.0))
        rover.look_until(lambda: watch.status.message == 'at the goal', 'the goal to be reached')
        assert watch.status.level == OK
        assert rover.plans == []


def test_a_blocked_goal_is_an_error_that_says_so_until_another_is_given(probe, start):
    with ended_by(start('planner_node', CONFIG / 'planner.yaml')):
        watch = Watch(probe)
        rover = Rover(probe, [DISC])
        rover.goals.publish(placed(1.1, 0.1))
        blocked = told(watch, lambda _, __, values: values.get('reason') == 'goal is blocked')
        rover.look_until(blocked, 'the reason')
        assert watch.status.level == ERROR
        assert watch.status.message.startswith('goal is blocked: a disc of 0.3 m does not fit')
        assert rover.plans == []
        rover.goals.publish(placed(3.0, 0.0))
        rover.plan()
        rover.references.publish(path_of())
        idle = told(watch, lambda _, text, __: text == 'no goal')
        rover.look_until(idle, 'the goal to be taken back')


def test_the_path_ends_where_the_sensor_has_seen(probe, start):
    with ended_by(start('planner_node', CONFIG / 'planner.yaml')):
        rover = Rover(probe, range_max=2.0)
        rover.goals.publish(placed(4.5, 0.0))
        end = positions(rover.plan())[-1]
        assert 1.5 < end[0] <= 2.0 - RADIUS + 0.05
        rover.x = 1.0
        assert 2.5 < positions(rover.plan())[-1][0] <= 3.0 - RADIUS + 0.05


def test_when_scans_stop_coming_it_is_an_error_at_once_and_stale_later(probe, start):
    file = CONFIG / 'planner.yaml'
    with ended_by(start('planner_node', file, **{'diagnostics.stale_after': 6.0})):
        watch = Watch(probe)
        rover = Rover(probe)
        rover.goals.publish(placed(3.0, 0.0))
        rover.look_until(told(watch, lambda level, _, __: level == OK), 'a path')
        begun = nanoseconds(rover.plan()) + 50 * MILLISECOND
        count = len(rover.plans)  # that of the last scan is there
        probe.wait(lambda: watch.status.level == ERROR, what='an error')
        assert 300 < (rover.now - begun) / MILLISECOND < 5500
        assert watch.status.message.startswith('stale scan: no scan for 0.')
        probe.wait(lambda: watch.status.level == STALE, what='stale')
        assert len(rover.plans) == count
        rover.plan()
        watch.wait(lambda level, _, __: level == OK)


def test_a_robot_without_a_pose_gets_no_path_and_is_told_why(probe, start):
    with ended_by(start('planner_node', CONFIG / 'planner.yaml')):
        watch = Watch(probe)
        rover = Rover(probe)
        rover.goals.publish(placed(3.0, 0.0))
        missing = told(watch, lambda _, text, __: text.startswith('no pose for'))
        rover.look_until(missing, 'the reason', pose=False)
        assert watch.status.level == ERROR
        assert rover.plans == []
        rover.plan()


def test_a_scan_that_is_too_old_is_not_planned_from(probe, start):
    with ended_by(start('planner_node', CONFIG / 'planner.yaml')):
        watch = Watch(probe)
        rover = Rover(probe)
        rover.goals.publish(placed(3.0, 0.0))
        old = told(watch, lambda *_: watch.dropped('scan').get('scan too old', 0) > 3)
        rover.look_until(old, 'old scans', age=0.6)
        assert watch.status.level == ERROR
        assert re.match(r'scans are 0\.[6-9]\d* s old when they come', watch.status.message)
        assert 'use_sim_time' in watch.status.message
        assert rover.plans == []
        result = set_parameters(probe, ('scan.max_age', 100.0), node='planner_node')
        assert result[0].successful
        rover.look_until(lambda: rover.plans, 'a path from a scan that is old enough', age=0.6)


def test_obstacles_of_a_map_that_came_before_the_planner_are_kept_clear_of(probe, start):
    wall = np.zeros((100, 100), dtype=bool)  # 5 m x 5 m each side of the robot, 0.1 m cells
    wall[40:60, 65] = True  # at x = 1.5 m, from y = -1 to 1 m, which no beam shows
    early = probe.node.create_publisher(type(map_of(wall)), 'map', LATCHED)
    early.publish(map_of(wall))
    with ended_by(start('planner_node', CONFIG / 'planner.yaml')):
        watch = Watch(probe)
        rover = Rover(probe, use_map=True)
        rover.goals.publish(placed(3.0, 0.0))
        line = positions(rover.plan())
        passing = line[(line[:, 0] > 1.5) & (line[:, 0] < 1.6)]
        assert abs(passing[:, 1]).min() > 1.0 + RADIUS
        watch.wait(lambda _, __, values: values.get('used: map') == '1', 'the map')

        wrong = map_of(wall, frame='odom')
        rotated = map_of(wall)
        rotated.info.origin.orientation.z = 0.2
        short = map_of(wall)
        short.info.width = 7
        for message in (wrong, rotated, short):
            rover.maps.publish(message)
            probe.spin(0.2)
        rover.look_until(
            lambda: watch.dropped('map') == {
                'wrong frame': 1, 'rotated map': 1, 'map data of the wrong length': 1,
            }, 'reasons',
        )  # fmt: skip
        rover.look_until(told(watch, lambda level, _, __: level == WARN), 'a warning')
        assert 'dropped 3 messages' in watch.status.message
        rover.maps.publish(map_of(np.zeros((10, 10), dtype=bool)))
        probe.spin(0.2)
        rover.goals.publish(placed(3.0, 0.05))  # the path of before is proven still, and kept
        rover.look_until(
            lambda: rover.plans and abs(positions(rover.plans[-1])[:, 1]).max() < 0.1,
            'the straight way',
        )


def test_a_reference_is_followed_and_sent_again_it_begins_no_new_path(probe, start):
    with ended_by(start('planner_node', CONFIG / 'planner.yaml')):
        watch = Watch(probe)
        rover = Rover(probe)
        bend = path_of((0.0, 0.0), (1.0, 1.0), (2.0, 1.5), (3.0, 1.0), (3.5, 0.0))
        rover.references.publish(bend)
        line = positions(rover.plan())
        wanted = positions(bend)
        ideal = np.concatenate([np.linspace(a, b, 50) for a, b in zip(wanted, wanted[1:])])
        gaps = np.hypot(*(line[:, None] - ideal[None]).transpose(2, 0, 1)).min(1)
        assert gaps.max() < 0.6, 'it stays near: straight on it would be 1.5 m away'
        for _ in range(5):
            rover.references.publish(bend)
            assert np.allclose(positions(rover.plan()), line, atol=1e-9)
        watch.wait(lambda _, __, values: values.get('kept from the scan before') == 'True')
        rover.references.publish(path_of((0.0, 0.0), (3.0, 0.0), frame='odom'))
        refused = told(watch, lambda *_: watch.dropped('reference') == {'wrong frame': 1})
        rover.look_until(refused, 'the reason')
        assert np.allclose(positions(rover.plan()), line, atol=1e-9), (
            'the one of before is followed on'
        )


@pytest.mark.parametrize('kind', [PoseWithCovarianceStamped, Odometry])
def test_poses_of_other_types_are_taken_and_their_covariance_raises_the_risk(probe, start, kind):
    file = CONFIG / 'planner.yaml'
    with ended_by(start('planner_node', file, **{'pose.type': kind.__name__})):
        watch = Watch(probe)
        rover = Rover(probe, [BESIDE], pose=kind)
        rover.goals.publish(placed(3.0, -0.3))
        rover.plan()

        def bound():
            (name,) = [n for n in watch.values if n.startswith('P(collision) anywhere, at most')]
            return float(watch.values[name])

        rover.look_until(told(watch, lambda *_: 'draws' in watch.values), 'a bound')
        before = bound()
        assert before < 0.02
        rover.covariance = np.diag([0.04, 0.04, 0.0, 0.0, 0.0, 0.01]).ravel()
        rover.look_until(
            lambda: 'draws' in watch.values and bound() > 1.1 * before, 'a higher risk'
        )
        assert rover.plans[-1].header.frame_id == 'map'


def test_markers_show_what_is_seen_and_planned_while_someone_listens(probe, start):
    file = CONFIG / 'planner.yaml'
    circle = "['-1.0 -1.0 0.5']"
    with ended_by(start('planner_node', file, **{'obstacles.circles': circle})):
        rover = Rover(probe, [DISC], range_max=2.0)
        rover.goals.publish(placed(4.0, 0.0))
        rover.plan()
        drawings = probe.collect(MarkerArray, 'planner_node/markers')
        rover.look_until(lambda: drawings, 'markers')
        plan = rover.plan()
        rover.probe.wait(
            lambda: drawings[-1].markers[0].header.stamp == plan.header.stamp, what='its markers'
        )
        shown = {m.ns: m for m in drawings[-1].markers if m.action == Marker.ADD}
        assert {'obstacles', 'circles', 'proven', 'undecided', 'robot'} <= set(shown)
        assert {m.header.frame_id for m in shown.values()} == {'map'}
        assert all(m.lifetime.sec > 0 for m in shown.values()), 'what is no more true vanishes'
        drawn = {ns: np.array([(p.x, p.y) for p in m.points]) for ns, m in shown.items()}
        assert np.array_equal(drawn['proven'], positions(plan))
        assert np.array_equal(drawn['undecided'][0], drawn['proven'][-1]), 'it goes on from there'
        assert np.allclose(drawn['undecided'][-1], (4.0, 0.0))
        assert len(drawn['obstacles']) > 20
        away = np.hypot(drawn['circles'][:, 0] + 1.0, drawn['circles'][:, 1] + 1.0)
        assert np.allclose(away, 0.5, atol=1e-6), 'the circle itself'
        assert np.allclose(np.hypot(*drawn['robot'].T), RADIUS)
        assert 'reason' not in shown
        assert shown['robot'].color.g > shown['robot'].color.r

        rover.goals.publish(placed(-1.0, -1.0))
        rover.look_until(
            lambda: any(m.ns == 'reason' and m.text == 'goal is blocked' for m in
                        drawings[-1].markers), 'the reason in the drawing',
        )  # fmt: skip
        shown = {m.ns: m for m in drawings[-1].markers if m.action == Marker.ADD}
        assert 'proven' not in shown
        assert shown['robot'].color.r > shown['robot'].color.g

        result = set_parameters(probe, ('publish.markers', False), node='planner_node')
        assert result[0].successful
        rover.look(5)
        count = len(drawings)
        rover.look(5)
        assert len(drawings) == count


def test_reset_forgets_what_was_seen_but_not_the_goal(probe, start):
    with ended_by(start('planner_node', CONFIG / 'planner.yaml')):
        rover = Rover(probe, [DISC])
        rover.goals.publish(placed(3.0, 0.0))
        rover.look(5)
        around = abs(positions(rover.plan())[:, 1]).max()
        assert around > 0.2

        # a scan that says nothing ahead does not forget the disc
        def blind(scan):
            scan.ranges = [math.nan if abs(i - 180) < 60 else r
                           for i, r in enumerate(scan.ranges)]  # fmt: skip
            return scan

        rover.look(5, drawn=blind)
        drawings = probe.collect(MarkerArray, 'planner_node/markers')
        rover.look_until(lambda: drawings, 'markers', drawn=blind)

        def remembered():
            rover.look(3, drawn=blind)
            points = drawings[-1].markers[0].points
            return sum(math.hypot(p.x - 1.5, p.y - 0.1) < 0.5 for p in points)

        assert remembered() > 3
        assert probe.call(Trigger, 'planner_node/reset').success
        assert remembered() == 0
        rover.plan()


def test_lifecycle_goes_round_and_the_goal_is_wanted_again_after_each_configuration(probe, start):
    process = start('planner_node', CONFIG / 'planner.yaml', autostart='false')
    with ended_by(process):
        watch = Watch(probe)

        def change(number):
            request = ChangeState.Request()
            request.transition.id = number
            return probe.call(ChangeState, 'planner_node/change_state', request).success

        configure, cleanup, activate, deactivate = 1, 2, 3, 4
        assert change(configure)
        probe.wait(lambda: watch.messages and watch.status.message == 'inactive', what='inactive')
        assert change(activate)
        rover = Rover(probe)
        rover.goals.publish(placed(3.0, 0.0))
        rover.plan()
        assert change(deactivate)
        count = len(rover.plans)
        rover.look(5)
        assert len(rover.plans) == count
        assert change(activate)
        rover.plan()
        assert change(deactivate)
        assert change(cleanup)
        assert change(configure)
        assert change(activate)
        idle = told(watch, lambda _, text, __: text == 'no goal')
        rover.look_until(idle, 'a start from nothing')
        rover.goals.publish(placed(3.0, 0.0))
        rover.plan()


def broken(name):
    """Return what a scan becomes that is broken in one way."""

    def draw(scan):
        if name == 'empty':
            scan.ranges = []
        elif name == 'increment':
            scan.angle_increment = 0.0
        elif name == 'limits':
            scan.range_max = 0.0
        elif name == 'infinite':
            scan.range_max = math.inf
        elif name == 'degrees':
            scan.angle_increment = 1.0
        elif name == 'frame':
            scan.header.frame_id = 'rear'
        return scan

    return draw


def test_what_cannot_be_used_is_counted_by_reason_and_the_planner_goes_on(probe, start):
    process = start('planner_node', CONFIG / 'planner.yaml', **{'scan.max_range': '.inf'})
    with ended_by(process):
        watch = Watch(probe)
        rover = Rover(probe)
        rover.goals.publish(placed(3.0, 0.0))
        rover.plan()
        names = ('empty', 'increment', 'limits', 'infinite', 'degrees', 'frame')
        for name in names:
            rover.look(1, drawn=broken(name))
        rover.look(1, drawn=lambda scan: scan, age=-10.0)
        nan = rover.pose_message()
        nan.pose.position.x = math.nan
        zero = rover.pose_message()
        zero.pose.orientation.w = 0.0
        other = placed(0.0, 0.0, frame='odom')
        unstamped = rover.pose_message()
        for message in (nan, zero, other):
            rover.poses.publish(stamp(message, rover.now))
            probe.spin(0.05)
        rover.poses.publish(unstamped)
        rover.goals.publish(placed(math.nan, 0.0))
        rover.goals.publish(placed(1.0, 0.0, frame='odom'))
        rover.references.publish(path_of((0.0, math.inf), (1.0, 0.0)))
        probe.spin(0.2)
        plan = rover.plan('a path after all of that')
        assert np.allclose(positions(plan)[-1], (3.0, 0.0))
        rover.look_until(lambda: len(watch.dropped('scan')) >= 7, 'seven reasons')
        probe.spin(1.2)
        watch.check_counts()
        assert set(watch.dropped('scan')) == {
            'empty scan', 'bad angle_increment', 'range_max not above range_min',
            'range_max is infinite', 'beams over more than a turn', 'wrong frame',
            'scan from the future',
        }  # fmt: skip
        assert set(watch.dropped('pose')) >= {
            'non-finite pose', 'zero quaternion', 'wrong frame', 'zero stamp',
        }  # fmt: skip
        assert watch.dropped('goal_pose') == {'non-finite reference': 1, 'wrong frame': 1}
        assert watch.dropped('reference') == {'non-finite reference': 1}
        assert 'Traceback' not in process.text


def test_mounting_and_what_else_may_change_does_so_while_it_runs(probe, start):
    with ended_by(start('planner_node', CONFIG / 'planner.yaml')):
        rover = Rover(probe, [DISC])
        rover.goals.publish(placed(3.0, 0.0))
        assert abs(positions(rover.plan())[:, 1]).max() > 0.2
        results = set_parameters(
            probe, ('mounting.yaw', math.pi), ('scan.max_range', 6.0), ('robot.radius', 0.2),
            node='planner_node',
        )  # fmt: skip
        assert [r.successful for r in results] == [True, True, False]
        assert 'robot.radius' in results[2].reason
        rover.look_until(
            lambda: abs(positions(rover.plans[-1])[:, 1]).max() < 0.05, 'the disc behind the robot'
        )


def test_simulated_time_is_waited_for_and_then_ages_are_by_it(probe, start):
    process = start('planner_node', CONFIG / 'planner.yaml', use_sim_time=True)
    with ended_by(process):
        watch = Watch(probe)
        rover = Rover(probe)
        clock = probe.publisher(Clock, '/clock')
        at = 5 * SECOND

        def look(seconds):
            nonlocal at
            at += round(seconds * SECOND)
            message = Clock()
            message.clock.sec, message.clock.nanosec = divmod(at, SECOND)
            clock.publish(message)
            probe.spin(0.05)
            rover.poses.publish(stamp(rover.pose_message(), at))
            rover.scans.publish(stamp(rover.scan_message(), at))
            probe.spin(0.05)

        rover.scans.publish(stamp(rover.scan_message(), at))
        watch.wait(lambda *_: watch.dropped('scan') == {'before the first /clock': 1})
        for _ in range(3):
            look(0.1)
        rover.goals.publish(placed(3.0, 0.0))
        probe.spin(0.1)
        for _ in range(3):
            look(0.1)
        probe.wait(lambda: rover.plans, what='a path')
        assert nanoseconds(rover.plans[-1]) == at
        probe.spin(1.5)  # by a clock that stands still nothing grows old
        assert watch.status.message.endswith('proven for 3.00 m')


def test_a_robot_far_from_the_middle_of_its_room_is_not_mistaken(probe, start):
    """The end points of a scan are where the room is, whichever way the robot looks."""
    with ended_by(start('planner_node', CONFIG / 'planner.yaml')):
        rover = Rover(probe, [(-1.5, 2.0, 0.4)])
        rover.x, rover.y, rover.yaw = -3.0, 2.0, 2.5
        rover.goals.publish(placed(0.5, 2.0))
        line = positions(rover.plan())
        ranges = ranges_from(rover.x, rover.y, rover.yaw, rover.circles, rover.range_max)
        bearings = BEARINGS + rover.yaw
        ends = np.array([rover.x + ranges * np.cos(bearings), rover.y + ranges * np.sin(bearings)])
        # From what was seen: what a disc hides behind its edge may be nearer, but is not touched.
        assert clearance(line, [(x, y, 0.0) for x, y in ends.T]) > MARGIN - 1e-3
        assert clearance(line, rover.circles) > 0.0
        assert abs(line).max() < HALF - RADIUS
        assert isinstance(rover.pose_message(), PoseStamped)


def test_a_simulated_robot_is_led_to_its_goal_in_lockstep(probe, start):
    planner = start('planner_node', CONFIG / 'planner.yaml', use_sim_time=True)
    fast = {'rate': 0.0, 'lockstep': True, 'wait_timeout': 120.0, 'robot.speed': 1.0}
    watch = Watch(probe)
    with ended_by(planner):
        simulator = start('simulate', CONFIG / 'simulate.yaml', **fast)
        probe.wait(lambda: simulator.process.poll() is not None, 240, 'the end of the drive')
        assert simulator.process.returncode == 0, simulator.text
        assert 'goal reached after' in simulator.text
        assert simulator.text.rstrip().endswith(' 0 not taken up')
        watch.wait(lambda *_: 'used: scan' in watch.values)
        assert watch.dropped('scan') == {}
