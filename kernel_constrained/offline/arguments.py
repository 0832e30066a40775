# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What `evaluate` and `sweep` both take on the command line."""

import argparse
import math
import operator
import re
from itertools import pairwise
from typing import Any, NamedTuple

import attrs

from kernel_constrained.bags import Recording, RecordingError
from kernel_constrained.offline.evaluation import Schedule
from kernel_constrained.offline.summary import figure


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
            Nothing is left to use, or the dropouts do not lie within it, one after the other.
        """
        length = (recording.end - recording.start) * 1e-9
        begin, end = self.start_offset, min(self.start_offset + self.duration, length)
        if begin > length:
            raise RecordingError(
                f'{recording.name}: start offset {begin:g} s is behind its end at {length:g} s'
            )
        dropouts = tuple(sorted(self.dropouts))
        for start, until in dropouts:
            if start >= end or until <= begin:
                raise RecordingError(
                    f'{recording.name}: dropout {start:g}:{until:g} is outside of the '
                    f'{begin:g} to {end:g} s that are evaluated'
                )
        for (_, until), (start, _) in pairwise(dropouts):
            if start < until:
                raise RecordingError(
                    f'{recording.name}: dropouts overlap, one begins at {start:g} s and the one '
                    f'before it ends at {until:g} s: give one interval'
                )
        test_from = begin + self.split * (end - begin) if self.split < 1.0 else math.inf
        return Schedule(test_from, dropouts)


class Requirement(NamedTuple):
    """A bound on a figure: ``NAME <= VALUE`` or ``NAME >= VALUE``."""

    name: str
    relation: str
    value: float

    @classmethod
    def parse(cls, text: str) -> 'Requirement':
        """Read it; raises ArgumentTypeError where it is none."""
        match = re.fullmatch(r'\s*([\w.]+)\s*(<=|>=)\s*(\S+)\s*', text)
        value = number(match[3]) if match else math.nan
        if not match or math.isnan(value):
            raise argparse.ArgumentTypeError(
                f"expected 'NAME <= NUMBER' or 'NAME >= NUMBER' (got {text!r})"
            )
        return cls(match[1], match[2], value)

    def unmet(self, result: dict[str, Any]) -> str:
        """Say how a result fails it, or nothing; an unknown figure fails too."""
        try:
            found = figure(result, self.name)
        except KeyError as error:
            return str(error.args[0])
        holds = {'<=': operator.le, '>=': operator.ge}[self.relation](found, self.value)
        if holds:
            return ''
        is_ = 'not known' if math.isnan(found) else f'{found:.6g}'
        return f'{self.name} is {is_}, required {self.relation} {self.value:g}'


def number(text: str) -> float:
    """Read a number; NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def interval(text: str) -> tuple[float, float]:
    """Read ``BEGIN:END`` in seconds; raises ArgumentTypeError where it is none."""
    numbers = [number(part) for part in text.split(':')]
    if len(numbers) != 2 or not 0.0 <= numbers[0] < numbers[1] < math.inf:
        raise argparse.ArgumentTypeError(
            f'expected BEGIN:END in seconds since the recording began (got {text!r})'
        )
    return numbers[0], numbers[1]


def share(text: str) -> float:
    """Read a share between 0 and 1; raises ArgumentTypeError where it is none."""
    value = number(text)
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f'expected a share between 0 and 1 (got {text!r})')
    return value


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that :class:`Options` are made of."""
    add = parser.add_argument
    add(
        '--scan', default='', metavar='TOPIC', help='scans or ranges (found if it is the only one)'
    )
    add('--pose', default='', metavar='TOPIC', help='trusted pose (likewise)')
    add('--start-offset', type=float, default=0.0, metavar='S', help='where to begin, seconds')
    add('--duration', type=float, default=math.inf, metavar='S', help='how much to use, seconds')
    add('--split', type=share, default=1.0, metavar='SHARE',
        help='learn from this share of the time, score the rest')  # fmt: skip
    add('--dropout', type=interval, action='append', default=[], metavar='BEGIN:END',
        help='seconds without a trusted pose; may be repeated')  # fmt: skip


def options_of(arguments: argparse.Namespace) -> Options:
    """Make options of the arguments of :func:`add_options`."""
    return Options(
        arguments.scan, arguments.pose, arguments.start_offset, arguments.duration,
        arguments.split, tuple(arguments.dropout),
    )  # fmt: skip
