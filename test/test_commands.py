# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m kernel_constrained``: what it can do, and how it ends."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernel_constrained import __main__ as commands
from kernel_constrained.configuration import fields
from kernel_constrained.offline.parameters import NODES

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs a command line in this process and returns its exit code."""

    def code_of(*arguments):
        monkeypatch.setattr(sys, 'argv', ['kernel_constrained', *arguments])
        return commands.main()

    return code_of


@pytest.mark.parametrize(('arguments', 'code'), [((), 2), (('--help',), 0), (('-h',), 0)])
def test_without_a_command_it_says_which_there_are(run, capsys, arguments, code):
    assert run(*arguments) == code
    output = capsys.readouterr().out
    assert all(f'\n  {name} ' in output for name in commands.COMMANDS)


def test_what_is_no_command_is_named(run, capsys):
    assert run('evalute', 'bag') == 2
    error = capsys.readouterr().err
    assert error.startswith("'evalute' is no command\nusage: ")
    assert '  evaluate ' in error


def raising(error):
    def main():
        raise error

    return lambda _: SimpleNamespace(main=main)


def test_a_ctrl_c_ends_it_with_130(run, monkeypatch):
    monkeypatch.setattr(commands, 'imported', raising(KeyboardInterrupt()))
    assert run('evaluate') == 130


def test_arguments_and_exit_code_are_those_of_the_command(run, monkeypatch):
    seen = []
    module = SimpleNamespace(main=lambda: seen.append(sys.argv[1:]))
    monkeypatch.setattr(commands, 'imported', lambda name: seen.append(name) or module)
    assert run('evaluate', 'bag', '--output', 'out') == 0
    assert seen == ['offline.evaluate', ['bag', '--output', 'out']]
    module.main = lambda: 3
    assert run('evaluate') == 3


# A Ctrl-C that comes in an import which swallows exceptions.
SWALLOWED = """
import importlib, signal, sys
from kernel_constrained import __main__ as commands

def import_module(name):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pass
    return sys

importlib.import_module = import_module
sys.main = lambda: print('was started')
sys.exit(commands.main())
"""


def test_a_ctrl_c_during_an_import_is_not_lost():
    result = subprocess.run(
        [sys.executable, '-c', SWALLOWED, 'evaluate'], capture_output=True, text=True,
        check=False, env={**os.environ, 'PYTHONPATH': str(REPOSITORY)},
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (130, ''), result.stderr
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_output_that_nobody_reads_any_more_is_no_error():
    with subprocess.Popen(
        [sys.executable, '-m', 'kernel_constrained', 'parameters'], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, 'PYTHONPATH': str(REPOSITORY)},
    ) as process:  # fmt: skip
        process.stdout.close()
        assert process.stderr.read() == b''
        assert process.wait() == 141


@pytest.mark.parametrize('name', NODES)
def test_help_of_a_node_names_every_parameter(run, capsys, name):
    pytest.importorskip('rclpy', reason='rclpy is not installed: help of nodes was not tested')
    assert run(name, '--help') == 0
    output = capsys.readouterr().out
    assert output.startswith(f'usage: {name} ')
    named = set(re.findall(r'\w+', output))
    assert {part for path, _ in fields(NODES[name]) for part in path.split('.')} <= named
