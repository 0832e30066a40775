# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Writes mcap files as recorders do: in chunks or without, with checksums or without."""

import struct
import sys
from collections import Counter, defaultdict
from zlib import crc32

import lz4.frame

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b'\x89MCAP0\r\n'
COMPRESSORS = {'': bytes, 'zstd': zstd.compress, 'lz4': lz4.frame.compress}
QOS = '- history: 3\n  depth: 0\n  reliability: 1\n  durability: 1\n'


def write_mcap(
    path, messages, *, compression='zstd', per_chunk=20, checksums=True, summary=True, index=True
):
    """Write (topic, stamp, data) triples of std_msgs/String.

    ``compression`` None writes them without chunks, as rosbag2's preset ``fastwrite`` does.
    """
    topics = sorted({topic for topic, _, _ in messages})
    out = bytearray(MAGIC) + record(1, text('ros2') + text('made'))
    described = record(3, struct.pack('<H', 1) + text('std_msgs/msg/String') + text('ros2msg') +
                       text('string data\n'))  # fmt: skip
    for number, topic in enumerate(topics):
        described += channel(number, topic)
    records = [
        (topics.index(topic), stamp, record(5, head(topics.index(topic), stamp) + data))
        for topic, stamp, data in messages
    ]
    out += described
    indexes = []
    if compression is None:
        out += b''.join(content for _, _, content in records)
    else:
        for first in range(0, len(records), per_chunk):
            chunk_records = records[first : first + per_chunk]
            indexes.append(write_chunk(out, chunk_records, compression, checksums, index))
    out += record(15, bytes(4))
    write_end(out, described, indexes, records, checksums, summary)
    path.write_bytes(out)
    return path


def write_chunk(out, records, compression, checksums, index):
    content = b''.join(data for _, _, data in records)
    stamps = [stamp for _, stamp, _ in records]
    packed = COMPRESSORS[compression](content)
    times = struct.pack('<QQ', min(stamps), max(stamps))
    offset = len(out)
    out += record(
        6,
        times
        + struct.pack('<QI', len(content), crc32(content) if checksums else 0)
        + text(compression)
        + struct.pack('<Q', len(packed))
        + packed,
    )
    length, places, position = len(out) - offset, {}, 0
    entries = defaultdict(bytes)
    for number, stamp, data in records:
        entries[number] += struct.pack('<QQ', stamp, position)
        position += len(data)
    for number, pairs in entries.items() if index else ():
        places[number] = len(out)
        out += record(7, struct.pack('<HI', number, len(pairs)) + pairs)
    offsets = b''.join(struct.pack('<HQ', *item) for item in places.items())
    return record(
        8,
        times
        + struct.pack('<QQI', offset, length, len(offsets))
        + offsets
        + struct.pack('<Q', len(out) - offset - length)
        + text(compression)
        + struct.pack('<QQ', len(packed), len(content)),
    )


def write_end(out, described, indexes, records, checksums, summary):
    start = len(out) if summary else 0
    if summary:
        stamps = [stamp for _, stamp, _ in records] or [0]
        counts = Counter(number for number, _, _ in records)
        pairs = b''.join(struct.pack('<HQ', *item) for item in counts.items())
        out += described + b''.join(indexes)
        out += record(
            11,
            struct.pack('<QHIIIIQQ', len(records), 1, len(counts), 0, 0, len(indexes),
                        min(stamps), max(stamps))
            + struct.pack('<I', len(pairs)) + pairs,
        )  # fmt: skip
    footer = struct.pack('<BQQQ', 2, 20, start, 0)
    checksum = crc32(out[start:] + footer) if summary and checksums else 0
    out += footer + struct.pack('<I', checksum) + MAGIC


def channel(number, topic):
    metadata = text('offered_qos_profiles') + text(QOS)
    return record(4, struct.pack('<HH', number, 1) + text(topic) + text('cdr') +
                  struct.pack('<I', len(metadata)) + metadata)  # fmt: skip


def head(number, stamp):
    return struct.pack('<HIQQ', number, 0, stamp, stamp)


def record(opcode, content):
    return struct.pack('<BQ', opcode, len(content)) + content


def text(value):
    return struct.pack('<I', len(value.encode())) + value.encode()
