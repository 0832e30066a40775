# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The launch files, run by launch itself: need launch_pytest and an installed package.

Neither is on a package index; elsewhere these tests are reported as not run, and
``test/nodes`` and ``test/test_packaging.py`` cover the same with plain processes.
"""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

launch_pytest = pytest.importorskip(
    'launch_pytest', reason='launch_pytest is not installed: launch files were not run'
)

import rclpy  # noqa: E402
from ament_index_python.packages import get_package_share_directory  # noqa: E402
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped  # noqa: E402
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription  # noqa: E402
from launch.launch_description_sources import PythonLaunchDescriptionSource  # noqa: E402
from nav_msgs.msg import Path as PathMessage  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from sensor_msgs.msg import LaserScan  # noqa: E402
from std_msgs.msg import Float64, String  # noqa: E402

from kernel_constrained.bags import open_recording  # noqa: E402
from kernel_constrained.perception.classifier import PlaceClassifier  # noqa: E402
from kernel_constrained.perception.filter import ScanFilter  # noqa: E402
from launch import LaunchContext, LaunchDescription  # noqa: E402


@pytest.fixture(autouse=True)
def own_domain(domain):
    """Set up before the launch service of a test, ended after it."""


def source(name):
    share = Path(get_package_share_directory('kernel_constrained'))
    return PythonLaunchDescriptionSource(str(share / 'launch' / name))


def included(name, **arguments):
    return LaunchDescription(
        [
            IncludeLaunchDescription(source(name), launch_arguments=arguments.items()),
            launch_pytest.actions.ReadyToTest(),
        ]
    )


@launch_pytest.fixture
def lidar(tmp_path):
    return included('lidar_replay.launch.py', epochs='2', model=str(tmp_path / 'lidar.npz'))


@launch_pytest.fixture
def scans(tmp_path):
    log = tmp_path / 'made.log'
    line = 'FLASER 180 {} {x} 0.0 0.0 {x} 0.0 0.0 {t} host {t}\n'
    with log.open('w') as file:
        for i in range(60):
            beams = ' '.join(f'{3 + (b * 7 + i) % 50 / 10:.2f}' for b in range(180))
            file.write(line.format(beams, x=0.3 * i, t=i + 1.5))
    return included('scan_replay.launch.py', bag=str(log), model=str(tmp_path / 'scans.npz'))


@launch_pytest.fixture
def robot(tmp_path, monkeypatch):
    """Run the filter with topics of our own."""
    put_in_place_of_rviz(tmp_path, monkeypatch)
    return included(
        'filter.launch.py', namespace='robot', scan='front/scan', pose='/tracker/pose', rviz='true'
    )


@launch_pytest.fixture
def classifier(tmp_path, monkeypatch):
    """Run the classifier with topics of our own, and a model file."""
    put_in_place_of_ros2(tmp_path, monkeypatch, 'exit 1')
    return included(
        'classifier.launch.py', namespace='robot', scan='front/scan', label='/place',
        model=str(tmp_path / 'places.npz'), record='true', record_to=f'{tmp_path}/bag',
    )  # fmt: skip


@launch_pytest.fixture
def planner(tmp_path, monkeypatch):
    """Run the planner with topics of our own."""
    put_in_place_of_rviz(tmp_path, monkeypatch)
    put_in_place_of_ros2(tmp_path, monkeypatch, 'exit 1')
    return included(
        'planner.launch.py', namespace='robot', scan='front/scan', pose='/tracker/pose',
        goal_pose='/goal', plan='way', rviz='true', record='true', record_to=f'{tmp_path}/bag',
    )  # fmt: skip


def put_in_place_of_rviz(folder, monkeypatch):
    """Install as rviz2 a program that notes its arguments."""
    rviz2 = folder / 'ros' / 'lib' / 'rviz2' / 'rviz2'
    index = folder / 'ros' / 'share' / 'ament_index' / 'resource_index' / 'packages' / 'rviz2'
    for path in (rviz2, index):
        path.parent.mkdir(parents=True)
        path.touch()
    rviz2.write_text(f'#!/bin/sh\necho "$@" > {folder}/arguments\n')
    rviz2.chmod(0o755)
    prefixes = [str(folder / 'ros'), os.environ['AMENT_PREFIX_PATH']]
    monkeypatch.setenv('AMENT_PREFIX_PATH', os.pathsep.join(prefixes))


def arguments_of_rviz(folder):
    """Wait for the arguments that RViz was started with; its configuration is a file."""
    wait_for((folder / 'arguments').exists, 'start of rviz2')
    wait_for(lambda: (folder / 'arguments').read_text().endswith('\n'), 'arguments')
    given = (folder / 'arguments').read_text().split()
    config = Path(given[given.index('-d') + 1])
    assert config.is_file()
    return config.name, set(given)


@launch_pytest.fixture
def robot_with_model(tmp_path):
    """Run the filter with a model file in its parameters and none as launch argument."""
    config = tmp_path / 'own.yaml'
    model = f'{{path: {tmp_path}/own.npz, save_at_end: true}}'
    config.write_text(f'/**: {{ros__parameters: {{model: {model}}}}}')
    return included('filter.launch.py', namespace='robot', config=str(config))


def put_in_place_of_ros2(folder, monkeypatch, then):
    """Put a program first on the path that notes its arguments in a file, then does ``then``."""
    ros2 = folder / 'bin' / 'ros2'
    ros2.parent.mkdir()
    ros2.write_text(f'#!/bin/sh\necho "$@" > {folder}/recorded_arguments\n{then}\n')
    ros2.chmod(0o755)
    monkeypatch.setenv('PATH', f'{ros2.parent}{os.pathsep}{os.environ["PATH"]}')


def recorded_arguments(folder):
    """Wait for the arguments of ``ros2``; return what comes before the topics, and these."""
    path = folder / 'recorded_arguments'
    wait_for(lambda: path.exists() and path.read_text().endswith('\n'), 'start of ros2')
    options, _, topics = path.read_text().partition(' --topics ')
    return options, topics.split()


@launch_pytest.fixture
def recorded_lidar(tmp_path, monkeypatch):
    """Record by a program that takes its time before it listens."""
    topics = '[range, pose, estimate, filter_node/loss]'
    put_in_place_of_ros2(
        tmp_path, monkeypatch,
        f'sleep 5; exec {sys.executable} -m kernel_constrained record_node --ros-args '
        f'-p destination:={tmp_path}/recorded.mcap -p "topics:={topics}"',
    )  # fmt: skip
    return included(
        'lidar_replay.launch.py', epochs='2', model=str(tmp_path / 'lidar.npz'), record='true',
        record_to=str(tmp_path / 'bag'),
    )  # fmt: skip


@launch_pytest.fixture
def recorded_robot(tmp_path, monkeypatch):
    """Record by a program that ends at once."""
    put_in_place_of_ros2(tmp_path, monkeypatch, 'exit 1')
    return included(
        'filter.launch.py', namespace='robot', scan='front/scan', pose='/tracker/pose',
        record='true', use_sim_time='true',
    )  # fmt: skip


@contextmanager
def probe():
    """Run a node of our own, with a function that spins it once."""
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('probe', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        yield node, lambda: executor.spin_once(timeout_sec=0.05)
    finally:
        executor.shutdown()
        node.destroy_node()
        context.try_shutdown()


def drive(node, scan_topic, pose_topic, advance=0.1):
    """Return a function that publishes the next scan of a robot going forward, and its pose."""
    scans = node.create_publisher(LaserScan, scan_topic, 10)
    poses = node.create_publisher(PoseStamped, pose_topic, 10)
    pose = PoseStamped()
    pose.header.frame_id = 'map'
    scan = LaserScan(angle_min=-3.0, angle_increment=0.1, range_min=0.1, range_max=20.0)
    scan.header.frame_id = 'laser'

    def step():
        pose.header.stamp = scan.header.stamp = node.get_clock().now().to_msg()
        pose.pose.position.x += advance
        scan.ranges = [5.0 - pose.pose.position.x % 3.0 + 0.01 * beam for beam in range(60)]
        poses.publish(pose)
        scans.publish(scan)

    return step


def wait_for(condition, what, spin=lambda: time.sleep(0.1), limit=180.0):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f'no {what} within {limit} s'
        spin()


def learned(model):
    """Wait for the model that the filter saves when the replay has ended, and load it."""
    wait_for(model.exists, model.name)
    return ScanFilter.load(model).learner


@pytest.mark.launch(fixture=lidar)
def test_lidar_replay_runs_to_its_end_and_saves_what_was_learned(tmp_path, lidar):
    assert learned(tmp_path / 'lidar.npz').samples_ == 2 * 179


@pytest.mark.launch(fixture=scans)
def test_scan_replay_runs_to_its_end_and_saves_what_was_learned(tmp_path, scans):
    assert learned(tmp_path / 'scans.npz').samples_ == 59


@pytest.mark.launch(fixture=robot)
def test_filter_estimates_and_learns_in_its_namespace_from_remapped_topics(robot):
    with probe() as (node, spin):
        step = drive(node, '/robot/front/scan', '/tracker/pose')
        estimates, losses = [], []
        node.create_subscription(
            PoseWithCovarianceStamped, '/robot/estimate', estimates.append, 10
        )
        node.create_subscription(Float64, '/robot/filter_node/loss', losses.append, 10)

        def step_and_spin():
            step()
            spin()

        wait_for(lambda: estimates and losses, 'estimate and loss', step_and_spin)
        assert estimates[0].header.frame_id == 'laser'


@pytest.mark.launch(fixture=robot)
def test_rviz_gets_the_configuration_the_namespace_and_the_topics(robot, tmp_path):
    config, given = arguments_of_rviz(tmp_path)
    assert config == 'filter.rviz'
    topics = {'scan:=front/scan', 'pose:=/tracker/pose', '/tf:=tf', '/tf_static:=tf_static'}
    assert {'__ns:=/robot', *topics} <= given


@pytest.mark.launch(fixture=planner)
def test_planner_plans_in_its_namespace_from_remapped_topics(planner):
    with probe() as (node, spin):
        step = drive(node, '/robot/front/scan', '/tracker/pose', advance=0.0)
        goals = node.create_publisher(PoseStamped, '/goal', 10)
        goal, plans = PoseStamped(), []
        goal.header.frame_id, goal.pose.position.x = 'map', 2.0
        node.create_subscription(PathMessage, '/robot/way', plans.append, 10)

        def step_and_spin():
            goals.publish(goal)  # again and again: it may not be heard at first
            step()
            spin()

        wait_for(lambda: plans, 'path', step_and_spin, limit=600.0)  # it may have to compile
        assert plans[0].header.frame_id == 'map'


@pytest.mark.launch(fixture=planner)
def test_rviz_and_the_recorder_get_the_topics_of_the_planner(planner, tmp_path):
    config, given = arguments_of_rviz(tmp_path)
    assert config == 'planner.rviz'
    topics = {'scan:=front/scan', 'goal_pose:=/goal', 'plan:=way', '/tf:=tf'}
    assert {'__ns:=/robot', *topics} <= given
    options, topics = recorded_arguments(tmp_path)
    assert options == f'bag record -s mcap -o {tmp_path}/bag'
    heard = ['/robot/front/scan', '/tracker/pose', '/robot/reference', '/goal', '/robot/map']
    transforms = ['/robot/tf', '/robot/tf_static', '/tf', '/tf_static']
    said = ['/robot/way', *transforms, '/robot/planner_node/markers', '/diagnostics']
    assert topics == [*heard, *said]


@pytest.mark.launch(fixture=classifier)
def test_classifier_learns_in_its_namespace_from_remapped_topics_and_saves(classifier, tmp_path):
    with probe() as (node, spin):
        step = drive(node, '/robot/front/scan', '/tracker/pose')
        labels, said = node.create_publisher(String, '/place', 10), []
        node.create_subscription(String, '/robot/label_estimate', said.append, 10)

        def step_and_spin():
            labels.publish(String(data='room'))  # again and again: it may not be heard at first
            step()
            spin()

        def named():
            return [one for one in said if one.data == 'room']

        wait_for(named, 'label', step_and_spin, limit=600.0)  # it may have to compile
    options, topics = recorded_arguments(tmp_path)
    assert options == f'bag record -s mcap -o {tmp_path}/bag'
    assert topics[:3] == ['/robot/front/scan', '/place', '/robot/label_estimate']
    assert topics[7] == '/robot/label_scores'
    yield
    wait_for((tmp_path / 'places.npz').exists, 'model')
    assert list(PlaceClassifier.load(tmp_path / 'places.npz').labels) == ['room']


@pytest.mark.parametrize('name', ['filter', 'planner'])
def test_rviz_is_looked_for_before_the_node_starts(name):
    """Launch ends where rviz2 is not installed, and leaves what it has started running."""
    description = source(f'{name}.launch.py').get_launch_description(LaunchContext())
    actions = [a for a in description.entities if not isinstance(a, DeclareLaunchArgument)]
    assert actions[1].node_package == 'rviz2'  # the first looks for the parameter file


@pytest.mark.parametrize(
    ('name', 'argument'),
    [
        ('filter', 'config'), ('planner', 'config'), ('classifier', 'config'),
        ('lidar_replay', 'filter_config'), ('scan_replay', 'replay_config'),
    ],
)  # fmt: skip
def test_a_parameter_file_that_is_not_there_ends_launch_before_a_node_starts(
    name, argument, tmp_path
):
    given = f'{argument}:={tmp_path}/missing.yaml'
    command = ['ros2', 'launch', 'kernel_constrained', f'{name}.launch.py', given]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    text = ended.stdout + ended.stderr
    assert ended.returncode == 1
    assert f'{given} is no file' in text
    assert 'process started' not in text


FIGURES = ['loss', 'cvar', 'violation', 'dual_variable', 'model_order', 'processing_time']


@pytest.mark.launch(fixture=recorded_lidar)
def test_a_replay_waits_for_its_recorder_and_everything_is_recorded(recorded_lidar, tmp_path):
    options, topics = recorded_arguments(tmp_path)
    assert options == f'bag record -s mcap -o {tmp_path}/bag'
    figures = [f'/filter_node/{name}' for name in FIGURES]
    assert topics == ['/range', '/pose', '/estimate', *figures, '/diagnostics']
    learned(tmp_path / 'lidar.npz')
    wait_for((tmp_path / 'recorded.mcap').exists, 'recording')
    with open_recording(tmp_path / 'recorded.mcap') as recording:
        counts = {name: topic.count for name, topic in recording.topics.items()}
    assert counts == {
        '/range': 380, '/pose': 358, '/estimate': 380, '/filter_node/loss': 358,
    }  # fmt: skip


@pytest.mark.launch(fixture=recorded_robot)
def test_a_robot_is_recorded_in_its_namespace_and_outlives_the_recorder(recorded_robot, tmp_path):
    options, topics = recorded_arguments(tmp_path)
    assert options == 'bag record -s mcap --use-sim-time'
    figures = [f'/robot/filter_node/{name}' for name in FIGURES]
    inputs = ['/robot/front/scan', '/robot/range', '/tracker/pose']
    transforms = ['/robot/tf', '/robot/tf_static', '/tf', '/tf_static']
    assert topics == [*inputs, *transforms, '/robot/estimate', *figures, '/diagnostics']
    with probe() as (node, _):
        ready = 'robot/filter_node/processed'
        wait_for(lambda: node.count_publishers(ready), 'filter')


@pytest.mark.launch(fixture=robot_with_model)
def test_model_of_the_parameter_file_is_used_where_no_other_is_given(robot_with_model, tmp_path):
    with probe() as (node, _):
        ready = 'robot/filter_node/processed'
        wait_for(lambda: node.count_publishers(ready), 'filter')
    yield
    assert learned(tmp_path / 'own.npz').samples_ == 0
