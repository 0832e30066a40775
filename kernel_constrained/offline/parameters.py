# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The page of all parameters, written from the configuration classes."""

import argparse
import inspect
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from kernel_constrained.bags import RecordingError
from kernel_constrained.bags.record import RecordConfig
from kernel_constrained.bags.replay import ReplayConfig
from kernel_constrained.configuration import allowed
from kernel_constrained.offline.output import writing_to
from kernel_constrained.perception.classifier_config import ClassifierNodeConfig
from kernel_constrained.perception.node_config import FilterNodeConfig
from kernel_constrained.planning.node_config import PlannerNodeConfig
from kernel_constrained.planning.simulator import SimulatorConfig

NODES = {
    'filter_node': FilterNodeConfig,
    'planner_node': PlannerNodeConfig,
    'classifier_node': ClassifierNodeConfig,
    'replay_node': ReplayConfig,
    'record_node': RecordConfig,
    'simulate': SimulatorConfig,
}

HEAD = """# Parameters

Written by `python -m kernel_constrained parameters --output doc/parameters.md` from the
configuration classes; a test keeps it current.

What is marked *running* may change while the node runs (`ros2 param set`), all of a request or
nothing; the rest is fixed from the start. An integer is taken where a number is wanted. NaN, a
value that is not allowed, an unknown name, and a parameter file that holds nothing for the node
are errors that say so.

Quality of service: `qos_overrides./TOPIC.subscription.{reliability,durability,history,depth}`,
with `publisher` for `subscription` on what replay_node publishes."""

COLUMNS = '| parameter | default | allowed | running | meaning |\n|---|---|---|---|---|'


def text_of(value: Any) -> str:
    """Return a default as YAML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isinf(value):
        return '.inf' if value > 0 else '-.inf'
    if isinstance(value, tuple):
        return f'[{", ".join(value)}]'
    if value == '':
        return '""'
    return f'{value:g}' if isinstance(value, float) else str(value)


def row(name: str, field: 'attrs.Attribute[Any]') -> str:
    """Return the row of a parameter."""
    metadata: Mapping[str, Any] = field.metadata
    unit = f' [{metadata["unit"]}]' if metadata['unit'] else ''
    running = 'running' if metadata['runtime'] else ''
    cells = (f'`{name}`', f'`{text_of(field.default)}`', allowed(metadata), running,
             metadata['description'] + unit)  # fmt: skip
    return '| ' + ' | '.join(cells) + ' |'


def tables(cls: type, prefix: str = '') -> Iterator[str]:
    """Yield a table for the parameters of a class itself, then those of its groups."""
    fields = attrs.fields(cls)
    rows = [row(prefix + f.name, f) for f in fields if 'type' in f.metadata]
    if rows:
        title = f'### `{prefix.rstrip(".")}`\n\n' if prefix else ''
        yield f'{title}{inspect.getdoc(cls)}\n\n' + '\n'.join([COLUMNS, *rows])
    for field in fields:
        if 'group' in field.metadata:
            yield from tables(field.metadata['group'], f'{prefix}{field.name}.')


def page() -> str:
    """Return the page, in Markdown."""
    parts = [HEAD]
    for node, cls in NODES.items():
        parts += [f'## {node}', *tables(cls)]
    return '\n\n'.join(parts) + '\n'


def main(argv: list[str] | None = None) -> int:
    """Write the page, or print it."""
    parser = argparse.ArgumentParser(
        prog='python -m kernel_constrained parameters', description=__doc__
    )
    parser.add_argument('--output', type=Path, help='file to write, in place of the terminal')
    output = parser.parse_args(argv).output
    if output is None:
        print(page(), end='')
        return 0
    try:
        with writing_to(output):
            output.write_text(page(), encoding='utf-8')
    except RecordingError as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    return 0
