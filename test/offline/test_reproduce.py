# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The command `reproduce`: which experiments run, what is printed and written."""

import sys
from types import SimpleNamespace

import pytest

from kernel_constrained.offline import reproduce
from kernel_constrained.offline.reproduction.report import Row, table_text


@pytest.fixture
def ran(monkeypatch):
    """Put quick experiments in the place of the real ones; list which ones ran."""
    names = []

    def quick(name):
        def run(output):
            names.append(name)
            (output / f'{name}.png').write_bytes(b'')
            return [Row(f'claim of {name}', '96 %', '70 %', 'a | b')]

        return SimpleNamespace(run=run)

    for name in reproduce.EXPERIMENTS:
        module = f'kernel_constrained.offline.reproduction.{name}'
        monkeypatch.setitem(sys.modules, module, quick(name))
    return names


def test_one_experiment_runs_alone_and_its_table_is_printed_and_written(ran, tmp_path, capsys):
    assert reproduce.main(['svm', '--output', str(tmp_path / 'new')]) == 0
    assert ran == ['svm']
    written = (tmp_path / 'new' / 'svm.md').read_text()
    line = r'| claim of svm | 96 % | 70 % | a \| b |'
    assert line in written
    assert line in capsys.readouterr().out


def test_all_runs_every_experiment(ran, tmp_path):
    assert reproduce.main(['all', '--output', str(tmp_path)]) == 0
    assert ran == list(reproduce.EXPERIMENTS)
    assert sorted(path.name for path in tmp_path.glob('*.md')) == sorted(
        f'{name}.md' for name in reproduce.EXPERIMENTS
    )


def test_a_table_of_before_does_not_stand_for_an_experiment_that_fails(ran, tmp_path, monkeypatch):
    assert reproduce.main(['all', '--output', str(tmp_path)]) == 0
    monkeypatch.setattr(sys.modules['kernel_constrained.offline.reproduction.svm'], 'run', None)
    with pytest.raises(TypeError):
        reproduce.main(['svm', '--output', str(tmp_path)])
    assert not (tmp_path / 'svm.md').exists()
    assert (tmp_path / 'rates.md').exists()


def test_an_output_that_is_no_folder_is_said(ran, tmp_path, capsys):
    (tmp_path / 'file').touch()
    assert reproduce.main(['svm', '--output', str(tmp_path / 'file')]) == 1
    assert f'error: {tmp_path / "file"}: cannot be written to (File exi' in capsys.readouterr().err
    assert not ran


def test_an_unknown_experiment_is_named_with_those_there_are(capsys):
    with pytest.raises(SystemExit) as stopped:
        reproduce.main(['motion'])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert all(word in said for word in ('motion', 'lidar', 'svm', 'rates', 'all'))


def test_help_fits_a_screen_and_names_the_experiments(capsys):
    with pytest.raises(SystemExit):
        reproduce.main(['--help'])
    said = capsys.readouterr().out
    assert len(said.splitlines()) <= 24
    assert all(f'  {name} ' in said for name in (*reproduce.EXPERIMENTS, 'all'))


def test_a_table_has_a_column_for_each_thing_said():
    lines = table_text([Row('order', 'bounded', '37')]).splitlines()
    assert lines[0] == '| what | paper says | we measured | remark |'
    assert lines[1].count('|') == 5
    assert lines[2] == '| order | bounded | 37 |  |'
