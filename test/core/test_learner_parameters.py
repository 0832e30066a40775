# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of the learners as published: defaults, ranges, which change while learning."""

import inspect
import math

import attrs
import pytest

from kernel_constrained.core import (
    CVaR,
    Expectation,
    Gaussian,
    Polynomial,
    PrimalDualLearner,
    SubquantileClassifier,
    SubquantileRegressor,
)
from kernel_constrained.core.subquantile import SubquantileLearner

INF = math.inf
LEARNER = {
    'step_size': (0.5, 1e-9, 1e3), 'parsimony': (0.1, 0.0, INF), 'novelty': (1e-3, 1e-7, 1.0),
    'regularization': (1e-5, 0.0, INF), 'dual_regularization': (1e-5, 0.0, INF),
    'batch_size': (1, 1, 10000), 'dual_step_size': (0.025, 0.0, INF),
    'quantile_step_size': (0.05, 0.0, INF), 'dual_cap': (1e3, 0.0, INF),
    'averaging_window': (INF, 1.0, INF), 'decay_after': (2000.0, 1.0, INF),
    'huber_threshold': (1.0, 1e-12, INF), 'classes': (2, 2, 10000), 'penalty': (1e-3, 0.0, INF),
    'penalty_doubling': (200.0, 1.0, INF), 'max_model_order': (2000, 1, 20000),
    'loss_window': (1000, 1, INF),
}  # fmt: skip
WINDOW = {
    'corruption': (0.5, 0.0, 0.5), 'window': (2000, 20, 100000),
    **{name: LEARNER[name] for name in ('regularization', 'novelty', 'max_model_order')},
}  # fmt: skip
TRIMMED = {
    'regularization': (1e-3, 1e-12, INF), 'radius': (INF, 1e-12, INF),
    'max_features': (200, 1, 20000), 'max_iterations': (500, 1, INF),
    'tolerance': (1e-5, 0.0, INF), 'random_state': (0, 0, INF),
}  # fmt: skip
NUMBERS = {
    PrimalDualLearner: LEARNER,
    SubquantileLearner: WINDOW,
    SubquantileRegressor: TRIMMED,
    SubquantileClassifier: TRIMMED,
    Gaussian: {'bandwidth': (1.0, 1e-12, INF)},
    Polynomial: {'degree': (2, 1, 20), 'offset': (1.0, 0.0, INF)},
    CVaR: {
        'significance': (0.9, 0.0, 0.9999), 'tolerance': (1.0, 1e-12, 1e150),
        'smoothing': (0.0, 0.0, INF),
    },
    Expectation: {'tolerance': (1.0, 1e-12, 1e150)},
}  # fmt: skip
OTHERS = {
    PrimalDualLearner: {'kernel', 'loss', 'constraint', 'step', 'mode'},
    SubquantileLearner: {'kernel'},
    SubquantileRegressor: {'kernel', 'corruption', 'solver', 'refine', 'acceleration', 'start'},
    SubquantileClassifier: {'kernel', 'corruption', 'solver', 'refine', 'acceleration', 'start'},
}
RUNTIME = {
    PrimalDualLearner: {
        'step_size', 'parsimony', 'novelty', 'regularization', 'dual_step_size',
        'quantile_step_size',
    },
    SubquantileLearner: {'corruption', 'regularization', 'novelty'},
    CVaR: {'significance', 'tolerance'},
    Expectation: {'tolerance'},
}  # fmt: skip
EACH = pytest.mark.parametrize('cls', NUMBERS, ids=lambda cls: cls.__name__)


@EACH
def test_defaults_and_ranges_are_those_published(cls):
    found = {
        field.name: (field.default, field.metadata['low'], field.metadata['high'])
        for field in attrs.fields(cls)
        if field.metadata.get('type') in (int, float)
    }
    assert found == NUMBERS[cls]


@EACH
def test_what_can_change_while_learning_is_what_is_published(cls):
    found = {field.name for field in attrs.fields(cls) if field.metadata.get('runtime')}
    assert found == RUNTIME.get(cls, set())


@EACH
def test_parameters_are_all_one_gives_and_all_one_is_shown(cls):
    """What is learned is no parameter: it is neither taken nor printed."""
    names = set(NUMBERS[cls]) | OTHERS.get(cls, set())
    assert set(inspect.signature(cls).parameters) == names
    learned = [field for field in attrs.fields(cls) if field.name.startswith('_')]
    assert not any(field.repr or field.init for field in learned)


@pytest.mark.parametrize(
    'cls', [PrimalDualLearner, SubquantileLearner, SubquantileRegressor, SubquantileClassifier]
)
def test_two_learners_with_the_same_parameters_are_two(cls):
    one, other = cls(), cls()
    assert one != other
    assert len({one, other}) == 2
