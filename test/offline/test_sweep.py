# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""sweep: grids, the same answer however it is done, going on after a kill, what is written."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from kernel_constrained.bags import BagWriter, open_recording, RecordingError
from kernel_constrained.configuration import from_flat, read_parameter_file
from kernel_constrained.offline import sweep_engines, sweep_task
from kernel_constrained.offline.arguments import Options, Requirement
from kernel_constrained.offline.evaluate import evaluate, read_config
from kernel_constrained.offline.summary import figure
from kernel_constrained.offline.sweep import main
from kernel_constrained.offline.sweep_figure import front
from kernel_constrained.offline.sweep_grid import read_grid, Setting, settings_of
from kernel_constrained.offline.sweep_table import Criteria, ranked, short_names
from kernel_constrained.offline.sweep_task import files_of, Source, Task
from kernel_constrained.perception.node_config import FilterNodeConfig

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIG = REPOSITORY / 'config'
TABLES = ('sweep.csv', 'sweep.json', 'best.yaml')

GRID = """
learner.bandwidth: [1.0, 2.0, 4.0]
learner:
  max_model_order: [5, 20]
"""


def drive(seed, scans=150, wrong=()):
    """Return a CARMEN log of a robot that turns and drives in an empty square room.

    The poses of the scans in ``wrong`` are three metres off.
    """
    random = np.random.default_rng(seed)
    x, y, yaw = 5.0, 5.0, 0.0
    lines = []
    for i in range(scans):
        step, turn = random.uniform(0.0, 0.2), random.uniform(-0.2, 0.2)
        yaw += turn
        x = np.clip(x + step * np.cos(yaw), 1.0, 9.0)
        y = np.clip(y + step * np.sin(yaw), 1.0, 9.0)
        bearings = yaw - np.pi / 2 + np.arange(36) * np.pi / 36
        with np.errstate(divide='ignore'):
            across = np.where(np.cos(bearings) > 0, 10.0 - x, x) / np.abs(np.cos(bearings))
            along = np.where(np.sin(bearings) > 0, 10.0 - y, y) / np.abs(np.sin(bearings))
        ranges = ' '.join(f'{value:.3f}' for value in np.minimum(across, along))
        pose = f'{x + 3.0 * (i in wrong):.4f} {y:.4f} {yaw:.4f}'
        lines.append(f'FLASER 36 {ranges} {pose} {pose} {i / 5 + 1:.2f} host {i / 5 + 1:.2f}\n')
    return ''.join(lines)


@pytest.fixture(scope='module')
def logs(tmp_path_factory):
    """Two recordings in a folder."""
    folder = tmp_path_factory.mktemp('logs')
    for seed in (1, 2):
        (folder / f'drive_{seed}.log').write_text(drive(seed))
    return folder


@pytest.fixture(scope='module')
def config(logs):
    """Return settings that learn within 150 scans, under a bound that some of them hold."""
    path = logs.parent / f'{logs.name}.yaml'
    path.write_text(
        '/**:\n  ros__parameters:\n'
        '    features: {sectors: 8, bearing_min: -1.5708, bearing_max: 1.5708, far: 20.0}\n'
        '    target: {position_scale: 0.1, yaw_scale: 0.1}\n'
        '    learner: {tolerance: 5.5}\n'
    )
    return path


@pytest.fixture(scope='module')
def grid(logs):
    path = logs.parent / f'{logs.name}-grid.yaml'
    path.write_text(GRID)
    return path


def arguments(logs, config, grid, output, *more):
    return [str(logs), '--config', str(config), '--grid', str(grid), '--output', str(output),
            *map(str, more)]  # fmt: skip


@pytest.fixture(scope='module')
def swept(logs, config, grid, tmp_path_factory):
    """Sweep in this process; return the folder."""
    output = tmp_path_factory.mktemp('swept')
    assert main(arguments(logs, config, grid, output, '--jobs', 1)) == 0
    return output


def table(folder):
    with (folder / 'sweep.csv').open() as file:
        return list(csv.DictReader(file))


def tables(folder):
    return {name: (folder / name).read_bytes() for name in TABLES}


# -- grids --------------------------------------------------------------------------------------


@pytest.fixture
def refused(tmp_path, capsys, logs):
    """Sweep over a grid that is refused; return what is said, after nothing was evaluated."""

    def run(text):
        path = tmp_path / 'grid.yaml'
        path.write_text(text)
        code = main([str(logs), '--grid', str(path), '--output', str(tmp_path / 'out')])
        assert code == 1
        assert not (tmp_path / 'out').exists()
        said = capsys.readouterr()
        assert said.out == ''
        return said.err.replace(f'{path}: ', '')

    return run


def test_all_that_is_wrong_with_a_grid_is_said_at_once(refused):
    said = refused(
        'learner.bandwith: [1.0]\n'
        'learner:\n  bandwidth: [1.0, wide, -1]\n  max_model_order: 5\n  tolerance: []\n'
        'features.type: [sectors, corners]\n'
        'learner.parsimony: [0.1, 0.10]\n'
    )
    assert said.splitlines() == [
        'error: learner.bandwith is not a parameter of FilterNodeConfig, did you mean '
        'learner.bandwidth?',
        "learner.bandwidth must be a number of at least 1e-06 (got 'wide')",
        'learner.bandwidth must be a number of at least 1e-06 (got -1)',
        'learner.max_model_order must be a list of values, as [1, 2] (got 5)',
        'learner.tolerance must be a list of values, as [1, 2] (got [])',
        "features.type must be one of sectors, beams, range (got 'corners')",
        'learner.parsimony has the value 0.1 twice',
    ]


def test_values_that_do_not_go_together_are_named_together(refused):
    said = refused('learner.step: [auto, recursive]\nlearner.batch_size: [1, 2]\n')
    assert said.startswith('error: learner.step recursive, learner.batch_size 2: step=')
    assert said.count('\n') == 1
    said = refused('features.bearing_min: [0.0, 1.0, 9.0]\nfeatures.bearing_max: [0.5]\n')
    assert 'must be a number from -7 to 7 (got 9.0)' in said, 'single values before combinations'
    said = refused('features.bearing_min: [0.0, 1.0]\nfeatures.bearing_max: [0.5]\n')
    assert 'features.bearing_min 1.0, features.bearing_max 0.5: features: bearing_max must' in said


@pytest.mark.parametrize(
    ('text', 'message'),
    [('', 'holds no parameters'), ('{}', 'empty: expected lines like'), ('a: [', 'is not YAML')],
)
def test_a_file_that_is_no_grid_is_refused(refused, text, message):
    assert message in refused(text)


def test_a_grid_that_is_not_there_is_an_error_in_one_line(logs, capsys):
    assert main([str(logs), '--grid', 'none.yaml']) == 1
    assert (
        capsys.readouterr().err == 'error: none.yaml: cannot be read: No such file or directory\n'
    )


def test_a_grid_may_be_nested_flat_or_a_parameter_file(tmp_path):
    texts = (
        'learner.bandwidth: [1, 2.5]\n',
        'learner: {bandwidth: [1, 2.5]}\n',
        '/**: {ros__parameters: {learner: {bandwidth: [1, 2.5]}}}\n',
    )
    for text in texts:
        (tmp_path / 'grid.yaml').write_text(text)
        assert read_grid(tmp_path / 'grid.yaml') == {'learner.bandwidth': [1.0, 2.5]}


def test_settings_are_every_combination_on_top_of_the_base():
    base = from_flat(FilterNodeConfig, {'features.far': 7.0, 'learner.bandwidth': 9.0})
    grid = {'learner.bandwidth': [1.0, 2.0], 'features.sectors': [3, 4]}
    settings = settings_of(grid, base)
    assert [tuple(each.varied.values()) for each in settings] == [
        (1.0, 3), (1.0, 4), (2.0, 3), (2.0, 4),
    ]  # fmt: skip
    assert [each.config.learner.bandwidth for each in settings] == [1.0, 1.0, 2.0, 2.0]
    assert {each.config.features.far for each in settings} == {7.0}


def test_the_example_is_a_grid_for_scans():
    grid = read_grid(CONFIG / 'sweep.yaml')
    settings = settings_of(grid, read_config(CONFIG / 'filter.yaml'))
    assert len(settings) == np.prod([len(values) for values in grid.values()])


# -- what is compared ---------------------------------------------------------------------------


def setting(**varied):
    names = {name.replace('__', '.'): value for name, value in varied.items()}
    return Setting(names, from_flat(FilterNodeConfig, names))


def outcome(recording, mean, violation, order=5, **more):
    late = {'loss': {'mean': mean, 'cvar': 4.0 + (violation or 0.0), 'violation': violation}}
    return {
        'recording': recording, 'seconds': 1.0,
        'result': {'errors': {'late': late}, 'learner': {'largest_model_order': order}}, **more,
    }  # fmt: skip


LATE = Criteria.of(Options(), '', None)


def test_the_section_that_is_scored_is_the_one_that_counts_most():
    assert LATE.error == 'errors.late.loss.mean'
    assert Criteria.of(Options(split=0.5), '', None).error == 'errors.test.loss.mean'
    both = Criteria.of(Options(split=0.5, dropouts=((1.0, 2.0),)), '', None)
    assert both.bound == 'errors.dropout.loss.violation <= 0'
    assert both.tail == 'errors.dropout.loss.cvar'


def test_over_recordings_the_error_is_the_mean_and_the_rest_the_worst():
    (row,) = ranked(
        [setting(learner__bandwidth=1.0)],
        [[outcome('a', 1.0, -2.0, 7), outcome('b', 4.0, -1.0, 3)]], LATE,
    )  # fmt: skip
    assert row.scores[:4] == (2.5, -1.0, 3.0, 7)
    assert row.feasible


def test_feasible_come_first_by_error_then_the_others_by_violation_then_the_failed():
    given = {
        1.0: [outcome('a', 0.1, 0.2)],
        2.0: [outcome('a', 0.9, -0.1)],
        3.0: [{'recording': 'a', 'failed': 'broken'}],
        4.0: [outcome('a', 0.3, 0.0)],
        5.0: [outcome('a', 0.2, 0.1)],
    }
    settings = [setting(learner__bandwidth=each) for each in given]
    rows = ranked(settings, list(given.values()), LATE)
    assert [row.number for row in rows] == [4, 2, 5, 1, 3]
    assert [row.feasible for row in rows] == [True, True, False, False, False]
    assert rows[-1].failed == {'a': 'broken'}


def test_of_equal_settings_the_smaller_values_come_first():
    settings = [setting(learner__bandwidth=each) for each in (10.0, 9.0)]
    rows = ranked(settings, [[outcome('a', 1.0, 0.0)]] * 2, LATE)
    assert [row.setting.varied['learner.bandwidth'] for row in rows] == [9.0, 10.0]


def test_a_setting_that_failed_on_one_recording_is_not_feasible():
    (row,) = ranked(
        [setting(learner__bandwidth=1.0)],
        [[outcome('a', 1.0, -1.0), {'recording': 'b', 'failed': 'broken'}]], LATE,
    )  # fmt: skip
    assert (row.scores, row.feasible, row.failed) == (None, False, {'b': 'broken'})


@pytest.mark.parametrize(
    ('error', 'message'),
    [
        ('errors.late.forwards.rmse', "no figure 'forwards'; there is loss"),
        ('errors.late.loss.skewness', 'errors.late.loss.skewness is not known'),
    ],
)
def test_a_figure_that_is_not_there_is_a_failure_that_says_so(error, message):
    criteria = Criteria.of(Options(), error, None)
    given = outcome('a', 1.0, -1.0)
    given['result']['errors']['late']['loss']['skewness'] = None
    assert message in criteria.judged(given, setting(learner__bandwidth=1.0))


def test_a_filter_without_a_bound_is_held_to_the_tolerance_all_the_same():
    free = setting(learner__constrained=False, learner__tolerance=3.5)
    scores = LATE.judged(outcome('a', 1.0, None), free)
    assert scores.violation == pytest.approx(0.5)


@pytest.mark.parametrize(('relation', 'violation'), [('<=', -3.0), ('>=', 3.0)])
def test_any_figure_may_be_bounded(relation, violation):
    criteria = Criteria.of(Options(), '', Requirement('errors.late.loss.cvar', relation, 7.0))
    scores = criteria.judged(outcome('a', 1.0, 0.0), setting(learner__bandwidth=1.0))
    assert (scores.violation, scores.tail) == (violation, 4.0)


def test_the_front_holds_what_nothing_beats_in_both_respects():
    points = [(3.0, 1.0), (1.0, 3.0), (2.0, 3.0), (2.0, 2.0), (3.0, 2.0), (4.0, 1.0)]
    assert front(points) == [(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]


def test_names_are_short_where_that_is_enough():
    assert short_names(['a.type', 'b.type', 'b.far']) == ['a.type', 'b.type', 'far']


# -- what is written ----------------------------------------------------------------------------


def test_the_table_holds_every_setting_with_what_evaluate_finds(swept, logs, config):
    rows = table(swept)
    assert len(rows) == 6
    assert {row['feasible'] for row in rows} == {'true', 'false'}, 'the bound tells them apart'
    for row in (rows[0], rows[-1]):
        names = {name: row[name] for name in row if name.startswith('learner.')}
        given = read_parameter_file(config, 'filter_node')
        with_row = from_flat(FilterNodeConfig, {**given, **names})
        results = [evaluate(path, with_row) for path in sorted(logs.iterdir())]
        late = [figure(result, 'errors.late.loss.mean') for result in results]
        tail = [figure(result, 'errors.late.loss.violation') for result in results]
        assert float(row['error']) == sum(late) / 2
        assert float(row['violation']) == max(tail)


def test_the_best_setting_is_what_the_node_reads_and_gives_what_the_table_says(swept, logs):
    best = table(swept)[0]
    config = read_config(swept / 'best.yaml')
    assert config == from_flat(
        FilterNodeConfig, read_parameter_file(swept / 'best.yaml', '/robot/filter_node')
    )
    assert config.learner.bandwidth == float(best['learner.bandwidth'])
    results = [evaluate(path, config) for path in sorted(logs.iterdir())]
    errors = [figure(result, 'errors.late.loss.mean') for result in results]
    assert float(best['error']) == sum(errors) / 2
    assert '# Topics: scan:=scan pose:=pose' in (swept / 'best.yaml').read_text()


def test_a_learner_that_drops_the_tail_is_swept_beside_one_that_bounds_it(config, tmp_path):
    logs, grid = tmp_path / 'logs', tmp_path / 'grid.yaml'
    logs.mkdir()
    (logs / 'drive.log').write_text(drive(1, wrong=range(40, 150, 15)))
    grid.write_text(
        'learner.algorithm: [primal_dual, subquantile]\n'
        'learner.corruption: [0.0, 0.3]\nlearner.tolerance: [1.0e+6]\n'
        'learner.bandwidth: [4.0]\nlearner.max_model_order: [10]'
    )
    assert main(arguments(logs, config, grid, tmp_path, '--jobs', 1)) == 0
    rows = {(row['learner.algorithm'], row['learner.corruption']): row for row in table(tmp_path)}
    assert len(rows) == 4
    errors = {names: float(row['error']) for names, row in rows.items()}
    assert errors['primal_dual', '0.0'] == errors['primal_dual', '0.3'], 'it has no such share'
    assert errors['subquantile', '0.0'] != errors['subquantile', '0.3']
    best = read_config(tmp_path / 'best.yaml').learner
    named = best.algorithm, str(best.corruption)
    feasible = [names for names, row in rows.items() if row['feasible'] == 'true']
    assert errors[named] == min(errors[names] for names in feasible or rows)


def test_the_trade_off_is_drawn(swept):
    picture = (swept / 'tradeoff.png').read_bytes()
    assert picture.startswith(b'\x89PNG')
    assert len(picture) > 20_000


def test_two_processes_find_the_same(swept, logs, config, grid, tmp_path, capsys):
    assert main(arguments(logs, config, grid, tmp_path, '--jobs', 2)) == 0
    assert tables(tmp_path) == tables(swept)
    assert '12 evaluations, 0 of them done before' in capsys.readouterr().out


def test_a_second_run_evaluates_nothing(swept, logs, config, grid, monkeypatch, capsys):
    before = tables(swept)
    monkeypatch.setattr(sweep_task, 'evaluate', None)
    assert main(arguments(logs, config, grid, swept, '--jobs', 1)) == 0
    assert '12 of them done before' in capsys.readouterr().out
    assert tables(swept) == before


def test_what_decides_a_result_decides_its_name(logs, monkeypatch):
    source = Source.of(str(logs / 'drive_1.log'), 'one')
    first = setting(learner__bandwidth=1.0)

    def key(source=source, setting=first, options=Options()):  # noqa: B008  (frozen)
        return Task.of(source, setting, options).key

    changed = [(name, size, stamp + 1) for name, size, stamp in source.files]
    keys = {
        key(),
        key(source=source._replace(path='elsewhere')),
        key(source=source._replace(files=tuple(changed))),
        key(setting=setting(learner__bandwidth=2.0)),
        key(options=Options(split=0.5)),
    }
    monkeypatch.setattr(sweep_task, 'versions', lambda: 'another')
    assert len(keys | {key()}) == 6
    assert key(source=source._replace(name='another')) == key(), 'what it is called does not'


def test_the_files_of_a_recording_are_its_own(logs, tmp_path):
    with BagWriter(tmp_path / 'a.mcap') as writer, open_recording(logs / 'drive_1.log') as log:
        for message in log.messages():
            writer.write(message)
    assert files_of('lidar') == ()
    ((name, size, _),) = files_of(str(tmp_path))
    assert (name, size) == ('a.mcap', (tmp_path / 'a.mcap').stat().st_size)


# -- what goes wrong ----------------------------------------------------------------------------


@pytest.fixture
def with_broken(logs, tmp_path):
    """Return the recordings, and one without scans."""
    folder = shutil.copytree(logs, tmp_path / 'logs')
    (folder / 'broken.log').write_text('ODOM'.ljust(len(drive(3))))
    return folder


def test_a_recording_that_fails_does_not_end_the_sweep_and_is_tried_again(
    with_broken, config, grid, tmp_path, capsys
):
    output = tmp_path / 'out'
    sources = [str(with_broken / f'{name}.log') for name in ('drive_1', 'broken')]
    command = [*sources, *arguments(with_broken, config, grid, output, '--jobs', 1)[1:]]
    (output / 'results').mkdir(parents=True)
    (output / 'best.yaml').write_text('of an earlier sweep')
    assert main(command) == 3
    said = capsys.readouterr()
    assert said.err.count('broken.log, ') == 1, 'the same reason once'
    assert '6 of 12 evaluations failed; run again to try them again' in said.err
    assert 'every setting failed on broken.log: leave it out' in said.err
    assert said.out.count('failed on broken.log') == 6
    assert {row['failed'] for row in table(output)} == {'broken.log'}
    assert not (output / 'best.yaml').exists()
    assert len(json.loads((output / 'sweep.json').read_text())['settings'][0]['recordings']) == 1

    # mended so that nothing tells: the same size and time of change
    before = (with_broken / 'broken.log').stat()
    (with_broken / 'broken.log').write_text(drive(3))
    os.utime(with_broken / 'broken.log', ns=(before.st_atime_ns, before.st_mtime_ns))
    assert main(command) == 0
    assert '6 of them done before' in capsys.readouterr().out
    assert (output / 'best.yaml').exists()


def test_where_every_evaluation_fails_nothing_is_written(config, grid, tmp_path, capsys, logs):
    command = arguments(logs, config, grid, tmp_path, '--jobs', 1, '--dropout', '900:901')
    assert main(command) == 1
    said = capsys.readouterr().err
    assert 'dropout 900:901 is outside of' in said
    assert said.splitlines()[-1] == 'error: no evaluation succeeded'
    assert sorted(path.name for path in tmp_path.iterdir()) == ['results']


def test_an_unexpected_error_is_a_failure_too(logs, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError('float division by zero')

    monkeypatch.setattr(sweep_task, 'evaluate', broken)
    source = Source.of(str(logs / 'drive_1.log'), 'one')
    task = Task.of(source, setting(learner__bandwidth=1.0), Options())
    assert sweep_task.perform(task)['failed'] == 'ZeroDivisionError: float division by zero'


def test_other_code_refuses_a_task(logs):
    source = Source.of(str(logs / 'drive_1.log'), 'one')
    task = Task.of(source, setting(learner__bandwidth=1.0), Options())._replace(versions='0.0')
    assert sweep_task.perform(task)['failed'].endswith('wanted is 0.0')


def test_without_a_feasible_setting_the_least_violation_is_written(
    logs, config, grid, tmp_path, capsys
):
    command = arguments(logs, config, grid, tmp_path, '--jobs', 1)
    assert main([*command, '--constraint', 'errors.late.loss.mean <= 0.001']) == 3
    assert 'errors.late.loss.mean <= 0.001 holds with no setting' in capsys.readouterr().err
    rows = table(tmp_path)
    assert not (tmp_path / 'best.yaml').exists()
    assert read_config(tmp_path / 'least_violation.yaml').learner.max_model_order == int(
        rows[0]['learner.max_model_order']
    )
    violations = [float(row['violation']) for row in rows]
    assert violations == sorted(violations)
    assert violations[0] > 0.0


def test_another_figure_sorts_otherwise_from_the_same_results(
    swept, logs, config, grid, tmp_path, capsys
):
    shutil.copytree(swept / 'results', tmp_path / 'results')
    command = arguments(logs, config, grid, tmp_path, '--jobs', 1, '--top', 2)
    name = 'errors.late.left.rmse'
    assert main([*command, '--sort', name, '--constraint', 'errors.late.yaw.rmse <= 10']) == 0
    said = capsys.readouterr().out
    assert '12 of them done before' in said
    assert '... and 4 more in sweep.csv' in said
    rows = table(tmp_path)
    errors = [float(row['error']) for row in rows]
    assert errors == sorted(errors)
    assert {row['feasible'] for row in rows} == {'true'}
    assert [row['setting'] for row in rows] != [row['setting'] for row in table(swept)]
    results = [json.loads(path.read_text()) for path in (swept / 'results').iterdir()]
    assert sum(errors) == pytest.approx(sum(figure(each['result'], name) for each in results) / 2)


def test_a_figure_that_is_not_in_the_results_is_said_though_all_were_there_before(
    swept, logs, config, grid, tmp_path, capsys
):
    shutil.copytree(swept / 'results', tmp_path / 'results')
    command = arguments(logs, config, grid, tmp_path, '--sort', 'errors.late.forwards.rmse')
    assert main(command) == 1
    said = capsys.readouterr().err
    assert said.count("no figure 'forwards'; there is count, loss, forward, left, yaw") == 1


@pytest.mark.parametrize(
    ('lines', 'message'),
    [
        ('target.yaw_scale: [0.1, 0.2]', 'the loss is in units of these'),
        ('learner.tolerance: [1.0, 9.0]', 'each setting is held to its own bound'),
    ],
)
def test_settings_that_are_not_compared_like_with_like_are_warned_of(
    lines, message, logs, config, tmp_path, monkeypatch, capsys
):
    (tmp_path / 'grid.yaml').write_text(lines)
    monkeypatch.setattr('kernel_constrained.offline.sweep.performed', nothing_done)
    main(arguments(logs, config, tmp_path / 'grid.yaml', tmp_path))
    assert message in capsys.readouterr().err


def nothing_done(*_):
    raise RecordingError('nothing done')


def test_a_recording_that_is_not_there_is_said_before_anything_runs(grid, tmp_path, capsys):
    output = tmp_path / 'out'
    assert main(['none.log', '--grid', str(grid), '--output', str(output)]) == 1
    assert capsys.readouterr().err == (
        'error: none.log: cannot be read (No such file or directory)\n'
    )
    assert not output.exists()


def test_what_an_earlier_sweep_left_is_removed_before_anything_can_fail(grid, tmp_path, capsys):
    for name in TABLES:
        (tmp_path / name).write_text('of an earlier sweep')
    assert main(['none.log', '--grid', str(grid), '--output', str(tmp_path)]) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('option', ['--config', '--grid'])
def test_an_input_that_would_be_removed_is_refused(option, logs, config, grid, tmp_path, capsys):
    best = tmp_path / 'best.yaml'
    best.write_text({'--config': config, '--grid': grid}[option].read_text())
    assert main([*arguments(logs, config, grid, tmp_path), option, str(best)]) == 1
    assert f'error: {best}: to be read, and to be overwritten: copy it' in capsys.readouterr().err
    assert best.exists()


def test_an_output_that_cannot_be_written_is_said_before_anything_runs(
    logs, config, grid, tmp_path, capsys
):
    (tmp_path / 'out').write_text('a file')
    assert main(arguments(logs, config, grid, tmp_path / 'out')) == 1
    assert 'cannot be written to (File exists)' in capsys.readouterr().err


@pytest.mark.parametrize(
    'more', [['--jobs', '0'], ['--top', 'all'], ['--constraint', 'a < 0'], ['--split', '1.5']]
)
def test_wrong_arguments_end_with_code_2(more, grid, capsys):
    with pytest.raises(SystemExit) as caught:
        main(['lidar', '--grid', str(grid), *more])
    assert caught.value.code == 2
    assert f'argument {more[0]}' in capsys.readouterr().err


# -- going on, and clusters ---------------------------------------------------------------------


@contextmanager
def running(command):
    """Run the command as a process group of its own, which is killed at the end."""
    with subprocess.Popen(
        [sys.executable, '-m', 'kernel_constrained', 'sweep', *command], cwd=REPOSITORY,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def wait_for_results(process, folder, number):
    while len(list(folder.glob('results/*.json'))) < number:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.005)


def test_a_sweep_that_was_killed_goes_on_where_it_was(swept, logs, config, grid, tmp_path, capsys):
    command = arguments(logs, config, grid, tmp_path, '--jobs', 2)
    with running(command) as process:
        wait_for_results(process, tmp_path, 3)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (tmp_path / 'sweep.csv').exists()
    stored = {path.name for path in tmp_path.glob('results/*.json')}
    assert 3 <= len(stored) < 12
    assert main(command) == 0
    assert f'{len(stored)} of them done before' in capsys.readouterr().out
    assert table(tmp_path) == table(swept)


@pytest.fixture(scope='module')
def cluster():
    """Two worker processes of a dask cluster."""
    distributed = pytest.importorskip('distributed', reason='distributed is not installed')
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


def test_a_cluster_finds_the_same(cluster, swept, logs, config, grid, tmp_path):
    command = arguments(logs, config, grid, tmp_path, '--scheduler', cluster.scheduler_address)
    assert main(command) == 0
    assert tables(tmp_path) == tables(swept)


def test_a_sweep_is_complete_though_a_worker_is_killed(
    cluster, swept, logs, config, grid, tmp_path
):
    pids = [worker.pid for worker in cluster.workers.values()]
    command = arguments(logs, config, grid, tmp_path, '--scheduler', cluster.scheduler_address)
    with running(command) as process:
        wait_for_results(process, tmp_path, 3)
        os.kill(pids[0], signal.SIGKILL)
        assert len(list(tmp_path.glob('results/*.json'))) < 12
        said, _ = process.communicate()
    assert process.returncode == 0, said
    assert tables(tmp_path) == tables(swept)


def test_a_scheduler_that_is_not_there_is_said_in_one_line(
    logs, config, grid, tmp_path, capfd, monkeypatch
):
    pytest.importorskip('distributed', reason='distributed is not installed')
    monkeypatch.setattr(sweep_engines, 'PATIENCE', 0.5)
    assert main(arguments(logs, config, grid, tmp_path, '--scheduler', 'tcp://127.0.0.1:9')) == 1
    said = capfd.readouterr().err
    assert said.startswith('error: no dask scheduler at tcp://127.0.0.1:9 (')
    assert said.count('\n') == 1


class Cluster:
    """A client whose workers and scheduler answer as they are told."""

    def __init__(self, **answers):
        self.answers = answers

    def run(self, function, *_, **__):
        return {'tcp://worker': self.answers[function.__name__]}

    def run_on_scheduler(self, function):
        answer = self.answers['scheduler']
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ('answers', 'message'),
    [
        ({'scheduler': 'old'}, 'the scheduler has old, here is kernel_constrained'),
        ({'scheduler': ImportError('No module')}, 'the scheduler has No module, here is'),
        ({'versions': 'old'}, 'tcp://worker has old, here is kernel_constrained'),
        ({'versions': ImportError('No module')}, 'tcp://worker has No module, here is'),
        ({'sizes_of': [None]}, r'cannot read .*drive_1\.log: recordings must be the same'),
        ({'sizes_of': [[('drive_1.log', 1)]]}, r'has other files at .*drive_1\.log'),
    ],
)
def test_a_cluster_with_other_code_or_recordings_is_refused(logs, answers, message):
    source = Source.of(str(logs / 'drive_1.log'), 'one')
    task = Task.of(source, setting(learner__bandwidth=1.0), Options())
    here = sweep_task.versions()
    fitting = {
        'scheduler': here, 'versions': here, 'sizes_of': sweep_task.sizes_of([source.path]),
    }  # fmt: skip
    sweep_engines.check_cluster(Cluster(**fitting), [task])
    with pytest.raises(sweep_engines.EngineError, match=message):
        sweep_engines.check_cluster(Cluster(**{**fitting, **answers}), [task])
