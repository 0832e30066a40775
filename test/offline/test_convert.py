# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""convert SOURCE DESTINATION: the same messages in another container."""

import pytest

from kernel_constrained.bags import open_recording
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
