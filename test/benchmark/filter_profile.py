# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a message goes in the code of filter_node: one process, no transport.

Messages of 1081 beams go into the callbacks that an executor would call; nobody is subscribed to
what the node publishes. Stages are timed by functions put around them from outside, each without
the stages inside it, so that they add up: the timers themselves cost about 0.3 microseconds each.
Back to back, everything is in the caches; at the rate of a sensor it has to come into them again.
"""

import cProfile
import pstats
import time
from collections import defaultdict
from functools import reduce
from itertools import islice
from typing import NamedTuple

import numpy as np
from robot import callbacks, drive, get_stamp, node_in_process, parameters, ROUND, rounds
from tqdm import tqdm

from kernel_constrained.perception import intake, messages
from kernel_constrained.perception.filter import ScanFilter

RATE = 40
TARGET = 300.0  # microseconds of our own code per message
# What timers are put around: some of it private, so that a name may go with a change of the node.
STAGES = {
    'conversion of the message': ('intake.stamp_of', 'intake.reading_of', 'intake.pose_of'),
    'features': ('filter.features',),
    'prediction': ('filter._predict',),
    'covariance': ('filter._covariance',),
    'pairing': ('filter.pairing.add_scan', 'filter.pairing.add_pose', 'filter.pairing.pairs'),
    'scan: the rest': ('filter.scan',),
    'learning (partial_fit)': ('learner.partial_fit',),
    'truth of a pair': ('filter._truths.of',),
    'recent pairs, losses': ('filter._recent.add', 'filter.losses.add'),
    'scaling': ('filter._look_at_scaling',),
    'learn: the rest': ('filter.learn',),
    'pose: the rest': ('filter.pose',),
    'cvar of the newest losses': ('filter.cvar',),
    'estimate: filling the message': ('node._message.fill',),
    'diagnostics: the level': ('node._diagnostics.update',),
}


class Times(NamedTuple):
    """Microseconds of one thing that was timed many times."""

    name: str
    values: np.ndarray


class Stages:
    """Exclusive time of named stages, message by message."""

    def __init__(self):
        self.current = defaultdict(float)
        self.inside = [0.0]

    def around(self, function, stage):
        """Return the function with its time, less that of stages inside it, added to a stage."""

        def timed(*arguments, **keywords):
            self.inside.append(0.0)
            begun = time.perf_counter()
            try:
                return function(*arguments, **keywords)
            finally:
                elapsed = time.perf_counter() - begun
                self.current[stage] += elapsed - self.inside.pop()
                self.inside[-1] += elapsed

        return timed

    def put_around(self, owner, name, stage):
        setattr(owner, name, self.around(getattr(owner, name), stage))

    def take(self):
        """Return {stage: microseconds} since the last call."""
        taken = {stage: seconds * 1e6 for stage, seconds in self.current.items()}
        self.current.clear()
        return taken


def instrument(node, stages):
    """Put timers around all that is there of :data:`STAGES`; return the timed callbacks."""
    owners = {
        'intake': intake,
        'node': node,
        'filter': node.filter,
        'learner': type(node.filter.learner),  # the class: a filter may begin a new one
    }
    for stage, places in STAGES.items():
        for place in places:
            owner, _, path = place.partition('.')
            *parents, name = path.split('.')
            holder = reduce(lambda h, parent: getattr(h, parent, None), parents, owners[owner])
            if hasattr(holder, name):
                stages.put_around(holder, name, stage)
            else:
                print(f'not timed by itself, for it is not there: {place}')
    for publisher in node.publishers:
        name = publisher.topic_name.rpartition('/')[2]
        stages.put_around(publisher, 'publish', f'publish {name}')
        stages.put_around(publisher, 'get_subscription_count', 'figures: asking who listens')
    return {topic: stages.around(c, 'the rest') for topic, c in callbacks(node).items()}


# -- measurements ---------------------------------------------------------------------------


def timed_calls(calls):
    """Make the calls (name, function, *arguments); return the :class:`Times` of each name."""
    times = defaultdict(list)
    for name, function, *arguments in calls:
        begun = time.perf_counter()
        function(*arguments)
        times[name].append(time.perf_counter() - begun)
    return [Times(name, 1e6 * np.array(values)) for name, values in times.items()]


def calls_of_the_filter(online, events):
    """List what the node calls of a :class:`ScanFilter`, message by message."""
    for _, topic, message in events:
        stamp = get_stamp(message)
        if topic == 'scan':
            yield 'ScanFilter.scan', online.scan, stamp, messages.reading_of(message)
        else:
            yield 'ScanFilter.pose', online.pose, stamp, messages.pose_of(message)
        yield f'ScanFilter.learn after a {topic}', online.learn


def calls_of_the_callbacks(node, events):
    take = callbacks(node)
    for _, topic, message in events:
        yield f'callback of {topic}', take[topic], message


def times_of_the_stages(stages, take, events):
    """Return {topic: :class:`Times` of each stage}."""
    taken = defaultdict(list)
    for _, topic, message in events:
        take[topic](message)
        taken[topic].append(stages.take())
    return {
        topic: [
            Times(stage, np.array([t.get(stage, 0.0) for t in members]))
            for stage in sorted(set().union(*members))
        ]
        for topic, members in taken.items()
    }


def paced(events):
    """Wait before each scan, as long as a sensor would let us."""
    for event in events:
        if event.topic == 'scan':
            time.sleep(1 / RATE)
        yield event


# -- the report -----------------------------------------------------------------------------


def print_times(title, times):
    print(f'\n{title + ", µs":45s}   mean  median     p99')
    for name, values in sorted(times, key=lambda t: -t.values.mean()):
        median, tail = np.quantile(values, (0.5, 0.99))
        print(f'  {name:43s} {values.mean():6.1f}  {median:6.1f}  {tail:6.1f}')


def print_callbacks(title, node, events):
    """Time the whole callbacks and print it, with what is to be held against the target."""
    times = timed_calls(calls_of_the_callbacks(node, events))
    print_times(title, times)
    every = np.median(np.concatenate([values for _, values in times]))
    order = node.filter.learner.model_order_
    print(f'  median of all messages {every:.0f} µs (target {TARGET:.0f}) at model order {order}')


def profile(count=4000, slowly=600):
    """Measure over ``count`` messages at a time, after as many to learn from; print it all."""
    with node_in_process(arguments=parameters(RATE)) as node:
        events = rounds(drive(RATE, ROUND))

        def some(what, number=count):
            return tqdm(islice(events, number), desc=what, total=number, leave=False)

        online = ScanFilter(node.config)
        for what in ('learning', 'the filter alone'):
            times = timed_calls(calls_of_the_filter(online, some(what)))
        print_times('ScanFilter alone, back to back', times)
        timed_calls(calls_of_the_callbacks(node, some('learning')))
        print_callbacks('whole callbacks, back to back', node, some('callbacks'))
        slow = f'at {RATE} Hz'
        print_callbacks(f'whole callbacks, {slow}', node, paced(some(slow, slowly)))
        profiler = cProfile.Profile()
        profiler.runcall(timed_calls, calls_of_the_callbacks(node, some('cProfile')))
        stages = Stages()
        take = instrument(node, stages)
        for topic, times in times_of_the_stages(stages, take, some('stages')).items():
            print_times(f'stages of a {topic}, back to back', times)
        for topic, times in times_of_the_stages(stages, take, paced(some(slow, slowly))).items():
            print_times(f'stages of a {topic}, {slow}', times)
    pstats.Stats(profiler).strip_dirs().sort_stats('tottime').print_stats(25)
