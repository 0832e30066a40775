# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Memory and counts of filter_node over 200,000 messages, good ones and with hostile ones among.

The messages go straight into the callbacks that an executor would call, each deserialised as the
middleware would: no transport, so that the run is much faster than real time. In between the
executor spins, so that diagnostics are published. Each run has a process of its own.
"""

import argparse
import gc
import math
import multiprocessing
import os
import sys
from array import array
from itertools import islice
from pathlib import Path

import numpy as np
from geometry_msgs.msg import Point, Quaternion
from rclpy.serialization import deserialize_message, serialize_message
from robot import (
    BEAMS,
    callbacks,
    drive,
    isolate,
    node_in_process,
    parameters,
    ROUND,
    rounds,
    set_stamp,
)
from tqdm import tqdm

from kernel_constrained.nodes.running import make_executor

RATE = 40
LARGEST_GROWTH = 1000  # kB after the first tenth
HOSTILE_SHARE, JUMP_EVERY = 0.05, 10_000
# What is set in a message to spoil it: fields of the scan, and of the pose in the message.
SPOILED = {
    'scan': [
        {'ranges': array('f', [])},
        {'ranges': array('f', [math.nan] * BEAMS)},
        {'ranges': array('f', [-math.inf, -1.0, 0.0, 1e30] * 270)},
        {'ranges': array('f', [1.0])},
        {'range_max': 0.0},
        {'range_min': math.nan},
        {'angle_min': math.inf},
        {'angle_increment': 0.0},
        {'angle_increment': math.nan},
    ],
    'pose': [
        {'orientation': Quaternion(x=0.0, y=0.0, z=0.0, w=0.0)},
        {'orientation': Quaternion(w=math.nan)},
        {'position': Point(x=math.nan)},
        {'position': Point(y=-math.inf)},
        {'position': Point(x=1e9)},
    ],
}
SPOILED_HEADERS = ('late', 'duplicate', 'frame')


def hostile(events):
    """Spoil a share of the events in every way there is, and let the clock jump back at times."""
    rng = np.random.default_rng(0)
    while True:
        before = {}
        for i, event in enumerate(islice(rounds(events), JUMP_EVERY)):
            if i > 10 and rng.uniform() < HOSTILE_SHARE:
                yield event._replace(message=spoiled(event, before[event.topic], rng))
            else:
                yield event
                before[event.topic] = event.due


def spoiled(event, before, rng):
    """Return a spoilt copy of the message of an event; ``before`` is when the last one was due."""
    message = copied(event.message)
    how = rng.choice([*SPOILED[event.topic], *SPOILED_HEADERS])
    if how == 'late':
        set_stamp(message, before - rng.uniform(0.0, 0.9))
    elif how == 'duplicate':
        set_stamp(message, before)
    elif how == 'frame':
        message.header.frame_id = f'frame_{rng.integers(1_000_000_000)}'
    else:
        for field, value in how.items():
            setattr(message.pose if event.topic == 'pose' else message, field, value)
    return message


def copied(message):
    """Return what the middleware would make of the message at the other end."""
    return deserialize_message(serialize_message(message), type(message))


def resident():
    """Memory of this process that is in RAM, kB."""
    pages = int(Path('/proc/self/statm').read_text().split()[1])
    return pages * os.sysconf('SC_PAGE_SIZE') // 1024


# -- the run --------------------------------------------------------------------------------


def run(node, name, events, count):
    """Feed the node; return the kB by which the process has grown after the first tenth."""
    take, executor = callbacks(node), make_executor('single')
    executor.add_node(node)
    for i, (_, topic, message) in enumerate(tqdm(islice(events, count), desc=name, total=count)):
        take[topic](copied(message))
        if i % 1000 == 0:
            executor.spin_once(timeout_sec=0.0)
        if i + 1 == count // 10:
            gc.collect()
            early = resident()
    gc.collect()
    growth = resident() - early
    print(f'{name}: {early} kB after a tenth of {count} messages, {growth:+d} kB since')
    return growth


def soak(name, count):
    """Run one of :data:`STREAMS` through a node and exit with what is wrong with it, if any."""
    with node_in_process(arguments=parameters(RATE)) as node:
        growth = run(node, name, STREAMS[name](drive(RATE, ROUND)), count)
        for counter in ('received', 'used', 'dropped'):
            said = [f'{key} {n}' for key, n in getattr(node, counter).most_common()]
            print(f'  {counter}: {", ".join(said) or "none"}')
        said = failures(node, growth)
    if said:
        sys.exit('\n'.join(f'{name}: {line}' for line in said))


def failures(node, growth):
    received, used, dropped = (c.total() for c in (node.received, node.used, node.dropped))
    said = [f'raised: {reason}' for reason in node.dropped if 'internal error' in reason]
    if received != used + dropped:
        said.append(f'received {received}, but used {used} and dropped {dropped}')
    if growth > LARGEST_GROWTH:
        said.append(f'grew by {growth} kB, more than {LARGEST_GROWTH}')
    return said


STREAMS = {'good messages': rounds, 'hostile messages among': hostile}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--messages', type=int, default=200_000)
    parser.add_argument('--domain', type=int, default=73, help='ROS_DOMAIN_ID: one without others')
    arguments = parser.parse_args()
    isolate(arguments.domain)
    codes = []
    for name in STREAMS:
        spawning = multiprocessing.get_context('spawn')
        process = spawning.Process(target=soak, args=(name, arguments.messages))
        process.start()
        process.join()
        codes.append(process.exitcode)
    sys.exit(any(codes))


if __name__ == '__main__':
    main()
