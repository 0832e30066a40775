# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Decompression that returns what came before the damage."""

import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import lz4.frame

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ['LARGEST', 'ZSTD_MAGIC', 'decompress', 'gzip_lines', 'unpack', 'zstd']

ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'

# Fed in pieces, since what a piece gave before its damage is not returned.
PIECE = 4096

# What tells zlib to expect the header of gzip.
GZIP = 31

# No chunk is larger: what states more is damaged.
LARGEST = 2**32

DECOMPRESSORS: dict[str, Any] = {
    'zstd': zstd.ZstdDecompressor,
    'lz4': lz4.frame.LZ4FrameDecompressor,
}


def decompress(compression: str, data: bytes, size: int) -> bytes:
    """Return up to ``size`` bytes of ``data`` decompressed, as far as that goes.

    Parameters
    ----------
    compression
        ``'zstd'``, ``'lz4'``, or empty for none; of anything else nothing can be read.
    data
        One frame, perhaps cut off or damaged.
    size
        Its size when decompressed. Memory is bounded by this and by what the frame gives.
    """
    size = min(size, LARGEST)
    if not compression:
        return data[:size]
    if compression not in DECOMPRESSORS:
        return b''
    decompressor = DECOMPRESSORS[compression]()
    content = bytearray()
    try:
        for start in range(0, len(data), PIECE):
            content += decompressor.decompress(data[start : start + PIECE], size - len(content))
            if decompressor.eof or len(content) == size:
                break
    except (zstd.ZstdError, RuntimeError, EOFError):  # lz4 raises RuntimeError
        pass
    return bytes(content)


def unpack(source: Path, target: Path) -> str:
    """Decompress a zstd file as far as that goes; return what is wrong with it, or nothing."""
    with source.open('rb') as packed, target.open('wb') as unpacked:
        try:
            for content in frames(packed, zstd.ZstdDecompressor):
                unpacked.write(content)
        except EOFError:
            return 'it is cut off'
        except (zstd.ZstdError, OSError):
            total = source.stat().st_size
            return f'damaged at about byte {packed.tell():,} of {total:,}'
    return ''


def gzip_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a gzip file.

    Raises
    ------
    EOFError, zlib.error
        It is cut off or damaged; all lines before that have been yielded.
    """
    rest = b''
    for content in frames(file, lambda: zlib.decompressobj(GZIP)):
        *lines, rest = (rest + content).split(b'\n')
        yield from (line + b'\n' for line in lines)
    if rest:
        yield rest


def frames(file: BinaryIO, new: Callable[[], Any]) -> Iterator[bytes]:
    """Yield the content of compressed frames that follow each other, piece by piece.

    Raises
    ------
    EOFError
        The last frame is cut off.
    """
    decompressor = new()
    begun = False
    for piece in iter(lambda: file.read(PIECE), b''):
        while piece:
            yield decompressor.decompress(piece)
            begun, piece = not decompressor.eof, decompressor.unused_data
            if decompressor.eof:
                decompressor = new()
    if begun:
        raise EOFError('it ends before its last frame does')
