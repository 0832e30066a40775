# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Memory does not grow with the length of a recording."""

import os
import subprocess
import sys
from pathlib import Path

from made_recordings import config, pose_message, range_message, written

from kernel_constrained.configuration import write_parameter_file

REPOSITORY = Path(__file__).resolve().parents[2]

# What a row may take in memory, bytes: some columns while the figures are computed. A row as an
# object takes 900, its numbers 500.
PER_ROW = 150

MEASURED = """
import resource, sys
from kernel_constrained.offline.evaluate import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(code)
"""


def peak(folder, count, settings):
    """Peak memory of an evaluation of a recording of ``count`` ranges, bytes."""
    messages = (make(i) for i in range(count) for make in (pose_message, range_message))
    bag = written(folder / f'{count}.mcap', messages)
    command = [sys.executable, '-c', MEASURED, bag, '--config', settings, '--output']
    output = subprocess.run(
        [*map(str, command), str(folder / 'out'), '--dropout', '20:30', '--split', '0.9'],
        capture_output=True, text=True, check=True,
        env={**os.environ, 'PYTHONPATH': str(REPOSITORY)},
    )  # fmt: skip
    assert (folder / 'out' / 'result.json').exists()
    return 1024 * int(output.stdout.splitlines()[-1])


def test_four_times_the_recording_takes_the_same_memory(tmp_path):
    settings = tmp_path / 'filter.yaml'
    ranges = {'input__type': 'range', 'features__type': 'range', 'target__type': 'axis'}
    few = {'learner__bandwidth': 0.5, 'learner__max_model_order': 10}
    write_parameter_file(settings, config(**ranges, **few), 'Made for a test.')
    short, long = 4_000, 16_000
    grown = peak(tmp_path, long, settings) - peak(tmp_path, short, settings)
    assert grown < PER_ROW * (long - short), f'{grown / (long - short):.0f} bytes a row'
