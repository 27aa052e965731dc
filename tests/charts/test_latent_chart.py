from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from fake_runs import hostile_texts
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cashmere.charts.latent_map import MAX_MARKS, Place, algorithm_symbols, incumbents, latent_chart

NAMES = ("adaboost", "random_forest", "svc", "gradient_boosting")
WORDS = {"title": "a map", "description": "what is seen", "legend": "accuracy"}


def places(losses, names=NAMES) -> list[Place]:
    """Return trials along a spiral."""
    return [
        Place(
            trial=k, algorithm=names[k % len(names)], x=0.1 * k * (-1) ** k, y=0.05 * (k % 7), loss=loss,
            text=f"{1 - loss:.4f}",
        )
        for k, loss in enumerate(losses)
    ]  # fmt: skip


def drawn(found, **options) -> ET.Element:
    return ET.fromstring(latent_chart(found, **{**WORDS, **options}))


def marks(root: ET.Element) -> list[ET.Element]:
    return [group for group in root.iter("g") if group.find("title") is not None]


def tips(root: ET.Element) -> list[str]:
    return [mark.find("title").text for mark in marks(root)]


def trial_of(tip: str) -> int:
    return int(re.match(r"trial (\d+):", tip)[1])


def opacity(mark: ET.Element) -> float:
    return float(mark.findall("circle")[1].attrib["fill-opacity"])


def test_every_trial_is_drawn_once_with_its_letter_algorithm_and_score():
    found = places([0.5, 0.4, 0.45, 0.3, 0.35])
    root = drawn(found[::-1])
    assert sorted(tips(root)) == [
        "trial 0: adaboost, 0.5000, the best so far",
        "trial 1: random_forest, 0.6000, the best so far",
        "trial 2: svc, 0.5500",
        "trial 3: gradient_boosting, 0.7000, the best so far",
        "trial 4: adaboost, 0.6500",
    ]
    letters = {trial_of(mark.find("title").text): mark.find("text").text for mark in marks(root)}
    assert letters == {0: "A", 1: "R", 2: "S", 3: "G", 4: "A"}
    assert (root.find("title").text, root.find("desc").text) == ("a map", "what is seen")
    texts = [text.text for text in root.iter("text")]
    assert {*NAMES, "first", "best", "best so far", "accuracy"} <= set(texts)


def test_line_leads_through_the_best_so_far_in_order():
    found = places([0.5, 0.6, 0.4, 0.4, 0.3])
    assert [p.trial for p in incumbents(found)] == [0, 2, 4]
    root = drawn(found)
    line = next(path for path in root.iter("path") if "L" in path.attrib["d"]).attrib["d"]
    stations = [tuple(map(float, pair.split())) for pair in line[1:].split("M")[0].split("L")]
    by_trial = {trial_of(mark.find("title").text): mark.find("circle").attrib for mark in marks(root)}
    assert stations == [(float(by_trial[k]["cx"]), float(by_trial[k]["cy"])) for k in (0, 2, 4)]


def test_one_trial_is_the_best_and_has_no_line():
    root = drawn(places([0.5]))
    assert [text.text for text in root.iter("text")].count("best") == 1
    assert not [path for path in root.iter("path") if "L" in path.attrib["d"]]


def test_better_trials_are_deeper_and_outliers_do_not_squeeze_the_rest():
    root = drawn(places([0.10, 0.12, 0.13, 0.9]))
    depth = {trial_of(mark.find("title").text): opacity(mark) for mark in marks(root)}
    assert depth[0] == 1.0 and depth[0] > depth[1] > depth[2] >= depth[3]
    assert depth[1] - depth[2] > 0.1
    assert "0.8700 or worse" in [text.text for text in root.iter("text")]


def test_both_axes_have_the_same_scale():
    corners = [(0.0, 0.0), (3.0, 0.0), (0.0, 1.0)]
    found = [Place(trial=k, algorithm="a", x=x, y=y, loss=0.5, text="") for k, (x, y) in enumerate(corners)]
    at = {}
    for mark in marks(drawn(found)):
        circle = mark.find("circle").attrib
        at[trial_of(mark.find("title").text)] = float(circle["cx"]), float(circle["cy"])
    assert at[1][0] - at[0][0] == pytest.approx(3 * (at[0][1] - at[2][1]), abs=0.5)


def test_centre_is_marked_where_there_is_one():
    def crosses(root):
        return [path for path in root.iter("path") if path.find("title") is not None]

    assert not crosses(drawn(places([0.5, 0.4])))
    (cross,) = crosses(drawn(places([0.5, 0.4]), centre=(0.0, 0.0), centre_label="the best of the source"))
    assert cross.find("title").text == "the best of the source"


def test_marks_are_bounded_and_the_best_stay():
    losses = [0.5 + 0.1 * ((7 * k) % 11) for k in range(3 * MAX_MARKS)]
    losses[100] = losses[1501] = 0.2
    losses[1501] = 0.1
    found = tips(drawn(places(losses)))
    assert len(found) <= MAX_MARKS
    assert {100, 1501} <= set(map(trial_of, found))
    falling = places([1 / (k + 1) for k in range(MAX_MARKS + 50)])
    assert len(tips(drawn(falling))) == MAX_MARKS


def test_symbols_are_unique_until_they_run_out():
    many = [f"algorithm_{k}" for k in range(60)]
    symbols = algorithm_symbols(many)
    assert len(set(symbols.values())) == 36
    texts = [text.text for text in drawn(places([0.5] * 60, many)).iter("text")]
    assert f"{60 - 35} more algorithms" in texts


def test_order_of_trials_does_not_matter():
    found = places([0.5, 0.6, 0.4, 0.4, 0.3])
    assert latent_chart(found, **WORDS) == latent_chart(found[::-1], **WORDS)


def test_nothing_to_draw_is_said():
    assert "Nothing to draw" in latent_chart([], **WORDS)
    nowhere = Place(trial=0, algorithm="a", x=float("nan"), y=0.0, loss=0.5, text="")
    assert "Nothing to draw" in latent_chart([nowhere], **WORDS)


def test_hostile_names_stay_text():
    texts = hostile_texts()
    for start in range(0, 60, 3):
        names = texts[start : start + 3]
        svg = latent_chart(
            places([0.3, 0.2, 0.4], names), title=names[0], description=names[1], legend=names[2], css=names[0],
            centre=(0.0, 1.0), centre_label=names[1],
        )  # fmt: skip
        tags = {element.tag for element in ET.fromstring(svg).iter()}
        assert tags <= {"svg", "title", "desc", "rect", "text", "path", "g", "circle"}
        assert "<script" not in svg.lower()


number = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@example([(0.0, -1.7976931348191718e308, 0.0, "adaboost"), (0.0, -1.7976931348204585e308, 0.0, "adaboost")], None, 300)
@given(
    st.lists(st.tuples(number, number, number, st.sampled_from(NAMES)), max_size=12),
    st.none() | st.tuples(number, number),
    st.sampled_from([300, 400, 860]),
)
def test_any_map_is_well_formed_and_inside_its_frame(rows, centre, width):
    found = [
        Place(trial=k, algorithm=name, x=x, y=y, loss=loss, text=f"{loss:.4g}")
        for k, (x, y, loss, name) in enumerate(rows)
    ]
    svg = latent_chart(found, centre=centre, centre_label="centre", width=width, **WORDS)
    if found:
        root = ET.fromstring(svg)
        assert sorted(map(trial_of, tips(root))) == list(range(len(found)))
        height = float(root.attrib["viewBox"].split()[3])
        for mark in marks(root):
            assert 0 <= opacity(mark) <= 1
            circle = mark.find("circle").attrib
            assert 8 <= float(circle["cx"]) <= width - 8 and 0 <= float(circle["cy"]) <= height
