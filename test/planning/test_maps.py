# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Occupancy grids from messages and from the files of Nav2's map server."""

import array
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import PIL.Image
import pytest

from kernel_constrained.perception.unusable import Unusable
from kernel_constrained.planning.maps import from_message, load_map, OccupancyMap

SHARED = Path(__file__).parents[3] / 'shared' / 'data' / 'maps'
SETTINGS = {
    'image': 'map.png', 'resolution': 0.05, 'origin': [-1.0, 2.0, 0.0], 'negate': 0,
    'occupied_thresh': 0.65, 'free_thresh': 0.196,
}  # fmt: skip


def message(data, width=3, height=2, resolution=0.05, position=(1.0, 2.0), turn=(0, 0, 0, 1)):
    """Look like a nav_msgs/OccupancyGrid; resolution in single precision, as there."""
    x, y, z, w = turn
    origin = SimpleNamespace(
        position=SimpleNamespace(x=position[0], y=position[1], z=0.0),
        orientation=SimpleNamespace(x=x, y=y, z=z, w=w),
    )
    info = SimpleNamespace(
        width=width, height=height, resolution=float(np.float32(resolution)), origin=origin
    )
    return SimpleNamespace(info=info, data=data)


def written(folder, pixels, bands='L', **settings):
    """Write an image and its YAML file; returns the path of the latter."""
    if pixels is not None:
        PIL.Image.fromarray(np.asarray(pixels), bands).save(folder / 'map.png')
    lines = [f'{key}: {value}' for key, value in {**SETTINGS, **settings}.items() if value != '']
    path = folder / 'map.yaml'
    path.write_text('\n'.join(lines))
    return path


def grey(*rows):
    return np.array(rows, dtype=np.uint8)


def test_cells_are_indexed_along_x_first():
    found = OccupancyMap([[0, 100, 0], [-1, 0, 0]], 0.05).blocked(65, 'free')
    np.testing.assert_array_equal(found, [[False, False], [True, False], [False, False]])


def test_unknown_cells_block_where_they_are_said_to():
    map_ = OccupancyMap([[-1, 0, 64, 65, 100]], 0.05)
    assert map_.blocked(65, 'free')[:, 0].tolist() == [False, False, False, True, True]
    assert map_.blocked(65, 'blocked')[:, 0].tolist() == [True, False, False, True, True]
    assert map_.blocked(1, 'free')[:, 0].tolist() == [False, False, True, True, True]


@pytest.mark.parametrize(('occupied_at', 'unknown'), [(0, 'free'), (101, 'free'), (50, 'maybe')])
def test_what_blocks_must_be_said_in_known_words(occupied_at, unknown):
    with pytest.raises(ValueError, match=r'must be'):
        OccupancyMap([[0]], 0.05).blocked(occupied_at, unknown)


@pytest.mark.parametrize('kind', [list, lambda data: array.array('b', data), np.array])
def test_a_message_is_read_row_by_row_from_the_lowest(kind):
    map_ = from_message(message(kind([0, 100, -1, 0, 0, 50])))
    np.testing.assert_array_equal(map_.data, [[0, 100, -1], [0, 0, 50]])
    assert map_.data.dtype == np.int8
    assert map_.origin == (1.0, 2.0, 0.0)


def test_the_resolution_of_a_message_is_the_number_it_was_written_as():
    assert from_message(message([0] * 6, resolution=0.05)).resolution == 0.05


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        ({'resolution': 0.0}, 'map resolution not positive'),
        ({'resolution': -0.05}, 'map resolution not positive'),
        ({'resolution': math.nan}, 'map resolution not positive'),
        ({'resolution': math.inf}, 'map resolution not positive'),
        ({'width': 4}, 'map data of the wrong length'),
        ({'width': 0, 'height': 0}, 'map data of the wrong length'),
        ({'width': 0, 'height': 0, 'data': []}, 'empty map'),
        ({'position': (math.nan, 0.0)}, 'non-finite map origin'),
        ({'position': (0.0, math.inf)}, 'non-finite map origin'),
        ({'turn': (0, 0, math.sin(0.1), math.cos(0.1))}, 'rotated map'),
        ({'turn': (0, 0, 1, 0)}, 'rotated map'),
        ({'turn': (1, 0, 0, 0)}, 'tilted map'),
        ({'turn': (0, 0, 0, 0)}, 'zero quaternion'),
        ({'turn': (0, 0, math.nan, 1)}, 'non-finite pose'),
        ({'data': [0, 0, 0, 0, 0, 101]}, 'map data not from -1 to 100'),
        ({'data': [0, 0, 0, 0, 0, -2]}, 'map data not from -1 to 100'),
        ({'data': [0.0, 0.5, 0.0, 0.0, 0.0, 0.0]}, 'map data not from -1 to 100'),
    ],
)
def test_a_message_that_says_no_map_is_refused_by_name(changes, reason):
    with pytest.raises(Unusable) as caught:
        from_message(message(**{'data': [0] * 6, **changes}))
    assert caught.value.reason == reason


def test_the_same_orientation_by_the_opposite_quaternion_is_no_rotation():
    assert from_message(message([0] * 6, turn=(0, 0, 0, -1))).origin[2] == 0.0


def test_a_file_is_read_as_the_map_server_reads_it(tmp_path):
    # 1 - level / 255: 1, 0.655, 0.651 in the upper row, 0.647, 0.1961, 0.192 in the lower one.
    map_ = load_map(written(tmp_path, grey([0, 88, 89], [90, 205, 206])))
    np.testing.assert_array_equal(map_.data, [[-1, -1, 0], [100, 100, 100]])
    assert (map_.resolution, map_.origin) == (0.05, (-1.0, 2.0, 0.0))


def test_light_is_occupied_in_a_negated_file(tmp_path):
    map_ = load_map(written(tmp_path, grey([255, 0, 128]), negate='true'))
    np.testing.assert_array_equal(map_.data, [[100, 0, -1]])


def test_levels_between_are_scaled_in_scale_mode(tmp_path):
    settings = {'mode': 'scale', 'occupied_thresh': 0.8, 'free_thresh': 0.2}
    map_ = load_map(written(tmp_path, grey([0, 255, 102]), **settings))
    np.testing.assert_array_equal(map_.data, [[100, 0, 67]])


def test_levels_are_occupancies_in_raw_mode(tmp_path):
    map_ = load_map(written(tmp_path, grey([0, 42, 100, 101, 255]), mode='raw'))
    np.testing.assert_array_equal(map_.data, [[0, 42, 100, -1, -1]])


def test_transparent_pixels_are_unknown(tmp_path):
    pixels = np.array([[[0, 0, 0, 255], [0, 0, 0, 254], [255, 255, 255, 255]]], dtype=np.uint8)
    map_ = load_map(written(tmp_path, pixels, 'RGBA'))
    np.testing.assert_array_equal(map_.data, [[100, -1, 0]])


def test_a_grey_map_of_the_text_kind_is_read(tmp_path):
    path = written(tmp_path, None, image='map.pgm')
    (tmp_path / 'map.pgm').write_text('P2\n# a comment\n3 1\n255\n0 205 254\n')
    np.testing.assert_array_equal(load_map(path).data, [[100, -1, 0]])


def test_an_image_called_like_the_file_stands_in_for_a_missing_one(tmp_path):
    path = written(tmp_path, grey([0, 254]), image='renamed.png')
    np.testing.assert_array_equal(load_map(path).data, [[100, 0]])


def test_an_image_that_is_named_goes_before_one_called_like_the_file(tmp_path):
    path = written(tmp_path, grey([0, 254]), image='other.png')
    PIL.Image.fromarray(grey([254, 0]), 'L').save(tmp_path / 'other.png')
    np.testing.assert_array_equal(load_map(path).data, [[0, 100]])


@pytest.mark.parametrize(
    ('settings', 'reason'),
    [
        ({'resolution': ''}, 'map file incomplete'),
        ({'negate': ''}, 'map file incomplete'),
        ({'free_thresh': ''}, 'map file incomplete'),
        ({'origin': [0.0, 0.0]}, 'map file incomplete'),
        ({'origin': ['a', 0.0, 0.0]}, 'map file incomplete'),
        ({'resolution': '.nan'}, 'map file incomplete'),
        ({'image': 3}, 'map file incomplete'),
        ({'resolution': '-0.05'}, 'map resolution not positive'),
        ({'origin': [0.0, 0.0, 0.5]}, 'rotated map'),
        ({'occupied_thresh': 0.1}, 'map thresholds in the wrong order'),
        ({'mode': 'colourful'}, 'unknown mode of a map'),
        ({'image': 'absent.bmp'}, 'no image of the map'),
        ({'image': 'map.yaml'}, 'map image unreadable'),
        ({'origin': '[0.0, 0.0'}, 'map file is not YAML'),
    ],
)
def test_a_file_that_says_no_map_is_refused_by_name(tmp_path, settings, reason):
    with pytest.raises(Unusable) as caught:
        load_map(written(tmp_path, grey([0]), **settings))
    assert caught.value.reason == reason


def test_an_image_of_sixteen_bits_is_refused_rather_than_cut_off(tmp_path):
    path = written(tmp_path, None)
    PIL.Image.fromarray(np.array([[0, 256, 65535]], dtype=np.uint16)).save(tmp_path / 'map.png')
    with pytest.raises(Unusable, match='8 bits'):
        load_map(path)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_map(tmp_path / 'absent.yaml')


@pytest.mark.parametrize(
    ('name', 'shape', 'occupied', 'unknown'),
    [
        ('narrow_graph', (280, 280), 4300, 7940),
        ('office01add', (280, 280), 3758, 3731),
        ('tb3_sandbox', (384, 384), 870, 138683),
    ],
)
def test_published_maps_are_read(name, shape, occupied, unknown):
    path = SHARED / f'{name}.yaml'
    if not path.exists():
        pytest.skip(f'shared data is absent: {path.name}')
    map_ = load_map(path)
    assert map_.data.shape == shape
    assert map_.blocked(65, 'free').sum() == occupied
    assert map_.blocked(65, 'blocked').sum() == occupied + unknown
