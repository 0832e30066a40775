# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Real nodes in processes of their own, and a probe that talks to them over DDS.

Shared by the tests of this folder; the fixtures made of it are in ``conftest.py``.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIG = REPOSITORY / 'config'
RELIABLE = QoSProfile(depth=1000)

# Seconds: what fails takes that long, and a busy machine may need nearly as long.
ANSWER, DISCOVERY = 60.0, 180.0


class Probe:
    """A node in this process: publishes, subscribes, calls services, and waits with a limit."""

    def __init__(self, domain):
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = rclpy.create_node('probe', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.clients = {}

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()

    def wait(self, condition, seconds=ANSWER, what='the condition'):
        """Spin until ``condition()`` holds; fail after ``seconds``."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f'{what} was not met within {seconds} s')
            self.executor.spin_once(timeout_sec=0.05)

    def spin(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.02)

    def collect(self, kind, topic, qos=RELIABLE):
        """Return a list that fills with the messages of a topic."""
        messages = []
        self.node.create_subscription(kind, topic, messages.append, qos)
        return messages

    def publisher(self, kind, topic, qos=RELIABLE):
        """Return a publisher that somebody is subscribed to, once what we collect is there too."""
        return self.publishers((kind, topic, qos))[0]

    def publishers(self, *wanted):
        """Return several, by message type, topic and QoS."""
        made = [self.node.create_publisher(*arguments) for arguments in wanted]
        for publisher in made:
            self.wait(
                publisher.get_subscription_count, DISCOVERY, f'a subscription to {publisher.topic}'
            )
        for subscription in self.node.subscriptions:
            self.wait(subscription.get_publisher_count, DISCOVERY, subscription.topic_name)
        time.sleep(0.5)  # the other side has to find us too
        return made

    def client(self, kind, service):
        """Return a client of a service that is there."""
        if service not in self.clients:
            self.clients[service] = self.node.create_client(kind, service)
            self.wait(self.clients[service].service_is_ready, DISCOVERY, f'service {service}')
            time.sleep(0.5)  # the other side has to find us too, or its answer is lost
        return self.clients[service]

    def call(self, kind, service, request=None):
        future = self.client(kind, service).call_async(request or kind.Request())
        self.wait(future.done, what=f'an answer of {service}')
        return future.result()


class Process:
    """A node of the package in a process; ``paths`` are searched for modules first."""

    def __init__(self, command, domain, folder, paths=()):
        self.log = folder / f'{command[0]}-{time.monotonic_ns()}.log'
        environment = {
            **os.environ,
            'ROS_DOMAIN_ID': str(domain),
            'PYTHONPATH': os.pathsep.join(
                [*map(str, paths), str(REPOSITORY), os.environ.get('PYTHONPATH', '')]
            ),
        }
        with self.log.open('wb') as output:
            self.process = subprocess.Popen(
                [sys.executable, '-m', 'kernel_constrained', *command],
                stdout=output, stderr=subprocess.STDOUT, env=environment,
            )  # fmt: skip

    @property
    def text(self):
        return self.log.read_text()

    def end(self, number=signal.SIGINT):
        """Send a signal and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=60)


@contextmanager
def ended_by(process, number=signal.SIGINT):
    """Run the body, then end the process by a signal and require exit code 0."""
    yield process
    code = process.end(number)
    assert code == 0, process.text
