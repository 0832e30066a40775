# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The command as a person and a CI job see it: what it prints, what it writes, its exit code."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from made_recordings import config, drive, pose_message, scan_message, stamp_of, written

from kernel_constrained.bags import BagWriter, killian_path, Message, RecordingError
from kernel_constrained.configuration import write_parameter_file
from kernel_constrained.offline.evaluate import evaluate, FILES, main, parsed, unique
from kernel_constrained.offline.summary import figure

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED_DATA = REPOSITORY.parent / 'shared' / 'data'


@pytest.fixture(scope='module')
def room(tmp_path_factory):
    return written(tmp_path_factory.mktemp('room') / 'room', drive(120))


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command in this process; return exit code, lines printed, lines of errors."""

    def command(*arguments, output=tmp_path / 'out'):
        code = main([*map(str, arguments), '--output', str(output)])
        printed = capsys.readouterr()
        assert 'Traceback' not in printed.err
        return code, printed.out.splitlines(), printed.err.splitlines()

    return command


def settings(path, **given):
    write_parameter_file(path, config(**given), 'Made for a test.')
    return path


# -- one recording ------------------------------------------------------------------------------


def test_summary_says_what_was_used_and_how_good_it_was(run, room, tmp_path):
    code, lines, errors = run(room, '--dropout', '5:7', '--split', '0.8')
    text = '\n'.join(lines)
    assert (code, errors) == (0, [])
    assert lines[0] == 'room: 12 s; used 100 of 120 poses, 120 of 120 scans'
    assert 'withheld 20 poses in dropouts' in text
    result = json.loads((tmp_path / 'out' / 'result.json').read_text())
    for section, head in (('all', 'all'), ('test', 'test, not learned'), ('dropout', 'dropouts')):
        (line,) = [line for line in lines if re.match(rf'{head} +forward', line)]
        found = result['errors'][section]
        assert f'{found["count"]}' in line
        assert f'{found["forward"]["rmse"]:.4g}' in line
        assert f'{found["forward"]["rmse_of_running_mean"]:.4g}' in line
    assert re.search(r'dropout 5:7 s: [\d.]+ m off after [\d.]+ m \([\d.]+ %\)', text)
    assert re.search(r'CVaR\): .* violation', text)
    assert f'written to {tmp_path / "out"}' in text
    assert all(len(line) <= 120 for line in lines if str(tmp_path) not in line)
    assert {path.name for path in (tmp_path / 'out').iterdir()} == set(FILES)


def test_requirements_decide_the_exit_code(run, room):
    met = 'errors.late.forward.rmse <= 10'
    assert run(room, '--require', met, '--require', 'learner.samples >= 119')[0] == 0
    code, _, errors = run(room, '--require', met, '--require', 'errors.late.yaw.rmse<=1e-9')
    assert code == 3
    assert re.fullmatch(
        r'error: room, suggested: errors.late.yaw.rmse is [\d.]+, required <= 1e-09', errors[0]
    )
    code, _, errors = run(room, '--require', 'errors.late.z.rmse <= 1')
    assert code == 3
    assert "no figure 'z'; there is count, loss, forward, left, yaw" in errors[0]


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('errors', 'more than one figure; there is all, late'),
        ('errors.late.forward.unit', "not a number but 'm'"),
        ('recording.dropouts', 'not a number but []'),
        ('learner.samples.all', 'nothing more'),
    ],
)
def test_what_is_no_figure_is_said(name, message):
    result = {
        'errors': {'all': {}, 'late': {'forward': {'unit': 'm', 'r_squared': None}}},
        'recording': {'dropouts': []},
        'learner': {'samples': 3},
    }
    with pytest.raises(KeyError, match=re.escape(message)):
        figure(result, name)
    assert figure(result, 'learner.samples') == 3.0
    unknown = figure(result, 'errors.late.forward.r_squared')
    assert unknown != unknown


def test_a_figure_that_is_not_known_meets_no_requirement(run, tmp_path):
    bag = written(tmp_path / 'two', drive(2))
    code, _, errors = run(bag, '--require', 'errors.late.yaw.r_squared <= 1')
    assert code == 3
    assert 'errors.late.yaw.r_squared is not known, required <= 1' in errors[0]


def test_lost_messages_are_an_error_but_the_rest_is_evaluated(run, tmp_path):
    messages = drive(60)
    messages[31] = messages[31]._replace(data=b'\0\1\0\0')
    code, lines, errors = run(written(tmp_path / 'damaged', messages))
    assert code == 3
    assert errors == ['error: damaged: lost: scan: cannot be decoded, 1 of 60']
    assert any(line.startswith('last 30 %') for line in lines)


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--config', 'a.yaml'], 'name a recording, before --config'),
        (['x', '--dropout', '5'], '--dropout: expected BEGIN:END in seconds since the'),
        (['x', '--dropout', '5:4'], "(got '5:4')"),
        (['x', '--dropout', '5:inf'], "(got '5:inf')"),
        (['x', '--split', '80'], "--split: expected a share between 0 and 1 (got '80')"),
        (['x', '--require', 'rmse < 1'], "expected 'NAME <= NUMBER' or 'NAME >= NUMBER' (got"),
        (['x', '--require', 'rmse <= nan'], "(got 'rmse <= nan')"),
    ],
)
def test_wrong_arguments_are_said_and_end_with_code_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        parsed(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_help_fits_a_screen(capsys):
    with pytest.raises(SystemExit) as ended:
        parsed(['--help'])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 35
    assert max(map(len, lines)) <= 100


# -- what cannot be evaluated -------------------------------------------------------------------


def one_error(code, lines, errors):
    assert code == 1
    assert lines == []
    (line,) = errors
    assert line.startswith('error: ')
    return line


def test_recordings_without_scans_are_an_error_that_says_what_is_in_them(run, tmp_path):
    with BagWriter(tmp_path / 'talk') as writer:
        writer.write(Message('/chatter', 'std_msgs/msg/String', 1, b'\0\1\0\0\1\0\0\0\0'))
    line = one_error(*run(tmp_path / 'talk'))
    assert 'no topic with a scan or range' in line
    assert 'it holds /chatter (std_msgs/msg/String)' in line


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('empty', 'it holds /parameter_events (rcl_interfaces/msg/ParameterEvent'),
        ('no_metadata_split_db3', 'it holds /chatter (std_msgs/msg/String)'),
        ('no_metadata_split_mcap', 'it holds /chatter (std_msgs/msg/String)'),
        ('qos_mismatch_talker', '/topic (std_msgs/msg/String)'),
        ('ros1', 'rosbags-convert'),
        ('split_mcap', 'AAA (std_msgs/msg/String)'),
        ('unknown_serialization', 'wrong_format'),
        ('zstd_file_compression', '/topic (std_msgs/msg/String)'),
        ('zstd_message_compression', '/topic (std_msgs/msg/String)'),
    ],
)
def test_shared_bags_have_nothing_to_evaluate(name, message, run):
    path = SHARED_DATA / 'bags' / name
    if not path.exists():
        pytest.skip(f'shared data is absent: {path.name}')
    assert message in one_error(*run(path))


@pytest.mark.parametrize(
    ('make', 'message'),
    [
        (lambda path: path / 'nothing', 'nothing: no such file or folder'),
        (lambda path: path, 'no recording in it'),
        (lambda path: written(path / 'scans', [scan_message(i) for i in range(9)]),
         'no topic with a trusted pose'),
        (lambda path: written(path / 'three', [
            *drive(9), pose_message(1, topic='odom'), pose_message(1, topic='gps'),
        ]), ''),
        (lambda path: written(path / 'two', [
            *(scan_message(i) for i in range(9)), pose_message(1, topic='odom'),
            pose_message(1, topic='gps'),
        ]), 'a trusted pose could be gps, odom: choose by --pose'),
    ],
)  # fmt: skip
def test_sources_that_cannot_be_used(make, message, run, tmp_path):
    (tmp_path / 'in').mkdir()
    outcome = run(make(tmp_path / 'in'))
    if message:
        assert message in one_error(*outcome)
    else:
        assert outcome[0] == 0, 'a topic that is called pose is taken before others'


def test_settings_that_cannot_be_used(run, room, tmp_path):
    other = tmp_path / 'filter.yaml'
    assert 'filter.yaml: cannot be read: No such file' in one_error(*run(room, '--config', other))
    other.write_text('/**:\n  ros__parameters:\n    learner: {bandwith: 3.0, step_size: -1.0}\n')
    line = one_error(*run(room, '--config', other))
    assert 'did you mean learner.bandwidth?' in line
    assert 'learner.step_size must be' in line
    other.write_text('/**:\n  ros__parameters:\n    mounting: {source: tf}\n')
    assert 'mounting.source tf needs a running robot' in one_error(*run(room, '--config', other))
    other.write_text('a: [')
    assert 'is not YAML' in one_error(*run(room, '--config', other))


def test_what_an_earlier_evaluation_left_is_removed_before_anything_can_fail(run, room, tmp_path):
    out = tmp_path / 'out'
    assert run(room)[0] == 0
    (out / 'notes.txt').touch()
    assert 'no such file' in one_error(*run(tmp_path / 'nothing'))
    assert [path.name for path in out.iterdir()] == ['notes.txt']
    (out / 'result.json').touch()
    with pytest.raises(RecordingError):
        evaluate(tmp_path / 'nothing', output=out)
    assert [path.name for path in out.iterdir()] == ['notes.txt']


def test_what_earlier_evaluations_left_is_removed_before_the_first_begins(
    run, room, tmp_path, monkeypatch
):
    bags = room, written(tmp_path / 'other', drive(30))
    assert run(*bags)[0] == 0

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr('kernel_constrained.offline.evaluate.perform', interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(*bags)
    assert not [path for path in (tmp_path / 'out').rglob('*') if path.is_file()]


def test_an_input_that_would_be_removed_is_refused_and_nothing_is(run, room, tmp_path):
    assert run(room)[0] == 0
    own = tmp_path / 'out' / 'filter.yaml'
    before = {path: path.read_bytes() for path in (tmp_path / 'out').iterdir()}
    (tmp_path / 'link.yaml').symlink_to(own)
    for given in (own, tmp_path / 'link.yaml'):
        line = one_error(*run(tmp_path / 'nothing', '--config', given))
        assert f'{own}: to be read, and to be overwritten: copy it elsewhere' in line
        assert '--output' in line
    one_error(*run(tmp_path / 'out' / 'series.csv'))
    assert before == {path: path.read_bytes() for path in (tmp_path / 'out').iterdir()}
    assert run(room, '--config', own, output=tmp_path / 'other')[0] == 0


def test_an_input_that_would_be_removed_is_refused_with_several_too(run, room, tmp_path):
    few = settings(tmp_path / 'few.yaml', features__sectors=3)
    many = settings(tmp_path / 'many.yaml')
    assert run(room, '--config', few, many)[0] == 0
    own = tmp_path / 'out' / 'room' / 'filter' / 'filter.yaml'
    own.parent.mkdir()
    few.rename(own)
    assert f'{own}: to be read' in one_error(*run(room, '--config', own, many))
    assert own.exists()
    assert (tmp_path / 'out' / 'comparison.csv').exists()


def test_an_output_that_cannot_be_written_is_said_before_the_work(run, room, tmp_path):
    (tmp_path / 'file').touch()
    for output in (tmp_path / 'file', tmp_path / 'file' / 'below'):
        line = one_error(*run(room, output=output))
        assert f'{output}: cannot be written to' in line
        assert 'choose another by --output' in line


def test_a_disk_that_is_full_is_an_error_and_no_traceback(run, room, monkeypatch):
    def full(*_):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr('kernel_constrained.offline.series.Series.write_csv', full)
    assert 'No space left on device' in one_error(*run(room))


# A Ctrl-C in the middle of the recording.
INTERRUPTED = """
import signal, sys
from kernel_constrained.__main__ import main
from kernel_constrained.offline.evaluation import Evaluation

take, left = Evaluation.take, iter(range(100))

def taken(self, message):
    if next(left, None) is None:
        signal.raise_signal(signal.SIGINT)
    take(self, message)

Evaluation.take = taken
sys.exit(main())
"""


def test_interrupted_it_ends_with_130_and_leaves_no_result(room, tmp_path):
    result = subprocess.run(
        [sys.executable, '-c', INTERRUPTED, 'evaluate', str(room), '--output', 'out'],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, 'PYTHONPATH': str(REPOSITORY)},
    )  # fmt: skip
    assert result.returncode == 130, result.stderr
    assert 'Traceback' not in result.stderr
    assert (tmp_path / 'out').exists()  # made when the work begins
    assert not (tmp_path / 'out' / 'result.json').exists()


# -- several ------------------------------------------------------------------------------------


def test_settings_are_compared_in_one_table(run, room, tmp_path):
    few = settings(tmp_path / 'few.yaml', features__sectors=3)
    many = settings(tmp_path / 'many.yaml')
    place = settings(tmp_path / 'place.yaml', target__type='pose')
    code, lines, errors = run(room, '--config', few, many, place, '--dropout', '6:8')
    assert (code, errors) == (0, [])
    begin = lines.index(next(line for line in lines if line.startswith('recording  settings')))
    head, *rows = [line.split() for line in lines[begin : begin + 4]]
    assert head == [
        'recording', 'settings', 'scored', 'forward', 'left', 'yaw', 'x', 'y', 'CVaR',
        'violation', 'order',
    ]  # fmt: skip
    assert [row[:3] for row in rows] == [['room', n, 'dropouts'] for n in ('few', 'many', 'place')]
    assert len({line.index(row[-1], 60) for line, row in zip(lines[begin + 1 :], rows)}) <= 2
    for name, row in zip(('few', 'many', 'place'), rows):
        folder = tmp_path / 'out' / 'room' / name
        result = json.loads((folder / 'result.json').read_text())
        found = result['errors']['dropout']
        assert row[3:8] == [
            f'{found[part]["rmse"]:.4g}' if part in found else 'n/a' for part in head[3:8]
        ]
        assert {path.name for path in folder.iterdir()} == set(FILES)
    with (tmp_path / 'out' / 'comparison.csv').open(newline='') as file:
        table = list(csv.DictReader(file))
    assert len(table) == 3 * 3 * 3, 'settings, sections, components'
    (line,) = [
        line for line in table
        if (line['settings'], line['section'], line['component']) == ('many', 'late', 'yaw')
    ]  # fmt: skip
    many_result = json.loads((tmp_path / 'out' / 'room' / 'many' / 'result.json').read_text())
    assert float(line['rmse']) == many_result['errors']['late']['yaw']['rmse']
    assert (tmp_path / 'out' / 'comparison.png').read_bytes().startswith(b'\x89PNG')


def test_one_that_fails_does_not_hide_the_others(run, room, tmp_path):
    folder = tmp_path / 'bags'
    written(folder / 'a', drive(40))
    written(folder / 'b', [scan_message(i) for i in range(40)])
    written(folder / 'c', drive(50))
    code, lines, errors = run(folder)
    assert code == 1
    assert len(errors) == 1
    assert 'b: no topic with a trusted pose' in errors[0]
    assert [line.split()[0] for line in lines[-3:-1]] == ['a', 'c']
    assert not (tmp_path / 'out' / 'b').exists()


def test_recordings_and_settings_of_the_same_name_do_not_overwrite_each_other(run, tmp_path):
    for folder in ('monday', 'tuesday'):
        written(tmp_path / folder / 'drive', drive(30))
        settings(tmp_path / folder / 'filter.yaml')
    code, *_ = run(
        *(tmp_path / day / 'drive' for day in ('monday', 'tuesday')),
        '--config', *(tmp_path / day / 'filter.yaml' for day in ('monday', 'tuesday')),
    )  # fmt: skip
    assert code == 0
    found = {
        str(p.parent.relative_to(tmp_path / 'out')) for p in tmp_path.glob('out/*/*/result.json')
    }
    assert found == {f'{d}/{f}' for d in ('drive', 'drive_2') for f in ('filter', 'filter_2')}
    assert unique(['a', 'a', 'a_2', 'b', 'a']) == ['a', 'a_2', 'a_2_2', 'b', 'a_3']


def test_killian_court_beats_the_running_mean_with_suggested_settings(run, tmp_path):
    try:
        killian_path()
    except RecordingError as error:
        pytest.skip(str(error))
    requirements = [
        '--require', 'errors.late.forward.r_squared >= 0.5', '--require',
        'errors.late.yaw.r_squared >= 0.2', '--require', 'errors.late.loss.violation <= 0',
        '--require', 'constraint.violation <= 0', '--require', 'drift.largest_percent <= 100',
    ]  # fmt: skip
    code, lines, errors = run('killian', '--dropout', '2000:2200', *requirements)
    assert code == 0, errors
    assert lines[0].startswith('killian.g2o.zip: 7670 s; used 3774 of 3873 poses')


def test_stamps_are_those_of_the_headers(run, tmp_path):
    """Recorded late and at uneven times; what counts is when it was."""
    messages = [
        each(i, recorded=stamp_of(i) + (7919 * i % 90) * 1_000_000 + 10**9)
        for i in range(80) for each in (pose_message, scan_message)
    ]  # fmt: skip
    late = written(tmp_path / 'late', sorted(messages, key=lambda m: m.stamp))
    assert run(late, output=tmp_path / 'late_out')[0] == 0
    assert run(written(tmp_path / 'punctual', drive(80)), output=tmp_path / 'punctual_out')[0] == 0
    results = [
        json.loads((tmp_path / f'{name}_out' / 'result.json').read_text())['errors']
        for name in ('late', 'punctual')
    ]
    assert results[0] == results[1]
