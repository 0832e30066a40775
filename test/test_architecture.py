# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Arrows point one way: nodes and offline to bags, perception, planning, and these to core.

And in core and perception only what numba compiles goes without types.
"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / 'kernel_constrained'

# Each folder may import from itself, from the modules at the root, and from these.
ALLOWED = {
    'core': set(),
    'data': set(),
    'bags': {'core', 'data'},
    'perception': {'core'},
    'planning': {'core', 'perception'},
    'offline': {'core', 'data', 'bags', 'perception', 'planning'},
    'nodes': {'core', 'data', 'bags', 'perception', 'planning'},
}
ROS = ('rclpy', '_msgs', 'std_srvs', 'rcl_interfaces', 'launch')


def imports(path):
    """Return the modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f'{path}: relative import'
            yield node.module
            yield from (f'{node.module}.{alias.name}' for alias in node.names)


def test_folders_import_only_what_lies_below_them():
    checked = 0
    for folder, allowed in ALLOWED.items():
        for path in sorted((PACKAGE / folder).glob('**/*.py')):
            for module in imports(path):
                parts = module.split('.')
                if parts[0] == 'kernel_constrained' and len(parts) > 1 and parts[1] in ALLOWED:
                    assert parts[1] in allowed | {folder}, f'{path} imports {module}'
                    checked += 1
    assert checked > 50


def test_every_folder_is_known_here():
    folders = {path.parent.name for path in PACKAGE.glob('*/__init__.py')}
    assert folders <= set(ALLOWED)


def test_only_nodes_know_ros():
    for path in sorted(PACKAGE.glob('**/*.py')):
        if path.parent.name != 'nodes':
            for module in imports(path):
                assert not any(name in module.split('.')[0] for name in ROS), f'{path}: {module}'


def without_types(path):
    """Return the functions of a file, apart from compiled ones, that have no types."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.returns is None:
            decorators = {getattr(one, 'id', '') for one in node.decorator_list}
            if not decorators & {'compiled', 'compiled_allocating'}:
                yield f'{path.name}: {node.name}'


def test_only_compiled_functions_of_core_and_perception_have_no_types():
    for folder in ('core', 'perception'):
        for path in sorted((PACKAGE / folder).glob('**/*.py')):
            assert not list(without_types(path))
