# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Qualities of service by name; each can be overridden by parameter (``qos_overrides``)."""

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions, QoSPolicyKind

# Seconds after one side of a connection has found the other in which the other finds it too.
SETTLE = 0.5

# What sensors are published with and subscribed to: better lost than late.
SENSOR_DATA = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=10, reliability=ReliabilityPolicy.BEST_EFFORT
)

# The newest of what sensors publish, for what has no use for any before it.
NEWEST = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=1, reliability=ReliabilityPolicy.BEST_EFFORT
)

# Results, and everything replayed: nothing lost while the subscriber keeps up.
RESULTS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=10, reliability=ReliabilityPolicy.RELIABLE
)

# Answers to a replay in lockstep: kept for one whose discovery is slow.
ANSWERS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=10,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)

# What is recorded: deep enough for a recorder that falls behind for a while.
RECORDING = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=1000, reliability=ReliabilityPolicy.RELIABLE
)

# The same, kept for subscribers that come later: maps, static transforms.
LATCHED = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1000,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)

# The newest of them.
MAP = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)


def overridable() -> QoSOverridingOptions:
    """Let parameters ``qos_overrides.TOPIC.{subscription,publisher}.*`` override a profile."""
    return QoSOverridingOptions(
        [
            QoSPolicyKind.HISTORY,
            QoSPolicyKind.DEPTH,
            QoSPolicyKind.RELIABILITY,
            QoSPolicyKind.DURABILITY,
        ]
    )
