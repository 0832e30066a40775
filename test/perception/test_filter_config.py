# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The filter's parameters: what is refused, and that all of them arrive."""

from pathlib import Path

import attrs
import pytest

from kernel_constrained.configuration import (
    ConfigurationError,
    fields,
    flatten,
    from_flat,
    read_parameter_file,
)
from kernel_constrained.core import CVaR, Gaussian, Polynomial, PrimalDualLearner
from kernel_constrained.perception.config import FeatureConfig, FilterConfig, LearnerConfig
from kernel_constrained.perception.node_config import FilterNodeConfig

CONFIG = Path(__file__).resolve().parents[2] / 'config'


@pytest.mark.parametrize(
    ('low', 'high', 'fits'),
    [
        (-3.141592653589793, 3.141592653589793, True),
        (-3.15, 3.15, True),  # pi as a person rounds it
        (0.0, 6.2832, True),
        (1.0, 1.001, True),
        (1.0, 1.0, False),
        (1.0, -1.0, False),
        (-7.0, 7.0, False),
        (-4.0, 4.0, False),
    ],
)
def test_bearings_must_span_something_and_at_most_a_full_turn(low, high, fits):
    if fits:
        assert FeatureConfig(bearing_min=low, bearing_max=high).bearing_max == high
        return
    with pytest.raises(ConfigurationError, match=f'at most a full turn.*got {high:g} and {low:g}'):
        FeatureConfig(bearing_min=low, bearing_max=high)
    with pytest.raises(ConfigurationError, match='bearing_max must exceed bearing_min'):
        from_flat(FilterConfig, {'features.bearing_min': low, 'features.bearing_max': high})


@pytest.mark.parametrize(
    'name',
    [
        'features.far', 'features.half_range', 'target.position_scale', 'target.position_offset',
        'target.yaw_scale',
    ],
)  # fmt: skip
def test_infinity_that_would_make_features_or_targets_nan_is_refused(name):
    with pytest.raises(ConfigurationError, match=rf'{name} must be a number from .* \(got inf\)'):
        from_flat(FilterConfig, {name: float('inf')})


@pytest.mark.parametrize(
    ('input_type', 'features', 'fits'),
    [
        ('scan', 'sectors', True),
        ('range', 'range', True),
        ('scan', 'beams', True),
        ('scan', 'range', False),
        ('range', 'sectors', False),
        ('range', 'beams', False),
    ],
)
def test_node_takes_features_that_its_input_can_give(input_type, features, fits):
    values = {'input.type': input_type, 'features.type': features}
    if fits:
        assert from_flat(FilterNodeConfig, values).input.type == input_type
        return
    with pytest.raises(ConfigurationError, match=f'{input_type} does not go with .* {features}'):
        from_flat(FilterNodeConfig, values)


def test_learner_is_built_as_its_configuration_says():
    values = {
        'step_size': 0.07, 'parsimony': 0.3, 'regularization': 1e-3, 'dual_regularization': 1e-4,
        'mode': 'penalty', 'dual_step_size': 0.01, 'quantile_step_size': 0.02, 'dual_cap': 7.0,
        'averaging_window': 50.0, 'decay_after': 80.0, 'penalty': 0.5, 'penalty_doubling': 60.0,
        'max_model_order': 77, 'loss_window': 33, 'step': 'gradient', 'novelty': 0.01,
        'batch_size': 3,
    }  # fmt: skip
    of_learner = {f.name for f in attrs.fields(PrimalDualLearner) if 'type' in f.metadata}
    fixed = {'loss', 'huber_threshold', 'classes'}
    assert set(values) == of_learner - fixed, 'every other parameter can be chosen'
    learner = LearnerConfig(bandwidth=2.0, significance=0.8, tolerance=3.0, **values).build()
    assert {name: getattr(learner, name) for name in values} == values
    assert learner.kernel == Gaussian(2.0)
    assert learner.constraint == CVaR(0.8, 3.0)
    assert learner.samples_ == 0


def test_polynomial_kernel_and_no_constraint_can_be_chosen():
    learner = LearnerConfig(kernel='polynomial', degree=3, offset=2.0, constrained=False).build()
    assert learner.kernel == Polynomial(3, 2.0)
    assert learner.constraint is None


@pytest.mark.parametrize('name', ['step_size', 'max_model_order', 'parsimony', 'mode'])
def test_parameters_of_the_learner_mean_and_allow_what_the_learner_says(name):
    ours = dict(fields(LearnerConfig))[name].metadata
    theirs = attrs.fields_dict(PrimalDualLearner)[name].metadata
    assert dict(ours) == dict(theirs)


def test_node_has_the_parameters_of_the_filter_and_its_own():
    node, alone = flatten(FilterNodeConfig()), flatten(FilterConfig())
    assert alone.items() <= node.items()
    assert {'frame_id', 'autostart', 'model.path', 'pose.type'} <= set(node) - set(alone)


@pytest.mark.parametrize('file', sorted(CONFIG.glob('filter*.yaml')), ids=lambda p: p.name)
def test_parameter_files_of_the_package_fit(file):
    given = read_parameter_file(file, 'filter_node')
    assert given
    effective = flatten(from_flat(FilterNodeConfig, given))
    assert {name: effective[name] for name in given} == given


@pytest.mark.parametrize(
    'wanted', [{'load_at_start': 'always'}, {'load_at_start': 'if_present'},
               {'save_at_end': True}, {'autosave_period': 1.0}]
)  # fmt: skip
def test_model_that_is_loaded_or_saved_needs_a_file(wanted):
    wanted = {f'model.{name}': value for name, value in wanted.items()}
    with pytest.raises(ConfigurationError, match='path is empty: name the model file'):
        from_flat(FilterNodeConfig, wanted)
    given = {**wanted, 'model.path': 'model.npz'}
    assert flatten(from_flat(FilterNodeConfig, given)).items() >= given.items()


def test_loading_at_start_is_a_choice_of_three():
    for value in ('sometimes', True):
        given = {'model.path': 'model.npz', 'model.load_at_start': value}
        with pytest.raises(ConfigurationError, match='never, if_present, always'):
            from_flat(FilterNodeConfig, given)
    assert from_flat(FilterNodeConfig, {}).model.load_at_start == 'never'
