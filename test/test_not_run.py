# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A run of the tests ends with what was not run and why."""

from pathlib import Path

import pytest

pytest_plugins = ['pytester']


@pytest.fixture
def run(pytester):
    """Return a function that runs these modules and returns the end of what pytest prints."""
    pytester.makeini('[pytest]')
    pytester.makeconftest((Path(__file__).parent / 'conftest.py').read_text(encoding='utf-8'))

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
