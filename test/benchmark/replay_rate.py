# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""How many scans of 1081 beams a second replay_node brings to a subscriber without losing any.

The subscriber is a process of its own that counts what it receives, as bytes (``raw``) or as
messages. Beside replay_node stands ``bare``: a loop around ``publish`` of an rclpy publisher, with
bytes that lie in memory. Where both sides keep all (``keep all``), the middleware makes the
publisher wait for the subscriber: ``bare`` then is the most that rclpy carries here without loss,
and ``share`` what replay_node reaches of it. Where the subscriber's queue is the usual one that
keeps the last messages (``last 10``, ``last 1000``), only the parameter ``ceiling`` protects it.
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rclpy.duration import Duration
from rclpy.qos import HistoryPolicy, QoSProfile
from rclpy.serialization import serialize_message
from robot import isolate, node_in_process, scan_message, set_stamp
from sensor_msgs.msg import LaserScan
from tqdm import tqdm

from kernel_constrained.bags import open_recording
from kernel_constrained.bags.recording import Message
from kernel_constrained.bags.writing import BagWriter
from kernel_constrained.nodes.running import make_executor, spin_once

HERE = Path(__file__).resolve().parent
REPLAY = [sys.executable, '-m', 'kernel_constrained', 'replay_node', '--ros-args']
KEEP_ALL = QoSProfile(history=HistoryPolicy.KEEP_ALL)
PATIENCE = 60.0  # seconds
TYPE = 'sensor_msgs/msg/LaserScan'


class Case(NamedTuple):
    """Who publishes to whom; ``depth`` of the subscriber's queue, 0 for all."""

    subject: str
    ceiling: float
    depth: int
    executor: str
    raw: bool


class Row(NamedTuple):
    """What a case gave: messages received, and how many a second; CPU seconds of the replay."""

    case: Case
    received: int
    rate: float
    cpu: float


def write_scans(path, count):
    """Write a bag of ``count`` scans, a millisecond apart."""
    scan = scan_message(5.0, 3.0, 0.0, np.random.default_rng(0))
    with BagWriter(path) as writer:
        for i in range(count):
            set_stamp(scan, i * 1e-3)
            writer.write(Message('scan', TYPE, 10**9 + i * 10**6, serialize_message(scan)))


def listen(case, silence=2.0):
    """Count what comes until nothing comes any more; return (messages, messages per second)."""
    times = []
    qos = QoSProfile(depth=case.depth) if case.depth else KEEP_ALL
    with node_in_process('subscriber') as node:
        node.create_subscription(
            LaserScan, 'scan', lambda _: times.append(time.monotonic()), qos, raw=case.raw
        )
        executor = make_executor(case.executor)
        executor.add_node(node)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < (times[-1] + silence if times else end):
            spin_once(executor, node)
    return len(times), (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0


def publish_bare(path):
    """Publish all of a bag, again and again where a full queue refuses a message."""
    with open_recording(path) as recording:
        messages = [message.data for message in recording.messages()]
    with node_in_process('bare') as node:
        publisher = node.create_publisher(LaserScan, 'scan', KEEP_ALL)
        while not publisher.get_subscription_count():
            time.sleep(0.01)
        time.sleep(1.0)
        for data in messages:
            while not published(publisher, data):
                pass
        publisher.wait_for_all_acked(Duration(seconds=PATIENCE))
    return 0.0


def published(publisher, data):
    try:
        publisher.publish(data)
    except RuntimeError:  # a full queue
        return False
    return True


def replay(path, case):
    """Run replay_node to its end, with success; return its CPU seconds."""
    values = {'source': path, 'rate': 0.0, 'ceiling': case.ceiling, 'wait_timeout': 30.0}
    if not case.depth:
        values['qos_overrides./scan.publisher.history'] = 'keep_all'
    command = [*REPLAY, *(s for n, v in values.items() for s in ('-p', f'{n}:={v}'))]
    path = os.pathsep.join([str(HERE.parents[1]), os.environ.get('PYTHONPATH', '')])
    environment = os.environ | {'PYTHONPATH': path}
    before = children_seconds()
    subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)
    return children_seconds() - before


def children_seconds():
    """CPU time of the child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def measure(case, path):
    """Run publisher and subscriber once."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('spawn')) as pool:
        listening = pool.submit(listen, case)
        if case.subject == 'bare':
            cpu = pool.submit(publish_bare, path).result()
        else:
            cpu = replay(path, case)
        return Row(case, *listening.result(), cpu)


def cases(ceilings):
    """Yield the cases; each bare one stands before the replay that is held against it."""
    for executor, raw in product(('single', 'events'), (True, False)):
        yield Case('bare', np.inf, 0, executor, raw)
        yield Case('replay', np.inf, 0, executor, raw)
        for ceiling, depth in product(ceilings, (10, 1000)):
            yield Case('replay', ceiling, depth, executor, raw)


def table(rows, count):
    lines = [
        f'{count} scans of 1081 beams; rates in messages a second, CPU in seconds',
        'subscriber                      publisher                  received   lost    rate  '
        'share    CPU',
    ]
    bare = 0.0
    for case, received, rate, cpu in rows:
        bare = rate if case.subject == 'bare' else bare
        queue = f'last {case.depth}' if case.depth else 'keep all'
        subscriber = f'{case.executor:6s} {"raw" if case.raw else "messages":8s} {queue:9s}'
        publisher = case.subject + (f', ceiling {case.ceiling:g}' if case.depth else ', keep all')
        share = f'{100 * rate / bare:4.0f} %' if case.subject == 'replay' else '      '
        lines.append(
            f'{subscriber:30s}  {publisher:25s} {received:9d} {count - received:6d} {rate:7.0f} '
            f'{share} {cpu:6.1f}'
        )
    return '\n'.join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=Path, default=Path('out/benchmark'))
    parser.add_argument('--messages', type=int, default=10_000)
    parser.add_argument('--ceilings', type=float, nargs='+', default=[2000.0, 3500.0])
    parser.add_argument('--domain', type=int, default=73, help='ROS_DOMAIN_ID: one without others')
    arguments = parser.parse_args()
    isolate(arguments.domain)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'scans.mcap'
        write_scans(path, arguments.messages)
        for case in (progress := tqdm(list(cases(arguments.ceilings)), desc='replay rate')):
            progress.set_postfix_str(f'{case.subject}, {case.executor}')
            rows.append(measure(case, path))
    print(text := table(rows, arguments.messages))
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / 'replay_rate.txt').write_text(text + '\n')


if __name__ == '__main__':
    main()
