# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Distances to the occupied cells of a map: exact at nodes, bounded and interpolated between."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from kernel_constrained.core.compilation import compiled, compiled_allocating

Array = npt.NDArray[np.float64]

# Distance to obstacles where there are none, metres: interpolation needs a finite one.
FAR = 1e6


class DistanceGrid(NamedTuple):
    """Signed distances to the union of the closed squares of occupied cells, metres.

    Attributes
    ----------
    values : (columns, rows)
        Distance at each node, first index along x; positive outside, and inside minus the
        distance to the nearest cell that is not occupied.
    origin : (2,)
        Position of ``values[0, 0]``.
    spacing : float
        Distance between nodes, half the side of a cell: corners, centres and middles of sides.
    """

    values: Array
    origin: Array
    spacing: float


def distance_grid(
    occupied: npt.NDArray[np.bool_],
    origin: npt.ArrayLike,
    resolution: float,
    beyond: bool = False,
) -> DistanceGrid:
    """Measure how far every node is from occupied cells, and how deep inside them.

    The values are exact: seen from a node, the nearest point of a square is a node too, so that
    the Euclidean distance transform of the nodes is that of the squares.

    Parameters
    ----------
    occupied : (columns, rows)
        Which cells are occupied, first index along x.
    origin : (2,)
        Position of the lower left corner of cell [0, 0], metres.
    resolution
        Side of a cell, metres.
    beyond
        Whether all that lies beyond the cells counts as occupied. A ring of cells is added that
        says so; the nodes cover it too.

    Raises
    ------
    ValueError
        Where there is no cell, the resolution is not positive or the origin not two finite
        numbers.
    """
    cells = np.asarray(occupied, dtype=bool)
    corner = np.asarray(origin, dtype=float)
    if cells.ndim != 2 or cells.size == 0:
        raise ValueError(
            f'occupied must hold at least one cell in two dimensions (shape {cells.shape})'
        )
    if not (math.isfinite(resolution) and resolution > 0.0):
        raise ValueError(f'resolution must be positive and finite (got {resolution:g})')
    if corner.shape != (2,) or not np.isfinite(corner).all():
        raise ValueError(f'origin must be two finite numbers (got {origin!r})')
    cells = np.pad(cells, 1, constant_values=beyond)
    outside = distance_to(nodes_of(cells))
    inside = distance_to(nodes_of(~cells))
    spacing = 0.5 * resolution
    values = np.clip((outside - inside) * spacing, -FAR, FAR)
    return DistanceGrid(values, corner - resolution, spacing)


def nodes_of(cells: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Mark the nine nodes of every marked cell: corners, middles of sides, centre."""
    columns, rows = cells.shape
    nodes = np.zeros((2 * columns + 1, 2 * rows + 1), dtype=bool)
    for i in range(3):
        for j in range(3):
            nodes[i : i + 2 * columns : 2, j : j + 2 * rows : 2] |= cells
    return nodes


def distance_to(marked: npt.NDArray[np.bool_]) -> Array:
    """Distance of each node to the nearest marked one, in nodes; infinite where none is."""
    if not marked.any():
        return np.full(marked.shape, np.inf)
    distances: Array = ndimage.distance_transform_edt(~marked)
    return distances


def yielding(grid: DistanceGrid, position: Array, keep: float, room: float) -> DistanceGrid:
    """Return distances in which what is nearer to a position than ``keep`` is moved away from it.

    To keep ``keep`` from such a node, by these distances, is to keep from it what it is away from
    the position, less ``room`` and what :func:`lower_bound` is off by there; all others count as
    they are. So the position is at least ``keep + room`` away.

    Parameters
    ----------
    grid
        Distances to the occupied nodes.
    position : (D,)
        The first two are x and y, on the grid, metres.
    keep, room
        Metres.
    """
    values, origin, spacing = grid
    x = origin[0] - position[0] + spacing * np.arange(values.shape[0])
    y = origin[1] - position[1] + spacing * np.arange(values.shape[1])
    reach = 3.0 * (keep + room) + 5.0 * spacing  # what is beyond does not matter to what moves
    columns, rows = (slice(*np.searchsorted(axis, (-reach, reach))) for axis in (x, y))
    places = np.stack(np.meshgrid(x[columns], y[rows], indexing='ij'), axis=-1)
    window, away = values[columns, rows], np.hypot(places[..., 0], places[..., 1])
    slack = room + 2.0 * float(away.min())
    occupied = window <= 0.0
    near = occupied & (away < keep + slack)
    edge = near & ~ndimage.binary_erosion(occupied, border_value=1)
    moves = (window < keep + slack) & (away <= 2.0 * keep + slack) & (near | ~occupied)
    moved = nearest_moved(places[moves], places[edge], keep - np.maximum(away[edge] - slack, 0.0))
    others = np.minimum(spacing * distance_to(occupied & ~near), reach - spacing - away)[moves]
    highest = np.where(near[moves], np.minimum(others, keep), others)
    changed = values.copy()
    inner = changed[columns, rows]
    inner[moves] = np.maximum(np.minimum(moved, highest), window[moves])
    spare = lower_bound(changed, origin, spacing, position[0], position[1]) - keep - room
    inner[moves] = np.maximum(np.minimum(moved - spare, highest), window[moves])
    return DistanceGrid(changed, origin, spacing)


@compiled_allocating
def nearest_moved(positions, places, further):
    """Return the least distance of positions (k, 2) to places (n, 2), plus ``further`` (n,)."""
    least = np.full(positions.shape[0], np.inf)
    for i in range(positions.shape[0]):
        for j in range(places.shape[0]):
            x, y = positions[i, 0] - places[j, 0], positions[i, 1] - places[j, 1]
            least[i] = min(least[i], math.sqrt(x * x + y * y) + further[j])
    return least


@compiled
def within(coordinate, last):
    """Move a coordinate in nodes onto the nearest that the grid has; NaN becomes 0."""
    if not coordinate > 0.0:
        return 0.0
    return coordinate if coordinate < last else float(last)


@compiled
def continued(value, beyond):
    """Distance at ``beyond`` metres from the grid, of its nearest point having ``value``.

    All obstacles lie in the rectangle of the grid: seen from its nearest point they are at a
    right angle or more. A nearest point that is occupied says that what lies beyond is.
    """
    if value > 0.0:
        return math.sqrt(value * value + beyond * beyond)
    return value - beyond


@compiled
def lower_bound(values, origin, spacing, x, y):
    """Bound the signed distance at a point from below: no distance grows faster than the way.

    The greatest of what the four nodes around the point leave, ``value - |point - node|``. Off by
    at most twice the way to the nearest node, and by half the spacing where what is near lies on
    one side. Beyond the grid it bounds the distance to the grid's own obstacles, or is
    negative where the grid ends occupied (:func:`distance_grid` adds a ring of cells that says
    which). NaN for a position that is none.
    """
    column = (x - origin[0]) / spacing
    row = (y - origin[1]) / spacing
    nearest_column = within(column, values.shape[0] - 1)
    nearest_row = within(row, values.shape[1] - 1)
    i = min(int(nearest_column), values.shape[0] - 2)
    j = min(int(nearest_row), values.shape[1] - 2)
    a = (nearest_column - i) * spacing
    b = (nearest_row - j) * spacing
    a_squared, other_a_squared = a * a, (spacing - a) * (spacing - a)
    b_squared, other_b_squared = b * b, (spacing - b) * (spacing - b)
    bound = max(
        max(
            values[i, j] - math.sqrt(a_squared + b_squared),
            values[i + 1, j] - math.sqrt(other_a_squared + b_squared),
        ),
        max(
            values[i, j + 1] - math.sqrt(a_squared + other_b_squared),
            values[i + 1, j + 1] - math.sqrt(other_a_squared + other_b_squared),
        ),
    )
    if nearest_column == column and nearest_row == row:
        return bound
    off_column, off_row = column - nearest_column, row - nearest_row
    # Not hypot: of an infinity and NaN that is infinite.
    return continued(bound, spacing * math.sqrt(off_column * off_column + off_row * off_row))


@compiled
def interpolated(values, origin, spacing, x, y):
    """Interpolate the signed distance at a point, bilinearly, with its gradient.

    Continued beyond the grid as :func:`lower_bound` is, so that the gradient leads back to where
    the grid says something wherever it ends occupied.

    Returns
    -------
    value, d/dx, d/dy
    """
    column = (x - origin[0]) / spacing
    row = (y - origin[1]) / spacing
    nearest_column = within(column, values.shape[0] - 1)
    nearest_row = within(row, values.shape[1] - 1)
    i = min(int(nearest_column), values.shape[0] - 2)
    j = min(int(nearest_row), values.shape[1] - 2)
    a, b = nearest_column - i, nearest_row - j
    along_x = (1.0 - b) * (values[i + 1, j] - values[i, j]) + b * (
        values[i + 1, j + 1] - values[i, j + 1]
    )
    along_y = (1.0 - a) * (values[i, j + 1] - values[i, j]) + a * (
        values[i + 1, j + 1] - values[i + 1, j]
    )
    value = values[i, j] + a * (values[i + 1, j] - values[i, j]) + b * along_y
    slope_x, slope_y = along_x / spacing, along_y / spacing
    if nearest_column == column and nearest_row == row:
        return value, slope_x, slope_y
    off_x, off_y = spacing * (column - nearest_column), spacing * (row - nearest_row)
    beyond = math.sqrt(off_x * off_x + off_y * off_y)
    # Across the border only the distance to it changes.
    slope_x = slope_x if nearest_column == column else 0.0
    slope_y = slope_y if nearest_row == row else 0.0
    distance = continued(value, beyond)
    if value > 0.0:
        share = value / distance
        return distance, share * slope_x + off_x / distance, share * slope_y + off_y / distance
    return distance, slope_x - off_x / beyond, slope_y - off_y / beyond
