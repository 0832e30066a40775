# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The model file: autosave, being killed while it is written, files that do not fit."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from feeding import AXIS, Robot, Watch, write_model
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from probing import DISCOVERY, ended_by, REPOSITORY
from std_srvs.srv import Trigger

from kernel_constrained import model_file
from kernel_constrained.nodes.saving import check_place
from kernel_constrained.perception.filter import FORMAT, ScanFilter


def saving(path, **more):
    return {**AXIS, 'model.path': path, 'model.autosave_period': 0.1, **more}


def samples_in(path):
    return ScanFilter.load(path).samples if path.exists() else 0


def test_the_model_is_saved_as_it_is_learned_and_the_next_node_goes_on_with_it(
    probe, start, tmp_path
):
    path = tmp_path / 'model.npz'
    given = saving(path, **{'model.load_at_start': 'if_present'})
    process = start('filter_node', **given)
    watch = Watch(probe)
    with ended_by(process):
        robot = Robot(probe)
        for count in (10, 20):
            robot.drive(10)
            probe.wait(lambda n=count: samples_in(path) == n, what=f'a file of {count} samples')
        watch.wait(lambda _, __, values: values['model file'].startswith('saved at '))

        robot.close()

    process = start('filter_node', None, [('__ns', '/second')], **given)
    with ended_by(process):
        robot = Robot(probe, 'second/')
        watch.wait(lambda *_: watch.status.name == 'second/filter_node: status', 'the second node')
        assert watch.values['samples learned'] == '20'
        assert 'goes on with 20 samples of' in process.text
        robot.sent = 20
        robot.drive(1)
        assert abs(robot.estimates[-1].pose.pose.position.x) > 1e-3, 'it knows something already'
        probe.wait(lambda: samples_in(path) == 21, what='a file of 21 samples')
    assert [p.name for p in tmp_path.iterdir() if 'model' in p.name] == ['model.npz']


def test_what_became_of_a_save_that_was_asked_for_is_shown(probe, start, tmp_path):
    path = tmp_path / 'folder' / 'model.npz'
    process = start('filter_node', **{**AXIS, 'model.path': path})
    watch = Watch(probe)
    with ended_by(process):
        watch.wait(
            lambda _, __, values: values['model file'] == 'not saved yet', seconds=DISCOVERY
        )
        path.parent.write_text('no folder')
        assert not probe.call(Trigger, 'filter_node/save').success
        watch.wait(lambda _, __, values: values['model file'].startswith('not saved: '))
        path.parent.unlink()
        path.parent.mkdir()
        assert probe.call(Trigger, 'filter_node/save').success
        watch.wait(lambda _, __, values: values['model file'].startswith('saved at '))


def test_where_a_model_is_to_be_saved_is_looked_at_first(tmp_path):
    check_place(tmp_path / 'model.npz')
    with pytest.raises(OSError, match=r'model\.path\): there is no folder .*; make it, or give'):
        check_place(tmp_path / 'none' / 'model.npz')
    with pytest.raises(OSError, match='that is a folder; name a file in it'):
        check_place(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, 'access', lambda *_: False)
        with pytest.raises(OSError, match='cannot be written to; allow it'):
            check_place(tmp_path / 'model.npz')


def test_what_cannot_be_saved_at_the_end_is_refused_at_the_start_and_kept_at_a_cleanup(
    probe, start, tmp_path
):
    def change(transition):
        request = ChangeState.Request(transition=Transition(id=transition))
        return probe.call(ChangeState, 'filter_node/change_state', request).success

    path = tmp_path / 'models' / 'model.npz'
    process = start('filter_node', **{**AXIS, 'model.path': path, 'model.save_at_end': True})
    probe.wait(lambda: 'cannot configure' in process.text, what='a refusal')
    assert f'cannot configure: no model can be saved to {path}' in process.text
    path.parent.mkdir()
    assert change(Transition.TRANSITION_CONFIGURE)
    assert change(Transition.TRANSITION_ACTIVATE)
    robot, watch = Robot(probe), Watch(probe)
    robot.drive(5)
    path.parent.rmdir()
    assert change(Transition.TRANSITION_DEACTIVATE)
    assert not change(Transition.TRANSITION_CLEANUP)
    assert 'cannot clean up: ' in process.text
    assert change(Transition.TRANSITION_ACTIVATE)
    watch.wait(lambda *_: watch.values['samples learned'] == '5', 'what was learned')
    assert process.end() == 1, process.text
    assert 'cannot end as asked for: ' in process.text
    assert 'Traceback' not in process.text


def test_a_folder_that_cannot_be_written_is_a_warning_and_it_goes_on(probe, start, tmp_path):
    folder = tmp_path / 'models'
    folder.mkdir()
    process = start('filter_node', **saving(folder / 'model.npz'))
    watch = Watch(probe)
    with ended_by(process):
        robot = Robot(probe)
        folder.rmdir()
        robot.drive(5)
        watch.wait(lambda level, text, _: level == DiagnosticStatus.WARN and 'not saved' in text)
        assert 'No such file or directory' in watch.status.message
        answer = probe.call(Trigger, 'filter_node/save')
        assert not answer.success
        assert 'No such file or directory' in answer.message
        robot.drive(5)
        probe.spin(0.5)  # it has failed with these too
        folder.mkdir()  # put right, it is saved without another sample
        watch.wait(lambda level, *_: level == DiagnosticStatus.OK, 'OK')
        assert samples_in(folder / 'model.npz') == 10


def test_a_signal_while_it_is_saved_ends_it_cleanly(probe, start, tmp_path):
    path = tmp_path / 'model.npz'
    for executor, number in (('single', signal.SIGINT), ('events', signal.SIGTERM)):
        given = saving(path, executor=executor, **{'model.autosave_period': 0.001})
        with ended_by(start('filter_node', None, [('__ns', f'/{executor}')], **given), number):
            robot = Robot(probe, f'{executor}/')
            robot.drive(20)
            robot.close()
        assert samples_in(path) > 0
        assert [p.name for p in tmp_path.iterdir() if '.part' in p.name] == []
        path.unlink()


# Writes models without end, each with one number in all of its places.
WRITER = """
import itertools, sys
import numpy as np
from kernel_constrained import model_file

for number in itertools.count():
    arrays = {name: np.full(50_000, float(number)) for name in 'abcd'}
    model_file.write(sys.argv[1], 'numbers', {'number': number}, arrays)
    print(number, flush=True)
"""


def test_killed_while_it_writes_it_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / 'model.npz'
    environment = {**os.environ, 'PYTHONPATH': str(REPOSITORY)}
    rng = random.Random(1)
    newest = -1
    for _ in range(20):
        writer = subprocess.Popen(
            [sys.executable, '-c', WRITER, str(path)], stdout=subprocess.PIPE, env=environment
        )
        for _ in range(3):
            newest = int(writer.stdout.readline())
        time.sleep(rng.uniform(0.0, 0.02))
        writer.kill()
        rest, _ = writer.communicate()
        newest = int(rest.split()[-1]) if rest.split() else newest
        header, arrays = model_file.read(path, 'numbers')
        assert header['number'] in (newest, newest + 1)
        assert all((a == header['number']).all() and len(a) == 50_000 for a in arrays.values())
    leftovers = list(tmp_path.glob('.model.npz.*'))
    assert leftovers, 'it was killed in the middle at least once'
    for leftover in leftovers:
        os.utime(leftover, (0, time.time() - 100))
    young = tmp_path / '.model.npz.abc.part'
    young.write_bytes(b'another writes this one now')
    model_file.write(path, 'numbers', {}, {})
    assert set(tmp_path.iterdir()) == {path, young}


def test_a_node_killed_while_it_saves_leaves_a_whole_model(probe, start, tmp_path):
    path = tmp_path / 'model.npz'
    process = start('filter_node', **saving(path, **{'model.autosave_period': 0.001}))
    robot = Robot(probe)
    robot.drive(30)
    probe.wait(lambda: samples_in(path) > 0, what='a file')
    robot.drive(5, wait=False)
    process.process.kill()
    process.process.wait()
    assert 0 < samples_in(path) <= 35


def with_version(path, version):
    header, arrays = model_file.read(path, FORMAT)
    header['version'] = version
    np.savez(path, header=np.array(json.dumps(header)), **arrays)


def test_a_model_that_does_not_fit_is_refused_and_says_why(probe, start, tmp_path):
    path = tmp_path / 'model.npz'
    write_model(path)
    differing = {'features.sectors': 6, 'learner.max_model_order': 200}
    given = {**AXIS, 'model.path': path}
    reason = (
        f'{path} was learned otherwise: features.sectors is 4 there and 6 here; '
        'learner.max_model_order is 300 there and 200 here'
    )
    at_start = start('filter_node', **{**given, **differing, 'model.load_at_start': 'always'})
    probe.wait(lambda: 'cannot configure' in at_start.text, what='a refusal')
    assert f'cannot configure: {reason}' in at_start.text
    assert at_start.end() == 0

    def answer():
        answer = probe.call(Trigger, 'filter_node/load')
        assert not answer.success
        return answer.message

    with ended_by(start('filter_node', **{**given, 'model.load_at_start': 'always'})) as process:
        probe.wait(lambda: 'goes on with 0 samples' in process.text, what='a start')
        with_version(path, 1)
        assert answer() == f'{path} has version 1, this package reads {model_file.VERSION}'
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        assert f'{path} is no model file or is damaged' in answer()
        path.unlink()
        assert answer() == f'{path} does not exist'
        assert 'Traceback' not in process.text
