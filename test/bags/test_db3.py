# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Reading db3: damage that SQLite finds and damage that it does not."""

import random
import re
import shutil
import sqlite3

import pytest

from kernel_constrained.bags import open_recording

PAGE = 4096
COUNT = 400


@pytest.fixture
def database(bag):
    """Return a bag of 400 messages, of which every tenth spans several pages."""
    rng = random.Random(0)
    sizes = [9000 if index % 10 == 0 else 200 for index in range(COUNT)]
    return bag(*(('a', index, rng.randbytes(size)) for index, size in enumerate(sizes)),
               name='x.db3')  # fmt: skip


def change(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def read(path):
    with open_recording(path) as recording:
        messages = list(recording.messages())
    return messages, recording


def pages_of_kind(path, kind):
    content = path.read_bytes()
    return [place for place in range(PAGE, len(content), PAGE) if content[place] == kind]


def overwrite(path, place, data):
    content = bytearray(path.read_bytes())
    content[place : place + len(data)] = data
    path.write_bytes(content)


def test_file_without_an_index_of_stamps_is_read_in_order(database):
    original, _ = read(database)
    change(database, 'DROP INDEX timestamp_idx', 'UPDATE messages SET timestamp = 400 - id')
    messages, recording = read(database)
    assert [message.data for message in messages] == [message.data for message in original[::-1]]
    assert not recording.losses


def test_messages_that_share_a_stamp_stay_in_the_recorded_order(database):
    original, _ = read(database)
    change(database, 'UPDATE messages SET timestamp = 7')
    assert [message.data for message in read(database)[0]] == [each.data for each in original]
    change(database, 'DROP INDEX timestamp_idx')
    assert [message.data for message in read(database)[0]] == [each.data for each in original]


@pytest.mark.parametrize('garbage', [bytes(PAGE), b'\xff' * PAGE, b'\x0a' + bytes(PAGE - 1)])
@pytest.mark.parametrize('kind', [0x0A, 0x02])
def test_damaged_index_of_stamps_costs_no_message(database, kind, garbage):
    change(database, 'UPDATE messages SET timestamp = timestamp + 1000000000000000000')
    original, _ = read(database)
    pages = pages_of_kind(database, kind)
    assert pages
    for place in pages:
        overwrite(database, place, garbage)
    messages, recording = read(database)
    assert messages == original
    assert not recording.losses
    assert 'read page by page' in recording.warnings[0]


@pytest.mark.parametrize('garbage', [bytes(PAGE), b'\xff' * PAGE, b'\x05' + bytes(PAGE - 1)])
def test_damaged_page_costs_its_own_messages_and_they_are_counted(database, garbage):
    original, _ = read(database)
    leaves = pages_of_kind(database, 0x0D)
    overwrite(database, leaves[len(leaves) // 2], garbage)
    messages, recording = read(database)
    lost = len(original) - len(messages)
    assert 1 <= lost <= 20
    assert set(messages) <= set(original)
    assert any(f'at least {lost} messages lost' in loss for loss in recording.losses)


def test_damaged_lengths_of_a_row_cost_its_message(database):
    """SQLite calls them a lack of memory."""
    original, _ = read(database)
    (message,) = (message for message in original if message.stamp == 205)
    overwrite(database, database.read_bytes().find(message.data) - 12, b'\xff' * 12)
    messages, recording = read(database)
    assert messages == [each for each in original if each != message]
    assert 'damaged (MemoryError); at least 1 messages lost' in recording.losses[0]


def test_damaged_last_page_is_known_by_the_index(database):
    original, _ = read(database)
    content = database.read_bytes()
    overwrite(database, content.find(original[-1].data) // PAGE * PAGE, bytes(PAGE))
    messages, recording = read(database)
    lost = len(original) - len(messages)
    assert lost >= 1
    assert any(f'at least {lost} messages lost' in loss for loss in recording.losses)


def test_cut_within_the_last_page_is_noticed(database):
    original, _ = read(database)
    content = database.read_bytes()
    last = content[: content.find(original[-1].data) // PAGE * PAGE + PAGE]
    database.write_bytes(last[:28] + (len(last) // PAGE).to_bytes(4, 'big') + last[32:-100])
    messages, recording = read(database)
    assert set(messages) < set(original)
    assert 'the last 100 of' in recording.losses[0]


def test_damaged_root_of_the_tree_costs_no_message(database):
    original, _ = read(database)
    for place in pages_of_kind(database, 0x05):
        overwrite(database, place, b'\xff' * PAGE)
    messages, _ = read(database)
    assert messages == original


def test_damaged_header_and_schema_cost_no_message(database):
    original, _ = read(database)
    overwrite(database, 0, b'\xff' * 16)
    overwrite(database, PAGE - 300, b'\xff' * 300)
    assert read(database)[0] == original


def test_page_that_is_missing_from_a_long_message_costs_that_message(database):
    original, _ = read(database)
    content = database.read_bytes()
    (long,) = (message for message in original if message.stamp == 200)
    place = content.find(long.data[-50:]) // PAGE * PAGE
    number = (place // PAGE + 1).to_bytes(4, 'big')
    pointer = content.find(number, place - 3 * PAGE)
    overwrite(database, pointer, b'\x7f\xff\xff\xff')
    messages, recording = read(database)
    assert len(original) - len(messages) == 1
    assert set(messages) <= set(original)
    assert any('1 messages on a end in bytes that are not there' in each
               for each in recording.losses)  # fmt: skip


def test_cut_to_exactly_the_half_is_not_taken_for_smaller_pages(database):
    original, _ = read(database)
    content = database.read_bytes()
    whole = len(content) // PAGE // 2 * 2 * PAGE
    database.write_bytes(
        content[:28] + (whole // PAGE).to_bytes(4, 'big') + content[32 : whole // 2]
    )
    messages, _ = read(database)
    assert 0.3 * COUNT < len(messages) < 0.7 * COUNT
    assert set(messages) <= set(original)


@pytest.mark.parametrize('size', [512, 2048, 8192, 16384, 3])
def test_wrong_page_size_in_the_header_costs_no_message(database, size):
    original, _ = read(database)
    overwrite(database, 16, size.to_bytes(2, 'big'))
    assert read(database)[0] == original


def test_cut_states_the_bytes_and_leaves_no_half_message(database):
    original, _ = read(database)
    content = database.read_bytes()
    database.write_bytes(content[: len(content) // 2 + 100])
    messages, recording = read(database)
    assert 0.3 * COUNT < len(messages) < 0.7 * COUNT
    assert set(messages) <= set(original)
    missing = len(content) - len(content) // 2 - 100
    assert f'the last {missing:,} of {len(content):,} bytes are cut off' in recording.losses[0]
    assert recording.losses[-1] == f'a: 400 messages declared, {len(messages)} read'


def test_message_whose_stamp_is_damaged_to_nothing_is_a_loss(database):
    change(database, 'UPDATE messages SET timestamp = 1000000000000000123 WHERE id = 17')
    stamp = re.escape((10**18 + 123).to_bytes(8, 'big'))
    # the kinds of its columns: no number, 1, an integer of eight bytes, bytes
    row = re.search(rb'\x06\x00\x09\x06..' + stamp, database.read_bytes(), re.DOTALL)
    overwrite(database, row.start() + 3, b'\x00')
    messages, recording = read(database)
    assert len(messages) == COUNT - 1
    assert 'at least 1 messages lost' in recording.losses[0]


def test_deleted_messages_do_not_come_back(database):
    change(database, 'PRAGMA secure_delete=OFF', 'DELETE FROM messages WHERE id > 100')
    leaves = pages_of_kind(database, 0x0A)
    overwrite(database, leaves[0], b'\xff' * PAGE)
    messages, _ = read(database)
    assert [message.stamp for message in messages] == list(range(100))


def test_messages_of_a_topic_that_is_not_described_are_a_loss(database):
    change(database, 'UPDATE messages SET topic_id = 9 WHERE id > 390')
    messages, recording = read(database)
    assert len(messages) == 390
    assert '10 messages of topic number 9, which is not described' in recording.losses[0]


def test_messages_that_the_file_itself_declares_are_missed(database):
    change(database, 'DELETE FROM messages WHERE id > 390')
    _, recording = read(database)
    assert 'a: 400 messages declared, 390 read' in recording.losses


def test_counts_that_a_killed_recorder_never_wrote_are_not_believed(database):
    change(database, "UPDATE metadata SET metadata = replace(metadata, '400', '0')")
    messages, recording = read(database)
    assert len(messages) == COUNT
    assert not recording.losses


def test_journal_that_was_never_merged_is_merged_in_a_copy(database, tmp_path):
    folder = tmp_path / 'killed'
    folder.mkdir()
    connection = sqlite3.connect(database)
    connection.execute('PRAGMA journal_mode=WAL')
    connection.execute('PRAGMA wal_autocheckpoint=0')
    with connection:
        connection.execute('INSERT INTO messages VALUES (401, 1, 900, ?)', [b'new'])
    for path in (database, database.with_name('x.db3-wal')):
        shutil.copy(path, folder)
    connection.close()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    messages, recording = read(folder / 'x.db3')
    assert messages[-1].data == b'new'
    assert len(messages) == COUNT + 1
    assert 'were merged in a copy' in recording.warnings[0]
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_journal_with_nothing_in_it_is_noticed(database):
    database.with_name('x.db3-wal').write_bytes(b'12345')
    messages, recording = read(database)
    assert len(messages) == COUNT
    assert 'holds 5 bytes but nothing to merge' in recording.warnings[0]
