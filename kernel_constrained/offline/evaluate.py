# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Run the filter over recordings without middleware, and say how good it was."""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np
from tqdm import tqdm

from kernel_constrained.bags import open_recording, Recording, RecordingError
from kernel_constrained.configuration import (
    ConfigurationError,
    from_flat,
    read_parameter_file,
    write_parameter_file,
)
from kernel_constrained.offline.arguments import add_options, Options, options_of, Requirement
from kernel_constrained.offline.evaluation import Evaluation, TEST
from kernel_constrained.offline.evaluation_report import (
    Compared,
    table_of,
    text_of,
    write_comparison,
)
from kernel_constrained.offline.output import keep, make_folder, remove
from kernel_constrained.offline.sources import choose_topics, expanded, Topics
from kernel_constrained.offline.suggest import counted, suggested
from kernel_constrained.offline.summary import summarised
from kernel_constrained.perception.node_config import FilterNodeConfig

FAILED, UNMET = 1, 3

# What an evaluation writes; result.json last, so that it stands for a complete one.
FILES = (
    'series.csv', 'filter.yaml', 'model.npz', 'timing.json', 'evaluation.png', 'result.json',
)  # fmt: skip

COMPARISON_FILES = ('comparison.csv', 'comparison.png')

USAGE = 'python -m kernel_constrained evaluate SOURCE [SOURCE ...] [OPTIONS]'

EPILOG = """--require takes a figure of result.json by its dotted name and a bound, <= or >=:
  --require 'errors.late.forward.rmse <= 0.05' --require 'constraint.violation <= 0'
exit code: 0 all well; 1 something could not be evaluated; 2 wrong arguments; 3 a requirement
is not met, or part of a recording was lost (the rest is evaluated all the same)."""


def read_config(path: str | Path) -> FilterNodeConfig:
    """Read the settings of the filter from a parameter file.

    Raises
    ------
    ConfigurationError
        It cannot be read, or something in it is not allowed; names the file.
    """
    try:
        config = from_flat(FilterNodeConfig, read_parameter_file(path, 'filter_node'))
    except OSError as error:
        raise ConfigurationError(f'{path}: cannot be read: {error.strerror}') from error
    except ConfigurationError as error:
        text = str(error)
        raise ConfigurationError(text if str(path) in text else f'{path}: {text}') from error
    return config


def fitting(config: FilterNodeConfig, topics: Topics, recording: Recording) -> FilterNodeConfig:
    """Return settings with the message types of the topics.

    Raises
    ------
    ConfigurationError
        The settings are for the other kind of input, or need a running robot.
    """
    if config.mounting.source == 'tf':
        raise ConfigurationError(
            'mounting.source tf needs a running robot: give mounting.x, y, yaw and upside_down '
            'with source parameters'
        )
    if config.input.type != topics.input_type:
        raise ConfigurationError(
            f'input.type is {config.input.type}, but {topics.input} of {recording.name} is a '
            f'{topics.input_type}: choose another topic by --scan, or other settings'
        )
    return attrs.evolve(config, pose=attrs.evolve(config.pose, type=topics.pose_type))


def evaluate(
    source: str | os.PathLike[str],
    config: FilterNodeConfig | None = None,
    options: Options | None = None,
    output: Path | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Run the filter over a recording.

    Parameters
    ----------
    source
        The recording.
    config
        Settings of the filter; None for those that suit the recording (:func:`suggested`).
    options
        What of it is evaluated, and how.
    output
        Folder for ``result.json``, ``series.csv``, ``filter.yaml`` (the settings in effect),
        ``model.npz`` (what was learned), ``timing.json`` and ``evaluation.png``; None for none.
        Those that are there are removed first.
    progress
        Whether to show a bar on a terminal.

    Returns
    -------
    dict
        What :func:`summarised` returns.

    Raises
    ------
    RecordingError, ConfigurationError
        The recording cannot be used, or not with these settings.
    """
    options = options or Options()
    if output is not None:
        remove(output / name for name in FILES)
    with open_recording(source) as recording:
        topics = choose_topics(recording, options.scan, options.pose)
        schedule = options.schedule(recording)
        config = config or suggested(recording, topics)
        config = fitting(config, topics, recording)
        if output is not None:
            make_folder(output)
        evaluation = Evaluation(config, topics, recording.start, schedule)
        with evaluation.series:
            seconds = _feed(evaluation, recording, options, progress)
            _refuse_unscored(evaluation, recording)
            result = summarised(evaluation, recording)
            if output is not None:
                _write(evaluation, result, seconds, output)
    return result


def _feed(evaluation: Evaluation, recording: Recording, options: Options, progress: bool) -> float:
    """Feed the filter with the recording; return the seconds that it took."""
    evaluation.filter.warm_up()
    topics = [evaluation.topics.input, evaluation.topics.pose]
    messages = recording.messages(topics, options.start_offset, options.duration)
    whole = options.start_offset == 0.0 and math.isinf(options.duration)
    begun = time.perf_counter()
    with tqdm(
        messages, recording.name, unit=' messages', leave=False,
        total=sum(recording.topics[name].count for name in topics) if whole else None,
        disable=None if progress else True,
    ) as bar:  # fmt: skip
        for message in bar:
            evaluation.take(message)
    evaluation.finish()
    return time.perf_counter() - begun


def _refuse_unscored(evaluation: Evaluation, recording: Recording) -> None:
    """Raise RecordingError where nothing was estimated, or nothing scored that was asked for."""
    if not len(evaluation.series):
        raise RecordingError(f'{recording.name}: no estimate: {_why_none(evaluation)}')
    when, loss = evaluation.series.columns('time', 'loss')
    known = ~np.isnan(loss)
    if not known.any():
        raise RecordingError(
            f'{recording.name}: none of {len(loss)} estimates has a trusted pose at its stamp, so '
            f'there is nothing to score: are {evaluation.topics.input} and '
            f'{evaluation.topics.pose} of one clock?'
        )
    schedule = evaluation.schedule
    for begin, end in schedule.dropouts:
        if not np.any((begin <= when) & (when < end) & known):
            raise RecordingError(
                f'{recording.name}: no estimate to score in dropout {begin:g}:{end:g}'
            )
    if schedule.test_from < math.inf and not np.any(
        evaluation.series.where('section', TEST) & known
    ):
        raise RecordingError(
            f'{recording.name}: no estimate to score after the split at {schedule.test_from:g} s'
        )


def _why_none(evaluation: Evaluation) -> str:
    pairing = evaluation.filter.pairing
    received = ', '.join(f'{count} {kind}' for kind, count in evaluation.received.items())
    why = f'received {received or "nothing"}; dropped {counted(evaluation.dropped) or "none"}'
    if pairing.jumps:
        why += f'; stamps went back {pairing.jumps} times'
    if pairing.unpaired:
        why += f'; {pairing.unpaired} scans without a pose'
    if evaluation.filter.target.needs_previous and evaluation.filter.scans == 1:
        why += '; a motion needs two scans'
    return why


def _write(evaluation: Evaluation, result: dict[str, Any], seconds: float, output: Path) -> None:
    """Write what was found."""
    from kernel_constrained.offline.evaluation_figure import draw

    recording, topics = result['recording'], evaluation.topics
    evaluation.series.write_csv(output / 'series.csv')
    write_parameter_file(
        output / 'filter.yaml',
        evaluation.config,
        f'Settings of an evaluation of {recording["name"]}.\n'
        f'Topics: {topics.input_type}:={topics.input} pose:={topics.pose}',
    )
    evaluation.filter.save(output / 'model.npz')
    timing = {
        'seconds': seconds,
        'scans_per_second': evaluation.received[topics.input_type] / seconds,
        'times_real_time': (recording['to'] - recording['from']) / seconds,
    }
    _write_json(output / 'timing.json', timing)
    draw(evaluation, result, output / 'evaluation.png')
    _write_json(output / 'result.json', result)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + '\n', encoding='utf-8')


# -- command line -------------------------------------------------------------------------------


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        usage=USAGE, description=__doc__, epilog=EPILOG,
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, max_help_position=28),
    )  # fmt: skip
    add = parser.add_argument
    add('source', nargs='*', metavar='SOURCE',
        help='rosbag2, CARMEN log, g2o file, folder of them, lidar or killian')  # fmt: skip
    add('--config', nargs='+', default=[], metavar='YAML',
        help='settings of the filter; several are compared')  # fmt: skip
    add('--output', type=Path, default=Path('out/evaluate'), metavar='DIR',
        help='where to write (out/evaluate)')  # fmt: skip
    add_options(parser)
    add('--require', type=Requirement.parse, action='append', default=[], metavar='BOUND',
        help='what a figure has to be; may be repeated')  # fmt: skip
    arguments = parser.parse_args(argv)
    if not arguments.source:
        parser.error('name a recording, before --config')
    return arguments


class Task(NamedTuple):
    """A recording to be evaluated with settings, and where to write."""

    source: str
    name: str
    settings: str
    config: FilterNodeConfig | None
    output: Path


def tasks_of(arguments: argparse.Namespace) -> list[Task]:
    """Return what is to be done.

    Raises
    ------
    ConfigurationError, RecordingError
        Settings that cannot be used, or a folder without recordings: before anything begins.
    """
    sources = expanded(arguments.source)
    configs = [(Path(path).stem, read_config(path)) for path in arguments.config]
    given: list[tuple[str, FilterNodeConfig | None]] = [*configs] or [('suggested', None)]
    single = len(sources) * len(given) == 1
    names = unique([Path(source).resolve().name for source in sources])
    labels = unique([label for label, _ in given])
    return [
        Task(
            source, name, label, config,
            arguments.output if single else arguments.output / name / label,
        )
        for source, name in zip(sources, names, strict=True)
        for label, (_, config) in zip(labels, given, strict=True)
    ]  # fmt: skip


def unique(names: list[str]) -> list[str]:
    """Return the names, with a number where one stood before: no output overwrites another."""
    result: list[str] = []
    for name in names:
        numbered = (f'{name}_{number}' for number in count(2))
        result.append(next(each for each in chain([name], numbered) if each not in result))
    return result


def files_of(tasks: list[Task], output: Path) -> Iterator[Path]:
    """Yield what is to be written."""
    for task in tasks:
        yield from (task.output / name for name in FILES)
    if len(tasks) > 1:
        yield from (output / name for name in COMPARISON_FILES)


def perform(task: Task, arguments: argparse.Namespace) -> dict[str, Any]:
    """Evaluate, and print what was found."""
    result = evaluate(task.source, task.config, options_of(arguments), task.output, progress=True)
    for warning in result['recording']['warnings']:
        print(f'warning: {warning}', file=sys.stderr)
    for loss in result['recording']['losses']:
        print(f'error: {task.name}: lost: {loss}', file=sys.stderr)
    timing = json.loads((task.output / 'timing.json').read_text(encoding='utf-8'))
    print(text_of(result))
    print(
        f'{timing["seconds"]:.2f} s: {timing["scans_per_second"]:.0f} scans/s, '
        f'{timing["times_real_time"]:.0f} x real time; written to {task.output}\n',
        flush=True,
    )
    return result


def failures(task: Task, result: dict[str, Any], requirements: list[Requirement]) -> bool:
    """Say which requirements a result does not meet; return whether something is wrong with it."""
    unmet = [text for one in requirements if (text := one.unmet(result))]
    for text in unmet:
        print(f'error: {task.name}, {task.settings}: {text}', file=sys.stderr)
    return bool(unmet or result['recording']['losses'])


def main(argv: list[str] | None = None) -> int:
    """Evaluate what is named."""
    arguments = parsed(argv)
    rows: list[Compared] = []
    code = 0
    try:
        tasks = tasks_of(arguments)
        keep([*arguments.source, *arguments.config], files_of(tasks, arguments.output))
        remove(files_of(tasks, arguments.output))
    except (ConfigurationError, RecordingError) as error:
        return _failed(error)
    for task in tasks:
        try:
            result = perform(task, arguments)
        except (ConfigurationError, RecordingError, OSError) as error:
            code = _failed(error)
            continue
        rows.append(Compared(task.name, task.settings, result))
        if failures(task, result, arguments.require):
            code = code or UNMET
    if len(rows) > 1:
        compare(rows, arguments.output)
    return code


def compare(rows: list[Compared], output: Path) -> None:
    """Print and write several results side by side."""
    from kernel_constrained.offline.evaluation_figure import draw_comparison

    print(table_of(rows))
    write_comparison(rows, output / 'comparison.csv')
    draw_comparison(rows, output / 'comparison.png')
    print(f'comparison written to {output}')


def _failed(error: Exception) -> int:
    """Say what went wrong, in one line; return the exit code."""
    print(f'error: {"; ".join(str(error).splitlines())}', file=sys.stderr)
    return FAILED
