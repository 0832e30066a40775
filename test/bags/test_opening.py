# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What is recognised, and what is said of the rest."""

import gzip
import sqlite3

import pytest

from kernel_constrained.bags import open_recording, RecordingError


def refusal(source, **options):
    with pytest.raises(RecordingError) as caught:
        open_recording(source, **options)
    assert '\n' not in str(caught.value)
    return str(caught.value)


def test_missing_path_is_named_with_what_was_expected(tmp_path):
    assert 'no such file or folder; expected a rosbag2' in refusal(tmp_path / 'nothing')


def test_folder_without_bags_is_said_to_be_one(tmp_path):
    assert 'a folder without a rosbag2' in refusal(tmp_path)


def test_folder_of_metadata_alone_is_said_to_be_one(tmp_path):
    (tmp_path / 'metadata.yaml').write_text('rosbag2_bagfile_information: {}')
    assert 'metadata.yaml is there but no .db3' in refusal(tmp_path)


@pytest.mark.parametrize('name', ['x.mcap', 'x.db3', 'x.log', 'x.g2o', 'x'])
def test_empty_file_is_said_to_be_empty(tmp_path, name):
    (tmp_path / name).touch()
    assert 'an empty file' in refusal(tmp_path / name)


@pytest.mark.parametrize('inside_folder', [True, False])
def test_git_lfs_pointer_is_recognised(tmp_path, inside_folder):
    path = tmp_path / 'x.mcap'
    path.write_text('version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n')
    assert 'Git LFS pointer' in refusal(tmp_path if inside_folder else path)


@pytest.mark.parametrize('inside_folder', [True, False])
def test_ros1_bag_is_recognised(tmp_path, inside_folder):
    path = tmp_path / 'x.bag'
    path.write_bytes(b'#ROSBAG V2.0\n')
    assert 'rosbags-convert' in refusal(tmp_path if inside_folder else path)


def test_other_files_are_refused_with_what_was_expected(tmp_path):
    (tmp_path / 'table.csv').write_text('1,2\n')
    said = refusal(tmp_path / 'table.csv')
    assert 'not a recording by its name' in said
    assert "text that begins with '1,2'" in said
    assert 'expected a rosbag2' in said


@pytest.mark.parametrize(
    ('name', 'content', 'said'),
    [
        ('x.db3', b'a line\nand another\n', "text that begins with 'a line'"),
        ('x.mcap', b'a line\nand another\n', "text that begins with 'a line'"),
        ('x.db3', bytes(9000), 'zeros'),
        ('x.mcap', b'PK\x03\x04' + bytes(99), 'a zip archive'),
        ('x.ulg', b'ULog\x01\x12\x35' + bytes(99), 'a PX4 log (ULog)'),
        ('x.db3', b'\x89PNG\r\n' + bytes(range(99)), 'a picture (PNG)'),
        ('x.mcap.zstd', b'a line\nand another\n', 'not compressed by zstd'),
        ('x', b'%PDF-1.4', 'a PDF document'),
        ('x.mcap', b'\x89MCAP0\r\n', 'so damaged or cut off that no message can be read'),
        ('x.db3', b'SQLite format 3\0', 'a SQLite database without a rosbag2'),
    ],
)
def test_what_is_no_bag_is_said_to_be_what_it_is(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    assert said in refusal(tmp_path / name)


def test_database_of_something_else_is_said_to_hold_no_bag(tmp_path):
    with sqlite3.connect(tmp_path / 'x.db3') as database:
        database.execute('CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT)')
        database.execute("INSERT INTO people VALUES (1, 'Ada')")
    assert 'a SQLite database without a rosbag2' in refusal(tmp_path / 'x.db3')


@pytest.mark.parametrize('name', ['x.mcap', 'x.db3'])
@pytest.mark.parametrize('other', ['y.db3', 'y.mcap', 'y.bak', 'y'])
def test_bag_under_another_name_is_recognised_by_its_content(bag, tmp_path, name, other):
    bag(('a', 1, b'1'), name=name).rename(tmp_path / other)
    with open_recording(tmp_path / other) as recording:
        assert len(list(recording.messages())) == 1


def test_folder_of_bags_names_those_inside(bag, tmp_path):
    bag(('a', 1, b'1'), name='runs/one')
    bag(('a', 1, b'1'), name='runs/two')
    said = refusal(tmp_path / 'runs')
    assert 'a folder of 2 rosbag2 folders (one, two); name one of them' in said


@pytest.mark.parametrize('name', ['x.mcap', 'x.db3', 'x.mcap.zstd', 'x.gz', 'x.g2o', 'x.zip'])
def test_content_that_belies_the_name_is_an_error_and_not_a_traceback(tmp_path, name):
    (tmp_path / name).write_bytes(b'something else entirely\n' * 9)
    assert name in refusal(tmp_path / name)


def test_both_storages_without_metadata_are_refused(tmp_path):
    for name in ('x.mcap', 'x.db3'):
        (tmp_path / name).write_bytes(b'content')
    assert 'side by side' in refusal(tmp_path)


@pytest.mark.parametrize(
    'names', [('a.mcap', 'b.mcap'), ('a_0.db3', 'b_0.db3'), ('x.db3', 'x_1.db3')]
)
def test_bags_in_one_folder_that_are_no_splits_are_refused_by_name(bag, tmp_path, names):
    for name in names:
        bag(('a', 1, b'1'), name=f'folder/{name}')
    assert f'{", ".join(names)} side by side and no metadata.yaml' in refusal(tmp_path / 'folder')
    (tmp_path / 'folder' / 'metadata.yaml').write_text('damaged: [')
    assert f'{", ".join(names)} side by side' in refusal(tmp_path / 'folder')


def test_option_of_another_source_is_refused_and_the_allowed_are_named(tmp_path):
    assert 'takes seed, epochs, evaluate_epochs (got range_max)' in refusal('lidar', range_max=1)
    (tmp_path / 'x.log.gz').write_bytes(gzip.compress(b'\n'))
    assert 'takes range_max (got epochs)' in refusal(tmp_path / 'x.log.gz', epochs=1)
    (tmp_path / 'x.mcap').write_bytes(b'content')
    assert 'takes no options (got seed)' in refusal(tmp_path / 'x.mcap', seed=1)
