# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of filter_node: what is taken, what is refused and how, what may change."""

import time

import pytest
from feeding import AXIS, Robot, set_parameters, set_together, together, Watch
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from probing import CONFIG, ended_by
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParametersAtomically
from std_msgs.msg import Float64

LIDAR = CONFIG / 'filter_lidar.yaml'


def assert_refused(process, *texts):
    """Require that it ends with code 2 and one clear message."""
    assert process.process.wait(timeout=60) == 2, process.text
    for text in texts:
        assert text in process.text
    assert 'Traceback' not in process.text


def get(probe, *names, node='filter_node'):
    request = GetParameters.Request(names=names)
    answer = probe.call(GetParameters, f'{node}/get_parameters', request)
    return [v.double_value for v in answer.values]


# -- at the start -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('parameters', 'message'),
    [
        ({'learner.step_size': -1}, 'learner.step_size must be a number from 1e-09 to 1000'),
        ({'learner.step_size': '.nan'}, 'learner.step_size must be a number'),
        ({'learner.parsimony': 'much'}, 'learner.parsimony must be a number of at least 0'),
        ({'learner.stepsize': 0.1}, 'learner.stepsize is not a parameter of FilterNodeConfig, '
                                    'did you mean learner.step_size?'),
        ({'target.type': 'velocity'}, 'target.type must be one of axis, motion, pose'),
        ({'features.sectors': 2.5}, 'features.sectors must be an integer from 1 to 4096'),
        ({'input.type': 'range'}, 'input.type range does not go with features.type sectors'),
        ({'model.load_at_start': 'always'}, 'model: path is empty: name the model file'),
        ({'model.path': 'm', 'model.autosave_period': '.inf'}, 'model.autosave_period must be'),
        ({'executor': 'many'}, "executor must be one of single, events (got 'many')"),
    ],
)  # fmt: skip
def test_a_wrong_parameter_is_an_error_that_names_it(start, parameters, message):
    assert_refused(start('filter_node', **parameters), message)


def test_all_wrong_parameters_are_named_at_once(start):
    process = start('filter_node', **{'learner.step_size': -1, 'learner.modes': 1})
    assert_refused(process, 'learner.step_size must be', 'learner.modes is not a parameter')


def test_wrong_values_in_a_file_are_named_as_those_of_the_command_line_are(start, tmp_path):
    file = tmp_path / 'parameters.yaml'
    file.write_text(
        '/**:\n  ros__parameters:\n    learner: {step_size: .nan, stepsize: 1, tolerance: many}\n'
    )
    assert_refused(
        start('filter_node', file), 'learner.step_size must be a number', '(got nan)',
        'did you mean learner.step_size?', 'learner.tolerance must be a number', "(got 'many')",
    )  # fmt: skip


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (None, 'parameters.yaml cannot be read: No such file or directory'),
        ('a: [1\nb: {\n', 'parameters.yaml is not YAML: '),
        ('hello\n', 'parameters.yaml holds no parameters (expected `/**: ros__parameters:`)'),
        ('', 'parameters.yaml holds no parameters'),
    ],
)
def test_a_file_that_holds_no_parameters_is_said_in_a_line(start, tmp_path, text, message):
    file = tmp_path / 'parameters.yaml'
    if text is not None:
        file.write_text(text)
    process = start('filter_node', file)
    assert_refused(process, message)
    assert len(process.text.splitlines()) == 1


HERE = [('__ns', '/robot/front')]


@pytest.mark.parametrize(
    ('remaps', 'keys'),
    [
        ([], 'planner_node: {'),
        ([], '/robot/front/filter_node: {'),
        (HERE, 'filter_node: {'),
        (HERE, '/*/filter_node: {'),
        ([('__node', 'front_filter')], 'filter_node: {'),
    ],
)
def test_a_file_keyed_to_another_node_is_noticed(start, tmp_path, remaps, keys):
    file = tmp_path / 'parameters.yaml'
    file.write_text(keys + 'ros__parameters: {learner.tolerance: 7}' + '}' * keys.count('{'))
    node = '/front_filter' if remaps and remaps != HERE else '/filter_node'
    name = f'/robot/front{node}' if remaps == HERE else node
    assert_refused(
        start('filter_node', file, remaps),
        f'parameters.yaml has no parameters for {name}: its keys are {keys.split(":")[0]}, ',
        f'expected `/**` or `{name}` with `ros__parameters` below',
    )


@pytest.mark.parametrize(
    'keys',
    ['/**: {', '/robot/front/filter_node: {', 'robot: {front: {filter_node: {'],
)
def test_a_file_keyed_to_a_node_in_a_namespace_is_taken(probe, start, tmp_path, keys):
    file = tmp_path / 'parameters.yaml'
    given = 'ros__parameters: {autostart: false, learner: {tolerance: 7, step_size: 1e-3}}'
    file.write_text(keys + given + '}' * keys.count('{'))
    process = start('filter_node', file, HERE)
    with ended_by(process):
        names = 'learner.tolerance', 'learner.step_size'
        assert get(probe, *names, node='/robot/front/filter_node') == [7.0, 1e-3]


# -- while it runs ----------------------------------------------------------------------------


def test_runtime_parameters_are_checked_then_applied_and_static_ones_refused(probe, start):
    process = start(
        'filter_node', **{**AXIS, 'learner.constrained': 'true', 'learner.step_size': 1}
    )
    watch = Watch(probe)
    with ended_by(process):
        assert set_parameters(probe, ('learner.tolerance', 2))[0].successful, 'an integer will do'
        assert set_parameters(probe, ('learner.step_size', '1e-3'))[0].successful
        assert get(probe, 'learner.step_size') == [0.0], 'the string that it was given as'
        for name, value, reason in (
            ('learner.step_size', -0.5, 'learner.step_size'),
            ('learner.tolerance', float('nan'), 'learner.tolerance'),
            ('learner.parsimony', float('nan'), 'learner.parsimony must be a number of at least'),
            ('learner.mode', 'paper', 'learner.mode'),
        ):
            refused = set_parameters(probe, (name, value))[0]
            assert not refused.successful
            assert reason in refused.reason

        Robot(probe).drive(5)
        set_parameters(probe, ('learner.tolerance', 1e-6))
        watch.wait(lambda _, __, values: float(values['violation']) > 0, 'a violation of it')

        request = DescribeParameters.Request(names=['learner.tolerance', 'learner.mode'])
        answer = probe.call(DescribeParameters, 'filter_node/describe_parameters', request)
        tolerance, mode = answer.descriptors
        assert 'bound on the mean of the tail' in tolerance.description
        assert not tolerance.read_only
        assert mode.read_only
        assert mode.additional_constraints == 'one of default, paper, penalty'


def test_of_parameters_set_together_all_are_taken_or_none(probe, start):
    process = start('filter_node', **{**AXIS, 'learner.constrained': 'true'})
    names = 'learner.tolerance', 'learner.step_size'
    watch = Watch(probe)
    with ended_by(process):
        before = get(probe, *names)
        robot = Robot(probe)
        robot.drive(5)
        for wrong in (
            ('learner.step_size', -1.0),
            ('features.sectors', 5),
            ('use_sim_time', 'perhaps'),
            ('diagnostics.error_after', -1.0),  # rclpy leaves it to us: no range is declared
        ):
            assert not set_together(probe, ('learner.tolerance', 1e-6), wrong).successful
            assert get(probe, *names) == before
        robot.drive(5)
        watch.wait_for(scan=10, pose=10)
        assert float(watch.values['violation']) < 0.0, 'by the tolerance of before'
        assert set_together(probe, ('learner.tolerance', 2.5), (names[1], 0.25)).successful
        assert get(probe, *names) == [2.5, 0.25]


def test_parameters_set_while_unconfigured_count_once_it_is_configured(probe, start):
    process = start('filter_node', **{**AXIS, 'autostart': 'false', 'learner.constrained': 'true'})
    watch = Watch(probe)

    def change(transition):
        request = ChangeState.Request(transition=Transition(id=transition))
        return probe.call(ChangeState, 'filter_node/change_state', request).success

    with ended_by(process):
        assert set_parameters(probe, ('learner.tolerance', 1e-6))[0].successful
        assert not set_parameters(probe, ('learner.mode', 'paper'))[0].successful
        assert change(Transition.TRANSITION_CONFIGURE)
        assert change(Transition.TRANSITION_ACTIVATE)
        Robot(probe).drive(5)
        watch.wait(lambda _, __, values: float(values['violation']) > 0, 'a violation of it')


def test_parameters_that_change_at_50_hz_tear_nothing_apart(probe, start):
    """Messages come at 40 Hz meanwhile, as fast as a lidar's."""
    process = start('filter_node', **{**AXIS, 'learner.constrained': 'true'})
    watch = Watch(probe)
    losses = probe.collect(Float64, 'filter_node/loss')
    changes = []
    values = {
        'learner.tolerance': (0.5, 5.0), 'learner.step_size': (0.1, 0.5),
        'mounting.yaw': (0.0, 0.1), 'publish.figures': (False, True),
    }  # fmt: skip
    with ended_by(process):
        robot = Robot(probe)
        set_together(probe, ('learner.tolerance', 1.0))
        client = probe.client(SetParametersAtomically, 'filter_node/set_parameters_atomically')
        begun = time.monotonic()
        while robot.sent < 160:
            elapsed = time.monotonic() - begun
            if robot.sent < 40 * elapsed:
                robot.drive(1, wait=False)
            if len(changes) < 50 * elapsed:
                number = len(changes)
                pairs = [(name, pair[number % 2]) for name, pair in values.items()]
                changes.append(client.call_async(together(*pairs)))
            probe.executor.spin_once(timeout_sec=0.002)
        probe.wait(lambda: len(robot.estimates) == 160, what='all estimates')
        probe.wait(lambda: all(change.done() for change in changes), what='all answers')
        assert len(changes) > 150
        assert all(change.result().result.successful for change in changes)
        watch.wait_for(scan=160, pose=160)
        assert watch.values['samples learned'] == '160'
        assert not watch.dropped('scan')
        assert 0 < len(losses) < 160, 'published while that was wanted'
    assert 'ERROR' not in process.text
