# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Reading mcap: order, damage, missing indexes, and what lies must not do."""

import random
import struct
import tracemalloc

import pytest
from made_mcap import write_mcap

from kernel_constrained.bags import open_recording, RecordingError

VARIANTS = [
    {'compression': 'zstd'},
    {'compression': 'lz4'},
    {'compression': ''},
    {'compression': None},
    {'compression': None, 'checksums': False},
    {'compression': 'zstd', 'summary': False},
    {'compression': 'zstd', 'index': False},
    {'compression': '', 'index': False, 'checksums': False},
]


def messages_of(path):
    with open_recording(path) as recording:
        found = list(recording.messages())
    return found, recording


def numbered(*stamps):
    return [('a', stamp, bytes(4) + bytes([index])) for index, stamp in enumerate(stamps)]


@pytest.mark.parametrize('variant', VARIANTS, ids=str)
def test_messages_out_of_order_in_the_file_are_put_in_order(tmp_path, variant):
    rng = random.Random(0)
    stamps = [rng.randrange(1000) for _ in range(500)]
    path = write_mcap(tmp_path / 'x.mcap', numbered(*(stamp for stamp in stamps[:250])), **variant)
    found, recording = messages_of(path)
    assert [message.stamp for message in found] == sorted(stamps[:250])
    # what shares a stamp stays in the recorded order
    order = sorted(range(250), key=lambda index: stamps[index])
    assert [message.data[4] for message in found] == order
    assert not recording.losses
    assert recording.topics['a'].count == 250


@pytest.mark.parametrize('variant', VARIANTS, ids=str)
def test_window_and_topics_are_those_asked_for(tmp_path, variant):
    second = 10**9
    triples = [('ab'[index % 2], index * second, bytes([index])) for index in range(90)]
    with open_recording(write_mcap(tmp_path / 'x.mcap', triples, **variant)) as recording:
        assert (recording.start, recording.end) == (0, 89 * second)
        found = recording.messages(['b'], start_offset=20.0, duration=40.0)
        assert [message.data[0] for message in found] == list(range(21, 60, 2))


def test_chunk_with_a_wrong_byte_is_not_delivered_and_stated_in_messages_and_bytes(tmp_path):
    path = write_mcap(tmp_path / 'x.mcap', numbered(*range(100)), compression='')
    content = bytearray(path.read_bytes())
    place = content.find(bytes(4) + bytes([50]))
    content[place + 1] ^= 1
    path.write_bytes(content)
    found, recording = messages_of(path)
    assert [message.stamp for message in found] == [*range(40), *range(60, 100)]
    chunk, topic = recording.losses
    assert 'checksum is wrong; 20 of 20 messages lost' in chunk
    assert topic == 'a: 100 messages declared, 80 read'


@pytest.mark.parametrize('variant', VARIANTS[:4], ids=str)
def test_index_whose_checksum_is_wrong_is_rebuilt_without_loss(tmp_path, variant):
    path = write_mcap(tmp_path / 'x.mcap', numbered(*range(100)), **variant)
    content = bytearray(path.read_bytes())
    content[-50] ^= 0xFF
    path.write_bytes(content)
    found, recording = messages_of(path)
    assert [message.stamp for message in found] == list(range(100))
    assert recording.warnings == ['x.mcap: its index contradicts its checksum and was rebuilt']
    assert not recording.losses


@pytest.mark.parametrize('variant', VARIANTS[:4], ids=str)
def test_recording_whose_recorder_was_killed_is_read_whole_and_said_to_lack_its_end(
    tmp_path, variant
):
    path = write_mcap(tmp_path / 'x.mcap', numbered(*range(100)), **variant)
    content = path.read_bytes()
    path.write_bytes(content[: content.rfind(struct.pack('<BQ', 15, 4))])
    found, recording = messages_of(path)
    assert [message.stamp for message in found] == list(range(100))
    assert 'the end is missing' in recording.losses[0]


def test_chunks_behind_damage_are_found_without_an_index(tmp_path):
    path = write_mcap(tmp_path / 'x.mcap', numbered(*range(100)), summary=False)
    content = bytearray(path.read_bytes())
    second = content.find(b'zstd', content.find(b'zstd') + 1)
    content[second - 40 : second + 60] = b'\xff' * 100
    path.write_bytes(content)
    found, recording = messages_of(path)
    assert [message.stamp for message in found] == [*range(20), *range(40, 100)]
    assert 'are damaged, their messages lost' in recording.losses[0]


@pytest.mark.parametrize('field', [0, 8])
def test_stamps_of_an_index_that_lie_do_not_break_the_order_silently(tmp_path, field):
    path = write_mcap(tmp_path / 'x.mcap', numbered(*range(1000, 1100)), checksums=False)
    content = bytearray(path.read_bytes())
    # the stamps of the second chunk, in its own head and in the index at the end
    second = content.find(b'zstd', content.find(b'zstd') + 1) - 32
    for place in (second, content.find(content[second : second + 16], second + 16)):
        struct.pack_into('<Q', content, place + field, 1090)
    path.write_bytes(content)
    found, recording = messages_of(path)
    assert [message.stamp for message in found] == list(range(1000, 1100))
    assert not recording.losses


def test_chunk_older_than_it_says_is_stated_and_in_order_when_read_again(tmp_path):
    path = write_mcap(tmp_path / 'x.mcap', numbered(*range(100)), checksums=False, index=False)
    with open_recording(path) as recording:
        (file,) = recording._storages
        file._chunks[1].start = 70
        assert len(list(recording.messages())) < 100
        assert 'came too late for the order' in recording.losses[0]
        assert [message.stamp for message in recording.messages()] == list(range(100))


@pytest.mark.parametrize('size', [2**40, 2**63, 2**64 - 1])
@pytest.mark.parametrize('variant', VARIANTS[:4], ids=str)
def test_absurd_lengths_take_neither_memory_nor_time(tmp_path, variant, size):
    path = write_mcap(tmp_path / 'x.mcap', numbered(*range(100)), **variant)
    content = path.read_bytes()
    places = [place for place in range(8, len(content) - 8) if content[place] in (4, 5, 6)]
    tracemalloc.start()
    for place in random.Random(0).sample(places, 20):
        path.write_bytes(content[: place + 1] + struct.pack('<Q', size) + content[place + 9 :])
        try:
            messages_of(path)
        except RecordingError:
            continue
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


@pytest.mark.parametrize('size', [2**40, 2**62])
def test_chunk_whose_lengths_agree_on_an_absurd_size_is_cut_off(tmp_path, size):
    path = write_mcap(tmp_path / 'x.mcap', numbered(*range(100)), summary=False)
    content = bytearray(path.read_bytes())
    last = content.rfind(b'zstd') - 41
    struct.pack_into('<Q', content, last + 1, size)
    struct.pack_into('<Q', content, last + 45, size - 44)
    struct.pack_into('<Q', content, last + 25, size)
    path.write_bytes(content)
    tracemalloc.start()
    found, recording = messages_of(path)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    assert [message.stamp for message in found] == list(range(100))
    assert 'cut off in the chunk' in recording.losses[0]


@pytest.mark.parametrize('compression', [None, ''])
def test_message_whose_length_may_be_wrong_is_not_delivered(tmp_path, compression):
    path = write_mcap(
        tmp_path / 'x.mcap', numbered(*range(100)), compression=compression, checksums=False
    )
    content = bytearray(path.read_bytes())
    message = content.find(struct.pack('<BQHIQ', 5, 27, 0, 0, 50))
    content[message + 1] += 1  # takes the first byte of the next record for its own
    path.write_bytes(content)
    found, recording = messages_of(path)
    behind = [] if compression is None else range(60, 100)
    assert [message.stamp for message in found] == [*range(50), *behind]
    assert all(len(message.data) == 5 for message in found)
    assert f'a: 100 messages declared, {len(found)} read' in recording.losses
    with open_recording(path) as recording:
        assert recording._storages[0].counts['a'] == (50 if compression is None else 100)


def test_messages_of_a_channel_that_nothing_describes_are_a_loss(tmp_path):
    path = write_mcap(tmp_path / 'x.mcap', numbered(*range(5)), compression=None)
    content = path.read_bytes()
    message = content.find(struct.pack('<BQH', 5, 27, 0))
    path.write_bytes(content[: message + 9] + b'\x07\x00' + content[message + 11 :])
    found, recording = messages_of(path)
    assert len(found) == 4
    assert '1 messages of channel 7, which is not described' in recording.losses[0]


def test_memory_is_that_of_one_chunk_however_long_the_file(tmp_path):
    peaks = []
    for count in (2_000, 8_000):
        triples = [('a', stamp, bytes(5_000)) for stamp in range(count)]
        path = write_mcap(tmp_path / f'{count}.mcap', triples, compression='')
        with open_recording(path) as recording:
            tracemalloc.start()
            assert sum(1 for _ in recording.messages()) == count
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] < 2e6
