# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The online filter: what it learns, when it does not, and what survives."""

import math
import struct
import zipfile

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_scans import room_scan, scan, SECOND

from kernel_constrained import model_file
from kernel_constrained.configuration import ConfigurationError, flatten, from_flat
from kernel_constrained.model_file import ModelFileError
from kernel_constrained.perception.config import FilterConfig, TARGETS
from kernel_constrained.perception.filter import FORMAT, ScanFilter
from kernel_constrained.perception.geometry import motion_between, Mounting, Pose
from kernel_constrained.perception.node_config import FilterNodeConfig
from kernel_constrained.perception.scan import Reading
from kernel_constrained.perception.unusable import Unusable

TENTH = SECOND // 10

AXIS = {
    'features.sectors': 12,
    'features.far': 15.0,
    'target.type': 'axis',
    'target.position_offset': 5.0,
    'target.position_scale': 2.0,
    'learner.parsimony': 0.01,
    'features.scaling': 'fixed',
    'target.scaling': 'fixed',
}
MOTION = {**AXIS, 'target.type': 'motion', 'target.position_offset': 0.1, 'pairing.max_gap': 0.0}
SETTINGS = {'axis': AXIS, 'motion': MOTION, 'pose': {**AXIS, 'target.type': 'pose'}}


def config(values=AXIS, cls=FilterConfig, **more):
    """Return a configuration; ``more`` has dots spelled as double underscores."""
    more = {name.replace('__', '.'): value for name, value in more.items()}
    return from_flat(cls, {**values, **more})


def drive(count, start=0, seed=0):
    """Return (stamp, pose, scan) along a winding path through the room."""
    rng = np.random.default_rng(seed)
    phase = rng.uniform(0, 6)
    samples = []
    for i in range(start, start + count):
        angle = 0.05 * i + phase
        pose = Pose(
            5 + 3 * math.sin(angle), 3 + 1.5 * math.sin(1.7 * angle), 0.0, 0.5 * math.sin(angle)
        )
        samples.append((TENTH * i, pose, room_scan(pose)))
    return samples


def wander(count, seed=0):
    """Return (stamp, pose, scan) from here and there in the room."""
    rng = np.random.default_rng(seed)
    low, high = (1.0, 1.0, 0.0, -0.5), (9.0, 5.0, 0.0, 0.5)
    poses = [Pose(*map(float, rng.uniform(low, high))) for _ in range(count)]
    return [(TENTH * i, pose, room_scan(pose)) for i, pose in enumerate(poses)]


def run(filter_, samples, first='pose'):
    """Feed samples; return (estimates, learned)."""
    estimates, learned = [], []
    for stamp, pose, seen in samples:
        for kind in (first, 'scan' if first == 'pose' else 'pose'):
            if kind == 'pose':
                filter_.pose(stamp, pose)
            else:
                estimates.append(filter_.scan(stamp, seen))
            learned += filter_.learn()
    return estimates, learned


def state(filter_):
    """Return all that was learned, comparable with ==."""
    header, arrays = filter_.learner.to_parts()
    return header, {name: array.tolist() for name, array in arrays.items()}


def same_parts(mine, others):
    assert mine[0] == others[0]
    assert mine[1].keys() == others[1].keys()
    for name, array in mine[1].items():
        assert array.tolist() == others[1][name].tolist(), name


def test_features_are_of_order_one_and_tell_near_ranges_apart():
    filter_ = ScanFilter(config(features__sectors=4, features__half_range=2.0, features__far=14.0))
    seen = scan([0.5, 2.0, 6.0, math.inf], -0.75 * math.pi)
    assert filter_.features(seen) == pytest.approx([-1.2, 0.0, 1.0, 1.5])


# -- learning -----------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', TARGETS)
def test_filter_learns_its_target(kind):
    filter_ = ScanFilter(config(SETTINGS[kind]))
    _, learned = run(filter_, wander(1500))
    errors = np.abs([sample.error for sample in learned])
    early, late = errors[:50].mean(axis=0), errors[-200:].mean(axis=0)
    assert (late < 0.7 * early).all()
    assert late[0] < 0.6


def test_single_range_is_learned_too():
    filter_ = ScanFilter(config(features__type='range', learner__bandwidth=0.2))
    errors = []
    for i in range(400):
        x = 5 + 4 * math.sin(0.1 * i)
        filter_.pose(i, Pose(x, 0, 0, 0))
        filter_.scan(i, Reading(10 - x, 0.0, 10.0))
        errors += [abs(sample.error[0]) for sample in filter_.learn()]
    assert np.mean(errors[-100:]) < 0.2


def test_error_is_the_published_estimate_minus_the_truth():
    filter_ = ScanFilter(config())
    samples = drive(50)
    estimates, learned = run(filter_, samples)
    for (stamp, pose, _), estimate, sample in zip(samples, estimates, learned, strict=True):
        assert stamp == estimate.stamp == sample.stamp
        assert sample.error == pytest.approx(estimate.mean - pose.x)
        assert sample.loss == pytest.approx(sample.error[0] ** 2 / 4)


def test_error_of_a_motion_is_about_the_poses_at_two_scans():
    filter_ = ScanFilter(config(MOTION))
    samples = drive(30)
    estimates, learned = run(filter_, samples)
    assert estimates[0] is None
    assert len(learned) == 29
    for i, sample in enumerate(learned, start=1):
        truth = motion_between(samples[i - 1][1], samples[i][1])
        assert sample.error == pytest.approx(estimates[i].mean - truth, abs=1e-12)


def test_first_estimate_is_the_offset_and_says_that_it_knows_nothing():
    (estimate, *_), _ = run(ScanFilter(config(SETTINGS['pose'])), drive(1))
    assert estimate.mean.tolist() == [5.0, 0.0, 0.0, 0.0]
    assert estimate.covariance.tolist() == np.diag([4e6, 4e6, 1e6, 1e6]).tolist()


def test_loss_counts_a_target_cut_off_and_the_error_does_not():
    filter_ = ScanFilter(config(target__clip=1.0))
    filter_.pose(0, Pose(105.0, 3.0, 0.0, 0.0))
    filter_.scan(0, room_scan(Pose(5.0, 3.0, 0.0, 0.0)))
    (sample,) = filter_.learn()
    assert sample.error.tolist() == [-100.0]
    assert sample.loss == 1.0


def test_scan_without_a_pose_is_estimated_and_not_learned():
    filter_ = ScanFilter(config())
    for stamp, _, seen in drive(20):
        assert filter_.scan(stamp, seen) is not None
        assert not filter_.learn()
    assert filter_.learner.samples_ == 0


def test_motion_is_learned_from_consecutive_pairs_only():
    filter_ = ScanFilter(config(MOTION))
    learned = []
    for i, (stamp, pose, seen) in enumerate(drive(20)):
        if i not in (5, 6, 12):
            filter_.pose(stamp, pose)
        assert (filter_.scan(stamp, seen) is None) == (i == 0)
        learned += [sample.stamp // TENTH for sample in filter_.learn()]
    assert learned == [1, 2, 3, 4, 8, 9, 10, 11, 14, 15, 16, 17, 18, 19]


def test_motion_is_broken_by_a_pose_that_jumps_and_goes_on_after_it():
    filter_ = ScanFilter(config(MOTION, pose__max_jump=1.0))
    learned = []
    for i, (stamp, pose, seen) in enumerate(drive(30)):
        moved = pose._replace(x=pose.x + 50.0) if 10 <= i < 20 else pose
        filter_.pose(stamp, moved)
        filter_.scan(stamp, seen)
        learned += filter_.learn()
    assert [sample.stamp // TENTH for sample in learned] == [*range(1, 10), *range(11, 20),
                                                             *range(21, 30)]  # fmt: skip
    assert np.abs([sample.error for sample in learned]).max() < 1.0
    assert filter_.pairing.pose_jumps == 2


def test_motion_is_broken_by_a_jump_between_the_poses_around_a_scan():
    filter_ = ScanFilter(config(MOTION, pairing__max_gap=1.0, pose__max_jump=1.0))
    samples, learned = drive(31), []
    for i, (stamp, pose, _) in enumerate(samples[:-1]):
        filter_.pose(stamp, pose._replace(y=pose.y + 7.0) if i >= 15 else pose)
        filter_.scan(stamp + TENTH // 2, samples[i + 1][2])
        learned += filter_.learn()
    # The scan at 14.5 has no pose, and so there are no motions that begin or end there.
    assert [sample.stamp // TENTH for sample in learned] == [*range(1, 14), *range(16, 29)]
    assert np.abs([sample.error for sample in learned]).max() < 1.0


def test_without_a_limit_a_jump_is_learned_as_a_motion():
    filter_ = ScanFilter(config(MOTION))
    samples = drive(20)
    stamp, pose, seen = samples[10]
    samples[10] = stamp, pose._replace(x=500.0), seen
    _, learned = run(filter_, samples)
    assert len(learned) == 19
    assert np.abs([sample.error for sample in learned]).max() > 400.0


@pytest.mark.parametrize('kind', ['axis', 'pose'])
def test_a_place_is_learned_where_the_pose_has_jumped_to(kind):
    filter_ = ScanFilter(config(SETTINGS[kind], pose__max_jump=0.01))
    _, learned = run(filter_, drive(30))
    assert len(learned) == 30


def test_largest_jump_and_mounting_change_between_two_samples():
    filter_ = ScanFilter(config(MOTION))
    run(filter_, drive(10))
    filter_.reconfigure(config(MOTION, pose__max_jump=0.01, mounting__yaw=1.5))
    assert filter_.mounting.yaw == 1.5
    _, learned = run(filter_, drive(10, start=10))
    assert not learned


def test_mounting_is_that_of_the_configuration():
    mounted = {'mounting__x': 0.3, 'mounting__y': -0.2, 'mounting__yaw': 0.9}
    filter_ = ScanFilter(config(mounting__upside_down=True, features__sectors=60, **mounted))
    plain = ScanFilter(config(features__sectors=60))
    pose = Pose(4.0, 2.5, 0.0, 0.2)
    seen = room_scan(pose, 3600, Mounting(0.3, -0.2, 0.9, True))
    expected = plain.features(room_scan(pose, 3600))
    assert filter_.features(seen) == pytest.approx(expected, abs=0.05)
    assert plain.features(seen) != pytest.approx(expected, abs=0.05)


def test_alternating_beam_counts_are_learned_like_one():
    errors = []
    for counts in ((721, 721), (720, 721)):
        filter_ = ScanFilter(config(features__type='beams'))
        samples = [
            (stamp, pose, room_scan(pose, counts[i % 2]))
            for i, (stamp, pose, _) in enumerate(wander(400))
        ]
        _, learned = run(filter_, samples)
        errors.append(np.mean([abs(sample.error[0]) for sample in learned[-100:]]))
    assert errors[1] == pytest.approx(errors[0], rel=0.05)


def test_motion_knows_the_time_that_went_by_up_to_a_limit():
    def elapsed(gap):
        filter_ = ScanFilter(config(MOTION, features__max_elapsed=3.0))
        samples = drive(2)
        filter_.scan(0, samples[0][2])
        filter_.scan(gap, samples[1][2])
        for stamp, (_, pose, _) in zip((0, gap), samples):
            filter_.pose(stamp, pose)
        filter_.learn()
        return filter_.learner.dictionary_[0, -1]

    assert elapsed(SECOND // 4) == 0.25
    assert elapsed(100 * SECOND) == 3.0


def test_learning_off_freezes_what_was_learned_and_goes_on_estimating():
    filter_, other = ScanFilter(config()), ScanFilter(config())
    run(filter_, drive(100))
    run(other, drive(100))
    before = state(filter_)
    filter_.learning = False
    estimates, learned = run(filter_, drive(100, start=100))
    assert state(filter_) == before
    assert len(estimates) == len(learned) == 100
    for (_, _, seen), estimate in zip(drive(100, start=100), estimates):
        assert estimate.mean.tolist() == other.scan(estimate.stamp, seen).mean.tolist()
    filter_.learning = True
    run(filter_, drive(1, start=200))
    assert filter_.learner.samples_ == 101


# -- covariance ---------------------------------------------------------------------------------


def test_covariance_shrinks_as_the_filter_learns():
    filter_ = ScanFilter(config())
    estimates, _ = run(filter_, wander(1500))
    variances = [float(estimates[i].covariance[0, 0]) for i in (0, 10, 100, 1499)]
    assert variances == sorted(variances, reverse=True)
    assert variances[-1] < 0.8


# -- order and time -----------------------------------------------------------------------------


@pytest.mark.parametrize('kind', TARGETS)
@settings(max_examples=15, deadline=None)
@given(order=st.permutations(['scan'] * 25 + ['pose'] * 25))
def test_any_interleaving_learns_the_same_weights_bit_for_bit(kind, order):
    filter_, reference = ScanFilter(config(SETTINGS[kind])), ScanFilter(config(SETTINGS[kind]))
    samples = drive(25)
    run(reference, samples)
    scans, poses = iter(samples), iter(samples)
    for event in order:
        if event == 'scan':
            stamp, _, seen = next(scans)
            filter_.scan(stamp, seen)
        else:
            stamp, pose, _ = next(poses)
            filter_.pose(stamp, pose)
        filter_.learn()
    assert state(filter_) == state(reference)
    assert filter_.learner.weights_.tolist() == reference.learner.weights_.tolist()


@pytest.mark.parametrize('first', ['pose', 'scan'])
@pytest.mark.parametrize('kind', TARGETS)
def test_every_pass_of_a_looped_bag_is_learned_alike(kind, first):
    filter_ = ScanFilter(config(SETTINGS[kind]))
    samples = drive(120, start=50)
    for _ in range(3):
        estimates, learned = run(filter_, samples, first)
        assert [estimate is None for estimate in estimates] == (
            [kind == 'motion'] + [False] * 119
        ), 'no motion across the jump'
        assert len(learned) == (119 if kind == 'motion' else 120)
    assert filter_.pairing.jumps == 2
    assert filter_.learner.samples_ == 3 * len(learned)


@pytest.mark.parametrize('first', ['pose', 'scan'])
def test_no_motion_is_learned_across_a_jump(first):
    filter_ = ScanFilter(config(MOTION, pairing__max_gap=100.0))
    looped = drive(12, start=100) + drive(12)
    _, learned = run(filter_, looped, first)
    assert [sample.stamp // TENTH for sample in learned] == [*range(101, 112), *range(1, 12)]
    assert (filter_.learner.dictionary_[:, -1] > 0.0).all(), 'time never runs backwards'


@pytest.mark.parametrize('kind', TARGETS)
def test_one_absurd_stamp_costs_little(kind):
    filter_ = ScanFilter(config(SETTINGS[kind]))
    samples = drive(60)
    _, pose, seen = samples[30]
    samples[30] = (int(4.29e9) * SECOND, pose, seen)
    _, learned = run(filter_, samples)
    assert len(learned) >= 56
    assert np.isfinite([sample.error for sample in learned]).all()


# -- inputs that cannot be used -----------------------------------------------------------------


@pytest.mark.parametrize('kind', TARGETS)
@pytest.mark.parametrize(
    ('stamp', 'seen', 'reason'),
    [
        (None, scan([]), 'empty scan'),
        (None, scan([1.0]), 'only one beam'),
        (None, scan([math.nan] * 10), 'no valid beam'),
        (None, scan([0.0] * 10), 'no valid beam'),
        (None, scan([0.0] * 10, 0.0, 0.0, 0.0, 0.0), 'bad angle_increment'),
        (None, scan([1.0] * 10, angle_increment=math.inf), 'bad angle_increment'),
        (None, scan([1.0] * 10, 0.0, -0.1, angle_max=0.9), 'angle_increment of the wrong sign'),
        (None, scan([1.0] * 10, range_min=9.0, range_max=9.0), 'range_max not above range_min'),
        (None, scan([1.0] * 10, angle_increment=1.0), 'beams over more than a turn'),
        (None, scan([1.0] * 10, math.nan), 'non-finite angle_min'),
        (None, scan([1.0] * 10, range_max=0.0), 'range_max not above range_min'),
        (None, Reading(1.0, 0.0, 2.0), 'Reading where features.type is sectors'),
        (39 * TENTH, scan([1.0] * 10), 'duplicate stamp'),
        (39 * TENTH - 1, scan([1.0] * 10), 'late'),
    ],
)
def test_scan_that_cannot_be_used_changes_nothing(kind, stamp, seen, reason):
    filter_, other = ScanFilter(config(SETTINGS[kind])), ScanFilter(config(SETTINGS[kind]))
    run(filter_, drive(40))
    run(other, drive(40))
    with pytest.raises(Unusable) as caught:
        filter_.scan(40 * TENTH if stamp is None else stamp, seen)
    assert caught.value.reason == reason
    rest = drive(10, start=40)
    for mine, others in zip(run(filter_, rest)[0], run(other, rest)[0], strict=True):
        assert mine.mean.tolist() == others.mean.tolist()
        assert mine.covariance.tolist() == others.covariance.tolist()
    assert state(filter_) == state(other)


def test_scan_where_a_range_is_wanted_is_refused():
    filter_ = ScanFilter(config(features__type='range'))
    with pytest.raises(Unusable, match=r'^Scan where features\.type is range$'):
        filter_.scan(0, scan([1.0]))


def test_pose_out_of_order_is_refused():
    filter_ = ScanFilter(config())
    filter_.pose(5, Pose(0, 0, 0, 0))
    with pytest.raises(Unusable, match='duplicate stamp'):
        filter_.pose(5, Pose(0, 0, 0, 0))


# -- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', TARGETS)
@pytest.mark.parametrize('way', ['load', 'restore'])
def test_saved_filter_goes_on_bit_for_bit(tmp_path, kind, way):
    path = tmp_path / 'model.npz'
    first = ScanFilter(config(SETTINGS[kind]))
    run(first, drive(80, start=100))
    first.save(path)
    if way == 'load':
        second = ScanFilter.load(path)
    else:
        second = ScanFilter(config(SETTINGS[kind]))
        run(second, drive(30, start=200, seed=1))
        second.restore(path)
    assert second.config == first.config
    assert state(second) == state(first)
    later = drive(60)  # before the others: both begin with a scan that has none before it
    for mine, others in zip(run(first, later)[0], run(second, later)[0], strict=True):
        assert (mine is None) == (others is None)
        if mine is not None:
            assert mine.mean.tolist() == others.mean.tolist()
            assert mine.covariance.tolist() == others.covariance.tolist()
    assert state(second) == state(first)


def test_filter_that_has_learned_nothing_is_saved_and_loaded(tmp_path):
    ScanFilter(config()).save(tmp_path / 'model.npz')
    loaded = ScanFilter.load(tmp_path / 'model.npz')
    fresh = ScanFilter(config())
    run(loaded, drive(30))
    run(fresh, drive(30))
    assert state(loaded) == state(fresh)


@pytest.mark.parametrize(
    ('name', 'value', 'message'),
    [
        ('features.sectors', 24, 'features.sectors is 12 there and 24 here'),
        ('features.far', 20.0, 'features.far is 15.0 there and 20.0 here'),
        ('target.type', 'pose', 'target.type is axis there and pose here'),
        ('learner.bandwidth', 1.0, 'learner.bandwidth is 3.5 there and 1.0 here'),
        ('learner.mode', 'penalty', 'learner.mode is default there and penalty here'),
        ('learner.constrained', False, 'learner.constrained is True there and False here'),
    ],
)
def test_model_learned_under_other_parameters_is_refused(tmp_path, name, value, message):
    path = tmp_path / 'model.npz'
    run(saved := ScanFilter(config()), drive(30))
    saved.save(path)
    different = from_flat(FilterConfig, {**AXIS, name: value})
    filter_, other = ScanFilter(different), ScanFilter(different)
    run(filter_, drive(20))
    run(other, drive(20))
    with pytest.raises(ModelFileError, match=message):
        filter_.restore(path)
    assert filter_.config == different
    rest = drive(10, start=20)
    for mine, others in zip(run(filter_, rest)[0], run(other, rest)[0], strict=True):
        assert mine.mean.tolist() == others.mean.tolist()
        assert mine.covariance.tolist() == others.covariance.tolist()
    assert state(filter_) == state(other)


def test_refusal_names_every_parameter_that_differs(tmp_path):
    ScanFilter(config()).save(tmp_path / 'model.npz')
    other = ScanFilter(config(features__sectors=7, target__axis='y'))
    with pytest.raises(ModelFileError, match=r'learned otherwise: .*sectors.*; target\.axis'):
        other.restore(tmp_path / 'model.npz')


def test_run_time_parameters_in_force_stay_when_a_model_is_restored(tmp_path):
    path = tmp_path / 'model.npz'
    run(saved := ScanFilter(config(learner__step_size=0.3, learner__tolerance=0.5)), drive(30))
    saved.save(path)
    filter_ = ScanFilter(config(learner__step_size=0.05, learner__tolerance=2.0))
    filter_.restore(path)
    assert filter_.learner.step_size == 0.05
    assert filter_.learner.constraint.tolerance == 2.0
    assert filter_.learner.samples_ == 30
    assert filter_.learner.weights_.tolist() == saved.learner.weights_.tolist()


def damaged(path):
    path.write_bytes(path.read_bytes()[:100])


def encrypted(path):
    content = bytearray(path.read_bytes())
    content[content.index(b'PK\x01\x02') + 8] |= 1
    path.write_bytes(content)


def with_a_torn_array(path):
    torn = b"{'descr': '<f8', 'shape': ("
    with zipfile.ZipFile(path, 'w') as file:
        file.writestr('header.npy', b'\x93NUMPY\x01\x00' + struct.pack('<H', len(torn)) + torn)


def plain_array(path):
    with path.open('wb') as file:
        np.save(file, np.zeros(3))


def with_a_list_as_header(path):
    np.savez(path, header=np.array('[1]'))


def with_a_list_as_settings(path):
    model_file.write(path, FORMAT, {'config': [1], 'learner': {}}, {})


def foreign(path):
    model_file.write(path, 'something.Else', {}, {})


def without_settings(path):
    model_file.write(path, FORMAT, {}, {})


def with_unknown_setting(path):
    model_file.write(path, FORMAT, {'config': {'features.colour': 1}, 'learner': {}}, {})


def with_other_pairs(path):
    header, arrays = model_file.read(path, FORMAT)
    del header['kind'], header['version']
    model_file.write(path, FORMAT, header, {**arrays, 'recent': np.zeros((7, 7))})


def absent(path):
    path.unlink()


@pytest.mark.parametrize(
    ('spoil', 'message'),
    [
        (damaged, 'no model file or is damaged'),
        (encrypted, 'no model file or is damaged .*encrypted'),
        (with_a_torn_array, 'no model file or is damaged'),
        (plain_array, 'no model file or is damaged'),
        (with_a_list_as_header, 'no model file or is damaged .*its header is no JSON object'),
        (with_a_list_as_settings, 'does not fit this version'),
        (foreign, r'holds a something\.Else'),
        (absent, 'does not exist'),
        (without_settings, r"does not fit this version \('config'\)"),
        (with_unknown_setting, r'does not fit this version \(features\.colour is not a parameter'),
        (with_other_pairs, 'does not fit this version'),
    ],
)
def test_model_file_that_cannot_be_read_is_refused_and_nothing_changes(tmp_path, spoil, message):
    path = tmp_path / 'model.npz'
    run(filter_ := ScanFilter(config()), drive(20))
    filter_.save(path)
    run(filter_, drive(10, start=20))
    spoil(path)
    before = filter_.to_parts()
    with pytest.raises(ModelFileError, match=message):
        filter_.restore(path)
    same_parts(filter_.to_parts(), before)


def test_model_of_a_node_is_a_model_of_the_filter_alone(tmp_path):
    path = tmp_path / 'model.npz'
    node_config = config(cls=FilterNodeConfig, frame_id='map', model__path=str(path))
    run(of_node := ScanFilter(node_config), drive(30))
    of_node.save(path)
    assert flatten(ScanFilter.load(path).config) == flatten(config())
    alone = ScanFilter(config())
    alone.restore(path)
    loading = {'model__path': 'm.npz', 'model__load_at_start': 'always'}
    again = ScanFilter(config(cls=FilterNodeConfig, **loading))
    again.restore(path)
    assert state(alone) == state(again) == state(of_node)
    assert again.config.model.load_at_start == 'always'


# -- changes while running ----------------------------------------------------------------------


def test_run_time_parameters_change_between_two_samples():
    filter_, other = ScanFilter(config()), ScanFilter(config())
    run(filter_, drive(50))
    run(other, drive(50))
    changed = config(
        learner__regularization=0.1, learner__tolerance=0.7, learner__significance=0.5
    )
    filter_.reconfigure(changed)
    assert state(filter_)[1] == state(other)[1], 'nothing learned is lost'
    assert filter_.learner.regularization == 0.1
    assert filter_.learner.constraint.tolerance == 0.7
    assert filter_.learner.constraint.significance == 0.5
    run(filter_, drive(50, start=50))
    run(other, drive(50, start=50))
    assert filter_.learner.weights_.tolist() != other.learner.weights_.tolist()
    assert filter_.cvar() == filter_.losses.cvar(0.5)
    filter_.reset()
    assert filter_.learner.regularization == 0.1


@pytest.mark.parametrize(
    ('name', 'value'),
    [('target.axis', 'y'), ('features.sectors', 24), ('learner.bandwidth', 1.0)],
)
def test_other_parameters_do_not_change_while_running(name, value):
    run(filter_ := ScanFilter(config()), drive(20))
    before = state(filter_)
    changed = from_flat(FilterConfig, {**AXIS, name: value, 'learner.step_size': 0.01})
    with pytest.raises(ConfigurationError, match=f'cannot change while running: {name} is'):
        filter_.reconfigure(changed)
    assert filter_.config == config()
    assert state(filter_) == before


def test_unconstrained_filter_is_reconfigured_too_and_knows_its_cvar():
    filter_ = ScanFilter(config(learner__constrained=False))
    assert math.isnan(filter_.cvar())
    run(filter_, drive(30))
    filter_.reconfigure(config(learner__constrained=False, learner__step_size=0.01))
    assert filter_.learner.step_size == 0.01
    assert filter_.learner.constraint is None
    assert filter_.cvar() == filter_.losses.cvar(0.9)


@pytest.mark.parametrize(
    ('algorithm', 'some'),
    [
        ('primal_dual', {'step_size', 'tolerance', 'significance', 'parsimony'}),
        ('subquantile', {'corruption', 'regularization', 'novelty'}),
    ],
)
def test_every_run_time_parameter_reaches_the_learner(algorithm, some):
    defaults = config(learner__algorithm=algorithm)
    reaching = defaults.learner.runtime_values()
    assert some <= set(reaching)
    values = {name: 0.5 * value for name, value in reaching.items()}
    filter_ = ScanFilter(defaults)
    filter_.reconfigure(attrs.evolve(defaults, learner=attrs.evolve(defaults.learner, **values)))
    for name, value in values.items():
        owner = filter_.learner
        if name in ('significance', 'tolerance'):
            owner = filter_.learner.constraint
        assert getattr(owner, name) == value, name


def test_reset_forgets_everything_that_was_learned():
    filter_, fresh = ScanFilter(config()), ScanFilter(config())
    run(filter_, drive(50))
    filter_.reset()
    later = drive(50, start=50)
    for mine, others in zip(run(filter_, later)[0], run(fresh, later)[0], strict=True):
        assert mine.mean.tolist() == others.mean.tolist()
        assert mine.covariance.tolist() == others.covariance.tolist()
    assert state(filter_) == state(fresh)


@pytest.mark.parametrize('kind', TARGETS)
@pytest.mark.parametrize('features', ['sectors', 'range'])
def test_warming_up_leaves_no_trace(kind, features):
    warm = ScanFilter(config(SETTINGS[kind], features__type=features))
    cold = ScanFilter(config(SETTINGS[kind], features__type=features))
    warm.warm_up()
    assert state(warm) == state(cold)
    if features == 'sectors':
        run(warm, drive(20))
        run(cold, drive(20))
        assert state(warm) == state(cold)


@pytest.mark.parametrize('features', ['sectors', 'beams'])
@pytest.mark.parametrize('mounting', [{'yaw': 3.0}, {'upside_down': True}, {'x': 900.0}])
def test_warming_up_works_with_any_bearings_and_mounting(features, mounting):
    mounted = {f'mounting.{name}': value for name, value in mounting.items()}
    ahead = {'features.bearing_min': 0.5, 'features.bearing_max': 1.5, 'features.far': 1e-3}
    filter_ = ScanFilter(config({**AXIS, **mounted, **ahead, 'features.type': features}))
    filter_.warm_up()
    assert filter_.learner.samples_ == 0


RANGE = {
    'features.type': 'range', 'target.type': 'axis', 'learner.bandwidth': 0.5,
    'features.scaling': 'fixed', 'target.scaling': 'fixed',
}  # fmt: skip


def test_a_frozen_filter_goes_on_measuring_its_errors():
    filter_ = ScanFilter(config({**RANGE, 'learner.loss_window': 10}))
    for i in range(60):
        filter_.pose(i, Pose(0.0, 0.0, 0.0, 0.0))
        filter_.scan(i, Reading(1.0, 0.0, 2.0))
        filter_.learn()
    filter_.learning = False
    assert filter_.cvar() < 1e-3
    for i in range(60, 80):
        filter_.pose(i, Pose(1.0, 0.0, 0.0, 0.0))
        filter_.scan(i, Reading(1.0, 0.0, 2.0))
        filter_.learn()
    assert filter_.cvar() == pytest.approx(1.0, abs=0.1)
    assert filter_.learner.samples_ == 60


def test_divergence_of_one_pair_does_not_lose_the_others():
    wild = {'learner.mode': 'paper', 'learner.step_size': 900.0, 'learner.parsimony': 0.0}
    filter_ = ScanFilter(config({**RANGE, **wild}))
    diverged = 0
    for i in range(300):
        filter_.pose(i, Pose(1.0, 0.0, 0.0, 0.0))
        filter_.scan(i, Reading(1.0, 0.0, 2.0))
        try:
            filter_.learn()
        except Unusable as error:
            assert error.reason == 'learner diverged'
            diverged += 1
    assert diverged > 100
    assert np.isfinite(filter_.learner.weights_).all()
