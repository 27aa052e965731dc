from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cashmere.charts.charts import (
    MAX_DOTS,
    Series,
    Strip,
    bar,
    heat_map,
    line_chart,
    log_ticks,
    nice_ticks,
    strip_chart,
    tick_labels,
)

finite = st.floats(allow_nan=False, allow_infinity=False)
anything = st.floats(allow_nan=True, allow_infinity=True)


def chart(*series: Series, **options):
    return line_chart(series, title="t", x_label="x", y_label="y", **options)


def drawn(svg: str) -> ET.Element:
    root = ET.fromstring(svg)
    for element in root.iter():
        for name in ("x", "y", "cx", "cy", "x1", "x2", "y1", "y2"):
            if name in element.attrib:
                assert math.isfinite(float(element.attrib[name])), element.attrib
    return root


@given(finite, finite)
@example(0.0, 5e-324)
def test_ticks_are_few_ascending_and_inside(a, b):
    low, high = min(a, b), max(a, b)
    ticks = nice_ticks(low, high)
    assert len(ticks) <= 12
    assert ticks == sorted(ticks)
    slack = 1e-6 * max(abs(low), abs(high), 1e-300)
    assert all(low - slack <= t <= high + slack for t in ticks)
    assert len(tick_labels(ticks)) == len(ticks)


def test_ticks_of_a_range_without_length_are_that_value():
    assert nice_ticks(3.0, 3.0) == [3.0]
    assert nice_ticks(float("nan"), 1.0) == []


def test_many_decades_get_few_log_ticks():
    assert len(log_ticks(1, 1e12)) <= 14
    assert log_ticks(0, 10) == []


def test_step_curve_holds_its_value_until_the_next_point():
    svg = chart(Series(label="a", x=[1, 2, 3], y=[3.0, 3.0, 1.0]))
    path = next(e for e in drawn(svg) if e.get("class") == "step s1" and "V" in e.get("d"))
    assert path.get("d").count("H") == 2  # to the change, and on to the edge
    assert path.get("d").count("V") == 1


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


def test_log_axis_leaves_out_what_is_not_positive():
    svg = chart(Series(label="a", x=[0, 1, 10, 100], y=[1, 2, 3, 4], kind="dots"), log_x=True)
    assert svg.count("<circle") == 3 + 1  # and the legend


def test_number_of_dots_is_bounded():
    n = 50_000
    svg = chart(Series(label="a", x=range(n), y=[float(i % 7) for i in range(n)], kind="dots"))
    assert svg.count("<circle") <= MAX_DOTS + 1


def test_nothing_to_draw_is_said():
    assert "Nothing to draw" in chart()
    assert "Nothing to draw" in strip_chart([], title="t", x_label="x")


@pytest.mark.parametrize("above", [True, False])
def test_strips_mark_the_best_and_the_median(above):
    svg = strip_chart(
        [Strip(label="<b>", values=[1.0, 2.0, 9.0], marked=1.0)], title="t", x_label="x", labels_above=above
    )
    classes = [e.get("class") for e in drawn(svg)]
    assert classes.count("dot s0") == 3
    assert classes.count("dot best") == classes.count("median") == 1
    assert "<b>" not in svg


def test_line_joins_its_points():
    svg = chart(Series(label="a", x=[1, 2, 3], y=[3.0, 1.0, 2.0], kind="line"))
    path = next(e for e in drawn(svg) if "L" in e.get("d", ""))
    assert path.get("d").count("L") == 2


def heat(matrix, **options):
    n = len(matrix)
    names = {"names": ["algorithm"] * n, "keys": [str(100 + i) for i in range(n)], **options}
    return heat_map(matrix, title="t", description="d", legend="l", **names)


def cells(svg: str) -> list[ET.Element]:
    return [e for e in drawn(svg) if e.get("class") == "cell"][:-12]  # the last twelve are the scale


def test_heat_map_writes_values_and_leaves_the_diagonal_blank():
    root = drawn(svg := heat([[0.0, 0.25, 0.5], [0.25, 0.0, 0.125], [0.5, 0.125, 0.0]]))
    assert [e.text for e in root if e.get("class") == "value"] == ["0.25", "0.50", "0.25", "0.12", "0.50", "0.12"]
    assert sum(e.get("class") == "track" for e in root) == 3
    shades = [float(e.get("fill-opacity")) for e in cells(svg)]
    assert max(shades) == shades[1] == 1
    assert min(shades) == shades[3]
    assert [e.text for e in root if e.get("class") == "name"] == ["algorithm 100", "algorithm 101", "algorithm 102"]
    assert [root[0].text, root[1].text] == ["t", "d"]


@pytest.mark.parametrize(("n", "width"), [(13, 860), (25, 860), (12, 300)])
def test_cells_without_room_for_a_text_have_a_title(n, width):
    matrix = [[abs(i - j) / n for j in range(n)] for i in range(n)]
    svg = heat(matrix, width=width)
    root = drawn(svg)
    assert not [e for e in root if e.get("class") == "value"]
    assert len(cells(svg)) == n * (n - 1)
    assert all(e[0].text for e in cells(svg))
    assert all(float(e.get("x")) + float(e.get("width")) <= width for e in cells(svg))


def test_nearly_equal_cells_look_so():
    shades = [float(e.get("fill-opacity")) for e in cells(heat([[0, 0.5, 0.501], [0.5, 0, 0.5], [0.501, 0.5, 0]]))]
    assert min(shades) > 0.9


@given(st.lists(st.lists(anything, min_size=4, max_size=4), min_size=4, max_size=4))
def test_any_matrix_gives_a_sound_heat_map(matrix):
    svg = heat(matrix)
    if svg.startswith("<svg"):
        assert all(0 <= float(e.get("fill-opacity")) <= 1 for e in cells(svg))
    else:
        assert "Nothing to draw" in svg


def test_heat_map_of_one_member_is_not_drawn():
    assert "Nothing to draw" in heat([[0.0]])
    assert "Nothing to draw" in heat([])


def test_texts_are_escaped_and_cleaned():
    name = '"><script>\x1b[31m\u202e'
    svg = line_chart(
        [Series(label=name, x=[1, 2], y=[1, 2], css=name)], title=name, x_label=name, y_label=name, css=name
    )
    root = drawn(svg)
    assert not any(e.tag == "script" for e in root.iter())
    assert "\x1b" not in svg
    assert "\u202e" not in svg
    svg = heat_map([[0, 1], [1, 0]], names=[name] * 2, keys=[name] * 2, title=name, description=name, legend=name)
    assert not any(e.tag == "script" for e in drawn(svg).iter())
    assert "\u202e" not in svg


def test_bar_length_is_kept_inside_the_cell():
    assert 'width="100" height="10"/></svg>' in bar(7.0, title="t")
    assert 'width="0"' in bar(float("nan"), title="t")


def test_every_drawing_has_a_title():
    assert "<title>t</title>" in chart(Series(label="a", x=[1, 2], y=[1, 2]))
    assert "<title>t</title>" in strip_chart([Strip(label="a", values=[1.0])], title="t", x_label="x")
