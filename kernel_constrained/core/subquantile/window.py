# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Subquantile Minimization of a stream: the newest samples but those that look corrupted."""

from typing import Any, ClassVar, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.configuration import parameter, same_as
from kernel_constrained.core.learner import PrimalDualLearner
from kernel_constrained.core.online import divergence, OnlineLearner
from kernel_constrained.core.recursive import LEAST_REGULARIZATION
from kernel_constrained.core.samples import enlarged, not_finite
from kernel_constrained.core.subquantile import window_layout as layout
from kernel_constrained.core.subquantile import window_look, window_steps

Array = npt.NDArray[np.float64]

SHARED = attrs.fields_dict(PrimalDualLearner)


class WindowTrace(NamedTuple):
    """What a stream was like, sample by sample, each before the sample was learned.

    Attributes
    ----------
    prediction : (n,) or (n, q)
        Function values at the sample.
    loss : (n,)
        Its squared error.
    threshold : (n,)
        The loss beyond which it is taken to be corrupted, infinite before there is one.
    kept : (n,)
        Whether it was learned when it came; it may have changed sides since.
    model_order : (n,)
        Atoms in the dictionary after the sample.
    """

    prediction: Array
    loss: Array
    threshold: Array
    kept: npt.NDArray[np.bool_]
    model_order: npt.NDArray[np.int64]


@attrs.define(eq=False)
class SubquantileLearner(OnlineLearner):
    """Online kernel ridge regression on the newest samples, without those that look corrupted.

    Subquantile Minimization (Rathnashyam and Gittens) over a sliding window, alternating: the
    function is ridge regression on what is kept, and kept is what has the smallest residuals.
    Residuals are leave-one-out, over their standard deviations, so that where nothing was learned
    a large one is no outlier; and over a local scale, so that noise may differ from place to
    place. Dropped is what lies further out than three standard deviations do, but never more than
    the share ``corruption`` of the window; the dictionary is as that of
    :class:`PrimalDualLearner`.

    Parameters
    ----------
    kernel
        :class:`Gaussian` or :class:`Polynomial`.
    corruption
        Largest share of the window that may be dropped: 0.5 where nobody knows how many are
        corrupted, for what is dropped is found from the residuals; 0 for ridge regression.
    window
        Samples that the function is learned from.
    regularization
        Lambda: ``lambda / 2 |f|^2`` beside the mean loss over a full window; at least 1e-9.
    novelty
        An atom is added where more than this share of the squared norm of a sample's kernel
        function lies outside the span of the dictionary.
    max_model_order
        Most atoms the dictionary may hold; beyond, the one that is worth least goes.

    Attributes
    ----------
    model_order_ : int
        Atoms in the dictionary, M.
    dictionary_ : (M, p)
        The atoms.
    weights_ : (M,) or (M, q)
        Weights of the function that predicts.
    kept_ : (n,)
        Which samples of the window are kept, the oldest first.
    loss_ : float
        Loss of the newest sample, before it was learned: beyond ``threshold_`` it was not.
    corruption_ : float
        Share of the window that looks corrupted, estimated from the residuals.
    rejected_ : int
        Samples that were not learned when they came; some may have been re-admitted.
    threshold_ : float
        The loss beyond which the newest sample was taken to be corrupted.
    """

    FORMAT = 'kernel_constrained.SubquantileLearner'
    LAYOUT: ClassVar[Any] = layout

    corruption: float = parameter(
        0.5, 'largest share of the window that may be corrupted; 0.5 where nobody knows', low=0.0,
        high=0.5, runtime=True,
    )  # fmt: skip
    window: int = parameter(
        2000, 'newest samples that are learned from', unit='samples', low=20, high=100000
    )
    regularization: float = same_as(SHARED['regularization'])
    novelty: float = same_as(SHARED['novelty'])
    max_model_order: int = same_as(SHARED['max_model_order'])

    _ring: Array = attrs.field(init=False, repr=False, default=None)
    _coordinates: Array = attrs.field(init=False, repr=False, default=None)

    # -- learning and predicting ------------------------------------------------------------

    def prequential(self, X: npt.ArrayLike, y: npt.ArrayLike) -> WindowTrace:
        """Predict each sample, then learn it; return the :class:`WindowTrace`.

        Takes, raises and learns what :meth:`partial_fit` does.
        """
        x, targets = self._checked_samples(X, y)
        trace = np.empty((len(x), layout.TRACE_HEADER + self._columns))
        self._learn(x, targets, trace)
        return WindowTrace(
            self._shaped(trace[:, layout.TRACE_HEADER :]),
            trace[:, layout.TRACE_LOSS],
            trace[:, layout.TRACE_LIMIT],
            trace[:, layout.TRACE_KEPT] > 0.0,
            trace[:, layout.TRACE_ORDER].astype(np.int64),
        )

    def predict(self, X: npt.ArrayLike) -> Array:
        """Evaluate the learned function at ``X`` (n, p); returns (n,) or (n, q).

        Raises
        ------
        ValueError
            Where nothing has been learned, or ``X`` has another number of columns.
        """
        return self._evaluate(X)

    # -- learned attributes -----------------------------------------------------------------

    @property
    def dual_variable_(self) -> float:
        """Zero: there is no constraint."""
        return 0.0

    @property
    def dual_cap_binds_(self) -> bool:
        """Return False: there is no constraint."""
        return False

    @property
    def rejected_(self) -> int:
        """Count the samples that were not learned when they came."""
        return int(self._figure(layout.REJECTED))

    @property
    def loss_(self) -> float:
        """Loss of the newest sample, before it was learned."""
        return self._figure(layout.NEWEST_LOSS)

    @property
    def threshold_(self) -> float:
        """Return the loss beyond which the newest sample was taken to be corrupted."""
        return self._figure(layout.LOSS_LIMIT, np.inf)

    @property
    def corruption_(self) -> float:
        """Share of the window that looks corrupted, whatever may be dropped."""
        return self._figure(layout.CORRUPTION)

    @property
    def kept_(self) -> npt.NDArray[np.bool_]:
        """Which samples of the window are kept, the oldest first."""
        self._require_samples('kept_')
        return np.asarray(self._ring[self._ring_row(layout.IS_KEPT), self._oldest_first()] > 0.0)

    @property
    def dropped_share_(self) -> float:
        """Share of the window that is dropped at present."""
        return 1.0 - float(self.kept_.mean()) if self.samples_ else 0.0

    # -- parameters while it learns ---------------------------------------------------------

    def set_parameters(self, **values: Any) -> None:
        """Change run-time parameters between two samples.

        Another regularisation holds from the next start anew on, the others at once.

        Raises
        ------
        ConfigurationError
            Where a name is unknown or fixed, or a value is not allowed; nothing changes then.
        """
        super().set_parameters(**values)
        if self._state is not None:
            self._state[layout.NEXT_LOOK] = 0.0  # a smaller share may be dropped from now on

    def _settings(self) -> layout.Settings:
        return layout.Settings(
            *self._kernel_settings(),
            window=self.window,
            corruption=self.corruption,
            regularization=max(self.regularization, LEAST_REGULARIZATION),
            novelty=self.novelty,
            max_order=self.max_model_order,
        )

    # -- the arrays -------------------------------------------------------------------------

    @property
    def _arrays(self) -> tuple[Array, ...]:
        """Return what the compiled code takes first."""
        return self._state, self._table, self._factors, self._ring, self._coordinates

    def _count(self) -> int:
        """Count the samples in the window."""
        return min(self.samples_, self.window)

    def _oldest_first(self) -> npt.NDArray[np.int64]:
        """Columns of the ring."""
        count = self._count()
        return (np.arange(count) + self.samples_ - count) % self.window

    def _ring_row(self, row: int) -> int:
        return self._inputs + self._columns + row

    def _late_rows(self) -> slice:
        first = self._inputs + self._columns + layout.SCRATCH + layout.LATE
        return slice(first, first + 3)

    def _start(self, inputs: int, capacity: int = 64) -> None:
        self._inputs = inputs
        own = inputs + self._columns
        self._state = np.zeros(layout.STATE + self._columns)
        self._write_settings()
        regularization = self._state[layout.Settings._fields.index('regularization')]
        self._state[layout.RIDGE] = 0.5 * regularization * self.window
        self._state[layout.LIMIT] = self._state[layout.LOSS_LIMIT] = np.inf
        first = min(window_look.FIRST_START, self.window)
        self._state[layout.NEXT_LOOK] = self._state[layout.NEXT_START] = first
        self._table = np.zeros((own + layout.TABLE, 0))
        self._factors = np.zeros((4, 0, 0))
        width = (self.window + 7) // 8 * 8
        self._ring = np.zeros((own + layout.RING_SCRATCH + 1 + self._columns, width))
        self._coordinates = np.zeros((width, 0))
        self._allocate(capacity)

    def _allocate(self, capacity: int) -> None:
        super()._allocate(capacity)
        stride = self._table.shape[1]
        self._coordinates = enlarged(self._coordinates, len(self._coordinates), stride)

    def _learn(self, x: Array, targets: Array, trace: Array) -> None:
        done, status = 0, layout.FULL
        while status in (layout.FULL, layout.LOOK):
            done = window_steps.window_stream(*self._arrays, x, targets, trace, done)
            status = int(self._state[layout.STATUS])
            if status == layout.FULL:
                self._allocate(2 * self._factors.shape[1])
            elif status == layout.LOOK:
                window_look.look(*self._arrays, self._inputs, self._columns)
        if status == layout.NOT_FINITE:
            raise ValueError(not_finite('X', x) or not_finite('y', targets))
        if status == layout.DIVERGED:
            raise divergence(done, len(x), 'Its target may be no measurement')

    def _fill(self, x: Array, out: Array, support: Array) -> None:
        window_steps.predict(*self._arrays, self._columns, x, out, support)

    def _predicting_weights(self) -> Array:
        order = self.model_order_
        rows = self._table[self._inputs : self._inputs + self._columns, :order]
        return self._factors[0, :order, :order].T @ rows.T

    def _arrays_to_save(self) -> dict[str, Array]:
        order, count, own = self.model_order_, self._count(), self._inputs + self._columns
        return {
            'state': self._state_to_save()[: layout.STATE],
            'points_weights': self._table[: own + layout.SCRATCH, :order],
            'late': self._table[self._late_rows(), :order],
            'factors': self._factors[:2, :order, :order],
            'samples': self._ring[: own + layout.RING_SCRATCH, :count],
            'coordinates': self._coordinates[:count, :order],
        }

    def _restore(self, arrays: dict[str, Array]) -> None:
        inputs = len(arrays['points_weights']) - self._columns - layout.SCRATCH
        count, order = arrays['coordinates'].shape
        self._start(inputs, max(64, 2 * order))
        self._state[: layout.STATE] = arrays['state']
        self._write_settings()
        own = inputs + self._columns
        self._table[: own + layout.SCRATCH, :order] = arrays['points_weights']
        self._table[self._late_rows(), :order] = arrays['late']
        self._factors[:2, :order, :order] = arrays['factors']
        self._ring[: own + layout.RING_SCRATCH, :count] = arrays['samples']
        self._coordinates[:count, :order] = arrays['coordinates']

    def _example(self, inputs: int, outputs: int) -> tuple[Array, Array]:
        count = 2 * window_look.FIRST_START
        x = np.linspace(0.0, 1.0, count * inputs).reshape(count, inputs)
        return x, np.zeros((count, outputs))
