# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The peers: other packages' online kernel learners, each with the settings that are tried.

Each is used as its documentation shows and given what helps it: averaging or shrinking steps,
mini-batches, features drawn as often as it can afford, validation of arguments turned off.
"""

import sys
from pathlib import Path

import dlib_krls
import numpy as np
from adapter import Contestant, FourierFeatures, grid, package, Result, Stopwatch
from numpy_komp import NumpyKomp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'core'))

from naive import NaiveLearner

from kernel_constrained.core import Gaussian

CALLS = 100  # that are timed where calls are slow
NYSTROEM_SAMPLES = 1_000  # from which the landmarks are drawn


def scikit_learn_features(name, stream, setting):
    """Return scikit-learn's transformer, fitted; landmarks come from the stream's beginning."""
    from sklearn import kernel_approximation

    kind = getattr(kernel_approximation, name)
    gamma = 0.5 / setting['bandwidth'] ** 2
    features = kind(gamma=gamma, n_components=setting['features'], random_state=stream.seed)
    return features.fit(stream.x[:NYSTROEM_SAMPLES])


def scikit_learn_pass(stream, features, setting, batch, samples):
    """Return (SGDRegressor after ``samples`` samples in mini-batches, seconds a sample)."""
    from sklearn.linear_model import SGDRegressor

    learner = SGDRegressor(
        learning_rate=setting['rate'], eta0=setting['step'], power_t=0.25, alpha=1e-7,
        average=setting['rate'] == 'constant', shuffle=False, random_state=0,
    )  # fmt: skip
    with Stopwatch() as watch:
        for i in range(0, samples, batch):
            here = slice(i, min(i + batch, samples))
            learner.partial_fit(features.transform(stream.x[here]), stream.y[here])
    return learner, watch.seconds / samples


def scikit_learn(name):
    """Return ``run`` of a feature map and SGDRegressor.

    Samples are learned one after the other within ``partial_fit``, so the size of the mini-batch
    changes the cost and not the model: where it is 1 only so many calls are timed.
    """

    def run(stream, setting):
        import sklearn

        samples = len(stream.x)
        with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
            with Stopwatch() as watch:
                features = scikit_learn_features(name, stream, setting)
            learner, seconds = scikit_learn_pass(stream, features, setting, 100, samples)
            if setting['batch'] < 100:
                timed = min(samples, CALLS * setting['batch'])
                _, seconds = scikit_learn_pass(
                    stream, features, setting, setting['batch'], timed
                )  # fmt: skip
            prediction = learner.predict(features.transform(stream.test_x))
        return Result(
            seconds + watch.seconds / samples, stream.error(prediction), setting['features']
        )

    return run


def padasip(stream, setting):
    """Recursive least squares on random Fourier features, made sample by sample."""
    from padasip.filters import FilterRLS

    features = FourierFeatures(
        stream.x.shape[1], setting['features'], setting['bandwidth'], stream.seed
    )
    learner = FilterRLS(setting['features'], mu=1.0, eps=setting['eps'], w='zeros')
    with Stopwatch() as watch:
        for x, y in zip(stream.x, stream.y):
            learner.adapt(y, features(x))
    error = stream.error(features(stream.test_x) @ learner.w)
    return Result(watch.seconds / len(stream.x), error, setting['features'])


def river_learner(setting):
    """Linear regression by SGD: a constant step, or one that shrinks as 1 / sqrt(t)."""
    from river import linear_model, optim

    shrinking = optim.schedulers.InverseScaling(setting['step'], power=0.5)
    step = shrinking if setting['rate'] == 'shrinking' else setting['step']
    return linear_model.LinearRegression(optimizer=optim.SGD(step))


def river_pass(model, stream, as_dict):
    """Learn one sample at a time; return (seconds a sample, error)."""
    with Stopwatch() as watch:
        for x, y in zip(stream.x, stream.y.tolist()):
            model.learn_one(as_dict(x), y)
    prediction = [model.predict_one(as_dict(x)) for x in stream.test_x]
    return watch.seconds / len(stream.x), stream.error(np.array(prediction))


def river_own_features(stream, setting):
    """Make river's RBFSampler, whose features are of one input each: it learns sums of them."""
    from river import feature_extraction

    gamma, inputs = 0.5 / setting['bandwidth'] ** 2, stream.x.shape[1]
    sampler = feature_extraction.RBFSampler(gamma, setting['features'], seed=stream.seed)
    # Its features are cosines that nobody scales: the step is that of features of norm 1.
    scaled = setting | {'step': 2 * setting['step'] / (setting['features'] * inputs)}
    model = sampler | river_learner(scaled)
    seconds, error = river_pass(model, stream, lambda x: dict(enumerate(x.tolist())))
    return Result(seconds, error, setting['features'] * inputs)


def river_fourier(stream, setting):
    """Make river's linear regression on the random Fourier features of all inputs together."""
    features = FourierFeatures(
        stream.x.shape[1], setting['features'], setting['bandwidth'], stream.seed
    )
    model = river_learner(setting)
    seconds, error = river_pass(model, stream, lambda x: dict(enumerate(features(x).tolist())))
    return Result(seconds, error, setting['features'])


def numpy_learner(stream, setting):
    learner = NumpyKomp(
        stream.x.shape[1], setting['bandwidth'], setting['step'], setting['budget'], 1e-5
    )
    with Stopwatch() as watch:
        for x, y in zip(stream.x, stream.y):
            learner.step(x, y)
    return learner, watch.seconds / len(stream.x)


def numpy_komp(stream, setting):
    learner, seconds = numpy_learner(stream, setting)
    return Result(seconds, stream.error(learner.predict(stream.test_x)), learner.order)


def naive(stream, setting, steps=3):
    """Time some steps from the state that the whole stream leads to; it has the same error."""
    fast, _ = numpy_learner(stream, setting)
    error, order = stream.error(fast.predict(stream.test_x)), fast.order
    step_size = setting['step']
    learner = NaiveLearner(
        Gaussian(setting['bandwidth']), step_size, setting['budget'] / step_size**2, 1e-5
    )
    learner.atoms, learner.weights = fast.atoms.copy(), fast.weights[:, None].copy()
    with Stopwatch() as watch:
        for i in range(steps):
            learner.step(stream.x[i], stream.y[i])
    return Result(watch.seconds / steps, error, order)


SCIKIT_LEARN, RIVER, PADASIP, NUMPY = (
    package('scikit-learn', 'sklearn'), package('river'), package('padasip'), package('numpy'),
)  # fmt: skip

PEERS = [
    Contestant('dlib krls', dlib_krls.ORIGIN, dlib_krls.run,
               grid(tolerance=(1e-1, 3e-2, 1e-2, 1e-3, 1e-4)), rounds=3),
    Contestant('scikit-learn RBFSampler + SGD', SCIKIT_LEARN, scikit_learn('RBFSampler'),
               grid(features=(100, 300, 1000), batch=(100,), rate=('constant',), step=(0.2, 0.8))
               + grid(features=(300,), batch=(100,), rate=('invscaling',), step=(0.2,))
               + grid(features=(300,), batch=(10,), rate=('constant',), step=(0.5,)),),
    Contestant('the same, a sample a call', SCIKIT_LEARN, scikit_learn('RBFSampler'),
               grid(features=(300,), batch=(1,), rate=('constant',), step=(0.5,)),
               own_bandwidth=False, note=f'{CALLS} calls are timed'),
    Contestant('scikit-learn Nystroem + SGD', SCIKIT_LEARN, scikit_learn('Nystroem'),
               grid(features=(30, 100, 300), batch=(100,), rate=('constant',), step=(0.2, 0.8))
               + grid(features=(100,), batch=(100,), rate=('invscaling',), step=(0.2,)),
               note=f'landmarks are drawn from the first {NYSTROEM_SAMPLES} samples beforehand'),
    Contestant('padasip RLS, Fourier features', PADASIP, padasip,
               grid(features=(30, 60), eps=(1e-4, 1e-2)) + grid(features=(100,), eps=(1e-2,))),
    Contestant('river SGD, Fourier features', RIVER, river_fourier,
               grid(features=(30, 100), rate=('constant',), step=(0.05,))
               + grid(features=(30, 100), rate=('shrinking',), step=(0.5,))),
    Contestant('river RBFSampler + SGD', RIVER, river_own_features,
               grid(features=(50,), rate=('constant',), step=(0.03, 0.3)), own_bandwidth=False,
               note='its features are of one input each: it can only learn sums over the inputs'),
    Contestant('numpy KOMP (POLK)', NUMPY, numpy_komp,
               grid(step=(0.05, 0.2), budget=(0.1, 0.03, 0.01)), own_bandwidth=False),
    Contestant('naive KOMP (POLK)', NUMPY, naive, grid(step=(0.2,), budget=(0.1, 0.03)),
               own_bandwidth=False,
               note="3 samples are timed, in the steady state; it is exact: the error is POLK's"),
]  # fmt: skip
