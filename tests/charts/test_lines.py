from __future__ import annotations

import re

import pytest
from drawings import drawn
from hypothesis import given
from hypothesis import strategies as st

from cashmere.charts.lines import Series, line_chart
from cashmere.charts.marks import MAX_DOTS

anything = st.floats(allow_nan=True, allow_infinity=True)


def chart(*series: Series, **options):
    return line_chart(series, title="t", x_label="x", y_label="y", **options)


def test_step_curve_holds_its_value_until_the_next_point():
    svg = chart(Series(label="a", x=[1, 2, 3], y=[3.0, 3.0, 1.0]))
    path = next(e for e in drawn(svg) if e.get("class") == "step s1" and "V" in e.get("d"))
    assert path.get("d").count("H") == 2  # to the change, and on to the edge
    assert path.get("d").count("V") == 1


def test_line_joins_its_points():
    svg = chart(Series(label="a", x=[1, 2, 3], y=[3.0, 1.0, 2.0], kind="line"))
    path = next(e for e in drawn(svg) if "L" in e.get("d", ""))
    assert path.get("d").count("L") == 2


@given(st.lists(st.tuples(anything, anything), max_size=30), st.booleans())
def test_any_numbers_give_a_sound_drawing(points, log_x):
    x, y = [p[0] for p in points], [p[1] for p in points]
    svg = chart(
        Series(label="dots", x=x, y=y, kind="dots"),
        Series(label="steps", x=sorted(v for v in x if v == v), y=[1.0] * sum(v == v for v in x)),
        Series(label="joined", x=x, y=y, kind="line"),
        Series(label="line", y=y[:1], kind="constant"),
        Series(label="marks", x=x, kind="rug"),
        log_x=log_x,
    )
    drawn(svg)


def test_values_out_of_range_are_drawn_pale_on_the_edge():
    svg = chart(Series(label="a", x=[1, 2], y=[0.5, 1e30], kind="dots"), y_range=(0.0, 1.0))
    assert sum("edge" in e.get("class", "") for e in drawn(svg)) == 1


def test_constant_out_of_range_is_named_and_not_drawn():
    dots = Series(label="a", x=[1, 2], y=[0.2, 0.9], kind="dots")
    svg = chart(dots, Series(label="constant", y=[99.0], kind="constant"), y_range=(0.0, 1.0))
    assert "off the chart" in svg
    assert "<line" not in svg


def test_steps_out_of_range_are_not_drawn_along_the_edge():
    steps = Series(label="a", x=[1, 2, 3, 4], y=[9.0, 8.0, 0.5, 0.4])
    svg = chart(steps, y_range=(0.0, 1.0))
    path = next(e.get("d") for e in drawn(svg) if e.get("class") == "step s1" and "V" in e.get("d"))
    assert path.count("H") == 2  # from 3 to 4, and on to the end of the axis


def test_legend_says_what_is_off_the_chart():
    svg = chart(
        Series(label="dots", x=[1, 2, 3], y=[0.2, 7.0, 8.0], kind="dots"),
        Series(label="steps", x=[1, 2], y=[9.0, 0.5]),
        Series(label="beyond", x=[1, 2], y=[9.0, 8.0], css="s2"),
        Series(label="inside", x=[1, 2], y=[0.1, 0.5]),
        y_range=(0.0, 1.0),
    )
    legend = [e.text for e in drawn(svg) if e.get("class") == "legend"]
    assert legend == ["dots – 2 off the chart", "steps – partly off the chart", "beyond – off the chart", "inside"]


def test_log_axis_omits_values_that_are_not_positive():
    svg = chart(Series(label="a", x=[0, 1, 10, 100], y=[1, 2, 3, 4], kind="dots"), log_x=True)
    assert svg.count("<circle") == 3 + 1  # and the legend


@pytest.mark.parametrize(("whole", "labels"), [(True, ["0", "1", "2"]), (False, ["0.0", "0.2"])])
def test_axis_that_counts_has_whole_numbers(whole, labels):
    drawn = chart(Series(label="a", x=[0, 1, 2], y=[0.5, 0.4, 0.3]), whole_x=whole)
    ticks = re.findall(r'class="tick"[^>]*text-anchor="middle"[^>]*>([^<]*)<', drawn)
    assert ticks[: len(labels)] == labels and (not whole or ticks == labels)


def test_number_of_dots_is_bounded():
    n = 50_000
    svg = chart(Series(label="a", x=range(n), y=[float(i % 7) for i in range(n)], kind="dots"))
    assert svg.count("<circle") <= MAX_DOTS + 1


def test_nothing_to_draw_is_said():
    assert "Nothing to draw" in chart()


def test_texts_are_escaped_and_cleaned():
    name = '"><script>\x1b[31m\u202e'
    svg = line_chart(
        [Series(label=name, x=[1, 2], y=[1, 2], css=name)], title=name, x_label=name, y_label=name, css=name
    )
    root = drawn(svg)
    assert not any(e.tag == "script" for e in root.iter())
    assert "\x1b" not in svg
    assert "\u202e" not in svg


def test_every_drawing_has_a_title():
    assert "<title>t</title>" in chart(Series(label="a", x=[1, 2], y=[1, 2]))
