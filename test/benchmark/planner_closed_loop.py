# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The planner in closed loop: what becomes of a robot that drives along its paths, scan by scan.

The robot is told what its range finder sees and nothing else: no disc, no side of a world. In the
maps it is also told the walls, except where a line says that it has scans only: there it
remembers all that it saw, since who forgets dead ends runs into them for ever. Times are thread
CPU time of each call of the planner, memory included. Judged is where the robot truly was.
"""

import os

os.environ.update(dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1'))

import argparse
from itertools import islice
from math import radians
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from planner_ours import workspace_of
from planner_peers import environment
from planning_worlds import SHARED, worlds
from random_episodes import episodes_planner, fault_of, random_episode, TOLERANCE
from tqdm import tqdm

from kernel_constrained.perception.geometry import Mounting
from kernel_constrained.planning.config import (
    MemoryConfig,
    PlannerConfig,
    RobotConfig,
    SensingConfig,
)
from kernel_constrained.planning.episode import Episode
from kernel_constrained.planning.lidar import Lidar
from kernel_constrained.planning.maps import load_map
from kernel_constrained.planning.planner import Planner
from kernel_constrained.planning.robot import Robot
from kernel_constrained.planning.scene import POSE_COVERAGE
from kernel_constrained.planning.simulation import drive
from kernel_constrained.planning.worlds import crossing_world, escapable, World, worlds_in_map

MAPS = 'narrow_graph', 'office01add', 'tb3_sandbox'
DRIVES = 20  # in each map
SCANS_ONLY = 10  # of these that are driven by scans only, too
REMEMBERED = 40.0  # distance up to which these remember, metres
SMALL, MAP_INFLATION = 0.2, 0.3  # radius of the robot in maps; what a grid path keeps there, m
CROSSINGS = 40  # worlds with moving discs
RANDOM, EPISODES = 'random episodes', 1000
QUICK = 4  # drives of a kind
RISK_EVERY = 10  # scans, of which the bound on the probability of collision is taken
RANGE = 3.0  # of the range finder, metres
MAP_SCANS, CROSSING_SCANS = 600, 1000  # after which a drive in a map, or among discs, ends
SLOW, OFTEN = 0.5, 0.1  # speed of the robot among moving discs, m/s, and seconds between scans
BEFORE = 1.0  # how long before a collision it is asked whether it could be helped, seconds
ERROR = Robot(position_deviation=0.03, yaw_deviation=radians(1.0))
HORIZON, ROOM = 1.0, 0.1  # of the robot that waits: how far it looks ahead, and aside, metres


class Case(NamedTuple):
    """Drives of a kind: worlds, the planner for all of them, and how they are driven in."""

    name: str
    worlds: list[World]
    planner: Any
    robot: Robot = Robot()
    options: dict = {}  # of drive()


class Drive(NamedTuple):
    """What became of one, and whether each scan's path was that of the one before."""

    world: World
    episode: Episode
    kept: list[bool]


# -- who drives -----------------------------------------------------------------------------


class Watched(Planner):
    """The planner, noting for each scan whether it kept its path."""

    def reset(self):
        super().reset()
        self.kept = []

    def plan(self, *arguments):
        plan = super().plan(*arguments)
        self.kept.append(plan.kept)
        return plan


class Stated(NamedTuple):
    """What the planner states of a path where its pose is uncertain."""

    margin: float  # proven beyond the radius and the inflation, metres
    inflation: np.ndarray  # of points, for the uncertainty of the pose, metres
    bound: float  # on the probability that the path touches anything


class Stating(Watched):
    """The planner, noting now and then what it states of its path."""

    def __init__(self, config):
        super().__init__(config)
        self.stated = []

    def plan(self, *arguments):
        plan = super().plan(*arguments)
        if plan.proven and len(self.kept) % RISK_EVERY == 1:
            beyond = plan.obstacles.keep - self.config.robot.radius - plan.clearance
            bound = self.risk(plan).per_path
            self.stated.append(Stated(plan.clearance, beyond[beyond > 0.0], bound))
        return plan


class Straight(NamedTuple):
    """What :class:`WaitAndGo` says."""

    reason: str
    path: np.ndarray
    rest: np.ndarray = np.empty((0, 2))


class WaitAndGo:
    """Goes straight to the goal, and stands as long as something is on the next metre of it."""

    mounting = Mounting()

    def __init__(self, radius=0.3):
        self._reach = radius + ROOM
        self.kept = []

    def reset(self):
        self._goal = None

    def set_goal(self, goal):
        self._goal = goal

    def plan(self, stamp, scan, pose, covariance=None):
        here = np.array([pose.x, pose.y])
        way = self._goal - here
        length = np.hypot(*way)
        along, across = way / length, np.array([-way[1], way[0]]) / length
        bearings = scan.angle_min + scan.angle_increment * np.arange(len(scan.ranges)) + pose.yaw
        hit = np.isfinite(scan.ranges)
        seen = scan.ranges[hit, None] * np.stack([np.cos(bearings), np.sin(bearings)], 1)[hit]
        ahead, aside = seen @ along, np.abs(seen @ across)
        beyond = ahead - np.clip(ahead, 0.0, min(HORIZON, length))
        blocked = (np.hypot(beyond, aside) < self._reach).any()
        return Straight('waits' if blocked else '', np.stack([here, self._goal]))


def planner_of(radius=0.3, world=None, map_=None, kind=Watched, **groups):
    """Return the planner for a robot, in the square of a world or with a map if there is one."""
    if world is not None:
        groups['workspace'] = workspace_of(world)
    planner = kind(
        PlannerConfig(
            robot=RobotConfig(radius=radius), scan=SensingConfig(max_range=RANGE), **groups
        )
    )
    if map_ is not None:
        planner.set_map(map_)
    planner.warm_up()
    return planner


# -- what is driven -------------------------------------------------------------------------


def in_circles(limit):
    """Return the drives between discs that stand."""
    square = worlds('base')[0]
    cases = [
        Case(kind, worlds(kind, limit), planner_of(world=square))
        for kind in ('base', 'extended', 'fresh')
    ]
    stating = planner_of(world=square, kind=Stating)
    uncertain = Case('base, pose error', worlds('base', limit), stating, ERROR)
    return [*cases, uncertain]


def in_maps(limit):
    """Return the drives in maps, none where these are not there."""
    known, unknown = [], []
    for name in MAPS:
        path = SHARED.parent / 'maps' / f'{name}.yaml'
        if not path.exists():
            print(f'{name} is left out: there is no {path}')
            continue
        map_ = load_map(path)
        drives = list(islice(worlds_in_map(map_, 1, SMALL, MAP_INFLATION), limit or DRIVES))
        options = {'max_scans': MAP_SCANS}
        known.append(Case(name, drives, planner_of(SMALL, map_=map_), options=options))
        remembering = planner_of(SMALL, memory=MemoryConfig(radius=REMEMBERED))
        unknown.append(
            Case(f'{name}, scans only', drives[:SCANS_ONLY], remembering, options=options)
        )
    return known + unknown


def among_movers(limit):
    """Return the drives among moving discs: the planner's, and those of a robot that waits."""
    drives = [crossing_world(seed) for seed in range(limit or CROSSINGS)]
    options = {'period': OFTEN, 'max_scans': CROSSING_SCANS, 'patience': CROSSING_SCANS}
    robot = Robot(speed=SLOW)
    return [
        Case('moving discs', drives, planner_of(world=drives[0]), robot, options),
        Case('moving discs, waits', drives, WaitAndGo(), robot, options),
    ]


def driven(case, progress):
    """Drive in all worlds of a case."""
    drives = []
    for seed, world in enumerate(case.worlds):
        progress.set_description(f'{case.name} {seed}')
        episode = drive(
            case.planner, world, Lidar(range_max=RANGE), case.robot, seed, **case.options
        )
        drives.append(Drive(world, episode, case.planner.kept))
        progress.update()
    return drives


# -- the report -----------------------------------------------------------------------------

COLUMNS = (
    f'{"drives":26s} {"reached":>9s} {"collided":>8s} {"clearance":>9s} {"ms median":>9s} '
    f'{"p95":>6s} {"p99":>6s} {"max":>7s} {"churn":>6s} {"p95":>6s} {"kept %":>6s} '
    f'{"truly free":>13s} {"unproven":>8s} {"without":>7s} {"metres":>6s}'
)
EXPLAINED = (
    'clearance   the least in all drives, metres; negative in collision',
    f'churn       how far the next {3:g} m of each path were from those of the one before, metres',
    'kept        share of the scans whose path was that of the scan before',
    'truly free  of the paths that were said to be proven, those that were, up to where they were',
    'unproven    motions without a proven path, or away from it; must be 0',
    'without     scans without a path',
    'metres      median way to the goal',
)


def line(case, drives):
    """Return the line of a case."""
    episodes = [d.episode for d in drives]
    cpu = 1e3 * np.concatenate([e.cpu for e in episodes])
    churn = np.concatenate([e.churn for e in episodes])
    proven = np.concatenate([e.proven for e in episodes])
    times = np.percentile(cpu, (50, 95, 99, 100))
    kept = [each for d in drives for each in d.kept]
    reached = [e for e in episodes if e.reached]
    metres = np.median([e.length for e in reached]) if reached else np.nan
    return (
        f'{case.name:26s} {f"{len(reached)}/{len(episodes)}":>9s} '
        f'{sum(e.collided for e in episodes):8d} {min(e.clearance for e in episodes):9.3f} '
        f'{times[0]:9.2f} {times[1]:6.2f} {times[2]:6.2f} {times[3]:7.2f} '
        f'{churn.mean():6.3f} {np.percentile(churn, 95):6.3f} '
        f'{100 * np.mean(kept) if kept else np.nan:6.1f} '
        f'{f"{(proven >= 0).sum()}/{len(proven)}":>13s} {sum(e.unproven for e in episodes):8d} '
        f'{sum(e.stood for e in episodes):7d} {metres:6.2f}'
    )


def could_be_helped(episode, world, speed):
    """Whether a robot that knew all could still have got away a second before a collision."""
    then = max(episode.collided_at - BEFORE, 0.0)
    where = episode.positions[np.searchsorted(episode.times, then)]
    return escapable(world, where, then, speed, BEFORE)


def had_path(episode, period):
    """Whether there was a path at every scan of the last second before a collision."""
    last = int(episode.collided_at / period)
    return not any(episode.reasons[max(last - round(BEFORE / period), 0) : last + 1])


def collisions(case, drives):
    """Return a line on the collisions of a case with moving discs."""
    hit = [d for d in drives if d.episode.collided]
    speed, period = case.robot.speed, case.options['period']
    avoidable = sum(could_be_helped(d.episode, d.world, speed) for d in hit)
    planned = sum(had_path(d.episode, period) for d in hit)
    durations = [d.episode.duration for d in drives if d.episode.reached]
    return (
        f'{case.name}: collided in {len(hit)} of {len(drives)}, of these {planned} with a path at '
        f'each scan of the second before, {avoidable} that a robot that knows all could have '
        f'avoided from there; {100 * np.mean([d.episode.exposure for d in drives]):.1f} % of the '
        f'time in collision; {np.median(durations):.1f} s to the goal'
    )


def statements(case, drives):
    """Return a line on what was stated of paths from uncertain poses, and what became of them."""
    stated, radius = case.planner.stated, case.planner.config.robot.radius
    margins, bounds = [s.margin for s in stated], [s.bound for s in stated]
    inflation = np.concatenate([s.inflation for s in stated])
    median, p95 = np.percentile(bounds, (50, 95))
    confidence = case.planner.config.certificate.confidence
    return (
        f'{case.name}: proven for a radius of {radius:g} m and a margin of '
        f'{np.median(margins):.3f} (least {min(margins):.3f}) m, inflated by {POSE_COVERAGE:g} '
        f'standard deviations of the pose, {np.median(inflation):.3f} (at most '
        f'{inflation.max():.3f}) m; P(collision) of a path, ranges and poses drawn, at most '
        f'{median:.4f} (median; p95 {p95:.4f}) at {100 * confidence:g} % confidence each; '
        f'realised clearance '
        f'{min(d.episode.clearance for d in drives):.3f} m, '
        f'{sum(d.episode.collided for d in drives)} of {len(drives)} collided'
    )


def troubles(case, drives):
    """Return a line for each drive that did not go as it should."""
    return [
        f'{case.name} {seed}: {"reached" if e.reached else "not reached"}, clearance '
        f'{e.clearance:.3f} m, {e.unproven} unproven, {(e.proven < 0).sum()} paths not free, '
        f'{e.stood} scans without a path, at last: {e.reasons[-1] or "with one"}'
        for seed, e in enumerate(d.episode for d in drives)
        if not e.reached or e.unproven or (not case.worlds[seed].movers and (
            e.collided or (e.proven < 0).any()))
    ]  # fmt: skip


def at_random(count):
    """Drive episodes at random; return the lines on them."""
    planner = episodes_planner()
    episodes = [random_episode(planner, seed) for seed in tqdm(range(count), disable=None)]
    faults = {seed: fault_of(e) for seed, e in enumerate(episodes)}
    deeper = np.concatenate([e.deeper for e in episodes])
    return [
        f'{RANDOM}: {count}, {sum(len(e.cpu) for e in episodes)} scans, '
        f'{sum(len(e.proven) for e in episodes)} proven paths; of {len(deeper)} paths and motions '
        f'along them {(deeper > TOLERANCE).sum()} touch what was there at their scan, by '
        f'{deeper.max():.4f} m at most; {sum(e.unproven for e in episodes)} motions unproven; '
        f'moving discs ran into the robot in {sum(e.collided for e in episodes)}, '
        f'the goal was reached in {sum(e.reached for e in episodes)}',
        *(f'{RANDOM} {seed}: {fault}' for seed, fault in faults.items() if fault),
    ]


def table(results):
    """Return the lines of the report."""
    moving = [(case, drives) for case, drives in results if case.worlds[0].movers]
    uncertain = [(case, drives) for case, drives in results if isinstance(case.planner, Stating)]
    failed = [text for case, drives in results for text in troubles(case, drives)]
    return [
        '', COLUMNS, *(line(case, drives) for case, drives in results), '', *EXPLAINED, '',
        *(statements(case, drives) for case, drives in uncertain),
        *(collisions(case, drives) for case, drives in moving), *failed,
    ]  # fmt: skip


# -- the figures ----------------------------------------------------------------------------


def draw_world(axes, world):
    """Draw what stands, and the ways of what moves."""
    for x, y, radius in world.circles:
        axes.add_patch(Circle((x, y), radius, color='0.75'))
    if world.map is not None:
        height, width = world.map.data.shape
        x, y, _ = world.map.origin
        size = world.map.resolution
        axes.imshow(world.walls.occupied.T, origin='lower', cmap='Greys',
                    extent=(x, x + width * size, y, y + height * size))  # fmt: skip
    for mover in world.movers:
        axes.plot(*np.stack([mover.start, mover.end]).T, color='0.8', linewidth=1)
    axes.set(aspect='equal')


def draw_drives(axes, case, drives):
    """Draw some drives of a case in their world, in the colours of their clearances."""
    world = drives[0].world
    draw_world(axes, world)
    for d in drives:
        places, clearances = d.episode.positions[::4], d.episode.clearances[::4]
        pieces = np.stack([places[:-1], places[1:]], axis=1)
        lines = LineCollection(pieces, cmap='viridis_r', linewidth=1.5)
        lines.set_array(np.clip(clearances[1:], 0.0, 0.5))
        lines.set_clim(0.0, 0.5)
        axes.add_collection(lines)
        axes.plot(*d.world.start, 'o', color='C0', markersize=4)
        axes.plot(*places[-1], '*' if d.episode.reached else 'x', color='C3')
    low, high = world.bounds
    if np.isfinite(low).all():
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.set_title(case.name)
    return lines


def draw(results, path):
    """Write the figure with the drives."""
    figure = Figure(figsize=(16, 9), layout='constrained')
    chosen = [r for r in results if 'waits' not in r[0].name and 'only' not in r[0].name]
    if not chosen:
        return
    every = figure.subplots(2, -(-len(chosen) // 2), squeeze=False).flat
    for axes, (case, drives) in zip(every, chosen):
        # Drives in a map share it; elsewhere each has a world of its own.
        lines = draw_drives(axes, case, drives[:6] if case.worlds[0].map else drives[:1])
    for axes in every:
        axes.remove()  # one too many
    figure.colorbar(lines, ax=figure.axes, label='clearance, m', shrink=0.6)
    figure.savefig(path, dpi=110)


def draw_times(results, path):
    """Write the figure with the histograms of times."""
    figure = Figure(figsize=(9, 5), layout='constrained')
    axes = figure.subplots()
    bins = np.geomspace(0.02, 100.0, 80)
    for case, drives in results:
        if 'waits' not in case.name:
            cpu = 1e3 * np.concatenate([d.episode.cpu for d in drives])
            axes.hist(cpu, bins, histtype='step', density=True, label=case.name)
    axes.set(xscale='log', xlabel='thread CPU time of a scan, ms', ylabel='density',
             title='from scan to proven path, memory included')  # fmt: skip
    axes.legend(fontsize='small')
    figure.savefig(path, dpi=110)


def main():
    """Drive, print a table, and draw figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', type=Path, default=Path('out/benchmark'))
    parser.add_argument('--only', metavar='NAME', help='drives whose name holds this')
    parser.add_argument('--quick', action='store_true', help=f'{QUICK} drives of a kind')
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    limit, only = QUICK if arguments.quick else None, arguments.only or ''
    cases = [*in_circles(limit), *in_maps(limit), *among_movers(limit)]
    cases = [case for case in cases if only in case.name]
    if not cases and only not in RANDOM:
        parser.error(f'there are no drives {only}')
    lines = environment()
    if only in RANDOM:
        lines += at_random(limit or EPISODES)
    with tqdm(total=sum(len(case.worlds) for case in cases), disable=None) as progress:
        results = [(case, driven(case, progress)) for case in cases]
    lines += table(results) if results else []
    print(*lines, sep='\n')
    (arguments.output / 'planner_closed_loop.txt').write_text('\n'.join(lines) + '\n')
    if results:
        draw(results, arguments.output / 'planner_closed_loop.png')
        draw_times(results, arguments.output / 'planner_times.png')
        print(f'figures: {arguments.output / "planner_closed_loop.png"} and planner_times.png')


if __name__ == '__main__':
    main()
