# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""How fast subquantile minimisation converges, beside ``1 - 2 / kappa`` for gradient steps.

Gradient steps of ``1 / L`` on a function of curvatures from mu to L bring it nearer to its minimum
by ``1 - mu / L`` each, and its value by the square of that, about ``1 - 2 / kappa``. That holds as
soon as the samples that are kept stay the same; the kappa is theirs.
"""

from typing import Any, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt
from scipy.special import expit

from kernel_constrained.core import SubquantileClassifier, SubquantileRegressor
from kernel_constrained.offline.reproduction.parallel import over_cores
from kernel_constrained.offline.reproduction.subquantile_data import (
    CORRUPTION,
    KERNEL,
    Samples,
    samples_of,
)

Array = npt.NDArray[np.float64]
Learner = SubquantileRegressor | SubquantileClassifier

SAMPLES = 500
PLAIN, NESTEROV, ALTERNATING = 'gradient', 'gradient, Nesterov', 'alternating'
SOLVERS: dict[str, dict[str, Any]] = {
    PLAIN: {'solver': 'gradient'},
    NESTEROV: {'solver': 'gradient', 'acceleration': True},
    ALTERNATING: {'solver': 'alternating'},
}
# The algorithm as published: from no function, exactly the stated share is dropped. So exact
# that what is left above the final value does not show in the rate.
AS_PUBLISHED: dict[str, Any] = {
    'start': 'zero',
    'refine': False,
    'tolerance': 1e-9,
    'max_iterations': 100_000,
}
# The rate is that between these shares of the first gap; steps are counted up to CLOSE.
FROM, TO, CLOSE = 1e-4, 1e-9, 1e-6


@attrs.frozen
class Problem:
    """A loss, with the corruption it is given and three ridges.

    Attributes
    ----------
    learner
        Of this loss.
    corruption
        Of targets or labels.
    curvature
        Largest second derivative of the loss by the prediction.
    ridges
        Lambda.
    contraction
        Of the distance per step, as the paper's proof has it.
    """

    learner: type[Learner]
    corruption: str
    curvature: float
    ridges: tuple[float, ...]
    contraction: float


PROBLEMS = {
    'squared': Problem(SubquantileRegressor, 'shifted', 2.0, (1e-1, 1e-2, 1e-3), 3 / 4),
    'logistic': Problem(SubquantileClassifier, 'flipped', 0.25, (1e-2, 1e-3, 1e-4), 1 / 2),
}


class Course(NamedTuple):
    """How the objective came down.

    Attributes
    ----------
    gap : (iterations,)
        Objective minus its final value.
    final
        That value.
    kappa
        Condition number at the end, on the samples kept.
    corrupted
        How many of the samples kept are corrupted ones.
    """

    gap: Array
    final: float
    kappa: float
    corrupted: int

    def steps_to(self, share: float) -> int:
        """Return after how many iterations the gap is below a share of the first."""
        return int(np.argmax(self.gap <= share * self.gap[0])) + 1

    @property
    def rate(self) -> float:
        """Factor of the gap per step, over five powers of ten."""
        first, last = self.steps_to(FROM), self.steps_to(TO)
        return float((self.gap[last - 1] / self.gap[first - 1]) ** (1.0 / (last - first)))


# The courses of each loss, ridge and solver, one for each seed.
Courses = dict[tuple[str, float, str], list[Course]]


def course_of(loss: str, ridge: float, solver: str, seed: int) -> Course:
    """Minimise, and look at the objective after each iteration."""
    problem = PROBLEMS[loss]
    samples = samples_of(problem.corruption, SAMPLES, seed)
    learner = problem.learner(
        KERNEL, corruption=CORRUPTION, regularization=ridge, **AS_PUBLISHED, **SOLVERS[solver]
    ).fit(samples.X, samples.y)
    final = min(learner.objective_)
    return Course(
        np.array(learner.objective_) - final,
        final,
        condition_number(problem, learner, samples),
        int((learner.kept_ & samples.corrupted).sum()),
    )


def condition_number(problem: Problem, learner: Learner, samples: Samples) -> float:
    """Return the largest curvature of the objective over its smallest at the end.

    On the samples kept. The largest is a bound, from the largest eigenvalue of the covariance and
    the largest curvature of the loss: steps must be as short as that.
    """
    features = learner.features_(samples.X[learner.kept_])
    design = np.column_stack([features, np.ones(len(features))])
    ridge = np.full(design.shape[1], 2.0 * learner.regularization)
    curvature = np.full(len(design), problem.curvature)
    if isinstance(learner, SubquantileClassifier):
        probability = expit(learner.decision_function(samples.X[learner.kept_]))
        curvature = probability * (1.0 - probability)
    else:
        ridge[-1] = 0.0  # the intercept is free
    most = problem.curvature * np.linalg.eigvalsh(design.T @ design / len(design))[-1]
    hessian = (design * curvature[:, None]).T @ design / len(design) + np.diag(ridge)
    return float((most + ridge[0]) / np.linalg.eigvalsh(hessian)[0])


def courses(seeds: int) -> Courses:
    """Minimise both losses by each solver at each ridge, on so many sets of samples."""
    tasks = [
        (loss, ridge, solver, seed)
        for loss, problem in PROBLEMS.items()
        for ridge in sorted(problem.ridges)  # the smallest takes longest
        for solver in SOLVERS
        for seed in range(seeds)
    ]
    found: Courses = {}
    for task, course in zip(tasks, over_cores(course_of, tasks, 'convergence'), strict=True):
        found.setdefault(task[:3], []).append(course)
    return found
