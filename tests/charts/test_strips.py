from __future__ import annotations

import pytest
from drawings import drawn

from cashmere.charts.strips import Strip, strip_chart


@pytest.mark.parametrize("above", [True, False])
def test_strips_mark_the_best_and_the_median(above):
    svg = strip_chart(
        [Strip(label="<b>", values=[1.0, 2.0, 9.0], marked=1.0)], title="t", x_label="x", labels_above=above
    )
    classes = [e.get("class") for e in drawn(svg)]
    assert classes.count("dot s0") == 3
    assert classes.count("dot best") == classes.count("median") == 1
    assert "<b>" not in svg


def test_nothing_to_draw_is_said():
    assert "Nothing to draw" in strip_chart([], title="t", x_label="x")


def test_every_drawing_has_a_title():
    assert "<title>t</title>" in strip_chart([Strip(label="a", values=[1.0])], title="t", x_label="x")
