# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""How tests are shared out, and that a run ends with what was not run and why."""

from pathlib import Path

import pytest

pytest_plugins = ['pytester']


@pytest.fixture(autouse=True)
def configured(pytester):
    # launch's own plug-ins collect folders otherwise
    pytester.makeini(
        '[pytest]\naddopts = -p no:launch_testing -p no:launch_pytest -p no:launch_ros'
    )
    pytester.makeconftest((Path(__file__).parent / 'conftest.py').read_text(encoding='utf-8'))


@pytest.fixture
def run(pytester):
    """Return a function that runs these modules and returns the end of what pytest prints."""

    def end_of_output(*options, **modules):
        pytester.makepyfile(**modules)
        *_, end = pytester.runpytest(*options).stdout.str().partition(' not run ===')
        return [line for line in end.splitlines() if line.strip('=') and 'passed' not in line]

    return end_of_output


PASSES = 'def test_a(): pass\ndef test_b(): pass'
SKIPS = """
import pytest
@pytest.mark.parametrize('name', 'ab')
def test_shared(name): pytest.skip(f'shared data is absent: {name}')
def test_other(): pytest.skip('shared data is absent')
"""
IMPORTS = "import pytest; pytest.importorskip('no_such_module', reason='it is missing: no test')"


def test_a_line_for_each_reason_names_the_files(run):
    assert run(test_first=SKIPS, test_second=SKIPS, test_third=IMPORTS, test_fourth=PASSES) == [
        'it is missing: test_third.py (all)',
        'shared data is absent: test_first.py (3), test_second.py (3)',
    ]


def test_what_was_not_chosen_is_counted(run):
    assert run('-k', 'test_a', test_first=PASSES) == ['not chosen: 1 tests']


def test_where_all_was_run_it_says_so(run):
    assert run(test_first=PASSES) == ['nothing: every test was run']


NOTES = """
import os, pathlib, time, pytest
@pytest.mark.parametrize('number', range(6))
def test_one(number):
    time.sleep(0.05)
    with open('course.txt', 'a') as file:
        file.write(f"{os.environ['PYTEST_XDIST_WORKER']} {pathlib.Path(__file__).stem}\\n")
"""


def test_a_module_has_one_worker_and_tests_of_nodes_go_to_any_in_between(pytester):
    pytest.importorskip('xdist', reason='pytest-xdist is not installed: its use was not tested')
    pytester.makepyfile(test_first=NOTES, test_second=NOTES, **{'nodes/test_third': NOTES})
    result = pytester.runpytest('-n', '2', '--dist', 'loadscope', '--no-loadscope-reorder')
    result.assert_outcomes(passed=18)
    course = [line.split() for line in (pytester.path / 'course.txt').read_text().splitlines()]
    workers = {name: {worker for worker, module in course if module == name} for _, name in course}
    assert [len(workers[f'test_{name}']) for name in ('first', 'second', 'third')] == [1, 1, 2]
    order = [module for _, module in course]
    assert order.index('test_third') < order.index('test_second')
