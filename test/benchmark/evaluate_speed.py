# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""How fast recordings are evaluated, end to end and per scan, and how much memory that takes.

Each run is a process of its own, started as a person would start it; the best of several counts,
for the machine is shared. Where the time of a scan goes is measured in this process.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import numpy as np
from tqdm import tqdm

from kernel_constrained.bags import (
    BagWriter,
    decode,
    Message,
    open_recording,
    RecordingError,
)
from kernel_constrained.bags.cdr import decode_input, pose_bytes, scan_bytes
from kernel_constrained.bags.serialization import POSE_TYPE, SCAN_TYPE
from kernel_constrained.configuration import write_parameter_file
from kernel_constrained.offline.sources import choose_topics
from kernel_constrained.offline.suggest import suggested

SHARED = Path(__file__).resolve().parents[3] / 'shared' / 'data' / 'scans'
TARGET_SCANS, TARGET_REAL_TIME = 5000.0, 1000.0

# Learners that are timed: model order and kind of step.
LEARNERS = ((50, 'gradient'), (100, 'gradient'), (150, 'recursive'), (300, 'recursive'))

MEASURED = """
import resource, sys
from kernel_constrained.__main__ import main
sys.argv[1:1] = ['evaluate']
code = main()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(code)
"""


def sources():
    """Return the recordings that are there: name and what to open."""
    found = {}
    try:
        open_recording('killian').close()
        found['Killian Court'] = 'killian'
    except RecordingError as error:
        print(f'not measured: {error}')
    intel = SHARED / 'intel-corrected.log.gz'
    if intel.exists():
        found['Intel'] = str(intel)
    else:
        print('not measured: Intel, whose log is not here')
    return found


def run(source, output, *arguments):
    """Evaluate in a process of its own; return wall seconds, what it timed, and its memory."""
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, '-c', MEASURED, str(source), '--output', str(output), *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    wall = time.perf_counter() - begun
    if done.returncode != 0:
        raise SystemExit(f'evaluate ended with code {done.returncode}:\n{done.stderr}')
    timing = json.loads((output / 'timing.json').read_text())
    return wall, timing, int(done.stdout.split()[-1]) / 1024


def settings(source, folder):
    """Write the suggested settings with each of :data:`LEARNERS`; return {label: file}."""
    with open_recording(source) as recording:
        config = suggested(recording, choose_topics(recording))
    files = {'suggested': folder / 'suggested.yaml'}
    write_parameter_file(files['suggested'], config)
    for order, step in LEARNERS:
        learner = attrs.evolve(config.learner, max_model_order=order, step=step)
        label = f'{step}, order {order}'
        files[label] = folder / f'{step}_{order}.yaml'
        write_parameter_file(files[label], attrs.evolve(config, learner=learner))
    return files


def speed(folder, repeats):
    """Print how fast recordings are evaluated."""
    print(f'target: {TARGET_REAL_TIME:.0f} x real time end to end, {TARGET_SCANS:.0f} scans/s')
    print(f'{"recording":14} {"learner":22} {"wall s":>7} {"x real time":>12} {"scans/s":>8} '
          f'{"us/scan":>8}')  # fmt: skip
    for name, source in sources().items():
        for label, file in settings(source, folder).items():
            runs = [run(source, folder / 'out', '--config', str(file)) for _ in range(repeats)]
            wall = min(each[0] for each in runs)
            scans = max(each[1]['scans_per_second'] for each in runs)
            timing = runs[0][1]
            length = timing['times_real_time'] * timing['seconds']
            print(f'{name:14} {label:22} {wall:7.2f} {length / wall:12.0f} {scans:8.0f} '
                  f'{1e6 / scans:8.0f}', flush=True)  # fmt: skip


def made_bag(path, count, beams=180):
    """Write a bag of scans in a made room and of poses, ten a second."""
    rng = np.random.default_rng(0)
    bearings = np.linspace(-math.pi / 2, math.pi / 2, beams)
    with BagWriter(path) as writer:
        for i in range(count):
            stamp = 10**9 + i * 10**8
            x, yaw = 3.0 * math.sin(0.01 * i), 0.3 * math.sin(0.02 * i)
            ranges = np.minimum(5.0 / np.cos(0.9 * (bearings + yaw)), 8.0) - 0.5 * x
            ranges += 0.01 * rng.normal(size=beams)
            pose = pose_bytes(stamp, x, 0.0, yaw)
            scan = scan_bytes(stamp, ranges, angle_min=bearings[0], angle_increment=math.pi / 179,
                              range_min=0.05, range_max=20.0)  # fmt: skip
            writer.write(Message('/pose', POSE_TYPE, stamp, pose))
            writer.write(Message('/scan', SCAN_TYPE, stamp, scan))
    return path


def memory(folder, lengths):
    """Print the memory that recordings of different length take."""
    print('\nmemory against length of the bag')
    for count in tqdm(lengths, desc='memory', leave=False, disable=None):
        bag = made_bag(folder / f'made_{count}.mcap', count)
        _, timing, used = run(bag, folder / 'out')
        print(f'{count:8d} scans, {bag.stat().st_size / 2**20:6.1f} MB: peak {used:6.1f} MB, '
              f'{timing["scans_per_second"]:.0f} scans/s', flush=True)  # fmt: skip


def reading(folder, count=20000):
    """Print what reading and decoding cost, for scans of 1081 beams."""
    print(f'\nreading {count} scans of 1081 beams, and as many poses, us per message')
    for suffix in ('mcap', 'db3'):
        bag = made_bag(folder / f'large.{suffix}', count, beams=1081)
        begun = time.perf_counter()
        with open_recording(bag) as recording:
            total = sum(1 for _ in recording.messages())
        taken = 1e6 * (time.perf_counter() - begun) / total
        print(f'{suffix:5} raw {taken:6.2f}')
    with open_recording(bag) as recording:
        some = [m for m, _ in zip(recording.messages(), range(4000), strict=False)]
    for label, function in (('decode_input', decode_input), ('rosbags', decode)):
        begun = time.perf_counter()
        for message in some:
            function(message)
        print(f'{label:14} {1e6 * (time.perf_counter() - begun) / len(some):6.2f}')


def main():
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--repeats', type=int, default=3, help='runs of which the best counts')
    parser.add_argument('--lengths', type=int, nargs='+', default=[5000, 20000, 80000])
    arguments = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        speed(folder, arguments.repeats)
        memory(folder, arguments.lengths)
        reading(folder)


if __name__ == '__main__':
    main()
