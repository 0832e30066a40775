# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of an evaluation, as one nested dictionary: what ``result.json`` holds."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kernel_constrained.bags import Recording
from kernel_constrained.core import conditional_value_at_risk
from kernel_constrained.offline.evaluation import DROPOUT, Evaluation, TEST, UNITS

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Of the errors of a normal distribution, 90 % are within so many standard deviations.
NINETY_PERCENT = 1.6449

# Share of the estimates that count as late: the filter has had the others to learn from.
LATE = 0.3


def summarised(evaluation: Evaluation, recording: Recording) -> dict[str, Any]:
    """Return all figures; the same recording and settings give the same, bit for bit.

    Returns
    -------
    dict
        ``recording``, ``messages``, ``errors`` by section (``all``, ``late``: the last 30 %,
        ``test``: after the split, ``dropout``), ``constraint``, ``learner``. What is not known is
        None.
    """
    result = {
        'recording': _recording(recording, (evaluation.topics.input, evaluation.topics.pose)),
        'messages': _messages(evaluation),
        'errors': _errors(evaluation),
        'constraint': _constraint(evaluation),
        'learner': {
            'samples': evaluation.filter.samples,
            'model_order': evaluation.filter.learner.model_order_,
            'largest_model_order': evaluation.largest_order,
            'dual_variable': evaluation.filter.learner.dual_variable_,
        },
    }
    return _without_nan(result)


def figure(result: dict[str, Any], name: str) -> float:
    """Return one figure by its dotted name, as ``errors.late.forward.rmse``; NaN where unknown.

    Raises
    ------
    KeyError
        There is no such figure; the message names what there is at that place.
    """
    value: Any = result
    for part in name.split('.'):
        if not isinstance(value, dict) or part not in value:
            there = ', '.join(value) if isinstance(value, dict) else 'nothing more'
            raise KeyError(f'{name}: no figure {part!r}; there is {there}')
        value = value[part]
    if isinstance(value, dict):
        raise KeyError(f'{name}: more than one figure; there is {", ".join(value)}')
    return math.nan if value is None else float(value)


def _recording(recording: Recording, fed: tuple[str, ...]) -> dict[str, Any]:
    return {
        'name': recording.name,
        'seconds': (recording.end - recording.start) * 1e-9,
        'topics': {
            name: {
                'type': topic.type,
                'declared': topic.count,
                'read': recording.counts[name] if name in fed else None,
            }
            for name, topic in sorted(recording.topics.items())
        },
        'warnings': list(recording.warnings),
        'losses': list(recording.losses),
    }


def _messages(evaluation: Evaluation) -> dict[str, Any]:
    pairing = evaluation.filter.pairing
    return {
        'received': dict(evaluation.received),
        'used': dict(evaluation.used),
        'dropped': dict(sorted(evaluation.dropped.items())),
        'poses_withheld': evaluation.withheld,
        'scans_without_a_pose': pairing.unpaired,
        'clock_jumps': pairing.jumps,
        'pose_jumps': pairing.pose_jumps,
    }


def _errors(evaluation: Evaluation) -> dict[str, Any]:
    """Return the errors in every section that has any."""
    loss, section, learned = evaluation.series.columns('loss', 'section', 'learned')
    known = ~np.isnan(loss)
    late = known.copy()
    late[: len(late) - math.ceil(LATE * len(late))] = False
    sections = {
        'all': known,
        'late': late & (section != DROPOUT),
        TEST: known & (section == TEST),
        DROPOUT: known & (section == DROPOUT),
    }
    sections = {name: mask for name, mask in sections.items() if mask.any()}
    errors: dict[str, Any] = {
        name: {'count': int(mask.sum()), 'loss': _of_loss(evaluation, loss[mask])}
        for name, mask in sections.items()
    }
    for component in evaluation.names:
        for name, figures in _of_component(evaluation, component, sections, learned).items():
            errors[name][component] = figures
    return errors


def _of_loss(evaluation: Evaluation, loss: Array) -> dict[str, float]:
    bound = evaluation.config.learner
    cvar = conditional_value_at_risk(loss, bound.significance)
    return {
        'mean': float(loss.mean()),
        'cvar': cvar,
        'violation': cvar - bound.tolerance if bound.constrained else math.nan,
        'largest': float(loss.max()),
    }


def _of_component(
    evaluation: Evaluation, component: str, sections: dict[str, Mask], learned: Array
) -> dict[str, dict[str, Any]]:
    error = evaluation.errors(component)
    truth, deviation = evaluation.series.columns(f'truth_{component}', f'sd_{component}')
    of_mean = truth - _mean_learned_before(truth, learned > 0)
    return {
        name: {
            'unit': UNITS[component],
            **_of_errors(error[mask], truth[mask]),
            'rmse_of_running_mean': _root_mean_square(of_mean[mask]),
            'within_90_percent': float(
                np.mean(np.abs(error[mask]) <= NINETY_PERCENT * deviation[mask])
            ),
        }
        for name, mask in sections.items()
    }


def _of_errors(error: Array, truth: Array) -> dict[str, float]:
    size = np.abs(error)
    variance = float(truth.var())
    return {
        'rmse': _root_mean_square(error),
        'bias': float(error.mean()),
        'mae': float(size.mean()),
        'median': float(np.median(size)),
        'p95': float(np.quantile(size, 0.95)),
        'largest': float(size.max()),
        'r_squared': 1.0 - float((error**2).mean()) / variance if variance > 0.0 else math.nan,
    }


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt((values**2).mean()))


def _mean_learned_before(truth: Array, learned: Mask) -> Array:
    """Mean of the truths learned before each row, 0 before the first: the least to be beaten."""
    values = np.where(learned, truth, 0.0)
    count: Array = np.cumsum(learned) - learned
    mean: Array = (np.cumsum(values) - values) / np.maximum(count, 1)
    return mean


def _constraint(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return what became of the bound on the tail; None without one."""
    bound = evaluation.config.learner
    if not bound.constrained:
        return None
    (violation,) = evaluation.series.columns('violation')
    known = violation[~np.isnan(violation)]
    since_start = evaluation.filter.cvar_since_start()
    return {
        'significance': bound.significance,
        'tolerance': bound.tolerance,
        'window': bound.loss_window,
        'cvar': evaluation.filter.cvar(),
        'violation': evaluation.filter.cvar() - bound.tolerance,
        'cvar_since_start': since_start,
        'violation_since_start': since_start - bound.tolerance,
        'share_violated': float((known > 0.0).mean()) if known.size else math.nan,
    }


def _without_nan(value: Any) -> Any:
    """Return the same with None for what is no number: JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
