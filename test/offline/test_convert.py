# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""convert SOURCE DESTINATION: the same messages in another container."""

import random

import pytest

from kernel_constrained.bags import BagWriter, Message, open_recording
from kernel_constrained.offline.convert import main


def messages(source):
    with open_recording(source) as recording:
        return list(recording.messages())


def test_a_log_becomes_an_mcap_and_that_a_db3_with_the_same_messages(tmp_path, capsys):
    line = 'FLASER 3 1.0 2.0 3.0 {x} 0.0 0.0 {x} 0.0 0.0 {t} host {t}\n'
    log = tmp_path / 'made.log'
    log.write_text(''.join(line.format(x=i, t=i + 0.5) for i in range(20)))
    assert main([str(log), str(tmp_path / 'a.mcap')]) == 0
    assert capsys.readouterr().out == 'pose: 20 messages\nscan: 20 messages\n'
    assert main([str(tmp_path / 'a.mcap'), str(tmp_path / 'b.db3')]) == 0
    assert messages(log) == messages(tmp_path / 'a.mcap') == messages(tmp_path / 'b.db3')


@pytest.mark.parametrize(
    ('source', 'message'), [('no.mcap', 'no such file'), ('lidar', 'exists already')]
)
def test_what_cannot_be_converted_is_said_in_one_line(tmp_path, capsys, source, message):
    (tmp_path / 'there.mcap').touch()
    assert main([source, str(tmp_path / 'there.mcap')]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count('\n') == 1


def made_bag(path, count=200):
    rng = random.Random(0)
    with BagWriter(path) as writer:
        for stamp in range(count):
            topic = '/a' if stamp % 2 else '/b'
            writer.write(Message(topic, 'std_msgs/msg/String', stamp, rng.randbytes(3000)))
    return path


def test_topics_that_are_named_are_kept(tmp_path, capsys):
    path = made_bag(tmp_path / 'x.mcap')
    assert main([str(path), str(tmp_path / 'y.db3'), '--topics', 'a']) == 0
    assert capsys.readouterr().out == '/a: 100 messages\n'
    assert messages(tmp_path / 'y.db3') == [m for m in messages(path) if m.topic == '/a']
    assert main([str(path), str(tmp_path / 'z.db3'), '--topics', 'a', 'scan']) == 1
    assert 'no topic scan; it holds /a, /b' in capsys.readouterr().err
    assert not (tmp_path / 'z.db3').exists()


@pytest.mark.parametrize('suffix', ['mcap', 'db3'])
def test_damaged_bag_is_written_as_far_as_it_goes_with_exit_code_3(tmp_path, capsys, suffix):
    path = made_bag(tmp_path / f'x.{suffix}')
    original = messages(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert main([str(path), str(tmp_path / 'y.mcap')]) == 3
    captured = capsys.readouterr()
    assert f'lost: x.{suffix}: ' in captured.err
    written = messages(tmp_path / 'y.mcap')
    assert 50 < len(written) < 150
    assert set(written) <= set(original)
    assert sum(int(line.split()[1]) for line in captured.out.splitlines()) == len(written)


def test_bag_of_which_nothing_is_left_gives_exit_code_1_and_no_file(tmp_path, capsys):
    path = made_bag(tmp_path / 'x.mcap')
    path.write_bytes(path.read_bytes()[:1500])
    assert main([str(path), str(tmp_path / 'y.mcap')]) == 1
    assert capsys.readouterr().err.count('\n') == 1
    assert not (tmp_path / 'y.mcap').exists()
