# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Run the filter over recordings without middleware, and say how good it was."""

import argparse
import json
import operator
import os
import re
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import attrs
from tqdm import tqdm

from kernel_constrained.bags import open_recording, Recording, RecordingError
from kernel_constrained.configuration import (
    ConfigurationError,
    from_flat,
    read_parameter_file,
    write_parameter_file,
)
from kernel_constrained.offline.evaluation import Evaluation, Schedule
from kernel_constrained.offline.sources import choose_topics, expanded, Topics
from kernel_constrained.offline.suggest import suggested
from kernel_constrained.offline.summary import figure, summarised
from kernel_constrained.perception.config import FilterNodeConfig

FAILED, UNMET = 1, 3

EPILOG = """exit code: 0 all well; 1 nothing could be evaluated; 2 wrong arguments; 3 a requirement
is not met, or something of a recording was lost (it is evaluated all the same).
--require takes figures of result.json: --require 'constraint.violation <= 0'
--require 'errors.late.forward.rmse <= 0.05'"""


@attrs.frozen
class Options:
    """What of a recording is evaluated, and how.

    Attributes
    ----------
    scan, pose
        Topics; empty to find them (:func:`choose_topics`).
    start_offset, duration
        The part of the recording that is used, seconds.
    split
        Share of that part from which the filter no longer learns; 1 for none.
    dropouts
        Intervals (begin, end) without a trusted pose, seconds since the recording began.
    """

    scan: str = ''
    pose: str = ''
    start_offset: float = 0.0
    duration: float = float('inf')
    split: float = 1.0
    dropouts: tuple[tuple[float, float], ...] = ()

    def schedule(self, recording: Recording) -> Schedule:
        """When the filter learns.

        Raises
        ------
        RecordingError
            A dropout lies outside of what is used of the recording.
        """
        length = (recording.end - recording.start) * 1e-9
        end = min(self.start_offset + self.duration, length)
        for begin, until in self.dropouts:
            if begin >= end or until <= self.start_offset:
                raise RecordingError(
                    f'{recording.name}: dropout {begin:g}:{until:g} is outside of the '
                    f'{self.start_offset:g} to {end:g} s that are evaluated'
                )
        if self.split >= 1.0:
            return Schedule(dropouts=self.dropouts)
        begin = self.start_offset
        return Schedule(begin + self.split * (end - begin), self.dropouts)


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
        raise ConfigurationError(f'{path} cannot be read: {error.strerror}') from error
    except ConfigurationError as error:
        text = str(error)
        raise ConfigurationError(text if str(path) in text else f'{path}: {text}') from error
    if config.mounting.source == 'tf':
        raise ConfigurationError(
            f'{path}: mounting.source tf needs a running robot; give mounting.x, y, yaw and '
            'upside_down with source parameters'
        )
    return config


def fitting(config: FilterNodeConfig, topics: Topics, recording: Recording) -> FilterNodeConfig:
    """Return settings with the message types of the topics.

    Raises
    ------
    ConfigurationError
        The settings are for the other kind of input.
    """
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
    with open_recording(source) as recording:
        topics = choose_topics(recording, options.scan, options.pose)
        config = config or suggested(recording, topics)
        config = fitting(config, topics, recording)
        evaluation = Evaluation(config, topics, recording.start, options.schedule(recording))
        with evaluation.series:
            seconds = _feed(evaluation, recording, options, progress)
            if not len(evaluation.series):
                raise RecordingError(f'{recording.name}: no estimate: {_why_none(evaluation)}')
            result = summarised(evaluation, recording)
            if output is not None:
                _write(evaluation, result, topics, seconds, output)
    return result


def _feed(evaluation: Evaluation, recording: Recording, options: Options, progress: bool) -> float:
    """Feed the filter with the recording; return the seconds that it took."""
    evaluation.filter.warm_up()
    topics = [evaluation.topics.input, evaluation.topics.pose]
    messages = recording.messages(topics, options.start_offset, options.duration)
    total = sum(recording.topics[name].count for name in topics)
    begun = time.perf_counter()
    with tqdm(
        total=total, desc=recording.name, unit=' messages', leave=False,
        disable=None if progress else True,
    ) as bar:  # fmt: skip
        for message in messages:
            evaluation.take(message)
            bar.update()
    evaluation.finish()
    return time.perf_counter() - begun


def _why_none(evaluation: Evaluation) -> str:
    reasons = [f'{count} {reason}' for reason, count in evaluation.dropped.items()]
    received = ', '.join(f'{count} {kind}' for kind, count in evaluation.received.items())
    return f'received {received or "nothing"}; dropped {", ".join(reasons) or "none"}'


def _write(
    evaluation: Evaluation, result: dict[str, Any], topics: Topics, seconds: float, output: Path
) -> None:
    """Write what was found; the figure last, for it takes longest."""
    from kernel_constrained.offline.evaluation_report import draw

    output.mkdir(parents=True, exist_ok=True)
    _write_json(output / 'result.json', result)
    length = result['recording']['seconds']
    scans = evaluation.received[topics.input_type]
    _write_json(
        output / 'timing.json',
        {
            'seconds': seconds,
            'scans_per_second': scans / seconds,
            'times_real_time': length / seconds,
        },
    )
    evaluation.series.write_csv(output / 'series.csv')
    write_parameter_file(
        output / 'filter.yaml',
        evaluation.config,
        f'Settings of an evaluation of {result["recording"]["name"]}.\n'
        f'Topics: {topics.input_type}:={topics.input} pose:={topics.pose}',
    )
    evaluation.filter.save(output / 'model.npz')
    draw(evaluation, result['recording']['name'], output / 'evaluation.png')


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + '\n', encoding='utf-8')


# -- command line -------------------------------------------------------------------------------


class Requirement(NamedTuple):
    """A bound on a figure: ``NAME <= VALUE`` or ``NAME >= VALUE``."""

    name: str
    relation: str
    value: float

    @classmethod
    def parse(cls, text: str) -> 'Requirement':
        """Read it; raises ValueError where it is none, as argparse wants."""
        match = re.fullmatch(r'\s*([\w.]+)\s*(<=|>=)\s*(\S+)\s*', text)
        if not match:
            raise ValueError(text)
        return cls(match[1], match[2], float(match[3]))

    def unmet(self, result: dict[str, Any]) -> str:
        """Say how a result fails it, or nothing; an unknown figure fails too."""
        try:
            found = figure(result, self.name)
        except KeyError as error:
            return str(error.args[0])
        holds = {'<=': operator.le, '>=': operator.ge}[self.relation](found, self.value)
        if holds:
            return ''
        return f'{self.name} is {found:.6g}, required {self.relation} {self.value:g}'


def interval(text: str) -> tuple[float, float]:
    """Read ``BEGIN:END`` in seconds; raises ValueError where it is none."""
    begin, end = map(float, text.split(':'))
    if not 0.0 <= begin < end:
        raise ValueError(text)
    return begin, end


def share(text: str) -> float:
    """Read a share between 0 and 1; raises ValueError where it is none."""
    value = float(text)
    if not 0.0 < value < 1.0:
        raise ValueError(text)
    return value


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that :class:`Options` are made of."""
    add = parser.add_argument
    add('--scan', default='', metavar='TOPIC', help='topic of the scans or ranges')
    add('--pose', default='', metavar='TOPIC', help='topic of the trusted pose')
    add('--start-offset', type=float, default=0.0, metavar='S', help='where to begin, seconds')
    add('--duration', type=float, default=float('inf'), metavar='S', help='how much to use')
    add('--split', type=share, default=1.0, metavar='SHARE',
        help='learn from this share of the time, score the rest')  # fmt: skip
    add('--dropout', type=interval, action='append', default=[], metavar='BEGIN:END',
        help='seconds without a trusted pose, scored by themselves; may be repeated')  # fmt: skip


def options_of(arguments: argparse.Namespace) -> Options:
    """Make options of the arguments of :func:`add_options`."""
    return Options(
        arguments.scan, arguments.pose, arguments.start_offset, arguments.duration,
        arguments.split, tuple(sorted(arguments.dropout)),
    )  # fmt: skip


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog='python -m kernel_constrained evaluate', description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add(
        'source', nargs='+', help='rosbag2, CARMEN log, g2o file, a folder of them, lidar, killian'
    )
    add('--config', nargs='+', default=[], metavar='YAML', help='settings of the filter')
    add('--output', type=Path, default=Path('out/evaluate'), metavar='DIR', help='where to write')
    add_options(parser)
    add('--require', type=Requirement.parse, action='append', default=[], metavar="'NAME <= X'",
        help='fail (exit code 3) where a figure is not so; may be repeated')  # fmt: skip
    return parser.parse_args(argv)


class Task(NamedTuple):
    """A recording to be evaluated with settings, and where to write."""

    source: str
    settings: str
    config: FilterNodeConfig | None
    output: Path


def tasks_of(arguments: argparse.Namespace) -> list[Task]:
    """Return what is to be done; everything that can be wrong is found before it begins."""
    sources = expanded(arguments.source)
    configs = [(Path(path).stem, read_config(path)) for path in arguments.config]
    given: list[tuple[str, FilterNodeConfig | None]] = [*configs] or [('suggested', None)]
    single = len(sources) * len(given) == 1
    names = unique([Path(source).name or source for source in sources])
    labels = unique([label for label, _ in given])
    return [
        Task(
            source, label, config,
            arguments.output if single else arguments.output / name / label,
        )
        for source, name in zip(sources, names, strict=True)
        for label, (_, config) in zip(labels, given, strict=True)
    ]  # fmt: skip


def unique(names: list[str]) -> list[str]:
    """Return the names with a number where one stands twice: no output overwrites another."""
    return [
        name if names.count(name) == 1 else f'{name}_{names[:i].count(name) + 1}'
        for i, name in enumerate(names)
    ]


def perform(task: Task, arguments: argparse.Namespace) -> dict[str, Any]:
    """Evaluate, and print what was found."""
    from kernel_constrained.offline.evaluation_report import text_of

    result = evaluate(task.source, task.config, options_of(arguments), task.output, progress=True)
    for warning in result['recording']['warnings']:
        print(f'warning: {warning}', file=sys.stderr)
    for loss in result['recording']['losses']:
        print(f'error: lost: {loss}', file=sys.stderr)
    timing = json.loads((task.output / 'timing.json').read_text())
    print(text_of(result))
    print(
        f'{timing["seconds"]:.2f} s: {timing["scans_per_second"]:.0f} scans/s, '
        f'{timing["times_real_time"]:.0f} x real time; written to {task.output}\n'
    )
    return result


def main(argv: list[str] | None = None) -> int:
    """Evaluate what is named."""
    arguments = parsed(argv)
    rows: list[tuple[str, str, dict[str, Any]]] = []
    code = 0
    try:
        tasks = tasks_of(arguments)
    except (ConfigurationError, RecordingError) as error:
        print(f'error: {error}', file=sys.stderr)
        return FAILED
    for task in tasks:
        try:
            result = perform(task, arguments)
        except (ConfigurationError, RecordingError) as error:
            print(f'error: {error}', file=sys.stderr)
            code = FAILED
            continue
        rows.append((Path(task.source).name, task.settings, result))
        unmet = [text for one in arguments.require if (text := one.unmet(result))]
        for text in unmet:
            print(f'error: {task.source}: {text}', file=sys.stderr)
        if unmet or result['recording']['losses']:
            code = code or UNMET
    if len(rows) > 1:
        from kernel_constrained.offline.evaluation_report import table_of

        print('RMSE by component\n' + table_of(rows))
    return code
