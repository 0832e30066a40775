# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The tail of the newest losses exactly, and of all there ever were within 2 %."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_constrained.core import conditional_value_at_risk, LossHistory

significances = st.one_of(st.sampled_from([0.0, 0.5, 0.9, 0.99, 0.9999]), st.floats(0.0, 0.9999))


def history(losses, window=10):
    filled = LossHistory(window)
    for loss in losses:
        filled.add(loss)
    return filled


@given(
    losses=st.lists(st.floats(0.0, 1e6), min_size=1, max_size=60),
    window=st.integers(1, 30),
    significance=significances,
)
def test_cvar_is_that_of_the_newest_losses_exactly(losses, window, significance):
    filled = history(losses, window)
    assert filled.count == len(losses)
    assert sorted(filled.newest) == sorted(losses[-window:])
    assert filled.cvar(significance) == pytest.approx(
        conditional_value_at_risk(losses[-window:], significance)
    )


def made_losses(kind, count, seed):
    rng = np.random.default_rng(seed)
    return {
        'lognormal': rng.lognormal(0.0, 2.0, count),
        'constant': np.full(count, rng.lognormal(0.0, 3.0)),
        'mostly zero': np.where(rng.uniform(size=count) < 0.95, 0.0, rng.exponential(1.0, count)),
        'huge': rng.lognormal(33.0, 1.5, count),
        'tiny': rng.lognormal(-33.0, 1.5, count),
        'of all sizes': 2.0 ** rng.uniform(-59, 59, count),
        # at worst the tail is at the upper end of a bin and the rest at its lower
        'of two that hardly differ': np.where(np.arange(count) % 90, 1.0, rng.uniform(1.0, 1.03)),
    }[kind]


@pytest.mark.parametrize(
    'kind',
    ['lognormal', 'constant', 'mostly zero', 'huge', 'tiny', 'of all sizes',
     'of two that hardly differ'],
)  # fmt: skip
@given(significance=significances, count=st.integers(1, 2000), seed=st.integers(0, 99))
def test_cvar_since_start_is_within_2_percent(kind, significance, count, seed):
    losses = made_losses(kind, count, seed)
    exact = conditional_value_at_risk(losses, significance)
    assert history(losses).cvar_since_start(significance) == pytest.approx(exact, rel=0.02)


@given(st.lists(st.floats(0.0, 1e17), min_size=1, max_size=50), significances)
def test_cvar_since_start_of_any_losses(losses, significance):
    exact = conditional_value_at_risk(losses, significance)
    found = history(losses).cvar_since_start(significance)
    assert found == pytest.approx(exact, rel=0.02, abs=1e-17)


def test_mean_of_all_losses_is_exact():
    losses = np.random.default_rng(0).lognormal(0.0, 5.0, 1000)
    assert history(losses).cvar_since_start(0.0) == pytest.approx(losses.mean(), rel=1e-12)


def test_since_start_remembers_what_the_window_has_forgotten():
    filled = history([100.0] * 50 + [1.0] * 50)
    assert filled.cvar(0.5) == 1.0
    assert filled.cvar_since_start(0.5) == pytest.approx(100.0)


@pytest.mark.parametrize('loss', [1e300, math.inf, 5e-324, 1e19])
def test_losses_beyond_the_bins_are_counted_and_harm_nothing(loss):
    filled = history([1.0, loss, 1.0])
    assert filled.count == 3
    assert filled.cvar_since_start(0.0) == pytest.approx((2.0 + loss) / 3)


def test_without_a_loss_there_is_no_cvar():
    assert math.isnan(LossHistory(5).cvar(0.9))
    assert math.isnan(LossHistory(5).cvar_since_start(0.9))


@pytest.mark.parametrize('count', [0, 3, 10, 25])
def test_restored_history_goes_on_as_the_first(count):
    losses = np.random.default_rng(1).lognormal(0.0, 1.0, 40)
    first, second = history(losses[:count]), LossHistory(10)
    kept = first.to_arrays()
    second.restore(kept['losses'], kept['loss_bins'])
    for loss in losses[count:]:
        first.add(loss)
        second.add(loss)
        assert second.cvar(0.8) == first.cvar(0.8)
        assert second.cvar_since_start(0.8) == first.cvar_since_start(0.8)
    assert second.count == 40


def test_arrays_are_copies():
    filled = history([1.0, 2.0], window=2)
    before = {name: array.copy() for name, array in filled.to_arrays().items()}
    kept = filled.to_arrays()
    filled.add(3.0)
    for name, array in kept.items():
        assert array.tolist() == before[name].tolist()


@pytest.mark.parametrize(
    ('losses', 'bins', 'message'),
    [
        (slice(None), slice(0, -1), 'loss bins have shape'),
        (slice(0, -1), slice(None), 'newest losses have shape'),
    ],
)
def test_arrays_of_another_shape_are_refused_and_nothing_changes(losses, bins, message):
    kept = history(range(1, 8)).to_arrays()
    filled = history([5.0])
    with pytest.raises(ValueError, match=message):
        filled.restore(kept['losses'][losses], kept['loss_bins'][:, bins])
    assert (filled.count, filled.cvar(0.0), filled.cvar_since_start(0.0)) == (1, 5.0, 5.0)


def test_losses_of_a_larger_window_are_refused():
    kept = history(range(30), window=20).to_arrays()
    with pytest.raises(ValueError, match='newest losses have shape'):
        LossHistory(10).restore(kept['losses'], kept['loss_bins'])
