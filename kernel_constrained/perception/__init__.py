# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""From scans and trusted poses to the learner's inputs and targets, without ROS."""
