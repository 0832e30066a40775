# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What can be chosen of a node that learns from scans, beside what decides its estimates."""

import attrs

from kernel_constrained.configuration import ConfigurationError, group, parameter
from kernel_constrained.perception.config import FilterConfig, MountingConfig, PoseConfig


@attrs.frozen
class ScanInputConfig:
    """What is expected on topic ``scan``."""

    frame_id: str = parameter('', "frame of the sensor, empty for the first message's")


@attrs.frozen
class InputConfig(ScanInputConfig):
    """What the node subscribes to for scans: topic ``scan``, or ``range``."""

    type: str = parameter('scan', 'sensor_msgs/LaserScan or Range', choices=('scan', 'range'))


@attrs.frozen
class NodePoseConfig(PoseConfig):
    """What the node subscribes to for the trusted pose: topic ``pose``."""

    type: str = parameter(
        'PoseStamped',
        'message type of the trusted pose',
        choices=('PoseStamped', 'PoseWithCovarianceStamped', 'Odometry'),
    )
    frame_id: str = parameter('', "frame of the trusted pose, empty for the first message's")


@attrs.frozen
class NodeMountingConfig(MountingConfig):
    """Where the node learns how the sensor is mounted."""

    source: str = parameter(
        'parameters', 'mounting by these parameters, or by TF (needs tf2_ros)',
        choices=('parameters', 'tf'),
    )  # fmt: skip
    base_frame: str = parameter('base_link', "the robot's frame")


@attrs.frozen
class ModelConfig:
    """The model file."""

    path: str = parameter('', 'model file of ~/save, ~/load and of what follows, empty for none')
    load_at_start: str = parameter(
        'never', 'whether to begin with the model in the file',
        choices=('never', 'if_present', 'always'),
    )  # fmt: skip
    save_at_end: bool = parameter(False, 'whether to save the model when the node ends')
    autosave_period: float = parameter(
        0.0, 'how often the model is saved while the node runs, 0 for never', unit='s', low=0.0,
        high=1e9,
    )  # fmt: skip

    @property
    def saves(self) -> bool:
        """Whether the model is saved without being asked for."""
        return self.save_at_end or self.autosave_period > 0.0

    def __attrs_post_init__(self) -> None:
        """Refuse to load or save without a file."""
        if (self.load_at_start != 'never' or self.saves) and not self.path:
            raise ConfigurationError(
                'path is empty: name the model file that is to be loaded or saved '
                f'(load_at_start {self.load_at_start}, save_at_end {self.save_at_end}, '
                f'autosave_period {self.autosave_period:g})'
            )


@attrs.frozen
class PublishConfig:
    """What the node publishes; figures only while someone listens."""

    estimate: bool = parameter(True, 'whether estimates are published', runtime=True)
    figures: bool = parameter(
        True, 'whether ~/loss, ~/cvar and the other figures are published', runtime=True
    )


@attrs.frozen
class DiagnosticsConfig:
    """When diagnostics speak up."""

    stale_after: float = parameter(
        5.0, 'seconds without input until STALE', unit='s', low=0.0, runtime=True
    )
    error_after: float = parameter(
        10.0, 'seconds of violation until ERROR', unit='s', low=0.0, runtime=True
    )


@attrs.frozen
class FilterNodeConfig(FilterConfig):
    """All that can be chosen of the filter node."""

    frame_id: str = parameter(
        '', "frame of the estimate; empty for the trusted pose's, of a motion for "
        "mounting.base_frame, or the scan's where the mounting is zero",
    )  # fmt: skip
    autostart: bool = parameter(True, 'whether the node configures and activates itself')
    executor: str = parameter(
        'single',
        'rclpy executor; events takes less of the processor',
        choices=('single', 'events'),
    )
    input: InputConfig = group(InputConfig)
    mounting: NodeMountingConfig = group(NodeMountingConfig)
    pose: NodePoseConfig = group(NodePoseConfig)
    model: ModelConfig = group(ModelConfig)
    publish: PublishConfig = group(PublishConfig)
    diagnostics: DiagnosticsConfig = group(DiagnosticsConfig)

    def __attrs_post_init__(self) -> None:
        """Refuse features that the input cannot give."""
        if (self.input.type == 'range') != (self.features.type == 'range'):
            raise ConfigurationError(
                f'input.type {self.input.type} does not go with features.type '
                f'{self.features.type}: a range has features of type range, a scan the others'
            )
