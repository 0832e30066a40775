# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What ``metadata.yaml`` of a rosbag2, or its copy inside a bag file, declares."""

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from kernel_constrained.bags.recording import one_line

__all__ = ['Metadata', 'parse_metadata']

Loader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)


@dataclass(frozen=True)
class Metadata:
    """What a rosbag2 declares of itself.

    Attributes
    ----------
    files
        Names of the bag files in order.
    file_counts
        Messages by file, for the files of which it is declared.
    types, counts
        Message type and number of messages by topic.
    compressed_messages
        Whether each message is compressed on its own.
    """

    files: tuple[str, ...]
    file_counts: dict[str, int]
    types: dict[str, str]
    counts: Counter[str]
    compressed_messages: bool


def parse_metadata(text: str) -> Metadata:
    """Read the content of ``metadata.yaml``, of any version.

    Raises
    ------
    ValueError
        It is damaged or something else. One line.
    """
    try:
        content = yaml.load(text, Loader)
        return _metadata(content.get('rosbag2_bagfile_information', content))
    except yaml.YAMLError as error:
        raise ValueError(f'no YAML: {one_line(error)}') from error
    except KeyError as error:
        raise ValueError(f'{error.args[0]} is missing') from error
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f'not what a rosbag2 writes: {one_line(error)}') from error


def _metadata(content: dict[str, Any]) -> Metadata:
    topics = content['topics_with_message_count'] or []
    counts: Counter[str] = Counter()
    for topic in topics:
        counts[topic['topic_metadata']['name']] += int(topic['message_count'])
    return Metadata(
        files=tuple(_name(path) for path in content['relative_file_paths']),
        file_counts={
            _name(file['path']): int(file['message_count']) for file in content.get('files') or []
        },
        types={
            topic['topic_metadata']['name']: str(topic['topic_metadata']['type'])
            for topic in topics
        },
        counts=counts,
        compressed_messages=str(content.get('compression_mode')).lower() == 'message',
    )


def _name(path: str) -> str:
    # old versions give the path from where the recorder was started
    return PurePosixPath(path).name
