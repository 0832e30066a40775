# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What can be chosen of a recorder."""

import attrs

from kernel_constrained.configuration import parameter


@attrs.frozen
class RecordConfig:
    """All that can be chosen of the record node."""

    destination: str = parameter('recording.mcap', 'rosbag2 to write: .mcap, .db3 or a folder')
    topics: tuple[str, ...] = parameter((), 'topics to record')
    answer_topic: str = parameter(
        '', "consumer's topic to pass on to ~/processed once it is recorded, empty for none"
    )
    executor: str = parameter(
        'single',
        'rclpy executor; events takes less of the processor',
        choices=('single', 'events'),
    )
