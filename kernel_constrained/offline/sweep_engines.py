# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Who does the evaluations of a sweep: processes of this machine (joblib), or a dask cluster."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from joblib import delayed, Parallel, parallel_config

from kernel_constrained.offline.sweep_task import (
    Outcome,
    perform,
    perform_and_store,
    sizes_of,
    store,
    Task,
    versions,
)

# Seconds to wait for a scheduler, and for its first worker.
PATIENCE = 10


Done = tuple[Task, Outcome]


class EngineError(RuntimeError):
    """A cluster that cannot be used; the message is one line and says why."""


def on_this_machine(tasks: Sequence[Task], folder: Path, jobs: int) -> Iterator[Done]:
    """Have tasks done by processes of this machine; yield each with its outcome.

    They are yielded in order, and stored in ``folder`` as soon as they are there: joblib before
    1.4, which Ubuntu 24.04 has, does not yield them as they come.
    """
    with parallel_config(backend='loky', inner_max_num_threads=1):
        work = Parallel(n_jobs=jobs, return_as='generator', batch_size=1)
        outcomes = work(delayed(perform_and_store)(task, folder) for task in tasks)
        yield from zip(tasks, outcomes, strict=True)


def on_cluster(tasks: Sequence[Task], folder: Path, address: str) -> Iterator[Done]:
    """Have tasks done by the workers of a dask scheduler; yield each as it comes.

    Raises
    ------
    EngineError
        The cluster cannot be reached, is lost, or lacks the package or a recording.
    """
    with connected(address) as client:
        check_cluster(client, tasks)
        yield from submitted(client, tasks, folder)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect with a scheduler that has workers."""
    try:
        from distributed import Client
    except ImportError as error:
        raise EngineError(
            '--scheduler needs distributed, which is not installed: `pip install distributed`'
        ) from error
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise EngineError(
            f'no dask scheduler at {address} ({" ".join(str(error).split())}); '
            'start one by `dask scheduler` and name what it prints, as tcp://host:8786'
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except asyncio.TimeoutError as error:
            raise EngineError(
                f'the scheduler at {address} has no worker: start some by '
                f'`dask worker {address} --nthreads 1`'
            ) from error
        yield client


def check_cluster(client: Any, tasks: Sequence[Task]) -> None:
    """Refuse a cluster with other code, or whose workers do not see the recordings.

    Raises
    ------
    EngineError
        Names the worker, and what differs.
    """
    for who, theirs in versions_of(client):
        if theirs != versions():
            raise EngineError(f'{who} has {theirs}, here is {versions()}: install the same on all')
    sources = list(dict.fromkeys(task.source for task in tasks))
    here = [[(name, size) for name, size, _ in source.files] for source in sources]
    sizes = client.run(sizes_of, [source.path for source in sources])
    for worker, theirs in sizes.items():
        for source, ours, there in zip(sources, here, theirs, strict=True):
            if there != ours:
                what = 'cannot read' if there is None else 'has other files at'
                raise EngineError(
                    f'worker {worker} {what} {source.path}: recordings must be the same for all, '
                    'on a shared file system or as copies at the same place'
                )


def versions_of(client: Any) -> Iterator[tuple[str, Any]]:
    """Yield who computes, and with which code, or the error that asking ended with."""
    try:  # the scheduler reads the tasks, so that it needs the package too
        theirs = client.run_on_scheduler(versions)
    except Exception as error:
        theirs = error
    yield 'the scheduler', theirs
    for worker, theirs in client.run(versions, on_error='return').items():
        yield f'worker {worker}', theirs


def submitted(client: Any, tasks: Sequence[Task], folder: Path) -> Iterator[Done]:
    """Have the tasks done; dask gives those of a worker that died to another."""
    from distributed import as_completed

    waiting = {client.submit(perform, task, key=f'sweep-{task.key}'): task for task in tasks}
    for future in as_completed(list(waiting), loop=client.loop, raise_errors=False):
        task = waiting.pop(future)
        if future.status == 'finished':
            outcome = future.result()
        elif future.status == 'error':  # what is raised by no evaluation: its workers died
            outcome = {
                'recording': task.source.name,
                'failed': ' '.join(str(future.exception()).split()),
            }
        else:
            raise EngineError('the scheduler was lost; run again to go on from here')
        store(task, outcome, folder)
        yield task, outcome
