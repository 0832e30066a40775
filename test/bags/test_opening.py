# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What is recognised, and what is said of the rest."""

import gzip

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
    assert 'not a recording by its name; expected' in refusal(tmp_path / 'table.csv')


@pytest.mark.parametrize('name', ['x.mcap', 'x.db3', 'x.mcap.zstd', 'x.gz', 'x.g2o', 'x.zip'])
def test_content_that_belies_the_name_is_an_error_and_not_a_traceback(tmp_path, name):
    (tmp_path / name).write_bytes(b'something else entirely\n' * 9)
    assert name in refusal(tmp_path / name)


def test_both_storages_without_metadata_are_refused(tmp_path):
    for name in ('x.mcap', 'x.db3'):
        (tmp_path / name).write_bytes(b'content')
    assert 'side by side' in refusal(tmp_path)


def test_option_of_another_source_is_refused_and_the_allowed_are_named(tmp_path):
    assert 'takes seed, epochs, evaluate_epochs (got range_max)' in refusal('lidar', range_max=1)
    (tmp_path / 'x.log.gz').write_bytes(gzip.compress(b'\n'))
    assert 'takes range_max (got epochs)' in refusal(tmp_path / 'x.log.gz', epochs=1)
    (tmp_path / 'x.mcap').write_bytes(b'content')
    assert 'takes no options (got seed)' in refusal(tmp_path / 'x.mcap', seed=1)
