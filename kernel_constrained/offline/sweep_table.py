# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The outcomes of a sweep brought together: a row for each setting, the best one first."""

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kernel_constrained.offline.arguments import Options, Requirement
from kernel_constrained.offline.evaluation import DROPOUT, TEST
from kernel_constrained.offline.summary import figure
from kernel_constrained.offline.sweep_grid import Setting
from kernel_constrained.offline.sweep_task import Outcome, plain


class Criteria(NamedTuple):
    """What settings are compared by.

    Attributes
    ----------
    error : str
        Figure that is to be small, by its name in ``result.json``.
    constraint : Requirement
        What must hold on every recording.
    section : str
        The estimates that are scored.
    """

    error: str
    constraint: Requirement
    section: str

    @classmethod
    def of(cls, options: Options, error: str, constraint: Requirement | None) -> 'Criteria':
        """Choose what is not given: the loss, and its tail, of the estimates that count most."""
        section = DROPOUT if options.dropouts else TEST if options.split < 1.0 else 'late'
        loss = f'errors.{section}.loss'
        return cls(
            error or f'{loss}.mean',
            constraint or Requirement(f'{loss}.violation', '<=', 0.0),
            section,
        )

    @property
    def tail(self) -> str:
        """Figure that the trade-off is drawn over: the CVaR, where it is what is bounded."""
        name = self.constraint.name
        return f'{name.removesuffix("violation")}cvar' if name.endswith('.violation') else name

    @property
    def bound(self) -> str:
        """Return the constraint, as a person writes it."""
        name, relation, value = self.constraint
        return f'{name} {relation} {value:g}'

    def judged(self, outcome: Outcome, setting: Setting) -> 'Scores | str':
        """Return the scores of an outcome, or why there are none."""
        if 'failed' in outcome:
            return str(outcome['failed'])
        try:
            return self._scores(outcome, setting)
        except KeyError as error:
            return str(error.args[0])

    def _scores(self, outcome: Outcome, setting: Setting) -> 'Scores':
        result = outcome['result']
        figures = {name: figure(result, name) for name in (self.error, self.tail)}
        value = figures[self.constraint.name] = self._constrained(result, setting)
        if unknown := [name for name, each in figures.items() if math.isnan(each)]:
            raise KeyError(f'{", ".join(unknown)} is not known')
        bound = self.constraint.value
        return Scores(
            figures[self.error],
            value - bound if self.constraint.relation == '<=' else bound - value,
            figures[self.tail],
            result['learner']['largest_model_order'],
            outcome['seconds'],
        )

    def _constrained(self, result: dict[str, Any], setting: Setting) -> float:
        """Return the figure that is bounded; a filter that bounds no tail is held to it, too."""
        value = figure(result, self.constraint.name)
        if math.isnan(value) and self.constraint.name.endswith('.violation'):
            return figure(result, self.tail) - setting.config.learner.tolerance
        return value


class Scores(NamedTuple):
    """Figures of a setting on a recording, or on all of them: mean error, else the largest.

    Attributes
    ----------
    violation : float
        By how much the constraint does not hold; at most 0 where it does.
    """

    error: float
    violation: float
    tail: float
    order: int
    seconds: float


class Row(NamedTuple):
    """A setting with what it achieved.

    Attributes
    ----------
    number : int
        Place of the setting in the grid, from 1.
    scores : Scores or None
        None where it failed on a recording.
    each : dict
        Scores by recording.
    failed : dict of str to str
        Recordings that it failed on, and why.
    """

    number: int
    setting: Setting
    scores: Scores | None
    each: dict[str, Scores]
    failed: dict[str, str]

    @property
    def feasible(self) -> bool:
        """Whether the constraint holds on every recording."""
        return self.scores is not None and self.scores.violation <= 0.0

    @property
    def place(self) -> tuple[Any, ...]:
        """Return what rows are sorted by: feasible ones by error, the others by violation."""
        values = tuple(self.setting.varied.values())
        if self.scores is None:
            return (2, values)
        error, violation = self.scores[:2]
        return (0, error, values) if self.feasible else (1, violation, error, values)


def ranked(
    settings: Sequence[Setting], outcomes: Sequence[Sequence[Outcome]], criteria: Criteria
) -> list[Row]:
    """Return a row for each setting, the best one first.

    Parameters
    ----------
    settings
        In the order of the grid.
    outcomes
        Of each setting, one for each recording.
    criteria
        What they are compared by.
    """
    rows = [
        _row(number, setting, of_setting, criteria)
        for number, (setting, of_setting) in enumerate(zip(settings, outcomes, strict=True), 1)
    ]
    return sorted(rows, key=lambda row: row.place)


def _row(number: int, setting: Setting, outcomes: Sequence[Outcome], criteria: Criteria) -> Row:
    each: dict[str, Scores] = {}
    failed: dict[str, str] = {}
    for outcome in outcomes:
        judged = criteria.judged(outcome, setting)
        if isinstance(judged, str):
            failed[outcome['recording']] = judged
        else:
            each[outcome['recording']] = judged
    scores = None if failed else _over_recordings(list(each.values()))
    return Row(number, setting, scores, each, failed)


def _over_recordings(each: list[Scores]) -> Scores:
    error, violation, tail, order, seconds = zip(*each, strict=True)
    return Scores(
        math.fsum(error) / len(error), max(violation), max(tail), max(order), math.fsum(seconds)
    )


# -- written ------------------------------------------------------------------------------------


def table_text(rows: Sequence[Row], top: int) -> str:
    """Lay the best rows out as a table."""
    shown = rows[:top]
    names = short_names(list(rows[0].setting.varied))
    head = [*names, 'error', 'violation', 'order', 'seconds', '']
    cells = [head, *(_cells(row) for row in shown)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    lines = ['  '.join(f'{cell:>{width}}' for cell, width in zip(line, widths, strict=True))
             for line in cells]  # fmt: skip
    if len(rows) > top:
        lines.append(f'... and {len(rows) - top} more in sweep.csv')
    return '\n'.join(line.rstrip() for line in lines)


def _cells(row: Row) -> list[str]:
    values = [str(value) for value in row.setting.varied.values()]
    if row.scores is None:
        return [*values, 'n/a', 'n/a', 'n/a', 'n/a', f'failed on {", ".join(row.failed)}']
    error, violation, _, order, seconds = row.scores
    remark = '' if row.feasible else 'violated'
    return [*values, f'{error:.5g}', f'{violation:.3g}', str(order), f'{seconds:.2f}', remark]


def short_names(names: Sequence[str]) -> list[str]:
    """Return the last parts of dotted names, whole ones where these are the same."""
    last = [name.rpartition('.')[2] for name in names]
    return [
        short if last.count(short) == 1 else name for name, short in zip(names, last, strict=True)
    ]


def write_tables(rows: Sequence[Row], about: dict[str, Any], folder: Path) -> None:
    """Write ``sweep.csv`` and ``sweep.json``, which the same sweep makes again bit for bit.

    What differs from run to run stands apart, in ``timing.csv``.
    """
    names = list(rows[0].setting.varied)
    figures = ['error', 'violation', 'tail', 'order']
    _write_csv(
        folder / 'sweep.csv',
        ['rank', 'setting', *names, *figures, 'feasible', 'failed'],
        [
            [rank, row.number, *row.setting.varied.values(),
             *(row.scores[:4] if row.scores else [''] * 4),
             str(row.feasible).lower(), ' '.join(row.failed)]
            for rank, row in enumerate(rows, 1)
        ],
    )  # fmt: skip
    _write_csv(
        folder / 'timing.csv',
        ['setting', 'recording', 'seconds'],
        [
            [row.number, name, scores.seconds]
            for row in sorted(rows, key=lambda row: row.number)
            for name, scores in row.each.items()
        ],
    )
    content = {**about, 'settings': [_described(row) for row in rows]}
    text = json.dumps(content, indent=2) + '\n'
    (folder / 'sweep.json').write_text(text, encoding='utf-8')


def _write_csv(path: Path, head: list[str], lines: list[list[Any]]) -> None:
    with path.open('w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerows([head, *lines])


def _described(row: Row) -> dict[str, Any]:
    return {
        'setting': row.number,
        'parameters': plain(row.setting.varied),
        'feasible': row.feasible,
        **_figures(row.scores),
        'recordings': {name: _figures(scores) for name, scores in row.each.items()},
        'failed': row.failed,
    }


def _figures(scores: Scores | None) -> dict[str, float]:
    if scores is None:
        return {}
    return {name: value for name, value in scores._asdict().items() if name != 'seconds'}
