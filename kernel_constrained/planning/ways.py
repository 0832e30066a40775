# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The search for a new path: rough ways on different sides, the best of what is made of them."""

import math
from collections.abc import Iterator

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.planning.candidates import Candidate, CandidateMaker, GOOD
from kernel_constrained.planning.config import PlannerConfig
from kernel_constrained.planning.polyline import arc_lengths, at_lengths, cut, nearest_length
from kernel_constrained.planning.reference import Reference
from kernel_constrained.planning.scene import Scene
from kernel_constrained.planning.seeds import alternatives
from kernel_constrained.planning.seen import seen_horizon
from kernel_constrained.planning.sensing import View
from kernel_constrained.planning.sides import same_side

Array = npt.NDArray[np.float64]

# Margin of the obstacles in shares of the configured one, extra distance that the grid search
# keeps, spacing in shares of the configured one: from roomy and coarse to tight and fine.
SEARCHES = ((1.0, 0.02, 1.0), (0.0, 0.03, 0.67), (0.0, 0.005, 0.5))
# Standard deviations that the first search keeps in addition where noise is to be kept clear of.
SPREAD = 2.0
# How many times as long as the shortest way others may be: longer ones do not win.
STRETCH = 1.15
# Shares of the window that are searched until there is a way.
WINDOWS = (1.0, 4.0)
# Shares of the horizon that are tried one after the other.
HORIZONS = (1.0, 0.5, 0.25)
# Nodes of a grid search beyond which its spacing is made wider.
MOST_NODES = 60000
# Part of its length at which a path that does not end at the goal is planned anew.
SHORT = 0.5
# Positions that a path of before is warm-started from, and the least distance to the first of
# them, metres.
LINE, SPACE = 65, 0.05


@attrs.frozen(eq=False)
class Situation:
    """What a path is searched for in.

    Attributes
    ----------
    scene, view
        What is there, and what of it the newest scan shows.
    reference
        What is followed.
    ahead : (k, D)
        What of it lies ahead, beginning at the robot.
    last
        The path of before and where the robot is on it, None where there is none.
    """

    scene: Scene
    view: View
    reference: Reference
    ahead: Array
    last: Candidate | None


class WaySearch:
    """Finds the best path that can be proven.

    Parameters
    ----------
    config
        Of the planner.
    maker
        Makes paths of rough ways.
    """

    def __init__(self, config: PlannerConfig, maker: CandidateMaker) -> None:
        self._config, self._maker = config, maker

    def best(self, now: Situation) -> tuple[Candidate | None, list[Array]]:
        """Return the best path, None where there is no way, and the rough ways considered.

        The path of before is warm-started from where the robot is. Only where that is not proven
        well, or has become longer by more than another side must gain, the grid is searched.
        """
        before, quick = self._line_of_last(now), self._config.trajectory.quick_steps
        made: list[tuple[Array, Candidate]] = []
        line, steps = (now.ahead, 0) if before is None else (before, quick)
        first = self._made(line, now, steps)
        # Without a path of before the side is open: straight on counts only where it is free, and
        # not where it happened to be polished past an obstacle.
        if first is not None and (before is not None or first[1].learned.proven):
            made.append(first)
            best = self._best_of(made, now)
            if best.level >= GOOD and not self._has_grown(best, now):
                return best, [first[0]]
        seeds: list[Array] = []
        for group in self._seeds(now):
            seeds += group
            for share in HORIZONS:
                for line in group:
                    one = self._made(line, now, quick, share)
                    made += [one] if one is not None else []
                if any(candidate.level >= GOOD for _, candidate in made):
                    best = self._best_of(made, now)
                    if best.level >= GOOD:
                        return best, seeds
        if not made:
            return None, seeds
        best = self._best_of(made, now)
        if best.level < 0.0 and seeds:
            steps = self._config.trajectory.max_steps
            last_resort = self._made(seeds[0], now, steps, under_noise=True)
            best = last_resort[1] if last_resort is not None else best
        return (best if seeds or best.level >= 0.0 else None), seeds

    # -- candidates -------------------------------------------------------------------------

    def _made(
        self, line: Array, now: Situation, steps: int, share: float = 1.0,
        under_noise: bool = False,
    ) -> tuple[Array, Candidate] | None:  # fmt: skip
        """Make a path of a rough way as far as the horizon; None where nothing of it is seen."""
        line = cut(line, share * self._config.seed.horizon)
        if self._config.scan.unseen == 'blocked':
            line = self._seen_part(line, now.view)
            if len(line) < 2:
                return None
        near_to = None
        if not now.reference.is_goal:
            near_to = cut(now.ahead, arc_lengths(line)[-1])
        final = bool(np.array_equal(line[-1], now.reference.goal))
        return line, self._maker.make(line, now.scene, steps, near_to, final, under_noise)

    def _seen_part(self, line: Array, view: View) -> Array:
        """Return the beginning of a rough way that lies in what was seen."""
        lengths, spacing = arc_lengths(line), self._config.certificate.spacing
        dense = at_lengths(line, lengths, np.arange(0.0, lengths[-1] + spacing, spacing))
        x, y = np.ascontiguousarray(dense[:, 0]), np.ascontiguousarray(dense[:, 1])
        robot = self._config.robot
        seen = seen_horizon(
            x, y, view, robot.radius + robot.proof_margin, self._config.certificate.seen_slack
        )
        return line if seen == len(dense) else cut(line, (seen - 1) * spacing)

    def _line_of_last(self, now: Situation) -> Array | None:
        """Return the path of before from the robot on, (k, D), unless it is too short by now."""
        last, robot = now.last, now.scene.robot
        if last is None or last.is_short(SHORT):
            return None
        line, lengths = last.trajectory.sampled(last.since, LINE)
        along, _ = nearest_length(line, lengths, robot)
        rest = line[lengths > along + SPACE]
        return np.concatenate([robot[None], rest[:-1], last.trajectory.goal[None]])

    def _has_grown(self, candidate: Candidate, now: Situation) -> bool:
        """Whether a path is longer than the one of before by what another side must gain."""
        gain = 1.0 + self._config.seed.switch_gain
        return now.last is not None and candidate.length > gain * now.last.rest()

    def _best_of(self, made: list[tuple[Array, Candidate]], now: Situation) -> Candidate:
        """Return the shortest of those that are proven best; another side must gain something.

        Where noise is to be kept clear of, it is made anew for that, and takes the place of what
        was ``made`` without regard to it; so do others, while they may be shorter all the same.
        """
        gain = 1.0 + self._config.seed.switch_gain
        before = None
        if now.last is not None:
            before = np.ascontiguousarray(
                now.last.trajectory.sampled(now.last.since, LINE)[0][:, :2]
            )

        def cost(one: tuple[Array, Candidate]) -> tuple[float, float]:
            line, candidate = np.ascontiguousarray(one[0][:, :2]), one[1]
            stays = before is None or same_side(line, before, now.scene.points)
            return -min(candidate.level, GOOD), candidate.length * (1.0 if stays else gain)

        if not self._maker.noise.is_asked:
            return min(made, key=cost)[1]
        held: list[tuple[Array, Candidate]] = []
        made.sort(key=cost)
        for number, one in enumerate(made):
            if held and min(map(cost, held)) <= cost(one):
                break
            if one[1].level >= 0.0:
                steps = self._config.trajectory.quick_steps
                one = made[number] = self._made(one[0], now, steps, under_noise=True) or one
            held.append(one)
        return min(held, key=cost)[1]

    # -- rough ways -------------------------------------------------------------------------

    def _seeds(self, now: Situation) -> Iterator[list[Array]]:
        """Yield rough ways by grid search, each (k, D) from the robot on, with ever less room.

        Those found at once are on different sides. Where there is no path yet, the first have
        with them what the finest grid finds: it may know a shorter side. Where paths are held to
        a probability of collision under noise, the first search keeps room for it.
        """
        target, count = self._target(now), self._config.seed.alternatives
        around = np.concatenate([now.ahead, target[None]])
        searches = [(search, 0.0) for search in SEARCHES]
        if self._maker.noise.is_asked:
            searches.insert(0, (SEARCHES[0], SPREAD))
        for number, (search, spread) in enumerate(searches):
            group = self._searched(search, count, now.scene, around, spread)
            if group and now.last is None and number == 0:
                group += self._searched(SEARCHES[-1], 1, now.scene, around)
            if group:
                yield [lifted(line, now.ahead) for line in group]

    def _searched(
        self, search: tuple[float, float, float], count: int, scene: Scene, around: Array,
        spread: float = 0.0,
    ) -> list[Array]:  # fmt: skip
        """Search for at most so many ways near a line (k, D), or else farther from it."""
        share, extra, finer = search
        obstacles = scene.obstacles(share * self._config.robot.margin, spread)
        for window in WINDOWS:
            low, high = self._window(scene, around, window)
            area = float(np.prod(high - low))
            spacing = max(self._config.seed.spacing * finer, math.sqrt(area / MOST_NODES))
            found = alternatives(
                obstacles, low, high, spacing, extra, scene.robot[:2].copy(),
                around[-1, :2].copy(), count, STRETCH,
            )  # fmt: skip
            if found:
                return found
        return []

    def _target(self, now: Situation) -> Array:
        """Return the position to search for: the goal, or one on the reference that is free."""
        lengths, horizon = arc_lengths(now.ahead), self._config.seed.horizon
        if now.reference.is_goal or lengths[-1] <= horizon:
            return np.asarray(now.ahead[-1])
        wanted = np.arange(horizon, lengths[-1], self._config.seed.spacing)
        for position in at_lengths(now.ahead, lengths, wanted):
            if now.scene.is_free(position):
                return np.asarray(position)
        return np.asarray(now.ahead[-1])

    def _window(self, scene: Scene, line: Array, share: float) -> tuple[Array, Array]:
        """Return the rectangle to search in, (2,) each: around a line, at last all of the map."""
        around = share * self._config.seed.window
        low, high = line[:, :2].min(0) - around, line[:, :2].max(0) + around
        grid = scene.grid
        if grid.values.size and share == WINDOWS[-1]:
            shape = np.array(grid.values.shape) - 1
            low = np.minimum(low, grid.origin)
            high = np.maximum(high, grid.origin + shape * grid.spacing)
        inside, outside = scene.box
        return np.maximum(low, inside[:2]), np.minimum(high, outside[:2])


def lifted(line: Array, ahead: Array) -> Array:
    """Give a way in the plane the heights, if any, of a path at the same share of its length."""
    if ahead.shape[1] == 2:
        return line
    share, along = arc_lengths(ahead), arc_lengths(line)
    height = np.interp(along / along[-1], share / share[-1], ahead[:, 2])
    return np.column_stack([line, height])
