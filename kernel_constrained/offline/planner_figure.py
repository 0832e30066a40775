# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""A drive with the planner as a figure and as an animation."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon, Rectangle
from matplotlib.ticker import LogLocator, NullFormatter
from tqdm import tqdm

from kernel_constrained.offline.planner_report import Drive, Outcome, Step
from kernel_constrained.planning.worlds import World

Array = npt.NDArray[np.float64]

PROVEN, REST, ROBOT, RETURNS, SEEN = '#1a9641', '#f07f09', '#1f4e8c', '#c2185b', '#dcecf9'
OBSTACLE, EDGE, GREY = '#c4c8ce', '#8a9099', '0.35'

# Clearance that the figure shows at most: what is far away is of no interest, metres.
NEAR = 1.0

# Plans that the figure shows of a drive.
SHOWN = 6

# Of the animation: pictures, how many a second, how long the last one stays, and its size.
PICTURES, RATE, STAY, INCHES, DPI = 84, 12, 18, 6.0, 84


def draw(drive: Drive, outcome: Outcome, world: World, margin: float, path: Path) -> None:
    """Write the figure: the world with some of the plans, and what is planned over time.

    Parameters
    ----------
    drive, outcome, world
        What is drawn.
    margin
        Clearance that is proven where there is room, metres.
    path
        The file.
    """
    figure = Figure(figsize=(13.5, 7.6), layout='constrained')
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.06, 1.0))
    place, over_time = halves
    shown = chosen(drive)
    draw_place(place.subplots(), drive, world, shown)
    place.legend(loc='outside lower center', ncols=4, frameon=False, columnspacing=1.4)
    draw_over_time(over_time.subplots(3, sharex=True), drive, outcome, margin, shown)
    figure.savefig(path, dpi=110)


def chosen(drive: Drive) -> list[Step]:
    """Return plans from all along the way, the first one among them."""
    planned = drive.planned
    places = np.array([(step.pose.x, step.pose.y) for step in planned]).reshape(-1, 2)
    way = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(places, axis=0).T))))
    marks = np.arange(SHOWN) / SHOWN * way[-1]
    return [planned[i] for i in np.unique(np.searchsorted(way, marks))] if planned else []


def draw_world(axes: Axes, world: World) -> None:
    """Draw what is there, and where the robot may be and shall go."""
    (left, bottom), (right, top) = world.bounds
    axes.add_patch(Rectangle((left, bottom), right - left, top - bottom, fill=False,
                             edgecolor=GREY, linestyle='--', linewidth=1.0))  # fmt: skip
    discs = [Circle((x, y), radius) for x, y, radius in world.circles]
    axes.add_collection(
        PatchCollection(discs, facecolor=OBSTACLE, edgecolor=EDGE, linewidth=1.0, zorder=1)
    )
    axes.plot(*world.goal, '*', color='#ffc400', markeredgecolor='k', markersize=17, zorder=6,
              label='goal')  # fmt: skip
    axes.set(aspect='equal', xlim=(left - 0.15, right + 0.15), ylim=(bottom - 0.15, top + 0.15),
             xlabel='x [m]', ylabel='y [m]')  # fmt: skip


def draw_place(axes: Axes, drive: Drive, world: World, shown: list[Step]) -> None:
    """Draw the world, the way of the robot, and plans with their numbers."""
    draw_world(axes, world)
    for number, step in enumerate(shown, 1):
        first = number == 1
        axes.plot(*step.path.T, color=PROVEN, linewidth=5.0, alpha=0.65, zorder=3,
                  solid_capstyle='round', label='proven and seen' if first else None)  # fmt: skip
        axes.plot(*step.rest.T, color=REST, linewidth=1.8, zorder=2,
                  label='planned beyond what is seen' if first else None)  # fmt: skip
        here = (step.pose.x, step.pose.y)
        axes.add_patch(Circle(here, world.radius, facecolor='white', edgecolor=ROBOT,
                              linewidth=1.6, zorder=4))  # fmt: skip
        axes.text(*here, str(number), ha='center', va='center', fontsize=10, zorder=7,
                  color=ROBOT, fontweight='bold')  # fmt: skip
    axes.plot(*drive.positions.T, color='k', linewidth=1.2, zorder=3.5,
              label='way of the robot')  # fmt: skip
    axes.set_title('Some of the plans, each from where its number is', loc='left')


def draw_over_time(
    stack: Any, drive: Drive, outcome: Outcome, margin: float, shown: list[Step]
) -> None:
    """Draw clearance, length of what is proven and latency over the same time."""
    clearance, ahead, latency = stack
    times = drive.seconds(drive.stamps)
    clearance.plot(times, outcome.clearances, color=ROBOT)
    clearance.axhline(margin, color=PROVEN, linestyle='--',
                      label=f'to keep from what is seen: {margin:g} m')  # fmt: skip
    clearance.axhline(0.0, color='C3', linewidth=2.0, label='contact')
    clearance.set_title('True clearance [m]', loc='left')
    low, high = min(outcome.clearances.min() - 0.05, -0.05), outcome.clearances.max()
    clearance.set_ylim(low, min(1.05 * high, NEAR))

    planned = drive.planned
    when = drive.seconds(np.array([step.stamp for step in planned]))
    proven = np.array([length(step.path) for step in planned])
    rest = np.array([length(step.rest) for step in planned])
    ahead.stackplot(when, proven, rest, colors=(PROVEN, REST), alpha=0.75,
                    labels=('proven and seen', 'beyond what is seen'))  # fmt: skip
    ahead.set_title('Path ahead [m]', loc='left')
    ahead.set_ylim(0.0, None)
    for axes in (clearance, ahead):
        axes.legend(loc='lower right', bbox_to_anchor=(1.01, 0.98), ncols=2, frameon=False,
                    borderpad=0.2, columnspacing=1.2)  # fmt: skip

    latency.plot(when, [1e3 * step.latency for step in planned], '.', color=ROBOT, markersize=5)
    latency.set_title('From scan to path, over DDS [ms]', loc='left')
    latency.set_yscale('log')
    latency.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    latency.yaxis.set_major_formatter('{x:g}')
    latency.yaxis.set_minor_formatter(NullFormatter())
    latency.set(xlabel='time [s]', xlim=(0.0, times[-1]))
    for axes in stack:
        axes.grid(alpha=0.3)
    for number, step in enumerate(shown, 1):
        at = drive.seconds(step.stamp)
        for axes in stack:
            axes.axvline(at, color=ROBOT, linewidth=0.9, linestyle=':')
        ahead.text(at, 0.4, f' {number}', color='w', fontweight='bold', fontsize=11)


def length(path: Array) -> float:
    """Return the length of a path (k, 2), metres."""
    return float(np.hypot(*np.diff(path, axis=0).T).sum())


class Picture:
    """The world with the robot at one scan, changed from one to the next."""

    def __init__(self, drive: Drive, world: World) -> None:
        self.figure = Figure(figsize=(INCHES, INCHES * 1.08))
        self._drive = drive
        axes = self.figure.add_axes((0.085, 0.08, 0.9, 0.9 / 1.08))
        draw_world(axes, world)
        self._seen = Polygon([(0.0, 0.0)], closed=True, color=SEEN, zorder=0.5, label='seen')
        self._robot = Circle(
            (0.0, 0.0), world.radius, facecolor=ROBOT, edgecolor='k', zorder=6, alpha=0.9
        )
        axes.add_patch(self._seen)
        axes.add_patch(self._robot)
        (self._way,) = axes.plot([], [], color='k', linewidth=1.2, zorder=2)
        (self._rest,) = axes.plot([], [], color=REST, linewidth=2.0, zorder=3,
                                  label='planned beyond')  # fmt: skip
        (self._path,) = axes.plot([], [], color=PROVEN, linewidth=4.5, zorder=4,
                                  label='proven and seen')  # fmt: skip
        (self._returns,) = axes.plot([], [], '.', color=RETURNS, markersize=3.5, zorder=5,
                                     label='end points of beams')  # fmt: skip
        (self._heading,) = axes.plot([], [], color='w', linewidth=2.0, zorder=7)
        self._title = self.figure.text(0.085, 0.975, '', fontsize=11, va='center')
        self.figure.legend(
            handles=[self._path, self._rest, self._returns, self._seen], ncols=4,
            loc='upper center', bbox_to_anchor=(0.535, 0.962), frameon=False, fontsize=9,
            columnspacing=1.2, handlelength=1.4, handletextpad=0.5,
        )  # fmt: skip
        self._radius = world.radius

    def show(self, step: Step, outcome: Outcome) -> None:
        """Show a scan, what was planned from it, and what became of the drive up to then."""
        here = np.array([step.pose.x, step.pose.y])
        ahead = here + self._radius * np.array([np.cos(step.pose.yaw), np.sin(step.pose.yaw)])
        # the first scan is before all that is known of the true way
        been = slice(max(int(np.searchsorted(self._drive.stamps, step.stamp, 'right')), 1))
        self._seen.set_xy(step.outline)
        for line, points in (
            (self._way, self._drive.positions[been]), (self._rest, step.rest),
            (self._path, step.path), (self._returns, step.returns),
            (self._heading, np.stack((here, ahead))),
        ):  # fmt: skip
            line.set_data(*points.T)
        self._robot.set_center((step.pose.x, step.pose.y))
        self._title.set_text(
            f'{self._drive.seconds(step.stamp):5.1f} s    proven ahead {length(step.path):4.2f} m'
            f'    smallest clearance so far '
            f'{outcome.clearances[been].min():.2f} m'
        )


def animate(drive: Drive, outcome: Outcome, world: World, path: Path) -> None:
    """Write the animation: what the robot sees and plans on its way."""
    picture, writer = Picture(drive, world), PillowWriter(fps=RATE)
    count = min(PICTURES, len(drive.steps))
    chosen = np.unique(np.linspace(0, len(drive.steps) - 1, count).round().astype(int))
    order = [*chosen, *[chosen[-1]] * STAY]
    with writer.saving(picture.figure, str(path), dpi=DPI):
        for index in tqdm(order, path.name, unit=' pictures', disable=None):
            step = drive.steps[index]
            picture.show(step, outcome)
            writer.grab_frame()
