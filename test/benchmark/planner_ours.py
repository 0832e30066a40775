# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Our planner for the comparison with its peers: whole, and its learner by itself."""

from functools import cache

import numpy as np
from planning_peers import Entrant, HERE, MARGIN

from kernel_constrained.core.trajectory import TABULATED
from kernel_constrained.perception.geometry import Pose
from kernel_constrained.perception.scan import Scan
from kernel_constrained.planning.candidates import CandidateMaker
from kernel_constrained.planning.config import (
    ObstacleConfig,
    PlannerConfig,
    RobotConfig,
    SeedConfig,
    WorkspaceConfig,
)
from kernel_constrained.planning.learning import TrajectoryLearner
from kernel_constrained.planning.planner import Planner
from kernel_constrained.planning.polyline import arc_lengths, resampled
from kernel_constrained.planning.scene import NO_GRID, Scene
from kernel_constrained.planning.seeds import alternatives
from kernel_constrained.planning.ways import SEARCHES

FINE = 513  # positions of a path that is returned
BOWS = 0.0, 2.0, -2.0, 4.0, -4.0  # of the lines that the learner alone begins at, metres aside
WHOLE = 40.0  # of a path that is planned at once: all of it, metres
BEAMS = 360
OPEN = Scan(np.full(BEAMS, np.inf), 0.0, 2 * np.pi / BEAMS, 0.05, 30.0)  # nothing for 30 m around


def workspace_of(world):
    """Return the square of a world as the planner has it."""
    (left, lower), (right, upper) = world.bounds
    return WorkspaceConfig(left, right, lower, upper)


@cache
def parts(bounds):
    """Return configuration, maker and learner for worlds with these bounds, made once."""
    (left, lower), (right, upper) = bounds
    config = PlannerConfig(workspace=WorkspaceConfig(left, right, lower, upper))
    return config, CandidateMaker(config), TrajectoryLearner(config)


def parts_of(world):
    """Return configuration, maker and learner for a world."""
    return parts(tuple(map(tuple, world.bounds.tolist())))


def scene_of(world):
    """Return what is to be kept clear of in a world whose discs are known."""
    centres = np.ascontiguousarray(world.circles[:, :2].T)
    radii = np.ascontiguousarray(world.circles[:, 2])
    return Scene(centres, radii, np.zeros(len(radii)), NO_GRID, world.start, parts_of(world)[0])


def ways(world, scene, count=1):
    """Yield what the planner's grid searches find from start to goal, the roomiest first."""
    config = parts_of(world)[0]
    low, high = scene.box
    for share, extra, finer in SEARCHES:
        obstacles = scene.obstacles(share * config.robot.margin)
        yield from alternatives(
            obstacles, low, high, config.seed.spacing * finer, extra, world.start, world.goal,
            count,
        )  # fmt: skip


def learned(world, line, scene, steps):
    """Learn from a line (k, 2) until proven with the whole margin; None if it is not."""
    config, maker, learner = parts_of(world)
    basis = maker.basis(arc_lengths(line)[-1])
    weights = basis.fit(resampled(line, TABULATED))
    ends = world.start, world.goal
    found = learner.learn(
        weights, np.zeros_like(weights), basis, ends, scene.obstacles(config.robot.margin),
        scene.obstacles(config.robot.proof_margin), steps,
    )  # fmt: skip
    return basis.trajectory(weights, *ends) if found.proven else None


def first_of(world, tries, scene):
    """Return the first proven path (n, 2) of tries, each a line and a number of steps."""
    for line, steps in tries:
        trajectory = learned(world, line, scene, steps)
        if trajectory is not None:
            return trajectory.sampled(0.0, FINE)[0]
    return None


def first_proven(world):
    """Search a grid, fit, and learn until something is proven."""
    scene, steps = scene_of(world), parts_of(world)[0].trajectory.max_steps
    return first_of(world, ((way, steps) for way in ways(world, scene)), scene)


def learner_alone(world):
    """Learn from a straight line and bows by turns."""
    config, maker, learner = parts_of(world)
    scene, ends = scene_of(world), (world.start, world.goal)
    basis = maker.basis(np.hypot(*(world.goal - world.start)))
    weights, found = learner.learn_from_bows(
        BOWS, basis, ends, scene.obstacles(config.robot.margin),
        scene.obstacles(config.robot.proof_margin), config.trajectory.max_steps,
    )  # fmt: skip
    return basis.trajectory(weights, *ends).sampled(0.0, FINE)[0] if found.proven else None


def planner_for(world):
    """Return the planner, told of all discs and of the goal; it keeps what the peers keep."""
    circles = tuple(f'{x!r} {y!r} {radius!r}' for x, y, radius in world.circles.tolist())
    planner = Planner(
        PlannerConfig(
            robot=RobotConfig(radius=world.radius, margin=MARGIN, proof_margin=MARGIN),
            workspace=workspace_of(world), obstacles=ObstacleConfig(circles),
            seed=SeedConfig(horizon=WHOLE),
        )
    )  # fmt: skip
    planner.set_goal(world.goal)
    return planner


def planned(world):
    """Let the planner plan from an empty scan."""
    plan = planner_for(world).plan(1, OPEN, Pose(*world.start.tolist(), 0.0, 0.0))
    return plan.trajectory.sampled(plan.since, FINE)[0] if plan.proven and plan.final else None


OURS = [
    Entrant('first proven path', HERE, first_proven, proves=True,
            note='seed, fit, and steps until it is proven; neither polished nor compressed'),
    Entrant('learner alone', HERE, learner_alone, proves=True,
            note=f'from lines, {BOWS} m aside, by turns, without a grid search'),
    Entrant('best of two seeds, polished', HERE, planned, proves=True,
            note='the planner as it is, its construction from text included'),
]  # fmt: skip
