# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What a person names on the command line: recordings, folders of them, and topics in them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kernel_constrained.bags import Recording, RecordingError
from kernel_constrained.bags.opening import GRAPH_SUFFIXES, LOG_SUFFIXES
from kernel_constrained.bags.rosbag2 import are_one_bag, bag_files, BAG_SUFFIXES

INPUT_TYPES = {'sensor_msgs/msg/LaserScan': 'scan', 'sensor_msgs/msg/Range': 'range'}
POSE_TYPES = {
    f'{package}/msg/{name}': name
    for package, name in (
        ('geometry_msgs', 'PoseStamped'),
        ('geometry_msgs', 'PoseWithCovarianceStamped'),
        ('nav_msgs', 'Odometry'),
    )
}

SUFFIXES = (*BAG_SUFFIXES, '.bag', *LOG_SUFFIXES, *(s for s in GRAPH_SUFFIXES if s != '.zip'))


class Topics(NamedTuple):
    """Which topics of a recording the filter is fed with.

    Attributes
    ----------
    input, pose : str
        Their names in the recording.
    input_type : str
        ``'scan'`` or ``'range'``.
    pose_type : str
        As parameter ``pose.type`` has it.
    """

    input: str
    pose: str
    input_type: str
    pose_type: str


def expanded(names: Iterable[str]) -> list[str]:
    """Return the recordings that are named: of a folder that is no rosbag2, all that it holds.

    A folder stands for the splits in it that have lost their ``metadata.yaml``
    (:func:`are_one_bag`); other bag files are recordings of their own.

    Raises
    ------
    RecordingError
        A folder holds no recording.
    """
    found: list[str] = []
    for name in names:
        folder = Path(name)
        if not folder.is_dir() or (folder / 'metadata.yaml').exists():
            found.append(name)
            continue
        inside = [path for path in sorted(folder.iterdir()) if _is_recording(path)]
        bags = bag_files(folder)
        if are_one_bag(bags) and (len(bags) > 1 or inside == bags):
            inside = [folder, *(path for path in inside if path not in bags)]
        if not inside:
            raise RecordingError(
                f'{folder}: no recording in it: no rosbag2, CARMEN log (.log, .clf) or pose graph '
                '(.g2o)'
            )
        found += map(str, inside)
    return found


def _is_recording(path: Path) -> bool:
    """Whether it looks like one; one of ROS 1 too, so that it is said what to do with it."""
    if path.is_dir():
        return (
            bool(bag_files(path)) or (path / 'metadata.yaml').exists() or any(path.glob('*.bag'))
        )
    return path.name.lower().endswith(SUFFIXES)


def choose_topics(recording: Recording, scan: str = '', pose: str = '') -> Topics:
    """Find the scans and the trusted pose of a recording.

    Parameters
    ----------
    recording
        Where to look.
    scan, pose
        Their topics. Where they are empty: the topics of these names, else the only ones of a
        type that fits; topics without messages do not count.

    Raises
    ------
    RecordingError
        There is no such topic, or there are several to choose from.
    """
    kinds = ('a scan or range', scan, ('scan', 'range'), INPUT_TYPES, '--scan')
    poses = ('a trusted pose', pose, ('pose',), POSE_TYPES, '--pose')
    chosen_input, chosen_pose = _choose(recording, *kinds), _choose(recording, *poses)
    return Topics(
        chosen_input,
        chosen_pose,
        INPUT_TYPES[recording.topics[chosen_input].type],
        POSE_TYPES[recording.topics[chosen_pose].type],
    )


def _choose(
    recording: Recording,
    what: str,
    wanted: str,
    usual: Sequence[str],
    types: dict[str, str],
    option: str,
) -> str:
    topics = recording.topics
    known = {name.lstrip('/'): name for name in topics}
    listed = ', '.join(
        f'{name} ({topic.type}{"" if topic.count else ", no messages"})'
        for name, topic in sorted(topics.items())
    )
    holds = f'it holds {listed or "nothing"}'
    if wanted:
        name = known.get(wanted.lstrip('/'))
        if name is None or topics[name].type not in types:
            found = topics[name].type if name else 'not there'
            raise RecordingError(
                f'{recording.name}: {wanted} is {found}, expected {" or ".join(types)}; {holds}'
            )
        return name
    fitting = [name for name, t in sorted(topics.items()) if t.type in types and t.count]
    named = [known[name] for name in usual if known.get(name) in fitting]
    if named or len(fitting) == 1:
        return (named or fitting)[0]
    if fitting:
        raise RecordingError(
            f'{recording.name}: {what} could be {", ".join(fitting)}: choose by {option}'
        )
    raise RecordingError(f'{recording.name}: no topic with {what} ({" or ".join(types)}); {holds}')
