# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What a file is by its first bytes, where it is no bag."""

from pathlib import Path

from kernel_constrained.bags.recording import RecordingError

__all__ = ['DB3_MAGIC', 'MCAP_MAGIC', 'read_head', 'what_is']

MCAP_MAGIC = b'\x89MCAP0\r\n'
DB3_MAGIC = b'SQLite format 3\0'

SIGNATURES = {
    MCAP_MAGIC: 'an mcap file',
    DB3_MAGIC: 'a SQLite database',
    b'\x28\xb5\x2f\xfd': 'a zstd archive',
    b'\x1f\x8b': 'a gzip archive',
    b'PK\x03\x04': 'a zip archive',
    b'\x89PNG': 'a picture (PNG)',
    b'\xff\xd8\xff': 'a picture (JPEG)',
    b'%PDF': 'a PDF document',
    b'ULog': 'a PX4 log (ULog)',
    b'\x89HDF': 'an HDF5 file',
    b'\x7fELF': 'a program (ELF)',
}


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file.

    Raises
    ------
    RecordingError
        It is empty, the pointer of Git LFS, or a ROS 1 bag.
    OSError
        It cannot be read.
    """
    with path.open('rb') as content:
        head = content.read(64)
    if not head:
        raise RecordingError(f'{path}: an empty file (0 bytes)')
    if head.startswith(b'version https://git-lfs'):
        raise RecordingError(
            f'{path}: a Git LFS pointer instead of the data; run `git lfs pull` where it is from'
        )
    if head.startswith(b'#ROSBAG'):
        raise RecordingError(
            f'{path}: a ROS 1 bag; convert it first: '
            f'`rosbags-convert --src {path.name} --dst <folder>`'
        )
    return head


def what_is(head: bytes) -> str:
    """Say what the first bytes of a file are."""
    for signature, name in SIGNATURES.items():
        if head.startswith(signature):
            return name
    text = head.decode('utf-8', 'ignore').strip()
    if text.isprintable() and len(text) > len(head) // 2:
        return f'text that begins with {text[:24]!r}'
    line = text.splitlines()[0] if text else ''
    if line.isprintable() and len(line) > 3 and head.isascii() and b'\0' not in head:
        return f'text that begins with {line[:24]!r}'
    return 'zeros' if not any(head) else 'data of no known kind'
