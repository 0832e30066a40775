# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Labels of places from the geometry of a map, for recordings of scans and trusted poses.

The map is made of all the scans at their trusted poses. What a place is, is read off the map all
around it: the scan that is to be classified shows half of that, from one point in time.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.bags import BagWriter, decode_input, Message, Recording, RecordingError
from kernel_constrained.bags.serialization import STRING_TYPE, typestore
from kernel_constrained.offline.scan_report import trusted_poses
from kernel_constrained.perception.geometry import Pose
from kernel_constrained.perception.messages import reading_of, stamp_of
from kernel_constrained.perception.scan import Scan

Array = npt.NDArray[np.float64]
Cells = npt.NDArray[np.bool_]

# Places, in the order of the figure; what is none of them has an empty label.
PLACES = ('corridor', 'corner', 'junction')

# Metres: side of a cell; how far from a scan the map is made of it; what is clear for so far
# around a place is a way out of it; and how far apart places are called alike.
CELL, SEEN, CLEAR, ALIKE = 0.25, 15.0, 4.0, 1.5

# A cell is occupied that so many scans hit, and this share of those that saw it.
HITS, HIT_SHARE = 3, 0.3

# Bearings that are looked along; neighbours that a way out consists of, at least; and radians by
# which the two ways out of a corridor may differ from a straight line.
BEARINGS, NARROWEST, BENT = 72, 2, math.radians(30.0)


class Map(NamedTuple):
    """What is known of a floor.

    Attributes
    ----------
    occupied, known : (columns, rows)
        What there is in each cell, the first index along x.
    origin : (2,)
        Corner of cell [0, 0], metres.
    """

    occupied: Cells
    known: Cells
    origin: Array

    def clear(self, points: Array) -> Cells:
        """Whether points (..., 2) are in cells that are known and not occupied."""
        cells = np.floor((points - self.origin) / CELL).astype(int)
        limit = np.array(self.occupied.shape)
        inside = ((cells >= 0) & (cells < limit)).all(axis=-1)
        i, j = np.moveaxis(np.clip(cells, 0, limit - 1), -1, 0)
        return np.asarray(inside & self.known[i, j] & ~self.occupied[i, j])


class Labelled(NamedTuple):
    """Scans of a recording and what their places are.

    Attributes
    ----------
    stamps : (n,)
        Of the scans, nanoseconds.
    positions : (n, 2)
        Where they were taken, metres.
    labels : (n,) of str
        One of ``PLACES``, or empty.
    map : Map
        What the labels were read off.
    """

    stamps: npt.NDArray[np.int64]
    positions: Array
    labels: npt.NDArray[np.str_]
    map: Map


def labelled(recording: Recording, scan: str = 'scan', pose: str = 'pose') -> Labelled:
    """Make the map of a recording, and label the place of each scan that has a trusted pose.

    Raises
    ------
    RecordingError
        Where no scan has the stamp of a pose, or none of them is at a place of these kinds.
    """
    poses = trusted_poses(recording, pose)
    taken: list[tuple[int, Scan, Pose]] = []
    for message in recording.messages([scan]):
        decoded = decode_input(message)
        stamp = stamp_of(decoded)
        if stamp in poses:
            reading = reading_of(decoded)
            assert isinstance(reading, Scan)
            taken.append((stamp, reading, poses[stamp]))
    if not taken:
        raise RecordingError(f'{recording.name}: no scan has the stamp of a trusted pose')
    positions = np.array([(pose.x, pose.y) for _, _, pose in taken])
    floor = map_of([(scan, pose) for _, scan, pose in taken], positions)
    kinds = alike(np.array([place_at(floor, position) for position in positions]), positions)
    labels = np.array([*PLACES, ''])[kinds]
    if not (labels != '').any():
        raise RecordingError(f'{recording.name}: no place in it is a {", a ".join(PLACES)}')
    return Labelled(np.array([stamp for stamp, _, _ in taken]), positions, labels, floor)


def map_of(taken: list[tuple[Scan, Pose]], positions: Array) -> Map:
    """Make a map of scans and the poses that they were taken at."""
    origin = positions.min(axis=0) - SEEN - CELL
    size = np.ceil((positions.max(axis=0) + SEEN + CELL - origin) / CELL).astype(int)
    hits, seen = np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.int32)
    for scan, pose in taken:
        bearings = pose.yaw + scan.angle_min + scan.angle_increment * np.arange(len(scan.ranges))
        towards = np.stack([np.cos(bearings), np.sin(bearings)], axis=1)
        ranges = np.asarray(scan.ranges, dtype=float)
        ranges[~(ranges >= scan.range_min)] = 0.0  # no range: nothing was seen there
        place = np.array([pose.x, pose.y]) - origin
        met = (ranges > 0.0) & (ranges < min(SEEN, scan.range_max))
        count(hits, place + ranges[met, None] * towards[met])
        along = np.arange(0.0, SEEN, CELL)
        beam, step = np.nonzero(along < np.minimum(ranges, SEEN)[:, None] - CELL)
        count(seen, place + along[step, None] * towards[beam])
    occupied = (hits >= HITS) & (hits > HIT_SHARE * seen)
    return Map(occupied, seen > 0, origin)


def count(grid: npt.NDArray[np.int32], points: Array) -> None:
    """Count one for each cell that points (n, 2), seen from the grid's corner, lie in."""
    cells = np.unique(np.ravel_multi_index((points / CELL).astype(int).T, grid.shape))
    grid.reshape(-1)[cells] += 1


def place_at(floor: Map, position: Array) -> int:
    """Say what a place is by the ways out of it: number among ``PLACES``, 3 for none of them.

    Two ways out that are opposite make a corridor, two that are not a corner, more a junction.
    """
    bearings = 2.0 * math.pi * np.arange(BEARINGS) / BEARINGS
    towards = np.stack([np.cos(bearings), np.sin(bearings)], axis=1)
    along = np.arange(CELL, CLEAR + CELL, CELL / 2.0)
    clear = floor.clear(position + along[:, None, None] * towards)
    ways = ways_out(np.asarray(clear.all(axis=0)))
    if len(ways) > 2:
        return PLACES.index('junction')
    if len(ways) < 2:
        return len(PLACES)
    between = abs(math.remainder(ways[1] - ways[0], 2.0 * math.pi))
    return PLACES.index('corridor' if between > math.pi - BENT else 'corner')


def ways_out(clear: Cells) -> list[float]:
    """Middle bearings, radians, of the runs of clear bearings of a turn that are wide enough."""
    if clear.all() or not clear.any():
        return []
    first = int(np.argmin(clear))  # a run does not go on round the end from here
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.roll(clear, -first), [0]])))
    return [
        (first + (begin + end - 1) / 2.0) * 2.0 * math.pi / len(clear)
        for begin, end in edges.reshape(-1, 2).tolist()
        if end - begin >= NARROWEST
    ]


def alike(kinds: npt.NDArray[np.int64], positions: Array) -> npt.NDArray[np.int64]:
    """Give each place the kind that most of the places near it have."""
    result = np.empty_like(kinds)
    for i, position in enumerate(positions):
        near = np.hypot(*(positions - position).T) < ALIKE
        result[i] = np.bincount(kinds[near]).argmax()
    return result


def write_labelled(
    recording: Recording, places: Labelled, path: Path, test_from: float, topic: str = 'scan'
) -> None:
    """Write the scans of a recording with a label wherever it changes, up to a time.

    Parameters
    ----------
    recording
        The scans.
    places
        Their labels.
    path
        The bag to write.
    test_from
        Seconds since the recording began from which there is no label any more.
    topic
        Topic of the scans.
    """
    label_at = dict(zip(places.stamps.tolist(), places.labels.tolist()))
    store, before = typestore(), ''
    kind = store.types[STRING_TYPE]
    with BagWriter(path) as writer:
        for message in recording.messages([topic]):
            trained = message.stamp < recording.start + test_from * 1e9
            label = label_at.get(message.stamp, '') if trained else ''
            if label != before:
                data = bytes(store.serialize_cdr(kind(data=label), STRING_TYPE))
                writer.write(Message('label', STRING_TYPE, message.stamp, data))
                before = label
            writer.write(message._replace(topic='scan'))
