# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a sweep: every combination of the values that a grid gives to parameters."""

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from kernel_constrained.configuration import (
    checked,
    ConfigurationError,
    fields,
    flat_names,
    flatten,
    from_flat,
    read_parameter_file,
    read_yaml,
    sections,
    unknown_names,
)
from kernel_constrained.perception.node_config import FilterNodeConfig

Grid = dict[str, list[Any]]

# Combinations that are refused are listed up to so many.
LISTED = 10


class Setting(NamedTuple):
    """One combination.

    Attributes
    ----------
    varied : dict of str to value
        The parameters of the grid, by dotted name.
    config : FilterNodeConfig
        These, and what all settings have in common.
    """

    varied: dict[str, Any]
    config: FilterNodeConfig

    @property
    def text(self) -> str:
        """For people: ``learner.bandwidth 3.5, features.sectors 24``."""
        return text_of(self.varied)


def text_of(varied: dict[str, Any]) -> str:
    """Lay parameters out as one line."""
    return ', '.join(f'{name} {value}' for name, value in varied.items())


def read_grid(path: str | Path) -> Grid:
    """Read a grid: {dotted name of a parameter: its values}.

    Raises
    ------
    ConfigurationError
        It cannot be read, or names or values are not allowed; says all that is wrong, a line each.
    """
    try:
        tree = read_yaml(path)
        # as a parameter file has it, too
        inside = any(sections(tree))
        given = read_parameter_file(path, 'filter_node') if inside else flat_names(tree)
    except OSError as error:
        raise ConfigurationError(f'{path}: cannot be read: {error.strerror}') from error
    problems = unknown_names(FilterNodeConfig, given)
    known = dict(fields(FilterNodeConfig))
    grid: Grid = {}
    for name in [name for name in given if name in known]:
        grid[name], wrong = _values(name, given[name], known[name].metadata)
        problems += wrong
    if not given:
        problems.append('empty: expected lines like `learner.bandwidth: [3.0, 5.0]`')
    if problems:
        raise ConfigurationError('\n'.join(f'{path}: {line}' for line in problems))
    return grid


def _values(name: str, given: Any, metadata: Any) -> tuple[list[Any], list[str]]:
    """Return the values of a parameter, and what is wrong with them."""
    if not isinstance(given, list) or not given:
        return [], [f'{name} must be a list of values, as [1, 2] (got {given!r})']
    values: list[Any] = []
    problems: list[str] = []
    for each in given:
        try:
            value = checked(each, name, metadata)
        except ConfigurationError as error:
            problems.append(str(error))
            continue
        if value in values:
            problems.append(f'{name} has the value {value} twice')
        values.append(value)
    return values, problems


def settings_of(grid: Grid, base: FilterNodeConfig) -> list[Setting]:
    """Return every combination of a grid's values, on top of what they have in common.

    Raises
    ------
    ConfigurationError
        Values do not go together; names the combinations, a line each.
    """
    common = flatten(base)
    settings: list[Setting] = []
    problems: list[str] = []
    for values in product(*grid.values()):
        varied = dict(zip(grid, values, strict=True))
        try:
            config = from_flat(FilterNodeConfig, {**common, **varied})
            config.learner.build()
            settings.append(Setting(varied, config))
        except ConfigurationError as error:
            problems.append(f'{text_of(varied)}: {error}')
    if problems:
        more = len(problems) - LISTED
        tail = [f'... and {more} more combinations'] if more > 0 else []
        raise ConfigurationError('\n'.join(problems[:LISTED] + tail))
    return settings
