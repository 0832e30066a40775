# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Places of Killian Court: our classifier beside scikit-learn's, on the same features and labels.

Everybody's settings are chosen from a small grid: those that are best on the last part of the
labelled scans after learning those before it. With these it learns all the labelled scans in
their order, each asked for first where that can be done (prequential), and is tested on what came
later. One thread each.
"""

import os

os.environ.update(dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1'))

import argparse
import itertools
import math
import platform
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sklearn
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier
from sklearn.svm import SVC
from tqdm import tqdm

from kernel_constrained.bags import decode_input, open_recording
from kernel_constrained.configuration import from_flat, read_parameter_file
from kernel_constrained.core import CVaR, Gaussian, PrimalDualLearner
from kernel_constrained.offline.demo import LABELLED
from kernel_constrained.offline.places import labelled, PLACES
from kernel_constrained.perception.classifier_config import ClassifierNodeConfig
from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.perception.inputs import scan_features
from kernel_constrained.perception.messages import reading_of, stamp_of
from kernel_constrained.share import share_folder

BANDWIDTHS = (1.5, 2.5, 4.0)
CHOSEN_ON = 0.3  # last share of the labelled scans, which settings are chosen on
COVERAGE = 0.6  # share of the scans with the largest margins, of which accuracy is also given
NYSTROEM = 300  # atoms, as many as ours has at most
CLASSES = np.arange(len(PLACES))


class Online:
    """Ours, as classifier_node has it; with or without the constraint."""

    def __init__(self, tolerance, bandwidth, step_size):
        self.learner = PrimalDualLearner(
            Gaussian(bandwidth), loss='multiclass_hinge', classes=len(PLACES), step_size=step_size,
            constraint=CVaR(0.9, tolerance) if tolerance else None, dual_step_size=0.1,
            decay_after=math.inf, averaging_window=1000.0, max_model_order=300,
        )  # fmt: skip

    def learn(self, x, y):
        """Learn samples; return their scores from before each was learned."""
        return self.learner.prequential(x, y.astype(float)).prediction

    def scores(self, x):
        return self.learner.decision_function(x)

    @property
    def size(self):
        return self.learner.model_order_


class NystroemSGD:
    """scikit-learn's linear hinge by stochastic gradients on Nystroem features.

    Its atoms are drawn from the samples that it is about to learn: all of them, beforehand.
    """

    size = NYSTROEM

    def __init__(self, intercept, bandwidth, alpha):
        self.features = Nystroem(
            gamma=0.5 / bandwidth**2, n_components=NYSTROEM, random_state=0
        )  # fmt: skip
        self.linear = SGDClassifier(
            loss='hinge', alpha=alpha, average=True, shuffle=False, fit_intercept=intercept
        )

    def learn(self, x, y):
        z = self.features.fit_transform(x)
        scores = np.zeros((len(x), len(PLACES)))
        for i in range(len(x)):
            if i:
                scores[i] = self.linear.decision_function(z[i : i + 1])[0]
            self.linear.partial_fit(z[i : i + 1], y[i : i + 1], classes=CLASSES)
        return scores

    def scores(self, x):
        return self.linear.decision_function(self.features.transform(x))


class BatchSVC:
    """scikit-learn's support vector machine, which has all the labelled scans at once."""

    def __init__(self, bandwidth, penalty):
        self.machine = SVC(C=penalty, gamma=0.5 / bandwidth**2, decision_function_shape='ovr')

    def learn(self, x, y):
        self.machine.fit(x, y)

    def scores(self, x):
        return self.machine.decision_function(x)

    @property
    def size(self):
        return len(self.machine.support_)


class Contestant(NamedTuple):
    name: str
    make: type
    fixed: tuple
    grid: dict

    def settings(self):
        return list(itertools.product(*self.grid.values()))

    def build(self, setting):
        return self.make(*self.fixed, *setting)


STEPS, ALPHAS, PENALTIES = (0.2, 0.5), (1e-5, 1e-4, 1e-3), (1.0, 10.0)
SGD_GRID = {'bandwidth': BANDWIDTHS, 'alpha': ALPHAS}
CONTESTANTS = [
    Contestant('ours, CVaR at most 2', Online, (2.0,), {'bandwidth': BANDWIDTHS, 'step': STEPS}),
    Contestant('ours, no constraint', Online, (None,), {'bandwidth': BANDWIDTHS, 'step': STEPS}),
    Contestant('Nystroem + SGDClassifier', NystroemSGD, (True,), SGD_GRID),
    Contestant('the same, no intercept', NystroemSGD, (False,), SGD_GRID),
    Contestant('SVC, batch', BatchSVC, (), {'bandwidth': BANDWIDTHS, 'C': PENALTIES}),
]


def data(source):
    """Return features, labels and whether each is before the split, of the labelled scans."""
    config = from_flat(
        ClassifierNodeConfig,
        read_parameter_file(share_folder() / 'config' / 'classifier_places.yaml', 'node'),
    )
    with open_recording(source) as recording:
        places = labelled(recording)
        label_at = dict(zip(places.stamps.tolist(), places.labels.tolist()))
        split = recording.start + LABELLED * (recording.end - recording.start)
        x, y, early = [], [], []
        for message in recording.messages(['scan']):
            scan = decode_input(message)
            if label_at.get(stamp_of(scan)):
                x.append(scan_features(reading_of(scan), config.features, Mounting()))
                y.append(PLACES.index(label_at[stamp_of(scan)]))
                early.append(stamp_of(scan) < split)
    return np.array(x), np.array(y), np.array(early)


def accuracy(scores, y):
    """Share that is right, its mean over the classes, and that of the largest margins."""
    right = scores.argmax(axis=1) == y
    ordered = np.sort(scores, axis=1)
    surest = np.argsort(ordered[:, -2] - ordered[:, -1])[: round(COVERAGE * len(y))]
    balanced = np.mean([right[y == c].mean() for c in np.unique(y)])
    return right.mean(), balanced, right[surest].mean()


def choose(contestant, x, y):
    """Return the setting that is best on the last of the labelled scans."""
    end = round((1.0 - CHOSEN_ON) * len(y))

    def merit(setting):
        model = contestant.build(setting)
        model.learn(x[:end], y[:end])
        return accuracy(model.scores(x[end:]), y[end:])[0]

    return max(
        tqdm(contestant.settings(), desc=contestant.name, leave=False, disable=None), key=merit
    )


def measure(contestant, x, y, early):
    """Return a line of the table."""
    setting = choose(contestant, x[early], y[early])
    model = contestant.build(setting)
    begun = time.thread_time()
    before = model.learn(x[early], y[early])
    micro = (time.thread_time() - begun) / early.sum() * 1e6
    later = accuracy(model.scores(x[~early]), y[~early])
    online = accuracy(before, y[early]) if before is not None else (math.nan,) * 3
    shown = ', '.join(f'{k} {v:g}' for k, v in zip(contestant.grid, setting))
    numbers = ' '.join(f'{value:7.3f}' for value in (*online, *later))
    return f'{contestant.name:26s} {shown:26s} {numbers} {model.size:5d} {micro:9.0f}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=Path, default=Path('out/benchmark'))
    parser.add_argument('--source', default='killian')
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    x, y, early = data(arguments.source)
    shares = [np.bincount(y[part]).max() / part.sum() for part in (early, ~early)]
    again = [np.mean(y[part][1:] == y[part][:-1]) for part in (early, ~early)]
    lines = [
        f'Python {platform.python_version()}, scikit-learn {sklearn.__version__}; '
        f'{early.sum()} labelled scans to learn, {(~early).sum()} later ones, '
        f'{x.shape[1]} features',
        'each: share right, mean of it over the labels, share right of the '
        f'{COVERAGE:.0%} with the largest margins',
        f'{"contestant":26s} {"setting":26s} prequential             later, held out'
        '          size us/sample',
        f'{"the most frequent label":53s} {shares[0]:7.3f}{"":17s}{shares[1]:7.3f}',
        f'{"the label of the scan before":53s} {again[0]:7.3f}{"":17s}{again[1]:7.3f}',
    ]
    print(*lines, sep='\n', flush=True)
    for contestant in CONTESTANTS:
        lines.append(measure(contestant, x, y, early))
        print(lines[-1], flush=True)
    (arguments.output / 'places.txt').write_text('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main()
