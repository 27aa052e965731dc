from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from drawings import drawn
from hypothesis import given
from hypothesis import strategies as st

from cashmere.charts.heat_map import heat_map

anything = st.floats(allow_nan=True, allow_infinity=True)


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


def test_nearly_equal_cells_look_alike():
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
    svg = heat_map([[0, 1], [1, 0]], names=[name] * 2, keys=[name] * 2, title=name, description=name, legend=name)
    assert not any(e.tag == "script" for e in drawn(svg).iter())
    assert "\u202e" not in svg
