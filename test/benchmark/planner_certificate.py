# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The certificate: what of the truth it proves, whether it ever proves a falsehood, and its cost.

Paths are of every kind that planning meets, from straight lines through discs to finished ones;
the truth is looked at at 100,001 points of each, with the worlds' own distances.
"""

import os

os.environ.update(dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1'))

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import thread_time
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from planner_ours import parts_of, scene_of, ways
from planner_peers import environment
from planning_worlds import CHECKED, SEEDS, worlds
from tqdm import tqdm

from kernel_constrained.core.trajectory import Basis, TABULATED, Trajectory
from kernel_constrained.planning.certificate import prove, proven_from, Status
from kernel_constrained.planning.learning import bow
from kernel_constrained.planning.obstacles import Obstacles
from kernel_constrained.planning.polish import polish
from kernel_constrained.planning.polyline import arc_lengths, resampled
from kernel_constrained.planning.worlds import World

QUICK = 20  # worlds of a kind
CLEAR = 1e-3  # clearance from which a path counts as free, metres
ASIDE = 0.0, 2.0, -2.0, 4.0, -4.0  # of the lines that are learned from, metres
NARROW = 0.0, 0.01  # margins that finished paths keep, metres
STEPS = 8, 32  # of the learner, after which its paths are looked at
BUDGET = 1e-3  # by which paths are compressed, metres
REPEATS = 20  # of each proof that is timed


class Trial(NamedTuple):
    """One path: its kind, true clearance, and what came of the proof."""

    kind: str
    clearance: float
    status: Status
    evaluations: int
    seconds: float


# -- paths ----------------------------------------------------------------------------------


def bases_of(world: World, line: np.ndarray) -> tuple[Basis, np.ndarray]:
    """Return the basis for a line, and the weights of what fits it."""
    basis = parts_of(world)[1].basis(arc_lengths(line)[-1])
    return basis, basis.fit(resampled(line, TABULATED))


def from_lines(world: World) -> Iterator[tuple[str, Trajectory]]:
    """Yield bows as they are, and as the learner has bent them so far."""
    scene, (config, _, learner) = scene_of(world), parts_of(world)
    ends = world.start, world.goal
    wanted, proof = scene.obstacles(config.robot.margin), scene.obstacles(0.0)
    basis = parts_of(world)[1].basis(np.hypot(*(world.goal - world.start)))
    for aside in ASIDE:
        weights = bow(basis, ends, aside)
        yield 'bows', basis.trajectory(weights, *ends)
        for steps in STEPS:
            bent = weights.copy()
            learner.learn(bent, np.zeros_like(bent), basis, ends, wanted, proof, steps)
            yield 'being learned', basis.trajectory(bent, *ends)


def from_seeds(world: World) -> Iterator[tuple[str, Trajectory]]:
    """Yield fitted ways, and the same polished to touch, or hardly not to, and compressed."""
    scene, settings = scene_of(world), parts_of(world)[0].polish
    ends = world.start, world.goal
    for way in islice(ways(world, scene), 2):
        basis, weights = bases_of(world, way)
        yield 'fitted', basis.trajectory(weights, *ends)
        for margin in NARROW:
            polished = polish(
                weights, np.zeros_like(weights), basis, ends, scene.obstacles(margin),
                settings.bending, 0.0, settings.rounds,
            )  # fmt: skip
            yield 'polished', basis.compressed(polished, *ends, BUDGET)


# -- trials ---------------------------------------------------------------------------------


def truth(world: World, trajectory: Trajectory) -> float:
    """Return the least clearance at all points looked at, from discs and from the sides."""
    points = trajectory.sampled(0.0, CHECKED)[0]
    low, high = world.bounds[0] + world.radius, world.bounds[1] - world.radius
    inside = min((points - low).min(), (high - points).min())
    return float(min(world.clearance(points).min(), inside))


def timed_proof(trajectory: Trajectory, obstacles: Obstacles) -> float:
    """Return the seconds that a proof takes where it is called from compiled code or a loop."""
    arguments = (
        0.0, trajectory.atoms, trajectory.coefficients, trajectory.bandwidth, trajectory.norm,
        trajectory.start, trajectory.goal, obstacles,
    )  # fmt: skip
    begun = thread_time()
    for _ in range(REPEATS):
        proven_from(*arguments)
    return (thread_time() - begun) / REPEATS


def trials_in(world: World) -> Iterator[Trial]:
    """Try all paths in a world against its discs and its box."""
    obstacles = scene_of(world).obstacles(0.0)
    for paths in from_lines(world), from_seeds(world):
        for kind, trajectory in paths:
            proof = prove(trajectory, obstacles)
            yield Trial(
                kind, truth(world, trajectory), proof.status, proof.evaluations,
                timed_proof(trajectory, obstacles),
            )  # fmt: skip


# -- the report -----------------------------------------------------------------------------


def line(name: str, trials: list[Trial]) -> str:
    """Return the line of some paths."""
    free = [t for t in trials if t.clearance >= CLEAR]
    proven = [t for t in free if t.status == Status.PROVEN]
    touching = [t for t in trials if t.clearance < 0.0]
    false = sum(t.status == Status.PROVEN for t in touching)
    evaluations, seconds = ([getattr(t, f) for t in proven] for f in ('evaluations', 'seconds'))
    text = (
        f'{name:14s} {len(trials):6d} {f"{len(proven)}/{len(free)}":>11s} '
        f'{f"{false}/{len(touching)}":>11s}'
    )
    if not proven:
        return text
    milliseconds = 1e3 * np.percentile(seconds, (50, 95))
    return (
        f'{text} {np.median(evaluations):7.0f} {np.percentile(evaluations, 95):5.0f} '
        f'{max(evaluations):5d} {milliseconds[0]:8.4f} {milliseconds[1]:8.4f}'
    )


def table(trials: list[Trial]) -> list[str]:
    """Return the lines of the table."""
    kinds = dict.fromkeys(t.kind for t in trials)
    return [
        f'{"paths":14s} {"number":>6s} {"free proven":>11s} {"false":>11s} {"median":>7s} '
        f'{"p95":>5s} {"max":>5s} {"ms":>8s} {"p95":>8s}',
        *(line(kind, [t for t in trials if t.kind == kind]) for kind in kinds),
        line('all', trials),
        '',
        f'free proven  of the paths that keep {1e3 * CLEAR:g} mm at {CHECKED:,} points, those '
        'proven',
        'false        of the paths that touch something there, those proven',
        'median ...   evaluations of the trajectory in a proof that succeeds; its thread CPU time',
    ]


def draw(trials: list[Trial], path: Path) -> None:
    """Draw evaluations against true clearance."""
    figure = Figure(figsize=(8, 5), layout='constrained')
    axes = figure.subplots()
    for status, colour in (Status.PROVEN, 'C2'), (Status.UNDECIDED, 'C1'), (Status.VIOLATED, 'C3'):
        some = [t for t in trials if t.status == status]
        axes.plot([t.clearance for t in some], [t.evaluations for t in some], '.', color=colour,
                  label=f'{status.name.lower()} ({len(some)})', alpha=0.5)  # fmt: skip
    axes.axvline(0.0, color='black', linewidth=0.8)
    axes.set_xscale('symlog', linthresh=1e-3)
    axes.set(xlabel=f'true clearance at {CHECKED:,} points, m', ylabel='evaluations',
             title='proofs of paths in random worlds')  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, print a table, and draw a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=Path, default=Path('out/benchmark'))
    parser.add_argument('--quick', action='store_true', help=f'{QUICK} worlds of a kind')
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    lines = environment()
    every = [world for kind in SEEDS for world in worlds(kind, QUICK if arguments.quick else None)]
    list(trials_in(every[0]))  # what is compiled once is not timed
    trials = [t for world in tqdm(every, disable=None, unit='world') for t in trials_in(world)]
    lines += table(trials)
    print(*lines, sep='\n')
    (arguments.output / 'planner_certificate.txt').write_text('\n'.join(lines) + '\n')
    draw(trials, arguments.output / 'planner_certificate.png')
    print(f'figure: {arguments.output / "planner_certificate.png"}')


if __name__ == '__main__':
    main()
