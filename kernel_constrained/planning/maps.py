# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Occupancy grids: from messages, and from the files of Nav2's map server."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import PIL.Image
import yaml

from kernel_constrained.perception.geometry import unit_quaternion, yaw_of
from kernel_constrained.perception.unusable import Unusable

UNKNOWN, FREE, OCCUPIED = -1, 0, 100
MODES = ('trinary', 'scale', 'raw')

# Rotation of a map that is taken for none, radians: 0.1 mm over 100 m.
LEAST_ROTATION = 1e-6


def as_occupancy(data: Any) -> npt.NDArray[np.int8]:
    """Turn numbers into occupancies; raises ``Unusable`` where they are none."""
    values = np.asarray(data)
    if values.ndim != 2 or values.size == 0:
        raise Unusable('empty map', f'data of shape {values.shape}')
    if values.dtype.kind not in 'iu' or values.min() < UNKNOWN or values.max() > OCCUPIED:
        raise Unusable(
            'map data not from -1 to 100',
            f'{values.dtype} from {values.min()} to {values.max()}; expected percent, or -1 for '
            'unknown',
        )
    return np.ascontiguousarray(values, dtype=np.int8)


@attrs.frozen(eq=False)
class OccupancyMap:
    """What nav_msgs/OccupancyGrid says: how likely the cells of a grid are occupied.

    Attributes
    ----------
    data : (rows, columns) of int8
        Occupancy in percent, -1 where it is unknown; as in the message, the first row has the
        lowest y, the first column the lowest x.
    resolution
        Side of a cell, metres.
    origin
        Position and heading (x, y, yaw) of the lower left corner of cell [0, 0], metres and
        radians.

    Raises
    ------
    Unusable
        Where the map is empty, rotated, or holds numbers that say nothing.
    """

    data: npt.NDArray[np.int8] = attrs.field(converter=as_occupancy)
    resolution: float
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot be used as it is."""
        if not (math.isfinite(self.resolution) and self.resolution > 0.0):
            raise Unusable('map resolution not positive', f'{self.resolution:g} m')
        if not all(map(math.isfinite, self.origin)):
            raise Unusable('non-finite map origin', f'{self.origin}')
        if abs(self.origin[2]) > LEAST_ROTATION:
            raise Unusable(
                'rotated map',
                f'by {self.origin[2]:g} rad; rotate its image, or the frame of what is planned, '
                'so that its origin has no rotation',
            )

    def blocked(self, occupied_at: int, unknown: str) -> npt.NDArray[np.bool_]:
        """Tell which cells are obstacles, (columns, rows): first index along x.

        Parameters
        ----------
        occupied_at
            Occupancy, in percent, from which a cell is.
        unknown
            'blocked' where cells that are unknown are obstacles, 'free' where they are not.

        Raises
        ------
        ValueError
            Where ``occupied_at`` is not from 1 to 100 or ``unknown`` is another word.
        """
        if not 1 <= occupied_at <= OCCUPIED:
            raise ValueError(f'occupied_at must be from 1 to 100 percent (got {occupied_at})')
        if unknown not in ('free', 'blocked'):
            raise ValueError(f"unknown must be 'free' or 'blocked' (got {unknown!r})")
        blocked = self.data >= occupied_at
        if unknown == 'blocked':
            blocked |= self.data == UNKNOWN
        return np.ascontiguousarray(blocked.T)


def from_message(message: Any) -> OccupancyMap:
    """Read a nav_msgs/OccupancyGrid, or what looks like one.

    Raises
    ------
    Unusable
        Where the length of the data is not that of the grid, or as :class:`OccupancyMap`.
    """
    info, data = message.info, np.asarray(message.data)
    if data.size != info.width * info.height:
        raise Unusable(
            'map data of the wrong length',
            f'{data.size} cells, expected {info.width} x {info.height}',
        )
    position, turn = info.origin.position, info.origin.orientation
    if not all(map(math.isfinite, (position.x, position.y))):
        raise Unusable('non-finite map origin', f'{position.x}, {position.y}')
    rotation = unit_quaternion((turn.x, turn.y, turn.z, turn.w))
    if math.hypot(rotation[0], rotation[1]) > LEAST_ROTATION:
        raise Unusable('tilted map', f'quaternion {rotation}; expected a map in the plane')
    return OccupancyMap(
        data.reshape(info.height, info.width),
        # The message has single precision: the number it was written as, as in a file.
        float(str(np.float32(info.resolution))),
        (float(position.x), float(position.y), yaw_of(rotation)),
    )


def load_map(path: str | Path) -> OccupancyMap:
    """Read a map as Nav2's map server does: a YAML file beside an image.

    Parameters
    ----------
    path
        The YAML file: ``image`` (its name, relative to the YAML file), ``resolution``, ``origin``
        (x, y, yaw), ``negate``, ``occupied_thresh``, ``free_thresh``, and ``mode``: trinary (the
        default), scale or raw. Where the image is not there, one that is called like the YAML
        file is read: maps are renamed without a look inside.

    Raises
    ------
    OSError
        Where the YAML file cannot be read.
    Unusable
        Where it does not say what is needed, where there is no image or it is none that can be
        read exactly, or as :class:`OccupancyMap`.
    """
    path = Path(path)
    settings = read_settings(path)
    given = settings['image']
    if not isinstance(given, str) or not given:
        raise Unusable('map file incomplete', f'{path}: image must be a name (got {given!r})')
    x, y, yaw = numbers(settings, 'origin', path, 3)
    (resolution,) = numbers(settings, 'resolution', path)
    grey, opaque = read_image(image_of(path, given))
    data = occupancies(grey, opaque, settings, path)
    return OccupancyMap(data[::-1], resolution, (x, y, yaw))  # the last row of an image is lowest


def read_settings(path: Path) -> Mapping[str, Any]:
    """Read the YAML file of a map, and see that it is complete."""
    with open(path, encoding='utf-8') as file:
        try:
            settings = yaml.safe_load(file)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise Unusable('map file is not YAML', f'{path}: {error}') from error
    needed = ('image', 'resolution', 'origin', 'negate', 'occupied_thresh', 'free_thresh')
    missing = [key for key in needed if not isinstance(settings, Mapping) or key not in settings]
    if missing:
        raise Unusable('map file incomplete', f'{path} does not say {", ".join(missing)}')
    return dict(settings)


def numbers(settings: Mapping[str, Any], key: str, path: Path, count: int = 1) -> list[float]:
    """Return the finite numbers that a setting of a map consists of."""
    given = settings[key]
    try:
        found = [float(value) for value in (given if isinstance(given, list) else [given])]
    except (TypeError, ValueError):
        found = []
    if len(found) != count or not all(map(math.isfinite, found)):
        expected = 'a number' if count == 1 else f'{count} numbers'
        raise Unusable('map file incomplete', f'{path}: {key} must be {expected} (got {given!r})')
    return found


def image_of(path: Path, given: str) -> Path:
    """Find the image of the map whose YAML file is ``path``."""
    named = path.parent / given
    beside = path.with_suffix(named.suffix)
    for candidate in (named, beside):
        if candidate.is_file():
            return candidate
    raise Unusable('no image of the map', f'neither {named} nor {beside} is a file')


def read_image(path: Path) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Read grey levels and which pixels are opaque, each (height, width), the top row first."""
    try:
        with PIL.Image.open(path) as image:
            if image.mode.startswith(('I', 'F')):
                raise Unusable(
                    'map image of more than 8 bits', f'{path}: {image.mode}; save it with 8 bits'
                )
            grey = np.asarray(image.convert('L'))
            alpha = np.asarray(image.convert('RGBA'))[:, :, 3]
    except (OSError, SyntaxError, ValueError, PIL.Image.DecompressionBombError) as error:
        if isinstance(error, Unusable):
            raise
        raise Unusable('map image unreadable', f'{path}: {error}') from error
    return grey, alpha == 255


def occupancies(
    grey: npt.NDArray[np.uint8],
    opaque: npt.NDArray[np.bool_],
    settings: Mapping[str, Any],
    path: Path,
) -> npt.NDArray[np.int8]:
    """Turn grey levels into occupancies, as Nav2's map server does (``map_io.cpp``)."""
    mode = settings.get('mode', 'trinary')
    if mode not in MODES:
        raise Unusable('unknown mode of a map', f'{path}: {mode!r}, one of {", ".join(MODES)}')
    if mode == 'raw':
        return np.where(grey <= OCCUPIED, grey, UNKNOWN).astype(np.int8)
    (occupied_at,) = numbers(settings, 'occupied_thresh', path)
    (free_at,) = numbers(settings, 'free_thresh', path)
    if not free_at < occupied_at:
        raise Unusable(
            'map thresholds in the wrong order',
            f'{path}: free_thresh must be below occupied_thresh (got {free_at:g} and '
            f'{occupied_at:g})',
        )
    # Single precision, as there: levels on a threshold fall on the same side.
    share = grey.astype(np.float32) / np.float32(255.0)
    (negate,) = numbers(settings, 'negate', path)
    if not negate:
        share = np.float32(1.0) - share
    low, high = np.float32(free_at), np.float32(occupied_at)
    if mode == 'scale':
        between = np.round(np.clip((share - low) / (high - low), 0.0, 1.0) * 100.0)
    else:
        between = np.full(share.shape, UNKNOWN)
    found = np.where(share >= high, OCCUPIED, np.where(share <= low, FREE, between))
    return np.where(opaque, found, UNKNOWN).astype(np.int8)
