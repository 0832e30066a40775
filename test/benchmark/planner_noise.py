# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Obstacles whose centres are not quite known: is the probability of collision what was asked for?

Under each of five laws of the noise, with the same settings for all, paths are asked for that are
in contact at a random time with a probability of 2 % at most. They are judged by draws that they
were not made from. Lengths are held against an interior-point solver's that minimises energy and
keeps a margin: at the margin with the same probability, from the same seed.
"""

import os

os.environ.update(dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1'))

import argparse
from functools import cache
from pathlib import Path
from statistics import NormalDist
from time import thread_time
from typing import NamedTuple

import attrs
import numpy as np
from matplotlib.figure import Figure
from planner_ours import parts_of, scene_of
from planner_peers import environment
from planning_peers import CASADI, energy, ipopt
from planning_worlds import worlds
from tqdm import tqdm

from kernel_constrained.core.trajectory import TABULATED, Trajectory
from kernel_constrained.planning.certificate import prove, Status
from kernel_constrained.planning.learning import Noise, TrajectoryLearner
from kernel_constrained.planning.polish import polish
from kernel_constrained.planning.polyline import arc_lengths, resampled
from kernel_constrained.planning.risk import LAWS, Risk, sampled_risk
from kernel_constrained.planning.scene import Scene
from kernel_constrained.planning.seeds import alternatives
from kernel_constrained.planning.worlds import World

TOLERANCE = 0.02
DEVIATION = 0.1  # of each coordinate of a centre, metres
COUNT = 100  # worlds: those of the base, then extended ones
QUICK = 10
STEPS = 300  # of the learner
DRAWS = 4096  # of the noise that is learned from, made once for each law
SAMPLES = 1000  # of these, that margins are chosen by
JUDGING = 4000  # fresh ones
POSITIONS, FINE = 129, 257  # looked at along a path when it is made, and when it is judged
CONFIDENCE = 0.95
ROOMS = (0.2, 0.02), (0.1, 0.02), (0.0, 0.03)  # margin of a grid search, and extra distance
WIDEST = 0.45  # margin that is tried, metres
CLOSE = 0.8  # share of the tolerance from which a margin is good enough
ATTEMPTS = 6
MARGINS = np.arange(0.0, WIDEST, 0.025)  # of the interior-point solver


class Asked(NamedTuple):
    """What is asked for: a world, where its path shall lead roughly, and the law of the noise."""

    world: World
    scene: Scene
    law: str


class Made(NamedTuple):
    """A path, whether it is proven against the discs as they are thought to be, and seconds."""

    trajectory: Trajectory
    proven: bool
    seconds: float


class Outcome(NamedTuple):
    """What became of one: the judgement, its length, and excess lengths over the peer's."""

    made: Made
    risk: Risk
    length: float
    at_equal_risk: float
    at_equal_path_risk: float


# -- noise ----------------------------------------------------------------------------------


@cache
def draws_of(law: str, discs: int) -> np.ndarray:
    """Return unit draws that paths are made from, (DRAWS, 2, discs)."""
    return LAWS[law](np.random.default_rng(1), (DRAWS, 2, discs))


@cache
def fresh_draws(law: str, discs: int) -> np.ndarray:
    """Return unit draws that paths are judged by, (JUDGING, 2, discs)."""
    return LAWS[law](np.random.default_rng(2), (JUDGING, 2, discs))


def risk_of(positions: np.ndarray, asked: Asked, draws: np.ndarray) -> Risk:
    """Return the risk of positions (k, 2) at equal times."""
    discs = asked.scene.points.shape[1]
    return sampled_risk(
        np.ascontiguousarray(positions.T), np.ones(len(positions)),
        np.gradient(arc_lengths(positions)), asked.scene.points, asked.scene.contact,
        np.full(discs, DEVIATION), np.random.default_rng(0), len(draws), CONFIDENCE,
        law=lambda rng, shape: draws,
    )  # fmt: skip


def is_proven(trajectory: Trajectory, asked: Asked) -> bool:
    """Tell whether a path is proven against the discs as they are thought to be."""
    return prove(trajectory, asked.scene.obstacles(0.0)).status == Status.PROVEN


# -- paths ----------------------------------------------------------------------------------


@cache
def learner_of(world: World) -> TrajectoryLearner:
    """Return the learner with the tolerance asked for."""
    config = parts_of(world)[0]
    chance = attrs.evolve(config.chance, tolerance=TOLERANCE)
    return TrajectoryLearner(attrs.evolve(config, chance=chance))


def ways(asked: Asked):
    """Yield rough ways, the roomiest first."""
    low, high = asked.scene.box
    spacing = parts_of(asked.world)[0].seed.spacing
    for margin, extra in ROOMS:
        yield from alternatives(
            asked.scene.obstacles(margin), low, high, spacing, extra, asked.world.start,
            asked.world.goal, 2,
        )  # fmt: skip


def learned(asked: Asked, way: np.ndarray):
    """Learn under noise from a way; return basis and weights."""
    world, discs = asked.world, asked.scene.points.shape[1]
    basis = parts_of(world)[1].basis(arc_lengths(way)[-1])
    weights = basis.fit(resampled(way, TABULATED))
    noise = Noise(np.full(discs, DEVIATION), draws_of(asked.law, discs))
    learner_of(world).learn_under_noise(
        weights, np.zeros_like(weights), basis, (world.start, world.goal),
        asked.scene.obstacles(0.0), noise, STEPS,
    )  # fmt: skip
    return basis, weights


def normal_quantile(probability: float) -> float:
    """Return by how many standard deviations a normal variable exceeds this seldom."""
    return -NormalDist().inv_cdf(min(max(probability, 1e-6), 1.0 - 1e-6))


def bound_of(trajectory: Trajectory, asked: Asked) -> float:
    """Return the bound on a path's risk, 1 where its proof fails against the discs as thought."""
    if not is_proven(trajectory, asked):
        return 1.0
    draws = draws_of(asked.law, asked.scene.points.shape[1])[:SAMPLES]
    return risk_of(trajectory.sampled(0.0, POSITIONS)[0], asked, draws).by_time


def polished(asked: Asked, basis, weights) -> tuple[Trajectory, float]:
    """Polish with the least margin whose sampled risk is bounded by the tolerance.

    The margin follows the quantile of the risk, by secants. Returns the path and its bound: those
    that were learned where no margin is good.
    """
    settings, ends = parts_of(asked.world)[0].polish, (asked.world.start, asked.world.goal)
    wanted = normal_quantile(0.5 * (1.0 + CLOSE) * TOLERANCE)
    trajectory = basis.trajectory(weights, *ends)
    best, low, high, margin = (trajectory, bound_of(trajectory, asked)), 0.0, WIDEST, 0.15
    for _ in range(ATTEMPTS):
        version = polish(
            weights, np.zeros_like(weights), basis, ends, asked.scene.obstacles(margin),
            settings.bending, 0.0, settings.rounds, settings.inner_rounds,
        )  # fmt: skip
        trajectory = basis.trajectory(version, *ends)
        bound = bound_of(trajectory, asked)
        if bound <= max(TOLERANCE, best[1]):
            best = trajectory, bound
        if CLOSE * TOLERANCE <= bound <= TOLERANCE:
            break
        low, high = (low, margin) if bound <= TOLERANCE else (margin, high)
        step = DEVIATION * (wanted - normal_quantile(bound))
        margin = margin + step if low < margin + step < high else 0.5 * (low + high)
    return best


def learn_alone(asked: Asked, way: np.ndarray) -> tuple[Trajectory, float]:
    """Make a path by the learner, as it is."""
    basis, weights = learned(asked, way)
    trajectory = basis.trajectory(weights, asked.world.start, asked.world.goal)
    return trajectory, bound_of(trajectory, asked)


def learn_and_polish(asked: Asked, way: np.ndarray) -> tuple[Trajectory, float]:
    """Make a path by the learner, then polish it with a margin chosen by sampling."""
    return polished(asked, *learned(asked, way))


METHODS = {'learner': learn_alone, 'learner, polished': learn_and_polish}


def made(asked: Asked, method) -> tuple[Made, np.ndarray]:
    """Make a path from the first way on which risk is bounded, else the least risky one."""
    begun = thread_time()
    best = None
    for way in ways(asked):
        trajectory, bound = method(asked, way)
        proven = is_proven(trajectory, asked)
        key = bound > TOLERANCE, bound
        if best is None or key < best[0]:
            best = key, trajectory, proven, way
        if not key[0]:
            break
    _, trajectory, proven, way = best
    return Made(trajectory, proven, thread_time() - begun), way


# -- the peer -------------------------------------------------------------------------------


def frontier(world: World, way: np.ndarray) -> list[np.ndarray]:
    """Return the solver's paths from a way, for all margins that it keeps."""
    found = []
    for margin in MARGINS:
        path = ipopt(energy, world, way, margin=margin)
        if world.clearance(resampled(path, FINE)).min() < margin - 0.05:
            break
        found.append(path)
    return found


def excess(length: float, risk: float, lengths, risks) -> float:
    """Return by how many percent a length exceeds the peer's at the same risk; NaN if it has none.

    Between its margins, length is interpolated in the quantile of the risk.
    """
    quantiles = np.maximum.accumulate([normal_quantile(r) for r in risks])
    mine = normal_quantile(risk)
    if not quantiles[0] <= mine <= quantiles[-1] or risk == 0.0:
        return np.nan
    return 100.0 * (length / np.interp(mine, quantiles, lengths) - 1.0)


class Peer:
    """The solver's paths in a world by way, and their risks by law: each is made once."""

    def __init__(self) -> None:
        self._paths: dict = {}

    def compare(self, asked: Asked, way: np.ndarray, length: float, risk: Risk):
        """Return excess lengths at equal risk, and at equal risk of the whole path."""
        if CASADI.absence():
            return np.nan, np.nan
        key = asked.world, way.tobytes()
        if key not in self._paths:
            self._paths[key] = frontier(asked.world, way)
        paths = self._paths[key]
        if not paths:
            return np.nan, np.nan
        fresh = fresh_draws(asked.law, asked.scene.points.shape[1])
        risks = [risk_of(resampled_in_time(path), asked, fresh) for path in paths]
        lengths = [arc_lengths(path)[-1] for path in paths]
        return (
            excess(length, risk.by_time_estimate, lengths, [r.by_time_estimate for r in risks]),
            excess(length, risk.per_path_estimate, lengths, [r.per_path_estimate for r in risks]),
        )


def resampled_in_time(path: np.ndarray) -> np.ndarray:
    """Return positions (FINE, 2) at equal times of waypoints at equal times."""
    times = np.linspace(0.0, 1.0, len(path))
    fine = np.linspace(0.0, 1.0, FINE)
    return np.stack([np.interp(fine, times, path[:, d]) for d in range(2)], axis=1)


# -- the run --------------------------------------------------------------------------------


def judged(asked: Asked, method, peer: Peer) -> Outcome:
    """Make a path, and judge it."""
    result, way = made(asked, method)
    positions = result.trajectory.sampled(0.0, FINE)[0]
    risk = risk_of(positions, asked, fresh_draws(asked.law, asked.scene.points.shape[1]))
    length = float(arc_lengths(positions)[-1])
    return Outcome(result, risk, length, *peer.compare(asked, way, length, risk))


COLUMNS = (
    f'{"made by":18s} {"law":11s} {"P <= tolerance":>14s} {"P median":>8s} {"max":>7s} '
    f'{"by length":>9s} {"per path":>8s} {"length":>7s} {"at equal P %":>12s} {"p95":>6s} '
    f'{"at equal path %":>15s} {"proven":>8s} {"ms":>6s} {"p95":>6s}'
)
EXPLAINED = (
    f'P <= tolerance  worlds in which the probability of contact at a random time is at most '
    f'{TOLERANCE:g}, by {JUDGING} fresh draws',
    'by length       median probability at a random place of the path; per path: that it touches '
    'anything at all',
    "at equal P      length against the interior-point solver's with the margin of the same "
    'probability, median; likewise of the same probability per path',
    'proven          against the discs as they are thought to be',
    f'ms              thread CPU time, seed and {STEPS} steps included, median',
)


def line(name: str, law: str, outcomes: list[Outcome]) -> str:
    """Return the line of a method under a law."""
    p, places, paths = np.array(
        [(o.risk.by_time_estimate, o.risk.by_length_estimate, o.risk.per_path_estimate)
         for o in outcomes]
    ).T  # fmt: skip
    equal = np.array([(o.at_equal_risk, o.at_equal_path_risk) for o in outcomes])
    known = equal[np.isfinite(equal).all(axis=1)]
    middle = np.median(known, axis=0) if len(known) else (np.nan, np.nan)
    upper = np.percentile(known[:, 0], 95) if len(known) else np.nan
    milliseconds = 1e3 * np.percentile([o.made.seconds for o in outcomes], (50, 95))
    return (
        f'{name:18s} {law:11s} {f"{(p <= TOLERANCE).sum()}/{len(p)}":>14s} {np.median(p):8.4f} '
        f'{p.max():7.4f} {np.median(places):9.4f} {np.median(paths):8.3f} '
        f'{np.median([o.length for o in outcomes]):7.3f} {middle[0]:12.2f} {upper:6.2f} '
        f'{middle[1]:15.2f} {f"{sum(o.made.proven for o in outcomes)}/{len(p)}":>8s} '
        f'{milliseconds[0]:6.1f} {milliseconds[1]:6.1f}'
    )


def draw(results: dict, path: Path) -> None:
    """Draw the probabilities of all worlds, and lengths at equal probability."""
    figure = Figure(figsize=(12, 5), layout='constrained')
    left, right = figure.subplots(1, 2)
    for (name, law), outcomes in results.items():
        style = '-' if name == 'learner, polished' else ':'
        colour = f'C{list(LAWS).index(law)}'
        p = np.sort([o.risk.by_time_estimate for o in outcomes])
        left.plot(p, np.linspace(0.0, 1.0, len(p)), style, color=colour, label=f'{name}, {law}')
        right.plot(np.sort([o.at_equal_risk for o in outcomes]), np.linspace(0.0, 1.0, len(p)),
                   style, color=colour)  # fmt: skip
    left.axvline(TOLERANCE, color='black', linewidth=0.8)
    left.set(xscale='log', xlim=(1e-4, 0.1), xlabel='probability of contact at a random time',
             ylabel='share of worlds')  # fmt: skip
    right.set(xlabel='longer than the solver at equal probability, %', xlim=(-1.0, 8.0))
    left.legend(fontsize='small')
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, print a table, and draw a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=Path, default=Path('out/benchmark'))
    parser.add_argument('--quick', action='store_true', help=f'{QUICK} worlds')
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    count = QUICK if arguments.quick else COUNT
    chosen = [(w, scene_of(w)) for w in [*worlds('base'), *worlds('extended')][:count]]
    lines, results, peer = environment(), {}, Peer()
    if CASADI.absence():
        print(f'the interior-point solver is left out: {CASADI.absence()}')
    with tqdm(total=len(METHODS) * len(LAWS) * count, disable=None) as progress:
        for name, method in METHODS.items():
            for law in LAWS:
                progress.set_description(f'{name}, {law}')
                made(Asked(*chosen[0], law), method)  # what is made or compiled once: not timed
                outcomes = results[name, law] = []
                for world, scene in chosen:
                    outcomes.append(judged(Asked(world, scene, law), method, peer))
                    progress.update()
    lines += ['', COLUMNS, *(line(*key, some) for key, some in results.items()), '', *EXPLAINED]
    print(*lines, sep='\n')
    (arguments.output / 'planner_noise.txt').write_text('\n'.join(lines) + '\n')
    draw(results, arguments.output / 'planner_noise.png')
    print(f'figure: {arguments.output / "planner_noise.png"}')


if __name__ == '__main__':
    main()
