from __future__ import annotations

import csv
from dataclasses import dataclass

import pytest

from benchmarks.runs.row_file import RowFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    name: str
    is_capped: bool


def test_rows_are_appended_and_read(tmp_path):
    file = RowFile(tmp_path / "rows.csv", Row)
    assert file.read() == []
    file.add([Row(name="a", loss=0.5)])
    file.add([Row(name="b", loss=0.25)])
    assert file.read() == [{"name": "a", "loss": "0.5"}, {"name": "b", "loss": "0.25"}]


@pytest.mark.parametrize("cut", ["b", "b,0.2", 'b,"0.'])
def test_row_cut_short_is_left_out_and_does_not_damage_the_next(tmp_path, cut):
    file = RowFile(tmp_path / "rows.csv", Row)
    file.add([Row(name="a", loss=0.5)])
    with file.path.open("a") as content:
        content.write(cut)
    assert [row["name"] for row in file.read()] == ["a"]
    file.add([Row(name="c", loss=0.75)])
    assert file.path.read_text() == "name,loss\na,0.5\nc,0.75\n"


def test_row_that_another_process_completes_while_it_is_read_is_left_out(tmp_path, monkeypatch):
    file = RowFile(tmp_path / "rows.csv", Row)
    file.add([Row(name="a", loss=0.5)])
    with file.path.open("a") as content:
        content.write("b,0.2")
    parse = csv.DictReader

    def parse_before_the_rest(text):
        rows = list(parse(text))
        with file.path.open("a") as content:
            content.write("5\n")
        return rows

    monkeypatch.setattr(csv, "DictReader", parse_before_the_rest)
    assert file.read() == [{"name": "a", "loss": "0.5"}]
    monkeypatch.undo()
    assert file.read()[1:] == [{"name": "b", "loss": "0.25"}]


def test_interrupted_rows_are_not_added_in_part(tmp_path):
    def interrupted():
        yield Row(name="a", loss=0.5)
        raise KeyboardInterrupt

    file = RowFile(tmp_path / "rows.csv", Row)
    with pytest.raises(KeyboardInterrupt):
        file.add(interrupted())
    assert file.read() == []


def test_rows_are_found_by_their_settings(tmp_path):
    file = RowFile(tmp_path / "rows.csv", Row)
    file.add([Row(name="a", loss=0.5), Row(name="b", loss=0.25), Row(name="c", loss=0.5)])
    assert list(file.frame(loss=0.5)["name"]) == ["a", "c"]
    assert file.keys("name", loss=0.5) == {("a",), ("c",)}
    assert file.keys("name", "loss") == {("a", 0.5), ("b", 0.25), ("c", 0.5)}
    assert file.keys("name", loss=1) == set()


def test_a_setting_may_have_several_values(tmp_path):
    file = RowFile(tmp_path / "rows.csv", Row)
    file.add([Row(name="a", loss=0.0), Row(name="b", loss=1.0), Row(name="ab", loss=2.0)])
    assert list(file.frame(loss=range(2))["name"]) == ["a", "b"]
    assert list(file.frame(name=["b", "ab"])["name"]) == ["b", "ab"] and list(file.frame(name="ab")["loss"]) == [2]
    assert file.frame(name=[]).empty


def test_what_is_true_or_false_comes_back_as_it_was(tmp_path):
    file = RowFile(tmp_path / "rows.csv", Judged)
    file.add([Judged(name="a", is_capped=True), Judged(name="b", is_capped=False)])
    assert file.frame()["is_capped"].tolist() == [True, False]
    assert list(file.frame(is_capped=False)["name"]) == ["b"]


def test_an_empty_cell_of_numbers_is_nan(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("name,loss\na,\nb,1\n")
    frame = RowFile(path, Row).frame()
    assert frame["loss"].isna().tolist() == [True, False]


def test_a_file_with_other_columns_is_refused_before_anything_is_computed(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("name\na\n")
    with pytest.raises(SystemExit, match="other columns"):
        RowFile(path, Row)
