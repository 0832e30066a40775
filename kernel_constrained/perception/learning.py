# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What filter and classifier have in common: a learner on scans, its settings, its model file."""

from pathlib import Path
from typing import Any, ClassVar, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kernel_constrained import model_file
from kernel_constrained.configuration import ConfigurationError, fields, flatten, from_flat
from kernel_constrained.core import LossHistory, PrimalDualLearner
from kernel_constrained.core.subquantile import SubquantileLearner
from kernel_constrained.model_file import ModelFileError
from kernel_constrained.perception.config import mounting_of, ScanFeatureConfig
from kernel_constrained.perception.scan import Scan

if TYPE_CHECKING:
    from typing_extensions import Self

Array = npt.NDArray[np.float64]


def plain_scan(features: ScanFeatureConfig, distance: float) -> Scan:
    """Return a scan that sees the same distance in the first bearings that features are of."""
    return Scan(np.full(8, distance, dtype=np.float32), features.bearing_min, 1e-3, 0.0, 100.0)


class ScanLearner:
    """Learns from scans one by one; what of, its subclasses say.

    Parameters
    ----------
    config
        Everything that can be chosen; of class ``CONFIG``, or one that has more.

    Attributes
    ----------
    learner : PrimalDualLearner or SubquantileLearner
        What has been learned.
    learning : bool
        False to go on predicting without learning.
    mounting : Mounting
        Where the sensor sits on the robot.
    losses : LossHistory
        Of the scans whose truth became known, each from before it was learned.
    samples : int
        Samples learned.
    """

    # Kind of the model file, the class of the settings in it, and what is learned.
    KIND: ClassVar[str]
    CONFIG: ClassVar[type]
    LEARNED: ClassVar[tuple[str, ...]] = ('learner', 'losses', 'samples')

    learner: PrimalDualLearner | SubquantileLearner

    def __init__(self, config: Any) -> None:
        self.config = config
        self.learning = True
        self.mounting = mounting_of(config.mounting)

    def reset(self) -> None:
        """Forget everything that was learned."""
        self.losses = LossHistory(self.config.learner.loss_window)
        self.samples = 0

    def warm_up(self) -> None:
        """Compile what the first message would have to wait for."""
        raise NotImplementedError

    def cvar(self) -> float:
        """Return the CVaR of the newest losses, also where nothing is learned or bounded."""
        return self.losses.cvar(self.config.learner.significance)

    def cvar_since_start(self) -> float:
        """Return the CVaR of all the losses there were, within 2 %."""
        return self.losses.cvar_since_start(self.config.learner.significance)

    # -- settings ---------------------------------------------------------------------------

    def reconfigure(self, config: Any) -> None:
        """Take the run-time parameters of a configuration.

        Raises
        ------
        ConfigurationError
            Where another parameter differs; nothing has changed then.
        """
        differing = self._fixed_differences(config)
        if differing:
            raise ConfigurationError(f'cannot change while running: {"; ".join(differing)}')
        if config.mounting != self.config.mounting:
            self.mounting = mounting_of(config.mounting)
        self.learner.set_parameters(**config.learner.runtime_values())
        self.config = config

    def _fixed_differences(self, other: Any) -> list[str]:
        """Say which of our parameters differ that cannot change at run time."""
        mine, theirs = flatten(self.config), flatten(other)
        return [
            f'{name} is {theirs[name]} there and {mine[name]} here'
            for name, field in fields(self.CONFIG)
            if not field.metadata['runtime'] and mine[name] != theirs[name]
        ]

    def _settings(self) -> dict[str, Any]:
        """Return the parameters that are our own, without those of a node around us."""
        names = {name for name, _ in fields(self.CONFIG)}
        return {name: value for name, value in flatten(self.config).items() if name in names}

    # -- files ------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write configuration and what was learned; the file is replaced whole or not at all."""
        model_file.write(path, self.KIND, *self.to_parts())

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Split into (plain values, arrays): what a model file holds, apart from this object."""
        header, arrays = self.learner.to_parts()
        return {'config': self._settings(), 'learner': header, 'samples': self.samples}, {
            **{name: array.copy() for name, array in arrays.items()},
            **self.losses.to_arrays(),
        }

    @classmethod
    def load(cls, path: str | Path) -> 'Self':
        """Read what :meth:`save` wrote.

        Raises
        ------
        ModelFileError
            Where the file is damaged, of another kind, or of a version this one cannot read.
        """
        header, arrays = model_file.read(path, cls.KIND)
        try:
            loaded = cls(from_flat(cls.CONFIG, header['config']))
            loaded._take_parts(header, arrays)
        except Exception as error:
            raise ModelFileError(f'{path} does not fit this version ({error})') from error
        return loaded

    def _take_parts(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take what :meth:`to_parts` returned; what is left of the arrays is the learner's."""
        self.samples = int(header['samples'])
        self.losses.restore(arrays.pop('losses'), arrays.pop('loss_bins'))
        self.learner = type(self.learner).from_parts(header['learner'], arrays)

    def restore(self, path: str | Path) -> None:
        """Take what was learned from a file that :meth:`save` wrote under the same configuration.

        Run-time parameters may differ; those in force stay.

        Raises
        ------
        ModelFileError
            Where the file cannot be read or other parameters differ; nothing has changed then.
        """
        loaded = self.load(path)
        differing = self._fixed_differences(loaded.config)
        if differing:
            raise ModelFileError(f'{path} was learned otherwise: {"; ".join(differing)}')
        for name in self.LEARNED:
            setattr(self, name, getattr(loaded, name))
        self.reconfigure(self.config)
