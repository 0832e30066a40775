# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Demonstrations: the nodes at work, over DDS, then reported on.

Replay or simulator, the node that is shown, and recorder are processes of their own; what is
reported comes from the recording and from the model that the filter saved.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from kernel_constrained.bags import LidarRecording, open_recording, RecordingError
from kernel_constrained.bags.rosbag2 import bag_files
from kernel_constrained.configuration import from_flat, read_parameter_file
from kernel_constrained.offline import (
    classification,
    lidar_report,
    places,
    places_report,
    planner_figure,
    planner_report,
    scan_report,
)
from kernel_constrained.offline.output import keep, make_folder
from kernel_constrained.offline.recorded import read_recorded
from kernel_constrained.perception.classifier_config import ClassifierNodeConfig
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.planning.node_config import PlannerNodeConfig
from kernel_constrained.planning.simulator import SimulatorConfig
from kernel_constrained.share import share_folder

T = TypeVar('T')

# Share of a recording whose places the classifier is told; the rest is held out.
LABELLED = 0.7

CLASSIFIER_TOPICS = ('label_estimate', 'label_scores')
CLASSIFIER_ANSWERS = 'classifier_node/processed'

# By default: of splits and shuffles, and of a world with ways on many sides of what is in it.
SEEDS = {'lidar': 0, 'scans': 0, 'places': 0, 'planner': 9}

# Simulated seconds a second that a drive is shown at, where the machine keeps up.
PLANNER_RATE = 5.0

PLANNER_TOPICS = (
    'scan', 'pose', 'goal_pose', 'plan', 'planner_node/markers', 'simulate/true_pose',
    'simulate/clearance', '/diagnostics',
)  # fmt: skip


class DemoError(RuntimeError):
    """A node of the demonstration failed; the message names it and its log."""


def node_command(node: str, parameters: Path, settings: Mapping[str, Any]) -> list[str]:
    """Command line that starts a node with a parameter file and single parameters on top."""
    command = [sys.executable, '-m', 'kernel_constrained', node, '--ros-args']
    command += ['--log-level', 'warn', '--params-file', str(parameters)]
    for name, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        command += ['-p', f'{name}:={text}']
    return command


def environment() -> dict[str, str]:
    """Environment of the nodes: this machine only, and a domain that nobody else is on."""
    domain = str(20 + os.getpid() % 80)
    defaults = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST', 'ROS_DOMAIN_ID': domain}
    return {**defaults, **os.environ}


@contextmanager
def running(
    command: list[str], log: Path, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a node beside the body; end it by SIGINT and require that it ended well."""
    with log.open('wb') as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env)
        try:
            yield process
        except BaseException:
            process.kill()
            raise
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait(timeout=60)
    if code != 0:
        raise DemoError(f'{command[3]} ended with code {code}:\n{log.read_text()}')


def run_beside(
    command: list[str], others: Iterable[subprocess.Popen[bytes]], env: dict[str, str]
) -> int:
    """Run a node to its end and return its exit code; end it where another one has ended."""
    process = subprocess.Popen(command, env=env)
    try:
        while process.poll() is None:
            if any(other.poll() is not None for other in others):
                process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.2)
    finally:
        process.kill()
    return process.wait()


def replay_through_nodes(
    kind: str,
    output: Path,
    replay: Mapping[str, Any],
    node: str = 'filter_node',
    record: Mapping[str, Any] | None = None,
) -> Path:
    """Replay through a node that learns, record what it says, and return the recording.

    Writes ``recording.mcap``, ``model.npz`` and the nodes' logs to ``output``.

    Parameters
    ----------
    kind
        ``config/filter_KIND.yaml`` (or ``classifier_``) and ``config/replay_KIND.yaml`` are used.
    output
        The folder.
    replay, record
        Parameters of replay_node and of record_node on top of their files.
    node
        The one that learns.
    """
    recording, model = output / 'recording.mcap', output / 'model.npz'
    recording.unlink(missing_ok=True)
    config, env = share_folder() / 'config', environment()
    learning_command = node_command(
        node,
        config / f'{node.removesuffix("_node")}_{kind}.yaml',
        {'executor': 'events', 'model.path': str(model), 'model.save_at_end': 'true'},
    )
    record_command = node_command(
        'record_node',
        config / 'record.yaml',
        {'executor': 'events', 'destination': str(recording), **(record or {})},
    )
    replay_command = node_command(
        'replay_node',
        config / f'replay_{kind}.yaml',
        {'executor': 'events', 'answer_topic': 'record_node/processed', **replay},
    )
    print(f'replaying through {node} (the first time it is compiled, half a minute) ...',
          flush=True)  # fmt: skip
    with (
        running(record_command, output / 'record_node.log', env) as recorder,
        running(learning_command, output / f'{node}.log', env) as learning,
    ):
        code = run_beside(replay_command, (recorder, learning), env)
        if code != 0:
            log = (output / f'{node}.log').read_text()
            raise DemoError(f'replay_node ended with code {code}; {node} said:\n{log}')
    return recording


def demo_lidar(output: Path, seed: int) -> None:
    """Replay the LIDAR table, print a line for each epoch, draw Fig. 3."""
    settings = {'lidar.seed': str(seed), 'lidar.evaluate_epochs': 'true'}
    recorded = read_recorded(replay_through_nodes('lidar', output, settings))
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
    recorded = read_recorded(replay_through_nodes('scans', output, {'source': source}))
    with open_recording(source) as recording:
        result = scan_report.prequential(recording, recorded)
    print(scan_report.format_table(result, recorded))
    scan_report.draw(result, recorded, output / 'scans.png')
    print(f'figure: {output / "scans.png"}')


def demo_places(output: Path, source: str) -> bool:
    """Classify places, labelled by a map of them; return whether it is the same without nodes."""
    bag = output / 'places.mcap'
    with open_recording(source) as recording:
        print(f'labelling the places of {recording.name} by a map ...', flush=True)
        known = places.labelled(recording)
        seconds = LABELLED * (recording.end - recording.start) * 1e-9
        test_from = recording.start + round(seconds * 1e9)
        bag.unlink(missing_ok=True)
        places.write_labelled(recording, known, bag, seconds)
    record = {'topics': f'[{", ".join(CLASSIFIER_TOPICS)}]', 'answer_topic': CLASSIFIER_ANSWERS}
    said = classification.read_said(
        replay_through_nodes('places', output, {'source': bag}, 'classifier_node', record)
    )
    judged = places_report.judge(said, known, test_from)
    print(places_report.format_table(judged))
    file = share_folder() / 'config' / 'classifier_places.yaml'
    with open_recording(bag) as recording:
        offline, _ = classification.classify(recording, configured(ClassifierNodeConfig, file, {}))
    same = said.scores == offline.scores and np.array_equal(said.stamps, offline.stamps)
    print(f'without middleware: {"the same, bit for bit" if same else "not the same"}')
    places_report.draw(judged, known, output / 'places.png')
    print(f'figure: {output / "places.png"}')
    return same


def configured(cls: type[T], file: Path, settings: Mapping[str, Any]) -> T:
    """Return the configuration of a node with a parameter file and these settings on top."""
    return from_flat(cls, {**read_parameter_file(file, 'node'), **settings})


def drive_through_nodes(
    output: Path, simulator: Mapping[str, Any], planner: Mapping[str, Any]
) -> int:
    """Let the simulator and the planner drive, and record it; return the simulator's exit code.

    Writes ``recording.mcap`` and the nodes' logs to ``output``. In lockstep: so the drive is the
    same on every machine, and the recording complete.
    """
    recording = output / 'recording.mcap'
    recording.unlink(missing_ok=True)
    config, env = share_folder() / 'config', environment()
    record_command = node_command(
        'record_node', config / 'record.yaml',
        {
            'executor': 'events', 'destination': recording,
            'topics': f'[{", ".join(PLANNER_TOPICS)}]', 'answer_topic': 'planner_node/processed',
        },
    )  # fmt: skip
    planner_command = node_command('planner_node', config / 'planner.yaml', planner)
    simulate_command = node_command('simulate', config / 'simulate.yaml', simulator)
    print('driving with planner_node (the first time it is compiled, a minute or two) ...',
          flush=True)  # fmt: skip
    with (
        running(record_command, output / 'record_node.log', env) as recorder,
        running(planner_command, output / 'planner_node.log', env) as planner_,
    ):
        code = run_beside(simulate_command, (recorder, planner_), env)
    if code not in (0, 1):  # not 1: what is recorded says what became of the drive
        raise DemoError(f'simulate ended with code {code}')
    return code


def demo_planner(output: Path, seed: int) -> bool:
    """Drive through a random world, print what became of it, draw it; return whether it did."""
    driven = {
        'world.number': seed, 'seed': seed, 'rate': PLANNER_RATE, 'lockstep': True,
        'answer_topic': 'record_node/processed', 'subscribers': 2, 'wait_timeout': 600.0,
        'answer_timeout': 300.0, 'executor': 'events',
    }  # fmt: skip
    config = share_folder() / 'config'
    simulator = configured(SimulatorConfig, config / 'simulate.yaml', driven)
    world = simulator.build().world
    (x_min, y_min), (x_max, y_max) = world.bounds.tolist()
    known = {
        'workspace.x_min': x_min, 'workspace.x_max': x_max, 'workspace.y_min': y_min,
        'workspace.y_max': y_max, 'executor': 'events',
    }  # fmt: skip
    planner = configured(PlannerNodeConfig, config / 'planner.yaml', known)
    code = drive_through_nodes(output, driven, {**known, 'use_sim_time': True})
    drive = planner_report.read_drive(output / 'recording.mcap')
    outcome = planner_report.judge(drive, world, simulator.goal_tolerance, planner.robot.tracking)
    print(planner_report.format_table(drive, outcome))
    margin = planner.robot.proof_margin
    planner_figure.draw(drive, outcome, world, margin, output / 'planner.png')
    planner_figure.animate(drive, outcome, world, output / 'planner.gif')
    print(f'figure: {output / "planner.png"}\nanimation: {output / "planner.gif"}')
    return code == 0 and outcome.good


def main(argv: list[str] | None = None) -> int:
    """Run the demonstration that is named."""
    parser = argparse.ArgumentParser(
        prog='python -m kernel_constrained demo',
        description='Let the nodes work, over DDS; print a table, write figures.',
    )
    parser.add_argument('data', choices=('lidar', 'scans', 'places', 'planner'))
    parser.add_argument('--output', type=Path, default=None, help='folder (default: out/DATA)')
    parser.add_argument(
        '--seed', type=int, default=None,
        help='lidar: split and shuffles (default: {lidar}); '
        'planner: world and noise ({planner})'.format(**SEEDS),
    )  # fmt: skip
    parser.add_argument(
        '--source',
        default='killian',
        help='scans, places: rosbag2, CARMEN log or g2o file (killian)',
    )
    arguments = parser.parse_args(argv)
    seed = SEEDS[arguments.data] if arguments.seed is None else arguments.seed
    output = (arguments.output or Path('out') / arguments.data).resolve()
    source = Path(arguments.source)
    recordings = bag_files(source) if source.is_dir() else [source]
    try:
        keep(recordings, (output / 'recording.mcap', output / 'places.mcap'))
        make_folder(output)
        if arguments.data == 'lidar':
            demo_lidar(output, seed)
        elif arguments.data == 'scans':
            demo_scans(output, arguments.source)
        elif arguments.data == 'places':
            return 0 if demo_places(output, arguments.source) else 1
        elif not demo_planner(output, seed):
            return 1
    except (DemoError, RecordingError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    return 0
