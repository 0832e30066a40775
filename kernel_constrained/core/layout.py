# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Where everything lies in the three arrays that a learner consists of.

Each array costs time to pass from Python to compiled code, so there are three:

``state`` (one dimension)
    settings; counters; a row for each constraint; a row for each sample of a mini-batch that is
    not yet full; the newest losses.
``table`` (rows of one stride)
    coordinates of the atoms; weights of the functions; scratch; a kernel vector for each sample
    of the mini-batch.
``factors`` (1 or 2, capacity, stride)
    the inverse Cholesky factor; for the recursive step the covariance.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_constrained.core.compilation import compiled
from kernel_constrained.core.komp import Dictionary

Array = npt.NDArray[np.float64]

DEFAULT, PAPER, PENALTY = 0.0, 1.0, 2.0


class Settings(NamedTuple):
    """What the compiled steps need of the configuration, all floats; the kernel's come first."""

    kernel_0: float
    kernel_1: float
    kernel_code: float
    mode: float
    loss: float
    huber_threshold: float
    labels: float
    outputs: float
    batch: float
    constraints: float
    step_size: float
    decay_after: float
    parsimony: float
    novelty: float
    regularization: float
    dual_step_size: float
    dual_regularization: float
    quantile_step_size: float
    averaging_window: float
    penalty: float
    penalty_doubling: float
    max_order: float


# Counters, behind the settings.
(COUNT, ORDER, OVERSPENT, PENDING, TARGET_POWER, INFORMATION, TURN, LATE_SCALE, STATUS) = range(
    len(Settings._fields), len(Settings._fields) + 9
)
BOUNDS = STATUS + 1

# How a call of the stream ended.
LEARNED, FULL, DIVERGED, NOT_FINITE, NO_LABEL = range(5)

# Row of a constraint: what was chosen, then what is learned.
SIGNIFICANCE, TOLERANCE, SMOOTHING, DUAL_CAP, DUAL, THRESHOLD, MEAN_DUAL, POWER, BOUND = range(9)

# Rows of scratch in the table: those of Dictionary.
SCRATCH = 9

# Entries of a trace row before the dual variables and the prediction.
LOSS, TRACE_ORDER, TRACE_HEADER = range(3)


class Shape(NamedTuple):
    """What the arrays are as large as, and what is where in them that outlives a step.

    Attributes
    ----------
    inputs, columns
        Of a sample: numbers in ``x`` and in the target.
    outputs
        Functions that predict.
    functions
        Rows of weights: the iterate of each output, and its average where there is one.
    batch, constraints
        Samples of a mini-batch, and constraints.
    losses
        How many of the newest are kept.
    """

    inputs: int
    columns: int
    outputs: int
    functions: int
    batch: int
    constraints: int
    losses: int

    @property
    def waiting(self) -> slice:
        """Entries of the state for the samples of a mini-batch that is not full."""
        begin = BOUNDS + BOUND * self.constraints
        each = self.inputs + self.columns + 2 * self.functions + 3
        return slice(begin, begin + self.batch * each)

    @property
    def table_rows(self) -> int:
        """Rows of the table."""
        return self.inputs + self.functions + SCRATCH + self.batch

    def new_state(self) -> Array:
        """Return the state of a learner that has seen nothing, without settings."""
        state = np.zeros(self.waiting.stop + self.losses)
        state[LATE_SCALE] = 1.0
        return state

    def bounds(self, state: Array) -> Array:
        """Return the rows of the constraints, shape (m, BOUND): a view."""
        return state[BOUNDS : self.waiting.start].reshape(self.constraints, BOUND)

    def learned_rows(self) -> dict[str, slice]:
        """Rows of the table that are no scratch."""
        scratch = self.inputs + self.functions
        return {
            'points': slice(0, self.inputs),
            'weights': slice(self.inputs, scratch),
            'diagonal_late_usage': slice(scratch, scratch + 3),
            'kernel_vectors': slice(scratch + SCRATCH, None),
        }

    def predicting(self, table: Array) -> Array:
        """Return the rows of weights that predict, shape (q, stride): the last ones; a view."""
        end = self.inputs + self.functions
        return table[end - self.outputs : end]

    def widened(self, rows: Array, outputs: int) -> Array:
        """Put rows of zeros behind those of the outputs, for iterates and averages alike."""
        groups = rows.reshape(len(rows) // self.outputs, self.outputs, rows.shape[1])
        more = np.zeros((len(groups), outputs - self.outputs, rows.shape[1]))
        return np.concatenate([groups, more], axis=1).reshape(len(groups) * outputs, rows.shape[1])

    def with_wider_batch(self, state: Array, outputs: int) -> Array:
        """Make room for values and coefficients of more functions at the samples that wait."""
        begin = self.waiting.start + self.batch * (self.inputs + self.columns)
        end = begin + 2 * self.batch * self.functions
        rows = state[begin:end].reshape(2 * self.batch, self.functions).T
        wider = self.widened(rows, outputs).T.ravel()
        return np.concatenate([state[:begin], wider, state[end:]])


class Batch(NamedTuple):
    """The samples of a mini-batch, one a row."""

    x: np.ndarray  # (B, p)
    y: np.ndarray  # (B, columns of the target)
    values: np.ndarray  # (B, functions): every function at x
    k: np.ndarray  # (B, stride): kernel vectors
    coefficients: np.ndarray  # (B, functions): what the newcomers are added with
    losses: np.ndarray  # (B,)
    tail: np.ndarray  # (B,): derivatives of a constraint by the losses
    multipliers: np.ndarray  # (B,): how often each loss counts


class Learner(NamedTuple):
    """All that a step reads and writes, as views of the three arrays."""

    d: Dictionary
    bounds: np.ndarray  # (constraints, BOUND)
    batch: Batch
    recent: np.ndarray  # the newest losses


@compiled
def settings_of(a):
    """Read the settings; one array is cheaper to pass from Python than twenty numbers."""
    return Settings(
        a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
        a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21],
    )  # fmt: skip


@compiled
def learner_of(s, state, table, factor, inputs, columns, functions):
    """Lay the views; ``columns`` are those of the target."""
    size, constraints = int(s.batch), int(s.constraints)
    at_x = BOUNDS + BOUND * constraints
    at_y = at_x + size * inputs
    at_values = at_y + size * columns
    at_coefficients = at_values + size * functions
    at_losses = at_coefficients + size * functions
    at_recent = at_losses + 3 * size
    scratch = inputs + functions
    r = table[scratch : scratch + SCRATCH]
    d = Dictionary(
        int(s.kernel_code), state[:2], table[:inputs], table[inputs:scratch], factor,
        r[0], r[1], r[2], r[3], r[4], r[5].view(np.int64), r[6:8], r[8],
    )  # fmt: skip
    batch = Batch(
        state[at_x:at_y].reshape(size, inputs),
        state[at_y:at_values].reshape(size, columns),
        state[at_values:at_coefficients].reshape(size, functions),
        table[scratch + SCRATCH : scratch + SCRATCH + size],
        state[at_coefficients:at_losses].reshape(size, functions),
        state[at_losses : at_losses + size],
        state[at_losses + size : at_losses + 2 * size],
        state[at_losses + 2 * size : at_recent],
    )
    bounds = state[BOUNDS:at_x].reshape(constraints, BOUND)
    return Learner(d, bounds, batch, state[at_recent:])
