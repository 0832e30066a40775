# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Cut off at 100 places and with 1000 wrong bytes: no crash, no hang, no silent loss."""

import random
import time
from collections import Counter
from functools import partial

import pytest
from made_mcap import write_mcap

from kernel_constrained.bags import BagWriter, Message, open_recording, RecordingError

CUTS = 100
FLIPS = 1000  # of each kind
LONGEST = 5.0  # seconds of CPU time for one of these small bags


def write_bag(path, triples):
    with BagWriter(path) as writer:
        for topic, stamp, data in triples:
            writer.write(Message(topic, 'std_msgs/msg/String', stamp, data))
    return path


# what writes it, whether it has checksums, whether messages can be found in its bytes
KINDS = {
    'zstd.mcap': (write_mcap, True, False),
    'lz4.mcap': (partial(write_mcap, compression='lz4'), True, False),
    'uncompressed.mcap': (partial(write_mcap, compression=''), True, True),
    'unindexed.mcap': (partial(write_mcap, compression='', summary=False), False, True),
    'unchunked.mcap': (partial(write_mcap, compression=None), False, True),
    'ours.mcap': (write_bag, True, True),
    'ours.db3': (write_bag, False, True),
}


def triples(count, size, long):
    """Make messages of which every tenth is long, and some of which are late."""
    rng = random.Random(0)
    for index in range(count):
        late = rng.choice([0, 0, 0, 15])
        data = b'\x00\x01\x00\x00' + rng.randbytes(size if index % 10 else long)
        yield '/scan' if index % 3 else '/pose', 10**18 + 10 * index - late, data


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """Return a function from a kind to its bag and messages, made once."""
    folder = tmp_path_factory.mktemp('made')
    kinds = {}

    def make(kind):
        if kind not in kinds:
            long = 9000 if kind.endswith('db3') else 300
            path = KINDS[kind][0](folder / kind, list(triples(120, 100, long)))
            with open_recording(path) as recording:
                kinds[kind] = path, list(recording.messages())
                assert not recording.losses
        return kinds[kind]

    return make


def read(path):
    """Return the messages and losses of a damaged bag; check what must hold of any."""
    began = time.process_time()
    try:
        with open_recording(path) as recording:
            messages = list(recording.messages())
    except RecordingError as error:
        assert '\n' not in str(error)
        messages, losses = [], [str(error)]
    else:
        losses = recording.losses
    assert time.process_time() - began < LONGEST
    order = [(message.stamp, message.topic) for message in messages]
    assert order == sorted(order)
    assert len(set(losses)) == len(losses)
    return messages, losses


@pytest.mark.parametrize('kind', KINDS)
def test_cut_off_bag_gives_what_is_before_the_cut_and_states_the_loss(made, tmp_path, kind):
    path, original = made(kind)
    content, known = path.read_bytes(), set(original)
    places = {message: content.find(message.data) for message in original}
    delivered = 0
    for index in range(CUTS):
        end = index * len(content) // CUTS + 1
        (tmp_path / kind).write_bytes(content[:end])
        messages, losses = read(tmp_path / kind)
        assert known.issuperset(messages), f'wrong messages after a cut at {end}'
        assert losses or len(messages) == len(original), f'silent loss after a cut at {end}'
        delivered += len(messages)
        # SQLite's last page, and messages that go on in other pages, are left out here
        whole = end // 4096 * 4096 if kind.endswith('db3') else end
        before = {
            message for message in original
            if places[message] >= 0 and places[message] + len(message.data) <= whole
        }  # fmt: skip
        if KINDS[kind][2]:
            assert before == set(messages) or kind.endswith('db3'), f'cut at {end}'
            assert before <= set(messages), f'cut at {end}'
    assert delivered > 0.35 * CUTS * len(original)


@pytest.mark.parametrize('kind', KINDS)
def test_wrong_byte_costs_little_and_no_message_silently(made, tmp_path, kind):
    path, original = made(kind)
    content, known = path.read_bytes(), Counter(original)
    rng = random.Random(1)
    delivered = 0
    for _ in range(FLIPS):
        position, change = rng.randrange(len(content)), rng.randrange(1, 256)
        damaged = bytearray(content)
        damaged[position] ^= change
        (tmp_path / kind).write_bytes(damaged)
        messages, losses = read(tmp_path / kind)
        where = f'byte {position} changed by {change}'
        assert losses or len(messages) >= len(original), f'silent loss: {where}'
        if KINDS[kind][1]:
            assert Counter(messages) <= known, f'wrong messages: {where}'
        delivered += len(messages)
    # ours has chunks of 1 MB: this bag is a single one
    assert delivered > (0.1 if kind == 'ours.mcap' else 0.8) * FLIPS * len(original)
