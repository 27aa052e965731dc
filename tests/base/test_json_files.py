from __future__ import annotations

import json
from typing import Annotated, TypedDict

import pytest
from msgspec import Meta

from cashmere.base import json_files
from cashmere.base.json_files import Count, Finite, Positive, checked, parse_json, read_json, write_json


class Described(TypedDict):
    name: Annotated[str, Meta(max_length=5)]
    n: Count


def test_what_is_written_is_read(tmp_path):
    write_json(tmp_path / "a.json", {"name": "ä\n[{", "n": 3, "more": [1]})
    assert read_json(tmp_path / "a.json", Described) == {"name": "ä\n[{", "n": 3}
    assert read_json(tmp_path / "a.json", dict) == {"name": "ä\n[{", "n": 3, "more": [1]}


@pytest.mark.parametrize(
    "content",
    [
        [],
        None,
        "text",
        {},
        {"name": "a"},
        {"name": 1, "n": 1},
        {"name": "a", "n": -1},
        {"name": "a", "n": 1.5},
        {"name": "a", "n": True},
        {"name": "a", "n": "1"},
        {"name": "a", "n": 10**30},
        {"name": "longer", "n": 1},
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, content):
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"Expected|missing|out of range"):
        read_json(tmp_path / "a.json", Described)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400, "1", None, True])
@pytest.mark.parametrize("kind", [Finite, Positive])
def test_numbers_are_finite(kind, number):
    with pytest.raises(ValueError, match=r"Expected|range"):
        checked(number, kind)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 65 + "]" * 65, "nested 65 deep"),
        ("[" * 400_000, "nested 400000 deep"),
        ('{"a":' * 100 + "1" + "}" * 100, "nested 100 deep"),
        ("[]," * 600_000, "more than"),
        ("1" * 5000, "digits"),
        ('["' + "\\" * 99_999 + '"]', "JSON|control|escape|Unterminated|delimiter"),
        ("", "Expecting value"),
        ("\x00", "Expecting value"),
        ('{"a"', "Expecting"),
    ],
)
def test_forged_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_json(text)


def test_brackets_within_texts_are_not_nested():
    text = ["[" * 1000, '"' + "{" * 1000, "\\", "\\\\[["]
    assert parse_json(json.dumps(text)) == text


def test_a_file_that_is_too_large_is_neither_written_nor_read(tmp_path, monkeypatch):
    monkeypatch.setattr(json_files, "JSON_BYTES", 10)
    with pytest.raises(ValueError, match="expected at most 10"):
        write_json(tmp_path / "a.json", ["much too long"])
    assert not (tmp_path / "a.json").exists()
    with pytest.raises(ValueError, match="expected at most 10"):
        parse_json("[1,2,3,4,5,6]")
