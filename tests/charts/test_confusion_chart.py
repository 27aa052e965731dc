from __future__ import annotations

import pytest
from drawings import drawn
from hypothesis import given
from hypothesis import strategies as st

from cashmere.charts.confusion import confusion_chart
from cashmere.charts.lines import Series, line_chart


def chart(counts, labels=None, **options):
    return confusion_chart(
        counts, labels=labels or [f"class {i}" for i in range(len(counts))], title="t", description="d", **options
    )


def test_cells_hold_shares_and_numbers_of_their_row():
    root = drawn(chart([[30, 10], [0, 1000]]))
    assert [e.text for e in root if e.get("class") == "share"] == ["75 %", "25 %", "100 %"]
    assert [e.text for e in root if e.get("class") == "value"] == ["30", "10", "1,000"]
    assert sum(e.get("class") == "track" for e in root) == 1
    tips = [e[0].text for e in root if e.get("class") == "cell"]
    assert tips[1] == "10 rows of class class 0 taken for class 1, 25 %"
    assert [root[0].text, root[1].text] == ["t", "d"]


@pytest.mark.parametrize("n", [2, 5, 10])
def test_everything_stays_inside_the_drawing(n):
    long = [f"{i} a name that is too long for any chart" for i in range(n)]
    root = drawn(chart([[1] * n] * n, long))
    _, _, width, height = map(float, root.get("viewBox").split())
    for box in root.iter("rect"):
        assert float(box.get("x")) + float(box.get("width")) <= width
        assert float(box.get("y")) + float(box.get("height")) <= height


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.floats(0, 1e9), min_size=n, max_size=n), min_size=n, max_size=n)
    )
)
def test_any_matrix_can_be_drawn(counts):
    if any(map(sum, counts)):
        drawn(chart(counts))
    else:
        assert "Nothing to draw" in chart(counts)


def test_segments_join_every_two_points():
    series = [Series(label="s", x=[0, 0, 1, 1], y=[0, 1, 2, 3], kind="segments")]
    root = drawn(line_chart(series, title="t", x_label="x", y_label="y"))
    path = next(e.get("d") for e in root if e.get("class") == "step s1" and e.get("d").count("M") == 2)
    assert path.count("L") == 2
