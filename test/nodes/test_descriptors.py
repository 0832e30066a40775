# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What ``ros2 param describe`` says of every parameter of every node."""

import pytest
import rclpy
from rcl_interfaces.msg import ParameterType
from rclpy.node import Node

from kernel_constrained.configuration import fields
from kernel_constrained.nodes.parameters import declare
from kernel_constrained.offline.parameters import NODES

TYPES = {
    bool: ParameterType.PARAMETER_BOOL,
    int: ParameterType.PARAMETER_INTEGER,
    float: ParameterType.PARAMETER_DOUBLE,
    str: ParameterType.PARAMETER_STRING,
    tuple: ParameterType.PARAMETER_STRING_ARRAY,
}


@pytest.mark.parametrize('name', NODES)
def test_every_parameter_has_a_description_its_type_and_what_is_allowed(domain, name):
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    node = Node(name, context=context, use_global_arguments=False)
    declare(node, NODES[name], command_line=False)
    for parameter, field in fields(NODES[name]):
        described = node.describe_parameter(parameter)
        assert described.description, parameter
        assert described.additional_constraints, parameter
        if field.default != ():  # of an empty list rclpy makes bytes
            assert described.type == TYPES[field.metadata['type']], parameter
    node.destroy_node()
    context.try_shutdown()
