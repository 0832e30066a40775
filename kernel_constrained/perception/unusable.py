# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Why an input was not used."""


class Unusable(ValueError):
    """An input that cannot be used; ``reason`` is what it is counted and shown under."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
