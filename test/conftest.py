# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""For all tests: DDS domains of their own, and which of them run in one process."""

import itertools
import socket
import time
from collections import Counter, defaultdict

import pytest

try:
    from hypothesis import settings
except ImportError:  # only what needs it is not run
    pass
else:  # an example may take longer than usual where the processor is shared
    settings.register_profile('untimed', deadline=None)
    settings.load_profile('untimed')

# Domains 1 to 100 in blocks; 0 is where robots are, and above 101 ports are used by others.
BLOCK, BLOCKS = 5, 20
FIRST_PORT = 23_500  # one for each block: who has bound it has the block


def claimed_block():
    """Claim domains that no other process of this machine has that does the same; wait for them.

    The system gives a socket back when its process ends, however it ends.
    """
    end = time.monotonic() + 600.0
    while time.monotonic() < end:
        for block in range(BLOCKS):
            claim = socket.socket()
            try:
                claim.bind(('127.0.0.1', FIRST_PORT + block))
            except OSError:
                claim.close()
            else:
                return claim, range(1 + block * BLOCK, 1 + (block + 1) * BLOCK)
        time.sleep(1.0)
    raise RuntimeError(f'all {BLOCKS} blocks of DDS domains are taken by other test processes')


@pytest.fixture(scope='session')
def domains():
    """DDS domains for this process, in turn."""
    claim, block = claimed_block()
    with claim:
        yield itertools.cycle(block)


@pytest.fixture
def domain(domains, monkeypatch):
    """Give the test a DDS domain of its own, on this machine only; processes inherit it."""
    number = next(domains)
    monkeypatch.setenv('ROS_DOMAIN_ID', str(number))
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    return number


def pytest_collection_modifyitems(config, items):
    """Keep the tests of a module in one worker of xdist: they share what takes long to make.

    Not those of nodes, which mostly wait: they go wherever a worker is free.
    """
    if config.pluginmanager.hasplugin('xdist'):
        for item in items:
            if 'nodes' not in item.path.parts:
                item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """Say at the very end what was not run and why, also where all else passed.

    A line for each reason, which is what comes before the colon in a skip's message.
    """
    yield
    skipped = defaultdict(Counter)
    for report in terminalreporter.stats.get('skipped', ()):
        reason = report.longrepr[2].removeprefix('Skipped: ').split(':')[0]
        file, _, name = report.nodeid.partition('::')
        skipped[reason][file] += bool(name)  # without a name it is all of the file
    terminalreporter.section('not run')
    for reason, files in skipped.items():
        named = (f'{file} ({count or "all"})' for file, count in files.items())
        terminalreporter.line(f'{reason}: {", ".join(named)}')
    if chosen_out := len(terminalreporter.stats.get('deselected', ())):
        terminalreporter.line(f'not chosen: {chosen_out} tests')
    if not skipped and not chosen_out:
        terminalreporter.line('nothing: every test was run')
