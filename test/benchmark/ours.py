# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Ours: each variant is the arguments of PrimalDualLearner that it fixes and those it tries."""

from adapter import Contestant, grid, Origin, Result, Stopwatch

from kernel_constrained.core import CVaR, Gaussian, PrimalDualLearner

# ``budget`` is what a step of POLK may cost in compression, epsilon; parsimony follows from it.
BUDGETS = (0.3, 0.1, 0.03, 0.01, 0.003)
OURS = {
    'ours: default (recursive)': {
        'fixed': {},
        'grid': {'novelty': (0.1, 0.03, 0.01, 1e-3, 1e-4), 'regularization': (1e-5, 1e-6)},
    },
    'ours: default, gradient': {
        'fixed': {'step': 'gradient', 'regularization': 1e-5},
        'grid': {'step_size': (0.2, 0.5, 1.5), 'parsimony': (5.0, 1.0, 0.3, 0.1, 0.02)},
    },
    'ours: POLK': {
        'fixed': {'mode': 'paper', 'regularization': 1e-5},
        'grid': {'step_size': (0.02, 0.05, 0.2), 'budget': BUDGETS},
    },
    'ours: paper': {
        'fixed': {'mode': 'paper', 'regularization': 1e-5, 'constraint': CVaR(0.9, 1.0)},
        'grid': {'step_size': (0.02, 0.05, 0.2), 'budget': BUDGETS},
    },
}


def run(fixed):
    """Return ``run`` of one variant: one call of partial_fit for the whole stream."""

    def run_variant(stream, setting):
        arguments = fixed | {k: v for k, v in setting.items() if k != 'bandwidth'}
        if 'budget' in arguments:
            arguments['parsimony'] = arguments.pop('budget') / arguments['step_size'] ** 2
        learner = PrimalDualLearner(Gaussian(setting['bandwidth']), **arguments)
        learner.warm_up(stream.x.shape[1])
        with Stopwatch() as watch:
            learner.partial_fit(stream.x, stream.y)
        error = stream.error(learner.predict(stream.test_x))
        return Result(watch.seconds / len(stream.x), error, learner.model_order_)

    return run_variant


HERE = Origin(absence=lambda: '', version=lambda: 'this tree')
CONTESTANTS = [
    Contestant(name, HERE, run(variant['fixed']), grid(**variant['grid']), rounds=3)
    for name, variant in OURS.items()
]
