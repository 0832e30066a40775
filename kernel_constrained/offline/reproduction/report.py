# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the paper says beside what was measured, as a table in markdown."""

import attrs

HEAD = ('what', 'paper says', 'we measured', 'remark')


@attrs.frozen
class Row:
    """One claim of the paper, or one figure asked of us.

    Attributes
    ----------
    what
        The claim or the figure.
    paper
        What the paper says of it; empty where it says nothing.
    measured
        What came out here, as text: with its unit, and over how many runs.
    remark
        Why they differ, or what else there is to say.
    """

    what: str
    paper: str
    measured: str
    remark: str = ''


def table_text(rows: list[Row]) -> str:
    """Lay the rows out as a table in markdown."""
    cells = [HEAD, *(attrs.astuple(row) for row in rows)]
    lines = ['| ' + ' | '.join(cell.replace('|', r'\|') for cell in row) + ' |' for row in cells]
    return '\n'.join([lines[0], '|---' * len(HEAD) + '|', *lines[1:]]) + '\n'
