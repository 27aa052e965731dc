"""Tables in workbooks: what their cells become, and what is refused."""

from __future__ import annotations

import datetime as dt
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.inference import infer_schema
from cashmere.data.reading import read_table, words_for_missing
from cashmere.data.spreadsheets import split_sheet
from cashmere.exceptions import DataError, LeftOutWarning, MissingDependencyError, UnknownNameError


def write(path, rows, *, sheets=("Data",), first_row=0):
    """Write the rows into the first of the sheets; the first row holds the names."""
    import xlsxwriter

    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as book:
        pages = [book.add_worksheet(name) for name in sheets]
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                pages[0].write(first_row + i, j, cell)
    return path


def write_sheets(path, sheets):
    """Write rows into several sheets."""
    import xlsxwriter

    with xlsxwriter.Workbook(path) as book:
        for name, rows in sheets.items():
            page = book.add_worksheet(name)
            for i, row in enumerate(rows):
                page.write_row(i, 0, row)
    return path


def test_cells_keep_their_types(tmp_path):
    rows = [
        ("id", " size ", "name", "when", "ok", "mixed"),
        (1, 1.5, "a ", dt.datetime(2024, 1, 1), True, 1),
        (2, 2, "NA", dt.datetime(2024, 1, 2), False, "?"),
        (3, None, "b", None, True, 2.5),
    ]
    frame = read_table(write(tmp_path / "t.xlsx", rows, sheets=("Data", "Notes")))
    assert frame.columns.tolist() == ["id", "size", "name", "when", "ok", "mixed"]
    assert frame["id"].tolist() == [1, 2, 3] and frame["id"].dtype == "int64"
    np.testing.assert_array_equal(frame["size"], [1.5, 2.0, np.nan])
    assert frame["name"].isna().tolist() == [False, True, False] and frame["name"][0] == "a"
    assert pd.api.types.is_datetime64_dtype(frame["when"]) and frame["when"].isna().tolist() == [False, False, True]
    assert frame["ok"].tolist() == [True, False, True]
    np.testing.assert_array_equal(frame["mixed"], [1.0, np.nan, 2.5])


def test_errors_of_formulas_are_missing(tmp_path):
    import xlsxwriter

    with xlsxwriter.Workbook(tmp_path / "t.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["x", "y"])
        for i, error in enumerate(["#N/A", "#DIV/0!", 3.0], start=1):
            sheet.write_formula(i, 0, "=1", None, error)
            sheet.write(i, 1, i)
    np.testing.assert_array_equal(read_table(tmp_path / "t.xlsx")["x"], [np.nan, np.nan, 3.0])


def test_empty_rows_and_columns_are_left_out(tmp_path):
    rows = [("a", "", "b"), (1, "", "x"), ("", "", ""), (2, "", "y")]
    frame = read_table(write(tmp_path / "t.xlsx", rows, first_row=2))
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}


def test_model_reads_its_levels_as_they_are_written(tmp_path):
    rng = np.random.default_rng(0)
    country = rng.choice(["NA", "DE", "FR"], 120)
    table = pd.DataFrame({"country": country, "x": rng.normal(size=120), "bad": (country == "NA").astype(int)})
    model = AutoClassifier(budget="2trials", include="lightgbm", resampling="holdout", isolation="none")
    model.fit(table[["country", "x"]], table["bad"])
    path = write(tmp_path / "new.xlsx", [("country", "x"), *table[["country", "x"]].itertuples(index=False)])
    assert read_table(path)["country"].isna().any()
    read = read_table(path, schema=model._predictor.schema)
    assert read["country"].tolist() == country.tolist()
    np.testing.assert_allclose(model.predict_proba(read), model.predict_proba(table[["country", "x"]]))


def test_labels_are_read_without_the_blanks_around_them(tmp_path):
    path = write(tmp_path / "t.xlsx", [("x", "y"), (1, "yes "), (2, " None"), (3, "no")])
    assert read_table(path, labels=("y", ("no", "None", "yes")))["y"].tolist() == ["yes", "None", "no"]


def test_the_demo_is_the_same_table_in_a_workbook(tmp_path):
    table = demo_table().head(50)
    read = read_table(write(tmp_path / "t.xlsx", [tuple(table), *table.itertuples(index=False)]))
    pd.testing.assert_frame_equal(read, table.reset_index(drop=True), check_dtype=False, check_categorical=False)
    assert DEMO_TARGET in read


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "the sheet 'Data' is empty"),
        ([("a", ""), (1, 2)], "column 2 has no name in the first row of the sheet 'Data'"),
        ([("Sales of 2024", ""), ("a", "b"), (1, 2)], "column 2 has no name .* such as a title"),
        ([("a", "a"), (1, 2)], "column names must differ, but 'a'"),
        ([("a", "b")], "no rows"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        read_table(write(tmp_path / "t.xlsx", rows))


@pytest.mark.long
def test_damaged_and_huge_workbooks_are_refused(tmp_path):
    whole = write(tmp_path / "t.xlsx", [("a",), (1,)]).read_bytes()
    for name, content in (("cut.xlsx", whole[:300]), ("text.xlsx", b"a,b\n1,2\n"), ("old.xls", b"\0" * 99)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=r"cannot be read as a workbook .*save the sheet as CSV"):
            read_table(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * (300 * 2**20))
    with pytest.raises(DataError, match="expands to more than 256 MiB"):
        read_table(tmp_path / "bomb.xlsx")


def test_without_the_reader_the_extra_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "t.xlsx", [("a",), (1,)])
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(MissingDependencyError, match=r"Reading \.xlsx files needs .*cashmere-automl\[excel\]"):
        read_table(path)


def test_a_sheet_can_be_named(tmp_path):
    path = write_sheets(tmp_path / "book.xlsx", {"Notes": [("a",), (1,)], "My Data": [("b",), (2,), (3,)]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(f"{path}:My Data").to_dict("list") == {"b": [2, 3]}
        assert read_table(Path(f"{path}:Notes")).to_dict("list") == {"a": [1]}
    with pytest.raises(UnknownNameError, match=r"Unknown sheet 'my data'\. Did you mean 'My Data'\? .*'?Notes"):
        read_table(f"{path}:my data")
    with pytest.raises(UnknownNameError, match=r"Known: .*My Data.*Notes"):
        read_table(f"{path}:")


def test_other_sheets_with_content_are_told_once(tmp_path):
    filled = [("a",), (1,)]
    path = write_sheets(tmp_path / "book.xlsx", {"Data": filled, "Empty": [], "Notes": filled, "More": filled})
    with pytest.warns(LeftOutWarning) as told:
        read_table(path)
    text = f"{path}: read the sheet 'Data'; others: 'Notes', 'More'. To read another: '{path}:Notes'."
    assert [str(warning.message) for warning in told] == [text]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(write_sheets(tmp_path / "one.xlsx", {"Data": filled, "Empty": []}))


def test_only_the_name_of_a_workbook_is_followed_by_a_sheet(tmp_path):
    for whole in ("book.xlsx", "C:book.xlsx", "C:/book.xlsx", "data.csv:Data", "http://a.ods:80/t.csv", "\0.xlsx"):
        assert split_sheet(whole) == (Path(whole), None)
    assert split_sheet("C:/Book.XLSX:Data 1") == (Path("C:/Book.XLSX"), "Data 1")
    assert split_sheet("book.ods:a.csv") == (Path("book.ods"), "a.csv")
    (tmp_path / "book.xlsx:Data").write_bytes(b"")
    assert split_sheet(tmp_path / "book.xlsx:Data") == (tmp_path / "book.xlsx:Data", None)
    with pytest.raises(DataError, match=r"none\.xlsx: there is no such file"):
        read_table("none.xlsx:Data")


def test_words_read_as_missing_are_counted(tmp_path):
    rows = [("answer", "size"), ("None", 1), ("Some", "NA"), (" None ", 3), ("?", 4), (None, 5)]
    path = write_sheets(tmp_path / "book.xlsx", {"Notes": [("a",), (1,)], "a.csv": rows})
    source = f"{path}:a.csv"
    assert words_for_missing(source, read_table(source)) == {"answer": {"None": 2}}


def test_decimal_commas_in_texts_are_numbers(tmp_path):
    rows = [("a", "b", "c", "d"), ("3,14", "1.500", "x", 1.5), (" 1.234,5", "999", "y,1", "2,5"), ("NA", None, "z", 3)]
    frame = read_table(write(tmp_path / "t.xlsx", rows))
    np.testing.assert_array_equal(frame["a"], [3.14, 1234.5, np.nan])
    np.testing.assert_array_equal(frame["b"], [1500, 999, np.nan])
    assert frame["c"].tolist() == ["x", "y,1", "z"] and frame["d"].tolist() == [1.5, 2.5, 3.0]
    assert frame.attrs["decimal"] == ","
    path = write(tmp_path / "new.xlsx", [("a",), ("1,125",), ("2,250",)])
    assert read_table(path)["a"].tolist() == ["1,125", "2,250"]
    assert read_table(path, schema=infer_schema(frame))["a"].tolist() == [1.125, 2.25]


def test_limits_with_decimal_commas_may_stand_among_numbers(tmp_path):
    rows = [("a", "b"), *((i / 4, f"{i},25") for i in range(30)), ("<0,25", "k.A."), ("k.A.", "> 1.000,5")]
    path = write(tmp_path / "t.xlsx", rows)
    schema = infer_schema(frame := read_table(path))
    assert frame["a"].tolist()[-2:] == ["<0.25", "k.A."] and frame["b"].tolist()[-2:] == ["k.A.", "> 1000.5"]
    values = schema.code(frame).values
    np.testing.assert_allclose(values[-2:], [[0.249975, np.nan], [np.nan, 1000.60005]])
    assert schema.decimal == ","
    np.testing.assert_array_equal(schema.code(read_table(path, schema=schema)).values, values)


def test_decimal_points_beside_decimal_commas_stay(tmp_path):
    frame = read_table(write(tmp_path / "t.xlsx", [("a", "b"), ("3,14", "1.5"), ("2,5", "2.25")]))
    assert frame["a"].tolist() == [3.14, 2.5] and frame["b"].tolist() == ["1.5", "2.25"]
    assert "decimal" not in frame.attrs
