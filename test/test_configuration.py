# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Configuration: what is taken, what is refused and in which words, files and flat names."""

import math

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_constrained.configuration import (
    allowed,
    checked,
    ConfigurationError,
    fields,
    flat_names,
    flatten,
    from_flat,
    group,
    parameter,
    read_parameter_file,
    unknown_names,
)

INF, NAN = math.inf, math.nan


@attrs.frozen
class Wheel:
    """A group in a group."""

    radius: float = parameter(0.1, 'radius', unit='m', low=0.0, high=2.0, runtime=True)
    spokes: int = parameter(8, 'spokes', low=0)


@attrs.frozen
class Axle:
    """A group."""

    wheel: Wheel = group(Wheel)
    track: float = parameter(0.5, 'distance of the wheels', unit='m', high=3.0)


@attrs.frozen
class Cart:
    """A configuration of every type."""

    name: str = parameter('', 'name')
    drive: str = parameter('front', 'which axle drives', choices=('front', 'rear'))
    brakes: bool = parameter(True, 'whether it has brakes')
    gear: int = parameter(1, 'gear', low=-1, high=5)
    load: tuple[str, ...] = parameter((), 'what it carries')
    front: Axle = group(Axle)
    rear: Axle = group(Axle)
    speed: float = parameter(1.0, 'speed', unit='m/s')
    remark: object = attrs.field(default=None)  # no parameter


METADATA = {name: field.metadata for name, field in fields(Cart)}


# -- single values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('name', 'given_value', 'expected'),
    [
        ('speed', 2, 2.0),
        ('speed', '1e-3', 0.001),
        ('speed', '-2', -2.0),
        ('speed', -INF, -INF),
        ('speed', 'inf', INF),
        ('speed', np.float32(0.5), 0.5),
        ('front.track', 3, 3.0),
        ('front.track', -1e9, -1e9),
        ('front.wheel.radius', 0, 0.0),
        ('front.wheel.radius', 2.0, 2.0),
        ('gear', 3.0, 3),
        ('gear', '4', 4),
        ('gear', np.int64(-1), -1),
        ('front.wheel.spokes', 10**15, 10**15),
        ('brakes', False, False),
        ('name', '', ''),
        ('name', 'true', 'true'),
        ('drive', 'rear', 'rear'),
        ('load', [], ()),
        ('load', ['hay', 'straw'], ('hay', 'straw')),
        ('load', ('hay',), ('hay',)),
    ],
)
def test_value_is_taken_as_the_type_of_its_parameter(name, given_value, expected):
    result = checked(given_value, name, METADATA[name])
    assert result == expected
    assert type(result) is METADATA[name]['type']


NUMBER = 'a number'
RADIUS = 'a number from 0 to 2'
TRACK = 'a number of at most 3'
GEAR = 'an integer from -1 to 5'
SPOKES = 'an integer of at least 0'


@pytest.mark.parametrize(
    ('name', 'value', 'words'),
    [
        *[('speed', value, NUMBER) for value in (NAN, 'nan', True, None, [1.0], {}, 'fast', '')],
        *[('front.wheel.radius', v, RADIUS) for v in (-1e-9, 2.1, INF, NAN, '3', False, 10**400)],
        *[('front.track', value, TRACK) for value in (3.01, INF, NAN)],
        *[('gear', v, GEAR) for v in (-2, 6, 1.5, '1.5', True, NAN, INF, None, 'x', '1e9')],
        *[('front.wheel.spokes', value, SPOKES) for value in (-1, INF, '', 10**400)],
        *[('brakes', value, 'true or false') for value in (0, 1, 'true', None, 1.0)],
        *[('name', value, 'a string') for value in (1, None, True, ['a'])],
        *[('drive', value, 'one of front, rear') for value in ('', 'Front', 1, None)],
        *[('load', v, 'a list of strings') for v in ('hay', [1], ['a', None], None, {'a': 1})],
    ],
)
def test_value_that_is_not_allowed_is_refused_with_name_value_and_what_is(name, value, words):
    assert allowed(METADATA[name]) == words
    with pytest.raises(ConfigurationError) as caught:
        checked(value, name, METADATA[name])
    assert str(caught.value) == f'{name} must be {words} (got {value!r})'


def test_class_checks_what_it_is_given_and_converts_it():
    assert Cart(speed=2, gear='3', load=['hay']) == Cart(speed=2.0, gear=3, load=('hay',))
    with pytest.raises(ConfigurationError, match=r'^gear must be .* from -1 to 5 \(got 9\)$'):
        Cart(gear=9)
    with pytest.raises(ConfigurationError, match='radius must be'):
        attrs.evolve(Wheel(), radius=-1)


def test_attributes_of_a_class_that_can_change_are_checked_too():
    @attrs.define
    class Dial:
        value: float = parameter(1.0, 'value', low=0.0)

    dial = Dial()
    dial.value = '2e-1'
    assert dial.value == 0.2
    with pytest.raises(ConfigurationError, match='value must be a number of at least 0'):
        dial.value = -1
    assert dial.value == 0.2


@pytest.mark.parametrize('wrong', [{'low': 2.0}, {'high': 0.5}, {'choices': ('a',)}])
def test_default_that_is_not_allowed_is_noticed(wrong):
    @attrs.frozen
    class Broken:
        value: float = parameter(1.0, 'value', **wrong)

    with pytest.raises(ConfigurationError, match='value must be'):
        Broken()


# -- flat names ---------------------------------------------------------------------------------


def test_fields_are_listed_by_dotted_name_in_order():
    assert list(METADATA) == [
        'name', 'drive', 'brakes', 'gear', 'load', 'front.wheel.radius', 'front.wheel.spokes',
        'front.track', 'rear.wheel.radius', 'rear.wheel.spokes', 'rear.track', 'speed',
    ]  # fmt: skip
    assert list(flatten(Cart())) == list(METADATA)
    assert METADATA['rear.wheel.radius']['unit'] == 'm'
    assert METADATA['rear.wheel.radius']['runtime']


carts = st.fixed_dictionaries(
    {},
    optional={
        'name': st.text(),
        'drive': st.sampled_from(['front', 'rear']),
        'brakes': st.booleans(),
        'gear': st.integers(-1, 5),
        'load': st.lists(st.text()).map(tuple),
        'front.wheel.radius': st.floats(0, 2),
        'rear.wheel.spokes': st.integers(0, 2**53),
        'rear.track': st.floats(max_value=3.0),
        'speed': st.floats(allow_nan=False),
    },
)


@given(carts)
def test_flatten_and_from_flat_are_inverse(values):
    cart = from_flat(Cart, values)
    flat = flatten(cart)
    assert flat == {**flatten(Cart()), **values}
    assert from_flat(Cart, flat) == cart


@given(carts)
def test_nested_mappings_become_flat_names(values):
    tree = {}
    for name, value in values.items():
        *groups, last = name.split('.')
        place = tree
        for part in groups:
            place = place.setdefault(part, {})
        place[last] = value
    assert flat_names(tree) == values


def test_nothing_given_means_the_defaults():
    assert from_flat(Cart, {}) == Cart()


def test_all_that_is_wrong_is_said_at_once():
    wrong = {
        'gear': 9,
        'rear.wheel.radius': 'wide',
        'rear.track': NAN,
        'sped': 1.0,
        'front.wheel.raduis': 1.0,
        'drive': 'rear',
    }
    with pytest.raises(ConfigurationError) as caught:
        from_flat(Cart, wrong)
    assert sorted(str(caught.value).splitlines()) == [
        'front.wheel.raduis is not a parameter of Cart, did you mean front.wheel.radius?',
        'gear must be an integer from -1 to 5 (got 9)',
        'rear.track must be a number of at most 3 (got nan)',
        "rear.wheel.radius must be a number from 0 to 2 (got 'wide')",
        'sped is not a parameter of Cart, did you mean speed?',
    ]


@pytest.mark.parametrize('name', ['xyzzy', 'front', 'front.wheel', 'remark', 'wheel.radius.m'])
def test_name_that_is_no_parameter_is_refused(name):
    (line,) = unknown_names(Cart, {name: 1})
    assert line.startswith(f'{name} is not a parameter of Cart')
    with pytest.raises(ConfigurationError, match='is not a parameter of Cart'):
        from_flat(Cart, {name: 1})


def test_suggestion_is_made_only_where_there_is_a_close_name():
    assert unknown_names(Cart, {'xyzzy': 1}) == ['xyzzy is not a parameter of Cart']


def test_what_a_class_refuses_as_a_whole_is_one_of_the_problems():
    @attrs.frozen
    class Interval:
        low: float = parameter(0.0, 'low')
        high: float = parameter(1.0, 'high')

        def __attrs_post_init__(self):
            if self.high <= self.low:
                raise ConfigurationError('high must exceed low')

    @attrs.frozen
    class Outer:
        interval: Interval = group(Interval)
        count: int = parameter(1, 'count', low=0)

    with pytest.raises(ConfigurationError) as caught:
        from_flat(Outer, {'interval.low': 2, 'count': -1})
    assert str(caught.value).splitlines() == [
        'interval: high must exceed low',
        'count must be an integer of at least 0 (got -1)',
    ]


# -- parameter files ----------------------------------------------------------------------------


@pytest.fixture
def read(tmp_path):
    """Return a function that reads text as the parameter file of node ``cart``."""

    def read_text(text, node='cart'):
        path = tmp_path / 'parameters.yaml'
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_parameter_file(path, node)

    return read_text


@pytest.mark.parametrize('key', ['/**', 'cart', '/cart'])
def test_parameters_stand_under_the_node_or_under_all_nodes(read, key):
    text = f"""
{key}:
  ros__parameters:
    gear: 3
    front: {{wheel: {{radius: 1e-1}}, track: 1}}
    rear.wheel.radius: 0.3
    load: [hay, straw]
"""
    given_values = read(text)
    assert given_values == {
        'gear': 3, 'front.wheel.radius': '1e-1', 'front.track': 1, 'rear.wheel.radius': 0.3,
        'load': ['hay', 'straw'],
    }  # fmt: skip
    cart = from_flat(Cart, given_values)
    assert cart.front.wheel.radius == 0.1
    assert cart.load == ('hay', 'straw')


def test_entries_of_the_node_win_over_those_of_all(read):
    text = """
cart:
  ros__parameters: {gear: 3}
/**:
  ros__parameters: {gear: 2, speed: 4.0}
other:
  ros__parameters: {gear: 5, colour: red}
"""
    assert read(text) == {'gear': 3, 'speed': 4.0}
    assert read(text, 'other') == {'gear': 5, 'speed': 4.0, 'colour': 'red'}
    assert read(text, 'third') == {'gear': 2, 'speed': 4.0}


def test_parameters_of_ros_itself_are_left_out(read):
    text = """
/**:
  ros__parameters:
    gear: 2
    use_sim_time: true
    start_type_description_service: false
    qos_overrides:
      /scan: {subscription: {reliability: reliable}}
"""
    assert read(text) == {'gear': 2}


@pytest.mark.parametrize(
    ('pattern', 'fits'),
    [
        ('/**', True),
        ('/*/cart', True),
        ('/**/cart', True),
        ('/rob*/cart', True),
        ('/robot/**', True),
        ('/robot/cart', True),
        ('robot/cart', True),
        ('/robot:\n    cart', True),
        ('cart', False),
        ('/*', False),
        ('/other/cart', False),
        ('/robot/cart/wheel', False),
        ('/robot/car', False),
    ],
)
def test_key_of_a_parameter_file_may_be_a_pattern_for_the_full_name(read, pattern, fits):
    text = f'{pattern}:\n      ros__parameters: {{gear: 2}}\n'
    if fits:
        assert read(text, '/robot/cart') == {'gear': 2}
        return
    with pytest.raises(ConfigurationError, match='has no parameters for /robot/cart'):
        read(text, '/robot/cart')


@pytest.mark.parametrize('text', ['/**:\n  ros__parameters:\n', '/**: {ros__parameters: {}}'])
def test_empty_section_gives_nothing(read, text):
    assert read(text) == {}


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('cat:\n  ros__parameters: {gear: 1}\n', r'no parameters for cart: its keys are cat, exp'),
        ('gear: 1\nspeed: 2\n', r'its keys are gear, speed, expected `/\*\*` or `cart`'),
        ('cart: {gear: 1}\n', r'no parameters for cart: its keys are cart'),
        ('cart: 3\n', r'no parameters for cart: its keys are cart'),
        ('1: {ros__parameters: {}}\n', r'its keys are 1, expected'),
        ('', 'holds no parameters'),
        ('- gear\n', 'holds no parameters'),
        ('just words', 'holds no parameters'),
        ('cart: {ros__parameters: [gear]}\n', r"under /cart must be .* \(got \['gear'\]\)"),
        ('/**: {ros__parameters: 3}\n', r'ros__parameters under /\*\* must be .* \(got 3\)'),
        ('a: [1\n', 'is not YAML'),
        ('a: b: c\n', 'is not YAML'),
        (b'\x89PNG\r\n\x1a\n\x00\x00', 'is not YAML'),
        (b'a: \x00\n', 'is not YAML'),
    ],
)
def test_file_that_is_none_for_this_node_is_refused_by_name(read, text, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        read(text)
    assert 'parameters.yaml' in str(caught.value)


def test_absent_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError, match=r'absent\.yaml'):
        read_parameter_file(tmp_path / 'absent.yaml', 'cart')
