# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Subquantile Minimization of a stream: the newest samples but those that look corrupted."""

from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained import model_file
from kernel_constrained.configuration import ConfigurationError, parameter, same_as
from kernel_constrained.core.kernels import Gaussian, Kernel
from kernel_constrained.core.learner import choose_kernel, KERNELS, PrimalDualLearner
from kernel_constrained.core.recursive import LEAST_REGULARIZATION
from kernel_constrained.core.samples import (
    as_array,
    capacity_and_stride,
    check_targets,
    checked_inputs,
    DivergenceError,
    enlarged,
    not_finite,
)
from kernel_constrained.core.subquantile import window_layout as layout
from kernel_constrained.core.subquantile import window_look, window_steps

Array = npt.NDArray[np.float64]

FORMAT = 'kernel_constrained.SubquantileLearner'
SHARED = attrs.fields_dict(PrimalDualLearner)
NO_TRACE = np.empty((0, layout.TRACE_HEADER))
NO_SUPPORT = np.empty(0)


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
class SubquantileLearner:
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

    kernel: Kernel = attrs.field(factory=Gaussian, validator=choose_kernel)
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

    # Learned state: what the compiled steps work on, empty until the first sample.
    _flat: bool = attrs.field(init=False, repr=False, default=False)
    _inputs: int = attrs.field(init=False, repr=False, default=0)
    _columns: int = attrs.field(init=False, repr=False, default=0)
    _state: Array = attrs.field(init=False, repr=False, default=None)
    _table: Array = attrs.field(init=False, repr=False, default=None)
    _factors: Array = attrs.field(init=False, repr=False, default=None)
    _ring: Array = attrs.field(init=False, repr=False, default=None)
    _coordinates: Array = attrs.field(init=False, repr=False, default=None)

    # -- learning ---------------------------------------------------------------------------

    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> 'SubquantileLearner':
        """Learn from samples in their order; any number of them.

        Parameters
        ----------
        X
            Inputs, shape (n, p).
        y
            Targets, shape (n,) or (n, q): a sample is kept or dropped as a whole.

        Returns
        -------
        SubquantileLearner
            The learner itself.

        Raises
        ------
        ValueError
            Where shapes do not fit or a number is not finite; nothing was learned then.
        DivergenceError
            Where a loss is beyond 1e200. What came before its sample has been learned.
        """
        x, targets = self._checked_samples(X, y)
        self._learn(x, targets, NO_TRACE)
        return self

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

    def _learn(self, x: Array, targets: Array, trace: Array) -> None:
        """Run the stream, and do what it asks for between two samples."""
        done, status = 0, layout.FULL
        while status in (layout.FULL, layout.LOOK):
            done += window_steps.window_stream(
                *self._arrays, x[done:], targets[done:], trace[done:]
            )
            status = int(self._state[layout.STATUS])
            if status == layout.FULL:
                self._allocate(2 * self._factors.shape[1])
            elif status == layout.LOOK:
                window_look.look(*self._arrays, self._inputs, self._columns)
        if status == layout.NOT_FINITE:
            raise ValueError(not_finite('X', x) or not_finite('y', targets))
        if status == layout.DIVERGED:
            raise DivergenceError(
                f'the loss of sample {done} of {len(x)} is beyond 1e200; samples before it are '
                'learned. Its target may be no measurement'
            )

    def warm_up(self, inputs: int = 1, outputs: int = 1) -> 'SubquantileLearner':
        """Compile everything now, so that the first sample does not wait for it; learn nothing.

        The result is kept on disk: only the first start after an installation takes long.
        """
        spare = attrs.evolve(self)
        count = 2 * window_look.FIRST_START
        x = np.linspace(0.0, 1.0, count * inputs).reshape(count, inputs)
        spare.partial_fit(x, np.zeros((count, outputs))).predict(x[:1])
        return self

    def predict(self, X: npt.ArrayLike) -> Array:
        """Evaluate the learned function at ``X`` (n, p); returns (n,) or (n, q).

        Raises
        ------
        ValueError
            Where nothing has been learned, or ``X`` has another number of columns.
        """
        return self._evaluate(X, NO_SUPPORT)

    def predict_with_support(self, X: Array) -> tuple[Array, Array]:
        """Evaluate the learned function, and say how much of it was learned near there.

        Takes, returns and raises what that of :class:`PrimalDualLearner` does.
        """
        support = np.empty(len(X))
        return self._evaluate(X, support), support

    def _evaluate(self, X: npt.ArrayLike, support: Array) -> Array:
        """Evaluate the function at ``X``; fill ``support``, if it has any length."""
        self._require_samples('predict')
        x = checked_inputs(X, self._inputs)
        if not np.isfinite(x).all():
            raise ValueError(not_finite('X', x))
        out = np.empty((len(x), self._columns))
        window_steps.predict(*self._arrays, self._columns, x, out, support)
        return self._shaped(out)

    # -- learned attributes -----------------------------------------------------------------

    @property
    def model_order_(self) -> int:
        """Atoms in the dictionary."""
        return int(self._figure(layout.ORDER, 0))

    @property
    def samples_(self) -> int:
        """Samples taken so far, the rejected ones among them."""
        return int(self._figure(layout.COUNT, 0))

    @property
    def overspent_(self) -> int:
        """Steps that had to remove an atom."""
        return int(self._figure(layout.OVERSPENT, 0))

    @property
    def dual_variable_(self) -> float:
        """Zero: there is no constraint."""
        return 0.0

    @property
    def dual_cap_binds_(self) -> bool:
        """False: there is no constraint."""
        return False

    @property
    def rejected_(self) -> int:
        """Samples that were not learned when they came."""
        return int(self._figure(layout.REJECTED, 0))

    @property
    def loss_(self) -> float:
        """Loss of the newest sample, before it was learned."""
        return self._figure(layout.NEWEST_LOSS, 0.0)

    @property
    def threshold_(self) -> float:
        """The loss beyond which the newest sample was taken to be corrupted."""
        return self._figure(layout.LOSS_LIMIT, np.inf)

    @property
    def corruption_(self) -> float:
        """Share of the window that looks corrupted, whatever may be dropped."""
        return self._figure(layout.CORRUPTION, 0.0)

    @property
    def kept_(self) -> npt.NDArray[np.bool_]:
        """Which samples of the window are kept, the oldest first."""
        self._require_samples('kept_')
        return self._ring[self._ring_row(layout.IS_KEPT), self._oldest_first()] > 0.0

    @property
    def dropped_share_(self) -> float:
        """Share of the window that is dropped at present."""
        return 1.0 - float(self.kept_.mean()) if self.samples_ else 0.0

    @property
    def dictionary_(self) -> Array:
        """The atoms, shape (M, p)."""
        self._require_samples('dictionary_')
        return np.ascontiguousarray(self._table[: self._inputs, : self.model_order_].T)

    @property
    def weights_(self) -> Array:
        """Weights of the function that predicts, shape (M,) or (M, q)."""
        self._require_samples('weights_')
        order = self.model_order_
        rows = self._table[self._inputs : self._inputs + self._columns, :order]
        return self._shaped(self._factors[0, :order, :order].T @ rows.T)

    # -- files ------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write configuration and learned state; the file is replaced whole or not at all."""
        model_file.write(path, FORMAT, *self.to_parts())

    @classmethod
    def load(cls, path: str | Path) -> 'SubquantileLearner':
        """Read what :meth:`save` wrote; predictions and further learning go on bit for bit.

        Raises
        ------
        ModelFileError
            Where the file is damaged, of another kind, or of a version this one cannot read.
        """
        return cls.from_parts(*model_file.read(path, FORMAT))

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Split into (configuration as plain values, arrays): what a model file holds."""
        header: dict[str, Any] = {
            'parameters': {
                field.name: getattr(self, field.name)
                for field in attrs.fields(type(self))
                if 'type' in field.metadata
            },
            'kernel': {'name': self.kernel.name, **attrs.asdict(self.kernel)},
            'flat': self._flat,
            'columns': self._columns,
        }
        if self._state is None:
            return header, {}
        order, count = self.model_order_, self._count()
        state = self._state[: layout.STATE].copy()
        # what is in the header is no state
        state[: len(layout.Settings._fields)] = 0.0
        state[layout.STATUS] = layout.LEARNED
        own = self._inputs + self._columns
        return header, {
            'state': state,
            'points_weights': self._table[: own + layout.SCRATCH, :order],
            'late': self._table[self._late_rows(), :order],
            'factors': self._factors[:2, :order, :order],
            'samples': self._ring[: own + layout.RING_SCRATCH, :count],
            'coordinates': self._coordinates[:count, :order],
        }

    @classmethod
    def from_parts(cls, header: dict[str, Any], arrays: dict[str, Array]) -> 'SubquantileLearner':
        """Build a learner from what :meth:`to_parts` returned."""
        kernel = dict(header['kernel'])
        name = kernel.pop('name')
        learner = cls(kernel=KERNELS[name](**kernel), **header['parameters'])
        if arrays:
            learner._flat, learner._columns = header['flat'], header['columns']
            learner._restore(arrays)
        return learner

    def _restore(self, arrays: dict[str, Array]) -> None:
        """Take the learned state from a model file's arrays."""
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

    def set_parameters(self, **values: Any) -> None:
        """Change run-time parameters between two samples.

        Another regularisation holds from the next start anew on, the others at once.

        Raises
        ------
        ConfigurationError
            Where a name is unknown or fixed, or a value is not allowed; nothing changes then.
        """
        mine = {f.name for f in attrs.fields(type(self)) if f.metadata.get('runtime')}
        unknown = set(values) - mine
        if unknown:
            names = ', '.join(sorted(unknown))
            raise ConfigurationError(f'{names} cannot be changed while learning')
        changed = attrs.evolve(self, **values)
        for name in mine:
            setattr(self, name, getattr(changed, name))
        if self._state is not None:
            self._write_settings()
            self._state[layout.NEXT_LOOK] = 0.0  # a smaller share may be dropped from now on

    # -- inside -----------------------------------------------------------------------------

    @property
    def _arrays(self) -> tuple[Array, ...]:
        """What the compiled code takes first."""
        return self._state, self._table, self._factors, self._ring, self._coordinates

    def _figure(self, entry: int, without: float) -> float:
        return float(self._state[entry]) if self._state is not None else without

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

    def _write_settings(self) -> None:
        """Put the configuration where the compiled step reads it."""
        settings = layout.Settings(
            kernel_0=float(self.kernel.parameters[0]),
            kernel_1=float(self.kernel.parameters[1]),
            kernel_code=float(self.kernel.code),
            window=self.window,
            corruption=self.corruption,
            regularization=max(self.regularization, LEAST_REGULARIZATION),
            novelty=self.novelty,
            max_order=self.max_model_order,
        )
        self._state[: len(settings)] = settings

    def _start(self, inputs: int, capacity: int = 64) -> None:
        """Make the state of a learner that has seen nothing."""
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
        """Give the arrays room for ``capacity`` atoms, or for one more than the cap if less."""
        capacity, stride = capacity_and_stride(min(capacity, self.max_model_order + 1))
        self._table = enlarged(self._table, len(self._table), stride)
        self._factors = enlarged(self._factors, len(self._factors), capacity, stride)
        self._coordinates = enlarged(self._coordinates, len(self._coordinates), stride)

    def _checked_samples(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
        """Return X (n, p) and y (n, q) as arrays, or raise before anything has changed.

        What has been learned already leaves the check for finite numbers to the stream.
        """
        x, targets = checked_inputs(X, self._inputs), as_array(y)
        flat = targets.ndim == 1
        if flat:
            targets = targets[:, None]
        check_targets(x, targets, np.shape(y), self._columns)
        if self._state is None:
            if not (np.isfinite(x).all() and np.isfinite(targets).all()):
                raise ValueError(not_finite('X or y', np.hstack([x, targets])))
            self._flat, self._columns = flat, targets.shape[1]
            self._start(x.shape[1])
        return x, targets

    def _require_samples(self, what: str) -> None:
        if self._state is None:
            raise ValueError(f'nothing has been learned yet: call partial_fit before {what}')

    def _shaped(self, columns: Array) -> Array:
        """One column flat, if the targets came flat."""
        flat = self._flat and columns.shape[1] == 1
        return np.ascontiguousarray(columns[:, 0] if flat else columns)
