# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""How the core is compiled, and where the result is kept."""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

# Everything but the assumption that no NaN or infinity occurs: sums may be vectorised.
FASTMATH = {'reassoc', 'contract', 'arcp', 'nsz'}


@functools.cache
def cache_folder(here: Path, callees: Path = Path(__file__).parent) -> str:
    """Folder of compiled code, one for each state of the sources in ``here`` and ``callees``.

    Numba notices a change of the file of a function, not one of the files of the functions it
    calls: after an update the old code would go on running.
    """
    digest = hashlib.sha256()
    for folder in sorted({here, callees}):
        for source in sorted(folder.glob('*.py')):
            digest.update(source.read_bytes())
    return str(here / '__pycache__' / f'compiled-{digest.hexdigest()[:16]}')


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function when it is first called, and keep the result on disk.

    It may make no array. References are not counted (``_nrt``): arrays belong to the caller, and
    counting costs more than a small step itself. Callees are inlined by force: else a process
    that has just compiled them and one that loads the caller from disk may run differently
    optimised copies, and differ in the last bit.

    Where the package cannot be written to, numba keeps the result in the user's cache instead.
    """
    return compile_with(function, forceinline=True, _nrt=False)


def compiled_allocating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile like :func:`compiled` a function that makes arrays of its own."""
    return compile_with(function)


def compile_with(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile with what all our functions have in common."""
    settings: Any = numba.config  # its names are made when it is imported
    before = settings.CACHE_DIR
    settings.CACHE_DIR = cache_folder(Path(function.__code__.co_filename).parent)
    try:
        dispatcher: Callable[..., Any] = numba.njit(
            cache=True, fastmath=FASTMATH, error_model='numpy', **options
        )(function)
    finally:
        settings.CACHE_DIR = before
    return dispatcher
