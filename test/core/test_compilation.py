# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled code: the same bits from the process that compiled it and from those that load it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kernel_constrained

PROGRAM = """
import hashlib
import numpy as np
from kernel_constrained.core import CVaR, Gaussian, PrimalDualLearner, stream
rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, (2000, 2))
y = np.sin(3 * x[:, 0]) + 0.1 * rng.standard_normal(2000)
learner = PrimalDualLearner(Gaussian(0.3), constraint=CVaR(0.9, 0.03), step='recursive')
learner.partial_fit(x, y)
state = learner.dictionary_.tobytes() + learner.weights_.tobytes()
hits = sum(stream.recursive_stream.stats.cache_hits.values())
print(hashlib.sha256(state).hexdigest(), hits)
"""


def run(folder):
    result = subprocess.run(
        [sys.executable, '-c', PROGRAM], cwd=folder, capture_output=True, text=True, check=True,
        env={**os.environ, 'PYTHONPATH': str(folder)},
    )  # fmt: skip
    digest, hits = result.stdout.split()
    return digest, int(hits)


def test_a_process_that_compiles_and_one_that_loads_give_the_same_bits(tmp_path):
    source = Path(kernel_constrained.__file__).parent
    shutil.copytree(source, tmp_path / source.name, ignore=shutil.ignore_patterns('__pycache__'))
    compiled, hits = run(tmp_path)
    assert hits == 0, 'this one compiles'
    loaded, hits = run(tmp_path)
    assert hits == 1, 'this one loads'
    assert compiled == loaded


@pytest.mark.parametrize('changed', ['core/komp.py', 'planning/seeds.py'])
def test_a_change_of_any_source_that_may_be_called_compiles_again(tmp_path, changed):
    """Numba itself does not notice a change in a function that another file calls."""
    from kernel_constrained.core import compilation

    def folder_of_planning():
        compilation.cache_folder.cache_clear()
        return compilation.cache_folder(tmp_path / 'planning', tmp_path / 'core')

    package = Path(compilation.__file__).parents[1]
    for name in 'core', 'planning':
        ignored = shutil.ignore_patterns('__pycache__')
        shutil.copytree(package / name, tmp_path / name, ignore=ignored)
    before = folder_of_planning()
    assert folder_of_planning() == before
    with (tmp_path / changed).open('a') as file:
        file.write('# changed')
    assert folder_of_planning() != before
