# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings made for the tests, and the shared ones where they are present."""

from pathlib import Path

import pytest

from kernel_constrained.bags import BagWriter, killian_path, Message, RecordingError

SHARED_DATA = Path(__file__).resolve().parents[3] / 'shared' / 'data'


@pytest.fixture
def shared_data():
    """Return a function from a name in shared/data to its path; skips where it is absent."""

    def find(name):
        path = SHARED_DATA / name
        if not path.exists():
            pytest.skip(f'shared data {name} is absent')
        return path

    return find


@pytest.fixture
def killian():
    """Return the path of the Killian Court log; skips where it is not installed."""
    try:
        return killian_path()
    except RecordingError as error:
        pytest.skip(str(error))


@pytest.fixture
def log(tmp_path):
    """Return a function that writes lines to a log and returns its path."""

    def write(*lines, name='robot.log'):
        path = tmp_path / name
        path.write_text(''.join(lines))
        return path

    return write


@pytest.fixture
def bag(tmp_path):
    """Return a function that writes (topic, stamp, data) triples of std_msgs/String to a bag."""

    def write(*triples, name='bag'):
        with BagWriter(tmp_path / name) as writer:
            for topic, stamp, data in triples:
                writer.write(Message(topic, 'std_msgs/msg/String', stamp, data))
        return tmp_path / name

    return write
