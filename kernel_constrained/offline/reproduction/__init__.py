# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The experiments of the paper, a module each: ``run(output)`` draws and returns its table."""
