# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Compile what most tests use before they run side by side, or each process would by itself.

``python test/compiling.py learning`` or ``planning``: one can be compiled beside the other.
"""

import sys

from kernel_constrained.core import CVaR, Gaussian, PrimalDualLearner
from kernel_constrained.core.subquantile import SubquantileLearner
from kernel_constrained.perception.config import FilterConfig
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.planning.config import PlannerConfig
from kernel_constrained.planning.planner import Planner
from kernel_constrained.planning.simulation import drive
from kernel_constrained.planning.worlds import random_world


def learning():
    for step in ('gradient', 'recursive'):
        PrimalDualLearner(Gaussian(0.3), constraint=CVaR(0.9, 0.1), step=step).warm_up()
    SubquantileLearner(Gaussian(0.3)).warm_up()
    ScanFilter(FilterConfig()).warm_up()


def planning():
    planner = Planner(PlannerConfig())
    planner.warm_up()
    drive(planner, random_world(0), max_scans=3)


if __name__ == '__main__':
    {'learning': learning, 'planning': planning}[sys.argv[1]]()
