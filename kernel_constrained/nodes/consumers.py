# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Whom a replay plays to."""

import time
from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from kernel_constrained.bags.replay import ReplayConfig
from kernel_constrained.nodes.qos import SETTLE


class Consumers:
    """Those who listen to what is played, and answer in lockstep.

    Parameters
    ----------
    node
        Whose topics are played.
    outputs
        Publishers by topic of the recording.
    config
        How many to wait for, and for how long.
    """

    def __init__(self, node: Node, outputs: Mapping[str, Any], config: ReplayConfig) -> None:
        self._node = node
        self._outputs = outputs
        self._config = config
        self._begun = time.monotonic()
        self._before: tuple[dict[str, int], int] = ({}, 0)
        self._since = self._begun

    def counts(self) -> dict[str, int]:
        """Return the number of subscriptions by topic."""
        return {name: p.get_subscription_count() for name, p in self._outputs.items()}

    def ready(self) -> bool:
        """Whether to begin: consumers are there and their number has settled, or time is over.

        In lockstep every topic needs them: a subscription that is discovered late would miss
        messages, and the result would depend on chance.

        Raises
        ------
        TimeoutError
            Where in lockstep nobody has come who listens and answers.
        """
        now = time.monotonic()
        topic = self._config.answer_topic
        counts = self.counts()
        answers = self._node.count_publishers(self._node.resolve_topic_name(topic))
        if (counts, answers) != self._before:
            self._before, self._since = (counts, answers), now
        elif now - self._since >= SETTLE and self._enough(counts, answers):
            return True
        if now - self._begun <= self._config.wait_timeout:
            return False
        if self._config.lockstep and not (any(counts.values()) and answers):
            raise TimeoutError(
                f'no consumer after {self._config.wait_timeout:g} s: '
                f'{sum(counts.values())} subscriptions, '
                f'{answers or "nobody"} to answer on {topic}'
            )
        self._say_who_is_missing(counts)
        return True

    def _enough(self, counts: Mapping[str, int], answers: int) -> bool:
        there = [count >= self._config.subscribers for count in counts.values()]
        return all(there) and answers > 0 if self._config.lockstep else any(there)

    def _say_who_is_missing(self, counts: Mapping[str, int]) -> None:
        few = [
            f'{name} ({count})' for name, count in counts.items()
            if count < self._config.subscribers
        ]  # fmt: skip
        if few:
            self._node.get_logger().warning(
                f'nobody listens, or fewer than the parameter subscribers says '
                f'({self._config.subscribers}), to {", ".join(few)}: playing all the same'
            )
