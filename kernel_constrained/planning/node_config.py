# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What can be chosen of the planner node beside what decides its paths."""

import attrs

from kernel_constrained.configuration import group, parameter, same_as
from kernel_constrained.perception.config import PairingConfig
from kernel_constrained.perception.node_config import (
    DiagnosticsConfig,
    FilterNodeConfig,
    NodeMountingConfig,
    NodePoseConfig,
    ScanInputConfig,
)
from kernel_constrained.planning.config import PlannerConfig


@attrs.frozen
class PlannerPoseConfig(NodePoseConfig):
    """What the node subscribes to for the pose, topic ``pose``; its frame is that of the path."""

    max_age: float = parameter(
        0.05, 'how much older than a scan the newest pose may be, moved on at its speed, to plan '
        'at once; with an older one the scan waits for the next', unit='s', low=0.0, high=10.0,
    )  # fmt: skip


@attrs.frozen
class ReferenceConfig:
    """What is expected on topics ``reference`` and ``goal_pose``."""

    dimensions: int = parameter(
        2, 'coordinates of a path: 2 on the ground; 3 for what flies, among obstacles without end '
        'in height', low=2, high=3,
    )  # fmt: skip


@attrs.frozen
class PlannerPublishConfig:
    """What the node publishes; markers only while someone listens."""

    markers: bool = parameter(True, 'whether ~/markers is published', runtime=True)


@attrs.frozen
class PlannerDiagnosticsConfig:
    """When diagnostics speak up."""

    stale_after: float = same_as(attrs.fields(DiagnosticsConfig).stale_after)


@attrs.frozen
class PlannerNodeConfig(PlannerConfig):
    """All that can be chosen of the planner node."""

    autostart: bool = same_as(attrs.fields(FilterNodeConfig).autostart)
    executor: str = same_as(attrs.fields(FilterNodeConfig).executor)
    input: ScanInputConfig = group(ScanInputConfig)
    mounting: NodeMountingConfig = group(NodeMountingConfig)
    pose: PlannerPoseConfig = group(PlannerPoseConfig)
    pairing: PairingConfig = group(PairingConfig)
    reference: ReferenceConfig = group(ReferenceConfig)
    publish: PlannerPublishConfig = group(PlannerPublishConfig)
    diagnostics: PlannerDiagnosticsConfig = group(PlannerDiagnosticsConfig)
