# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Model files: a JSON header and arrays in one npz, replaced whole or not at all."""

import glob
import json
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

VERSION = 3

# How the name ends of a file that is being written.
PART = '.part'

# Seconds after which a file that was begun to be written is one whose writer was killed.
ABANDONED_AFTER = 60.0


class ModelFileError(ValueError):
    """A file that is no model, or not one this version can use; the message says which."""


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _remove_leftovers(path: Path) -> None:
    """Remove what writers of ``path`` left that were killed; a young file may be being written."""
    for leftover in path.parent.glob(f'.{glob.escape(path.name)}.*{PART}'):
        with suppress(OSError):
            if time.time() - leftover.stat().st_mtime > ABANDONED_AFTER:
                leftover.unlink()


def write(
    path: str | Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Write a model of ``kind``; whoever reads meanwhile sees the old file or the new one."""
    path = Path(path)
    text = json.dumps({'kind': kind, 'version': VERSION, **header})
    _remove_leftovers(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}.', suffix=PART)
    try:
        with os.fdopen(handle, 'wb') as file:
            np.savez(file, allow_pickle=False, header=np.array(text), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read (header, arrays) of a model of ``kind``.

    Raises
    ------
    ModelFileError
        Where the file is missing, damaged, of another kind or from a newer version.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header: dict[str, Any] = json.loads(str(arrays.pop('header')))
        if not isinstance(header, dict):
            raise TypeError('its header is no JSON object')
    except FileNotFoundError as error:
        raise ModelFileError(f'{path} does not exist') from error
    except Exception as error:  # of a damaged file zipfile, numpy and its parser raise many kinds
        raise ModelFileError(f'{path} is no model file or is damaged ({error})') from error
    if header.get('kind') != kind:
        raise ModelFileError(f'{path} holds a {header.get("kind")}, expected a {kind}')
    if header.get('version') != VERSION:
        raise ModelFileError(
            f'{path} has version {header.get("version")}, this package reads {VERSION}'
        )
    return header, arrays
