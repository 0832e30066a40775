# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Every command of the package as ``python -m kernel_constrained COMMAND``."""

import gc
import importlib
import os
import signal
import sys
from types import ModuleType

# Command: (module with main(), what it does).
COMMANDS = {
    'filter_node': ('nodes.filter_node', 'ROS node: learns and publishes estimates from scans'),
    'planner_node': ('nodes.planner_node', 'ROS node: plans paths that are proven free'),
    'classifier_node': ('nodes.classifier_node', 'ROS node: learns places from scans and labels'),
    'replay_node': ('nodes.replay_node', 'ROS node: plays bags, robot logs, the LIDAR table'),
    'record_node': ('nodes.record_node', 'ROS node: records topics to a rosbag2 (mcap)'),
    'simulate': ('nodes.simulator_node', 'ROS node: a robot with a range finder in a made world'),
    'evaluate': ('offline.evaluate', 'run the filter over recordings; prints and writes figures'),
    'sweep': ('offline.sweep', 'many settings over many recordings: which one is best'),
    'convert': ('offline.convert', 'write any recording as a rosbag2'),
    'reproduce': (
        'offline.reproduce',
        'the experiments of the paper, what it says beside measured',
    ),
    'parameters': ('offline.parameters', 'print the page of all parameters'),
    'demo': ('offline.demo', 'replay data through the nodes; prints a table, writes figures'),
}


def usage() -> str:
    """One line for each command."""
    lines = [f'  {name:<15} {text}' for name, (_, text) in COMMANDS.items()]
    return '\n'.join(
        ['usage: python -m kernel_constrained COMMAND [ARGUMENTS]', '', *lines, '',
         'COMMAND --help says more of a command.']
    )  # fmt: skip


def imported(name: str) -> ModuleType:
    """Import a module of the package; a Ctrl-C meanwhile is kept for when it is done.

    Some of what is imported swallows exceptions, and with one the request to end.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    gc.disable()  # what is imported stays: looking for garbage in it takes a tenth of the time
    try:
        module = importlib.import_module(f'kernel_constrained.{name}')
        gc.freeze()
    finally:
        gc.enable()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    return module


def main() -> int:
    """Run the command named first with the arguments after it."""
    name = sys.argv[1] if len(sys.argv) > 1 else ''
    if name in ('', '-h', '--help'):
        print(usage())
        return 0 if name else 2
    if name not in COMMANDS:
        print(f'{name!r} is no command\n{usage()}', file=sys.stderr)
        return 2
    del sys.argv[1]
    try:
        return int(imported(COMMANDS[name][0]).main() or 0)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read the output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == '__main__':
    sys.exit(main())
