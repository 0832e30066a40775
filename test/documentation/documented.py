# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What stands in the documentation: commands, snippets, links; and a place to run them in."""

import gzip
import re
import shlex
import sys
import types
from pathlib import Path
from typing import NamedTuple

import markdown_it
import numpy as np
import yaml

from kernel_constrained.offline.convert import main as convert

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / 'README.md', *sorted((REPOSITORY / 'doc').glob('*.md'))]

# First words of a command, where it stands within a sentence.
PROGRAMS = ('python', '.venv/bin/python', 'make', 'ros2', 'pytest', 'dask', 'colcon')
PYTHON = re.compile(r'(from|import) \w')
YAML = re.compile(r'[\w./*]+:( |$)')

SETTINGS = """/**:
  ros__parameters:
    features: {sectors: 6, bearing_min: -1.5708, bearing_max: 1.5708, far: 20.0}
    target: {position_scale: 0.1, yaw_scale: 0.1}
    learner: {tolerance: 9.0, max_model_order: 20}
"""


class Block(NamedTuple):
    """A block of code, and what it is: shell, python, yaml, text or a directive of Sphinx."""

    kind: str
    text: str


def tokens_of(page):
    return markdown_it.MarkdownIt('commonmark').enable('table').parse(page.read_text('utf-8'))


def kind_of(token):
    """Return what a block of code is; raise where nobody could know."""
    first = token.content.lstrip().split('\n')[0]
    if token.info:
        return 'directive' if token.info.startswith('{') else token.info
    if PYTHON.match(first):
        return 'python'
    return 'yaml' if YAML.match(first) else 'shell'


def blocks_of(page):
    return [
        Block(kind_of(token), token.content)
        for token in tokens_of(page)
        if token.type in ('code_block', 'fence')
    ]


def commands_in(text):
    """Yield the commands of a shell block, each a list of words."""
    for line in text.replace('\\\n', ' ').splitlines():
        words = shlex.split(line, comments=True)
        while '&&' in words:
            yield words[: words.index('&&')]
            words = words[words.index('&&') + 1 :]
        if words:
            yield words


def inline_commands(page):
    """Yield the commands that stand within sentences."""
    for token in tokens_of(page):
        for child in token.children or ():
            words = child.content.split() if child.type == 'code_inline' else []
            if len(words) > 1 and words[0] in PROGRAMS and '...' not in words[-1]:
                yield [word for word in shlex.split(child.content) if word != '…']


def links_of(page):
    """Yield what a page links to or shows, but for what is elsewhere."""
    for token in tokens_of(page):
        for child in token.children or ():
            target = child.attrGet('href') or child.attrGet('src')
            if target and '://' not in target:
                yield target


def anchors_of(page):
    """Return the anchors that a forge, and MyST, make of the headings."""
    tokens = tokens_of(page)
    titles = [
        ''.join(c.content for c in after.children)
        for token, after in zip(tokens, tokens[1:])
        if token.type == 'heading_open'
    ]
    return {re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-') for title in titles}


# -- a place to run things in -------------------------------------------------------------------


def drive_log(seed, period, scans=150):
    """Return a CARMEN log of a robot that turns and drives in an empty square room."""
    random = np.random.default_rng(seed)
    x, y, yaw, lines = 5.0, 5.0, 0.0, []
    for i in range(scans):
        yaw += random.uniform(-0.2, 0.2)
        step = random.uniform(0.0, 0.2)
        x = np.clip(x + step * np.cos(yaw), 1.0, 9.0)
        y = np.clip(y + step * np.sin(yaw), 1.0, 9.0)
        bearings = yaw - np.pi / 2 + np.arange(36) * np.pi / 36
        across = np.where(np.cos(bearings) > 0, 10.0 - x, x) / np.abs(np.cos(bearings))
        along = np.where(np.sin(bearings) > 0, 10.0 - y, y) / np.abs(np.sin(bearings))
        ranges = ' '.join(f'{value:.3f}' for value in np.minimum(across, along))
        pose, stamp = f'{x:.4f} {y:.4f} {yaw:.4f}', f'{i * period + 1:.2f}'
        lines.append(f'FLASER 36 {ranges} {pose} {pose} {stamp} host {stamp}\n')
    return ''.join(lines)


def make_workspace(folder):
    """Make what the names in the documentation stand for: recordings, settings, grids.

    Recordings are short, and grids have one value of each parameter.
    """
    (folder / 'doc').mkdir()
    (folder / 'bags').mkdir()
    (folder / 'killian').mkdir()
    log = drive_log(1, period=2.0)
    (folder / 'drive.log').write_text(log)
    (folder / 'intel.log.gz').write_bytes(gzip.compress(log.encode()))
    (folder / 'killian' / 'killian.log').write_text(drive_log(2, period=50.0))
    for name in ('drive.mcap', 'drive', 'run_7', 'BAG', 'bags/one', 'bags/two'):
        assert convert([str(folder / 'drive.log'), str(folder / name)]) == 0
    (folder / 'BAGS').mkdir()
    assert convert([str(folder / 'drive.log'), str(folder / 'BAGS' / 'one')]) == 0
    for name in ('own', 'a', 'b', 'robot', 'own_planner'):
        (folder / f'{name}.yaml').write_text(SETTINGS)
    (folder / 'config').mkdir()
    for path in (REPOSITORY / 'config').glob('*.yaml'):
        (folder / 'config' / path.name).write_text(path.read_text())
        (folder / path.name).write_text(path.read_text())
    (folder / 'own_planner.yaml').write_text((folder / 'config' / 'planner.yaml').read_text())
    grid = yaml.safe_dump(one_of_each(yaml.safe_load((folder / 'config/sweep.yaml').read_text())))
    for name in ('config/sweep.yaml', 'grid.yaml', 'GRID'):
        (folder / name).write_text(grid)


def one_of_each(grid):
    """Return a grid with the first value of each parameter only."""
    if isinstance(grid, dict):
        return {name: one_of_each(values) for name, values in grid.items()}
    return grid[:1]


# -- launch files, where launch is not installed ------------------------------------------------


def launch_arguments(name, monkeypatch):
    """Return {argument: default} of a launch file, by running it beside a stand-in of launch."""
    declared = {}

    class Anything:
        def __init__(self, *given, **named):
            pass

    class DeclareLaunchArgument(Anything):
        def __init__(self, argument, default_value, description):
            declared[argument] = default_value

    class Module(types.ModuleType):
        def __getattr__(self, attribute):
            if attribute.startswith('__'):
                raise AttributeError(attribute)
            found = {
                'DeclareLaunchArgument': DeclareLaunchArgument,
                'get_package_share_directory': lambda package: str(REPOSITORY),
            }
            return found.get(attribute, Anything)

    for module in (
        'launch', 'launch.actions', 'launch.conditions', 'launch.event_handlers', 'launch.events',
        'launch.substitutions', 'launch_ros', 'launch_ros.actions',
        'launch_ros.parameter_descriptions', 'ament_index_python', 'ament_index_python.packages',
    ):  # fmt: skip
        monkeypatch.setitem(sys.modules, module, Module(module))
    helper = 'kernel_constrained.nodes.launching'
    monkeypatch.delitem(sys.modules, helper, raising=False)
    namespace = {}
    try:
        exec((REPOSITORY / 'launch' / name).read_text(), namespace)
        namespace['generate_launch_description']()
    finally:
        sys.modules.pop(helper, None)
    return declared
