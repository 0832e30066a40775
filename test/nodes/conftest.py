# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a probe in the DDS domain of each test, and nodes that end with it."""

import sys
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed: no node test was run')
sys.path.insert(0, str(Path(__file__).parent))

from probing import Probe, Process


@pytest.fixture
def probe(domain):
    probe = Probe(domain)
    yield probe
    probe.close()


@pytest.fixture
def start(domain, tmp_path):
    """Start nodes: ``start('filter_node', file, **{'a.b': 1})``; none outlives the test.

    ``remaps`` are pairs (from, to), ``paths`` are searched for Python modules first.
    """
    processes = []

    def start(node, file=None, remaps=(), paths=(), **parameters):
        command = [node, '--ros-args']
        command += ['--params-file', str(file)] if file else []
        for old, new in remaps:
            command += ['-r', f'{old}:={new}']
        for name, value in parameters.items():
            command += ['-p', f'{name}:={str(value).lower() if value is True else value}']
        processes.append(Process(command, domain, tmp_path, paths))
        return processes[-1]

    yield start
    for process in processes:
        if process.process.poll() is None:
            process.process.kill()
            process.process.wait()
