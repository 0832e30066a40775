# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Installed by colcon and by pip, everything is found: executables, launch, config, data."""

import os
import re
import runpy
import shutil
import site
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
EXECUTABLES = (
    'filter_node', 'planner_node', 'classifier_node', 'replay_node', 'record_node', 'simulate',
    'evaluate', 'sweep', 'convert', 'reproduce', 'parameters', 'demo',
)  # fmt: skip
CONFIG = sorted(path.name for path in (REPOSITORY / 'config').iterdir())
LAUNCH = sorted(path.name for path in (REPOSITORY / 'launch').glob('*.launch.py'))


@pytest.fixture(scope='module')
def sources(tmp_path_factory):
    """Copy what is under version control or about to be, without what was built before."""
    folder = tmp_path_factory.mktemp('sources') / 'kernel_constrained'
    ignore = shutil.ignore_patterns(
        '.git', '.venv', '__pycache__', 'build', 'install', 'log', 'out', '*.egg-info', '.*_cache',
        '.hypothesis',
    )  # fmt: skip
    shutil.copytree(REPOSITORY, folder, ignore=ignore)
    return folder


def run(command, **arguments):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **arguments)
    assert result.returncode == 0, f'{command}\n{result.stdout}\n{result.stderr}'
    return result.stdout


def clean_environment(**more):
    names = ('PYTHONPATH', 'AMENT_PREFIX_PATH', 'COLCON_PREFIX_PATH')
    return {**{k: v for k, v in os.environ.items() if k not in names}, **more}


@pytest.mark.parametrize('options', [[], ['--symlink-install']], ids=['plain', 'symlink'])
def test_colcon_build_installs_what_ros2_looks_for(sources, tmp_path, options):
    pytest.importorskip('colcon_core', reason='colcon is not installed')
    (tmp_path / 'src').mkdir()
    (tmp_path / 'src' / 'kernel_constrained').symlink_to(sources)
    colcon = [sys.executable, '-m', 'colcon']
    listed = run([*colcon, 'list'], cwd=tmp_path)
    assert '(ros.ament_python)' in listed, 'package.xml is valid'
    run([*colcon, 'build', *options], cwd=tmp_path, env=clean_environment())
    prefix = tmp_path / 'install' / 'kernel_constrained'
    share = prefix / 'share' / 'kernel_constrained'
    assert (prefix / 'share/ament_index/resource_index/packages/kernel_constrained').is_file()
    assert sorted(path.name for path in (share / 'config').iterdir()) == CONFIG
    assert sorted(path.name for path in (share / 'launch').iterdir()) == LAUNCH
    scripts = prefix / 'lib' / 'kernel_constrained'
    assert sorted(path.name for path in scripts.iterdir()) == sorted(EXECUTABLES)
    for name in EXECUTABLES:
        script = f'. {tmp_path}/install/local_setup.sh && {sys.executable} {scripts / name} --help'
        assert 'usage:' in run(['sh', '-c', script], cwd=tmp_path, env=clean_environment())
    program = (
        'from kernel_constrained.share import share_folder; print(share_folder());'
        'from kernel_constrained.data import load_lidar; print(len(load_lidar().range))'
    )
    script = f'. {tmp_path}/install/local_setup.sh && {sys.executable} -c "{program}"'
    folder, rows = run(['sh', '-c', script], cwd=tmp_path, env=clean_environment()).split()
    assert Path(folder).samefile(share)
    assert rows == '221'


def test_pip_install_finds_launch_config_and_data(sources, tmp_path):
    venv.create(tmp_path / 'venv')
    python = tmp_path / 'venv' / 'bin' / 'python'
    purelib = run([python, '-c', 'import sysconfig; print(sysconfig.get_path("purelib"))']).strip()
    # The dependencies are those of the environment the tests run in: no download.
    here = [path for path in (*site.getsitepackages(), *sys.path) if 'site-packages' in path]
    (Path(purelib) / 'dependencies.pth').write_text('\n'.join(dict.fromkeys(here)))
    pip = [python, '-m', 'pip', 'install', '--no-deps', '--no-build-isolation', '--quiet']
    run([*pip, '--ignore-installed', str(sources)], env=clean_environment())
    program = (
        'import kernel_constrained, kernel_constrained.share as s, kernel_constrained.data as d;'
        'print(kernel_constrained.__file__, s.share_folder(), len(d.load_lidar().range))'
    )
    module, folder, rows = run(
        [python, '-c', program], cwd=tmp_path, env=clean_environment()
    ).split()
    assert module.startswith(purelib)
    assert folder == str(tmp_path / 'venv' / 'share' / 'kernel_constrained')
    assert sorted(path.name for path in (Path(folder) / 'config').iterdir()) == CONFIG
    assert sorted(path.name for path in (Path(folder) / 'launch').glob('*.py')) == LAUNCH
    assert rows == '221'
    for name in EXECUTABLES:
        assert 'usage:' in run([tmp_path / 'venv' / 'bin' / name, '--help'], cwd=tmp_path)


@pytest.fixture
def package():
    return ElementTree.parse(REPOSITORY / 'package.xml').getroot()


def depends(package, kinds=('depend', 'exec_depend', 'test_depend')):
    return {element.text for element in package if element.tag in kinds}


@pytest.fixture
def installed(monkeypatch):
    """Return what setup.py tells setuptools."""
    said = {}
    monkeypatch.setattr('setuptools.setup', lambda **arguments: said.update(arguments))
    monkeypatch.chdir(REPOSITORY)
    runpy.run_path('setup.py')
    return said


def test_package_xml_and_setup_py_agree(package, installed):
    assert package.get('format') == '3'
    for key in ('name', 'version', 'license', 'author', 'maintainer'):
        assert package.findtext(key) == installed[key]
    assert package.find('maintainer').get('email') == installed['maintainer_email']
    assert installed['license'] == 'Apache-2.0'


# Where rosdep's key is not python3-NAME; None: it comes with another, has none of its own.
ROSDEP_KEYS = {
    'pillow': 'python3-pil', 'pyyaml': 'python3-yaml', 'rosbags': 'python3-rosbags-pip',
    'setuptools': None, 'lz4': None, 'backports.zstd': None,
}  # fmt: skip


def test_what_pip_installs_rosdep_installs(package, installed):
    names = [re.split('[ ;<>=]', asked)[0] for asked in installed['install_requires']]
    keys = {ROSDEP_KEYS.get(name, f'python3-{name}') for name in names} - {None}
    assert keys == {key for key in depends(package, ('exec_depend',)) if key.startswith('python3')}
    # ... as is the case with those that have no key
    brought = ' '.join(metadata.requires('rosbags'))
    assert 'lz4' in brought
    assert 'backports.zstd' in brought


def test_ros_packages_that_come_as_wheels_are_depended_on(package, installed):
    wheels = [re.split('=', asked)[0] for asked in installed['extras_require']['ros']]
    packages = {name.removeprefix('ros-').replace('-', '_') for name in wheels}
    assert packages - {'rmw_fastrtps_cpp'} <= depends(package)
    assert {'launch_pytest', 'python3-pytest', 'rcl_interfaces'} <= depends(package)


def test_the_changelog_begins_with_this_version(installed):
    title, underline = re.search(
        r'^(\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\))\n(-+)$',
        (REPOSITORY / 'CHANGELOG.rst').read_text(encoding='utf-8'), re.MULTILINE,
    ).groups()  # fmt: skip
    assert title.split()[0] == installed['version']
    assert len(underline) == len(title)
