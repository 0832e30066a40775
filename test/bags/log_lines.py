# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Lines of robot logs, made for the tests."""

import numpy as np


def flaser(stamp, ranges, pose=(1.0, 2.0, 0.5)):
    """Return one FLASER line; ``stamp`` is text or a number of seconds."""
    numbers = ' '.join(f'{value:g}' for value in ranges)
    x, y, yaw = pose
    return f'FLASER {len(ranges)} {numbers} {x} {y} {yaw} {x} {y} {yaw} {stamp} host {stamp}\n'


def robotlaser(stamp, ranges, laser=(1.0, 2.0, 0.5), robot=(1.0, 2.0, 0.5), range_max=50.0):
    """Return one ROBOTLASER1 line over 180 degrees with two remission values."""
    beams = len(ranges)
    header = f'0 -1.570796 3.141593 {np.pi / beams:.6f} {range_max} 0.1 0 {beams}'
    numbers = ' '.join(f'{value:g}' for value in ranges)
    poses = ' '.join(str(value) for value in (*laser, *robot))
    return f'ROBOTLASER1 {header} {numbers} 2 7 8 {poses} 0 0 0 0 0 {stamp} host 1.0\n'
