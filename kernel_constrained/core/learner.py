# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The learner a person uses: scikit-learn's conventions around the compiled stream."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained import model_file
from kernel_constrained.configuration import ConfigurationError, parameter
from kernel_constrained.core import layout, stream
from kernel_constrained.core.constraints import (
    conditional_value_at_risk,
    Constraint,
    CVaR,
    Expectation,
)
from kernel_constrained.core.kernels import Gaussian, Kernel, Polynomial
from kernel_constrained.core.komp import DEPENDENT
from kernel_constrained.core.losses import LOSSES
from kernel_constrained.core.samples import (
    as_array,
    capacity_and_stride,
    check_targets,
    checked_inputs,
    DivergenceError,
    enlarged,
    not_finite,
)

Array = npt.NDArray[np.float64]

MODES = {'default': layout.DEFAULT, 'paper': layout.PAPER, 'penalty': layout.PENALTY}
STEPS = ('auto', 'gradient', 'recursive')
KERNELS: dict[str, type[Gaussian] | type[Polynomial]] = {
    cls.name: cls for cls in (Gaussian, Polynomial)
}
CONSTRAINTS: dict[str, type[CVaR] | type[Expectation]] = {
    cls.name: cls for cls in (CVaR, Expectation)
}
FORMAT = 'kernel_constrained.PrimalDualLearner'
NO_TRACE = np.empty((0, 1))
NO_SUPPORT = np.empty(0)


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


def choose_kernel(_: Any, __: Any, value: Any) -> None:
    """Raise where the kernel is none of ours."""
    if not isinstance(value, Gaussian | Polynomial):
        raise ConfigurationError(f'kernel must be a Gaussian or a Polynomial (got {value!r})')


def choose_constraint(_: Any, __: Any, value: Any) -> None:
    """Raise where the constraint, or one of several, is none of ours."""
    for one in value if isinstance(value, tuple) else (value,):
        if value is not None and not isinstance(one, CVaR | Expectation):
            raise ConfigurationError(
                'constraint must be a CVaR, an Expectation, several of them, or None '
                f'(got {one!r})'
            )


def as_constraint(value: Any) -> Any:
    """Make a tuple of several constraints."""
    return tuple(value) if isinstance(value, list) else value


@attrs.define(eq=False)
class PrimalDualLearner:
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

    kernel: Kernel = attrs.field(factory=Gaussian, validator=choose_kernel)
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

    # Learned state: what the compiled stream works on, empty until the first sample.
    _flat: bool = attrs.field(init=False, repr=False, default=False)
    _inputs: int = attrs.field(init=False, repr=False, default=0)
    _columns: int = attrs.field(init=False, repr=False, default=0)
    _functions: int = attrs.field(init=False, repr=False, default=0)
    _state: Array = attrs.field(init=False, repr=False, default=None)
    _table: Array = attrs.field(init=False, repr=False, default=None)
    _factors: Array = attrs.field(init=False, repr=False, default=None)
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

    # -- learning ---------------------------------------------------------------------------

    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> 'PrimalDualLearner':
        """Learn from samples in their order; any number of them.

        Parameters
        ----------
        X
            Inputs, shape (n, p).
        y
            Targets, shape (n,) or (n, q); labels, shape (n,).

        Returns
        -------
        PrimalDualLearner
            The learner itself.

        Raises
        ------
        ValueError
            Where shapes do not fit, a number is not finite or no label; nothing was learned then.
        DivergenceError
            Where the iterate diverged (``mode='paper'`` with too large a step size). What came
            before the sample it names has been learned.
        """
        x, targets = self._checked_samples(X, y)
        done = self._stream(
            self._state, self._table, self._factors, x, targets, self._functions, NO_TRACE
        )
        if done != len(x):
            self._go_on(x, targets, NO_TRACE, done)
        return self

    def prequential(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Trace:
        """Predict each sample, then learn it; return the :class:`Trace`.

        Takes, raises and learns what :meth:`partial_fit` does.
        """
        x, targets = self._checked_samples(X, y)
        first = layout.TRACE_HEADER + len(self._constraints)
        trace = np.empty((len(x), first + self._outputs))
        self._go_on(x, targets, trace, 0)
        return Trace(
            self._shaped(trace[:, first:]),
            trace[:, layout.LOSS],
            trace[:, layout.TRACE_ORDER].astype(np.int64),
            self._one_or_all(trace[:, layout.TRACE_HEADER : first] * self._dual_scale, 0.0),
        )

    def _go_on(self, x: Array, targets: Array, trace: Array, done: int) -> None:
        """Run the stream from sample ``done``, with larger arrays as often as it asks for them."""
        status = layout.FULL
        while status == layout.FULL:
            if self._state[layout.STATUS] == layout.FULL:
                self._allocate(2 * self._factors.shape[1])
            done += self._stream(
                self._state, self._table, self._factors, x[done:], targets[done:],
                self._functions, trace[done:],
            )  # fmt: skip
            status = int(self._state[layout.STATUS])
        if status == layout.NOT_FINITE:
            raise ValueError(not_finite('X', x) or not_finite('y', targets))
        if status == layout.NO_LABEL:
            raise ValueError(self._not_labels(targets))
        if status == layout.DIVERGED:
            advice = 'Its target may be no measurement'
            if self.mode == 'paper':
                advice = (
                    f'Lower step_size (now {self.step_size:g}): an explicit step of the squared '
                    'loss needs 2 step_size (1 + dual variable) < 2 (dual variable now '
                    f'{self.dual_variable_})'
                )
            raise DivergenceError(
                f'the loss of sample {done} of {len(x)} is beyond 1e200; samples before it are '
                f'learned. {advice}'
            )

    def warm_up(self, inputs: int = 1, outputs: int = 1) -> 'PrimalDualLearner':
        """Compile everything now, so that the first sample does not wait for it; learn nothing.

        The result is kept on disk: only the first start after an installation takes long.
        """
        spare = attrs.evolve(self)
        kind = LOSSES[self.loss]
        y = np.ones((2, 1)) if kind.labels else np.zeros((2, outputs))
        spare.partial_fit(np.zeros((2, inputs)), y).decision_function(np.zeros((1, inputs)))
        return self

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Evaluate the learned function at ``X`` (n, p); returns (n,) or (n, q).

        The scores of the classes where there are such; for a regression this is ``predict``.

        Raises
        ------
        ValueError
            Where nothing has been learned, or ``X`` has another number of columns.
        """
        return self._evaluate(X, NO_SUPPORT)

    def predict_with_support(self, X: Array) -> tuple[Array, Array]:
        """Evaluate the learned function, and say how much of it was learned near there.

        Parameters
        ----------
        X
            Inputs, shape (n, p).

        Returns
        -------
        values : (n,) or (n, q)
            What :meth:`decision_function` returns.
        support : (n,)
            Share of the squared norm of ``k(x, .)`` that lies in the span of the dictionary: 1 at
            an atom, 0 far from all of them, where the function is 0 whatever was learned.

        Raises
        ------
        ValueError
            As :meth:`decision_function`.
        """
        support = np.empty(len(X))
        return self._evaluate(X, support), support

    def _evaluate(self, X: npt.ArrayLike, support: Array) -> Array:
        """Evaluate the function at ``X``; fill ``support``, if it has any length."""
        self._require_samples('predict')
        x = self._checked_inputs(X)
        if not np.isfinite(x).all():
            raise ValueError(not_finite('X', x))
        out = np.empty((len(x), self._outputs))
        stream.predict(
            self._state, self._table, self._factors, x, self._columns, self._functions, out,
            support,
        )  # fmt: skip
        return self._shaped(out)

    def predict(self, X: npt.ArrayLike) -> Array:
        """Predict ``X`` (n, p); returns (n,) or (n, q), like the targets or labels learned from.

        Raises
        ------
        ValueError
            Where nothing has been learned, or ``X`` has another number of columns.
        """
        values = self.decision_function(X)
        kind = LOSSES[self.loss]
        if kind.several:
            return np.asarray(values.argmax(axis=1), dtype=float)
        return np.where(values >= 0.0, 1.0, -1.0) if kind.labels else values

    # -- learned attributes -----------------------------------------------------------------

    @property
    def model_order_(self) -> int:
        """Atoms in the dictionary."""
        return self._counter(layout.ORDER)

    @property
    def samples_(self) -> int:
        """Samples learned so far, those of a mini-batch that is not full among them."""
        return self._counter(layout.COUNT)

    @property
    def overspent_(self) -> int:
        """Steps whose compression cost more than the budget."""
        return self._counter(layout.OVERSPENT)

    @property
    def dictionary_(self) -> Array:
        """The atoms, shape (M, p)."""
        self._require_samples('dictionary_')
        return np.ascontiguousarray(self._table[: self._inputs, : self.model_order_].T)

    @property
    def weights_(self) -> Array:
        """Weights of the function that predicts, shape (M,) or (M, q)."""
        self._require_samples('weights_')
        return self._shaped(self._predicting_weights())

    @property
    def dual_variable_(self) -> Any:
        """Multiplier of ``CVaR - tolerance <= 0``; one for each of several constraints."""
        if self._state is None:
            return self._one_or_all(np.zeros(len(self._constraints)), 0.0)
        column = layout.MEAN_DUAL if self.mode == 'default' else layout.DUAL
        return self._one_or_all(self._bounds()[:, column] * self._dual_scale, 0.0)

    @property
    def dual_cap_binds_(self) -> bool:
        """Whether a dual variable is held by its cap: the constraint cannot be met."""
        if self._state is None:
            return False
        rows = self._bounds()
        return bool(np.any(rows[:, layout.DUAL] >= rows[:, layout.DUAL_CAP]))

    @property
    def recent_losses_(self) -> Array:
        """The newest losses, at most ``loss_window``, in no order."""
        if self._state is None:
            return np.zeros(0)
        return self._state[-self.loss_window :][: self.samples_]

    @property
    def cvar_(self) -> Any:
        """CVaR of the newest losses, each from before its sample was learned; NaN without."""
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

    # -- files ------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write configuration and learned state; the file is replaced whole or not at all."""
        model_file.write(path, FORMAT, *self.to_parts())

    @classmethod
    def load(cls, path: str | Path) -> 'PrimalDualLearner':
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
            'constraints': [{'name': c.name, **attrs.asdict(c)} for c in self._constraints],
            'several': isinstance(self.constraint, tuple),
            'flat': self._flat,
            'columns': self._columns,
        }
        if self._state is None:
            return header, {}
        order, state = self.model_order_, self._state.copy()
        # what is in the header, and what is scratch, is no state
        state[: len(layout.Settings._fields)] = 0.0
        self._bounds_of(state)[:, : layout.DUAL] = 0.0
        state[layout.STATUS] = layout.LEARNED
        if state[layout.PENDING] == 0:
            state[self._first_bound_end() : -self.loss_window] = 0.0
        return header, {
            'state': state,
            'factors': self._factors[:, :order, :order],
            **{name: self._table[rows, :order] for name, rows in self._learned_rows().items()},
        }

    @classmethod
    def from_parts(cls, header: dict[str, Any], arrays: dict[str, Array]) -> 'PrimalDualLearner':
        """Build a learner from what :meth:`to_parts` returned."""
        kernel = dict(header['kernel'])
        name = kernel.pop('name')
        constraints = []
        for one in header['constraints']:
            one = dict(one)
            constraints.append(CONSTRAINTS[one.pop('name')](**one))
        single = constraints[0] if constraints else None
        learner = cls(
            kernel=KERNELS[name](**kernel),
            constraint=tuple(constraints) if header['several'] else single,
            **header['parameters'],
        )
        if arrays:
            learner._flat, learner._columns = header['flat'], header['columns']
            learner._restore(arrays)
        return learner

    def _restore(self, arrays: dict[str, Array]) -> None:
        """Take the learned state from a model file's arrays."""
        order = arrays['points'].shape[1]
        self._start(len(arrays['points']), max(64, 2 * order))
        self._state[:] = arrays['state']
        self._write_settings()
        self._factors[:, :order, :order] = arrays['factors']
        for name, rows in self._learned_rows().items():
            self._table[rows, :order] = arrays[name]

    def with_classes(self, classes: int) -> 'PrimalDualLearner':
        """Return a learner of more classes that goes on with what this one has learned.

        The functions of the new classes, which come last, are zero.

        Raises
        ------
        ValueError
            Where the loss has no classes, or there would be fewer.
        """
        if not LOSSES[self.loss].several or classes < self.classes:
            raise ValueError(
                f'loss {self.loss} with {self.classes} classes cannot go on with {classes}: '
                'classes are added to a multi-class loss, and none is taken back'
            )
        header, arrays = self.to_parts()
        header['parameters']['classes'] = classes
        if arrays:
            arrays['weights'] = self._widened(arrays['weights'], classes)
            arrays['state'] = self._with_wider_batch(arrays['state'], classes)
        return self.from_parts(header, arrays)

    def _widened(self, rows: Array, classes: int) -> Array:
        """Put rows of zeros behind those of the classes, for iterates and averages alike."""
        groups = rows.reshape(-1, self.classes, rows.shape[1])
        more = np.zeros((len(groups), classes - self.classes, rows.shape[1]))
        return np.concatenate([groups, more], axis=1).reshape(-1, rows.shape[1])

    def _with_wider_batch(self, state: Array, classes: int) -> Array:
        """Make room for the functions' values in the samples that wait, and coefficients."""
        begin = self._first_bound_end() + self.batch_size * (self._inputs + self._columns)
        end = begin + 2 * self.batch_size * self._functions
        rows = state[begin:end].reshape(2 * self.batch_size, self._functions).T
        return np.concatenate([state[:begin], self._widened(rows, classes).T.ravel(), state[end:]])

    def set_parameters(self, **values: Any) -> None:
        """Change run-time parameters (those of one constraint too) between two samples.

        Raises
        ------
        ConfigurationError
            Where a name is unknown or fixed, or a value is not allowed; nothing changes then.
        """
        mine = {f.name: f for f in attrs.fields(type(self)) if f.metadata.get('runtime')}
        of_constraint = {k: v for k, v in values.items() if k in ('significance', 'tolerance')}
        unknown = set(values) - set(mine) - set(of_constraint)
        bound: Any = self.constraint
        possible = attrs.asdict(bound) if attrs.has(type(bound)) else {}
        unknown |= set(of_constraint) - set(possible)
        if unknown:
            names = ', '.join(sorted(unknown))
            raise ConfigurationError(f'{names} cannot be changed while learning')
        changed = attrs.evolve(self, **{k: v for k, v in values.items() if k in mine})
        if of_constraint:
            self.constraint = attrs.evolve(bound, **of_constraint)
        for name in mine:
            setattr(self, name, getattr(changed, name))
        if self._state is not None:
            self._write_settings()

    # -- inside -----------------------------------------------------------------------------

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

    def _counter(self, entry: int) -> int:
        return int(self._state[entry]) if self._state is not None else 0

    def _first_bound_end(self) -> int:
        return layout.BOUNDS + layout.BOUND * len(self._constraints)

    def _bounds(self) -> Array:
        """Return the rows of the constraints, shape (m, BOUND)."""
        return self._bounds_of(self._state)

    def _bounds_of(self, state: Array) -> Array:
        rows = state[layout.BOUNDS : self._first_bound_end()]
        return rows.reshape(len(self._constraints), layout.BOUND)

    def _learned_rows(self) -> dict[str, slice]:
        """Rows of the table that are no scratch."""
        scratch = self._inputs + self._functions
        return {
            'points': slice(0, self._inputs),
            'weights': slice(self._inputs, scratch),
            'diagonal_late_usage': slice(scratch, scratch + 3),
            'kernel_vectors': slice(scratch + layout.SCRATCH, None),
        }

    def _write_settings(self) -> None:
        """Put the configuration where the compiled step reads it."""
        settings = layout.Settings(
            kernel_0=float(self.kernel.parameters[0]),
            kernel_1=float(self.kernel.parameters[1]),
            kernel_code=float(self.kernel.code),
            mode=MODES[self.mode],
            loss=LOSSES[self.loss].code,
            huber_threshold=self.huber_threshold,
            labels=LOSSES[self.loss].labels,
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
        self._state[: len(settings)] = settings
        for row, bound, scale in zip(
            self._bounds(), self._constraints, self._dual_scale, strict=True
        ):
            row[layout.SIGNIFICANCE] = bound.significance
            row[layout.TOLERANCE] = bound.tolerance
            row[layout.SMOOTHING] = bound.smoothing
            row[layout.DUAL_CAP] = self.dual_cap / scale

    def _start(self, inputs: int, capacity: int = 64) -> None:
        """Make the state of a learner that has seen nothing."""
        self._inputs = inputs
        # rows of weights: the iterate of each output, and its average where there is one
        averaged = self.mode == 'default' and not self._recursive
        self._functions = self._outputs * (2 if averaged else 1)
        waiting = self.batch_size * (inputs + self._columns + 2 * self._functions + 3)
        self._state = np.zeros(self._first_bound_end() + waiting + self.loss_window)
        self._write_settings()
        self._state[layout.LATE_SCALE] = 1.0
        for row, bound in zip(self._bounds(), self._constraints, strict=True):
            # the threshold of a CVaR starts at its bound; that of an expectation is 0
            row[layout.THRESHOLD] = bound.tolerance if bound.significance > 0.0 else 0.0
        rows = inputs + self._functions + layout.SCRATCH + self.batch_size
        self._table = np.zeros((rows, 0))
        self._factors = np.zeros((2 if self._recursive else 1, 0, 0))
        self._allocate(capacity)

    def _allocate(self, capacity: int) -> None:
        """Give the arrays room for ``capacity`` atoms, or for the cap and a mini-batch if less.

        There are whole vectors of rows.
        """
        capacity = min(max(capacity, self.batch_size), self.max_model_order + self.batch_size)
        capacity, stride = capacity_and_stride(capacity)
        self._table = enlarged(self._table, len(self._table), stride)
        self._factors = enlarged(self._factors, len(self._factors), capacity, stride)

    def _checked_samples(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
        """Return X (n, p) and y (n, q) as arrays, or raise before anything has changed.

        What has been learned already leaves the check for finite numbers to the stream.
        """
        x, targets = as_array(X), as_array(y)
        flat = targets.ndim == 1
        if flat:
            targets = targets[:, None]
        if x.shape != (len(x), self._inputs) or targets.shape != (len(x), self._columns):
            self._check_shapes(x, targets, np.shape(y))
        if self._state is None:
            self._begin(x, targets, flat)
        return x, targets

    def _check_shapes(self, x: Array, targets: Array, given: tuple[int, ...]) -> None:
        """Raise where samples do not fit each other or what was learned from before."""
        self._checked_inputs(x)
        check_targets(x, targets, given, self._columns)

    def _begin(self, x: Array, targets: Array, flat: bool) -> None:
        """Take the shapes from the first samples, if they can be learned at all."""
        if not (np.isfinite(x).all() and np.isfinite(targets).all()):
            raise ValueError(not_finite('X or y', np.hstack([x, targets])))
        if LOSSES[self.loss].labels and (targets.shape[1] > 1 or self._not_labels(targets)):
            raise ValueError(self._not_labels(targets) or 'labels must have shape (n,)')
        self._flat, self._columns = flat, targets.shape[1]
        self._start(x.shape[1])

    def _not_labels(self, targets: Array) -> str:
        """Name a target that is no label of this loss; empty where all are."""
        known = np.arange(self.classes) if LOSSES[self.loss].several else np.array([-1.0, 1.0])
        wrong = targets[~np.isin(targets, known)]
        meant = f'0 to {self.classes - 1}' if LOSSES[self.loss].several else '-1 and 1'
        return f'labels of loss {self.loss} are {meant} (got {wrong[0]:g})' if len(wrong) else ''

    def _checked_inputs(self, X: npt.ArrayLike) -> Array:
        return checked_inputs(X, self._inputs)

    def _require_samples(self, what: str) -> None:
        if self._state is None:
            raise ValueError(f'nothing has been learned yet: call partial_fit before {what}')

    def _predicting_weights(self) -> Array:
        """Weights of the function that predicts, shape (M, q): the averages where there are."""
        order, rows = self.model_order_, self._table[self._learned_rows()['weights']]
        weights = rows[len(rows) - self._outputs :, :order].T
        return self._factors[0, :order, :order].T @ weights if self._recursive else weights

    def _shaped(self, columns: Array) -> Array:
        """One column flat, if the targets came flat."""
        flat = self._flat and columns.shape[1] == 1
        return np.ascontiguousarray(columns[:, 0] if flat else columns)
