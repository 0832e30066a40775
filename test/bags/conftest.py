# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings made for the tests, and the shared ones where they are present."""

from pathlib import Path

import pytest
import yaml

from kernel_constrained.bags import BagWriter, killian_path, Message, RecordingError

SHARED_DATA = Path(__file__).resolve().parents[3] / 'shared' / 'data'


@pytest.fixture
def shared_data():
    """Return a function from a name in shared/data to its path; skips where it is absent."""

    def find(name):
        path = SHARED_DATA / name
        if not path.exists():
            pytest.skip(f'shared data is absent: {name}')
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


@pytest.fixture
def split_bag(bag, tmp_path):
    """Return a function that writes a bag of three files, two messages each, stamps 0 to 5."""

    class Split:
        path = tmp_path / 'split'

        def __call__(self, suffix):
            if not self.path.exists():
                self._write(suffix)
            return self.path

        def _write(self, suffix):
            self.path.mkdir()
            for number in range(3):
                stamps = (2 * number, 2 * number + 1)
                file = bag(
                    *(('a', stamp, b'1') for stamp in stamps), name=f'bag_{number}.{suffix}'
                )
                file.rename(self.path / file.name)
            files = [f'bag_{number}.{suffix}' for number in range(3)]
            (self.path / 'metadata.yaml').write_text(
                yaml.dump({'rosbag2_bagfile_information': described(files)})
            )

    return Split()


def described(files):
    """Return the metadata of a bag of these files with two messages each."""
    topic = {'name': 'a', 'type': 'std_msgs/msg/String', 'serialization_format': 'cdr'}
    return {
        'version': 9,
        'relative_file_paths': files,
        'files': [{'path': file, 'message_count': 2} for file in files],
        'topics_with_message_count': [{'topic_metadata': topic, 'message_count': 2 * len(files)}],
    }
