# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The figures show what they should, whatever was evaluated, and nothing overlaps."""

import itertools

import pytest
from made_recordings import config, drive, pose_message, range_message, written
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from kernel_constrained.offline.arguments import Options
from kernel_constrained.offline.evaluate import evaluate
from kernel_constrained.offline.evaluation_figure import draw_comparison
from kernel_constrained.offline.evaluation_report import Compared

RANGES = {'input__type': 'range', 'features__type': 'range', 'target__type': 'axis'}


@pytest.fixture
def drawn(monkeypatch):
    """Collect the figures that are saved."""
    figures, save = [], Figure.savefig

    def saved(figure, path, **options):
        figures.append(figure)
        return save(figure, path, **options)

    monkeypatch.setattr(Figure, 'savefig', saved)
    return figures


@pytest.fixture(scope='module')
def room(tmp_path_factory):
    return written(tmp_path_factory.mktemp('room') / 'room', drive(200))


def words(figure):
    return {text.get_text() for text in figure.findobj(Text)}


def overlapping(figure):
    """Return the texts beside the axes that are cut off, and pairs that lie upon each other."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    boxes = [(text.get_text(), text.get_window_extent(renderer).padded(-1.0))
             for text in beside(figure) if text.get_text()]  # fmt: skip
    page = figure.bbox.padded(1.0)
    cut = [name for name, box in boxes
           if not (page.contains(box.x0, box.y0) and page.contains(box.x1, box.y1))]  # fmt: skip
    pairs = itertools.combinations(boxes, 2)
    return cut + [(one[0], other[0]) for one, other in pairs if one[1].overlaps(other[1])]


def beside(figure):
    """Yield titles, labels of axes and of their ticks, and legends."""
    yield from figure.texts
    for axes in figure.axes:
        legend = axes.get_legend()
        yield from legend.get_texts() if legend else ()
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            yield axis.label
            for tick in axis.get_major_ticks():
                if low <= tick.get_loc() <= high and tick.label1.get_visible():
                    yield tick.label1


def panel(figure, label):
    (axes,) = [axes for axes in figure.axes if axes.get_ylabel() == label]
    return axes


def test_figure_of_a_motion_with_dropouts_and_a_split(drawn, room, tmp_path):
    options = Options(split=0.8, dropouts=((6.0, 8.0), (10.0, 12.0)))
    result = evaluate(room, config(), options, tmp_path)
    (figure,) = drawn
    assert not overlapping(figure)
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ['position error [m]', 'heading error [rad]', 'violation', 'dual variable',
                      'model order', 'y [m]', 'estimates']  # fmt: skip
    assert {'median', '90 %', 'largest', 'no trusted pose', 'learning ends', 'worst 20',
            'trusted poses', 'motions alone', 'room: 199 estimates scored, 117 learned'
            } <= words(figure)  # fmt: skip
    assert {f'{one["error"]:.3g} m' for one in result['drift']['dropouts']} <= words(figure)
    errors = panel(figure, 'position error [m]')
    assert len([p for p in errors.patches if p.get_width() == pytest.approx(2.0)]) == 2
    assert errors.get_xlim() == pytest.approx((0.1, 19.9))
    assert f'their mean (CVaR) {result["errors"]["all"]["loss"]["cvar"]:.3g}' in words(figure)
    assert f'tolerance {config().learner.tolerance:g}' in words(figure)


def test_the_distribution_counts_every_loss_once(drawn, room, tmp_path):
    evaluate(room, config(), output=tmp_path)
    every, tail = [p for p in panel(drawn[0], 'estimates').patches if hasattr(p, 'get_data')]
    assert every.get_data().values.sum() == 199
    assert tail.get_data().values.sum() == 20


@pytest.mark.parametrize('tolerance', [3.0, 1e3])
def test_the_tolerance_is_seen_beside_the_losses(tolerance, drawn, room, tmp_path):
    evaluate(room, config(learner__tolerance=tolerance), output=tmp_path)
    low, high = panel(drawn[0], 'estimates').get_xlim()
    assert low < tolerance < high
    assert not overlapping(drawn[0])


@pytest.mark.parametrize(
    ('settings', 'labels'),
    [
        ({'target__type': 'pose'}, ['position error [m]', 'heading error [rad]', 'violation']),
        ({'target__type': 'axis', 'target__axis': 'yaw'}, ['error of yaw [rad]', 'violation']),
        ({'target__type': 'axis'}, ['error of x [m]', 'violation']),
        ({'learner__constrained': False}, ['position error [m]', 'heading error [rad]',
                                           'model order']),
    ],
)  # fmt: skip
def test_figures_of_other_targets(settings, labels, drawn, room, tmp_path):
    evaluate(room, config(**settings), Options(dropouts=((6.0, 8.0),)), tmp_path)
    (figure,) = drawn
    assert [axes.get_ylabel() for axes in figure.axes][: len(labels)] == labels
    assert not overlapping(figure)


def test_figures_of_ranges_of_few_scans_and_of_a_filter_that_learned_nothing(drawn, tmp_path):
    ranges = [m for i in range(40) for m in (pose_message(i), range_message(i))]
    evaluate(written(tmp_path / 'ranges', ranges), config(**RANGES), output=tmp_path / 'a')
    evaluate(written(tmp_path / 'few', drive(2)), config(), output=tmp_path / 'b')
    nothing = Options(dropouts=((0.0, 9.0),))
    evaluate(written(tmp_path / 'none', drive(9)), config(), nothing, tmp_path / 'c')
    assert len(drawn) == 3
    assert [overlapping(figure) for figure in drawn] == [[], [], []]


def test_figure_of_a_comparison(drawn, room, tmp_path):
    rows = [
        Compared('room', name, evaluate(room, config(**settings)))
        for name, settings in (
            ('few', {'features__sectors': 3}),
            ('many', {}),
            ('place', {'target__type': 'pose'}),
        )
    ]
    draw_comparison(rows, tmp_path / 'comparison.png')
    (figure,) = drawn
    assert not overlapping(figure)
    assert [axes.get_xlabel() for axes in figure.axes] == [
        f'RMSE of {name}' for name in
        ('forward [m]', 'left [m]', 'yaw [rad]', 'x [m]', 'y [m]')
    ]  # fmt: skip
    forward = [bar.get_width() for bar in figure.axes[0].patches]
    expected = [row.result['errors']['late']['forward']['rmse'] for row in rows[:2]]
    assert forward[:2] == expected
