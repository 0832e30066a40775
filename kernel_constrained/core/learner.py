# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The learner a person uses: scikit-learn's conventions around the compiled stream."""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, TYPE_CHECKING

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained.configuration import ConfigurationError, parameter
from kernel_constrained.core import layout, stream
from kernel_constrained.core.constraints import (
    as_constraint,
    choose_constraint,
    conditional_value_at_risk,
    Constraint,
    CONSTRAINTS,
)
from kernel_constrained.core.komp import DEPENDENT
from kernel_constrained.core.losses import Loss, LOSSES
from kernel_constrained.core.online import divergence, from_plain, OnlineLearner, to_plain
from kernel_constrained.core.samples import not_finite

if TYPE_CHECKING:
    from typing_extensions import Self

Array = npt.NDArray[np.float64]

MODES = {'default': layout.DEFAULT, 'paper': layout.PAPER, 'penalty': layout.PENALTY}
STEPS = ('auto', 'gradient', 'recursive')


class Trace(NamedTuple):
    """What a stream was like, sample by sample, each before the sample was learned.

    Attributes
    ----------
    prediction : (n,) or (n, q)
        Function values at the sample.
    loss : (n,)
        Its loss.
    model_order : (n,)
        Atoms in the dictionary after the sample.
    dual_variable : (n,) or (n, m)
        Dual variable after the sample; a column for each of several constraints.
    """

    prediction: Array
    loss: Array
    model_order: npt.NDArray[np.int64]
    dual_variable: Array


@attrs.define(eq=False)
class PrimalDualLearner(OnlineLearner):
    """Online kernel learning under constraints on the loss, with bounded memory.

    Minimises ``E loss(f(x), y) + regularization / 2 |f|^2`` subject to ``CVaR(loss) <=
    tolerance`` over one pass of a stream (Koppel, Zhang, Zhu and Başar, Eqs. 2 and 3), on a
    dictionary that KOMP keeps small (Eq. 21).

    Parameters
    ----------
    kernel
        :class:`Gaussian` or :class:`Polynomial`.
    loss
        Regression: ``'squared'`` (``|f(x) - y|^2``), ``'huber'`` (the same up to
        ``huber_threshold``, its tangent beyond), ``'absolute'``. Labels -1 and 1: ``'logistic'``,
        ``'hinge'``. Classes 0 to ``classes - 1``, a function for each: ``'multiclass_hinge'``
        (Eq. 72), ``'softmax'``.
    constraint
        :class:`CVaR` or :class:`Expectation`, a sequence of them, or None for unconstrained
        learning (POLK in ``mode='paper'``).
    step
        ``'recursive'``: second-order steps, recursive least squares at a cost of O(M^2) a sample;
        squared loss in the default mode only. ``'gradient'``: first-order steps. ``'auto'``:
        recursive where that is possible.
    step_size
        Primal step size eta of the gradient steps.
    parsimony
        P: each gradient step may cost ``P eta^2`` of RKHS norm in compression; 0 keeps every
        atom. In the default mode in units of the root mean square of the targets with the
        squared loss, of ``huber_threshold`` with the Huber loss.
    novelty
        A recursive step adds an atom where more than this share of the squared norm of its
        kernel function lies outside the span of the dictionary.
    regularization
        Lambda; a recursive step takes at least 1e-9.
    dual_regularization
        Delta.
    mode
        ``'default'``: shared threshold z, averaged iterate; reaches the constrained optimum.
        ``'paper'``: Algorithm 1 with Eq. (23) as printed. ``'penalty'``: the penalty method.
    batch_size
        Samples of a mini-batch: a gradient step averages over so many. Samples of a batch that
        is not full wait, whatever call they came in.
    dual_step_size
        Step size of the dual variables, relative to the root mean square of the constraint.
        ``mode='default'`` only; the paper uses ``step_size`` for the dual variable too.
    quantile_step_size
        Step size of the threshold z, relative to the tolerance; ``mode='default'`` only.
    dual_cap
        A dual variable is held at or below this; ``dual_cap_binds_`` says when.
    averaging_window
        The average, or the recursive least squares, look back about this many samples; infinite
        for a stream that does not change.
    decay_after
        Samples after which the step sizes begin to shrink as ``1 / sqrt(1 + t / decay_after)``;
        infinite for constant steps, which keep tracking. ``mode='default'`` only: as published,
        the other modes keep theirs.
    huber_threshold
        Residual beyond which the Huber loss grows linearly, in target units.
    classes
        Number of classes of the multi-class losses.
    penalty, penalty_doubling
        First coefficient of the penalty method and the steps after which it doubles.
    max_model_order
        Most atoms the dictionary may hold, whatever that costs; ``overspent_`` counts the steps
        where it cost more than the budget.
    loss_window
        ``violation_`` and ``cvar_`` speak of this many newest losses.

    Attributes
    ----------
    model_order_ : int
        Atoms in the dictionary, M.
    dictionary_ : (M, p)
        The atoms.
    weights_ : (M,) or (M, q)
        Weights of the function that predicts.
    dual_variable_ : float or (m,)
        Multiplier of the constraint ``CVaR - tolerance <= 0``; in the default mode averaged as
        the function is. One for each of several constraints.
    violation_ : float or (m,)
        CVaR of the newest losses, each before its sample was learned, minus the tolerance; NaN
        without a constraint.
    """

    FORMAT = 'kernel_constrained.PrimalDualLearner'
    LAYOUT: ClassVar[Any] = layout

    loss: str = parameter('squared', 'what a wrong prediction costs', choices=tuple(LOSSES))
    constraint: Constraint | Sequence[Constraint] | None = attrs.field(
        default=None, converter=as_constraint, validator=choose_constraint
    )
    step: str = parameter('auto', 'first or second order', choices=STEPS)
    step_size: float = parameter(0.5, 'primal step size', low=1e-9, high=1e3, runtime=True)
    parsimony: float = parameter(
        0.1, 'compression budget over squared step size', low=0.0, runtime=True
    )
    novelty: float = parameter(
        1e-3, 'share outside the span that makes an atom', low=DEPENDENT, high=1.0, runtime=True
    )
    regularization: float = parameter(1e-5, 'weight of the RKHS norm', low=0.0, runtime=True)
    dual_regularization: float = parameter(1e-5, 'pull of the dual variable to 0', low=0.0)
    mode: str = parameter('default', 'which algorithm', choices=tuple(MODES))
    batch_size: int = parameter(1, 'samples of a mini-batch', unit='samples', low=1, high=10000)
    dual_step_size: float = parameter(
        0.025, 'step size of the dual variable over the size of the constraint', low=0.0,
        runtime=True,
    )  # fmt: skip
    quantile_step_size: float = parameter(
        0.05, 'step size of the threshold over the tolerance', low=0.0, runtime=True
    )
    dual_cap: float = parameter(1e3, 'largest dual variable', low=0.0)
    averaging_window: float = parameter(
        math.inf, 'samples the averaged function looks back', unit='samples', low=1.0
    )
    decay_after: float = parameter(
        2000.0, 'samples after which steps shrink', unit='samples', low=1.0
    )
    huber_threshold: float = parameter(
        1.0, 'residual beyond which the Huber loss is linear', unit='target', low=1e-12
    )
    classes: int = parameter(2, 'classes of the multi-class losses', low=2, high=10000)
    penalty: float = parameter(1e-3, 'first coefficient of the penalty method', low=0.0)
    penalty_doubling: float = parameter(200.0, 'steps after which the penalty doubles', low=1.0)
    max_model_order: int = parameter(2000, 'most atoms in the dictionary', low=1, high=20000)
    loss_window: int = parameter(
        1000, 'newest losses that cvar and violation speak of', unit='samples', low=1
    )

    _functions: int = attrs.field(init=False, repr=False, default=0)
    _shape: layout.Shape = attrs.field(init=False, repr=False, default=None)
    _stream: Callable[..., int] = attrs.field(init=False, repr=False, default=None)

    def __attrs_post_init__(self) -> None:
        """Refuse what does not go together."""
        if self.step == 'recursive' and not self._recursive:
            raise ConfigurationError(
                "step='recursive' needs loss='squared', mode='default', batch_size=1 and "
                f'averaging_window at least 2 (got {self.loss!r}, {self.mode!r}, '
                f"{self.batch_size} and {self.averaging_window:g}); take 'gradient' or 'auto'"
            )
        self._stream = stream.recursive_stream if self._recursive else stream.stream

    # -- learning and predicting ------------------------------------------------------------

    def prequential(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Trace:
        """Predict each sample, then learn it; return the :class:`Trace`.

        Takes, raises and learns what :meth:`partial_fit` does.
        """
        x, targets = self._checked_samples(X, y)
        first = layout.TRACE_HEADER + len(self._constraints)
        trace = np.empty((len(x), first + self._outputs))
        self._learn(x, targets, trace)
        return Trace(
            self._shaped(trace[:, first:]),
            trace[:, layout.LOSS],
            trace[:, layout.TRACE_ORDER].astype(np.int64),
            self._one_or_all(trace[:, layout.TRACE_HEADER : first] * self._dual_scale, 0.0),
        )

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Evaluate the learned function at ``X`` (n, p); returns (n,) or (n, q).

        The scores of the classes where there are such; for a regression this is ``predict``.

        Raises
        ------
        ValueError
            Where nothing has been learned, or ``X`` has another number of columns.
        """
        return self._evaluate(X)

    def predict(self, X: npt.ArrayLike) -> Array:
        """Predict ``X`` (n, p); returns (n,) or (n, q), like the targets or labels learned from.

        Raises
        ------
        ValueError
            Where nothing has been learned, or ``X`` has another number of columns.
        """
        values, kind = self._evaluate(X), self._loss
        if kind.several:
            return np.asarray(values.argmax(axis=1), dtype=float)
        return np.where(values >= 0.0, 1.0, -1.0) if kind.labels else values

    # -- learned attributes -----------------------------------------------------------------

    @property
    def dual_variable_(self) -> Any:
        """Multiplier of ``CVaR - tolerance <= 0``; one for each of several constraints."""
        if self._state is None:
            return self._one_or_all(np.zeros(len(self._constraints)), 0.0)
        column = layout.MEAN_DUAL if self.mode == 'default' else layout.DUAL
        return self._one_or_all(self._bounds[:, column] * self._dual_scale, 0.0)

    @property
    def dual_cap_binds_(self) -> bool:
        """Whether a dual variable is held by its cap: the constraint cannot be met."""
        if self._state is None:
            return False
        rows = self._bounds
        return bool(np.any(rows[:, layout.DUAL] >= rows[:, layout.DUAL_CAP]))

    @property
    def recent_losses_(self) -> Array:
        """Return the newest losses, at most ``loss_window``, in no order."""
        if self._state is None:
            return np.zeros(0)
        return self._state[-self.loss_window :][: self.samples_]

    @property
    def cvar_(self) -> Any:
        """Return the CVaR of the newest losses, each from before it was learned; NaN without."""
        losses = self.recent_losses_
        values = [conditional_value_at_risk(losses, c.significance) for c in self._constraints]
        return self._one_or_all(np.array(values), math.nan)

    @property
    def violation_(self) -> Any:
        """``cvar_`` minus the tolerance: positive while the constraint is violated."""
        tolerances = np.array([c.tolerance for c in self._constraints])
        return self.cvar_ - self._one_or_all(tolerances, math.nan)

    @property
    def squared_norm_(self) -> float:
        """Squared RKHS norm of the function that predicts, summed over its outputs."""
        atoms, weights = self.dictionary_, self._predicting_weights()
        return float(np.sum(weights * (self.kernel(atoms, atoms) @ weights)))

    # -- files, and parameters while it learns ----------------------------------------------

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Split into (configuration as plain values, arrays): what a model file holds."""
        header, arrays = super().to_parts()
        header['constraints'] = [to_plain(one) for one in self._constraints]
        header['several'] = isinstance(self.constraint, tuple)
        return header, arrays

    @classmethod
    def _arguments(cls, header: dict[str, Any]) -> dict[str, Any]:
        constraints = tuple(from_plain(CONSTRAINTS, one) for one in header['constraints'])
        single = constraints[0] if constraints else None
        constraint = constraints if header['several'] else single
        return {**super()._arguments(header), 'constraint': constraint}

    def with_classes(self, classes: int) -> 'Self':
        """Return a learner of more classes that goes on with what this one has learned.

        The functions of the new classes, which come last, are zero.

        Raises
        ------
        ValueError
            Where the loss has no classes, or there would be fewer.
        """
        if not self._loss.several or classes < self.classes:
            raise ValueError(
                f'loss {self.loss} with {self.classes} classes cannot go on with {classes}: '
                'classes are added to a multi-class loss, and none is taken back'
            )
        header, arrays = self.to_parts()
        header['parameters']['classes'] = classes
        if arrays:
            arrays['weights'] = self._shape.widened(arrays['weights'], classes)
            arrays['state'] = self._shape.with_wider_batch(arrays['state'], classes)
        return self.from_parts(header, arrays)

    def set_parameters(self, **values: Any) -> None:
        """Change run-time parameters (those of one constraint too) between two samples.

        Raises
        ------
        ConfigurationError
            Where a name is unknown or fixed, or a value is not allowed; nothing changes then.
        """
        bound: Any = self.constraint
        its = {f.name for f in attrs.fields(type(bound))} if attrs.has(type(bound)) else set()
        of_bound = {k: v for k, v in values.items() if k in its & {'significance', 'tolerance'}}
        own = {k: v for k, v in values.items() if k not in of_bound}
        self._refuse_fixed(own)
        changed = attrs.evolve(self, **own)
        if of_bound:
            self.constraint = attrs.evolve(bound, **of_bound)
        self._take_over(changed)

    # -- what was chosen --------------------------------------------------------------------

    @property
    def _loss(self) -> Loss:
        return LOSSES[self.loss]

    @property
    def _recursive(self) -> bool:
        """Whether steps are of second order."""
        possible = (self.loss, self.mode, self.batch_size) == ('squared', 'default', 1)
        return possible and self.averaging_window >= 2.0 and self.step != 'gradient'

    @property
    def _constraints(self) -> tuple[Constraint, ...]:
        if isinstance(self.constraint, tuple):
            return self.constraint
        return () if self.constraint is None else (self.constraint,)  # type: ignore[return-value]

    @property
    def _outputs(self) -> int:
        """Functions that predict: one for each target column, or for each class."""
        return self.classes if LOSSES[self.loss].several else self._columns

    @property
    def _newcomers(self) -> int:
        return self.batch_size

    @property
    def _dual_scale(self) -> Array:
        """From the multipliers of the compiled step to those of ``CVaR - tolerance``, (m,).

        The default mode scales a constraint by ``1 - significance``.
        """
        scale = np.array([1.0 - c.significance for c in self._constraints])
        return scale if self.mode == 'default' else np.ones(len(scale))

    def _one_or_all(self, values: Array, without: float) -> Any:
        """Return a number (or column) for one constraint, all of them for several."""
        if isinstance(self.constraint, tuple):
            return values
        if self.constraint is None:
            return np.full(len(values), without) if values.ndim > 1 else without
        return values[:, 0] if values.ndim > 1 else float(values[0])

    def _settings(self) -> layout.Settings:
        return layout.Settings(
            *self._kernel_settings(),
            mode=MODES[self.mode],
            loss=self._loss.code,
            huber_threshold=self.huber_threshold,
            labels=self._loss.labels,
            outputs=self._outputs,
            batch=self.batch_size,
            constraints=len(self._constraints),
            step_size=self.step_size,
            decay_after=self.decay_after,
            parsimony=self.parsimony,
            novelty=self.novelty,
            regularization=self.regularization,
            dual_step_size=self.dual_step_size,
            dual_regularization=self.dual_regularization,
            quantile_step_size=self.quantile_step_size,
            averaging_window=self.averaging_window,
            penalty=self.penalty,
            penalty_doubling=self.penalty_doubling,
            max_order=self.max_model_order,
        )

    def _write_settings(self) -> None:
        super()._write_settings()
        for row, bound, scale in zip(
            self._bounds, self._constraints, self._dual_scale, strict=True
        ):
            row[layout.SIGNIFICANCE] = bound.significance
            row[layout.TOLERANCE] = bound.tolerance
            row[layout.SMOOTHING] = bound.smoothing
            row[layout.DUAL_CAP] = self.dual_cap / scale

    # -- the arrays -------------------------------------------------------------------------

    @property
    def _bounds(self) -> Array:
        """Return the rows of the constraints, shape (m, BOUND)."""
        return self._shape.bounds(self._state)

    def _start(self, inputs: int, capacity: int = 64) -> None:
        averaged = self.mode == 'default' and not self._recursive
        self._inputs, self._functions = inputs, self._outputs * (2 if averaged else 1)
        self._shape = layout.Shape(
            inputs, self._columns, self._outputs, self._functions, self.batch_size,
            len(self._constraints), self.loss_window,
        )  # fmt: skip
        self._state = self._shape.new_state()
        self._write_settings()
        for row, bound in zip(self._bounds, self._constraints, strict=True):
            # the threshold of a CVaR starts at its bound; that of an expectation is 0
            row[layout.THRESHOLD] = bound.tolerance if bound.significance > 0.0 else 0.0
        self._table = np.zeros((self._shape.table_rows, 0))
        self._factors = np.zeros((2 if self._recursive else 1, 0, 0))
        self._allocate(capacity)

    def _learn(self, x: Array, targets: Array, trace: Array) -> None:
        state, count, functions = self._state, len(x), self._functions
        done = self._stream(state, self._table, self._factors, x, targets, functions, trace)
        while done != count and state[layout.STATUS] == layout.FULL:
            self._allocate(2 * self._factors.shape[1])
            done += self._stream(
                state, self._table, self._factors, x[done:], targets[done:], functions,
                trace[done:],
            )  # fmt: skip
        if done != count:
            self._explain(x, targets, done)

    def _explain(self, x: Array, targets: Array, done: int) -> None:
        """Raise what the stream ended with."""
        status = self._state[layout.STATUS]
        if status == layout.NOT_FINITE:
            raise ValueError(not_finite('X', x) or not_finite('y', targets))
        if status == layout.NO_LABEL:
            raise ValueError(self._loss.not_labels(self.loss, targets, self.classes))
        advice = 'Its target may be no measurement'
        if self.mode == 'paper':
            advice = (
                f'Lower step_size (now {self.step_size:g}): an explicit step of the squared '
                'loss needs 2 step_size (1 + dual variable) < 2 (dual variable now '
                f'{self.dual_variable_})'
            )
        raise divergence(done, len(x), advice)

    def _fill(self, x: Array, out: Array, support: Array) -> None:
        stream.predict(
            self._state, self._table, self._factors, x, self._columns, self._functions, out,
            support,
        )  # fmt: skip

    def _predicting_weights(self) -> Array:
        order = self.model_order_
        weights = self._shape.predicting(self._table)[:, :order].T
        return self._factors[0, :order, :order].T @ weights if self._recursive else weights

    def _arrays_to_save(self) -> dict[str, Array]:
        order, state, rows = self.model_order_, self._state_to_save(), self._shape.learned_rows()
        # what is in the header, and what is scratch, is no state
        self._shape.bounds(state)[:, : layout.DUAL] = 0.0
        if state[layout.PENDING] == 0:
            state[self._shape.waiting] = 0.0
        return {
            'state': state,
            'factors': self._factors[:, :order, :order],
            **{name: self._table[where, :order] for name, where in rows.items()},
        }

    def _restore(self, arrays: dict[str, Array]) -> None:
        order = arrays['points'].shape[1]
        self._start(len(arrays['points']), max(64, 2 * order))
        self._state[:] = arrays['state']
        self._write_settings()
        self._factors[:, :order, :order] = arrays['factors']
        for name, rows in self._shape.learned_rows().items():
            self._table[rows, :order] = arrays[name]

    def _example(self, inputs: int, outputs: int) -> tuple[Array, Array]:
        y = np.ones((2, 1)) if self._loss.labels else np.zeros((2, outputs))
        return np.zeros((2, inputs)), y

    def _check_first(self, x: Array, targets: Array) -> None:
        super()._check_first(x, targets)
        if self._loss.labels:
            wrong = self._loss.not_labels(self.loss, targets, self.classes)
            if wrong or targets.shape[1] > 1:
                raise ValueError(wrong or 'labels must have shape (n,)')
