# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What an evaluation finds: every figure computed once more from the series that it writes."""

import csv
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from made_recordings import (
    as_type,
    config,
    COVARIANCE_TYPE,
    drive,
    ODOMETRY_TYPE,
    pose_message,
    POSE_TYPE,
    range_message,
    scan_message,
    SECOND,
    stamp_of,
    written,
)

from kernel_constrained.bags import (
    decode,
    Message,
    open_recording,
    pose_bytes,
    RecordingError,
    write_bag,
)
from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.offline.arguments import Options
from kernel_constrained.offline.evaluate import evaluate, FILES, read_config
from kernel_constrained.offline.evaluation_report import text_of
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.perception.messages import pose_of, reading_of

SHARED_SCANS = Path(__file__).resolve().parents[3] / 'shared' / 'data' / 'scans'
MOTION = ('forward', 'left', 'yaw')


@pytest.fixture(scope='module')
def room(tmp_path_factory):
    """Make a drive of 30 s with a trusted pose at each of its 300 scans."""
    return written(tmp_path_factory.mktemp('room') / 'room', drive(300))


@pytest.fixture(scope='module')
def scored(room, tmp_path_factory):
    """Evaluate the drive with dropouts and a split; return result and folder."""
    folder = tmp_path_factory.mktemp('scored')
    options = Options(split=0.8, dropouts=((10.0, 12.0), (15.0, 18.0)))
    return evaluate(room, config(), options, folder), folder


def rows_of(folder):
    """Columns of a series, by name; numbers where they are, NaN for nothing."""
    with (folder / 'series.csv').open(newline='') as file:
        rows = list(csv.DictReader(file))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return {
        name: np.array(values)
        if name == 'section'
        else np.array([float(value or 'nan') for value in values])
        for name, values in columns.items()
    }


def wrapped(angle):
    return np.arctan2(np.sin(angle), np.cos(angle))


def mean_of_worst(losses, significance):
    """Return the CVaR by its definition: the mean of the worst share, the last one in part."""
    share, count = 1.0 - significance, len(losses)
    weights = np.clip(share * count - np.arange(count), 0.0, 1.0)
    return float(np.sort(losses)[::-1] @ weights / (share * count))


# -- figures ------------------------------------------------------------------------------------


def test_sections_are_what_the_schedule_says(scored):
    result, folder = scored
    rows = rows_of(folder)
    time = rows['time']
    inside = ((time >= 10) & (time < 12)) | ((time >= 15) & (time < 18))
    after = (time >= 0.8 * 29.9) & ~inside
    assert rows['section'][inside].tolist() == ['dropout'] * 50
    assert set(rows['section'][after]) == {'test'}
    assert set(rows['section'][~inside & ~after]) == {'online'}
    assert not rows['learned'][inside | after].any()
    assert rows['learned'][~inside & ~after].sum() == len(time) - 50 - after.sum() - 2, (
        'all but the first after each dropout: its motion begins where there was no pose'
    )
    assert {name: errors['count'] for name, errors in result['errors'].items()} == {
        'all': 299, 'late': math.ceil(0.3 * (299 - 50 - after.sum())), 'test': after.sum(),
        'dropout': 50,
    }  # fmt: skip
    assert result['recording']['test_from'] == pytest.approx(0.8 * 29.9)
    assert result['recording']['dropouts'] == [[10.0, 12.0], [15.0, 18.0]]
    assert result['messages']['received'] == {'pose': 300, 'scan': 300}
    assert result['messages']['used'] == {'pose': 250, 'scan': 300}
    assert result['messages']['poses_withheld'] == 50
    assert result['learner']['samples'] == rows['learned'].sum()


def test_every_error_follows_from_the_series(scored):
    result, folder = scored
    rows = rows_of(folder)
    for section, mask in masks_of(rows).items():
        for name in MOTION:
            truth, estimate = rows[f'truth_{name}'], rows[f'estimate_{name}']
            error = (estimate - truth)[mask]
            before = [truth[:i][rows['learned'][:i] > 0] for i in np.flatnonzero(mask)]
            of_mean = truth[mask] - [part.mean() if len(part) else 0.0 for part in before]
            assert result['errors'][section][name] == pytest.approx({
                'unit': 'rad' if name == 'yaw' else 'm',
                'rmse': math.sqrt(np.mean(error**2)),
                'bias': error.mean(),
                'mae': np.mean(np.abs(error)),
                'median': np.median(np.abs(error)),
                'p95': np.quantile(np.abs(error), 0.95),
                'largest': np.abs(error).max(),
                'r_squared': 1.0 - np.mean(error**2) / np.var(truth[mask]),
                'rmse_of_running_mean': math.sqrt(np.mean(of_mean**2)),
                'within_90_percent': np.mean(
                    np.abs(error) <= 1.6448536 * rows[f'sd_{name}'][mask]
                ),
            }), (section, name)  # fmt: skip


def masks_of(rows):
    """Rows of each section, from the series alone."""
    known = ~np.isnan(rows['truth_forward'])
    online = np.flatnonzero(known & (rows['section'] == 'online'))
    late = np.isin(np.arange(len(known)), online[int(0.7 * len(online)) :])
    return {
        'all': known,
        'late': late,
        'test': known & (rows['section'] == 'test'),
        'dropout': known & (rows['section'] == 'dropout'),
    }


def test_losses_and_their_tail_follow_from_the_series(scored):
    result, folder = scored
    rows, bound = rows_of(folder), config().learner
    scales = np.array([0.1, 0.1, 0.05])
    errors = np.stack([rows[f'estimate_{n}'] - rows[f'truth_{n}'] for n in MOTION], axis=1)
    assert rows['loss'] == pytest.approx(np.sum((errors / scales) ** 2, axis=1), rel=1e-9)
    for section, mask in masks_of(rows).items():
        loss = rows['loss'][mask]
        cvar = mean_of_worst(loss, bound.significance)
        assert result['errors'][section]['loss'] == pytest.approx({
            'mean': loss.mean(), 'cvar': cvar, 'violation': cvar - bound.tolerance,
            'largest': loss.max(),
        })  # fmt: skip


def test_the_constraint_is_of_the_losses_that_the_filter_has_seen(scored):
    result, folder = scored
    rows, bound = rows_of(folder), config().learner
    seen = ~np.isnan(rows['cvar'])
    losses = rows['loss'][seen]
    assert seen.sum() == 299 - 50 - 2
    for i in (30, 100, len(losses) - 1):
        expected = mean_of_worst(losses[: i + 1][-bound.loss_window :], bound.significance)
        assert rows['cvar'][seen][i] == pytest.approx(expected)
    violation = rows['violation'][seen]
    assert violation == pytest.approx(rows['cvar'][seen] - bound.tolerance)
    found = result['constraint']
    assert found['cvar'] == rows['cvar'][seen][-1]
    assert found['violation'] == violation[-1]
    assert 0.0 < found['share_violated'] == np.mean(violation > 0.0) < 1.0
    assert found['cvar_since_start'] == pytest.approx(mean_of_worst(losses, 0.9), rel=0.03)


def test_late_figures_are_those_of_the_demonstration(room):
    """The last 30 % of the motions, as ``demo scans`` prints them."""
    from kernel_constrained.offline.recorded import Recorded
    from kernel_constrained.offline.scan_report import prequential

    result = evaluate(room, config())
    with open_recording(room) as recording:
        stamps, estimates, _ = by_hand(recording, config())
        reference = prequential(recording, Recorded(np.array(stamps), np.array(estimates), {}))
    errors, of_mean = reference.rmse(0.7)
    late = result['errors']['late']
    for i, name in enumerate(MOTION):
        assert late[name]['rmse'] == pytest.approx(errors[i], rel=1e-12)
        assert late[name]['rmse_of_running_mean'] == pytest.approx(of_mean[i], rel=1e-12)
        assert late[name]['r_squared'] == pytest.approx(reference.r_squared(0.7)[i], rel=1e-9)


def by_hand(recording, settings):
    """Feed the filter without the command; return stamps, estimates and what was learned."""
    filter_, stamps, estimates, learned = ScanFilter(settings), [], [], []
    for message in recording.messages():
        decoded = decode(message)
        stamp = decoded.header.stamp.sec * SECOND + decoded.header.stamp.nanosec
        if message.topic.lstrip('/') == 'pose':
            filter_.pose(stamp, pose_of(decoded))
        else:
            estimate = filter_.scan(stamp, reading_of(decoded))
            if estimate is not None:
                stamps.append(stamp)
                estimates.append(estimate.mean)
        learned += filter_.learn()
    return stamps, estimates, learned


def test_without_dropouts_the_series_is_what_the_filter_says_bit_for_bit(room, tmp_path):
    evaluate(room, config(), output=tmp_path)
    rows = rows_of(tmp_path)
    with open_recording(room) as recording:
        stamps, estimates, learned = by_hand(recording, config())
    assert rows['stamp'].tolist() == stamps
    for i, name in enumerate(MOTION):
        assert rows[f'estimate_{name}'].tolist() == [mean[i] for mean in estimates]
        error = rows[f'estimate_{name}'] - rows[f'truth_{name}']
        assert error.tolist() == [each.error[i] for each in learned]
    assert rows['loss'].tolist() == [each.loss for each in learned]


# -- split and dropouts -------------------------------------------------------------------------


def test_after_the_split_nothing_is_learned_and_before_it_nothing_differs(room, tmp_path):
    evaluate(room, config(), output=tmp_path / 'whole')
    evaluate(room, config(), Options(split=0.5), tmp_path / 'split')
    whole, split = rows_of(tmp_path / 'whole'), rows_of(tmp_path / 'split')
    before = split['section'] == 'online'
    assert split['estimate_yaw'][before].tolist() == whole['estimate_yaw'][before].tolist()
    assert split['learned'][before].all()
    assert not split['learned'][~before].any()
    assert len(set(split['model_order'][~before])) == 1
    assert (split['estimate_yaw'] != whole['estimate_yaw']).any()
    assert not np.isnan(split['loss']).any(), 'what is not learned is scored'


def test_in_a_dropout_the_filter_gets_what_it_would_get_without_those_poses(room, tmp_path):
    """As if the poses were not in the recording; the truth is from them all the same."""
    kept = {i for i in range(300) if not 10.0 <= i * 0.1 < 15.0}
    bare = written(tmp_path / 'bare.mcap', drive(300, kept))
    evaluate(bare, config(), output=tmp_path / 'bare')
    evaluate(room, config(), Options(dropouts=((10.0, 15.0),)), tmp_path / 'dropout')
    expected, rows = rows_of(tmp_path / 'bare'), rows_of(tmp_path / 'dropout')
    for name in ('stamp', *(f'{kind}_{part}' for kind in ('estimate', 'sd') for part in MOTION)):
        assert rows[name].tolist() == expected[name].tolist(), name
    assert rows['learned'].tolist() == expected['learned'].tolist()
    assert np.isnan(expected['truth_yaw']).sum() == 51
    assert not np.isnan(rows['truth_yaw']).any()


def test_a_dropout_of_everything_leaves_a_filter_that_knows_nothing(room, tmp_path):
    result = evaluate(room, config(), Options(dropouts=((0.0, 1000.0),)), tmp_path)
    assert list(result['errors']) == ['all', 'dropout']
    assert result['learner']['samples'] == 0
    assert result['constraint']['cvar'] is None
    assert result['messages']['used']['pose'] == 0
    assert 'dropouts' not in result['drift'], 'no trusted pose to drift from'
    assert 'learned 0, model order 0' in text_of(result)


def test_drift_of_a_dropout_is_the_chain_of_estimates_from_the_last_trusted_pose(scored):
    result, folder = scored
    rows = rows_of(folder)
    for found, begin, end in zip(result['drift']['dropouts'], (10.0, 15.0), (12.0, 18.0)):
        inside = np.flatnonzero((rows['time'] >= begin) & (rows['time'] < end))
        places = [inside[0] - 1, *inside]
        x, y, yaw = (rows[f'pose_{name}'][places[0]] for name in ('x', 'y', 'yaw'))
        for i in inside:
            forward, left, turn = (rows[f'estimate_{name}'][i] for name in MOTION)
            x += math.cos(yaw) * forward - math.sin(yaw) * left
            y += math.sin(yaw) * forward + math.cos(yaw) * left
            yaw += turn
        there = [rows[f'pose_{name}'][places] for name in ('x', 'y', 'yaw')]
        error = math.hypot(x - there[0][-1], y - there[1][-1])
        distance = np.hypot(np.diff(there[0]), np.diff(there[1])).sum()
        assert found == pytest.approx({
            'begin': begin, 'end': end, 'distance': distance, 'error': error,
            'percent': 100.0 * error / distance, 'yaw_error': wrapped(yaw - there[2][-1]),
        })  # fmt: skip
    errors = [found['error'] for found in result['drift']['dropouts']]
    assert result['drift']['largest_error'] == max(errors)
    assert f'{errors[0]:.3g} m off after' in text_of(result)


# -- what recordings hold -----------------------------------------------------------------------


@pytest.mark.parametrize('kind', [ODOMETRY_TYPE, COVARIANCE_TYPE])
def test_other_types_of_pose_give_the_same(kind, room, tmp_path):
    messages = [as_type(m, kind) if m.topic == 'pose' else m for m in drive(300)]
    other = written(tmp_path / 'other.db3', messages)
    expected, result = evaluate(room, config()), evaluate(other, config(), output=tmp_path)
    assert result['errors'] == expected['errors']
    assert read_config(tmp_path / 'filter.yaml').pose.type == kind.split('/')[-1]


def test_a_target_with_a_heading_is_scored_the_short_way_round(room, tmp_path):
    settings = config(target__type='pose', target__yaw_scale=1.0, features__sectors=4)
    result = evaluate(room, settings, output=tmp_path)
    rows = rows_of(tmp_path)
    truth = rows['truth_yaw']
    error = wrapped(rows['estimate_yaw'] - truth)
    assert np.abs(rows['estimate_yaw'] - truth).max() > math.pi, 'else nothing is tested'
    late = slice(int(0.7 * len(truth)), None)
    found = result['errors']['late']['yaw']
    assert found['rmse'] == pytest.approx(math.sqrt(np.mean(error[late] ** 2)))
    heading = np.exp(1j * truth)
    spread = wrapped(truth[late] - np.angle(heading[late].mean()))
    assert found['r_squared'] == pytest.approx(1 - np.mean(error[late] ** 2 / np.mean(spread**2)))
    before = np.angle(np.cumsum(heading))[:-1]
    of_mean = wrapped(truth[1:] - before)[late.start - 1 :]
    assert found['rmse_of_running_mean'] == pytest.approx(math.sqrt(np.mean(of_mean**2)))
    assert result['drift'] is None
    assert set(result['errors']['all']) == {'count', 'loss', 'x', 'y', 'yaw'}


def test_a_heading_alone_and_a_coordinate_alone(room, tmp_path):
    yaw = evaluate(room, config(target__type='axis', target__axis='yaw'), output=tmp_path)
    assert yaw['errors']['late']['yaw']['rmse'] < 0.5
    x = evaluate(room, config(target__type='axis', target__axis='x'), output=tmp_path)
    assert set(x['errors']['all']) == {'count', 'loss', 'x'}


def test_ranges_are_evaluated_too(tmp_path):
    messages = [m for i in range(200) for m in (pose_message(i), range_message(i))]
    result = evaluate(written(tmp_path / 'ranges.mcap', messages), output=tmp_path / 'out')
    late = result['errors']['late']['x']
    assert late['rmse'] < 0.5 * late['rmse_of_running_mean']
    assert result['messages']['used'] == {'pose': 200, 'range': 200}


def test_other_learners(room, tmp_path):
    free = evaluate(room, config(learner__constrained=False), output=tmp_path)
    assert free['constraint'] is None
    assert free['errors']['late']['loss']['violation'] is None
    assert np.isnan(rows_of(tmp_path)['violation']).all()
    assert 'tolerance' not in text_of(free)
    polynomial = evaluate(room, config(learner__kernel='polynomial', learner__degree=2))
    assert polynomial['errors']['late']['yaw']['rmse'] < 1.0


@pytest.mark.parametrize('count', [2, 3])
def test_a_recording_of_few_scans_has_figures(count, tmp_path):
    bag = written(tmp_path / 'few.mcap', drive(count))
    for settings in (None, config()):
        result = evaluate(bag, settings, output=tmp_path / 'out')
        assert result['errors']['all']['count'] == count - 1
        assert result['errors']['late']['count'] == 1
        assert result['errors']['late']['yaw']['r_squared'] is None
        assert 'n/a' in text_of(result)


@pytest.mark.parametrize('start', [0.0, 4e6])
def test_a_truth_that_is_the_same_but_for_rounding_has_no_r_squared(start, tmp_path):
    """Driven straight ahead at a constant speed: every motion is the same."""
    messages = [
        message for i in range(60) for message in (
            scan_message(i), Message('pose', POSE_TYPE, stamp_of(i),
                                     pose_bytes(stamp_of(i), start + 0.1 * i, 0.03 * i, 0.29)))
    ]  # fmt: skip
    late = evaluate(written(tmp_path / 'straight.mcap', messages), config())['errors']['late']
    assert [late[name]['r_squared'] for name in ('forward', 'left', 'yaw')] == [None] * 3


def test_one_scan_has_no_motion(tmp_path):
    bag = written(tmp_path / 'one.mcap', drive(1))
    with pytest.raises(RecordingError, match=r'no estimate: .*a motion needs two scans'):
        evaluate(bag, output=tmp_path / 'out')


def test_stamps_that_only_run_backwards_are_said_to(tmp_path):
    messages = [
        each(i, stamp_of(10 * (60 - i)), recorded=stamp_of(i))
        for i in range(60) for each in (pose_message, scan_message)
    ]  # fmt: skip
    with pytest.raises(RecordingError, match=r'no estimate: .*; stamps went back 59 times$'):
        evaluate(written(tmp_path / 'back.mcap', messages))
    scans = [message for message in messages if message.topic == 'scan']
    with pytest.raises(RecordingError, match=r'went back 59 times; 58 scans without a pose$'):
        evaluate(written(tmp_path / 'alone.mcap', [pose_message(0), *scans]), config())


def test_a_looped_recording_is_learned_twice(tmp_path):
    """Recorded while a bag was played twice: the stamps of the messages go back."""
    messages = []
    for lap in range(2):
        for i in range(60):
            recorded = stamp_of(60 * lap + i)
            messages.append(pose_message(i, recorded=recorded))
            messages.append(scan_message(i, recorded=recorded))
    bag = written(tmp_path / 'looped.mcap', messages)
    result = evaluate(bag, config(), output=tmp_path)
    assert result['messages']['clock_jumps'] == 1
    assert result['errors']['all']['count'] == 2 * 59
    assert result['learner']['samples'] == 2 * 59
    rows = rows_of(tmp_path)
    assert (np.diff(rows['time']) > 0).all()
    assert rows['stamp'][:59].tolist() == rows['stamp'][59:].tolist()
    assert rows['truth_yaw'][:59].tolist() == rows['truth_yaw'][59:].tolist()


def test_what_cannot_be_used_is_counted_by_reason(tmp_path):
    messages = drive(60)
    messages[30] = messages[30]._replace(data=b'\0\1\0\0 much too short')
    messages.append(scan_message(20, recorded=stamp_of(21) + 1))
    messages.append(scan_message(59, recorded=stamp_of(59) + 1))
    result = evaluate(written(tmp_path / 'odd.mcap', messages), config())
    assert result['messages']['dropped'] == {
        'pose: cannot be decoded': 1, 'scan: duplicate stamp': 1, 'scan: late': 1,
    }  # fmt: skip
    assert result['messages']['received'] == {'pose': 60, 'scan': 62}
    assert result['messages']['used'] == {'pose': 59, 'scan': 60}
    assert result['recording']['losses'] == ['pose: cannot be decoded, 1 of 60']
    assert 'dropped 1 scan: late' in text_of(result)


def test_poses_between_the_scans_are_interpolated(tmp_path):
    messages = [scan_message(i) for i in range(100)]
    messages += [pose_message(i, stamp_of(i) - SECOND // 50) for i in range(101)]
    result = evaluate(written(tmp_path / 'between.mcap', messages), config(), output=tmp_path)
    assert result['errors']['all']['count'] == 99
    assert result['messages']['scans_without_a_pose'] == 0


def test_a_window_of_a_recording_is_all_that_is_used(room, tmp_path):
    options = Options(start_offset=10.0, duration=5.0, split=0.6)
    result = evaluate(room, config(), options, tmp_path)
    assert result['messages']['received'] == {'pose': 50, 'scan': 50}
    assert result['recording']['test_from'] == pytest.approx(13.0)
    assert (result['recording']['from'], result['recording']['to']) == (10.1, 14.9)
    assert result['errors']['test']['count'] == 20
    timing = json.loads((tmp_path / 'timing.json').read_text())
    assert timing['times_real_time'] * timing['seconds'] == pytest.approx(4.8)


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (Options(dropouts=((40.0, 50.0),)), 'dropout 40:50 is outside of the 0 to 29.9 s'),
        (Options(dropouts=((29.85, 29.89),)), 'no estimate to score in dropout'),
        (Options(dropouts=((5.0, 9.0), (8.0, 12.0))), 'dropouts overlap, one begins at 8 s'),
        (Options(split=0.999, duration=29.0), 'no estimate to score after the split at'),
        (Options(start_offset=60.0), 'start offset 60 s is behind its end at 29.9 s'),
        (Options(duration=-1.0), 'duration positive'),
        (Options(scan='front'), 'front is not there, expected sensor_msgs/msg/LaserScan or'),
        (Options(pose='scan'), 'scan is sensor_msgs/msg/LaserScan, expected geometry_msgs/'),
    ],
)
def test_a_wrong_request_is_said_in_one_line(room, options, message):
    with pytest.raises(RecordingError, match=re.escape(message)) as caught:
        evaluate(room, config(), options)
    assert '\n' not in str(caught.value)


def test_scans_and_poses_of_different_clocks_are_nothing_to_score(tmp_path):
    messages = [scan_message(i) for i in range(20)]
    messages += [
        pose_message(i, stamp_of(i) + 3600 * SECOND, recorded=stamp_of(i)) for i in range(20)
    ]
    bag = written(tmp_path / 'clocks.mcap', messages)
    with pytest.raises(RecordingError, match='are scan and pose of one clock'):
        evaluate(bag, config())
    with pytest.raises(RecordingError, match='are they of one clock'):
        evaluate(bag)


def test_a_split_after_which_there_is_no_pose_is_nothing_to_score(tmp_path):
    bag = written(tmp_path / 'half', drive(100, set(range(60))))
    with pytest.raises(RecordingError, match='no estimate to score after the split at'):
        evaluate(bag, config(), Options(split=0.8))
    with pytest.raises(RecordingError, match='no estimate to score in dropout 7:8'):
        evaluate(bag, config(), Options(dropouts=((7.0, 8.0),)))


def test_settings_for_another_input_are_refused(room):
    settings = config(input__type='range', features__type='range', target__type='axis')
    with pytest.raises(
        ConfigurationError, match=r'input.type is range, but scan of room is a scan'
    ):
        evaluate(room, settings)


# -- files --------------------------------------------------------------------------------------


def test_everything_is_written_and_replaced_whole(room, tmp_path):
    (tmp_path / 'result.json').write_text('old')
    (tmp_path / 'notes.txt').write_text('of the user')
    result = evaluate(room, config(), Options(duration=5.0), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*FILES, 'notes.txt'}
    assert json.loads((tmp_path / 'result.json').read_text()) == result
    assert (tmp_path / 'evaluation.png').read_bytes().startswith(b'\x89PNG')
    assert ScanFilter.load(tmp_path / 'model.npz').samples == 49
    with pytest.raises(RecordingError):
        evaluate(room, config(), Options(dropouts=((29.85, 29.89),)), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {'notes.txt'}, (
        'what is there is never of an evaluation before'
    )


def test_settings_in_effect_give_the_same_result_again(room, tmp_path):
    evaluate(room, None, None, tmp_path / 'first')
    settings = read_config(tmp_path / 'first' / 'filter.yaml')
    evaluate(room, settings, None, tmp_path / 'second')
    for name in ('result.json', 'series.csv', 'filter.yaml'):
        assert (tmp_path / 'second' / name).read_bytes() == (
            tmp_path / 'first' / name
        ).read_bytes()


def test_evaluating_twice_and_after_conversion_gives_the_same_bytes(room, tmp_path):
    sources = [room, room]
    for folder, storage in (('a', 'db3'), ('b', 'mcap'), ('c', 'db3')):
        with open_recording(sources[-1]) as recording:
            sources.append(tmp_path / folder / 'room')
            write_bag(recording, sources[-1], storage)
    options = Options(split=0.7, dropouts=((5.0, 8.0),))
    for i, source in enumerate(sources):
        evaluate(source, None, options, tmp_path / str(i))
    for name in ('series.csv', 'result.json'):
        (first, *others) = [(tmp_path / str(i) / name).read_bytes() for i in range(len(sources))]
        for i, other in enumerate(others):
            assert other == first, (name, sources[i + 1])


@pytest.mark.parametrize('name', ['intel', 'aces', 'orebro'])
def test_suggested_settings_beat_the_mean_on_recorded_scans(name, tmp_path):
    path = SHARED_SCANS / f'{name}-corrected.log.gz'
    if not path.exists():
        pytest.skip(f'shared data is absent: {path.name}')
    result = evaluate(path)
    for component in MOTION:
        late = result['errors']['late'][component]
        assert late['rmse'] < 0.9 * late['rmse_of_running_mean'], component
        assert 0.8 <= late['within_90_percent'] <= 1.0
    assert result['errors']['late']['loss']['violation'] < 0.0
    assert result['constraint']['violation'] <= 0.0
    assert result['messages']['dropped'] == {}
