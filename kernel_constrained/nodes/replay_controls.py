# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The services of a replay, named as those of rosbag2's player."""

from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from std_srvs.srv import Trigger

from kernel_constrained.bags.playback import Refused


def offer(node: Node, actions: Mapping[str, Callable[[], str]]) -> None:
    """Offer each action as the service ``~/name``, of type std_srvs/Trigger.

    An action returns what it has done in words, or raises :class:`Refused`.
    """
    for name, action in actions.items():
        node.create_service(Trigger, f'~/{name}', _answering(action))


def _answering(action: Callable[[], str]) -> Callable[[Any, Any], Any]:
    def answer(_: Any, response: Any) -> Any:
        try:
            response.message, response.success = action(), True
        except Refused as refusal:
            response.message, response.success = str(refusal), False
        return response

    return answer
