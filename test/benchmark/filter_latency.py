# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Latency, losses and CPU of filter_node between a sensor and a consumer: three processes.

The first publishes scans of 1081 beams and poses at 20 Hz, the second is the node, the third
subscribes to ``estimate`` alone. Latency is from just before a scan is published to the receipt of
its estimate, on the clock that the processes of a machine share. CPU is that of the node's
process, as a share of one core. The first second is not counted. Beside the filter stand
``empty``, a node that subscribes to the scans and does nothing, and ``echo``, one that answers
with an empty estimate: what rclpy and the middleware take by themselves.
"""

import argparse
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from filter_profile import profile
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from robot import drive, get_stamp, isolate, node_in_process, parameters
from sensor_msgs.msg import LaserScan
from tqdm import tqdm

from kernel_constrained.nodes.qos import RECORDING, RESULTS, SENSOR_DATA
from kernel_constrained.nodes.running import make_executor, spin_once

HERE = Path(__file__).resolve().parent
TYPES = {'scan': LaserScan, 'pose': PoseStamped}
WARM_UP = 1.0  # seconds that are not counted
PATIENCE = 120.0  # seconds: the first start of a node compiles
EXECUTORS = ('single', 'events')
BARE = [sys.executable, str(HERE / 'bare_node.py'), '--ros-args']
# How those of the diagnostics begin that are shown.
SAID = ('sent', 'received', 'used', 'dropped', 'lost', 'samples learned', 'model order')
FILTER = [sys.executable, '-m', 'kernel_constrained', 'filter_node']


class Sent(NamedTuple):
    """What the publishing process knows: {stamp: time}, CPU of the node, its diagnostics."""

    times: dict
    cpu: float
    diagnostics: dict


class Row(NamedTuple):
    """One node under one executor at one rate; latencies in milliseconds."""

    subject: str
    executor: str
    rate: int
    sent: int
    received: int
    latencies: np.ndarray
    cpu: float
    diagnostics: dict


# -- process 1: the sensor ------------------------------------------------------------------


def publish(subject, pid, rate, seconds):
    """Publish a drive to a node whose process is ``pid``; return :class:`Sent`."""
    events = drive(rate, seconds + WARM_UP)
    topics = ('scan', 'pose') if subject == 'filter' else ('scan',)
    with node_in_process('sensor') as node:
        publishers = {t: node.create_publisher(TYPES[t], t, SENSOR_DATA) for t in topics}
        for publisher in publishers.values():
            wait(publisher.get_subscription_count, 'a subscription to the scans')
        if subject != 'empty':
            wait(lambda: node.count_subscribers('estimate'), 'the consumer')
        time.sleep(1.0)  # the others have to find us and each other too
        gc.freeze()  # else the collector walks through the drive now and then
        times, cpu = play([e for e in events if e.topic in topics], publishers, pid)
        if subject != 'filter':
            return Sent(times, cpu, {})
        sent = Counter(f'sent: {event.topic}' for event in events)
        return Sent(times, cpu, {**sent, **diagnostics(node)})


def play(events, publishers, pid):
    """Publish each event when it is due; return ({stamp: time} of the scans, share of CPU)."""
    times, counted = {}, None
    begun = time.monotonic() + 0.1
    for due, topic, message in events:
        time.sleep(max(0.0, begun + due - time.monotonic()))
        if due >= WARM_UP and counted is None:
            counted = time.monotonic(), cpu_seconds(pid)
        now = time.monotonic_ns()
        publishers[topic].publish(message)
        if topic == 'scan' and counted is not None:
            times[get_stamp(message)] = now
    time.sleep(0.02)
    elapsed, used = np.subtract((time.monotonic(), cpu_seconds(pid)), counted)
    return times, used / elapsed


def cpu_seconds(pid):
    """CPU time of all threads of a process so far."""
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def diagnostics(node):
    """Return {key: value} of the next diagnostics, once everything has been worked through."""
    time.sleep(0.5)
    messages = []
    node.create_subscription(DiagnosticArray, '/diagnostics', messages.append, RESULTS)
    executor = make_executor('single')
    executor.add_node(node)
    wait(lambda: spin_once(executor, node) or messages, 'diagnostics')
    return {v.key: v.value for v in messages[-1].status[0].values}


def wait(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f'{what} did not come within {PATIENCE:g} s')
        time.sleep(0.01)


# -- process 3: the consumer ----------------------------------------------------------------


def listen(silence=3.0):
    """Return {stamp: time of receipt} of the estimates, once no more come."""
    times = {}

    def receive(message):
        times[get_stamp(message)] = time.monotonic_ns()

    with node_in_process('consumer') as node:
        node.create_subscription(PoseWithCovarianceStamped, 'estimate', receive, RECORDING)
        executor = make_executor('events')
        executor.add_node(node)
        patience = time.monotonic() + PATIENCE
        while times or time.monotonic() < patience:
            before, end = len(times), time.monotonic() + silence
            while time.monotonic() < end:
                spin_once(executor, node)
            if len(times) == before > 0:
                break
    return times


# -- the run --------------------------------------------------------------------------------


def command(subject, executor, rate):
    """Command line of process 2."""
    if subject == 'filter':
        return [*FILTER, *parameters(rate, executor=executor)]
    return [*BARE, '-p', f'executor:={executor}', '-p', f'answer:={subject == "echo"}'.lower()]


@contextmanager
def process(command):
    """Run process 2; it has to end well on SIGINT."""
    path = os.pathsep.join([str(HERE.parents[1]), os.environ.get('PYTHONPATH', '')])
    environment = os.environ | {'PYTHONPATH': path}
    with tempfile.TemporaryFile('w+') as log:
        running = subprocess.Popen(command, env=environment, stderr=log)
        try:
            yield running
        finally:
            running.send_signal(signal.SIGINT)
            try:
                code = running.wait(timeout=30)
            except subprocess.TimeoutExpired:
                running.kill()
                raise
            if code != 0:
                log.seek(0)
                raise RuntimeError(f'{command} ended with code {code}:\n{log.read()}')


def measure(subject, executor, rate, seconds):
    """Run the three processes once."""
    spawning = multiprocessing.get_context('spawn')
    with (
        process(command(subject, executor, rate)) as node,
        ProcessPoolExecutor(2, mp_context=spawning) as pool,
    ):
        listening = pool.submit(listen) if subject != 'empty' else None
        sent = pool.submit(publish, subject, node.pid, rate, seconds).result()
        received = listening.result() if listening else {}
    arrived = sent.times.keys() & received.keys()
    latencies = np.array([received[s] - sent.times[s] for s in arrived]) / 1e6
    return Row(subject, executor, rate, len(sent.times), len(arrived), latencies, sent.cpu,
               sent.diagnostics)  # fmt: skip


def table(rows):
    lines = [
        'latencies in ms, CPU in % of one core; the first second is not counted',
        'node    executor  rate    CPU    sent  received  lost  median     p99     max',
    ]
    lines += [line(row) for row in rows]
    lines.append('what the filter says of itself, the first second included')
    for r in rows:
        said = ', '.join(f'{k} {v}' for k, v in r.diagnostics.items() if k.startswith(SAID))
        lines += [f'{r.executor:8s} {r.rate:5d}  {said}'] if said else []
    return '\n'.join(lines)


def line(row):
    text = f'{row.subject:7s} {row.executor:8s} {row.rate:5d} {100 * row.cpu:6.1f} {row.sent:7d}'
    if row.subject != 'empty':
        text += f' {row.received:9d} {row.sent - row.received:5d} '
    if row.received:
        quantiles = np.quantile(row.latencies, (0.5, 0.99, 1.0))
        text += ' '.join(f'{q:7.2f}' for q in quantiles)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=Path, default=Path('out/benchmark'))
    parser.add_argument('--seconds', type=float, default=20.0, help='at 40 Hz; 5 s at 1 kHz')
    parser.add_argument('--domain', type=int, default=72, help='ROS_DOMAIN_ID: one without others')
    parser.add_argument('--profile', action='store_true', help='our own code alone, per message')
    arguments = parser.parse_args()
    isolate(arguments.domain)
    if arguments.profile:
        profile()
        return
    runs = list(product((40, 1000), EXECUTORS, ('empty', 'echo', 'filter')))
    rows = []
    for rate, executor, subject in (progress := tqdm(runs, desc='filter latency')):
        progress.set_postfix_str(f'{subject}, {executor}, {rate} Hz')
        rows.append(measure(subject, executor, rate, arguments.seconds if rate == 40 else 5.0))
    print(text := table(rows))
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / 'filter_latency.txt').write_text(text + '\n')


if __name__ == '__main__':
    main()
