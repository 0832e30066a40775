# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of an evaluation, as one nested dictionary: what ``result.json`` holds."""

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from kernel_constrained.bags import Recording
from kernel_constrained.core import conditional_value_at_risk
from kernel_constrained.offline.drift import drift_over, drifts_of, track_of
from kernel_constrained.offline.evaluation import (
    DROPOUT,
    Evaluation,
    ONLINE,
    TEST,
    UNDECODABLE,
    UNITS,
    wrapped,
)

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Of the errors of a normal distribution, 90 % are within so many standard deviations.
NINETY_PERCENT = 1.6449

# Share of the scored estimates before which they do not count as late: from these it has learned.
EARLY = 0.7

# A truth that differs by less than this, m or rad, does so by rounding alone: so do poses 4000 km
# from the origin.
ROUNDING = 1e-9

# Distances that drift is given over, m.
STRETCHES = (10, 100)


def summarised(evaluation: Evaluation, recording: Recording) -> dict[str, Any]:
    """Return all figures; the same recording and settings give the same, bit for bit.

    Returns
    -------
    dict
        ``recording``, ``messages``, ``errors`` by section (:func:`sections_of`), ``drift`` of a
        motion, ``constraint``, ``learner``. What is not known is None.
    """
    sections = sections_of(evaluation)
    learner = evaluation.filter.learner
    result = {
        'recording': _recording(evaluation, recording),
        'messages': _messages(evaluation),
        'errors': _errors(evaluation, sections),
        'drift': _drift(evaluation, sections),
        'constraint': _constraint(evaluation),
        'learner': {
            'samples': evaluation.filter.samples,
            'model_order': learner.model_order_,
            'largest_model_order': evaluation.largest_order,
            'dual_variable': learner.dual_variable_,
            'rejected': evaluation.filter.rejected,
            'estimated_corruption': getattr(learner, 'corruption_', None),
        },
    }
    return _without_nan(result)


def sections_of(evaluation: Evaluation) -> dict[str, Mask]:
    """Return which rows are scored in which section; sections without any are left out.

    ``all``: every estimate whose truth is known. ``late``: the last 30 % of those that are
    neither after the split nor in a dropout. ``test``: after the split. ``dropout``.
    """
    series = evaluation.series
    known = ~np.isnan(series.columns('loss')[0])
    late = known & series.where('section', ONLINE)
    scored = np.flatnonzero(late)
    late[scored[: int(EARLY * len(scored))]] = False
    sections = {
        'all': known,
        'late': late,
        TEST: known & series.where('section', TEST),
        DROPOUT: known & series.where('section', DROPOUT),
    }
    return {name: mask for name, mask in sections.items() if mask.any()}


def section_of_interest(sections: Collection[str]) -> str:
    """Return the section that says most: what the filter did without help."""
    return next(name for name in (DROPOUT, TEST, 'late', 'all') if name in sections)


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
    if value is not None and not isinstance(value, int | float):
        raise KeyError(f'{name}: not a number but {value!r}')
    return math.nan if value is None else float(value)


def _recording(evaluation: Evaluation, recording: Recording) -> dict[str, Any]:
    fed, schedule = evaluation.topics[:2], evaluation.schedule
    time = evaluation.series.columns('time')[0]
    return {
        'name': recording.name,
        'seconds': (recording.end - recording.start) * 1e-9,
        'from': float(time[0]),
        'to': float(time[-1]),
        'test_from': schedule.test_from,
        'dropouts': [list(interval) for interval in schedule.dropouts],
        'topics': {
            name: {
                'type': topic.type,
                'declared': topic.count,
                'read': recording.counts[name] if name in fed else None,
            }
            for name, topic in sorted(recording.topics.items())
        },
        'warnings': list(recording.warnings),
        'losses': [*recording.losses, *_undecodable(evaluation)],
    }


def _undecodable(evaluation: Evaluation) -> list[str]:
    """Say of which messages some are damaged."""
    damaged = {kind: f'{kind}: {UNDECODABLE}' for kind in evaluation.received}
    return [
        f'{reason}, {evaluation.dropped[reason]} of {evaluation.received[kind]}'
        for kind, reason in sorted(damaged.items())
        if evaluation.dropped[reason]
    ]


def _messages(evaluation: Evaluation) -> dict[str, Any]:
    """Return what became of the messages: received = used + dropped + withheld."""
    pairing = evaluation.filter.pairing
    return {
        'received': dict(sorted(evaluation.received.items())),
        'used': dict(sorted(evaluation.used.items())),
        'dropped': dict(sorted(evaluation.dropped.items())),
        'poses_withheld': evaluation.withheld,
        'scans_without_a_pose': pairing.unpaired,
        'clock_jumps': pairing.jumps,
        'pose_jumps': pairing.pose_jumps,
    }


# -- errors -------------------------------------------------------------------------------------


def _errors(evaluation: Evaluation, sections: dict[str, Mask]) -> dict[str, Any]:
    """Return the errors in every section."""
    loss, learned = evaluation.series.columns('loss', 'learned')
    errors: dict[str, Any] = {
        name: {'count': int(mask.sum()), 'loss': _of_loss(evaluation, loss[mask])}
        for name, mask in sections.items()
    }
    for component in evaluation.names:
        for name, figures in _of_component(evaluation, component, sections, learned > 0).items():
            errors[name][component] = figures
    return errors


def _of_loss(evaluation: Evaluation, loss: Array) -> dict[str, float]:
    bound = evaluation.config.learner
    cvar = conditional_value_at_risk(loss, bound.significance)
    return {
        'mean': float(loss.mean()),
        'cvar': cvar,
        'violation': cvar - bound.tolerance if bound.bounded else math.nan,
        'largest': float(loss.max()),
    }


def _of_component(
    evaluation: Evaluation, component: str, sections: dict[str, Mask], learned: Mask
) -> dict[str, dict[str, Any]]:
    # A heading comes round again, so its mean is the direction of the mean of unit vectors; a
    # motion's yaw is small, and its mean the usual one.
    heading = component == 'yaw' and evaluation.config.target.type != 'motion'
    error = evaluation.errors(component)
    truth, deviation = evaluation.series.columns(f'truth_{component}', f'sd_{component}')
    before = _mean_learned_before(truth, learned & ~np.isnan(truth), heading)
    of_mean = _from_centre(truth, before, heading)
    return {
        name: {
            'unit': UNITS[component],
            **_of_errors(error[mask]),
            'r_squared': _r_squared(error[mask], truth[mask], heading),
            'rmse_of_running_mean': _root_mean_square(of_mean[mask]),
            'within_90_percent': float(
                np.mean(np.abs(error[mask]) <= NINETY_PERCENT * deviation[mask])
            ),
        }
        for name, mask in sections.items()
    }


def _of_errors(error: Array) -> dict[str, float]:
    size = np.abs(error)
    return {
        'rmse': _root_mean_square(error),
        'bias': float(error.mean()),
        'mae': float(size.mean()),
        'median': float(np.median(size)),
        'p95': float(np.quantile(size, 0.95)),
        'largest': float(size.max()),
    }


def _r_squared(error: Array, truth: Array, heading: bool) -> float:
    """1 - mean squared error / variance of the truth; NaN where that differs by rounding alone."""
    if heading:
        centre = math.atan2(np.sin(truth).mean(), np.cos(truth).mean())
    else:
        centre = float(truth.mean())
    variance = float((_from_centre(truth, centre, heading) ** 2).mean())
    return 1.0 - float((error**2).mean()) / variance if variance > ROUNDING**2 else math.nan


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt((values**2).mean()))


def _from_centre(truth: Array, centre: Array | float, heading: bool) -> Array:
    difference: Array = truth - centre
    return wrapped(difference) if heading else difference


def _mean_learned_before(truth: Array, learned: Mask, heading: bool) -> Array:
    """Mean of the truths learned before each row, 0 before the first: the least to be beaten."""
    if heading:
        return np.arctan2(
            _sum_before(np.sin(truth), learned), _sum_before(np.cos(truth), learned)
        )  # fmt: skip
    mean: Array = _sum_before(truth, learned)
    mean /= np.maximum(np.cumsum(learned) - learned, 1)
    return mean


def _sum_before(values: Array, learned: Mask) -> Array:
    """Sum of the learned values before each row."""
    values = np.where(learned, values, 0.0)
    return np.concatenate([[0.0], np.cumsum(values)[:-1]])


# -- drift --------------------------------------------------------------------------------------


def _drift(evaluation: Evaluation, sections: dict[str, Mask]) -> dict[str, Any] | None:
    """Return how far motions lead astray that follow each other; None for another target.

    ``over_10_m`` and so on are of all stretches of that length in the section of interest but
    dropouts, which are given one by one.
    """
    if evaluation.config.target.type != 'motion':
        return None
    track = track_of(evaluation)
    used = sections[section_of_interest(set(sections) - {DROPOUT} or sections)]
    result: dict[str, Any] = {}
    for length in STRETCHES:
        count, percent, turned = drift_over(track, length, used)
        if count:
            result[f'over_{length}_m'] = {
                'count': count, 'percent': percent, 'yaw_per_metre': turned,
            }  # fmt: skip
    if found := drifts_of(evaluation):
        result['largest_error'] = max(drift.error for drift in found)
        result['largest_percent'] = max(
            (drift.percent for drift in found if drift.distance > 0.0), default=math.nan
        )
        result['dropouts'] = [
            {
                'begin': drift.begin,
                'end': drift.end,
                'distance': drift.distance,
                'error': drift.error,
                'percent': drift.percent,
                'yaw_error': drift.yaw_error,
            }
            for drift in found
        ]
    return result


# -- constraint ---------------------------------------------------------------------------------


def _constraint(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return what became of the bound on the tail; None without one."""
    bound = evaluation.config.learner
    if not bound.bounded:
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
    if isinstance(value, list):
        return [_without_nan(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
