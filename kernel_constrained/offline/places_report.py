# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What a classifier said of labelled places, in a table and a figure."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kernel_constrained.bags import RecordingError
from kernel_constrained.offline.classification import Said
from kernel_constrained.offline.places import CELL, Labelled, PLACES
from kernel_constrained.perception.classifier_config import UNSURE

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

COLOURS = {'corridor': 'tab:blue', 'corner': 'tab:red', 'junction': 'tab:orange', '': '0.6'}
OTHER = 'black'

# Labelled scans that the curve of the accuracy is a mean over.
WINDOW = 300


class Judged(NamedTuple):
    """What was said beside the truth, scan by scan.

    Attributes
    ----------
    time : (n,)
        Seconds since the first scan.
    positions : (n, 2)
        Where the scans were taken, metres.
    truth, said : (n,) of str
        Label by the map, empty where it is none; and the one with the highest score.
    unsure : (n,)
        Whether its margin is too small.
    test : (n,)
        Whether labels were withheld from the classifier.
    """

    time: Array
    positions: Array
    truth: npt.NDArray[np.str_]
    said: npt.NDArray[np.str_]
    unsure: Mask
    test: Mask


class Score(NamedTuple):
    """How good labels are.

    Attributes
    ----------
    labelled : int
        Scans with a label.
    accuracy, balanced : float
        Share that is right; the mean of that over the labels there are.
    sure, accuracy_sure : float
        Share that is not unsure; and which share of these is right.
    most_frequent : float
        Share of the most frequent label: what always saying that would reach.
    """

    labelled: int
    accuracy: float
    balanced: float
    sure: float
    accuracy_sure: float
    most_frequent: float


def judge(said: Said, places: Labelled, test_from: int) -> Judged:
    """Join what was said with the labels by the map.

    Parameters
    ----------
    said
        Of each scan.
    places
        Its label.
    test_from
        Stamp from which labels were withheld, nanoseconds.

    Raises
    ------
    RecordingError
        Where no scan of both has the same stamp.
    """
    place = {stamp: i for i, stamp in enumerate(places.stamps.tolist())}
    both = np.array([stamp in place for stamp in said.stamps.tolist()])
    if not both.any():
        raise RecordingError('no scan that was classified has a label by the map')
    stamps = said.stamps[both]
    rows = np.array([place[stamp] for stamp in stamps.tolist()])
    return Judged(
        (stamps - places.stamps[0]) * 1e-9, places.positions[rows], places.labels[rows],
        said.labels[both], said.unsure[both], stamps >= test_from,
    )  # fmt: skip


def score(truth: npt.NDArray[np.str_], said: npt.NDArray[np.str_], unsure: Mask) -> Score:
    """Score labels beside the true ones; scans without a true label do not count."""
    known = truth != ''
    truth, right, sure = truth[known], (said == truth)[known], ~unsure[known]
    shares = [right[truth == label].mean() for label in np.unique(truth)]
    return Score(
        len(truth),
        float(right.mean()),
        float(np.mean(shares)),
        float(sure.mean()),
        float(right[sure].mean()) if sure.any() else float('nan'),
        float(np.unique(truth, return_counts=True)[1].max() / len(truth)),
    )


def parts(judged: Judged) -> Iterator[tuple[str, Mask]]:
    """Yield the parts of a run that are scored: what it is called, and which scans it is."""
    yield 'prequential', ~judged.test
    yield 'held out, later', judged.test


def format_table(judged: Judged) -> str:
    """Lay the scores out as lines of text."""
    lines = ['scans            labelled  right  mean over labels   sure  right where sure  '
             'most frequent label']  # fmt: skip
    for name, part in parts(judged):
        if not (judged.truth[part] != '').any():
            continue
        s = score(judged.truth[part], judged.said[part], judged.unsure[part])
        lines.append(
            f'{name:16s} {s.labelled:8d} {s.accuracy:6.3f} {s.balanced:17.3f} {s.sure:6.3f} '
            f'{s.accuracy_sure:17.3f} {s.most_frequent:20.3f}'
        )
    return '\n'.join(lines)


# -- the figure ---------------------------------------------------------------------------------


def draw(judged: Judged, places: Labelled, path: Path) -> None:
    """Draw the map by true label and by what was said, and the accuracy as it went."""
    figure = Figure(figsize=(15, 10), layout='constrained')
    axes = figure.subplot_mosaic('AB;CC', height_ratios=[3, 1])
    draw_map(axes['A'], places, 'label by the map')
    scatter(axes['A'], judged.positions, judged.truth)
    draw_map(axes['B'], places, 'what the classifier said, before it learned the scan')
    where_unsure = judged.positions[judged.unsure]
    axes['B'].scatter(where_unsure[:, 0], where_unsure[:, 1], s=4, color='0.6', label=UNSURE)
    sure = ~judged.unsure
    scatter(axes['B'], judged.positions[sure], judged.said[sure])
    for name in 'AB':
        axes[name].legend(loc='lower right', markerscale=3)
    draw_accuracy(axes['C'], judged)
    figure.savefig(path, dpi=110)


def draw_map(axes: Axes, places: Labelled, title: str) -> None:
    """Draw what is occupied."""
    floor = places.map
    low, high = floor.origin, floor.origin + CELL * np.array(floor.occupied.shape)
    axes.imshow(
        ~floor.occupied.T, origin='lower', cmap='gray', vmin=-1.0, vmax=1.0,
        extent=(low[0], high[0], low[1], high[1]), interpolation='none',
    )  # fmt: skip
    axes.set(title=title, xlabel='x, m', ylabel='y, m', aspect='equal')


def scatter(axes: Axes, positions: Array, labels: npt.NDArray[np.str_]) -> None:
    """Draw positions in the colour of their labels."""
    for label in [*PLACES, *sorted(set(labels.tolist()) - set(PLACES))]:
        mine = positions[labels == label]
        if len(mine):
            colour = COLOURS.get(label, OTHER)
            axes.scatter(mine[:, 0], mine[:, 1], s=4, color=colour, label=label or 'no label')


def draw_accuracy(axes: Axes, judged: Judged) -> None:
    """Draw the accuracy over the labelled scans before each, of all and of those sure."""
    known = judged.truth != ''
    right = (judged.said == judged.truth)[known].astype(float)
    sure, time = (~judged.unsure)[known].astype(float), judged.time[known]
    axes.plot(time, moving_mean(right), color='black', label='right')
    with np.errstate(invalid='ignore', divide='ignore'):
        of_sure = moving_mean(right * sure) / moving_mean(sure)
    axes.plot(time, of_sure, color='tab:green', label='right where sure')
    axes.plot(time, moving_mean(sure), color='tab:green', linestyle=':', label='sure')
    often = (judged.truth[known] == most_frequent(judged.truth[known])).astype(float)
    axes.plot(time, moving_mean(often), color='0.6', label='most frequent label')
    if judged.test.any():
        axes.axvline(judged.time[judged.test][0], color='tab:red', label='labels end here')
    axes.set(xlabel='s', ylabel=f'share of the last {WINDOW} labelled', ylim=(0.0, 1.0))
    axes.grid(alpha=0.3)
    axes.legend(loc='lower right', ncols=5)


def most_frequent(labels: npt.NDArray[np.str_]) -> str:
    """Return the label that occurs most."""
    names, counts = np.unique(labels, return_counts=True)
    return str(names[counts.argmax()])


def moving_mean(values: Array) -> Array:
    """Mean of the last ``WINDOW`` values up to each, of fewer at the beginning."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(ends - WINDOW, 0)
    mean: Array = (sums[ends] - sums[begins]) / (ends - begins)
    return mean
