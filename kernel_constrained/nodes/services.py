# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Services that answer, whatever becomes of what they are asked for."""

import traceback
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from std_srvs.srv import Trigger


def offer(node: Node, actions: Mapping[str, Callable[[], str]]) -> list[Any]:
    """Offer each action as the service ``~/name``, of type std_srvs/Trigger; return them.

    Actions are as :func:`answering` has them, without a request.
    """
    return [
        node.create_service(Trigger, f'~/{name}', answering(node, _without_request(action)))
        for name, action in actions.items()
    ]


def _without_request(action: Callable[[], str]) -> Callable[[Any], str]:
    return lambda _: action()


def answering(node: Node, action: Callable[[Any], str]) -> Callable[[Any, Any], Any]:
    """Make a service callback that answers with what the action says or why it failed.

    An action takes the request, and raises OSError or ValueError to refuse. What else it raises
    is a fault of ours, and is logged; rclpy would leave who asked without an answer.
    """

    def answer(request: Any, response: Any) -> Any:
        try:
            response.message, response.success = action(request), True
        except Exception as error:
            response.message, response.success = reason(node, error), False
        return response

    return answer


def reason(node: Node, error: Exception) -> str:
    """Say in a line why something failed; a fault of ours is logged by its traceback."""
    if isinstance(error, OSError | ValueError):
        return str(error)
    node.get_logger().error(f'a callback failed:\n{traceback.format_exc()}')
    return f'internal error {type(error).__name__}: {error}'
