# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""For all tests: DDS domains of their own, and which of them run in one process, and when."""

import itertools
import os
import signal
import socket
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

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

# The profile's name in the environment: Fast DDS 2 knows only the old one, of which 3 warns.
OLD = os.environ.get('ROS_DISTRO') == 'jazzy' or any(Path(sys.prefix, 'lib').glob('libfastrtps.*'))
PROFILE = 'FASTRTPS_DEFAULT_PROFILES_FILE' if OLD else 'FASTDDS_DEFAULT_PROFILES_FILE'

# With the range LOCALHOST shared memory would be used whatever a profile says. The domain is for
# nodes of tests that have not asked for one of their own.
MIDDLEWARE = {
    'ROS_DOMAIN_ID': '101',
    'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SYSTEM_DEFAULT',
    PROFILE: str(Path(__file__).with_name('dds.xml')),
}


def pytest_configure():
    """Let all processes that tests start talk to each other in the same way, and hear a Ctrl-C.

    What a script runs in the background ignores it, and so does what that starts.
    """
    os.environ.update(MIDDLEWARE)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
    return number


def goes_alone(nodeid):
    """Whether a test shares nothing with others of its module: nodes are started for it."""
    return 'nodes/' in nodeid.partition('::')[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Where there are several workers, alternate tests that compute with those of nodes.

    Those mostly wait. Modules of offline commands, which take longest, come first.
    """
    if not hasattr(config, 'workerinput'):
        return
    computes = [item for item in items if not goes_alone(item.nodeid)]
    computes.sort(key=lambda item: 'offline' not in item.path.parts)
    modules = list(dict.fromkeys(item.path for item in computes))
    turn = {path: k / len(modules) for k, path in enumerate(modules)}
    waits = [item for item in items if goes_alone(item.nodeid)]
    turns = [turn[item.path] for item in computes] + [k / len(waits) for k in range(len(waits))]
    order = sorted(range(len(items)), key=turns.__getitem__)
    items[:] = [(computes + waits)[k] for k in order]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep the tests of a module in one worker: they share what takes long to make.

    Instead of ``--dist loadscope``; ``loadgroup``, by marks, has no effect from pytest 9.2 on.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByModule(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return nodeid if goes_alone(nodeid) else nodeid.partition('::')[0]

    return ByModule(config, log) if config.getvalue('dist') == 'loadscope' else None


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
