# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Configuration classes as node parameters."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from kernel_constrained.configuration import (
    allowed,
    checked,
    ConfigurationError,
    fields,
    FOREIGN,
    from_flat,
    read_parameter_file,
)
from kernel_constrained.nodes.services import reason

T = TypeVar('T')


def descriptor(metadata: Mapping[str, Any]) -> ParameterDescriptor:
    """Describe a field as ``ros2 param describe`` shows it.

    Types are dynamic so that an integer is taken where a number is wanted; :func:`checked`
    decides.
    """
    unit = f' [{metadata["unit"]}]' if metadata['unit'] else ''
    result = ParameterDescriptor(
        description=metadata['description'] + unit,
        additional_constraints=allowed(metadata),
        dynamic_typing=True,
        read_only=not metadata['runtime'],
    )
    low, high = metadata['low'], metadata['high']
    if math.isfinite(low) and math.isfinite(high):
        if metadata['type'] is int:
            result.integer_range = [IntegerRange(from_value=low, to_value=high, step=1)]
        else:
            result.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return result


def parameter_files(arguments: Sequence[str]) -> list[str]:
    """Return the parameter files that a command line names."""
    return [path for option, path in pairwise(arguments) if option == '--params-file']


def declare(node: Node, cls: type[T], command_line: bool = True) -> T:
    """Declare every parameter of a configuration class and return the configuration.

    Parameters
    ----------
    node
        Whose parameters they are.
    cls
        The configuration class.
    command_line
        Whether the command line of the process is the node's; not with
        ``use_global_arguments=False``.

    Raises
    ------
    ConfigurationError
        With a line for each override that is unknown or not allowed, or where a parameter file
        on the command line holds nothing for this node: it would be ignored silently.
    """
    for path in parameter_files(sys.argv if command_line else ()):
        read_parameter_file(path, node.get_fully_qualified_name())
    overrides = node._parameter_overrides
    lists = {name for name, field in fields(cls) if field.metadata['type'] is tuple}
    given = {
        # of `[]` on a command line rclpy makes a parameter that is not set
        name: () if parameter.value is None and name in lists else parameter.value
        for name, parameter in overrides.items()
        if not name.startswith(FOREIGN)
    }
    config = from_flat(cls, given)
    for name, field in fields(cls):
        value = checked(given.get(name, field.default), name, field.metadata)
        if name in overrides:
            overrides[name] = Parameter(name, value=value)
        node.declare_parameter(name, value, descriptor(field.metadata))
    return config


def change_at_runtime(node: Node, cls: type, apply: Callable[[dict[str, Any]], None]) -> None:
    """Let running parameters change: all of a request validated first, then applied at once.

    ``apply`` takes {dotted name: value} and raises :class:`ConfigurationError` to refuse.
    """
    known = dict(fields(cls))

    def callback(parameters: list[Parameter]) -> SetParametersResult:
        values: dict[str, Any] = {}
        try:
            for parameter in parameters:
                if parameter.name not in known:
                    continue
                metadata = known[parameter.name].metadata
                values[parameter.name] = checked(parameter.value, parameter.name, metadata)
                if not metadata['runtime']:
                    raise ConfigurationError(f'{parameter.name} cannot change while running')
            if values:
                apply(values)
        except Exception as error:
            return SetParametersResult(successful=False, reason=reason(node, error))
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(callback)
