# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The documentation: every command on it is run or checked, snippets run, links lead somewhere.

A command of a kind that is not known here fails. Commands of a page run in their order, in a
folder that holds what their names stand for (``documented.make_workspace``).
"""

import importlib
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import yaml

pytest.importorskip('markdown_it', reason='markdown-it-py (with myst-parser) is not installed')

from documented import (
    anchors_of,
    blocks_of,
    commands_in,
    inline_commands,
    launch_arguments,
    links_of,
    make_workspace,
    PAGES,
    REPOSITORY,
)

from kernel_constrained.__main__ import COMMANDS
from kernel_constrained.configuration import (
    checked,
    ConfigurationError,
    fields,
    flat_names,
    FOREIGN,
    from_flat,
    read_parameter_file,
)
from kernel_constrained.offline import demo, reproduce
from kernel_constrained.offline.parameters import NODES
from kernel_constrained.offline.sweep import parsed as parsed_sweep
from kernel_constrained.offline.sweep_grid import read_grid, settings_of
from kernel_constrained.perception.node_config import FilterNodeConfig

PACKAGE = 'kernel_constrained'
STANDS_FOR = {
    'NODE': 'filter_node',
    'LOG': 'drive.log',
    'SOURCE': 'drive.log',
    'DESTINATION': 'converted.mcap',
}
NAMES = [page.name for page in PAGES]


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp('made')
    make_workspace(folder)
    return folder


@pytest.fixture
def workspace(made, tmp_path, monkeypatch):
    """Make a folder with all that is named, and go there."""
    folder = tmp_path / 'workspace'
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    return folder


# -- commands of the package --------------------------------------------------------------------


def run_offline(command, arguments, monkeypatch):
    """Run a command in this process; what takes minutes is only parsed, others test it."""
    if command == 'reproduce':
        monkeypatch.setattr(reproduce, 'reproduce', lambda name, output: None)
        return [reproduce.main([choice, *arguments[1:]]) for choice in arguments[0].split('|')]
    if command == 'demo':
        for name in ('lidar', 'scans', 'places', 'planner'):
            monkeypatch.setattr(demo, f'demo_{name}', lambda *given: True)
        return [demo.main(arguments)]
    if command == 'sweep':
        if '--scheduler' in arguments:  # test/offline/test_sweep.py has a cluster
            return [0 if parsed_sweep(arguments) else 1]
        arguments = [*arguments, '--jobs', '1']
    module = importlib.import_module(f'{PACKAGE}.{COMMANDS[command][0]}')
    code = module.main(arguments)
    # 3: no setting holds the bound, or a requirement is not met, on data as short as these
    return [0 if code == 3 and (command == 'sweep' or '--require' in arguments) else code]


def check_node(command, arguments):
    """Check the parameters of a node as it would."""
    values, rest = {}, [word for word in arguments if word != '--ros-args']
    while rest:
        option, given, *rest = rest
        if option == '--params-file':
            values |= read_parameter_file(given, command)
        elif option == '-p':
            name, _, value = given.partition(':=')
            values[name] = yaml.safe_load(value)
        else:
            assert option == '-r', f'{option} is not known'
    known = {name: value for name, value in values.items() if not name.startswith(FOREIGN)}
    from_flat(NODES[command], known)


def check_package_command(words, run, monkeypatch):
    command, *arguments = [STANDS_FOR.get(word, word) for word in words]
    assert command in COMMANDS, f'{command} is no command'
    if command in NODES:
        check_node(command, arguments)
    elif run:
        assert set(run_offline(command, arguments, monkeypatch)) == {0}


# -- commands of others -------------------------------------------------------------------------


def check_launch(words, monkeypatch):
    package, name, *arguments = words
    assert package == PACKAGE
    known = launch_arguments(name, monkeypatch)
    assert known, f'{name} declares nothing'
    for argument in arguments:
        assert ':=' in argument
        assert argument.split(':=')[0] in known, f'{name} has no argument {argument}'


def sources_of_nodes():
    folder = REPOSITORY / PACKAGE / 'nodes'
    return '\n'.join(path.read_text() for path in sorted(folder.glob('*.py')))


def check_ros2(words):
    """Check names of parameters, topics and services in calls of ROS's own tools."""
    match words:
        case ['param', 'describe', node, name]:
            assert name == 'NAME' or name in dict(fields(NODES[node.strip('/')]))
        case ['param', 'set', node, name, value]:
            field = dict(fields(NODES[node.strip('/')]))[name]
            assert field.metadata['runtime'], f'{name} cannot change while running'
            checked(yaml.safe_load(value), name, field.metadata)
        case ['service', 'call', service, 'std_srvs/srv/Trigger']:
            node, name = service.strip('/').split('/')
            assert node in NODES
            assert f"'{name}'" in sources_of_nodes(), f'no service {name}'
        case ['topic', 'echo', topic] | ['topic', 'echo', topic, '--once']:
            assert f"'{topic}'" in sources_of_nodes(), f'nobody publishes {topic}'
        case ['topic', 'pub', '--once', topic, kind, value]:
            assert f"'{topic}'" in sources_of_nodes(), f'nobody listens to {topic}'
            assert kind.split('/')[-1] in sources_of_nodes()
            assert set(yaml.safe_load(value)) == {'data'}
        case ['bag', 'record', *_]:
            pass  # rosbag2's own options
        case _:
            pytest.fail(f'nobody knows how to check: ros2 {" ".join(words)}')


def check_script(path, options):
    """Check that a script is there and knows its options."""
    source = (REPOSITORY / path).read_text()
    for option in options:
        assert not option.startswith('--') or f"'{option}'" in source, f'{path} has no {option}'


def check_pytest(words):
    """Check that the tests named are there."""
    named = [word for word in words if word.startswith('test/')]
    assert named
    assert all((REPOSITORY / path).exists() for path in named), words


def check_make(targets):
    environment = {k: v for k, v in os.environ.items() if not k.startswith('MAKE')}
    subprocess.run(
        ['make', '--dry-run', *targets], cwd=REPOSITORY, env=environment, check=True,
        capture_output=True,
    )  # fmt: skip


def check(words, monkeypatch, run):
    """Run or check a command; fail where nobody knows how."""
    match words:
        case ['make', *targets]:
            check_make(targets)
        case ['python' | '.venv/bin/python', '-m', 'kernel_constrained', *rest]:
            check_package_command(rest, run, monkeypatch)
        case ['ros2', _] | ['ros2', _, _] if not run:
            pass  # only mentioned
        case ['ros2', 'run', 'kernel_constrained', *rest]:
            check_package_command(rest, run, monkeypatch)
        case ['ros2', 'launch', *rest]:
            check_launch(rest, monkeypatch)
        case ['ros2', *rest]:
            check_ros2(rest)
        case ['python', path, *options]:
            check_script(path, options)
        case ['pytest', *rest]:
            check_pytest(rest)
        case ['cp', source, target] if run:
            shutil.copy(source, target)
        case ['colcon', 'build', '--packages-select', 'kernel_constrained'] | [
            'rosdep',
            'install',
            '--from-paths',
            '.',
            '--ignore-src',
        ]:
            assert f'<name>{PACKAGE}</name>' in (REPOSITORY / 'package.xml').read_text()
        case ['colcon', 'build' | 'test', *_] if not run:
            pass
        case ['pip', 'install', '-e', source, *_]:
            extras = source.removeprefix('.').strip('[]').split(',')
            assert all(f"'{extra}': " in (REPOSITORY / 'setup.py').read_text() for extra in extras)
        case ['.', 'install/setup.bash' | '.venv/bin/activate']:
            pass
        case ['dask', 'scheduler'] | ['dask', 'worker', *_]:
            pass  # of distributed; test/offline/test_sweep.py starts them
        case ['fastdds', 'shm', 'clean'] | ['export', _]:
            pass
        case _:
            pytest.fail(f'nobody knows how to check: {" ".join(words)}')


# -- tests --------------------------------------------------------------------------------------


@pytest.mark.parametrize('page', PAGES, ids=NAMES)
def test_every_command_runs(page, workspace, monkeypatch):
    for block in blocks_of(page):
        assert block.kind in ('shell', 'python', 'yaml', 'text', 'directive'), block
        if block.kind == 'shell':
            for words in commands_in(block.text):
                check(words, monkeypatch, run=True)


@pytest.mark.parametrize('page', PAGES, ids=NAMES)
def test_every_command_within_a_sentence_is_one(page, workspace, monkeypatch):
    for words in inline_commands(page):
        check(words, monkeypatch, run=False)


def test_a_command_of_an_unknown_kind_fails(monkeypatch):
    for words in (['rm', '-rf', 'out'], ['ros2', 'topic', 'hz', 'scan'], ['python', '-m', 'pip']):
        with pytest.raises((pytest.fail.Exception, FileNotFoundError)):
            check(words, monkeypatch, run=True)
    with pytest.raises(subprocess.CalledProcessError):
        check(['make', 'coffee'], monkeypatch, run=True)
    with pytest.raises(AssertionError, match='no argument'):
        check(
            ['ros2', 'launch', PACKAGE, 'filter.launch.py', 'scann:=scan'], monkeypatch, run=True
        )
    with pytest.raises(ValueError, match='did you mean'):
        check(['ros2', 'run', PACKAGE, 'simulate', '-p', 'robot.radios:=1'], monkeypatch, run=True)


@pytest.mark.parametrize('page', PAGES, ids=NAMES)
def test_python_snippets_run(page, workspace):
    snippets = [block.text for block in blocks_of(page) if block.kind == 'python']
    X = np.linspace(0.0, 1.0, 120)[:, None]
    namespace = {'X': X, 'y': np.sin(6.0 * X[:, 0]), 'X_new': X[:5]}
    if page.name == 'recordings.md':
        exec('from kernel_constrained.bags import open_recording', namespace)
    for snippet in snippets:
        exec(compile(snippet, page.name, 'exec'), namespace)


@pytest.mark.parametrize('page', PAGES, ids=NAMES)
def test_parameters_in_yaml_are_such(page, tmp_path):
    for block in blocks_of(page):
        if block.kind != 'yaml':
            continue
        file = tmp_path / 'snippet.yaml'
        file.write_text(block.text)
        tree = yaml.safe_load(block.text)
        if '/**' in tree:
            values = read_parameter_file(file, 'any_node')
            assert any(takes(cls, values) for cls in NODES.values()), block.text
        elif any(isinstance(value, list) for value in flat_names(tree).values()):
            assert settings_of(read_grid(file), FilterNodeConfig())
        else:
            from_flat(FilterNodeConfig, flat_names(tree))


def takes(cls, values):
    """Whether values are such of a node's configuration."""
    try:
        from_flat(cls, values)
    except ConfigurationError:
        return False
    return True


@pytest.mark.parametrize('page', PAGES, ids=NAMES)
def test_links_lead_somewhere(page):
    for link in links_of(page):
        name, _, anchor = link.partition('#')
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f'{page.name}: {link}'
        if anchor:
            assert anchor in anchors_of(target), f'{page.name}: {link}'


def test_every_page_is_in_the_index():
    text = (REPOSITORY / 'doc' / 'index.md').read_text()
    listed = set(re.findall(r'^(?:.*<)?(\w+)>?$', text, flags=re.MULTILINE))
    assert {page.stem for page in PAGES[1:]} - {'index'} <= listed


def test_config_files_that_pages_name_are_a_grid_and_settings():
    grid = read_grid(REPOSITORY / 'config' / 'sweep.yaml')
    assert len(settings_of(grid, FilterNodeConfig())) > 1


def test_sphinx_builds_the_pages_without_a_warning(tmp_path):
    pytest.importorskip('sphinx', reason='sphinx is not installed')
    pytest.importorskip('myst_parser', reason='myst-parser is not installed')
    command = [sys.executable, '-m', 'sphinx', '-W', '--keep-going', '-q', '-b', 'html']
    built = subprocess.run(
        [*command, str(REPOSITORY / 'doc'), str(tmp_path)], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    for page in PAGES[1:]:
        assert (tmp_path / f'{page.stem}.html').is_file()
    api = (tmp_path / 'api.html').read_text()
    for name in ('PrimalDualLearner', 'ScanFilter', 'Planner', 'open_recording'):
        assert f'{name}</span>' in api, f'{name} is not on the page of classes'
