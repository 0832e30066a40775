# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluations as lines of text and as a table."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kernel_constrained.offline.evaluation import DROPOUT, TEST
from kernel_constrained.offline.summary import section_of_interest

SECTIONS = {
    'all': 'all',
    'late': 'last 30 %',
    TEST: 'test, not learned',
    DROPOUT: 'dropouts',
}

# Figures of a component that a comparison is written with.
FIGURES = ('rmse', 'bias', 'mae', 'median', 'p95', 'largest', 'r_squared',
           'rmse_of_running_mean', 'within_90_percent')  # fmt: skip


class Compared(NamedTuple):
    """An evaluation among several: what was evaluated, with which settings, and the result."""

    recording: str
    settings: str
    result: dict[str, Any]

    @property
    def section(self) -> str:
        """Return the section that it is compared by."""
        return section_of_interest(self.result['errors'])


def components_of(errors: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the figures of each component in a section of ``result['errors']``."""
    return {name: each for name, each in errors.items() if name not in ('count', 'loss')}


def text_of(result: dict[str, Any]) -> str:
    """Lay the figures of an evaluation out as lines of text."""
    lines = [*_lines_of_messages(result), '']
    lines.append(
        f'{"":17} {"":7} {"count":>6} {"RMSE":>10} {"running mean":>15} {"MAE":>8} {"p95":>8} '
        f'{"largest":>8} {"R2":>7} {"in 90 %":>8}'
    )
    for section, errors in result['errors'].items():
        head = SECTIONS[section]
        for name, e in components_of(errors).items():
            lines.append(
                f'{head:17} {name:7} {errors["count"]:6d} {e["rmse"]:10.4g} '
                f'{e["rmse_of_running_mean"]:11.4g} {e["unit"]:<3} {e["mae"]:8.3g} '
                f'{e["p95"]:8.3g} {e["largest"]:8.3g} {_known(e["r_squared"], ".3f"):>7} '
                f'{100 * e["within_90_percent"]:6.0f} %'
            )
            head = ''
    lines += ['', *_lines_of_drift(result['drift'] or {}), *_lines_of_learner(result)]
    return '\n'.join(lines)


def _known(value: float | None, form: str) -> str:
    return 'n/a' if value is None else format(value, form)


def _lines_of_messages(result: dict[str, Any]) -> list[str]:
    recording, messages = result['recording'], result['messages']
    used = ', '.join(
        f'{messages["used"].get(kind, 0)} of {count} {kind}s'
        for kind, count in messages['received'].items()
    )
    lines = [f'{recording["name"]}: {recording["to"] - recording["from"]:.0f} s; used {used}']
    if messages['poses_withheld']:
        lines.append(f'  withheld {messages["poses_withheld"]} poses in dropouts')
    lines += [f'  dropped {count} {reason}' for reason, count in messages['dropped'].items()]
    if messages['scans_without_a_pose']:
        lines.append(f'  {messages["scans_without_a_pose"]} scans without a pose')
    return lines


def _lines_of_drift(drift: dict[str, Any]) -> Iterator[str]:
    for one in drift.get('dropouts', ()):
        yield (
            f'dropout {one["begin"]:g}:{one["end"]:g} s: {one["error"]:.3g} m off after '
            f'{one["distance"]:.3g} m ({_known(one["percent"], ".1f")} %), '
            f'heading {one["yaw_error"]:+.2g} rad'
        )
    for name, one in drift.items():
        if name.startswith('over_'):
            yield (
                f'drift over {name.removeprefix("over_").replace("_", " ")} driven: '
                f'{one["percent"]:.1f} %, heading {one["yaw_per_metre"]:.2g} rad/m'
            )


def _lines_of_learner(result: dict[str, Any]) -> Iterator[str]:
    learner, bound = result['learner'], result['constraint']
    yield (
        f'learned {learner["samples"]}, model order {learner["model_order"]}, '
        f'dual variable {learner["dual_variable"]:.3g}'
    )
    if learner['estimated_corruption'] is not None:
        yield (
            f'rejected {learner["rejected"]} of them as they came; estimated corruption '
            f'{learner["estimated_corruption"]:.3f}'
        )
    if bound is not None and bound['cvar'] is not None:
        yield (
            f'mean of the worst {1 - bound["significance"]:.2g} of the losses (CVaR): '
            f'{bound["cvar"]:.3g} (newest {bound["window"]}), '
            f'{bound["cvar_since_start"]:.3g} (all); tolerance {bound["tolerance"]:g}, '
            f'violation {bound["violation"]:.3g}'
        )


# -- several evaluations ------------------------------------------------------------------------


def table_of(rows: list[Compared]) -> str:
    """Lay several evaluations out as a table: RMSE of each component where it matters most."""
    names = list(dict.fromkeys(
        name for row in rows for name in components_of(row.result['errors'][row.section])
    ))  # fmt: skip
    lines = [('recording', 'settings', 'scored', *names, 'CVaR', 'violation', 'order')]
    for row in rows:
        errors = row.result['errors'][row.section]
        components, loss = components_of(errors), errors['loss']
        lines.append((
            row.recording, row.settings, SECTIONS[row.section],
            *(_known(components.get(name, {}).get('rmse'), '.4g') for name in names),
            _known(loss['cvar'], '.3g'), _known(loss['violation'], '.3g'),
            str(row.result['learner']['model_order']),
        ))  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return '\n'.join(
        '  '.join(
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def write_comparison(rows: list[Compared], path: Path) -> None:
    """Write all errors of several evaluations, a line for each section and component."""
    with path.open('w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow((
            'recording', 'settings', 'section', 'component', 'unit', 'count', *FIGURES,
            'cvar', 'violation', 'model_order',
        ))  # fmt: skip
        for row in rows:
            order = row.result['learner']['model_order']
            for section, errors in row.result['errors'].items():
                loss = errors['loss']
                writer.writerows(
                    (row.recording, row.settings, section, name, each['unit'], errors['count'],
                     *(each[figure] for figure in FIGURES),
                     loss['cvar'], loss['violation'], order)
                    for name, each in components_of(errors).items()
                )  # fmt: skip
