# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The learner a person uses: scikit-learn's conventions around the compiled stream."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained import model_file
from kernel_constrained.configuration import ConfigurationError, parameter
from kernel_constrained.core import primal_dual
from kernel_constrained.core.constraints import conditional_value_at_risk, CVaR
from kernel_constrained.core.kernels import Gaussian, Kernel, Polynomial

Array = npt.NDArray[np.float64]

MODES = {
    'default': primal_dual.DEFAULT,
    'paper': primal_dual.PAPER,
    'penalty': primal_dual.PENALTY,
}
KERNELS: dict[str, type[Gaussian] | type[Polynomial]] = {
    cls.name: cls for cls in (Gaussian, Polynomial)
}
FORMAT = 'kernel_constrained.PrimalDualLearner'
NO_TRACE = np.empty((0, primal_dual.TRACE_HEADER))


class DivergenceError(ArithmeticError):
    """An iterate left the range of numbers; the learner keeps its last finite state."""


class Trace(NamedTuple):
    """What a stream was like, sample by sample, each before the sample was learned.

    Attributes
    ----------
    prediction : (n,) or (n, q)
        Prediction of the sample.
    loss : (n,)
        Its loss.
    model_order : (n,)
        Atoms in the dictionary after the sample.
    dual_variable : (n,)
        Dual variable after the sample.
    """

    prediction: Array
    loss: Array
    model_order: npt.NDArray[np.int64]
    dual_variable: Array


def as_array(values: npt.ArrayLike) -> Array:
    """Return contiguous writable doubles: for any other kind the stream would compile again."""
    array: Array = np.ascontiguousarray(values, dtype=np.float64)
    return array if array.flags.writeable else array.copy()


def not_finite(name: str, values: Array) -> str:
    """Say how many numbers are not finite; empty where all are."""
    count = int(np.sum(~np.isfinite(values)))
    return f'{name} holds {count} numbers that are not finite' if count else ''


def choose_kernel(_: Any, __: Any, value: Any) -> None:
    """Raise where the kernel is none of ours."""
    if not isinstance(value, Gaussian | Polynomial):
        raise ConfigurationError(f'kernel must be a Gaussian or a Polynomial (got {value!r})')


def choose_constraint(_: Any, __: Any, value: Any) -> None:
    """Raise where the constraint is none of ours."""
    if value is not None and not isinstance(value, CVaR):
        raise ConfigurationError(f'constraint must be a CVaR or None (got {value!r})')


@attrs.define(eq=False)
class PrimalDualLearner:
    """Online kernel learning under a CVaR constraint, with bounded memory.

    Minimises ``E loss(f(x), y) + regularization / 2 |f|^2`` subject to ``CVaR(loss) <=
    tolerance`` over one pass of a stream (Koppel, Zhang, Zhu and Başar, Eqs. 2 and 3), on a
    dictionary that KOMP keeps small (Eq. 21).

    Parameters
    ----------
    kernel
        :class:`Gaussian` or :class:`Polynomial`.
    loss
        ``'squared'``: ``|f(x) - y|^2``.
    constraint
        :class:`CVaR`, or None for unconstrained learning (POLK in ``mode='paper'``).
    step_size
        Primal step size eta.
    parsimony
        P: each step may cost ``P eta^2`` of RKHS norm in compression; 0 keeps every atom.
    regularization
        Lambda.
    dual_regularization
        Delta.
    mode
        ``'default'``: implicit steps, shared threshold z, averaged iterate; reaches the
        constrained optimum. ``'paper'``: Algorithm 1 with Eq. (23) as printed. ``'penalty'``: the
        penalty method.
    dual_step_size, quantile_step_size
        Step sizes of the dual variable and of the threshold z, relative to the tolerance.
        ``mode='default'`` only; the paper uses ``step_size`` for the dual variable too.
    dual_cap
        The dual variable is held at or below this; ``dual_cap_binds_`` says when.
    averaging_window
        The average follows changes within about this many samples; infinite for a stream that
        does not change.
    decay_after
        Samples after which the step sizes begin to shrink as ``1 / sqrt(1 + t / decay_after)``;
        infinite for constant steps, which keep tracking.
    penalty, penalty_doubling
        First coefficient of the penalty method and the samples after which it doubles.
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
    dual_variable_ : float
        Multiplier of the constraint ``CVaR - tolerance <= 0``.
    violation_ : float
        CVaR of the newest losses, each before its sample was learned, minus the tolerance; NaN
        without a constraint.
    """

    kernel: Kernel = attrs.field(factory=Gaussian, validator=choose_kernel)
    loss: str = parameter('squared', 'what a wrong prediction costs', choices=('squared',))
    constraint: CVaR | None = attrs.field(default=None, validator=choose_constraint)
    step_size: float = parameter(0.1, 'primal step size', low=1e-9, high=1e3, runtime=True)
    parsimony: float = parameter(
        0.008, 'compression budget over squared step size', low=0.0, runtime=True
    )
    regularization: float = parameter(1e-5, 'weight of the RKHS norm', low=0.0, runtime=True)
    dual_regularization: float = parameter(1e-5, 'pull of the dual variable to 0', low=0.0)
    mode: str = parameter('default', 'which algorithm', choices=tuple(MODES))
    dual_step_size: float = parameter(
        0.003, 'step size of the dual variable over the tolerance', low=0.0, runtime=True
    )
    quantile_step_size: float = parameter(
        0.05, 'step size of the threshold over the tolerance', low=0.0, runtime=True
    )
    dual_cap: float = parameter(1e3, 'largest dual variable', low=0.0)
    averaging_window: float = parameter(
        math.inf, 'samples the averaged function looks back', unit='samples', low=1.0
    )
    decay_after: float = parameter(
        math.inf, 'samples after which steps shrink', unit='samples', low=1.0
    )
    penalty: float = parameter(1e-3, 'first coefficient of the penalty method', low=0.0)
    penalty_doubling: float = parameter(
        200.0, 'samples after which the penalty doubles', unit='samples', low=1.0
    )
    max_model_order: int = parameter(2000, 'most atoms in the dictionary', low=1, high=20000)
    loss_window: int = parameter(
        1000, 'newest losses that cvar and violation speak of', unit='samples', low=1
    )

    # Learned state: what the compiled stream works on, empty until the first sample.
    _flat: bool = attrs.field(init=False, repr=False, default=False)
    _outputs: int = attrs.field(init=False, repr=False, default=0)
    _state: Array = attrs.field(init=False, repr=False, default=attrs.Factory(lambda: np.zeros(0)))
    _arrays: dict[str, Any] = attrs.field(init=False, repr=False, factory=dict)
    _compiled_arguments: tuple[Any, ...] = attrs.field(init=False, repr=False, default=())
    _settings: Array = attrs.field(
        init=False, repr=False, default=attrs.Factory(lambda: np.zeros(0))
    )

    # -- learning ---------------------------------------------------------------------------

    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> 'PrimalDualLearner':
        """Learn from samples in their order; any number of them.

        Parameters
        ----------
        X
            Inputs, shape (n, p).
        y
            Targets, shape (n,) or (n, q).

        Returns
        -------
        PrimalDualLearner
            The learner itself.

        Raises
        ------
        ValueError
            Where shapes do not fit or a number is not finite; nothing was learned then.
        DivergenceError
            Where the iterate diverged (``mode='paper'`` with too large a step size). What came
            before the sample it names has been learned.
        """
        x, targets = self._checked_samples(X, y)
        self._learn(x, targets, NO_TRACE)
        return self

    def prequential(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Trace:
        """Predict each sample, then learn it; return the :class:`Trace`.

        Takes, raises and learns what :meth:`partial_fit` does.
        """
        x, targets = self._checked_samples(X, y)
        trace = np.empty((len(x), primal_dual.TRACE_HEADER + self._outputs))
        self._learn(x, targets, trace)
        return Trace(
            self._shaped(trace[:, primal_dual.TRACE_HEADER :]),
            trace[:, primal_dual.LOSS],
            trace[:, primal_dual.TRACE_ORDER].astype(np.int64),
            trace[:, primal_dual.TRACE_DUAL] * self._dual_scale,
        )

    def _learn(self, x: Array, targets: Array, trace: Array) -> None:
        """Run the compiled stream, with larger arrays as often as it asks for them."""
        done, status = primal_dual.stream(*self._compiled_arguments, x, targets, trace)
        while status == primal_dual.FULL:
            self._allocate(2 * len(self._arrays['factor']))
            more, status = primal_dual.stream(
                *self._compiled_arguments, x[done:], targets[done:], trace[done:]
            )
            done += more
        if status == primal_dual.NOT_FINITE:
            raise ValueError(not_finite('X', x) or not_finite('y', targets))
        if status == primal_dual.DIVERGED:
            raise DivergenceError(
                f'the loss of sample {done} of {len(x)} is beyond 1e200; samples before it are '
                f'learned. Lower step_size (now {self.step_size:g}): an explicit step in '
                "mode='paper' needs 2 step_size (1 + dual variable) < 2 "
                f'(dual variable now {self._state[primal_dual.DUAL]:g})'
            )

    def warm_up(self, inputs: int = 1, outputs: int = 1) -> 'PrimalDualLearner':
        """Compile everything now, so that the first sample does not wait for it; learn nothing.

        The result is kept on disk: only the first start after an installation takes long.
        """
        spare = attrs.evolve(self)
        x, y = np.zeros((2, inputs)), np.zeros((2, outputs))
        spare.partial_fit(x, y).prequential(x, y)
        spare.predict(x)
        return self

    def predict(self, X: npt.ArrayLike) -> Array:
        """Predict ``X`` (n, p); returns (n,) or (n, q), like the targets learned from.

        Raises
        ------
        ValueError
            Where nothing has been learned, or ``X`` has another number of columns.
        """
        self._require_samples('predict')
        x, a = self._checked_inputs(X), self._arrays
        if not np.isfinite(x).all():
            raise ValueError(not_finite('X', x))
        out = np.empty((len(x), self._outputs))
        primal_dual.predict(
            self._settings, a['points'], a['weights'], a['factor'], a['scratch'],
            self.model_order_, x, out,
        )  # fmt: skip
        return self._shaped(out)

    # -- learned attributes -----------------------------------------------------------------

    @property
    def model_order_(self) -> int:
        """Atoms in the dictionary."""
        return int(self._state[primal_dual.ORDER]) if self._arrays else 0

    @property
    def samples_(self) -> int:
        """Samples learned so far."""
        return int(self._state[primal_dual.COUNT]) if self._arrays else 0

    @property
    def dictionary_(self) -> Array:
        """The atoms, shape (M, p)."""
        self._require_samples('dictionary_')
        return np.ascontiguousarray(self._arrays['points'][:, : self.model_order_].T)

    @property
    def weights_(self) -> Array:
        """Weights of the function that predicts, shape (M,) or (M, q)."""
        self._require_samples('weights_')
        return self._shaped(self._predicting_weights())

    @property
    def dual_variable_(self) -> float:
        """Multiplier of ``CVaR - tolerance <= 0``."""
        return float(self._state[primal_dual.DUAL] * self._dual_scale) if self._arrays else 0.0

    @property
    def dual_cap_binds_(self) -> bool:
        """Whether the dual variable is held by its cap: the constraint cannot be met."""
        return bool(self._arrays) and self._state[primal_dual.DUAL] >= self._settings_dual_cap()

    @property
    def overspent_(self) -> int:
        """Steps whose compression cost more than the budget."""
        return int(self._state[primal_dual.OVERSPENT]) if self._arrays else 0

    @property
    def recent_losses_(self) -> Array:
        """The newest losses, at most ``loss_window``, in no order."""
        if not self._arrays:
            return np.zeros(0)
        return np.asarray(self._arrays['recent'][: self.samples_])

    @property
    def cvar_(self) -> float:
        """CVaR of the newest losses, each from before its sample was learned; NaN without."""
        if self.constraint is None:
            return math.nan
        return conditional_value_at_risk(self.recent_losses_, self.constraint.significance)

    @property
    def violation_(self) -> float:
        """``cvar_`` minus the tolerance: positive while the constraint is violated."""
        return self.cvar_ - self.constraint.tolerance if self.constraint is not None else math.nan

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
            'constraint': attrs.asdict(self.constraint) if self.constraint else None,
            'flat': self._flat,
        }
        if not self._arrays:
            return header, {}
        order, a = self.model_order_, self._arrays
        return header, {
            'state': self._state,
            'points': a['points'][:, :order],
            'weights': a['weights'][:, :order],
            'factor': a['factor'][:order, :order],
            'diagonal': a['scratch'][0, :order],
            'recent': a['recent'],
        }

    @classmethod
    def from_parts(cls, header: dict[str, Any], arrays: dict[str, Array]) -> 'PrimalDualLearner':
        """Build a learner from what :meth:`to_parts` returned."""
        kernel = dict(header['kernel'])
        name = kernel.pop('name')
        constraint = header['constraint']
        learner = cls(
            kernel=KERNELS[name](**kernel),
            constraint=CVaR(**constraint) if constraint is not None else None,
            **header['parameters'],
        )
        if arrays:
            learner._flat = header['flat']
            learner._restore(arrays)
        return learner

    def _restore(self, arrays: dict[str, Array]) -> None:
        """Take the learned state from a model file's arrays."""
        functions, order = arrays['weights'].shape
        self._outputs = functions // 2 if self.mode == 'default' else functions
        self._start(len(arrays['points']))
        self._state[:] = arrays['state']
        self._allocate(max(64, 2 * order))
        a = self._arrays
        a['points'][:, :order] = arrays['points']
        a['weights'][:, :order] = arrays['weights']
        a['factor'][:order, :order] = arrays['factor']
        a['scratch'][0, :order] = arrays['diagonal']
        a['recent'][:] = arrays['recent']

    def set_parameters(self, **values: Any) -> None:
        """Change run-time parameters (those of the constraint too) between two samples.

        Raises
        ------
        ConfigurationError
            Where a name is unknown or fixed, or a value is not allowed; nothing changes then.
        """
        mine = {f.name: f for f in attrs.fields(type(self)) if f.metadata.get('runtime')}
        of_constraint = {k: v for k, v in values.items() if k in ('significance', 'tolerance')}
        unknown = set(values) - set(mine) - set(of_constraint)
        if unknown or (of_constraint and self.constraint is None):
            names = ', '.join(sorted(unknown or of_constraint))
            raise ConfigurationError(f'{names} cannot be changed while learning')
        changed = attrs.evolve(self, **{k: v for k, v in values.items() if k in mine})
        if self.constraint is not None:
            self.constraint = attrs.evolve(self.constraint, **of_constraint)
        for name in mine:
            setattr(self, name, getattr(changed, name))
        if self._arrays:
            self._settings = self._compiled_settings()
            self._collect_arguments()

    # -- inside -----------------------------------------------------------------------------

    @property
    def _dual_scale(self) -> float:
        """From the multiplier of the compiled step to that of ``CVaR - tolerance``.

        The default mode scales the constraint by ``1 - significance``.
        """
        if self.constraint is None or self.mode != 'default':
            return 1.0
        return 1.0 - self.constraint.significance

    def _settings_dual_cap(self) -> float:
        return self.dual_cap / self._dual_scale

    def _compiled_settings(self) -> Array:
        bound = self.constraint or CVaR()
        return np.array(
            primal_dual.Settings(
                kernel_0=float(self.kernel.parameters[0]),
                kernel_1=float(self.kernel.parameters[1]),
                kernel_code=float(self.kernel.code),
                mode=MODES[self.mode],
                step_size=self.step_size,
                decay_after=self.decay_after,
                parsimony=self.parsimony,
                regularization=self.regularization,
                constrained=float(self.constraint is not None),
                significance=bound.significance,
                tolerance=bound.tolerance,
                collapsed_offset=bound.collapsed_offset,
                dual_step_size=self.dual_step_size,
                dual_regularization=self.dual_regularization,
                dual_cap=self._settings_dual_cap(),
                quantile_step_size=self.quantile_step_size,
                averaging_window=self.averaging_window,
                penalty=self.penalty,
                penalty_doubling=self.penalty_doubling,
                max_order=float(self.max_model_order),
            )
        )

    def _start(self, inputs: int) -> None:
        """Make the state of a learner that has seen nothing."""
        functions = self._functions()
        self._settings = self._compiled_settings()
        self._state = np.zeros(5)
        if self.constraint is not None:
            self._state[primal_dual.THRESHOLD] = self.constraint.tolerance
        self._arrays = {
            'points': np.zeros((inputs, 0)),
            'weights': np.zeros((functions, 0)),
            'factor': np.zeros((0, 0)),
            'scratch': np.zeros((5, 0)),
            'recent': np.zeros(self.loss_window),
        }
        self._allocate(64)

    def _functions(self) -> int:
        """Rows of weights: the iterate of each output, and in the default mode its average."""
        return self._outputs * (2 if self.mode == 'default' else 1)

    def _allocate(self, capacity: int) -> None:
        """Give the arrays room for ``capacity`` atoms, no more than one above ``max_model_order``.

        The stride is padded to whole vectors and is no power of two, so that rows do not fall
        on the same cache sets.
        """
        capacity = min(capacity, self.max_model_order + 1)
        stride = (capacity + 15) // 16 * 16
        stride += 16 if stride & (stride - 1) == 0 else 0
        rows = {'factor': capacity}
        for name in ('points', 'weights', 'factor', 'scratch'):
            old = self._arrays[name]
            new = np.zeros((rows.get(name, len(old)), stride))
            width = min(old.shape[1], stride)
            new[: len(old), :width] = old[:, :width]
            self._arrays[name] = new
        self._collect_arguments()

    def _collect_arguments(self) -> None:
        """Keep the arguments of the stream that stay the same from call to call."""
        a = self._arrays
        self._compiled_arguments = (
            self._settings, self._state, a['points'], a['weights'], a['factor'], a['scratch'],
            a['recent'],
        )  # fmt: skip

    def _checked_samples(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
        """Return X (n, p) and y (n, q) as arrays, or raise before anything has changed.

        What has been learned already leaves the check for finite numbers to the stream.
        """
        x, targets = self._checked_inputs(X), as_array(y)
        flat = targets.ndim == 1
        if flat:
            targets = targets.reshape(-1, 1)
        if targets.ndim != 2 or len(targets) != len(x) or targets.shape[1] == 0:
            raise ValueError(
                f'y must have shape ({len(x)},) or ({len(x)}, q), a row for each of the {len(x)} '
                f'rows of X (got {np.shape(y)})'
            )
        if not self._arrays:
            if not (np.isfinite(x).all() and np.isfinite(targets).all()):
                raise ValueError(not_finite('X or y', np.hstack([x, targets])))
            self._flat, self._outputs = flat, targets.shape[1]
            self._start(x.shape[1])
        elif targets.shape[1] != self._outputs:
            raise ValueError(f'y must have {self._outputs} columns (got {targets.shape[1]})')
        return x, targets

    def _checked_inputs(self, X: npt.ArrayLike) -> Array:
        x = as_array(X)
        if x.ndim != 2 or x.shape[1] == 0:
            raise ValueError(f'X must have shape (n, p) with p >= 1 (got {np.shape(X)})')
        if self._arrays and x.shape[1] != len(self._arrays['points']):
            raise ValueError(
                f'X must have {len(self._arrays["points"])} columns, as what was learned from '
                f'(got {x.shape[1]})'
            )
        return x

    def _require_samples(self, what: str) -> None:
        if not self._arrays:
            raise ValueError(f'nothing has been learned yet: call partial_fit before {what}')

    def _predicting_weights(self) -> Array:
        """Weights of the function that predicts, shape (M, q): the averages where there are."""
        return self._arrays['weights'][-self._outputs :, : self.model_order_].T

    def _shaped(self, columns: Array) -> Array:
        """One column flat, if the targets came flat."""
        return np.ascontiguousarray(columns[:, 0] if self._flat else columns)
