# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The classifier of places: what it learns, when it is unsure, what it refuses."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from made_scans import scan, SECOND

from kernel_constrained import model_file
from kernel_constrained.configuration import ConfigurationError, flatten, from_flat
from kernel_constrained.model_file import ModelFileError
from kernel_constrained.perception.classifier import FORMAT, lead, NAMED, PlaceClassifier
from kernel_constrained.perception.classifier_config import ClassifierConfig, ClassifierNodeConfig
from kernel_constrained.perception.classifier_intake import ClassifierIntake
from kernel_constrained.perception.filter import ScanFilter
from kernel_constrained.perception.scan import Reading
from kernel_constrained.perception.unusable import Unusable

SETTINGS = {'features.sectors': 8, 'learner.bandwidth': 1.0, 'learner.step_size': 0.2}

TENTH = SECOND // 10

# Ranges ahead, left, behind and right that make a place what it is.
KINDS = {'corridor': (9, 1, 9, 1), 'room': (4, 4, 4, 4), 'door': (9, 0.5, 1.5, 0.5)}


def classifier(**more):
    given = {**SETTINGS, **{name.replace('__', '.'): value for name, value in more.items()}}
    return PlaceClassifier(from_flat(ClassifierConfig, given))


def view(kind, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    ranges = np.repeat(np.roll(np.repeat(KINDS[kind], 2), 1), 5)
    return scan(ranges * (1.0 + noise * rng.standard_normal(len(ranges))))


def walk(places, kinds, begin=0, labels=True):
    """Send a scan a second, each with its label; return what is said and what is learned."""
    said, learned = [], []
    for i, kind in enumerate(kinds, begin + 1):
        if labels:
            places.label(kind)
        said.append(places.scan(i * SECOND, view(kind, i)))
        learned.append(places.learn())
    return said, learned


def names(count):
    return [list(KINDS)[i % 3] for i in range(count)]


def test_labels_that_appear_one_after_the_other_are_all_learned():
    places = classifier()
    kinds = ['corridor'] * 30 + ['room'] * 30 + ['door'] * 30 + names(210)
    walk(places, kinds)
    assert places.labels == {'corridor': 100, 'room': 100, 'door': 100}
    places.label('')
    said, _ = walk(places, names(30), 400, labels=False)
    assert [one.label for one in said] == names(30)
    assert min(one.margin for one in said) > 0.5
    assert places.samples == 300
    assert list(said[0].scores) == list(KINDS)


def test_nothing_is_said_before_a_label_is_known_and_then_only_that():
    places = classifier()
    first = places.scan(SECOND, view('room'))
    assert (first.label, first.margin, first.scores, first.said) == ('', 0.0, {}, 'unsure')
    assert places.learn() is None
    said, _ = walk(places, ['room'] * 60, 1)
    assert said[0].said == 'unsure', 'predicted before it was learned'
    assert (said[-1].label, said[-1].said, list(said[-1].scores)) == ('room', 'room', ['room'])


def test_the_margin_is_the_lead_over_the_next_and_decides_what_is_unsure():
    places = classifier()
    walk(places, names(90))
    places.label('')
    seen = [view(kind, 7) for kind in names(3)] + [scan(np.full(40, 29.0))]
    for margin in (0.0, 0.7, 1e6):
        given = {**flatten(places.config), 'margin': margin}
        places.reconfigure(from_flat(ClassifierConfig, given))
        for i, one in enumerate(seen):
            said = places.scan((100 + 10 * int(margin) + i) * SECOND, one)
            best, second = sorted(said.scores.values())[:-3:-1]
            assert said.margin == best - second
            assert said.scores[said.label] == best
            assert said.unsure == (said.margin < margin)
    assert 0.0 <= said.margin < 0.7, 'what is like nothing that was learned has no lead'


def test_the_loss_is_the_hinge_of_the_scores_from_before_the_scan_was_learned():
    places = classifier()
    said, learned = walk(places, names(40))
    for one, after in list(zip(said, learned))[5:]:
        others = [score for label, score in one.scores.items() if label != after.label]
        assert after.loss == pytest.approx(max(1.0 + max(others) - one.scores[after.label], 0.0))
    assert learned[0].loss == 1.0, 'all scores are zero'
    assert places.losses.count == 40
    assert places.accuracy() == np.mean([one.loss < 1.0 for one in learned])


def test_a_label_never_seen_before_costs_as_much_as_the_best_score_says():
    places = classifier()
    walk(places, ['corridor', 'room'] * 30)
    places.label('door')
    said = places.scan(100 * SECOND, view('corridor', 3))
    assert places.learn().loss == 1.0 + max(said.scores.values())


def test_lead_counts_a_class_to_come_as_zero():
    scores = np.array([0.5, -0.25])
    assert [lead(scores, number) for number in range(3)] == [0.75, -0.75, -0.5]


def test_the_constraint_holds_the_tail_where_places_look_alike():
    """Places that look alike with labels by chance: only small scores keep the tail short."""
    rng = np.random.default_rng(0)
    kinds = rng.choice(['corridor', 'room'], size=600)

    def tail(constrained):
        places = classifier(learner__constrained=constrained, learner__tolerance=1.1,
                            learner__loss_window=300)  # fmt: skip
        for i, kind in enumerate(kinds, 1):
            places.label(kind)
            places.scan(i * SECOND, view('door', i))
            places.learn()
        return places.cvar()

    assert tail(constrained=True) < 1.2 < 1.3 < tail(constrained=False)


def test_a_label_holds_until_the_next_an_empty_one_or_too_long():
    places = classifier(label__hold=2.0)
    places.label('room')
    learned = []
    for second in (10, 11, 12, 13):
        places.scan(second * SECOND, view('room', second))
        learned.append(places.learn() is not None)
    assert learned == [True, True, True, False], 'from the first scan that it held for'
    assert places.label_in_force == ''
    places.label('room')
    places.label(' ')
    places.scan(14 * SECOND, view('room'))
    assert places.learn() is None
    assert places.samples == 3


def test_a_scan_is_learned_once():
    places = classifier()
    walk(places, ['room'])
    assert places.learn() is None


def test_frozen_it_goes_on_classifying_and_counts_its_losses():
    places = classifier()
    walk(places, names(30))
    places.learning = False
    before = places.learner.to_parts()[1]['weights'].copy()
    said, _ = walk(places, ['corridor', 'room'], 30)
    places.label('cellar')
    places.scan(40 * SECOND, view('room'))
    unknown = places.learn()
    assert np.array_equal(places.learner.to_parts()[1]['weights'], before)
    assert [one.label for one in said] == ['corridor', 'room']
    assert (places.samples, places.losses.count) == (30, 33)
    assert unknown.loss > 1.0
    assert 'cellar' not in places.labels


# -- what it refuses ----------------------------------------------------------------------------


def refusal(call, *arguments):
    with pytest.raises(Unusable) as caught:
        call(*arguments)
    return caught.value


def test_labels_that_are_not_among_the_given_ones_are_refused_by_name_and_end_the_one_before():
    places = classifier(labels=('corridor', 'room'))
    places.label('room')
    error = refusal(places.label, 'kitchen')
    assert error.reason == "unknown label 'kitchen'"
    assert 'parameter labels has corridor, room and no other' in str(error)
    places.scan(SECOND, view('room'))
    assert places.learn() is None, 'it is no room any more, whatever it is'
    assert places.labels == {'corridor': 0, 'room': 0}


def test_names_of_unknown_labels_are_counted_up_to_a_number():
    places = classifier(labels=('corridor', 'room'))
    reasons = {refusal(places.label, f'place {i}').reason for i in range(100)}
    assert len(reasons) == NAMED + 1
    assert 'unknown label' in reasons


def test_more_labels_than_allowed_are_refused():
    places = classifier(max_labels=2)
    walk(places, ['corridor', 'room'])
    assert refusal(places.label, 'door').reason == 'too many labels'
    places.label('room')


@pytest.mark.parametrize('text', ['unsure', 'x' * 101, 'a\nb', 'a\0b'])
def test_what_is_no_label_is_refused(text):
    places = classifier()
    assert refusal(places.label, text).reason == 'no label'
    assert places.label_in_force == ''


@pytest.mark.parametrize(
    ('stamp', 'reason'), [(30 * SECOND, 'duplicate stamp'), (30 * SECOND - 1, 'late')]
)
def test_duplicate_and_late_scans_change_nothing(stamp, reason):
    places = classifier()
    walk(places, names(30))
    before = places.to_parts()
    assert refusal(places.scan, stamp, view('room')).reason == reason
    assert places.learn() is None
    assert places.to_parts()[0] == before[0]
    assert places.jumps == 0


def test_a_scan_without_a_valid_beam_changes_nothing():
    places = classifier()
    assert refusal(places.scan, SECOND, scan(np.full(40, np.nan))).reason == 'no valid beam'
    places.scan(SECOND, view('room'))


def test_a_single_range_is_no_scan():
    reading = Reading(1.0, 0.1, 2.0)
    assert 'where a scan is expected' in str(refusal(classifier().scan, SECOND, reading))


def test_a_bag_that_begins_again_is_learned_again_without_the_label_of_its_end():
    places = classifier()
    walk(places, names(30))
    places.scan(SECOND, view('room'))
    assert places.learn() is None, 'the label was of the end'
    assert places.jumps == 1
    walk(places, names(30), 1)
    places.label('room')  # of the next pass already: no scan had it yet
    places.scan(SECOND, view('room'))
    assert places.learn().label == 'room'


@pytest.mark.parametrize('hold', [math.inf, 100.0])
@pytest.mark.parametrize('count', [1, 3])
@pytest.mark.parametrize('wrong', [10**9 * SECOND, 70 * SECOND, 20 * SECOND])
def test_a_few_wrong_stamps_do_not_end_a_label(wrong, count, hold):
    places = classifier(label__hold=hold)
    walk(places, names(30), 30)
    places.label('room')
    walk(places, ['room'], 60, labels=False)
    for i in range(count):
        places.scan(wrong + i * TENTH, view('room'))
        places.learn()
    walk(places, ['room'] * 20, 61 + count, labels=False)
    assert places.label_in_force == 'room'
    _, learned = walk(places, ['room'] * 30, 81 + count, labels=False)
    assert [one.label for one in learned] == ['room'] * 30
    assert places.jumps == 1
    places.scan(SECOND, view('room'))
    assert places.label_in_force == '', 'a bag that begins again'


def test_a_label_given_among_wrong_stamps_is_the_one_that_holds():
    places = classifier()
    walk(places, names(30))
    places.scan(10**9 * SECOND, view('door'))
    places.label('door')
    assert places.learn().label == 'door'
    _, learned = walk(places, ['door'] * 20, 30, labels=False)
    assert [one.label for one in learned] == ['door'] * 20


@pytest.mark.parametrize(
    ('labels', 'message'),
    [
        (('room',), 'at least two different ones'),
        (('room', 'room'), 'at least two different ones'),
        (('room', 'unsure'), 'labels cannot hold this: unsure is what is said'),
        (('room', ' hall'), 'has spaces around it'),
    ],
)
def test_labels_that_cannot_be_are_a_configuration_error(labels, message):
    with pytest.raises(ConfigurationError, match=message):
        from_flat(ClassifierConfig, {'labels': labels})


def test_only_run_time_parameters_change():
    places = classifier()
    walk(places, names(30))
    changed = {**flatten(places.config), 'margin': 0.5, 'learner.tolerance': 3.0}
    places.reconfigure(from_flat(ClassifierConfig, changed))
    assert places.learner.constraint.tolerance == 3.0
    with pytest.raises(ConfigurationError, match=r'features\.sectors is 9 there and 8 here'):
        places.reconfigure(from_flat(ClassifierConfig, {**changed, 'features.sectors': 9}))


# -- files --------------------------------------------------------------------------------------


def test_a_loaded_classifier_goes_on_bit_for_bit(tmp_path):
    places = classifier()
    walk(places, names(50))
    places.save(tmp_path / 'places.npz')
    other = classifier()
    other.restore(tmp_path / 'places.npz')
    assert other.labels == places.labels
    said, learned = walk(places, names(20), 50)
    said_other, learned_other = walk(other, names(20), 50)
    assert said == said_other
    assert learned == learned_other
    assert places.cvar() == other.cvar()


def test_one_label_alone_is_saved_and_the_second_is_learned_after_loading(tmp_path):
    places = classifier()
    walk(places, ['room'] * 20)
    places.save(tmp_path / 'places.npz')
    loaded = PlaceClassifier.load(tmp_path / 'places.npz')
    said, _ = walk(loaded, ['corridor', 'room'] * 30, 20)
    assert said[-1].label == 'room'
    assert list(loaded.labels) == ['room', 'corridor']


def test_a_file_that_does_not_fit_is_refused_and_says_why(tmp_path):
    path = tmp_path / 'places.npz'
    places = classifier()
    walk(places, names(10))
    places.save(path)
    with pytest.raises(ModelFileError, match=r'features\.sectors is 8 there and 6 here'):
        classifier(features__sectors=6).restore(path)
    with pytest.raises(ModelFileError, match=r'expected a kernel_constrained\.ScanFilter'):
        ScanFilter.load(path)
    header, arrays = model_file.read(path, FORMAT)
    for labels, message in (
        ({'room': 1}, '1 labels, 3 classes'), ({}, '0 labels, 3 classes'), ([], 'does not fit'),
    ):  # fmt: skip
        model_file.write(path, FORMAT, {**header, 'labels': labels}, arrays)
        with pytest.raises(ModelFileError, match=message):
            PlaceClassifier.load(path)
    settings = {**header['config'], 'features.sectors': 9}
    model_file.write(path, FORMAT, {**header, 'config': settings}, arrays)
    with pytest.raises(ModelFileError, match='atoms have 8 inputs, not 9'):
        PlaceClassifier.load(path)


def test_loading_ends_the_label_that_was_given(tmp_path):
    path = tmp_path / 'places.npz'
    places = classifier(max_labels=3)
    walk(places, names(10))
    places.save(path)
    places = classifier(max_labels=3)
    places.label('kitchen')  # none too many here, but beside those of the file
    places.restore(path)
    assert places.label_in_force == ''
    walk(places, ['room'], 10, labels=False)
    assert list(places.labels) == list(KINDS)


def test_reset_forgets_all_but_the_labels_that_are_given():
    places = classifier(labels=('room', 'corridor', 'door'))
    walk(places, names(30))
    places.reset()
    assert places.labels == dict.fromkeys(('room', 'corridor', 'door'), 0)
    said = places.scan(100 * SECOND, view('room'))
    assert (said.margin, said.unsure, set(said.scores.values())) == (0.0, True, {0.0})


# -- messages -----------------------------------------------------------------------------------


def message(seconds, frame='laser', **changes):
    one = view('room')
    stamp = SimpleNamespace(sec=seconds, nanosec=0)
    fields = {
        'header': SimpleNamespace(stamp=stamp, frame_id=frame), 'ranges': one.ranges,
        'angle_min': one.angle_min, 'angle_increment': one.angle_increment,
        'angle_max': math.nan, 'range_min': one.range_min, 'range_max': one.range_max,
    }  # fmt: skip
    return SimpleNamespace(**{**fields, **changes})


def intake():
    config = from_flat(ClassifierNodeConfig, SETTINGS)
    return ClassifierIntake(PlaceClassifier(config), config)


def test_messages_reach_the_classifier_and_the_first_frame_is_kept():
    way = intake()
    way.label(SimpleNamespace(data='room'))
    said = way.scan(message(3))
    assert (said.stamp, way.classifier.learn().label) == (3 * SECOND, 'room')
    assert refusal(way.scan, message(4, frame='other')).reason == 'wrong frame'
    assert refusal(way.scan, message(0)).reason == 'zero stamp'
    assert refusal(way.scan, message(5, ranges=[])).reason == 'empty scan'
    assert refusal(way.label, SimpleNamespace(data='unsure')).reason == 'no label'


def test_scores_that_are_no_numbers_are_noted(monkeypatch):
    way = intake()
    way.label(SimpleNamespace(data='room'))
    way.scan(message(3))
    way.classifier.learn()
    monkeypatch.setattr(way.classifier, '_scores', lambda _: np.array([np.nan, 0.0]))
    assert refusal(way.scan, message(4)).reason == 'estimate not finite'
    assert way.not_finite
