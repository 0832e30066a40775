# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Installation, by colcon (ament_python) and by pip alike."""

from glob import glob

from setuptools import find_packages, setup

NAME = 'kernel_constrained'

# Message packages and middleware as wheels, where there is no ROS distribution.
ROS_WHEELS = [
    'ros-rclpy==9.1.2', 'ros-rmw-fastrtps-cpp==9.3.3', 'ros-diagnostic-msgs', 'ros-geometry-msgs',
    'ros-lifecycle-msgs', 'ros-nav-msgs', 'ros-rosgraph-msgs', 'ros-sensor-msgs', 'ros-std-msgs',
    'ros-std-srvs', 'ros-visualization-msgs',
]  # fmt: skip

# What builds the pages of doc/.
DOCUMENTATION = ['sphinx', 'myst-parser']

COMMANDS = {
    'filter_node': 'nodes.filter_node',
    'planner_node': 'nodes.planner_node',
    'classifier_node': 'nodes.classifier_node',
    'replay_node': 'nodes.replay_node',
    'record_node': 'nodes.record_node',
    'simulate': 'nodes.simulator_node',
    'evaluate': 'offline.evaluate',
    'sweep': 'offline.sweep',
    'convert': 'offline.convert',
    'reproduce': 'offline.reproduce',
    'parameters': 'offline.parameters',
    'demo': 'offline.demo',
}

setup(
    name=NAME,
    version='0.1.0',
    description='Constrained online learning with kernels, for robots: filter, planner, places',
    author='the kernel_constrained authors',
    maintainer='the kernel_constrained authors',
    maintainer_email='kernel-constrained@users.noreply.github.com',
    license='Apache-2.0',
    python_requires='>=3.10',
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={f'{NAME}.data': ['*.csv']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        (f'share/{NAME}/launch', glob('launch/*.py')),
        (f'share/{NAME}/config', glob('config/*.yaml') + glob('config/*.rviz')),
    ],
    install_requires=[
        'setuptools', 'attrs>=21.3', 'backports.zstd; python_version < "3.14"', 'joblib>=1.3',
        'lz4', 'matplotlib', 'numba', 'numpy', 'pillow', 'pyyaml', 'rosbags', 'scipy', 'tqdm',
    ],
    extras_require={
        'ros': ROS_WHEELS,
        'cluster': ['distributed'],
        'test': [
            'pytest', 'pytest-xdist', 'distributed', 'hypothesis', 'cvxpy', 'clarabel',
            'scikit-learn', 'ruff', 'mypy', 'colcon-common-extensions', 'ros-ament-package',
            'setuptools>=70.1,<80', *DOCUMENTATION,
        ],
        'docs': DOCUMENTATION,
        'coverage': ['coverage>=7.10'],
        'benchmark': ['scikit-learn', 'river', 'padasip', 'ompl>=2', 'casadi'],
    },
    entry_points={
        'console_scripts': [
            f'{name} = {NAME}.{module}:main' for name, module in COMMANDS.items()
        ]
    },
    zip_safe=True,
)  # fmt: skip
