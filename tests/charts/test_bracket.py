from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from fake_runs import hostile_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.charts.bracket import MAX_ROWS, BracketRow, Cell, bracket_chart

cells = st.builds(
    Cell,
    loss=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    text=st.text(max_size=12),
    trials=st.integers(0, 10**6),
)


def contest(*names: str) -> list[BracketRow]:
    """Return a contest that the first sub-space wins; each of the others leaves a round before the previous one."""
    n = len(names)
    return [
        BracketRow(
            name=name,
            cells=[Cell(loss=0.1 * (k + 1), text=f"0.{9 - k}000", trials=5) for _ in range(n - k)],
            reason=f"best score 0.{k}" if k else None,
        )
        for k, name in enumerate(names)
    ]


def drawn(contenders, rounds, **options) -> tuple[ET.Element, list[str]]:
    svg = bracket_chart(contenders, rounds=rounds, title="a contest", description="a won", **options)
    root = ET.fromstring(svg)
    return root, [element.text or "" for element in root.iter("text")]


def crosses(root: ET.Element) -> list[ET.Element]:
    return [path for path in root.iter("path") if path.attrib["class"] == "rug" and path.find("title") is not None]


@pytest.mark.parametrize("names_above", [False, True])
def test_every_sub_space_has_a_bar_and_those_that_left_a_cross(names_above):
    root, texts = drawn(contest("svm | under", "tree", "knn"), ["0–4", "5", "6–30"], names_above=names_above)
    assert (root.find("title").text, root.find("desc").text) == ("a contest", "a won")
    assert [text for text in texts if text in ("svm | under", "tree", "knn")] == ["svm | under", "tree", "knn"]
    tips = [rectangle.find("title").text for rectangle in root.iter("rect") if rectangle.find("title") is not None]
    assert len(tips) == 3 + 2 + 1
    assert tips[0] == "svm | under, round 0–4: 0.9000, 5 trials"
    assert [path.find("title").text for path in crosses(root)] == ["left: best score 0.1", "left: best score 0.2"]
    assert {"0.9000", "5 trials", "left the contest"} <= set(texts)
    bold = [element.text for element in root.iter("text") if "font-weight" in element.attrib]
    assert bold == ["svm | under"]


def test_better_values_are_deeper_and_outliers_do_not_squeeze_the_rest():
    values = [0.1, 0.12, 0.13, 0.9]
    contenders = [BracketRow(name=str(v), cells=[Cell(loss=v, text=str(v), trials=1)]) for v in values]
    root, _ = drawn(contenders, ["0"])
    depth = [float(r.attrib["fill-opacity"]) for r in root.iter("rect") if r.find("title") is not None]
    assert depth == sorted(depth, reverse=True)
    assert depth[0] == 1.0 and depth[1] - depth[2] > 0.1


def test_long_names_are_cut_and_texts_without_room_are_only_in_the_tooltip():
    wide = "x" * 60
    root, texts = drawn(contest(wide, *"abcdefghijk"), [str(i) for i in range(12)], width=600)
    assert "x" * 39 + "…" in texts
    assert "0.9000" not in texts
    assert "0.9000" in root.find("rect").find("title").text


def test_rows_are_bounded():
    many = [BracketRow(name=f"s{k}", cells=[Cell(loss=0.1, text="0.9", trials=1)], reason="late") for k in range(99)]
    root, texts = drawn(many, ["0"])
    assert len(crosses(root)) == MAX_ROWS
    assert f"… and {99 - MAX_ROWS} more that left before" in texts


@pytest.mark.parametrize(("contenders", "rounds"), [([], ["0"]), ([BracketRow(name="a", cells=[])], []), ([], [])])
def test_nothing_to_draw_is_said(contenders, rounds):
    assert "Nothing to draw" in bracket_chart(contenders, rounds=rounds, title="t", description="d")


@pytest.mark.parametrize("names_above", [False, True])
def test_hostile_names_stay_text(names_above):
    texts = hostile_texts()
    for start in range(0, 60, 3):
        names = texts[start : start + 3]
        svg = bracket_chart(
            contest(*names), rounds=names, title=names[0], description=names[1], names_above=names_above, css=names[2]
        )
        assert {element.tag for element in ET.fromstring(svg).iter()} <= {
            "svg",
            "title",
            "desc",
            "rect",
            "text",
            "path",
        }
        assert "<script" not in svg.lower()


@settings(deadline=None)
@given(st.lists(st.builds(BracketRow, name=st.text(max_size=50), cells=st.lists(cells, max_size=4), reason=st.none())))
def test_any_contest_is_well_formed(contenders):
    svg = bracket_chart(contenders, rounds=list("0123"), title="t", description="d")
    if any(contender.cells for contender in contenders):
        shown = contenders[:MAX_ROWS]
        tips = [r for r in ET.fromstring(svg).iter("rect") if r.find("title") is not None]
        assert len(tips) == sum(len(contender.cells) for contender in shown)
        depths = [float(r.attrib.get("fill-opacity", 0)) for r in tips]
        assert all(0 <= depth <= 1 for depth in depths)
