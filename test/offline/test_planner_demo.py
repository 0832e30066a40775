# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The planner's demonstration: the command, and that it says of a drive what became of it."""

import math
import shutil
import subprocess
import sys
import time

import matplotlib.image
import numpy as np
import PIL.Image
import pytest
from test_demo import is_picture, make

from kernel_constrained.bags import BagWriter, Message, pose_bytes, RecordingError, scan_bytes
from kernel_constrained.offline import demo, planner_figure
from kernel_constrained.offline.planner_report import (
    Drive,
    format_table,
    judge,
    NOTHING,
    read_drive,
    seen_from,
    Step,
)
from kernel_constrained.perception.geometry import Pose
from kernel_constrained.planning.worlds import World

SECOND = 1_000_000_000

# A robot of 0.3 m that goes along the x axis by a disc at 4 m, 0.6 m to the left of its way.
WORLD = World((0.0, 0.0), (8.0, 0.0), [(4.0, 1.0, 0.4)], bounds=((-1.0, -2.0), (9.0, 2.0)))


def drive_along(places, paths, rest=NOTHING, statuses=()):
    """Make a scan a second, at the first of the places; ten of them a second."""
    steps = tuple(
        Step(k * SECOND, Pose(*places[10 * k], 0.0, 0.0), NOTHING, NOTHING, path, rest, 0.002)
        for k, path in enumerate(paths)
    )
    stamps = np.arange(len(places)) * SECOND // 10
    return Drive(steps, stamps, np.asarray(places, dtype=float), tuple(statuses))


def line(*corners):
    return np.array(corners, dtype=float)


def straight(y=0.0):
    return np.column_stack((np.linspace(0.0, 8.0, 81), np.full(81, y)))


def judged(drive, world=WORLD):
    return judge(drive, world, goal_distance=0.1, tracking=0.05)


@pytest.mark.usefixtures('domain')
@pytest.mark.skipif(shutil.which('make') is None, reason='make is not installed')
def test_make_demo_planner_drives_to_the_goal_and_draws_it(tmp_path):
    pytest.importorskip('rclpy', reason='rclpy is not installed: the demonstration was not run')
    output = make('demo-planner', tmp_path)
    said = {text[:30].strip(): text[30:] for text in output.splitlines()}
    assert said['goal'] == 'reached'
    assert float(said['smallest clearance'].split()[0]) > 0.05
    assert float(said['smallest clearance on a path'].split()[0]) > 0.0
    assert said['motions on an unproven path'].startswith('0 of ')
    scans = said['scans with a path'].split(' of ')
    assert int(scans[0]) > 0.9 * int(scans[1])
    for name in ('in collision, share of time', 'in collision, share of way'):
        realised, bound = said[name].split(', stated at most ')
        assert float(realised) == 0.0
        assert float(bound.split()[0]) <= 0.05
    assert 'median' in said['from scan to path, over DDS']
    assert 'median' in said['of that in the planner']
    assert is_picture(tmp_path / 'planner' / 'planner.png')
    animation = tmp_path / 'planner' / 'planner.gif'
    assert animation.stat().st_size < 3_000_000
    assert 60 <= PIL.Image.open(animation).n_frames <= 100


def test_a_drive_to_the_goal_along_its_paths_is_good():
    outcome = judged(drive_along(straight(), [straight()] * 8))
    assert outcome.good
    assert outcome.length == pytest.approx(8.0)
    assert outcome.duration == pytest.approx(8.0)
    assert outcome.clearances.min() == pytest.approx(0.3)
    assert outcome.narrowest == pytest.approx(0.3)
    assert (outcome.by_time, outcome.by_length) == (0.0, 0.0)
    assert (outcome.scans, outcome.planned, outcome.moved, outcome.kept) == (8, 8, 8, 1.0)


def test_shares_in_collision_are_those_of_time_and_of_way():
    """It stands in contact for half of the time, and goes a tenth of its way so."""
    there = np.linspace((0.0, 0.0), (3.8, 0.35), 36)
    moves = np.linspace((3.8, 0.35), (4.0, 0.4), 5)[1:]
    outcome = judged(drive_along([*there, *moves, *[moves[-1]] * 41], [straight()]))
    way = np.vstack((there, moves))
    touched, went = WORLD.clearance(way) < 0.0, np.hypot(*np.diff(way, axis=0).T)
    assert 4 < touched.sum() < 10
    assert outcome.collided
    assert not outcome.good
    assert outcome.by_time == pytest.approx((touched.sum() + 41) / 80)
    assert outcome.by_length == pytest.approx(went[touched[1:]].sum() / went.sum())


def test_a_drive_along_its_path_through_an_obstacle_is_not_good():
    there = np.linspace((0.0, 0.0), (4.0, 0.4), 41)
    way = np.vstack((there, there[-2::-1] * [-1.0, 1.0] + [8.0, 0.0]))
    outcome = judged(drive_along(way, [way] * 8))
    assert outcome.reached
    assert outcome.unproven == 0
    assert outcome.collided
    assert not outcome.good


def test_motion_without_a_path_or_beside_it_is_found():
    places = straight()
    paths = [straight(), NOTHING, straight(), straight(0.06), *[straight()] * 4]
    outcome = judged(drive_along(places, paths))
    assert (outcome.moved, outcome.unproven, outcome.astray) == (8, 2, math.inf)
    assert not outcome.good
    paths[1] = straight()
    assert judged(drive_along(places, paths)).astray == pytest.approx(0.06)


def test_standing_without_a_path_is_no_motion():
    places = [*straight()[:11], *[straight()[10]] * 20]
    outcome = judged(drive_along(places, [straight(), NOTHING, NOTHING]))
    assert (outcome.moved, outcome.unproven) == (1, 0)
    assert not outcome.reached


def test_a_motion_past_the_end_of_its_path_is_beside_it():
    outcome = judged(drive_along(straight()[:11], [straight()[:8]]))
    assert (outcome.unproven, outcome.astray) == (1, pytest.approx(0.3))


def test_a_path_through_an_obstacle_shows_although_nobody_went_there():
    paths = [straight(), line((1.0, 0.5), (8.0, 0.5))]
    assert judged(drive_along(straight()[:21], paths)).narrowest == pytest.approx(-0.2, abs=0.01)


def test_a_path_counts_as_kept_where_it_is_the_one_before():
    again, other = straight()[7:], straight(0.02)[7:]
    outcome = judged(drive_along(straight()[:41], [straight(), again, other, other[5:]]))
    assert outcome.kept == pytest.approx(2 / 3)
    rests = drive_along(straight()[:21], [straight()[:30], straight()[5:40]])
    assert judged(rests).kept == 0.0
    known = [step._replace(rest=straight()[len(step.path) - 1 :]) for step in rests.steps[:1]]
    assert judged(rests._replace(steps=(*known, rests.steps[1]))).kept == 1.0


def test_the_table_shows_the_largest_bound_and_the_last_latencies():
    statuses = [
        {
            'P(collision) at a random time, at most, with confidence 0.95': str(bound),
            'P(collision) at a random time, share of draws': '0.9',
            'P(collision) at a random place, at most, with confidence 0.95': '0.01',
            'latency, median of 7, s': str(bound / 10), 'latency, 99 % of 7, s': '0.0042',
        }
        for bound in (0.02, 0.03, 0.01)
    ]  # fmt: skip
    drive = drive_along(straight(), [straight()] * 8, statuses=statuses)
    table = format_table(drive, judged(drive))
    assert 'share of time   0.0000, stated at most 0.0300 (the largest of 3 bounds)' in table
    assert 'share of way    0.0000, stated at most 0.0100' in table
    assert 'median 1.0 ms, 99 % within 4.2 ms' in table
    assert 'over DDS   median 2.0 ms, 95 % within 2.0 ms' in table


def test_end_points_lie_where_beams_met_something():
    scan = type('Scan', (), {
        'ranges': np.array([1.0, np.inf, np.nan, 2.0, -np.inf], dtype=np.float32),
        'angle_min': 0.0, 'angle_increment': math.pi / 2, 'range_min': 0.1, 'range_max': 3.0,
    })  # fmt: skip
    returns, outline = seen_from(scan, Pose(5.0, 5.0, 0.0, math.pi / 2))
    assert returns == pytest.approx(np.array([(5.0, 6.0), (7.0, 5.0)]))
    assert outline == pytest.approx(np.array([(5.0, 6.0), (2.0, 5.0), (7.0, 5.0), (5.0, 5.0)]))


def standing(path, seconds=2):
    """Record a robot that stands at (0.5, 0.5) and sees nothing."""
    with BagWriter(path) as writer:
        for k in range(1, 10 * seconds):
            stamp = k * SECOND // 10
            pose = pose_bytes(stamp, 0.5, 0.5, 0.0)
            scan = scan_bytes(
                stamp, np.full(36, np.inf), angle_min=0.0, angle_increment=math.pi / 18,
                range_min=0.1, range_max=3.0,
            )  # fmt: skip
            kind = 'geometry_msgs/msg/PoseStamped'
            writer.write(Message('/pose', kind, stamp, pose))
            writer.write(Message('/scan', 'sensor_msgs/msg/LaserScan', stamp, scan))
            writer.write(Message('/simulate/true_pose', kind, stamp, pose))


def test_a_robot_that_does_not_arrive_is_an_error_with_its_pictures(
    tmp_path, monkeypatch, capsys
):  # fmt: skip
    def stand(output, simulator, planner):
        standing(output / 'recording.mcap')
        return 0

    monkeypatch.setattr(demo, 'drive_through_nodes', stand)
    assert demo.main(['planner', '--output', str(tmp_path)]) == 1
    output = capsys.readouterr().out
    assert 'NOT REACHED' in output
    assert 'scans with a path             0 of 19' in output
    assert is_picture(tmp_path / 'planner.png')
    assert (tmp_path / 'planner.gif').stat().st_size > 1000


def test_the_exit_code_of_the_simulator_counts_too(tmp_path, monkeypatch, capsys):
    """What is recorded is good, but the simulator knows of a touch that is not in there."""
    drive = drive_along(straight(), [straight()] * 8)
    monkeypatch.setattr(demo, 'drive_through_nodes', lambda *_: codes.pop())
    monkeypatch.setattr(demo.planner_report, 'read_drive', lambda _: drive)
    monkeypatch.setattr(demo.planner_report, 'judge', lambda *_: judged(drive))
    monkeypatch.setattr(planner_figure, 'animate', lambda *_: None)
    codes = [1, 0]
    assert demo.main(['planner', '--output', str(tmp_path)]) == 0
    assert demo.main(['planner', '--output', str(tmp_path)]) == 1


def test_a_recording_without_a_drive_is_refused(tmp_path):
    with BagWriter(tmp_path / 'some.mcap') as writer:
        writer.write(
            Message('/pose', 'geometry_msgs/msg/PoseStamped', 1, pose_bytes(1, 0.0, 0.0, 0.0))
        )
    with pytest.raises(RecordingError, match='0 scans, 1 poses and 0 true poses'):
        read_drive(tmp_path / 'some.mcap')


def test_a_demonstration_ends_with_the_first_node_that_does():
    died = subprocess.Popen([sys.executable, '-c', ''])
    begun = time.monotonic()
    code = demo.run_beside([sys.executable, '-c', 'import time; time.sleep(60)'], [died], None)
    assert code != 0
    assert time.monotonic() - begun < 30.0
    lives = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
    assert demo.run_beside([sys.executable, '-c', 'raise SystemExit(3)'], [lives], None) == 3
    lives.kill()
    lives.wait()


def test_the_figure_shows_obstacles_path_and_way_in_their_colours(tmp_path):
    paths = [straight()[10 * k : 10 * k + 30] for k in range(8)]
    drive = drive_along(straight(), paths, rest=line((4.0, 0.5), (8.0, 0.0)))
    planner_figure.draw(drive, judged(drive), WORLD, 0.05, tmp_path / 'planner.png')
    picture = matplotlib.image.imread(tmp_path / 'planner.png')[:, :, :3]
    place = picture[:, : picture.shape[1] // 2].reshape(-1, 3)
    for colour in (planner_figure.REST, planner_figure.OBSTACLE, planner_figure.ROBOT, '#000000'):
        wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        assert (np.abs(place - wanted).max(axis=1) < 0.01).sum() > 50, colour
