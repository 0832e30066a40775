# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The ROS 2 nodes: messages in, core called, messages out. The only folder that knows rclpy."""
