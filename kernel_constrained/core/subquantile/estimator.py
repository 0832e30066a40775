# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's conventions for an estimator, without scikit-learn being installed."""

import sys
import warnings
from abc import ABC, abstractmethod
from copy import copy
from typing import Any, TYPE_CHECKING

import attrs
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from typing_extensions import Self

Array = npt.NDArray[np.float64]


class NotFittedError(ValueError, AttributeError):
    """An estimator was asked before it was fitted."""


class DataConversionWarning(UserWarning):
    """Data were given in another shape than they are learned from."""


def checked_later(cls: type, fields: list['attrs.Attribute[Any]']) -> list[Any]:
    """Put converters and validators of an attrs class aside, for when parameters are used."""
    return [
        field.evolve(
            validator=None,
            converter=None,
            # a base class's are there
            metadata={'convert': field.converter, 'check': field.validator, **field.metadata},
        )
        for field in fields
    ]


@attrs.define(eq=False, slots=False)
class Estimator(ABC):
    """Parameters are the fields of an attrs class; what is learned ends in an underscore.

    Subclasses are defined with ``field_transformer=checked_later``.
    """

    kind = ''

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; ``deep`` is scikit-learn's, nothing here is nested."""
        return {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}

    def set_params(self, **parameters: Any) -> 'Self':
        """Set parameters by name.

        Raises
        ------
        ValueError
            Where there is no such parameter.
        """
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(
                    f'Invalid parameter {name!r} for estimator {type(self).__name__}: '
                    f'there are {", ".join(known)}'
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Return the parameters that are not at their defaults."""
        fields = attrs.fields(type(self))
        given = {f.name: getattr(self, f.name) for f in fields}
        chosen = [f'{f.name}={given[f.name]!r}' for f in fields if given[f.name] != f.default]
        return f'{type(self).__name__}({", ".join(chosen)})'

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn, which alone asks, wants to know of an estimator."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type=self.kind,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if self.kind == 'classifier' else None,
            regressor_tags=RegressorTags() if self.kind == 'regressor' else None,
            input_tags=InputTags(),
        )

    # -- learning ---------------------------------------------------------------------------

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> 'Self':
        """Learn from samples; what was learned before is forgotten.

        Parameters
        ----------
        X
            Inputs, shape (n, p).
        y
            Targets (n,), or labels (n,): numbers or strings, of at least two classes.

        Returns
        -------
        Self
            The estimator itself.

        Raises
        ------
        ValueError
            Where a parameter cannot have its value, shapes do not fit, a number is not finite, or
            there is one class only. What was learned before is kept then.
        """
        fresh = self._checked()
        fresh._learn(*fresh._samples(X, y, least=2))
        self.__dict__ = {**vars(fresh), **self.get_params()}  # parameters stay as they were given
        return self

    @abstractmethod
    def _learn(self, inputs: Array, targets: npt.NDArray[Any]) -> None:
        """Learn from inputs (n, p) and targets or labels (n,)."""

    # -- inputs -----------------------------------------------------------------------------

    def _checked(self) -> 'Self':
        """Return a copy whose parameters are of their types; raise where one cannot be."""
        fresh = copy(self)
        for field in attrs.fields(type(self)):
            convert, check = field.metadata['convert'], field.metadata['check']
            value = getattr(self, field.name)
            if convert is not None:
                value = convert(value)
                setattr(fresh, field.name, value)
            if check is not None:
                check(fresh, field, value)
        return fresh

    def _samples(self, X: Any, y: Any, least: int = 1) -> tuple[Array, npt.NDArray[Any]]:
        """Check inputs (n, p) and targets or labels (n,) to learn from; note the inputs' shape."""
        if y is None:
            raise ValueError(
                f'{type(self).__name__} requires y to be passed, but the target y is None'
            )
        names = column_names(X)
        inputs = as_inputs(X)
        targets = as_vector(y)
        if len(targets) != len(inputs):
            raise ValueError(
                'Found input variables with inconsistent numbers of samples: X has '
                f'{len(inputs)}, y has {len(targets)}'
            )
        if len(inputs) < least:
            raise ValueError(
                f'Found array with {len(inputs)} sample(s) (shape={inputs.shape}) while a '
                f'minimum of {least} is required by {type(self).__name__}.'
            )
        self.n_features_in_ = inputs.shape[1]
        self.__dict__.pop('feature_names_in_', None)
        if names is not None:
            self.feature_names_in_ = names
        return inputs, targets

    def _inputs(self, X: Any) -> Array:
        """Check inputs (n, p) to predict from."""
        if not hasattr(self, 'n_features_in_'):
            raise not_fitted(self)
        names, known = column_names(X), self.__dict__.get('feature_names_in_')
        if names is not None and known is not None and list(names) != list(known):
            raise ValueError(
                'The feature names should match those that were passed during fit: '
                f'{list(known)}, in this order (got {list(names)})'
            )
        inputs = as_inputs(X)
        if inputs.shape[1] != self.n_features_in_:
            raise ValueError(
                f'X has {inputs.shape[1]} features, but {type(self).__name__} is expecting '
                f'{self.n_features_in_} features as input'
            )
        return inputs


def not_fitted(estimator: Any) -> Exception:
    """Return the error of an estimator that was not fitted: scikit-learn's, where it is used."""
    text = f'This {type(estimator).__name__} instance is not fitted yet: call fit first'
    error: Exception = scikit_learn_s(NotFittedError)(text)
    return error


def scikit_learn_s(cls: type) -> Any:
    """Return the error or warning that scikit-learn has of this name, if it is in use."""
    exceptions = sys.modules.get('sklearn.exceptions')
    return cls if exceptions is None else getattr(exceptions, cls.__name__)


def column_names(X: Any) -> npt.NDArray[Any] | None:
    """Return the column names of a data frame, where all are strings."""
    names = getattr(X, 'columns', None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return np.asarray(names, dtype=object)


def as_inputs(X: Any) -> Array:
    """Return inputs as an (n, p) array of finite doubles."""
    if hasattr(X, 'toarray'):
        raise TypeError(
            'Sparse data was passed for X, but dense data is required: call X.toarray()'
        )
    array = np.asarray(X)
    if np.iscomplexobj(array):
        raise ValueError(f'Complex data not supported: X is of {array.dtype}')
    if array.ndim != 2:
        raise ValueError(
            f'Expected 2D array, got {array.ndim}D array instead: X has shape {array.shape}. '
            'Reshape your data by X.reshape(-1, 1) if it has a single feature, by '
            'X.reshape(1, -1) if it is a single sample'
        )
    if array.shape[0] == 0:
        raise ValueError(
            f'Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required.'
        )
    if array.shape[1] == 0:
        raise ValueError(
            f'Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is '
            'required.'
        )
    doubles: Array = np.ascontiguousarray(array, dtype=np.float64)
    refuse_not_finite('X', doubles)
    return doubles


def as_vector(y: Any) -> npt.NDArray[Any]:
    """Return targets or labels as an (n,) array."""
    if hasattr(y, 'toarray'):
        raise TypeError('Sparse data was passed for y, but dense data is required')
    array = np.asarray(y)
    if np.iscomplexobj(array):
        raise ValueError(f'Complex data not supported: y is of {array.dtype}')
    if array.ndim == 2 and array.shape[1] == 1:
        warnings.warn(
            'A column-vector y was passed when a 1d array was expected: use y.ravel()',
            scikit_learn_s(DataConversionWarning),
            stacklevel=4,
        )
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f'y should be a 1d array, got an array of shape {array.shape} instead.')
    return array


def as_targets(y: npt.NDArray[Any]) -> Array:
    """Return targets as finite doubles."""
    targets: Array = np.ascontiguousarray(y, dtype=np.float64)
    refuse_not_finite('y', targets)
    return targets


def refuse_not_finite(name: str, values: Array) -> None:
    """Raise where a number is NaN or infinite."""
    wrong = ~np.isfinite(values)
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f'Input {name} contains NaN or infinity: {int(wrong.sum())} of {wrong.size} numbers, '
            f'the first at index {first[0] if len(first) == 1 else first}'
        )
