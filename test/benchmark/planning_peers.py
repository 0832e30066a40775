# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The peers of the planner: each a function of a world that returns a path (n, 2), or None.

All keep :data:`MARGIN` beyond the robot's radius, and each is given what helps it: OMPL a compiled
and exact check of whole motions, in place of Python's at every few centimetres; the optimisers a
seed from a grid search, for from the straight line they end in a wrong place. What does not depend
on the world (casadi's functions, tables) is made before, in the first call, which is not timed.
"""

from collections.abc import Callable
from functools import cache, partial
from time import thread_time
from typing import NamedTuple

import chomp
import gpmp2
import numpy as np
from adapter import Origin, package
from numba import njit
from planning_worlds import box

from kernel_constrained.planning.obstacles import Obstacles
from kernel_constrained.planning.polyline import resampled
from kernel_constrained.planning.search import shortest
from kernel_constrained.planning.search_grid import search_grid
from kernel_constrained.planning.seeds import shortcut
from kernel_constrained.planning.worlds import World

MARGIN = 0.05  # beyond the robot's radius, metres
SPACINGS = 0.125, 0.0625, 0.03125  # of grids, each searched where those before have no way, metres
SEED_MARGIN, PIECE_MARGIN = 0.055, 0.03  # that a seed's nodes and straight pieces keep, metres

OMPL_SECONDS = 2.0  # after which a search gives up
BIT_STAR_SECONDS = 0.1  # that the anytime variant improves its path for

WAYPOINTS, FINE = 50, 200  # of ipopt's paths
ACCELERATION = 2e-4  # weight of squared accelerations against squared distance to the reference
BENDING = 1e-3  # weight of squared second against squared first derivatives
IPOPT = {
    'print_time': False, 'ipopt.print_level': 0, 'ipopt.sb': 'yes', 'ipopt.max_iter': 300,
    'ipopt.tol': 1e-4, 'ipopt.acceptable_tol': 1e-3, 'ipopt.max_cpu_time': 3.0,
    'ipopt.mu_init': 1e-3,  # of 0.1 (the default), 0.01 and 0.001 the fastest, with the same paths
}  # fmt: skip


class Entrant(NamedTuple):
    """One planner as the benchmark knows it.

    Attributes
    ----------
    name
        As the table has it.
    origin
        Where it comes from, and what it is if that is not here.
    plan
        ``plan(world)`` returns positions (n, 2) from start to goal, or None.
    proves
        Whether a path is returned only if it was proven.
    limit
        Worlds of a kind that it is run on, at most; None for all.
    note
        What a reader of the table has to know.
    """

    name: str
    origin: Origin
    plan: Callable[[World], np.ndarray | None]
    proves: bool = False
    limit: int | None = None
    note: str = ''


# -- seeds ----------------------------------------------------------------------------------


def seed(world):
    """Return a polyline (k, 2) from start to goal round the discs, or None."""
    low, high = box(world)
    obstacles = Obstacles(
        np.ascontiguousarray(world.circles[:, :2].T),
        world.circles[:, 2] + world.radius + PIECE_MARGIN,
        np.empty((0, 0)), np.zeros(2), 1.0, 0.0, low, high,
    )  # fmt: skip
    for spacing in SPACINGS:
        grid = search_grid(obstacles, low, high, spacing, SEED_MARGIN - PIECE_MARGIN)
        path = shortest(grid, obstacles, world.start, world.goal)
        if len(path):
            return shortcut(path, obstacles, 0.0)
    return None


# -- OMPL -----------------------------------------------------------------------------------


@njit(cache=True, fastmath=True)
def is_clear(ax, ay, bx, by, discs):
    """Tell whether a straight piece keeps away from all discs (n, 3): x, y, squared distance."""
    ux, uy = bx - ax, by - ay
    length = ux * ux + uy * uy + 1e-300
    for i in range(len(discs)):
        px, py = discs[i, 0] - ax, discs[i, 1] - ay
        share = min(1.0, max(0.0, (px * ux + py * uy) / length))
        dx, dy = px - share * ux, py - share * uy
        if dx * dx + dy * dy < discs[i, 2]:
            return False
    return True


@cache
def ompl_modules():
    """Import OMPL, quiet and with a fixed seed."""
    from ompl import base, geometric, util

    util.setLogLevel(util.LOG_NONE)
    util.RNG.setSeed(1)
    return base, geometric


def ompl_setup(world):
    """Return OMPL's problem with exact checks of states and whole motions."""
    base, geometric = ompl_modules()
    discs = world.circles.copy()
    discs[:, 2] = (discs[:, 2] + world.radius + MARGIN) ** 2

    class Exact(base.MotionValidator):
        def checkMotion(self, a, b):
            return is_clear(a[0], a[1], b[0], b[1], discs)

    space, bounds = base.RealVectorStateSpace(2), base.RealVectorBounds(2)
    for axis, (low, high) in enumerate(zip(*box(world))):
        bounds.setLow(axis, low)
        bounds.setHigh(axis, high)
    space.setBounds(bounds)
    setup = geometric.SimpleSetup(space)
    setup.setStateValidityChecker(lambda s: is_clear(s[0], s[1], s[0], s[1], discs))
    setup.getSpaceInformation().setMotionValidator(Exact(setup.getSpaceInformation()))
    ends = space.allocState(), space.allocState()
    for state, position in zip(ends, (world.start, world.goal)):
        state[0], state[1] = position.tolist()
    setup.setStartAndGoalStates(*ends)
    return setup


def solved(setup, planner, seconds):
    """Search for so many seconds of CPU time at most; return the path simplified and smoothed."""
    base, geometric = ompl_modules()
    information = setup.getSpaceInformation()
    length = base.PathLengthOptimizationObjective(information)
    setup.getProblemDefinition().setOptimizationObjective(length)
    setup.setPlanner(planner)
    end = thread_time() + seconds
    setup.solve(base.PlannerTerminationCondition(lambda: thread_time() > end))
    if not setup.haveExactSolutionPath():
        return None
    path = setup.getSolutionPath()
    simplifier = geometric.PathSimplifier(information)
    simplifier.simplifyMax(path)
    simplifier.smoothBSpline(path, 5)
    return np.array([[state[0], state[1]] for state in path.getStates()])


def rrt_connect(world):
    """Take RRTConnect's first path."""
    setup = ompl_setup(world)
    planner = ompl_modules()[1].RRTConnect(setup.getSpaceInformation())
    return solved(setup, planner, OMPL_SECONDS)


def bit_star(seconds, world):
    """Take BIT*'s best path after so many seconds, by default its first."""
    setup = ompl_setup(world)
    planner = ompl_modules()[1].BITstar(setup.getSpaceInformation())
    planner.setStopOnSolnImprovement(seconds is None)
    return solved(setup, planner, seconds or OMPL_SECONDS)


# -- ipopt ----------------------------------------------------------------------------------


def squared_differences(points, order):
    """Return the integral of a path's squared derivative, by casadi; points (2, n), time one."""
    import casadi

    intervals = points.shape[1] - 1
    for _ in range(order):
        points = (points[:, 1:] - points[:, :-1]) * intervals
    return casadi.sumsqr(points) / intervals


def to_reference(points, reference):
    """Distance to the straight reference, and acceleration."""
    import casadi

    apart = 0.5 * casadi.sumsqr(points - reference) / points.shape[1]
    return apart + ACCELERATION * squared_differences(points, 2)


def energy(points, _):
    """Return half the integral of |f'|^2 + BENDING |f''|^2."""
    return 0.5 * (squared_differences(points, 1) + BENDING * squared_differences(points, 2))


@cache
def ipopt_problem(objective, waypoints, discs):
    """Return casadi's solver for any world of so many discs: x, y and distance to keep."""
    import casadi

    points, reference = casadi.SX.sym('p', 2, waypoints), casadi.SX.sym('r', 2, waypoints)
    obstacles = casadi.SX.sym('o', 3, discs)
    apart = [
        casadi.sumsqr(points[:, i] - obstacles[:2, j]) - obstacles[2, j] ** 2
        for i in range(1, waypoints - 1)
        for j in range(discs)
    ]
    problem = {
        'x': casadi.vec(points), 'f': objective(points, reference), 'g': casadi.vertcat(*apart),
        'p': casadi.vertcat(casadi.vec(reference), casadi.vec(obstacles)),
    }  # fmt: skip
    return casadi.nlpsol('solver', 'ipopt', problem, IPOPT)


def ipopt(objective, world, polyline=None, waypoints=WAYPOINTS, margin=MARGIN):
    """Minimise ``objective`` of a path's waypoints from ``polyline``, by default the seed's."""
    polyline = seed(world) if polyline is None else polyline
    if polyline is None:
        return None
    low, high = (np.tile(corner, (waypoints, 1)) for corner in box(world))
    low[0] = high[0] = world.start
    low[-1] = high[-1] = world.goal
    reference = resampled(np.stack([world.start, world.goal]), waypoints)
    obstacles = world.circles + np.array([0.0, 0.0, world.radius + margin])
    solution = ipopt_problem(objective, waypoints, len(obstacles))(
        x0=resampled(polyline, waypoints).ravel(), lbx=low.ravel(), ubx=high.ravel(),
        p=np.concatenate([reference.ravel(), obstacles.ravel()]), lbg=0.0, ubg=np.inf,
    )  # fmt: skip
    return np.array(solution['x']).reshape(waypoints, 2)


# -- the optimisers of our own --------------------------------------------------------------


def from_seed(optimise, world, polyline=None):
    """Run an optimiser from ``polyline``, by default the seed's."""
    polyline = seed(world) if polyline is None else polyline
    return None if polyline is None else optimise(world, polyline, MARGIN)


OMPL, CASADI, SCIPY = package('ompl'), package('casadi'), package('scipy')
HERE = Origin(absence=lambda: '', version=lambda: 'this tree')


SMOOTHED = 'simplified (simplifyMax) and smoothed (smoothBSpline)'
PEERS = [
    Entrant('OMPL RRTConnect', OMPL, rrt_connect, note=f'first path, {SMOOTHED}'),
    Entrant('OMPL BIT*', OMPL, partial(bit_star, None), note=f'first path, {SMOOTHED}'),
    Entrant('OMPL BIT*, 0.1 s', OMPL, partial(bit_star, BIT_STAR_SECONDS), limit=40,
            note=f'best path after 0.1 s, {SMOOTHED}'),
    Entrant('A* + ipopt, reference', CASADI, partial(ipopt, to_reference),
            note=f'{WAYPOINTS} waypoints, distance to the straight reference and accelerations'),
    Entrant('A* + ipopt, energy', CASADI, partial(ipopt, energy),
            note=f"{WAYPOINTS} waypoints, half the integral of |f'|^2 + {BENDING:g} |f''|^2"),
    Entrant('A* + ipopt, energy, fine', CASADI, partial(ipopt, energy, waypoints=FINE), limit=40,
            note=f'{FINE} waypoints: straight pieces between them hardly cut into the margin'),
    Entrant('A* + GPMP2-style', SCIPY, partial(from_seed, gpmp2.optimise),
            note='of our own, in numpy and scipy'),
    Entrant('A* + CHOMP-style', SCIPY, partial(from_seed, chomp.optimise),
            note='of our own, in numpy'),
    Entrant('A* alone', HERE, seed, note="the seed of those above, our package's: a polyline"),
]  # fmt: skip
