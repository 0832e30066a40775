# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Demonstrations: data replayed through the nodes, over DDS, then reported on.

Replay, filter and recorder are processes of their own; what is reported comes from the recording
and from the model that the filter saved.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernel_constrained.bags import LidarRecording, open_recording, RecordingError
from kernel_constrained.offline import lidar_report, scan_report
from kernel_constrained.offline.recorded import read_recorded, Recorded
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.share import share_folder


class DemoError(RuntimeError):
    """A node of the demonstration failed; the message names it and its log."""


def node_command(node: str, parameters: Path, settings: dict[str, str]) -> list[str]:
    """Command line that starts a node with a parameter file and single parameters on top."""
    command = [sys.executable, '-m', 'kernel_constrained', node, '--ros-args']
    command += ['--log-level', 'warn', '--params-file', str(parameters)]
    for name, value in settings.items():
        command += ['-p', f'{name}:={value}']
    return command


def environment() -> dict[str, str]:
    """Environment of the nodes: this machine only, and a domain that nobody else is on."""
    domain = str(20 + os.getpid() % 80)
    defaults = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST', 'ROS_DOMAIN_ID': domain}
    return {**defaults, **os.environ}


@contextmanager
def running(command: list[str], log: Path, env: dict[str, str]) -> Iterator[None]:
    """Run a node beside the body; end it by SIGINT and require that it ended well."""
    with log.open('wb') as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env)
        try:
            yield
        except BaseException:
            process.kill()
            raise
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait(timeout=60)
    if code != 0:
        raise DemoError(f'{command[3]} ended with code {code}:\n{log.read_text()}')


def replay_through_nodes(kind: str, output: Path, replay: dict[str, str]) -> Recorded:
    """Replay through the filter, record, and return what was recorded.

    Writes ``recording.mcap``, ``model.npz`` and the nodes' logs to ``output``.
    """
    recording, model = output / 'recording.mcap', output / 'model.npz'
    recording.unlink(missing_ok=True)
    config, env = share_folder() / 'config', environment()
    filter_command = node_command(
        'filter_node',
        config / f'filter_{kind}.yaml',
        {'executor': 'events', 'model.path': str(model), 'model.save_at_end': 'true'},
    )
    record_command = node_command(
        'record_node',
        config / 'record.yaml',
        {'executor': 'events', 'destination': str(recording)},
    )
    replay_command = node_command(
        'replay_node',
        config / f'replay_{kind}.yaml',
        {'executor': 'events', 'answer_topic': 'record_node/processed', **replay},
    )
    print('replaying through filter_node (the first time it is compiled, half a minute) ...',
          flush=True)  # fmt: skip
    with (
        running(record_command, output / 'record_node.log', env),
        running(filter_command, output / 'filter_node.log', env),
    ):
        code = subprocess.run(replay_command, env=env, check=False).returncode
        if code != 0:
            log = (output / 'filter_node.log').read_text()
            raise DemoError(f'replay_node ended with code {code}; filter_node said:\n{log}')
    return read_recorded(recording)


def demo_lidar(output: Path, seed: int) -> None:
    """Replay the LIDAR table, print a line for each epoch, draw Fig. 3."""
    settings = {'lidar.seed': str(seed), 'lidar.evaluate_epochs': 'true'}
    recorded = replay_through_nodes('lidar', output, settings)
    model = ScanFilter.load(output / 'model.npz')
    bound = model.config.learner
    table = lidar_report.epoch_table(
        LidarRecording(seed=seed, evaluate_epochs=True), recorded, bound.significance,
        bound.tolerance,
    )  # fmt: skip
    print(lidar_report.format_table(table))
    lidar_report.draw(table, recorded, model, seed, output / 'lidar.png')
    print(f'figure: {output / "lidar.png"}')


def demo_scans(output: Path, source: str) -> None:
    """Replay scans with poses, print the prequential error of each component, draw it."""
    recorded = replay_through_nodes('scans', output, {'source': source})
    with open_recording(source) as recording:
        result = scan_report.prequential(recording, recorded)
    print(scan_report.format_table(result, recorded))
    scan_report.draw(result, recorded, output / 'scans.png')
    print(f'figure: {output / "scans.png"}')


def main(argv: list[str] | None = None) -> int:
    """Run the demonstration that is named."""
    parser = argparse.ArgumentParser(
        prog='python -m kernel_constrained demo',
        description='Replay data through the nodes, over DDS; print a table, write a figure.',
    )
    parser.add_argument('data', choices=('lidar', 'scans'))
    parser.add_argument('--output', type=Path, default=None, help='folder (default: out/DATA)')
    parser.add_argument('--seed', type=int, default=0, help='LIDAR: split and shuffles (0)')
    parser.add_argument(
        '--source', default='killian', help='scans: rosbag2, CARMEN log or g2o file (killian)'
    )
    arguments = parser.parse_args(argv)
    output = (arguments.output or Path('out') / arguments.data).resolve()
    output.mkdir(parents=True, exist_ok=True)
    try:
        if arguments.data == 'lidar':
            demo_lidar(output, arguments.seed)
        else:
            demo_scans(output, arguments.source)
    except (DemoError, RecordingError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    return 0
