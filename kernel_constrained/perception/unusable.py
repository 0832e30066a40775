# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Why an input was not used."""


class Unusable(ValueError):
    """An input that cannot be used.

    Parameters
    ----------
    reason
        What it is counted and shown under: one of a few.
    detail
        What was found, for the person who looks for the cause.
    """

    def __init__(self, reason: str, detail: str = '') -> None:
        super().__init__(f'{reason} ({detail})' if detail else reason)
        self.reason = reason
