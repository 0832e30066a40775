# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""After warming up nothing is compiled any more: a robot does not wait for a compiler."""

import os
import subprocess
import sys
from pathlib import Path

import kernel_constrained

PROGRAM = """
import sys
from numba.core.dispatcher import Dispatcher
from kernel_constrained.planning.config import ChanceConfig, PlannerConfig, SensingConfig
from kernel_constrained.planning.planner import Planner
from kernel_constrained.planning.simulation import drive, Lidar
from kernel_constrained.planning.worlds import random_world

def signatures():
    return {
        f'{name}.{key}': len(value.signatures)
        for name, module in sorted(sys.modules.items()) if name.startswith('kernel_constrained')
        for key, value in vars(module).items() if isinstance(value, Dispatcher)
        if not name.endswith(('worlds', 'exact', 'simulation', 'lidar', 'robot', 'episode'))
    }

chance = ChanceConfig(under_noise='path')
planner = Planner(PlannerConfig(scan=SensingConfig(max_range=3.0), chance=chance))
planner.warm_up()
before = signatures()
for seed in range(3):
    drive(planner, random_world(seed), lidar=Lidar(dropouts=0.01), seed=seed, max_scans=30)
after = signatures()
print({name for name, count in after.items() if count != before.get(name)} or 'nothing')
"""


def test_nothing_is_compiled_after_warming_up():
    package = Path(kernel_constrained.__file__).parents[1]
    result = subprocess.run(
        [sys.executable, '-c', PROGRAM], capture_output=True, text=True, check=True,
        env={**os.environ, 'PYTHONPATH': str(package)},
    )  # fmt: skip
    assert result.stdout.strip() == 'nothing'
