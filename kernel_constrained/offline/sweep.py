# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Run the filter with many settings over many recordings, and say which setting is best."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from kernel_constrained.bags import open_recording, RecordingError
from kernel_constrained.configuration import ConfigurationError, flatten, write_parameter_file
from kernel_constrained.offline.arguments import add_options, Options, options_of, Requirement
from kernel_constrained.offline.evaluate import fitting, read_config, unique
from kernel_constrained.offline.output import keep, make_folder, remove
from kernel_constrained.offline.sources import choose_topics, expanded, Topics
from kernel_constrained.offline.suggest import suggested
from kernel_constrained.offline.sweep_engines import (
    Done,
    EngineError,
    on_cluster,
    on_this_machine,
)
from kernel_constrained.offline.sweep_grid import (
    Grid,
    read_grid,
    Setting,
    settings_of,
)
from kernel_constrained.offline.sweep_table import (
    Criteria,
    ranked,
    Row,
    table_text,
    write_tables,
)
from kernel_constrained.offline.sweep_task import Outcome, plain, Source, stored, Task
from kernel_constrained.perception.node_config import FilterNodeConfig

NOTHING, PARTLY = 1, 3

# What a sweep writes at its end; those of an earlier one go when it begins.
FILES = (
    'sweep.csv', 'sweep.json', 'timing.csv', 'tradeoff.png', 'best.yaml', 'least_violation.yaml',
)  # fmt: skip

EPILOG = """exit code: 0 all well; 1 nothing could be evaluated; 2 wrong arguments; 3 something
failed, something of a recording was lost, or the constraint holds with no setting.
Run it again to go on where it was interrupted. doc/sweep.md says more."""


class Sweep(NamedTuple):
    """What is to be done, and by what it is judged.

    Attributes
    ----------
    base : FilterNodeConfig
        What all settings have in common.
    topics : Topics
        Of the first recording.
    tasks : list of list of Task
        Of each setting, one for each recording.
    """

    sources: list[Source]
    grid: Grid
    base: FilterNodeConfig
    topics: Topics
    settings: list[Setting]
    tasks: list[list[Task]]
    criteria: Criteria

    def about(self) -> dict[str, Any]:
        """Say what was done, for ``sweep.json``."""
        criteria = self.criteria
        return {
            'recordings': [source.name for source in self.sources],
            'error': criteria.error,
            'constraint': criteria.bound,
            'tail': criteria.tail,
            'base': plain(flatten(self.base)),
        }

    @property
    def recordings(self) -> str:
        """Names of the recordings."""
        return ', '.join(source.name for source in self.sources)


def planned(arguments: argparse.Namespace) -> Sweep:
    """Return what is to be done; everything that can be wrong is found before it begins.

    Raises
    ------
    ConfigurationError, RecordingError
        Settings or recordings that cannot be used.
    """
    grid = read_grid(arguments.grid)
    paths = list(dict.fromkeys(expanded(arguments.source)))
    names = unique([Path(path).name or path for path in paths])
    sources = [Source.of(path, name) for path, name in zip(paths, names, strict=True)]
    options = options_of(arguments)
    given = read_config(arguments.config) if arguments.config else None
    base, topics = base_of(given, sources[0], options)
    settings = settings_of(grid, base)
    tasks = [[Task.of(source, setting, options) for source in sources] for setting in settings]
    criteria = Criteria.of(options, arguments.sort, arguments.constraint)
    return Sweep(sources, grid, base, topics, settings, tasks, criteria)


def base_of(
    given: FilterNodeConfig | None, source: Source, options: Options
) -> tuple[FilterNodeConfig, Topics]:
    """Return the settings beside the grid, and the topics of a recording they fit."""
    with open_recording(source.path) as recording:
        topics = choose_topics(recording, options.scan, options.pose)
        return fitting(given or suggested(recording, topics), topics, recording), topics


def warnings_of(grid: Grid, criteria: Criteria) -> Iterator[str]:
    """Say where settings are not compared like with like."""
    scales = [name for name in grid if name.startswith('target.')]
    if scales and '.loss.' in f'{criteria.error} {criteria.constraint.name}':
        yield (
            f'{", ".join(scales)}: the loss is in units of these, so that of one setting says '
            'nothing against that of another; choose --sort and --constraint among the errors of '
            'components, as errors.late.forward.rmse'
        )
    bounds = [name for name in ('learner.tolerance', 'learner.significance') if name in grid]
    if bounds and criteria.constraint.name.endswith('.violation'):
        yield (
            f'{", ".join(bounds)}: each setting is held to its own bound; to hold all to one, '
            f"give it, as --constraint '{criteria.tail} <= 4'"
        )


# -- command line -------------------------------------------------------------------------------


def constraint(text: str) -> Requirement:
    """Read ``NAME`` (at most 0) or ``NAME <= VALUE``; raises ValueError where it is neither."""
    return Requirement.parse(text if '=' in text else f'{text} <= 0')


def count(text: str) -> int:
    """Read a number of at least 1; raises ValueError where it is none."""
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog='python -m kernel_constrained sweep', description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add('source', nargs='+', help='rosbag2, CARMEN log, g2o file, a folder of them, killian')
    add('--grid', required=True, metavar='YAML', help='parameters with a list of values each')
    add('--config', metavar='YAML', help='the other settings (suggested from the first recording)')
    add('--output', type=Path, default=Path('out/sweep'), metavar='DIR', help='where to write')
    add('--jobs', type=count, default=-1, metavar='N', help='processes (one for each core)')
    add('--scheduler', metavar='ADDRESS', help='dask scheduler whose workers are to do it')
    add('--sort', default='', metavar='FIGURE',
        help='of result.json, the less the better (errors.late.loss.mean)')  # fmt: skip
    add('--constraint', type=constraint, metavar="'FIGURE <= X'",
        help='what must hold on every recording (errors.late.loss.violation <= 0)')  # fmt: skip
    add('--top', type=count, default=10, metavar='N', help='settings to print (10)')
    add_options(parser)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Try the settings of a grid, print the best ones, write all."""
    arguments = parsed(argv)
    written = [arguments.output / name for name in FILES]
    try:
        keep([*arguments.source, arguments.grid, arguments.config or ''], written)
        remove(written)
        sweep = planned(arguments)
        for warning in warnings_of(sweep.grid, sweep.criteria):
            print(f'warning: {warning}', file=sys.stderr)
        outcomes = performed(sweep, arguments)
    except (ConfigurationError, RecordingError, EngineError) as error:
        print(f'error: {error}', file=sys.stderr)
        return NOTHING
    except KeyboardInterrupt:
        print('interrupted: run it again to go on from here', file=sys.stderr)
        raise
    return reported(sweep, outcomes, arguments)


def performed(sweep: Sweep, arguments: argparse.Namespace) -> list[list[Outcome]]:
    """Evaluate what was not evaluated before; return the outcomes in the order of the tasks."""
    folder = arguments.output / 'results'
    make_folder(arguments.output)
    make_folder(folder)
    tasks = [task for of_setting in sweep.tasks for task in of_setting]
    before = [(task, outcome) for task in tasks if (outcome := stored(task, folder))]
    known = {task.key for task, _ in before}
    remaining = [task for task in tasks if task.key not in known]
    print(
        f'{len(sweep.settings)} settings x {len(sweep.sources)} recordings: {len(tasks)} '
        f'evaluations, {len(before)} of them done before', flush=True,
    )  # fmt: skip
    if not arguments.config:
        print(f'settings beside the grid: suggested from {sweep.sources[0].name}', flush=True)
    done = chain(before, engine(remaining, folder, arguments))
    outcomes = {task.key: outcome for task, outcome in watched(done, sweep.criteria)}
    return [[outcomes[task.key] for task in of_setting] for of_setting in sweep.tasks]


def engine(tasks: list[Task], folder: Path, arguments: argparse.Namespace) -> Iterator[Done]:
    """Have tasks done, here or by a cluster, with a bar on a terminal."""
    if tasks:
        done = (
            on_cluster(tasks, folder, arguments.scheduler)
            if arguments.scheduler
            else on_this_machine(tasks, folder, arguments.jobs)
        )
        yield from tqdm(done, total=len(tasks), unit=' evaluations', disable=None)


def watched(done: Iterable[Done], criteria: Criteria) -> Iterator[Done]:
    """Pass on what is done, and say at once what failed; the same reason once."""
    said: set[str] = set()
    for task, outcome in done:
        judged = criteria.judged(outcome, task.setting)
        if isinstance(judged, str) and judged not in said:
            said.add(judged)
            tqdm.write(f'error: {task.source.name}, {task.setting.text}: {judged}', sys.stderr)
        yield task, outcome


# -- what was found -----------------------------------------------------------------------------


def reported(sweep: Sweep, outcomes: list[list[Outcome]], arguments: argparse.Namespace) -> int:
    """Print and write what was found; return the exit code."""
    rows = ranked(sweep.settings, outcomes, sweep.criteria)
    complaints = [*losses_of(outcomes), *failures_of(rows)]
    if any(row.each for row in rows):
        written = write_all(sweep, rows, arguments.output)
        print(table_text(rows, arguments.top))
        if rows[0].feasible:
            print(f'best: {rows[0].setting.text}; written to {written}')
        elif rows[0].scores:
            complaints.append(
                f'{sweep.criteria.bound} holds with no setting on every recording; '
                f'the setting with the least violation is in {written}'
            )
    else:
        complaints.append('no evaluation succeeded')
    for complaint in complaints:
        print(f'error: {complaint}', file=sys.stderr)
    if not any(row.each for row in rows):
        return NOTHING
    return PARTLY if complaints else 0


def losses_of(outcomes: list[list[Outcome]]) -> list[str]:
    """Return what of the recordings could not be read, a line each; print their warnings."""
    losses: dict[str, None] = {}
    warnings: dict[str, None] = {}
    for outcome in (each for of_setting in outcomes for each in of_setting if 'result' in each):
        about, name = outcome['result']['recording'], outcome['recording']
        warnings |= dict.fromkeys(f'{name}: {line}' for line in about['warnings'])
        losses |= dict.fromkeys(f'{name}: lost: {line}' for line in about['losses'])
    for line in warnings:
        print(f'warning: {line}', file=sys.stderr)
    return list(losses)


def failures_of(rows: list[Row]) -> Iterator[str]:
    """Say what failed, and which recordings stand in the way of all settings."""
    failed = Counter(name for row in rows for name in row.failed)
    if failed:
        total = sum(len(row.each) + len(row.failed) for row in rows)
        yield f'{failed.total()} of {total} evaluations failed; run again to try them again'
    for name, times in failed.items():
        if times == len(rows):
            yield f'every setting failed on {name}: leave it out to compare them on the others'


def write_all(sweep: Sweep, rows: list[Row], folder: Path) -> Path | None:
    """Write tables, figure and the first setting; return where that is, None without one."""
    from kernel_constrained.offline.sweep_figure import draw_tradeoff

    write_tables(rows, sweep.about(), folder)
    first = rows[0]
    if first.scores is None:
        return None
    kind = 'best' if first.feasible else 'least violation'
    title = f'{len(rows)} settings over {sweep.recordings}\n{kind}: {first.setting.text}'
    draw_tradeoff(rows, sweep.criteria, title, folder / 'tradeoff.png')
    path = folder / ('best.yaml' if first.feasible else 'least_violation.yaml')
    what = 'Best' if first.feasible else 'Least violation, not allowed,'
    write_parameter_file(
        path,
        first.setting.config,
        f'{what} of {len(rows)} settings, by `sweep` over {sweep.recordings}.\n'
        f'{sweep.criteria.error}: {first.scores.error:.6g} in the mean over recordings\n'
        f'{sweep.criteria.bound}: violation {first.scores.violation:.6g} on the worst of them\n'
        f'Topics: {sweep.topics.input_type}:={sweep.topics.input} pose:={sweep.topics.pose}',
    )
    return path
