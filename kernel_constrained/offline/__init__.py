# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Command-line work on recordings and data sets; no middleware."""
