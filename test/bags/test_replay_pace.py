# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""When replayed messages are due, which is next after a seek, and what a replay can be told."""

import math
from itertools import islice

import attrs
import pytest

from kernel_constrained.bags.playback import Pace, Playback, Refused
from kernel_constrained.bags.recording import Message, Recording, RecordingError, Topic
from kernel_constrained.bags.replay import ReplayConfig
from kernel_constrained.configuration import ConfigurationError

SECOND = 10**9


class Made(Recording):
    """A message every second on ``/a``, 100 s after the epoch; every other one on ``/b`` too."""

    def __init__(self, count=10, missing=0):
        super().__init__('made')
        self.stamps = [(100 + i) * SECOND for i in range(count)]
        self.missing = missing
        self.topics = {'/a': Topic('t', count), '/b': Topic('t', (count + 1) // 2)}
        if count:
            self.start, self.end = self.stamps[0], self.stamps[-1]

    def _read(self, topics, begin, finish):
        for i, stamp in enumerate(self.stamps[self.missing :], self.missing):
            if begin <= stamp and (finish is None or stamp < finish):
                if '/a' in topics:
                    yield Message('/a', 't', stamp, b'')
                if '/b' in topics and i % 2 == 0:
                    yield Message('/b', 't', stamp, b'')


def playback(recording=None, topics=('/a', '/b'), **config):
    return Playback(ReplayConfig(**config), recording or Made(), topics)


def play(it, count=None, now=0.0):
    """Publish up to ``count`` messages; return (topic, second of the recording) of each."""
    played = []
    while (message := it.peek()) and (count is None or len(played) < count):
        it.sent(now)
        played.append((message.topic, (message.stamp - it.recording.start) // SECOND))
    return played


# -- pace -----------------------------------------------------------------------------------


def test_at_a_rate_messages_are_due_as_they_were_recorded():
    pace = Pace(2.0)
    assert pace.delay(100 * SECOND, 5.0) == 0.0
    assert pace.delay(104 * SECOND, 5.5) == pytest.approx(1.5)
    assert pace.delay(104 * SECOND, 7.5) < 0.0


def test_a_loop_begins_recorded_time_again():
    pace = Pace(1.0)
    pace.delay(100 * SECOND, 0.0)
    pace.delay(109 * SECOND, 9.0)
    assert pace.delay(100 * SECOND, 9.1) == 0.0
    assert pace.delay(101 * SECOND, 9.1) == pytest.approx(1.0)


def test_in_pause_nothing_is_due_and_afterwards_the_rest_of_the_wait_is_left():
    pace = Pace(1.0)
    pace.delay(100 * SECOND, 0.0)
    pace.sent(100 * SECOND, 0.0)
    pace.delay(110 * SECOND, 0.0)
    pace.pause(4.0)
    assert pace.delay(110 * SECOND, 50.0) == math.inf
    assert pace.position(50.0) == 104 * SECOND
    pace.resume(60.0)
    assert pace.delay(110 * SECOND, 60.0) == pytest.approx(6.0)


def test_recorded_time_goes_on_between_messages_but_never_past_the_next_nor_back():
    pace = Pace(2.0)
    pace.delay(100 * SECOND, 0.0)
    pace.sent(100 * SECOND, 0.0)
    pace.delay(103 * SECOND, 0.0)
    assert pace.position(1.0) == 102 * SECOND
    assert pace.position(9.0) == 103 * SECOND
    pace.sent(103 * SECOND, 1.5 - 1e-9)
    assert pace.position(1.5 - 1e-9) == 103 * SECOND


def test_the_rate_changes_from_where_it_is():
    pace = Pace(1.0)
    pace.delay(100 * SECOND, 0.0)
    pace.delay(110 * SECOND, 0.0)
    pace.set_rate(4.0, 2.0)
    assert pace.delay(110 * SECOND, 2.0) == pytest.approx(2.0)
    pace.set_rate(0.0, 2.0)
    assert pace.delay(110 * SECOND, 2.0) == 0.0


def test_at_the_highest_rate_recorded_time_is_a_stamp():
    highest = attrs.fields(ReplayConfig).rate.metadata['high']
    pace = Pace(rate=highest)
    pace.delay(100 * SECOND, 50.0)
    pace.sent(100 * SECOND, 50.0)
    pace.delay(10**9 * SECOND, 50.0)
    assert pace.position(51.0) == pytest.approx((100 + highest) * SECOND)


@pytest.mark.parametrize('name', ['rate', 'start_offset', 'clock_frequency'])
def test_what_time_is_reckoned_with_is_finite(name):
    with pytest.raises(ConfigurationError, match=f'{name} must be a number from'):
        ReplayConfig(**{name: math.inf})


def test_from_rate_zero_recorded_time_goes_on_at_the_newest_message():
    pace = Pace(0.0)
    for second in (100, 101, 102):
        pace.delay(second * SECOND, 7.0)
        pace.sent(second * SECOND, 7.0)
    pace.set_rate(1.0, 7.0)
    assert pace.delay(105 * SECOND, 7.0) == pytest.approx(3.0)


@pytest.mark.parametrize('rate', [0.0, 1000.0])
def test_the_ceiling_holds_at_every_rate_and_after_a_stall(rate):
    """What a stalled process has missed does not come as a flood."""
    pace, now, sent = Pace(rate, ceiling=100.0), 0.0, []
    for i in range(300):
        if i == 100:
            now += 10.0
        while pace.delay(100 * SECOND + i, now) > 0.0:
            now += pace.delay(100 * SECOND + i, now)
        pace.sent(100 * SECOND + i, now)
        sent.append(now)
    assert sent[99] == pytest.approx(0.99, abs=0.01)
    assert sent[299] - sent[100] == pytest.approx(1.99, abs=0.01)


def test_a_caller_who_is_a_little_late_each_time_reaches_the_ceiling():
    pace, now = Pace(0.0, ceiling=1000.0), 0.0
    for i in range(1000):
        delay = pace.delay(i, now)
        now += delay + 0.0005 if delay > 0.0 else 0.0
        pace.sent(i, now)
    assert now == pytest.approx(1.0, abs=0.01)


# -- which messages -------------------------------------------------------------------------


def test_a_window_is_played_as_often_as_asked_for():
    it = playback(topics=('/a',), loop=True, start_offset=3.0, duration=2.0)
    assert play(it, 5) == [('/a', 3), ('/a', 4)] * 2 + [('/a', 3)]
    assert not it.whole


@pytest.mark.parametrize('loop', [False, True])
def test_a_recording_without_messages_ends(loop):
    assert play(playback(Made(0), loop=loop)) == []


def test_a_loop_over_a_window_without_messages_ends():
    assert play(playback(loop=True, start_offset=3.2, duration=0.5)) == []


def test_seeking_goes_to_the_first_message_from_there_on_forward_and_backward():
    it = playback(topics=('/a',))
    play(it, 2)
    it.seek(6.5)
    assert play(it, 1) == [('/a', 7)]
    it.seek(2.0)
    assert it.pace.position(0.0) == 102 * SECOND
    assert play(it) == [('/a', i) for i in range(2, 10)]
    assert it.ended
    it.seek(9.0)
    assert play(it) == [('/a', 9)]


def test_seeking_in_a_loop_plays_to_the_end_of_the_window_and_then_all_of_it():
    it = playback(topics=('/a',), loop=True, start_offset=2.0, duration=4.0)
    it.seek(5.0)
    assert play(it, 6) == [('/a', i) for i in (5, 2, 3, 4, 5, 2)]
    it.seek(0.0)
    assert play(it, 2) == [('/a', 2), ('/a', 3)]


def test_seeking_in_a_loop_to_where_nothing_is_left_goes_on_with_the_window():
    it = playback(topics=('/b',), loop=True)
    it.seek(8.5)
    assert play(it, 2) == [('/b', 0), ('/b', 2)]


@pytest.mark.parametrize(
    ('seconds', 'config', 'reason'),
    [
        (9.1, {}, '9.1 s lies beyond the end of the recording at 9 s'),
        (5.0, {'start_offset': 2.0, 'duration': 3.0}, 'beyond the end of what is played at 5 s'),
    ],
)
def test_seeking_beyond_the_end_is_refused_and_changes_nothing(seconds, config, reason):
    it = playback(topics=('/a',), **config)
    before = play(it, 1)
    with pytest.raises(Refused, match=reason):
        it.seek(seconds)
    assert play(it, 1) == [('/a', before[0][1] + 1)]


def test_time_that_passes_between_a_seek_and_playing_does_not_count():
    it = playback(topics=('/a',))
    it.pace.delay(it.peek().stamp, 0.0)
    it.seek(4.0)
    assert it.pace.delay(it.peek().stamp, 50.0) == 0.0
    it.sent(50.0)
    assert it.pace.delay(it.peek().stamp, 50.0) == pytest.approx(1.0)


def test_stepping_in_pause_moves_recorded_time_to_the_message():
    it = playback(topics=('/a',), start_paused=True)
    it.pace.delay(it.peek().stamp, 0.0)
    play(it, 3, now=50.0)
    assert it.seconds(60.0) == 2.0
    it.pace.resume(70.0)
    assert it.pace.delay(it.peek().stamp, 70.0) == pytest.approx(1.0)


# -- what became of them --------------------------------------------------------------------


def test_all_is_well_when_what_is_declared_was_read_and_published():
    it = playback()
    play(it)
    assert list(it.summary()) == [
        (True, '/a: 10 messages declared, 10 read, 10 published'),
        (True, '/b: 5 messages declared, 5 read, 5 published'),
    ]


@pytest.mark.parametrize(
    ('made', 'topics', 'text'),
    [
        (Made(missing=2), ('/a', '/b'), '/a: 10 messages declared, 8 read, 8 published'),
        (Made(), ('/b',), '/a: 10 messages declared, 0 read, 0 published'),
    ],
)
def test_all_is_not_well_when_messages_are_missing_or_a_topic_could_not_be_played(
    made, topics, text
):
    it = playback(made, topics)
    play(it)
    assert (False, text) in it.summary()


def test_a_part_is_not_held_against_what_is_declared():
    parts = [playback(start_offset=3.0), playback(duration=3.0), playback()]
    for it in parts[:2]:
        play(it)
    play(parts[2], 3)
    assert all(well for it in parts for well, _ in it.summary())


@pytest.mark.parametrize(('played', 'whole'), [(0, True), (1, False)])
def test_going_to_the_start_leaves_a_replay_whole_where_nothing_was_played(played, whole):
    it = playback()
    it.seek(4.0)
    assert not it.whole
    play(it, played)
    it.seek(0.0)
    assert it.whole is whole
    play(it)
    assert next(it.summary())[1].endswith(f'{10 + played} published')


# -- configuration --------------------------------------------------------------------------


def test_remap_names_topics_with_or_without_the_leading_slash():
    config = ReplayConfig(remap=['a:=front/scan', '/b:=/pose'])
    assert config.outputs(Made()) == {'/a': 'front/scan', '/b': '/pose'}


@pytest.mark.parametrize('entry', ['a', 'a:=', ':=b', 'a:=b:=c'])
def test_a_wrong_remap_entry_is_named(entry):
    with pytest.raises(ConfigurationError, match=f"remap must hold .* \\(got '{entry}'\\)"):
        ReplayConfig(remap=[entry])


def test_a_topic_cannot_have_two_names():
    with pytest.raises(ConfigurationError, match='remap gives /a two names: x and y'):
        ReplayConfig(remap=['a:=x', '/a:=y'])


@pytest.mark.parametrize('config', [{'topics': ['c']}, {'remap': ['c:=d']}])
def test_topics_that_the_recording_does_not_hold_are_named(config):
    with pytest.raises(RecordingError, match='made: no topic c; it holds /a, /b'):
        ReplayConfig(**config).outputs(Made())


def test_a_recorded_clock_is_left_out_beside_our_own_unless_it_has_another_name():
    recording = Made()
    recording.topics['/clock'] = Topic('t', 1)
    names = [
        list(islice(ReplayConfig(clock=clock, remap=remap).outputs(recording).values(), 2, None))
        for clock, remap in ((True, []), (False, []), (True, ['clock:=recorded_clock']))
    ]
    assert names == [[], ['/clock'], ['recorded_clock']]


def test_a_window_that_begins_beyond_the_end_is_refused():
    with pytest.raises(RecordingError, match='made: start_offset 20 s lies beyond its end at 9 s'):
        playback(start_offset=20.0)
