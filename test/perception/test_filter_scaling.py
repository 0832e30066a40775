# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The filter that learns how to scale: strange units, long waits, wild poses, new places."""

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_scans import room_scan, SECOND

from kernel_constrained.configuration import from_flat
from kernel_constrained.perception.config import FilterConfig, TARGETS
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.perception.geometry import Pose

DEFAULTS = {'features.sectors': 12, 'features.far': 15.0, 'pairing.max_gap': 0.0}
FIXED = {'features.scaling': 'fixed', 'target.scaling': 'fixed'}


def made_filter(kind='axis', **more):
    more = {name.replace('__', '.'): value for name, value in more.items()}
    return ScanFilter(from_flat(FilterConfig, {**DEFAULTS, 'target.type': kind, **more}))


def wander(count, seed=0, low=1.0, high=9.0):
    """Return poses from here and there in a part of the room."""
    rng = np.random.default_rng(seed)
    return [
        Pose(*map(float, rng.uniform((low, 1.0, 0.0, -0.5), (high, 5.0, 0.0, 0.5))))
        for _ in range(count)
    ]


def feed(filter_, poses, start=0, seen=room_scan, said=lambda pose: pose):
    """Feed scans with their poses, ten a second; return the errors."""
    learned = []
    for i, pose in enumerate(poses):
        stamp = start * SECOND + i * SECOND // 10
        filter_.scan(stamp, seen(pose))
        filter_.pose(stamp, said(pose))
        learned += filter_.learn()
    return np.array([sample.error for sample in learned])


def root_mean_square(errors):
    return float(np.sqrt(np.mean(np.square(errors)[:, 0])))


def learned_state(filter_):
    header, arrays = filter_.to_parts()
    return header, {name: array.tolist() for name, array in arrays.items()}


# -- units --------------------------------------------------------------------------------------


def test_a_sensor_of_short_range_on_a_map_far_from_its_origin_is_learned_like_any_other():
    def of_a_toy(pose):
        scan = room_scan(pose)  # 1 : 40, a sensor of 0.3 m
        small = np.float32(scan.ranges / 40)
        return attrs.evolve(scan, ranges=small, range_min=0.005, range_max=0.3)

    def on_the_map(pose):
        return pose._replace(x=pose.x + 5000.0, y=pose.y - 3000.0)

    errors = feed(made_filter(), wander(1000))
    strange = feed(made_filter(features__far=0.3), wander(1000), 0, of_a_toy, on_the_map)
    assert root_mean_square(strange[-300:]) < 0.1
    assert root_mean_square(strange[-300:]) < 2.0 * root_mean_square(errors[-300:])
    fixed = made_filter(features__far=0.3, **FIXED)
    assert root_mean_square(feed(fixed, wander(1000), 0, of_a_toy, on_the_map)[-300:]) > 4000.0


@pytest.mark.parametrize('kind', TARGETS)
def test_inputs_and_targets_are_of_order_one(kind):
    filter_ = made_filter(kind)
    feed(filter_, wander(300))
    recent = filter_._recent
    scaled = filter_.scaling.scaled(recent.inputs_of(recent.order))
    assert np.abs(scaled.mean(axis=0)).max() < 2.0
    assert 0.5 < np.sqrt(np.mean(scaled**2)) < 2.0
    within = np.abs(recent.quantities - filter_.target.range.offset) / filter_.target.range.scale
    assert 0.5 < np.sqrt(np.mean(within**2)) < 2.0


def test_fixed_scaling_stays_as_it_is():
    filter_ = made_filter(target__position_offset=3.0, target__position_scale=2.0, **FIXED)
    feed(filter_, wander(200))
    assert filter_.scaling.scale.tolist() == [1.0] * 12
    assert (filter_.target.range.offset, filter_.target.range.scale) == (3.0, 2.0)
    assert filter_.learner.samples_ == 200, 'and nothing is learned twice'


# -- what the robot may do ----------------------------------------------------------------------


@pytest.mark.parametrize('kind', TARGETS)
def test_a_robot_that_was_parked_for_long_learns_as_well_as_any_other(kind):
    def noisy(pose):
        scan = room_scan(pose)
        noise = rng.normal(0.0, 0.01, len(scan.ranges))
        return attrs.evolve(scan, ranges=np.float32(scan.ranges + noise))

    rng = np.random.default_rng(0)
    fresh, parked = made_filter(kind), made_filter(kind)
    feed(parked, [Pose(2.0, 2.0, 0.0, 0.1)] * 3000, 0, noisy)
    late = [
        root_mean_square(feed(filter_, wander(1500, seed=3), 1000)[-300:])
        for filter_ in (fresh, parked)
    ]
    assert late[1] < 2.0 * late[0]


@pytest.mark.parametrize('place', [3, 20, 40, 150])
def test_a_single_wild_pose_moves_no_range(place):
    poses = wander(300)
    plain, filter_ = made_filter(), made_filter()
    feed(plain, poses)
    wild = poses.copy()
    wild[place] = poses[place]._replace(x=1e6)
    said = iter(wild)
    errors = feed(filter_, poses, said=lambda _: next(said))
    assert filter_.target.range.scale == pytest.approx(plain.target.range.scale, rel=0.3)
    assert filter_.target.range.offset == pytest.approx(plain.target.range.offset, abs=0.5)
    assert root_mean_square(errors[-100:]) < 0.4 * np.std([pose.x for pose in poses])


@pytest.mark.parametrize('window', [50, 200])
def test_what_was_learned_before_the_window_is_kept_when_a_new_range_is_learned(window):
    filter_ = made_filter(uncertainty__window=window)
    feed(filter_, wander(1000, 1, 1.0, 4.0))
    before = filter_.learner
    spread = 2.0 * filter_.target.range.scale[0]
    feed(filter_, wander(500, 2, 6.0, 9.0), 1000)
    assert filter_.learner is not before, 'it was learned anew'
    assert filter_.target.range.scale[0] * 2.0 > 1.5 * spread
    filter_.learning = False
    assert root_mean_square(feed(filter_, wander(200, 3, 1.0, 4.0), 2000)) < 0.2
    assert root_mean_square(feed(filter_, wander(200, 4, 6.0, 9.0), 3000)) < 0.4


def test_a_frozen_filter_does_not_rescale():
    filter_ = made_filter()
    feed(filter_, wander(300, 1, 1.0, 4.0))
    feed(filter_, wander(30, 4, 6.0, 9.0), 500)  # a new range, and it is not looked at yet
    filter_.learning = False
    scaling, range_, learner = filter_.scaling, filter_.target.range, filter_.learner
    feed(filter_, wander(300, 2, 6.0, 9.0), 1000)
    assert (filter_.scaling, filter_.target.range, filter_.learner) == (scaling, range_, learner)
    filter_.learning = True
    feed(filter_, wander(60, 3, 6.0, 9.0), 2000)
    assert filter_.scaling is not scaling
    assert filter_.target.range is not range_


def test_a_filter_that_was_frozen_from_the_start_says_what_it_said():
    filter_ = made_filter()
    filter_.learning = False
    errors = feed(filter_, wander(60))
    assert errors[:, 0] == pytest.approx([-pose.x for pose in wander(60)])
    assert filter_.learner.samples_ == 0


# -- order and files ----------------------------------------------------------------------------


@pytest.mark.parametrize('kind', TARGETS)
@settings(max_examples=15, deadline=None)
@given(order=st.permutations(['scan'] * 60 + ['pose'] * 60))
def test_any_interleaving_learns_the_same_weights_bit_for_bit(kind, order):
    poses = wander(60)
    reference, filter_ = made_filter(kind), made_filter(kind)
    feed(reference, poses)
    waiting = {'scan': iter(enumerate(poses)), 'pose': iter(enumerate(poses))}
    for event in order:
        i, pose = next(waiting[event])
        if event == 'scan':
            filter_.scan(i * SECOND // 10, room_scan(pose))
        else:
            filter_.pose(i * SECOND // 10, pose)
        filter_.learn()
    assert filter_.learner.weights_.tolist() == reference.learner.weights_.tolist()
    assert filter_.learner.dictionary_.tolist() == reference.learner.dictionary_.tolist()
    assert filter_.scaling.to_array().tolist() == reference.scaling.to_array().tolist()


@pytest.mark.parametrize('kind', TARGETS)
@pytest.mark.parametrize('count', [0, 5, 30, 120])
@pytest.mark.parametrize('way', ['load', 'restore'])
def test_saved_filter_goes_on_bit_for_bit(tmp_path, kind, count, way):
    path = tmp_path / 'model.npz'
    first = made_filter(kind, uncertainty__window=40)
    feed(first, wander(count, 1, 3.0, 5.0))
    first.save(path)
    if way == 'load':
        second = ScanFilter.load(path)
    else:
        second = made_filter(kind, uncertainty__window=40)
        feed(second, wander(70, 5))
        second.restore(path)
    for filter_ in (first, second):  # no motion from before into what comes now
        filter_.scan(10**6 * SECOND, room_scan(Pose(5.0, 3.0, 0.0, 0.0)))
    assert learned_state(second) == learned_state(first)
    later = wander(150, 2)
    errors = [feed(filter_, later, 10**6 + 1).tolist() for filter_ in (first, second)]
    assert errors[0] == errors[1]
    assert learned_state(second) == learned_state(first)
    assert first.scaling.scale.tolist() != made_filter(kind).scaling.scale.tolist()


def test_reset_forgets_the_ranges_too():
    filter_, fresh = made_filter('pose'), made_filter('pose')
    feed(filter_, wander(120, 1, 1.0, 4.0))
    filter_.reset()
    assert learned_state(filter_) == learned_state(fresh)
    feed(filter_, wander(120, 2), 1000)
    feed(fresh, wander(120, 2), 1000)
    assert learned_state(filter_) == learned_state(fresh)


def test_pairs_that_came_while_learning_was_off_are_never_learned():
    filter_ = made_filter()
    feed(filter_, wander(300, 1, 1.0, 4.0))
    filter_.learning = False
    feed(filter_, wander(150, 2, 1.0, 4.0), 1000, said=lambda pose: pose._replace(x=pose.x + 50.0))
    filter_.learning = True
    before = filter_.learner
    feed(filter_, wander(100, 3, 6.0, 9.0), 2000)
    assert filter_.learner is not before, 'it was learned anew'
    assert filter_.target.range.offset + filter_.target.range.half_width < 10.0
    filter_.learning = False
    assert root_mean_square(feed(filter_, wander(100, 4, 1.0, 4.0), 3000)) < 0.5
