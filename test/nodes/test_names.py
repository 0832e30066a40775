# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Attributes of our nodes are none that rclpy's nodes have: Python would not say so."""

import ast
from pathlib import Path

import rclpy
from rclpy.lifecycle import LifecycleNode

NODES = Path(__file__).resolve().parents[2] / 'kernel_constrained' / 'nodes'


def assigned(path):
    """Yield the attributes that the node classes of a file assign to themselves."""
    for cls in ast.walk(ast.parse(path.read_text())):
        if isinstance(cls, ast.ClassDef) and cls.name.endswith('Node'):
            for node in ast.walk(cls):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.ctx, ast.Store)
                    and isinstance(node.value, ast.Name)
                    and node.value.id == 'self'
                ):
                    yield node.attr


def test_no_attribute_of_a_node_hides_one_of_rclpy(domain):
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    plain = LifecycleNode('plain', context=context)
    theirs = set(vars(plain)) | set(dir(plain))
    plain.destroy_node()
    context.try_shutdown()
    ours = {(path.name, name) for path in sorted(NODES.glob('*.py')) for name in assigned(path)}
    assert len(ours) > 30
    assert {(file, name) for file, name in ours if name in theirs} == set()
