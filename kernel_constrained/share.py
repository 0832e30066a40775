# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Where the launch and configuration files are: installed, or in a clone."""

import sys
from pathlib import Path


def share_folder() -> Path:
    """Return the folder that holds ``config/`` and ``launch/``.

    That of an ament workspace where there is one, else that of the environment the package is
    installed in, else the clone's.

    Raises
    ------
    FileNotFoundError
        Where there is none of them.
    """
    candidates = [
        Path(sys.prefix) / 'share' / 'kernel_constrained',
        Path(__file__).resolve().parent.parent,
    ]
    try:
        from ament_index_python.packages import get_package_share_directory

        candidates.insert(0, Path(get_package_share_directory('kernel_constrained')))
    except (ImportError, LookupError, ValueError, OSError):
        pass  # no workspace: the other two are left
    for folder in candidates:
        if (folder / 'config').is_dir():
            return folder
    raise FileNotFoundError(f'no config/ in any of {", ".join(map(str, candidates))}')
