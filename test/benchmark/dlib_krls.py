# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""dlib's krls, by a small program of ours that is compiled when it is first asked for."""

import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import numpy as np
from adapter import Origin, Result

SOURCE = Path(__file__).with_name('dlib_krls.cpp')
FOLDER = Path('out/benchmark')
# dlib's own matrices are two to four times slower than OpenBLAS; reference BLAS is in between.
LINKINGS = {
    'OpenBLAS': ['-lopenblas'],
    'reference BLAS': ['-lblas'],
    'libdlib': ['-ldlib', '-lblas', '-llapack'],
    'no BLAS': [],
}


@lru_cache
def program():
    """Compile; return (path, BLAS it is linked with), or what went wrong in place of the path."""
    compiler = shutil.which('g++') or shutil.which('c++')
    if compiler is None:
        return 'there is no C++ compiler (apt install g++)', ''
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER.resolve() / 'dlib_krls'
    flags = ['-std=c++17', '-O3', '-march=native', '-ffast-math']
    for blas, libraries in LINKINGS.items():
        command = [compiler, *flags, str(SOURCE), '-o', str(path), *libraries]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode == 0:
            return path, blas
        if 'dlib/revision.h' in built.stderr:
            return "dlib's headers are not installed (apt install libdlib-dev)", ''
    return f'the compiler says: {built.stderr.strip().splitlines()[-1]}', ''


def absence():
    found, _ = program()
    return found if isinstance(found, str) else ''


def call(bandwidth, tolerance, x, y, test_x, test_y):
    """Run the program; return what it prints: seconds, error, size, version of dlib."""
    head = [bandwidth, tolerance, x.shape[1], len(x), len(test_x)]
    rows = [np.column_stack(pair).ravel() for pair in ((x, y), (test_x, test_y))]
    told = np.concatenate([head, *rows]).tobytes()
    return subprocess.run(
        [program()[0]], input=told, capture_output=True, check=True
    ).stdout.split()


def version():
    point = np.zeros((1, 1))
    return f'dlib {call(1, 1, point, [0], point, [0])[3].decode()} ({program()[1]})'


def run(stream, setting):
    seconds, error, size, _ = call(
        setting['bandwidth'], setting['tolerance'], stream.x, stream.y,
        stream.test_x, stream.test_y,
    )  # fmt: skip
    return Result(float(seconds), float(error), int(size))


ORIGIN = Origin(absence, version)
