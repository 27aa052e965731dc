from __future__ import annotations

import doctest
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.reporting import critical_difference
from benchmarks.reporting.critical_difference import WIDTH, critical_difference_diagram, indistinct_groups
from benchmarks.reporting.ranks import rank_diagram
from cashmere.exceptions import ArrayError

ROOT = Path(__file__).parents[3]
SVG = "{http://www.w3.org/2000/svg}"

ascending = st.lists(st.integers(100, 1500).map(lambda n: n / 100), min_size=2, max_size=15).map(sorted)


def drawn(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def texts(root: ET.Element) -> list[str]:
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def bars(root: ET.Element) -> list[tuple[float, float, float]]:
    """Return start, end and height of the bars over groups."""
    found = [path.get("d") for path in root.iter(f"{SVG}path") if path.get("class") == "group"]
    places = [re.fullmatch(r"M(\S+) (\S+)H(\S+)", d).groups() for d in found]
    return [(float(x), float(end), float(y)) for x, y, end in places]


def test_examples():
    assert doctest.testmod(critical_difference).failed == 0


@given(ascending, st.integers(1, 1500).map(lambda n: n / 100))
def test_groups_are_the_largest_sets_without_a_difference(ranks, difference):
    groups = indistinct_groups(ranks, difference)
    together = {(i, j) for first, last in groups for i in range(first, last + 1) for j in range(i + 1, last + 1)}
    pairs = {(i, j) for j in range(len(ranks)) for i in range(j) if ranks[j] - ranks[i] < difference}
    assert together == pairs
    assert all(not (a != b and a[0] >= b[0] and a[1] <= b[1]) for a in groups for b in groups)


def test_ranks_and_groups_of_demsar():
    """Figure 1b of Demšar (2006) at 0.10: C4.5 is worse than both that tune m, no other pair differs."""
    ranks = {"C4.5": 3.143, "C4.5+m": 2.000, "C4.5+cf": 2.893, "C4.5+m+cf": 1.964}
    root = drawn(critical_difference_diagram(ranks, 1.12))
    assert texts(root) == [
        "1", "2", "3", "4", "critical difference 1.12",
        "C4.5+m+cf 1.96", "C4.5+m 2.00", "2.89 C4.5+cf", "3.14 C4.5",
    ]  # fmt: skip
    told = root.find(f"{SVG}desc").text
    assert told.startswith("Indistinct by the critical difference 1.12: C4.5+m+cf to C4.5+cf; C4.5+cf to C4.5.")
    assert len(bars(root)) == 2


@settings(deadline=None, max_examples=40)
@given(
    st.dictionaries(st.text(min_size=1, max_size=60), st.floats(1, 2), min_size=2, max_size=15),
    st.floats(0.01, 20),
)
def test_any_methods_give_a_sound_drawing(raw, difference):
    ranks = {name: 1 + (value - 1) * (len(raw) - 1) for name, value in raw.items()}
    root = drawn(critical_difference_diagram(ranks, difference))
    height = float(root.get("viewBox").split()[3])
    numbers = [(e.get("x") or e.get("cx"), e.get("y") or e.get("cy")) for e in root.iter() if e.tag != f"{SVG}path"]
    for x, y in numbers:
        assert x is None or 0 <= float(x) <= WIDTH
        assert y is None or 0 <= float(y) <= height
    assert len(list(root.iter(f"{SVG}circle"))) == len(ranks)
    found = bars(root)
    for i, (start, end, y) in enumerate(found):
        assert all(y != other or end < low or high < start for low, high, other in found[:i])


def test_fifteen_long_names_keep_apart_and_leave_room_for_the_axis():
    ranks = pd.Series(np.linspace(2, 14, 15), index=[f"{i} " + "strategy:option=value," * 3 for i in range(15)])
    root = drawn(critical_difference_diagram(ranks, 4.8))
    axis = next(path.get("d") for path in root.iter(f"{SVG}path"))
    start, length = map(float, re.fullmatch(r"M(\S+) \S+h(\S+)", axis).groups())
    assert length > WIDTH / 3
    labels = [text for text in root.iter(f"{SVG}text") if text.get("text-anchor") in ("end", "start")]
    assert len(labels) == 15 and all("…" in "".join(text.itertext()) for text in labels)
    for side in ("end", "start"):
        heights = sorted(float(text.get("y")) for text in labels if text.get("text-anchor") == side)
        assert np.diff(heights).min() > 16
    assert start > 0


def test_picture_in_the_docs_is_up_to_date():
    published = json.loads((ROOT / "tests" / "vectors" / "published_ranks.json").read_text())["divbo_table1"]
    losses = pd.DataFrame(published["means"], columns=published["methods"])
    svg = rank_diagram(losses, title="Average ranks of DivBO's Table 1")
    assert (ROOT / "docs" / "images" / "critical_difference_divbo.svg").read_text() == svg


def test_names_are_escaped():
    svg = critical_difference_diagram({"<b>": 1.0, 'a & "b"': 2.0}, 0.5)
    assert "<b>" not in svg
    assert texts(drawn(svg))[-2:] == ["<b> 1.00", '2.00 a & "b"']


def test_a_difference_longer_than_the_axis_is_written():
    root = drawn(critical_difference_diagram({"a": 1.2, "b": 1.9, "c": 2.9}, 2.34))
    assert "critical difference 2.34: ranks cannot be so far apart" in texts(root)
    assert len(bars(root)) == 1


def test_without_groups_there_are_no_bars():
    root = drawn(critical_difference_diagram({"a": 1.0, "b": 2.0, "c": 3.0}, 0.4))
    assert bars(root) == []
    assert root.find(f"{SVG}desc").text.startswith("Indistinct by the critical difference 0.40: none.")


def test_it_is_light_or_dark_on_its_own_and_like_its_page_otherwise():
    root = drawn(critical_difference_diagram({"a": 1.0, "b": 2.0}, 0.4))
    style = root.find(f"{SVG}style").text
    assert style.count("svg.cd:root { color:") == 2 and "prefers-color-scheme: dark" in style
    assert "#" not in re.sub(r"svg\.cd:root \{[^}]*\}", "", style)
    assert root[0].tag == f"{SVG}title"


@pytest.mark.parametrize("ranks", [{"a": 1.0}, {}, {"a": 1.0, "b": float("nan")}])
def test_input_without_ranks_is_refused(ranks):
    with pytest.raises(ArrayError, match="finite, for two or more methods"):
        critical_difference_diagram(ranks, 1.0)
