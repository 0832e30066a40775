# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""CARMEN logs and g2o pose graphs."""

import gzip
import math
import time
import zipfile

import numpy as np
import pytest
from log_lines import flaser, robotlaser

from kernel_constrained.bags import decode, open_recording, RecordingError
from kernel_constrained.bags.robot_lines import bearings, parse_stamp
from kernel_constrained.bags.robot_log import estimate_range_max

ROOM = np.linspace(1.0, 6.0, 180)


def contents(recording, topic):
    return [decode(message) for message in recording.messages([topic])]


def yaw_of(pose):
    return 2 * math.atan2(pose.pose.orientation.z, pose.pose.orientation.w)


def test_scan_and_pose_of_a_line_share_its_stamp(log):
    path = log(flaser('12.345678', ROOM, pose=(1.5, -2.5, 0.25)))
    with open_recording(path) as recording:
        pose, scan = recording.messages()
    assert (pose.topic, scan.topic) == ('pose', 'scan')
    assert pose.stamp == scan.stamp == 12_345_678_000
    content = decode(pose)
    assert (content.pose.position.x, content.pose.position.y) == (1.5, -2.5)
    assert yaw_of(content) == pytest.approx(0.25)
    assert content.header.frame_id == 'map'
    assert decode(scan).header.frame_id == 'laser'
    np.testing.assert_allclose(decode(scan).ranges, ROOM, atol=1e-5)


@pytest.mark.parametrize(
    ('beams', 'step', 'last'),
    [(180, 1.0, 89.0), (181, 1.0, 90.0), (360, 0.5, 89.5), (361, 0.5, 90)],
)
def test_beams_run_counter_clockwise_from_minus_ninety_degrees(log, beams, step, last):
    (scan,) = contents(open_recording(log(flaser(1, np.linspace(1, 6, beams)))), 'scan')
    assert math.degrees(scan.angle_min) == pytest.approx(-90.0)
    assert math.degrees(scan.angle_increment) == pytest.approx(step)
    assert math.degrees(scan.angle_max) == pytest.approx(last)
    assert bearings(beams) == pytest.approx((-math.pi / 2, math.radians(step)))


def test_backward_stamps_are_put_in_order_and_counted(log):
    path = log(*(flaser(stamp, ROOM, (stamp, 0, 0)) for stamp in (1.0, 3.0, 2.0, 4.0)))
    recording = open_recording(path)
    assert [pose.pose.position.x for pose in contents(recording, 'pose')] == [1, 2, 3, 4]
    assert any('1 of 4 scan stamps run backwards' in line for line in recording.warnings)


def test_scans_of_one_stamp_come_after_all_its_poses(log):
    recording = open_recording(log(*(flaser(2.0, ROOM, (x, 0, 0)) for x in (1, 2))))
    assert [message.topic for message in recording.messages()] == ['pose', 'pose', 'scan', 'scan']
    assert [pose.pose.position.x for pose in contents(recording, 'pose')] == [1, 2]
    assert any('1 of 2 scans repeat' in line for line in recording.warnings)


def test_stamps_that_are_all_zero_are_made_up_and_said_so(log):
    recording = open_recording(log(*(flaser(0, ROOM) for _ in range(3))))
    stamps = [message.stamp for message in recording.messages(['scan'])]
    assert stamps == [10**9, 2 * 10**9, 3 * 10**9]
    assert any('made up at 1 Hz' in line for line in recording.warnings)


def test_epoch_stamps_are_exact_to_the_nanosecond():
    assert parse_stamp('1031745824.658000') == 1_031_745_824_658_000_000
    assert parse_stamp('1031745824.123456789') == 1_031_745_824_123_456_789
    assert parse_stamp('1.5e1') == 15 * 10**9


@pytest.mark.parametrize('text', ['-1.0', 'nan', '3000000000', 'host'])
def test_stamps_that_ros_cannot_express_are_refused(text):
    with pytest.raises(ValueError, match=r'stamp|convert'):
        parse_stamp(text)


def test_cut_off_last_line_is_a_loss(log):
    path = log(flaser(1.0, ROOM), flaser(2.0, ROOM)[:300])
    recording = open_recording(path)
    assert recording.topics['scan'].count == 1
    assert '1 scans lost' in recording.losses[0]
    assert 'line 2: 180 readings announced' in recording.losses[0]


@pytest.mark.parametrize('line', [flaser('2.123456', ROOM), robotlaser('2.123456', ROOM)])
def test_line_that_is_cut_off_anywhere_gives_no_scan_but_a_loss(log, line):
    stamp = line.rindex(' host')
    for end in range(len(line.split()[0]) + 1, stamp + 1, 7):
        recording = open_recording(log(line, line[:end]))
        assert recording.topics['scan'].count == 1
        assert recording.losses


@pytest.mark.parametrize('share', [0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize('graph', [True, False])
def test_archive_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path, share, graph):
    rng = np.random.default_rng(0)
    line = robotlaser if graph else flaser
    lines = [line(f'{stamp}.0', rng.uniform(1, 6, 180)) for stamp in range(1, 200)]
    if graph:
        lines = [f'VERTEX_SE2 {number} 1 2 0\n{text}' for number, text in enumerate(lines)]
    packed = gzip.compress(''.join(lines).encode())
    path = tmp_path / ('a.g2o.gz' if graph else 'a.log.gz')
    path.write_bytes(packed[: int(share * len(packed))])
    recording = open_recording(path)
    assert 199 * share - 20 < recording.topics['scan'].count <= 199
    assert 'damaged or cut off behind line' in recording.losses[0]
    stamps = [message.stamp for message in recording.messages(['scan'])]
    assert stamps == [stamp * 10**9 for stamp in range(1, len(stamps) + 1)]


def test_archive_with_a_wrong_byte_is_read_with_a_loss(tmp_path):
    rng = np.random.default_rng(0)
    lines = [flaser(f'{stamp}.0', rng.uniform(1, 6, 180)) for stamp in range(1, 200)]
    packed = bytearray(gzip.compress(''.join(lines).encode()))
    for position in range(len(packed) // 5, len(packed), len(packed) // 30):
        damaged = bytearray(packed)
        damaged[position] ^= 0x10
        (tmp_path / 'a.log.gz').write_bytes(damaged)
        recording = open_recording(tmp_path / 'a.log.gz')
        assert recording.losses
        assert recording.topics['scan'].count > 199 * position / len(packed) - 20


def test_scan_without_beams_is_skipped(log):
    recording = open_recording(log(flaser(1.0, ROOM), flaser(2.0, [])))
    assert recording.topics['scan'].count == 1


def test_log_without_scans_is_an_error(log):
    with pytest.raises(RecordingError, match='no usable laser scan'):
        open_recording(log('ODOM 0 0 0 0 0 0 0 host 0\n'))


def test_codes_far_beyond_the_room_become_infinite_even_in_one_scan(log):
    ranges = np.where(np.arange(180) == 90, 81.83, ROOM)
    (scan,) = contents(open_recording(log(flaser(1.0, ranges))), 'scan')
    np.testing.assert_array_equal(np.isinf(scan.ranges), ranges > 80)
    assert 6.0 < scan.range_max < 6.1, 'near the real returns, not half way to the code'


def test_range_max_given_decides_what_is_no_return(log):
    recording = open_recording(log(flaser(1.0, ROOM)), range_max=4.0)
    (scan,) = contents(recording, 'scan')
    np.testing.assert_array_equal(np.isinf(scan.ranges), ROOM >= 4.0)
    assert scan.range_max == 4.0


@pytest.mark.parametrize('range_max', [0.0, -1.0, math.inf, math.nan])
def test_range_max_that_is_none_is_refused(log, range_max):
    with pytest.raises(RecordingError, match='range_max must be a positive number'):
        open_recording(log(flaser(1.0, ROOM)), range_max=range_max)


def test_spike_just_above_real_returns_is_a_code():
    rng = np.random.default_rng(0)
    real = np.round(rng.uniform(0.5, 49.9, 20_000), 2)
    limit = estimate_range_max(np.concatenate([real, np.full(400, 50.0), [50.02]]))
    assert real.max() < limit < 50.0


def test_parked_robot_that_sees_far_does_not_make_a_code():
    rng = np.random.default_rng(0)
    real = rng.uniform(0.5, 49.0, 200_000)
    assert estimate_range_max(np.concatenate([real, np.full(39, 49.7)])) > 49.7


def test_wall_that_is_often_seen_below_the_codes_is_none():
    rng = np.random.default_rng(0)
    real = np.round(rng.uniform(0.5, 49.9, 20_000), 2)
    seen = np.concatenate([real, np.full(800, 47.5), np.full(400, 50.0)])
    assert real.max() < estimate_range_max(seen) < 50.0


def test_readings_without_codes_stay_finite():
    rng = np.random.default_rng(0)
    real = np.round(rng.uniform(0.5, 9.5, 20_000), 2)
    assert estimate_range_max(real) > real.max()


def test_robot_at_rest_before_a_wall_has_no_codes():
    assert estimate_range_max(np.tile(ROOM, 500)) > ROOM.max()


def test_header_decides_where_the_data_do_not():
    real = np.linspace(1.0, 9.0, 50)
    assert estimate_range_max(real, 20.0) == 20.0
    assert 9.0 < estimate_range_max(np.append(real, 10.0), 10.0) < 10.0


def test_carmen_robotlaser_lines_give_the_pose_of_the_laser(log):
    line = robotlaser('5.5', ROOM, laser=(1.2, 2.0, 0.5), robot=(1.0, 2.0, 0.5))
    recording = open_recording(log(line))
    (pose,), (scan,) = contents(recording, 'pose'), contents(recording, 'scan')
    assert pose.pose.position.x == pytest.approx(1.2)
    assert recording.start == 5_500_000_000
    assert scan.angle_increment == pytest.approx(math.pi / 180, rel=1e-4)
    assert scan.range_max == 50.0, 'the header agrees with the data'


def test_log_with_both_kinds_of_lines_gives_each_scan_once(log):
    recording = open_recording(log(flaser(1.0, ROOM), robotlaser('1.0', ROOM)))
    assert recording.topics['scan'].count == 1


def test_graph_scans_get_the_optimised_pose_of_the_vertex_before(log):
    path = log(
        'VERTEX_SE2 7 10.0 20.0 9.0\n',
        robotlaser('2.0', ROOM),
        'VERTEX_SE2 3 -1.0 -2.0 0.0\n',
        'EDGE_SE2 7 3 0 0 0 1 0 0 1 0 1\n',
        'VERTEX_SE2 4 30.0 40.0 0.0\n',
        robotlaser('3.0', ROOM),
        name='graph.g2o',
    )
    poses = contents(open_recording(path), 'pose')
    assert [(p.pose.position.x, p.pose.position.y) for p in poses] == [(10, 20), (30, 40)]
    assert yaw_of(poses[0]) == pytest.approx(9.0 - 2 * math.pi)


def test_graph_scan_without_a_vertex_of_its_own_is_skipped(log):
    path = log(
        'VERTEX_SE2 0 1 1 0\n', robotlaser(1.0, ROOM), robotlaser(2.0, ROOM), name='graph.g2o'
    )
    recording = open_recording(path)
    assert recording.topics['pose'].count == 1
    assert any('line 3: a scan without a VERTEX_SE2' in line for line in recording.losses)


def test_graph_scan_whose_vertex_cannot_be_read_is_one_loss(log):
    path = log(
        'VERTEX_SE2 0 1 1 0\n', robotlaser(1.0, ROOM), 'VERTEX_SE2 1 1 nan 0\n',
        robotlaser(2.0, ROOM), name='graph.g2o',
    )  # fmt: skip
    recording = open_recording(path)
    assert recording.topics['pose'].count == 1
    assert '1 scans lost' in recording.losses[0]


def test_graph_says_where_the_laser_is_mounted(log):
    robot = (1.0, 2.0, math.pi / 2)
    line = robotlaser(1.0, ROOM, laser=(1.0, 2.3, math.pi / 2), robot=robot)
    recording = open_recording(log('VERTEX_SE2 0 1 2 1.57\n', line, name='graph.g2o'))
    assert any('x, y, yaw = 0.300, 0.000, 0.000' in w.replace('-0.000', '0.000')
               for w in recording.warnings)  # fmt: skip


@pytest.mark.parametrize('name', ['a.g2o.gz', 'a.zip', 'a.gz', 'b.log.gz', 'b.gz', 'b.clf'])
def test_compressed_logs_are_recognised(tmp_path, name):
    text = flaser(1.0, ROOM)
    if name.startswith('a'):
        text = 'VERTEX_SE2 0 5 6 0\n' + robotlaser(1.0, ROOM)
    path = tmp_path / name
    if name.endswith('.zip'):
        with zipfile.ZipFile(path, 'w') as archive:
            archive.writestr('a.g2o', text)
            archive.writestr('__MACOSX/._a.g2o', 'shadow')
    elif name.endswith('.gz'):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    (pose,) = contents(open_recording(path), 'pose')
    assert pose.pose.position.x == (5.0 if name.startswith('a') else 1.0)


def test_archive_without_a_graph_is_an_error(tmp_path):
    with zipfile.ZipFile(tmp_path / 'a.zip', 'w') as archive:
        archive.writestr('readme.txt', '')
    with pytest.raises(RecordingError, match=r'expected one \.g2o file'):
        open_recording(tmp_path / 'a.zip')


@pytest.mark.parametrize(
    'content', [b'no archive at all', gzip.compress(b'x' * 999)[:-12]], ids=['none', 'cut']
)
@pytest.mark.parametrize('name', ['a.zip', 'a.log.gz'])
def test_damaged_archives_are_an_error_and_not_a_traceback(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordingError, match='cannot be read'):
        open_recording(tmp_path / name)


@pytest.mark.parametrize(
    ('name', 'scans', 'beams', 'lowest_code', 'no_returns', 'said'),
    [
        ('intel', 910, 180, 81.83, 4172, '4 of 910 scan stamps run backwards'),
        ('aces', 440, 180, 50.0, 620, '620 of 79200'),
        ('orebro', 237, 181, 32.759, 968, 'all 237 stamps are 0'),
    ],
)
def test_recorded_carmen_logs(shared_data, name, scans, beams, lowest_code, no_returns, said):
    recording = open_recording(shared_data(f'scans/{name}-corrected.log.gz'))
    check_log(recording, scans, beams, lowest_code, no_returns)
    assert any(said in line for line in recording.warnings)


def test_killian_court(killian):
    began = time.process_time()
    recording = open_recording(killian)
    assert time.process_time() - began < 3.0
    check_log(recording, 3873, 180, 51.05, 9642)
    first = next(recording.messages(['pose']))
    assert first.stamp == 1_031_745_824_658_000_000
    content = decode(first)
    assert (content.pose.position.x, content.pose.position.y) == (1.96, 37.867)
    assert yaw_of(content) == pytest.approx(-2.01239)
    assert (recording.end - recording.start) / 1e9 == pytest.approx(7672.69)


def check_log(recording, count, beams, lowest_code, no_returns):
    scans = contents(recording, 'scan')
    assert recording.topics['pose'].count == recording.topics['scan'].count == len(scans) == count
    ranges = np.array([scan.ranges for scan in scans])
    assert ranges.shape == (count, beams)
    assert np.isinf(ranges).sum() == no_returns
    assert ranges[np.isfinite(ranges)].max() < scans[0].range_max < lowest_code
    messages = list(recording.messages())
    order = [(message.stamp, message.topic) for message in messages]
    assert order == sorted(order)
    assert (order[0][0], order[-1][0]) == (recording.start, recording.end)
    assert len({message.stamp for message in messages}) == count
