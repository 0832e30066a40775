# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The page of parameters says what the configuration classes say, and is current."""

from pathlib import Path

import pytest

from kernel_constrained.configuration import fields
from kernel_constrained.offline.parameters import main, NODES, page

PAGE = Path(__file__).resolve().parents[2] / 'doc' / 'parameters.md'


def test_page_in_the_repository_is_current():
    assert PAGE.read_text(encoding='utf-8') == page(), (
        'run: python -m kernel_constrained parameters --output doc/parameters.md'
    )


def test_page_has_every_parameter_of_every_node_once_with_its_default_and_meaning():
    text = page()
    for node, cls in NODES.items():
        section = text.split(f'## {node}\n')[1].split('\n## ')[0]
        for name, field in fields(cls):
            (row,) = [line for line in section.splitlines() if line.startswith(f'| `{name}` |')]
            assert field.metadata['description'] in row
            assert ('| running |' in row) == field.metadata['runtime']
    assert '| `features.sectors` | `24` | an integer from 1 to 4096 |' in text
    assert '| `pose.max_jump` | `.inf` | a number of at least 0 | running |' in text


def test_page_is_printed_or_written(tmp_path, capsys):
    assert main([]) == 0
    assert capsys.readouterr().out == page()
    assert main(['--output', str(tmp_path / 'page.md')]) == 0
    assert (tmp_path / 'page.md').read_text(encoding='utf-8') == page()


@pytest.mark.parametrize(
    ('output', 'why'), [('no/page.md', 'No such file or directory'), ('', 'Is a directory')]
)
def test_an_output_that_cannot_be_written_is_said(output, why, tmp_path, capsys):
    assert main(['--output', str(tmp_path / output)]) == 1
    error = capsys.readouterr().err
    assert (
        error == f'error: {tmp_path / output}: cannot be written to ({why}): choose another '
        'by --output\n'
    )
