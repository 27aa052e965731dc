from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from fake_runs import hostile_texts

from cashmere.charts.svg import element, fitted_name, svg_text


@pytest.mark.parametrize(("name", "length"), [("i" * 50, 40), ("W" * 50, 24), ("名" * 50, 24), ("svm | under", 11)])
def test_wide_characters_count_for_more(name, length):
    fitted = fitted_name(name)
    assert len(fitted) == length
    assert fitted == name or fitted.endswith("…")


def test_hostile_texts_stay_text_in_content_and_attributes():
    for text in hostile_texts()[:60]:
        root = ET.fromstring(element("text", svg_text(text), class_=svg_text(text)))
        assert (root.tag, list(root), set(root.attrib)) == ("text", [], {"class"})


def test_numbers_in_attributes_are_short():
    assert element("rect", x=1 / 3, y=2.0, width=10) == '<rect x="0.333333" y="2" width="10"/>'
