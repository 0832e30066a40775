# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What the learners of a stream have in common around their compiled steps."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TYPE_CHECKING

import attrs
import numpy as np
import numpy.typing as npt

from kernel_constrained import model_file
from kernel_constrained.configuration import ConfigurationError
from kernel_constrained.core.kernels import Gaussian, Kernel, Polynomial
from kernel_constrained.core.samples import (
    as_array,
    capacity_and_stride,
    check_targets,
    checked_inputs,
    DivergenceError,
    enlarged,
    not_finite,
)

if TYPE_CHECKING:
    from typing_extensions import Self

Array = npt.NDArray[np.float64]

KERNELS = {cls.name: cls for cls in (Gaussian, Polynomial)}
NO_TRACE = np.empty((0, 1))
NO_SUPPORT = np.empty(0)


def choose_kernel(_: Any, __: Any, value: Any) -> None:
    """Raise where the kernel is none of ours."""
    if not isinstance(value, Gaussian | Polynomial):
        raise ConfigurationError(f'kernel must be a Gaussian or a Polynomial (got {value!r})')


def to_plain(chosen: Any) -> dict[str, Any]:
    """Describe a kernel or a constraint by plain values."""
    return {'name': chosen.name, **attrs.asdict(chosen)}


def from_plain(kinds: Mapping[str, Any], plain: Mapping[str, Any]) -> Any:
    """Make, of several kinds by their names, what :func:`to_plain` has described."""
    return kinds[plain['name']](**{name: plain[name] for name in plain if name != 'name'})


def divergence(done: int, count: int, advice: str) -> DivergenceError:
    """Return the error of a stream that ended before sample ``done`` of ``count``."""
    return DivergenceError(
        f'the loss of sample {done} of {count} is beyond 1e200; samples before it are learned. '
        f'{advice}'
    )


@attrs.define(eq=False)
class OnlineLearner(ABC):
    """A function in an RKHS that a stream of samples is learned by; base of the learners.

    Its parameters are fields made by :func:`~kernel_constrained.configuration.parameter`. What it
    has learned is in a few arrays, which compiled code works on: ``state`` (settings, then
    counters), ``table`` (rows of what each atom has) and ``factors``. Where in them everything
    lies says the module ``LAYOUT``.
    """

    FORMAT: ClassVar[str]
    LAYOUT: ClassVar[Any]

    kernel: Kernel = attrs.field(factory=Gaussian, validator=choose_kernel)

    # Learned state: what the compiled steps work on, empty until the first sample.
    _flat: bool = attrs.field(init=False, repr=False, default=False)
    _inputs: int = attrs.field(init=False, repr=False, default=0)
    _columns: int = attrs.field(init=False, repr=False, default=0)
    _state: Array = attrs.field(init=False, repr=False, default=None)
    _table: Array = attrs.field(init=False, repr=False, default=None)
    _factors: Array = attrs.field(init=False, repr=False, default=None)

    if TYPE_CHECKING:  # a parameter of each of them
        max_model_order: int

    # -- what a learner has to say of itself ------------------------------------------------

    @property
    def _outputs(self) -> int:
        """Functions that predict."""
        return self._columns

    @property
    def _newcomers(self) -> int:
        """Atoms that a step may add before it removes any."""
        return 1

    @abstractmethod
    def _settings(self) -> tuple[float, ...]:
        """Return what the compiled steps need of the configuration."""

    @abstractmethod
    def _start(self, inputs: int, capacity: int = 64) -> None:
        """Make the state of a learner that has seen nothing."""

    @abstractmethod
    def _learn(self, x: Array, targets: Array, trace: Array) -> None:
        """Run the stream, and do what it asks for between two samples."""

    @abstractmethod
    def _fill(self, x: Array, out: Array, support: Array) -> None:
        """Fill ``out`` (n, q) with the functions, and ``support`` if it has any length."""

    @abstractmethod
    def _predicting_weights(self) -> Array:
        """Weights of the functions that predict, shape (M, q)."""

    @abstractmethod
    def _arrays_to_save(self) -> dict[str, Array]:
        """Return what was learned, without what is scratch."""

    @abstractmethod
    def _restore(self, arrays: dict[str, Array]) -> None:
        """Take the learned state from a model file's arrays."""

    @abstractmethod
    def _example(self, inputs: int, outputs: int) -> tuple[Array, Array]:
        """Return samples that lead through all of the compiled code."""

    # -- learning and predicting ------------------------------------------------------------

    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> 'Self':
        """Learn from samples in their order; any number of them.

        Parameters
        ----------
        X
            Inputs, shape (n, p).
        y
            Targets, shape (n,) or (n, q); labels, shape (n,).

        Returns
        -------
        Self
            The learner itself.

        Raises
        ------
        ValueError
            Where shapes do not fit, a number is not finite or no label; nothing was learned then.
        DivergenceError
            Where a loss is beyond 1e200: the iterate diverged, or a target is no measurement. What
            came before the sample it names has been learned.
        """
        x, targets = self._checked_samples(X, y)
        self._learn(x, targets, NO_TRACE)
        return self

    def warm_up(self, inputs: int = 1, outputs: int = 1) -> 'Self':
        """Compile everything now, so that the first sample does not wait for it; learn nothing.

        The result is kept on disk: only the first start after an installation takes long.
        """
        x, y = self._example(inputs, outputs)
        attrs.evolve(self).partial_fit(x, y).predict_with_support(x[:1])
        return self

    def predict_with_support(self, X: Array) -> tuple[Array, Array]:
        """Evaluate the learned function, and say how much of it was learned near there.

        Parameters
        ----------
        X
            Inputs, shape (n, p).

        Returns
        -------
        values : (n,) or (n, q)
            The function; of labels, what they are judged by.
        support : (n,)
            Share of the squared norm of ``k(x, .)`` that lies in the span of the dictionary: 1 at
            an atom, 0 far from all of them, where the function is 0 whatever was learned.

        Raises
        ------
        ValueError
            Where nothing has been learned, or ``X`` has another number of columns.
        """
        support = np.empty(len(X))
        return self._evaluate(X, support), support

    def _evaluate(self, X: npt.ArrayLike, support: Array = NO_SUPPORT) -> Array:
        """Evaluate the function at ``X``; fill ``support``, if it has any length."""
        self._require_samples('predict')
        x = checked_inputs(X, self._inputs)
        if not np.isfinite(x).all():
            raise ValueError(not_finite('X', x))
        out = np.empty((len(x), self._outputs))
        self._fill(x, out, support)
        return self._shaped(out)

    # -- learned attributes -----------------------------------------------------------------

    @property
    def model_order_(self) -> int:
        """Atoms in the dictionary."""
        return int(self._figure(self.LAYOUT.ORDER))

    @property
    def samples_(self) -> int:
        """Count the samples so far, with those that wait in a mini-batch or were rejected."""
        return int(self._figure(self.LAYOUT.COUNT))

    @property
    def overspent_(self) -> int:
        """Count the steps whose compression broke the budget, or that had to remove an atom."""
        return int(self._figure(self.LAYOUT.OVERSPENT))

    @property
    def dictionary_(self) -> Array:
        """Return the atoms, shape (M, p)."""
        self._require_samples('dictionary_')
        return np.ascontiguousarray(self._table[: self._inputs, : self.model_order_].T)

    @property
    def weights_(self) -> Array:
        """Weights of the function that predicts, shape (M,) or (M, q)."""
        self._require_samples('weights_')
        return self._shaped(self._predicting_weights().copy())

    # -- files ------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write configuration and learned state; the file is replaced whole or not at all."""
        model_file.write(path, self.FORMAT, *self.to_parts())

    @classmethod
    def load(cls, path: str | Path) -> 'Self':
        """Read what :meth:`save` wrote; predictions and further learning go on bit for bit.

        Raises
        ------
        ModelFileError
            Where the file is damaged, of another kind, or of a version this one cannot read.
        """
        return cls.from_parts(*model_file.read(path, cls.FORMAT))

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Split into (configuration as plain values, arrays): what a model file holds."""
        header: dict[str, Any] = {
            'parameters': {
                field.name: getattr(self, field.name)
                for field in attrs.fields(type(self))
                if 'type' in field.metadata
            },
            'kernel': to_plain(self.kernel),
            'flat': self._flat,
            'columns': self._columns,
        }
        return header, {} if self._state is None else self._arrays_to_save()

    @classmethod
    def from_parts(cls, header: dict[str, Any], arrays: dict[str, Array]) -> 'Self':
        """Build a learner from what :meth:`to_parts` returned."""
        learner = cls(**cls._arguments(header))
        if arrays:
            learner._flat, learner._columns = header['flat'], header['columns']
            learner._restore(arrays)
        return learner

    @classmethod
    def _arguments(cls, header: dict[str, Any]) -> dict[str, Any]:
        """Return what a learner is made with from the plain values in a model file."""
        return {'kernel': from_plain(KERNELS, header['kernel']), **header['parameters']}

    def _state_to_save(self) -> Array:
        """Return a copy of the state without what is in the header."""
        state = self._state.copy()
        state[: len(self.LAYOUT.Settings._fields)] = 0.0
        state[self.LAYOUT.STATUS] = self.LAYOUT.LEARNED
        return state

    # -- parameters while it learns ---------------------------------------------------------

    def set_parameters(self, **values: Any) -> None:
        """Change run-time parameters between two samples.

        Raises
        ------
        ConfigurationError
            Where a name is unknown or fixed, or a value is not allowed; nothing changes then.
        """
        self._refuse_fixed(values)
        self._take_over(attrs.evolve(self, **values))

    def _runtime_names(self) -> set[str]:
        return {f.name for f in attrs.fields(type(self)) if f.metadata.get('runtime')}

    def _refuse_fixed(self, values: Mapping[str, Any]) -> None:
        """Raise where a parameter is unknown or fixed."""
        if unknown := set(values) - self._runtime_names():
            names = ', '.join(sorted(unknown))
            raise ConfigurationError(f'{names} cannot be changed while learning')

    def _take_over(self, other: 'Self') -> None:
        """Take the run-time parameters of another learner."""
        for name in self._runtime_names():
            setattr(self, name, getattr(other, name))
        if self._state is not None:
            self._write_settings()

    # -- inside -----------------------------------------------------------------------------

    def _figure(self, entry: int, without: float = 0.0) -> float:
        """Return an entry of the state, or what it is where there is none."""
        return float(self._state[entry]) if self._state is not None else without

    def _kernel_settings(self) -> tuple[float, float, float]:
        """Return the first of the settings."""
        first, second = self.kernel.parameters
        return float(first), float(second), float(self.kernel.code)

    def _write_settings(self) -> None:
        """Put the configuration where the compiled step reads it."""
        settings = self._settings()
        self._state[: len(settings)] = settings

    def _allocate(self, capacity: int) -> None:
        """Give the arrays room for ``capacity`` atoms, or for the cap and newcomers if less.

        There are whole vectors of rows.
        """
        capacity = min(max(capacity, self._newcomers), self.max_model_order + self._newcomers)
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
            checked_inputs(x, self._inputs)
            check_targets(x, targets, np.shape(y), self._columns)
        if self._state is None:
            self._check_first(x, targets)
            self._flat, self._columns = flat, targets.shape[1]
            self._start(x.shape[1])
        return x, targets

    def _check_first(self, x: Array, targets: Array) -> None:
        """Raise where the first samples, from which shapes are taken, cannot be learned."""
        if not (np.isfinite(x).all() and np.isfinite(targets).all()):
            raise ValueError(not_finite('X or y', np.hstack([x, targets])))

    def _require_samples(self, what: str) -> None:
        if self._state is None:
            raise ValueError(f'nothing has been learned yet: call partial_fit before {what}')

    def _shaped(self, columns: Array) -> Array:
        """One column flat, if the targets came flat."""
        flat = self._flat and columns.shape[1] == 1
        return np.ascontiguousarray(columns[:, 0] if flat else columns)
