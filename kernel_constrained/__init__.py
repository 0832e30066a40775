# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Constrained online learning with kernels for robots: filter, planner and replay nodes."""

__version__ = '0.1.0'
