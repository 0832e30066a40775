# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of an experiment over the cores of this machine."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from joblib import delayed, Parallel, parallel_config
from tqdm import tqdm

T = TypeVar('T')


def over_cores(function: Callable[..., T], tasks: Sequence[tuple[Any, ...]], name: str) -> list[T]:
    """Call ``function`` with the arguments of each task; return the results in that order.

    Processes do it, one for each core, with a bar on a terminal. Put the longest tasks first.
    """
    with parallel_config(backend='loky', inner_max_num_threads=1):
        results = Parallel(n_jobs=-1, return_as='generator', batch_size=1)(
            delayed(function)(*task) for task in tasks
        )
        return list(tqdm(results, name, total=len(tasks), unit=' runs', disable=None))
