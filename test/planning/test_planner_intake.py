# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Messages into the planner: what it is told, what is refused, and when it plans."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from kernel_constrained.configuration import from_flat
from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.perception.unusable import Unusable
from kernel_constrained.planning.intake import PlannerIntake
from kernel_constrained.planning.node_config import PlannerNodeConfig
from kernel_constrained.planning.planner import Plan

MILLISECOND = 1_000_000
SECOND = 1_000_000_000
BEGIN = 1_700_000_000 * SECOND


class NotedPlanner:
    """Notes what it is told, and plans nothing."""

    def __init__(self):
        self.mounting, self.reference = Mounting(), None
        self.planned, self.references, self.maps, self.resets = [], [], [], 0

    def plan(self, stamp, scan, pose, covariance):
        scan.check()
        self.planned.append(SimpleNamespace(
            stamp=stamp, scan=scan, pose=pose, covariance=covariance, mounting=self.mounting
        ))  # fmt: skip
        return Plan(stamp)

    def set_reference(self, points):
        if not np.isfinite(points).all():
            raise Unusable('non-finite reference')
        self.reference = points
        self.references.append(points.tolist())

    def set_map(self, map_):
        self.maps.append(map_)

    def reset(self):
        self.resets += 1


class Bench:
    """An intake with a clock that we set, and a planner that takes notes."""

    def __init__(self, mounting=None, **values):
        self.planner, self.now, self.refused = NotedPlanner(), BEGIN, []
        self.intake = PlannerIntake(
            self.planner,
            from_flat(PlannerNodeConfig, {k.replace('__', '.'): v for k, v in values.items()}),
            lambda: self.now,
            lambda kind, error: self.refused.append((kind, error.reason)),
            mounting,
        )

    def scan(self, at=0, age=0, **fields):
        self.now = BEGIN + (at + age) * MILLISECOND
        self.intake.scan(scan_message(at, **fields))
        return list(self.intake.plans())

    def pose(self, at=0, x=0.0, **fields):
        self.intake.pose(pose_message(at, x, **fields))
        return list(self.intake.plans())

    @property
    def stamps(self):
        return [(p.stamp - BEGIN) // MILLISECOND for p in self.planner.planned]


def header(at, frame):
    seconds, nanoseconds = divmod(BEGIN + at * MILLISECOND, SECOND)
    return SimpleNamespace(
        stamp=SimpleNamespace(sec=seconds, nanosec=nanoseconds), frame_id=frame
    )  # fmt: skip


def scan_message(at, ranges=(1.0, 2.0, 3.0), frame='laser'):
    return SimpleNamespace(
        header=header(at, frame), ranges=ranges, angle_min=-0.1, angle_max=0.1,
        angle_increment=0.1, range_min=0.1, range_max=10.0,
    )  # fmt: skip


def place(x, y=0.0, z=0.0):
    turn = SimpleNamespace(x=0.0, y=0.0, z=0.0, w=1.0)
    return SimpleNamespace(position=SimpleNamespace(x=x, y=y, z=z), orientation=turn)


def pose_message(at=0, x=0.0, y=0.0, z=0.0, frame='map', covariance=None):
    message = SimpleNamespace(header=header(at, frame), pose=place(x, y, z))
    if covariance is not None:
        message.pose = SimpleNamespace(pose=message.pose, covariance=covariance)
    return message


def path_message(*points, frame='map'):
    poses = [SimpleNamespace(pose=place(*point)) for point in points]
    return SimpleNamespace(header=header(0, frame), poses=poses)


def map_message(frame='map', cells=4, turn=0.0):
    origin = place(-1.0, -2.0)
    origin.orientation.z, origin.orientation.w = math.sin(turn / 2), math.cos(turn / 2)
    info = SimpleNamespace(width=2, height=2, resolution=0.5, origin=origin)
    return SimpleNamespace(header=header(0, frame), info=info, data=[100] * cells)


# -- scans and poses ------------------------------------------------------------------------------


def test_a_scan_is_planned_from_with_the_pose_of_its_stamp_whichever_comes_first():
    for first in ('scan', 'pose'):
        bench = Bench()
        bench.pose(0, 1.0) if first == 'pose' else bench.scan(0)
        planned = bench.scan(0) if first == 'pose' else bench.pose(0, 1.0)
        assert [p.plan.stamp for p in planned] == [BEGIN]
        assert planned[0].pose.x == bench.planner.planned[0].pose.x == 1.0
        assert planned[0].seconds >= 0.0


def test_a_scan_hardly_newer_than_the_pose_is_planned_from_at_once():
    bench = Bench(pose__max_age=0.05)
    bench.pose(0, 0.0)
    bench.pose(40, 0.4)
    assert len(bench.scan(80)) == 1
    assert bench.planner.planned[0].pose.x == pytest.approx(0.8), 'moved on at its speed'
    assert bench.scan(91) == []
    assert len(bench.pose(120, 1.2)) == 1
    assert bench.planner.planned[1].pose.x == pytest.approx(0.91)


def test_a_scan_that_is_too_old_when_it_comes_is_refused_with_what_to_do():
    bench = Bench(scan__max_age=0.5)
    with pytest.raises(Unusable, match=r'scan too old \(0.501 s .*use_sim_time'):
        bench.scan(0, age=501)
    assert bench.scan(600, age=500) == []
    assert bench.stamps == []


def test_a_scan_from_the_future_is_refused():
    with pytest.raises(Unusable, match=r'scan from the future .*set the clocks alike'):
        Bench().scan(0, age=-501)


def test_a_scan_whose_pose_comes_too_late_is_not_planned_from():
    bench = Bench()
    bench.scan(0)
    bench.now = BEGIN + 501 * MILLISECOND
    assert bench.pose(0) == []
    assert bench.refused == [('scan', 'scan too old')]
    assert bench.intake.newest_planned is None
    assert bench.intake.newest_scan == BEGIN
    assert bench.intake.age_on_arrival == 0.0


def test_a_scan_that_turns_out_unusable_is_refused_and_the_next_is_planned_from():
    bench = Bench()
    bench.pose(0)
    bench.scan(1, ranges=())
    bench.scan(2)
    assert bench.refused == [('scan', 'empty scan')]
    assert bench.stamps == [2]


def test_what_was_planned_too_late_is_not_handed_on():
    bench = Bench()
    bench.pose(0)
    plan = bench.planner.plan

    def plan_slowly(*arguments):
        bench.now += 501 * MILLISECOND
        return plan(*arguments)

    bench.planner.plan = plan_slowly
    assert bench.scan(0) == []
    assert bench.refused == [('scan', 'planned too late')]


def test_parameters_change_while_it_runs_and_what_another_mounting_saw_is_forgotten():
    bench = Bench()
    values = {'pose.max_jump': 1.0, 'scan.max_age': 2.0}
    bench.intake.reconfigure(from_flat(PlannerNodeConfig, values))
    assert bench.planner.config.scan.max_age == 2.0
    assert bench.planner.resets == 0
    bench.intake.reconfigure(from_flat(PlannerNodeConfig, {**values, 'mounting.yaw': 1.0}))
    assert bench.planner.mounting == Mounting(0.0, 0.0, 1.0)
    assert bench.planner.resets == 1
    bench.pose(0)
    bench.scan(0, age=1999)
    bench.pose(10, 1.1)
    bench.scan(10)
    assert bench.planner.resets == 2, 'the pose has jumped'


@pytest.mark.parametrize('age', [0.2, math.inf])
def test_the_age_allowed_is_that_of_the_parameter(age):
    bench = Bench(scan__max_age=age)
    bench.pose(0)
    if age < 1.0:
        with pytest.raises(Unusable, match=r'at most 0\.2 s'):
            bench.scan(0, age=201)
        return
    assert len(bench.scan(0, age=10**9)) == 1


def test_scan_and_pose_in_another_frame_than_the_first_or_the_one_configured_are_refused():
    bench = Bench(pose__frame_id='map')
    with pytest.raises(Unusable, match=r"wrong frame .'odom' where 'map'"):
        bench.pose(0, frame='odom')
    bench.scan(0)
    with pytest.raises(Unusable, match=r"wrong frame .'rear' where 'laser'"):
        bench.scan(1, frame='rear')
    assert bench.intake.path_frame == 'map'


def test_covariance_of_the_newest_pose_goes_to_the_planner():
    bench = Bench()
    given = np.zeros(36)
    given[[0, 7, 35]] = 0.01, 0.02, 0.03
    bench.pose(0, covariance=given)
    bench.scan(0)
    assert np.array_equal(bench.planner.planned[0].covariance, np.diag([0.01, 0.02, 0.03]))
    bench.pose(1, covariance=np.zeros(36))
    bench.scan(1)
    assert bench.planner.planned[1].covariance is None


def test_mounting_is_looked_up_by_the_frame_of_the_scan():
    bench = Bench(mounting=lambda frame: Mounting(float(len(frame)), 0.0, 0.0))
    bench.pose(0)
    bench.scan(0, frame='laser')
    assert bench.planner.planned[0].mounting.x == 5.0


def test_what_was_seen_is_forgotten_when_the_pose_jumps():
    bench = Bench(pose__max_jump=1.0)
    for at, x in [(0, 0.0), (10, 0.9), (20, 2.0), (30, 2.1)]:
        bench.pose(at, x)
        bench.scan(at)
    assert bench.stamps == [0, 10, 20, 30]
    assert bench.planner.resets == 1


def test_what_was_seen_is_forgotten_when_the_clock_goes_back():
    bench = Bench(scan__max_age=math.inf)
    for at in (2000, 2010, 0, 10):
        bench.pose(at)
        bench.scan(at)
    assert bench.stamps == [2000, 2010, 0, 10]
    assert bench.planner.resets == 1


# -- goals, references, maps ----------------------------------------------------------------------


def test_references_goals_and_maps_in_the_frame_of_the_pose_go_to_the_planner():
    bench = Bench()
    bench.pose(0)
    bench.intake.reference(path_message((1.0, 2.0), (3.0, 4.0)))
    bench.intake.goal(pose_message(0, 5.0, y=6.0))
    bench.intake.map(map_message())
    assert bench.planner.references == [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]]
    (known,) = bench.planner.maps
    assert (known.resolution, known.origin) == (0.5, (-1.0, -2.0, 0.0))


def test_in_three_dimensions_heights_count():
    bench = Bench(reference__dimensions=3)
    bench.pose(0)
    bench.intake.goal(pose_message(0, 5.0, y=6.0, z=7.0))
    assert bench.planner.references == [[[5.0, 6.0, 7.0]]]


def test_the_same_reference_again_begins_no_new_path():
    bench = Bench()
    bench.pose(0)
    for points in [((1.0, 2.0), (3.0, 4.0))] * 3 + [((1.0, 2.0), (3.0, 4.1))]:
        bench.intake.reference(path_message(*points))
    assert len(bench.planner.references) == 2


def test_an_empty_reference_takes_back_what_was_wanted():
    bench = Bench()
    bench.pose(0)
    bench.intake.goal(pose_message(0, 5.0))
    bench.intake.reference(path_message())
    assert bench.planner.reference is None
    bench.intake.goal(pose_message(0, 5.0))
    assert bench.planner.reference is not None


def test_a_reference_that_is_refused_changes_nothing():
    bench = Bench()
    bench.pose(0)
    bench.intake.goal(pose_message(0, 5.0))
    with pytest.raises(Unusable, match='non-finite reference'):
        bench.intake.reference(path_message((math.nan, 0.0)))
    bench.intake.goal(pose_message(0, 5.0))
    assert bench.planner.references == [[[5.0, 0.0]]]


@pytest.mark.parametrize('kind', ['reference', 'goal', 'map'])
def test_what_is_in_another_frame_than_the_pose_is_refused(kind):
    message = {
        'reference': path_message((1.0, 0.0), frame='odom'),
        'goal': pose_message(0, 1.0, frame='odom'),
        'map': map_message('odom'),
    }[kind]
    bench = Bench()
    bench.pose(0)
    with pytest.raises(Unusable, match=r"wrong frame .'odom' where 'map'"):
        getattr(bench.intake, kind)(message)
    with pytest.raises(Unusable, match=r"wrong frame .'odom' where 'map'"):
        getattr(Bench(pose__frame_id='map').intake, kind)(message)
    assert bench.planner.references == bench.planner.maps == []


def test_what_comes_before_the_first_pose_is_kept_until_its_frame_is_known():
    bench = Bench()
    bench.intake.goal(pose_message(0, 5.0))
    bench.intake.map(map_message('odom'))
    bench.intake.reference(path_message((1.0, 0.0), (2.0, 0.0)))
    bench.intake.goal(pose_message(0, 6.0))
    assert bench.planner.references == []
    bench.pose(0)
    assert bench.planner.references == [[[1.0, 0.0], [2.0, 0.0]], [[6.0, 0.0]]], 'the last counts'
    assert bench.refused == [('map', 'wrong frame')]
    bench.pose(1)
    assert len(bench.planner.references) == 2


@pytest.mark.parametrize(
    ('message', 'reason'),
    [
        (map_message(cells=3), 'map data of the wrong length'),
        (map_message(turn=0.3), 'rotated map'),
    ],
)  # fmt: skip
def test_a_map_that_cannot_be_used_is_refused(message, reason):
    bench = Bench()
    bench.pose(0)
    with pytest.raises(Unusable, match=reason):
        bench.intake.map(message)
    assert bench.planner.maps == []
