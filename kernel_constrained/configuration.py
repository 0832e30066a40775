# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Configuration with one source: attrs classes whose fields say what they mean and allow.

A component's configuration is an attrs class whose fields are made by :func:`parameter`, or are
configurations themselves (:func:`group`). Node parameters and their descriptors, the YAML loader
of the offline commands and the validation messages all come from these fields.
"""

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast, TypeVar

import attrs
import yaml

T = TypeVar('T')

TYPES = {
    bool: 'true or false', int: 'an integer', float: 'a number', str: 'a string',
    tuple: 'a list of strings',
}  # fmt: skip


# Beginnings of the names of ROS's own parameters, which a file may hold beside ours.
FOREIGN = ('use_sim_time', 'qos_overrides.', 'start_type_description_service')


class ConfigurationError(ValueError):
    """A configuration that cannot be used; the message says which value and what is allowed."""


def parameter(
    default: Any,
    description: str,
    *,
    unit: str = '',
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
    runtime: bool = False,
) -> Any:
    """Make a field of a configuration class.

    Parameters
    ----------
    default
        Its value where nothing is given; its type (bool, int, float, str, or tuple of str) is the
        field's.
    description
        One line that tells a person what it does.
    unit
        SI unit of the value, empty for a pure number.
    low, high
        Smallest and largest value allowed, both included.
    choices
        The values allowed of a string.
    runtime
        Whether a running node may change it.
    """
    metadata = {
        'type': type(default), 'description': description, 'unit': unit,
        'low': low, 'high': high, 'choices': choices, 'runtime': runtime,
    }  # fmt: skip

    def convert(value: Any) -> Any:
        try:
            return checked(value, '', metadata)
        except ConfigurationError:
            return value  # for the validator, which knows the name

    def validate(_: Any, field: Any, value: Any) -> None:
        checked(value, field.name, metadata)

    return attrs.field(default=default, converter=convert, validator=validate, metadata=metadata)


def same_as(field: 'attrs.Attribute[Any]', default: Any = None) -> Any:
    """Make a field that means and allows what another one does, with a default of its own."""
    metadata = {k: v for k, v in field.metadata.items() if k != 'type'}
    return parameter(field.default if default is None else default, **metadata)


def group(cls: type) -> Any:
    """Make a field that holds another configuration class, by default with its own defaults."""
    return attrs.field(factory=cls, metadata={'group': cls})


def allowed(metadata: Mapping[str, Any]) -> str:
    """Say in words what a field takes, e.g. ``a number from 0 to 1``."""
    if metadata['choices']:
        return 'one of ' + ', '.join(metadata['choices'])
    words = TYPES[metadata['type']]
    low, high = metadata['low'], metadata['high']
    if math.isfinite(low) and math.isfinite(high):
        return f'{words} from {low:g} to {high:g}'
    if math.isfinite(low):
        return f'{words} of at least {low:g}'
    if math.isfinite(high):
        return f'{words} of at most {high:g}'
    return words


def checked(value: Any, name: str, metadata: Mapping[str, Any]) -> Any:
    """Return ``value`` as the field's type, or raise :class:`ConfigurationError`.

    Integers are taken where a number is wanted, and so are the strings that YAML makes of
    ``1e-3``; NaN never is.
    """
    kind = metadata['type']
    result: Any = None
    if kind is bool or kind is str:
        result = value if isinstance(value, kind) else None
    elif kind is tuple:
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            result = tuple(value)
    elif not isinstance(value, bool):
        try:
            number = float(value)
            if kind is float:
                result = number
            elif number == math.floor(number):
                result = value if type(value) is int else int(number)
        except (TypeError, ValueError, OverflowError):
            result = None
    fits = result is not None
    if fits and kind in (int, float):
        fits = metadata['low'] <= result <= metadata['high']
    if fits and metadata['choices']:
        fits = result in metadata['choices']
    if not fits:
        raise ConfigurationError(f'{name} must be {allowed(metadata)} (got {value!r})')
    return result


def fields(cls: type, prefix: str = '') -> Iterator[tuple[str, 'attrs.Attribute[Any]']]:
    """Yield (dotted name, attrs field) of every parameter of a configuration class."""
    for field in attrs.fields(cls):
        if 'group' in field.metadata:
            yield from fields(field.metadata['group'], f'{prefix}{field.name}.')
        elif 'type' in field.metadata:
            yield prefix + field.name, field


def flatten(config: Any, prefix: str = '') -> dict[str, Any]:
    """Return {dotted name: value} of a configuration object."""
    values: dict[str, Any] = {}
    for field in attrs.fields(type(config)):
        value = getattr(config, field.name)
        if 'group' in field.metadata:
            values.update(flatten(value, f'{prefix}{field.name}.'))
        elif 'type' in field.metadata:
            values[prefix + field.name] = value
    return values


def from_flat(cls: type[T], values: Mapping[str, Any], prefix: str = '') -> T:
    """Build a configuration from {dotted name: value}; what is not given keeps its default.

    Raises
    ------
    ConfigurationError
        With all that is wrong, a line each: unknown names and values that are not allowed.
    """
    problems = unknown_names(cls, values) if not prefix else []
    arguments: dict[str, Any] = {}
    for field in attrs.fields(cast(Any, cls)):
        name = prefix + field.name
        try:
            if 'group' in field.metadata:
                arguments[field.name] = from_flat(field.metadata['group'], values, name + '.')
            elif 'type' in field.metadata and name in values:
                arguments[field.name] = checked(values[name], name, field.metadata)
        except ConfigurationError as error:
            problems.append(str(error))
    if not problems:
        try:
            return cls(**arguments)
        except ConfigurationError as error:
            problems.append(f'{prefix[:-1]}: {error}' if prefix else str(error))
    raise ConfigurationError('\n'.join(problems))


def unknown_names(cls: type, values: Mapping[str, Any]) -> list[str]:
    """Return a line for each name that the configuration class does not have."""
    known = [name for name, _ in fields(cls)]
    lines = []
    for name in values:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f', did you mean {close[0]}?' if close else ''
            lines.append(f'{name} is not a parameter of {cls.__name__}{hint}')
    return lines


def flat_names(tree: Mapping[str, Any], prefix: str = '') -> dict[str, Any]:
    """Turn nested mappings into {dotted name: value}."""
    values: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            values.update(flat_names(value, f'{prefix}{key}.'))
        else:
            values[f'{prefix}{key}'] = value
    return values


def sections(tree: Mapping[str, Any], prefix: str = '') -> Iterator[tuple[str, Any]]:
    """Yield (node name pattern, what stands under its ``ros__parameters``) of a parameter file."""
    for key, value in tree.items():
        name = f'{prefix}/{str(key).strip("/")}'
        if isinstance(value, Mapping):
            if 'ros__parameters' in value:
                yield name, value['ros__parameters']
            rest = {k: v for k, v in value.items() if k != 'ros__parameters'}
            yield from sections(rest, name)


def matches(pattern: str, node: str) -> bool:
    """Whether a key of a parameter file means a node: ``*`` is one name, ``**`` any number."""
    names = [
        '(/[^/]+)*' if name == '**' else '/' + re.escape(name).replace(r'\*', '[^/]*')
        for name in pattern.strip('/').split('/')
    ]
    return re.fullmatch(''.join(names), node) is not None


def read_yaml(path: str | Path) -> Mapping[str, Any]:
    """Read a YAML file of mappings; raises :class:`ConfigurationError` where it is none."""
    with open(path, encoding='utf-8') as file:
        try:
            tree = yaml.safe_load(file)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            text = ' '.join(str(error).split())
            raise ConfigurationError(f'{path} is not YAML: {text}') from error
    if not isinstance(tree, Mapping):
        raise ConfigurationError(f'{path} holds no parameters (expected `/**: ros__parameters:`)')
    return tree


def read_parameter_file(path: str | Path, node: str) -> dict[str, Any]:
    """Read the parameters that a ROS parameter file gives to a node, as {dotted name: value}.

    Parameters
    ----------
    path
        The file.
    node
        Name of the node with its namespace, ``/robot/filter_node``; without one it is in none.
        Entries under patterns (``/**``, ``/*/filter_node``) count, and those under the name
        itself last. Parameters that belong to ROS (:data:`FOREIGN`) are left out.

    Raises
    ------
    ConfigurationError
        When the file is no parameter file or holds nothing for this node.
    """
    tree = read_yaml(path)
    full_name = '/' + node.strip('/')
    found = [(key, given) for key, given in sections(tree) if matches(key, full_name)]
    if not found:
        raise ConfigurationError(
            f'{path} has no parameters for {node}: its keys are {", ".join(map(str, tree))}, '
            f'expected `/**` or `{node}` with `ros__parameters` below'
        )
    values: dict[str, Any] = {}
    for key, given in sorted(found, key=lambda entry: entry[0] == full_name):
        if not isinstance(given or {}, Mapping):
            raise ConfigurationError(
                f'{path}: ros__parameters under {key} must be `name: value` lines (got {given!r})'
            )
        values.update(flat_names(given or {}))
    return {name: value for name, value in values.items() if not name.startswith(FOREIGN)}


def write_parameter_file(path: str | Path, config: Any, comment: str = '') -> None:
    """Write a configuration as a parameter file that a node takes as it is.

    Parameters
    ----------
    path
        The file; replaced where it is there.
    config
        The configuration object.
    comment
        Lines to begin with, without the ``#``.
    """
    tree: dict[str, Any] = {}
    for name, value in flatten(config).items():
        *groups, last = name.split('.')
        place = tree
        for each in groups:
            place = place.setdefault(each, {})
        place[last] = list(value) if isinstance(value, tuple) else value
    text = yaml.safe_dump({'/**': {'ros__parameters': tree}}, sort_keys=False)
    head = ''.join(f'# {line}\n' for line in comment.splitlines())
    Path(path).write_text(head + text, encoding='utf-8')
