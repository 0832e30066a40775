# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""States and transitions of filter_node, its services in each state, and faults of our own."""

import importlib.util
from types import SimpleNamespace

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from feeding import AXIS, BEGIN, MILLISECOND, pose_message, Robot, scan_message, Watch, write_model
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from probing import ended_by
from rclpy.parameter import Parameter
from std_srvs.srv import SetBool, Trigger

from kernel_constrained.nodes.filter_node import FilterNode
from kernel_constrained.nodes.services import answering
from kernel_constrained.perception.filter import ScanFilter

UNCONFIGURED, INACTIVE = State.PRIMARY_STATE_UNCONFIGURED, State.PRIMARY_STATE_INACTIVE
ACTIVE, FINALIZED = State.PRIMARY_STATE_ACTIVE, State.PRIMARY_STATE_FINALIZED
CONFIGURE, CLEANUP = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_CLEANUP
ACTIVATE, DEACTIVATE = Transition.TRANSITION_ACTIVATE, Transition.TRANSITION_DEACTIVATE


class Lifecycle:
    """The states of a filter in a process."""

    def __init__(self, probe, process):
        self.probe, self.process = probe, process

    @property
    def state(self):
        return self.probe.call(GetState, 'filter_node/get_state').current_state.id

    def change(self, transition):
        """Ask for a transition; return whether it was made.

        To one that is not possible rclpy of Jazzy does not answer; it raises.
        """
        client = self.probe.client(ChangeState, 'filter_node/change_state')
        raised = self.process.text.count('Transition is not registered')
        request = ChangeState.Request(transition=Transition(id=transition))
        future = client.call_async(request)
        self.probe.wait(
            lambda: future.done()
            or self.process.text.count('Transition is not registered') > raised
        )  # fmt: skip
        return future.done() and future.result().success


def test_in_each_state_possible_transitions_are_made_and_others_refused(probe, start):
    process = start('filter_node', **{**AXIS, 'autostart': 'false'})
    lifecycle = Lifecycle(probe, process)
    possible = {UNCONFIGURED: {CONFIGURE}, INACTIVE: {ACTIVATE, CLEANUP}, ACTIVE: {DEACTIVATE}}

    def refuses_the_impossible():
        state = lifecycle.state
        for transition in {CONFIGURE, CLEANUP, ACTIVATE, DEACTIVATE} - possible.get(state, set()):
            assert not lifecycle.change(transition)
            assert lifecycle.state == state

    with ended_by(process):
        path = (CONFIGURE, INACTIVE), (ACTIVATE, ACTIVE), (DEACTIVATE, INACTIVE)
        assert lifecycle.state == UNCONFIGURED
        refuses_the_impossible()
        for transition, state in (*path, (CLEANUP, UNCONFIGURED)):
            assert lifecycle.change(transition)
            assert lifecycle.state == state
            refuses_the_impossible()
        for transition, _ in path[:2]:
            assert lifecycle.change(transition)
        watch, robot = Watch(probe), Robot(probe)
        robot.drive(5)
        watch.wait_for(scan=5, pose=5)
        assert watch.values['samples learned'] == '5'
        assert lifecycle.change(Transition.TRANSITION_ACTIVE_SHUTDOWN)
        assert lifecycle.state == FINALIZED
        refuses_the_impossible()


def test_services_answer_while_inactive(probe, start, tmp_path):
    path = tmp_path / 'model.npz'
    process = start('filter_node', **{**AXIS, 'model.path': path})
    lifecycle, watch = Lifecycle(probe, process), Watch(probe)

    def learned():
        assert probe.call(Trigger, 'filter_node/save').success
        return ScanFilter.load(path).samples

    with ended_by(process):
        robot = Robot(probe)
        robot.drive(10)
        watch.wait_for(scan=10, pose=10)
        assert lifecycle.change(DEACTIVATE)
        watch.wait(lambda _, text, __: text == 'inactive')
        assert learned() == 10
        assert probe.call(Trigger, 'filter_node/reset').success
        assert learned() == 0
        ScanFilter.load(path)
        frozen = SetBool.Request(data=False)
        assert probe.call(SetBool, 'filter_node/set_learning', frozen).success
        assert lifecycle.change(ACTIVATE)
        probe.wait(robot.scans.get_subscription_count)
        probe.wait(robot.poses.get_subscription_count)
        probe.spin(0.5)
        robot.drive(10)
        watch.wait_for(scan=20, pose=20)
        assert (watch.status.message, learned()) == ('frozen', 0)
        learning = SetBool.Request(data=True)
        assert probe.call(SetBool, 'filter_node/set_learning', learning).success
        robot.drive(10)
        watch.wait_for(scan=30, pose=30)
        assert (watch.status.message, learned()) == ('learning', 10)
        path.unlink()
        answer = probe.call(Trigger, 'filter_node/load')
        assert not answer.success
        assert answer.message == f'{path} does not exist'


@pytest.mark.parametrize('executor', ['single', 'events'])
def test_it_can_be_deactivated_and_activated_while_messages_come(probe, start, executor):
    process = start('filter_node', **{**AXIS, 'executor': executor})
    lifecycle, watch = Lifecycle(probe, process), Watch(probe)
    with ended_by(process):
        robot = Robot(probe)
        timer = probe.node.create_timer(0.01, lambda: robot.drive(1, wait=False))
        for _ in range(5):
            for transition in (DEACTIVATE, ACTIVATE):
                probe.spin(0.1)
                assert lifecycle.change(transition)
        before = len(robot.estimates)
        probe.wait(lambda: len(robot.estimates) > before + 20, what='estimates')
        watch.wait(lambda level, *_: level == DiagnosticStatus.OK, 'OK')
        probe.node.destroy_timer(timer)
        robot.drive(1)
        probe.spin(1.5)  # until diagnostics of all of it
        assert not watch.dropped('scan')
        assert not watch.dropped('pose')
    assert 'ERROR' not in process.text


def test_a_node_that_cannot_be_configured_can_once_the_cause_is_mended(probe, start, tmp_path):
    path = tmp_path / 'model.npz'
    write_model(path)
    good = path.read_bytes()
    path.write_bytes(good[:1000])
    given = {**AXIS, 'model.path': path, 'model.load_at_start': 'always'}
    process = start('filter_node', **given)
    with ended_by(process):
        probe.wait(lambda: 'cannot configure' in process.text, what='a refusal')
        assert f'cannot configure: {path} is no model file or is damaged' in process.text
        lifecycle = Lifecycle(probe, process)
        assert lifecycle.state == UNCONFIGURED
        assert not lifecycle.change(CONFIGURE)
        assert lifecycle.state == UNCONFIGURED
        path.write_bytes(good)
        assert lifecycle.change(CONFIGURE)
        assert lifecycle.change(ACTIVATE)
        Robot(probe).drive(5)
        assert 'Traceback' not in process.text


@pytest.mark.skipif(importlib.util.find_spec('tf2_ros') is not None, reason='tf2_ros is there')
def test_mounting_by_tf_without_tf2_ros_is_refused_and_says_what_else_there_is(probe, start):
    process = start('filter_node', **{**AXIS, 'mounting.source': 'tf'})
    with ended_by(process):
        probe.wait(lambda: 'cannot configure' in process.text, what='a refusal')
        assert 'tf2_ros cannot be imported' in process.text
        assert 'or give mounting.x, y, yaw and upside_down' in process.text
        assert 'Traceback' not in process.text
        assert Lifecycle(probe, process).state == UNCONFIGURED


@pytest.fixture
def node(domain):
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    values = {**AXIS, 'learner.constrained': False}
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    node = FilterNode(context=context, parameter_overrides=overrides)
    yield node
    node.close()
    node.destroy_node()
    context.try_shutdown()


def test_without_a_model_file_save_and_load_say_what_is_missing(node):
    for action in (node._save, node._load):
        answer = answering(node, lambda _, act=action: act())(None, Trigger.Response())
        assert not answer.success
        assert answer.message == 'parameter model.path is empty: name the model file there'


def test_a_fault_of_our_own_in_a_service_is_answered_and_logged(node, monkeypatch, capfd):
    monkeypatch.setattr(node.filter, 'reset', lambda: 1 / 0)
    monkeypatch.setattr(node, 'reconfigure', lambda _: 1 / 0)
    answer = answering(node, lambda _: node._reset())(None, Trigger.Response())
    (result,) = node.set_parameters([Parameter('learner.step_size', value=0.1)])
    assert not answer.success
    assert not result.successful
    for said in (answer.message, result.reason):
        assert said == 'internal error ZeroDivisionError: division by zero'
    assert capfd.readouterr().err.count('Traceback') == 2


def test_a_fault_of_our_own_in_a_callback_is_counted_and_logged_and_it_goes_on(
    node, monkeypatch, capfd
):
    def take(count):
        for _ in range(count):
            time, x = BEGIN + node.received['scan'] * 50 * MILLISECOND, 0.1 * node.used['scan']
            node.take('pose', pose_message(time, x), node._use_pose)
            node.take('scan', scan_message(time, x), node._use_scan)

    take(5)
    with monkeypatch.context() as patch:
        patch.setattr(node.filter, 'scan', lambda *_: 1 / 0)
        take(3)
    take(5)
    assert node.dropped == {'scan: internal error ZeroDivisionError': 3}
    assert (node.received['scan'], node.used['scan'], node.used['pose']) == (13, 10, 13)
    assert node.filter.samples == 10
    assert node.level().level == DiagnosticStatus.WARN
    assert 'internal error ZeroDivisionError' in node.level().message
    logged = capfd.readouterr().err
    assert 'ZeroDivisionError: division by zero' in logged, 'with its traceback'
    assert 'Traceback' in logged


def test_losses_are_gaps_in_the_numbers_of_a_publisher_that_was_alone_before_too(
    node, monkeypatch
):
    entry, publishers = node.inputs['pose'], 1
    subscription = SimpleNamespace(get_publisher_count=lambda: publishers)
    monkeypatch.setattr(entry, '_subscription', subscription)
    monkeypatch.setattr(entry, '_callback', lambda _: None)
    for publishers, number, lost in (
        (1, 7, 0), (1, 8, 0), (1, 11, 2),
        (2, 100, 2), (2, 12, 2), (1, 101, 2),  # the first one went away
        (1, 103, 3), (1, 1, 3), (1, 2, 3),
    ):  # fmt: skip
        entry._receive(None, {'publication_sequence_number': number})
        assert entry.lost == lost, (publishers, number)
    assert entry.findings(heard=True) == {'lost before they were read: pose': 3}


def test_an_activation_that_fails_half_way_leaves_nothing_behind(node, monkeypatch):
    def fail(*_):
        raise ValueError('no second input')

    node.trigger_deactivate()
    before = len(list(node.publishers)), len(list(node.subscriptions))
    listen = node.listen
    monkeypatch.setattr(
        node, 'listen', lambda kind, *rest: (fail if kind == 'pose' else listen)(kind, *rest)
    )
    node.trigger_activate()
    assert (len(list(node.publishers)), len(list(node.subscriptions))) == before
    assert not node.active
    assert 'no second input' in node.refusal
    monkeypatch.undo()
    node.trigger_activate()
    assert node.active
    assert node.refusal == ''


def test_a_message_that_cannot_be_used_fixes_no_frame(node):
    def scan(i, frame, **changes):
        message = scan_message(BEGIN + i * 50 * MILLISECOND, 0.0, frame)
        for name, value in changes.items():
            setattr(message, name, value)
        node.take('scan', message, node._use_scan)

    scan(0, 'nonsense', ranges=[])
    scan(1, 'laser')
    scan(2, 'other')
    assert node.used['scan'] == 1
    assert node.dropped == {'scan: empty scan': 1, 'scan: wrong frame': 1}
