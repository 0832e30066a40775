# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Pytest plugin for counting lines: tests as plain Python, each for a second or so.

Lines of compiled functions are seen only with ``NUMBA_DISABLE_JIT=1``, where many a test would
take minutes. What a test has run when its time is up counts; whether it passes is found out by
the run that compiles. ``PYTHONPATH=test python -m pytest -p plain_python`` (``make coverage``).
"""

import os
import signal

import pytest

SECONDS = float(os.environ.get('PLAIN_PYTHON_SECONDS', '1.0'))  # of CPU time


class TimeIsUp(BaseException):
    """No test catches it."""


def stop(*_):
    raise TimeIsUp


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return (yield)
    except TimeIsUp:
        pytest.skip('its time is up')
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
