# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Obstacles whose centres are not quite known: whether the probability is what was asked for.

Under each of five laws of the noise, with the same settings for all, paths are asked for that are
in contact with a probability of 2 % at most: at a random time, or anywhere. They are judged by
draws that they were not made from. Lengths are held against an interior-point solver's that
minimises energy and keeps a margin: at the margin with the same probability, from the same seed.
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
from planner_ours import parts, parts_of, scene_of
from planner_peers import environment
from planning_peers import CASADI, energy, ipopt
from planning_worlds import worlds
from tqdm import tqdm

from kernel_constrained.core.trajectory import TABULATED, Trajectory
from kernel_constrained.planning.candidates import CandidateMaker
from kernel_constrained.planning.certificate import prove, Status
from kernel_constrained.planning.config import PATH, PlannerConfig, RobotConfig, TIME
from kernel_constrained.planning.learning import TrajectoryLearner
from kernel_constrained.planning.polyline import arc_lengths, resampled
from kernel_constrained.planning.risk import LAWS, Risk, sampled_risk
from kernel_constrained.planning.scene import NO_GRID, Scene
from kernel_constrained.planning.seeds import alternatives
from kernel_constrained.planning.steps import Noise
from kernel_constrained.planning.worlds import World

TOLERANCE = 0.02
DEVIATION = 0.1  # of each coordinate of a centre, metres
COUNT = 100  # worlds: those of the base, then extended ones
QUICK = 10
STEPS = 300  # of the learner
DRAWS = 4096  # of the noise that the learner learns from, made once for each law
JUDGING = 4000  # fresh ones
FINE = 257  # positions looked at along a path when it is judged
CONFIDENCE = 0.95
ROOMS = (0.2, 0.02), (0.1, 0.02), (0.0, 0.03)  # margin of a grid search, and extra distance
MARGINS = np.arange(0.0, 0.6, 0.025)  # of the interior-point solver


class Asked(NamedTuple):
    """What is asked for: a path of a world, and what its scene is thought to be like."""

    world: World
    scene: Scene
    law: str
    under_noise: str


class Made(NamedTuple):
    """A path, whether it is said to be as asked for, and seconds."""

    trajectory: Trajectory
    allowed: bool
    proven: bool
    seconds: float


class Comparison(NamedTuple):
    """Excess lengths over the peer's at equal risk, %, and the least risks of all its paths."""

    by_time: float = np.nan
    per_path: float = np.nan
    least_by_time: float = np.nan
    least_per_path: float = np.nan


class Outcome(NamedTuple):
    """What became of one: the judgement, its length, and how it compares with the peer's."""

    made: Made
    risk: Risk
    length: float
    peer: Comparison


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
def config_of(bounds, law: str, under_noise: str) -> PlannerConfig:
    """Return the configuration for worlds with these bounds: no margin but what noise needs."""
    config = parts(bounds)[0]
    return attrs.evolve(
        config, robot=RobotConfig(margin=0.0, proof_margin=0.0),
        scan=attrs.evolve(config.scan, noise=law),
        chance=attrs.evolve(config.chance, tolerance=TOLERANCE, under_noise=under_noise),
    )  # fmt: skip


@cache
def makers_of(config: PlannerConfig) -> tuple[CandidateMaker, TrajectoryLearner]:
    """Return maker and learner, made once."""
    return CandidateMaker(config), TrajectoryLearner(config)


def asked_of(world: World, law: str, under_noise: str) -> tuple[Asked, PlannerConfig]:
    """Return what is asked for, with the deviation of all centres, and the configuration."""
    known = scene_of(world)
    config = config_of(tuple(map(tuple, world.bounds.tolist())), law, under_noise)
    deviation = np.full(len(known.radii), DEVIATION)
    scene = Scene(known.points, known.radii, deviation, NO_GRID, world.start, config)
    return Asked(world, scene, law, under_noise), config


def ways(asked: Asked):
    """Yield rough ways, the roomiest first."""
    low, high = asked.scene.box
    spacing = parts_of(asked.world)[0].seed.spacing
    for margin, extra in ROOMS:
        yield from alternatives(
            asked.scene.obstacles(margin), low, high, spacing, extra, asked.world.start,
            asked.world.goal, 2,
        )  # fmt: skip


def learned(asked: Asked, config: PlannerConfig, way: np.ndarray) -> tuple[Trajectory, bool]:
    """Learn a path under noise from a way, as it is."""
    world, discs = asked.world, asked.scene.points.shape[1]
    maker, learner = makers_of(config)
    basis, ends = maker.basis(arc_lengths(way)[-1]), (world.start, world.goal)
    weights = basis.fit(resampled(way, TABULATED))
    noise = Noise(np.full(discs, DEVIATION), draws_of(asked.law, discs))
    learner.learn_under_noise(
        weights, np.zeros_like(weights), basis, ends, asked.scene.obstacles(0.0), noise, STEPS
    )
    trajectory = basis.trajectory(weights, *ends)
    return trajectory, maker.noise.allows(trajectory, asked.scene)


def planned(asked: Asked, config: PlannerConfig, way: np.ndarray) -> tuple[Trajectory, bool]:
    """Make a path of a way as the planner does."""
    maker = makers_of(config)[0]
    candidate = maker.make(way, asked.scene, config.trajectory.max_steps, under_noise=True)
    return candidate.trajectory, candidate.level >= 0.0


# Who makes paths, and which probability is asked for.
METHODS = {
    'learner, by time': (learned, TIME), 'planner, by time': (planned, TIME),
    'planner, per path': (planned, PATH),
}  # fmt: skip


def made(asked: Asked, config: PlannerConfig, method) -> tuple[Made, np.ndarray]:
    """Make a path from the first way on which it is as asked for, else the last one."""
    begun = thread_time()
    for way in ways(asked):
        trajectory, allowed = method(asked, config, way)
        if allowed:
            break
    seconds = thread_time() - begun
    return Made(trajectory, allowed, is_proven(trajectory, asked), seconds), way


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


def normal_quantile(probability: float) -> float:
    """Return by how many standard deviations a normal variable exceeds this seldom."""
    return -NormalDist().inv_cdf(min(max(probability, 1e-6), 1.0 - 1e-6))


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
        self._risks: dict = {}

    def compare(self, asked: Asked, way: np.ndarray, length: float, risk: Risk) -> Comparison:
        """Compare a length at equal risk, and at equal risk of the whole path."""
        if CASADI.absence():
            return Comparison()
        key = asked.world, way.tobytes()
        if key not in self._paths:
            self._paths[key] = frontier(asked.world, way)
        paths = self._paths[key]
        if not paths:
            return Comparison()
        at = key, asked.law
        if at not in self._risks:
            fresh = fresh_draws(asked.law, asked.scene.points.shape[1])
            self._risks[at] = [risk_of(resampled_in_time(path), asked, fresh) for path in paths]
        risks = self._risks[at]
        lengths = [arc_lengths(path)[-1] for path in paths]
        by_time, per_path = (
            [r.by_time_estimate for r in risks],
            [r.per_path_estimate for r in risks],
        )
        return Comparison(
            excess(length, risk.by_time_estimate, lengths, by_time),
            excess(length, risk.per_path_estimate, lengths, per_path),
            min(by_time), min(per_path),
        )  # fmt: skip


def resampled_in_time(path: np.ndarray) -> np.ndarray:
    """Return positions (FINE, 2) at equal times of waypoints at equal times."""
    times = np.linspace(0.0, 1.0, len(path))
    fine = np.linspace(0.0, 1.0, FINE)
    return np.stack([np.interp(fine, times, path[:, d]) for d in range(2)], axis=1)


# -- the run --------------------------------------------------------------------------------


def judged(world: World, law: str, name: str, peer: Peer) -> Outcome:
    """Make a path, and judge it."""
    method, under_noise = METHODS[name]
    asked, config = asked_of(world, law, under_noise)
    result, way = made(asked, config, method)
    positions = result.trajectory.sampled(0.0, FINE)[0]
    risk = risk_of(positions, asked, fresh_draws(law, asked.scene.points.shape[1]))
    length = float(arc_lengths(positions)[-1])
    return Outcome(result, risk, length, peer.compare(asked, way, length, risk))


COLUMNS = (
    f'{"made by":18s} {"law":11s} {"paths":>7s} {"P <= tol.":>9s} {"peer":>4s} {"P median":>8s} '
    f'{"max":>7s} {"by length":>9s} {"per path":>8s} {"length":>7s} {"at equal P %":>12s} '
    f'{"p95":>6s} {"at equal path %":>15s} {"p95":>6s} {"proven":>7s} {"ms":>6s} {"p95":>6s}'
)
EXPLAINED = (
    f'paths           that are said to be as asked for: a probability of at most {TOLERANCE:g} '
    'of contact at a random time, or anywhere',
    f'P <= tol.       of these, those that are, by {JUDGING} fresh draws; all else is of these',
    "peer            of the other worlds those in which the solver's least risky path is as asked "
    'for, from the same seed',
    'P               at a random time; by length: at a random place; per path: anywhere; medians',
    "at equal P      length against the interior-point solver's with the margin of the same "
    'probability, median; likewise of the same probability per path',
    'proven          against the discs as they are thought to be',
    f'ms              thread CPU time, grid search included, median; {STEPS} steps of the learner',
    'target          P <= tolerance in all worlds, at equal P at most +0.3 %, 10 ms, all proven',
)


def line(name: str, law: str, outcomes: list[Outcome]) -> str:
    """Return the line of a method under a law."""
    of_path = METHODS[name][1] == PATH
    asked_for = [o for o in outcomes if o.made.allowed]
    others = [o.peer[3 if of_path else 2] for o in outcomes if not o.made.allowed]
    p, places, paths = np.array(
        [(o.risk.by_time_estimate, o.risk.by_length_estimate, o.risk.per_path_estimate)
         for o in asked_for]
    ).T  # fmt: skip
    held = (paths if of_path else p) <= TOLERANCE
    equal = []
    for excesses in np.array([o.peer[:2] for o in asked_for]).T:
        known = excesses[np.isfinite(excesses)]
        equal += [*np.percentile(known, (50, 95))] if len(known) else [np.nan, np.nan]
    milliseconds = 1e3 * np.percentile([o.made.seconds for o in outcomes], (50, 95))
    count = len(asked_for)
    return (
        f'{name:18s} {law:11s} {f"{count}/{len(outcomes)}":>7s} {f"{held.sum()}/{count}":>9s} '
        f'{sum(least <= TOLERANCE for least in others):4d} {np.median(p):8.4f} {p.max():7.4f} '
        f'{np.median(places):9.4f} {np.median(paths):8.3f} '
        f'{np.median([o.length for o in asked_for]):7.3f} {equal[0]:12.2f} {equal[1]:6.2f} '
        f'{equal[2]:15.2f} {equal[3]:6.2f} '
        f'{f"{sum(o.made.proven for o in asked_for)}/{count}":>7s} '
        f'{milliseconds[0]:6.1f} {milliseconds[1]:6.1f}'
    )


STYLES = dict(zip(METHODS, (':', '-', '--')))


def draw(results: dict, path: Path) -> None:
    """Draw the probabilities that were asked for in all worlds, and lengths at equal ones."""
    figure = Figure(figsize=(13, 4.5), layout='constrained')
    panels = dict(zip((TIME, PATH, None), figure.subplots(1, 3, sharey=True)))
    for (name, law), outcomes in results.items():
        of = METHODS[name][1]
        asked_for = [o for o in outcomes if o.made.allowed]
        p = [
            o.risk.by_time_estimate if of == TIME else o.risk.per_path_estimate for o in asked_for
        ]
        excesses = [o.peer.by_time if of == TIME else o.peer.per_path for o in asked_for]
        colour = f'C{list(LAWS).index(law)}'
        for axes, values in (panels[of], p), (panels[None], excesses):
            values = np.sort(np.array(values)[np.isfinite(values)])
            axes.plot(values, np.linspace(0.0, 1.0, len(values)), STYLES[name], color=colour,
                      label=f'{name}, {law}')  # fmt: skip
    for of, at in (TIME, 'at a random time'), (PATH, 'anywhere on the path'):
        panels[of].axvline(TOLERANCE, color='black', linewidth=0.8)
        panels[of].set(xscale='log', xlabel=f'probability of contact {at}')
    panels[TIME].set(xlim=(1e-4, 0.1), ylabel='share of worlds')
    panels[PATH].set(xlim=(1e-3, 0.1))
    panels[None].set(xlabel='longer than the solver at equal probability, %', xlim=(-1.0, 5.0))
    figure.legend(*panels[None].get_legend_handles_labels(), loc='outside right upper',
                  fontsize='small')  # fmt: skip
    for axes in panels.values():
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
    chosen = [*worlds('base'), *worlds('extended')][:count]
    lines, results, peer = environment(), {}, Peer()
    if CASADI.absence():
        print(f'the interior-point solver is left out: {CASADI.absence()}')
    with tqdm(total=len(METHODS) * len(LAWS) * count, disable=None) as progress:
        for name, (method, under_noise) in METHODS.items():
            for law in LAWS:
                progress.set_description(f'{name}, {law}')
                # What is made or compiled once is not timed.
                made(*asked_of(chosen[0], law, under_noise), method)
                outcomes = results[name, law] = []
                for world in chosen:
                    outcomes.append(judged(world, law, name, peer))
                    progress.update()
    lines += ['', COLUMNS, *(line(*key, some) for key, some in results.items()), '', *EXPLAINED]
    print(*lines, sep='\n')
    (arguments.output / 'planner_noise.txt').write_text('\n'.join(lines) + '\n')
    draw(results, arguments.output / 'planner_noise.png')
    print(f'figure: {arguments.output / "planner_noise.png"}')


if __name__ == '__main__':
    main()
