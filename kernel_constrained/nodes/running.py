# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Running a node as a process, from its first parameter to its exit code."""

import signal
import sys
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.signals import SignalHandlerOptions

from kernel_constrained.configuration import ConfigurationError


def make_executor(kind: str) -> Executor:
    """Make the executor of a name: ``single``, or ``events`` where rclpy has it."""
    if kind == 'events':
        try:
            from rclpy.experimental import EventsExecutor
        except ImportError:
            get_logger('executor').warning('this rclpy has no EventsExecutor, using single')
        else:
            return EventsExecutor()
    return SingleThreadedExecutor()


def run(make_node: Callable[[], Any], args: list[str] | None = None) -> int:
    """Run a node until it is ``finished`` or a signal ends it; return the exit code.

    SIGINT and SIGTERM end it cleanly through ``node.close()``, with code 0 or the node's own
    ``exit_code``; a wrong parameter gives one message and code 2.
    """
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: signals.append(received))
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    node = None
    try:
        node = make_node()
        executor = make_executor(node.executor_kind)
        executor.add_node(node)
        while rclpy.ok() and not signals and not getattr(node, 'finished', False):
            executor.spin_once(timeout_sec=0.1)
        executor.remove_node(node)
    except ConfigurationError as error:
        print(f'error: {error}', file=sys.stderr)
        return 2
    except ExternalShutdownException:
        pass
    finally:
        if node is not None:
            node.close()
            node.destroy_node()
        rclpy.try_shutdown()
    return int(getattr(node, 'exit_code', 0))
