# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Paths through what scans show: obstacles, seeds, proofs and the planner. No ROS in here."""
