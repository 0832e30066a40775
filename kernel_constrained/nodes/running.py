# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Running a node as a process, from its first parameter to its exit code."""

import atexit
import faulthandler
import math
import os
import signal
import sys
import textwrap
import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.signals import SignalHandlerOptions

from kernel_constrained.configuration import ConfigurationError, fields, read_yaml
from kernel_constrained.nodes.parameters import parameter_files


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


def help_text(name: str, purpose: str, config_class: type) -> str:
    """Say on one screen what a node is for and what its parameters are called."""
    groups = defaultdict(list)
    for parameter, _ in fields(config_class):
        group, _, last = parameter.rpartition('.')
        groups[group].append(last)
    lines = [
        f'usage: {name} [--ros-args --params-file FILE -p PARAMETER:=VALUE -r FROM:=TO ...]',
        '',
        purpose,
        '',
        f'parameters (`ros2 param describe {name} PARAMETER` says more of each):',
    ]
    for group, names in groups.items():
        prefix = f'  {group}.' if group else '  '
        text = prefix + ('{' + ', '.join(names) + '}' if group else ', '.join(names))
        lines += textwrap.wrap(text, 96, subsequent_indent='    ', break_on_hyphens=False)
    return '\n'.join(lines)


STDERR = 2  # by number: whoever captures what Python prints has put something else in its place

# A Ctrl-C may reach a node twice, by itself and passed on by launch: it is one request to end.
SAME_REQUEST = 1.0  # s


def handle_by(handler: Any) -> None:
    """Let SIGINT and SIGTERM come to a handler."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


class Signals:
    """SIGINT and SIGTERM: the first is noted and acted on between callbacks, a later one at once.

    Nothing is interrupted half-way, not even compilation: an exception raised inside it can be
    swallowed by the compiler's own callbacks. What comes within a second of the first is taken
    for the same request, and what comes while the interpreter ends is too late to change anything:
    without that the exit code would be that of a process that was killed.

    Attributes
    ----------
    received : bool
        Whether one has come.
    """

    def __init__(self) -> None:
        self.received = False
        self._first = math.inf
        handle_by(self._receive)
        atexit.register(handle_by, signal.SIG_IGN)

    def _receive(self, *_: Any) -> None:
        now = time.monotonic()
        if now - self._first > SAME_REQUEST:
            os._exit(130)
        self._first = min(self._first, now)
        self.received = True


def spin_once(executor: Executor, node: Any) -> None:
    """Let one callback run; what it raises is logged, and the node goes on.

    Our own callbacks raise nothing; rclpy's do, in Jazzy the one for an invalid transition.
    """
    try:
        executor.spin_once(timeout_sec=0.1)
    except (ConfigurationError, ExternalShutdownException):
        raise
    except Exception:
        node.get_logger().error(f'a callback failed:\n{traceback.format_exc()}')


def start_middleware(args: Any) -> None:
    """Initialise rclpy; what it cannot read on the command line is a configuration error.

    Parameter files are looked at first: what rclpy says of one that it cannot read is no help.
    """
    for path in parameter_files(sys.argv if args is None else args):
        try:
            read_yaml(path)
        except OSError as error:
            raise ConfigurationError(f'{path} cannot be read: {error.strerror}') from error
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:
        raise ConfigurationError(str(error).strip()) from error


def run(
    make_node: Callable[[], Any], name: str, purpose: str, config_class: type, args: Any = None
) -> int:
    """Run a node until it is ``finished`` or a signal ends it; return the exit code.

    SIGINT and SIGTERM end it cleanly through ``node.close()``, with code 0 or the node's own
    ``exit_code``; a wrong parameter gives one message and code 2. Where it crashes, in what it is
    built on, the log says at which line.
    """
    if {'-h', '--help'} & set(sys.argv[1:] if args is None else args):
        print(help_text(name, purpose, config_class))
        return 0
    faulthandler.enable(STDERR)
    signals = Signals()
    node = None
    try:
        start_middleware(args)
        node = make_node()
        executor = make_executor(node.executor_kind)
        executor.add_node(node)
        while rclpy.ok() and not signals.received and not getattr(node, 'finished', False):
            spin_once(executor, node)
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
