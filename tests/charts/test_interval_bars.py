from __future__ import annotations

from drawings import drawn
from hypothesis import example, given
from hypothesis import strategies as st

from cashmere.charts.interval_bars import IntervalBar, interval_bars


def chart(bars, **options):
    return interval_bars(bars, title="t", description="d", x_label="x", **options)


def test_bars_go_from_the_origin_and_have_whiskers():
    bars = [
        IntervalBar(label="age", values=[2.0], interval=(1.0, 3.0)),
        IntervalBar(label="noise", values=[-1.0], interval=(-1.5, 0.5)),
    ]
    root = drawn(chart(bars))
    assert [root[0].text, root[1].text] == ["t", "d"]
    first, second = root.iter("rect")
    assert float(first.get("width")) > 1.9 * float(second.get("width"))
    assert float(second.get("x")) + float(second.get("width")) <= float(first.get("x")) + 0.2
    assert first[0].text == "age: 2"
    assert sum(e.get("class") == "whisker" for e in root) == 2
    assert [e.text for e in root if e.get("class") == "name"] == ["age", "noise"]


def test_several_values_are_dots_with_a_legend():
    svg = chart([IntervalBar(label="red", values=[0.2, 0.5, 0.3])], series=["a", "b", "c"])
    root = drawn(svg)
    assert [e.text for e in root if e.get("class") == "legend"] == ["a", "b", "c"]
    assert len(list(root.iter("circle"))) == 6
    assert "origin" not in svg


def test_long_names_leave_room_for_the_bars():
    root = drawn(chart([IntervalBar(label="a very long name of a level " * 3, values=[1.0])], width=420))
    (bar,) = root.iter("rect")
    assert float(bar.get("width")) > 180


@example(values=[5e-324], labels_above=False)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=5), st.booleans())
def test_any_values_can_be_drawn(values, labels_above):
    svg = chart([IntervalBar(label=str(v), values=[v], interval=(v, v)) for v in values], labels_above=labels_above)
    drawn(svg)
