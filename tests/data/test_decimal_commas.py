from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cashmere.data.column import ColumnKind
from cashmere.data.decimal_commas import decimal_comma_columns
from cashmere.data.frames import to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.kind_hints import kind_hint
from cashmere.data.reading import read_table
from cashmere.data.rows import canonical_rows
from cashmere.data.schema import TableSchema
from cashmere.exceptions import ColumnKindWarning, SchemaError


def read(tmp_path, text: str) -> pd.DataFrame:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return read_table(path)


def test_decimal_commas_are_read_in_a_file_with_semicolons(tmp_path):
    rows = ["1;3,14;1,234;Köln", "2; -0,5 ;12,5e2;Ulm", "3;;7;Jena", "4;1.234,50;,25;Hof", "5;?;+2;NA"]
    frame = read(tmp_path, "\n".join(["id;price;weight;ort", *rows]))
    np.testing.assert_array_equal(frame["price"], [3.14, -0.5, np.nan, 1234.5, np.nan])
    assert frame["weight"].tolist() == [1.234, 1250.0, 7.0, 0.25, 2.0]
    assert frame["id"].dtype == np.int64 and frame["ort"].tolist()[:4] == ["Köln", "Ulm", "Jena", "Hof"]


@pytest.mark.parametrize("delimiter", [";", ","])
def test_points_that_probably_separate_thousands_are_named(tmp_path, delimiter):
    rows = ["1.017;875;3.5;1", "875;;2.125;2", "NA;2.612;1;3", "3.380;1.000;7.25;4"]
    text = "\n".join(["sum;loss;rate;id", *rows]).replace(";", delimiter)
    words = "Columns 'sum', 'loss' hold numbers such as '3.380' beside whole ones below 1,000, which are read as 3.38 "
    with pytest.warns(ColumnKindWarning, match=f"^{words}and the like.*thousands='.'"):
        frame = read(tmp_path, text)
    assert frame["sum"].tolist()[0] == 1.017 and frame["loss"].tolist()[0] == 875


@pytest.mark.parametrize(
    "cells",
    [
        ["1.017", "875.000", "3.380"],  # rounded to three decimals
        ["1.017", "875", "3.38"],
        ["0.250", "1", "3.380"],
        ["1.017", "875", "3.384"],  # too little to tell
        ["1.017", "1875", "3.380"],
        ["1", "2", "3"],
    ],
)
def test_other_points_come_before_decimals_without_a_word(tmp_path, cells):
    assert read(tmp_path, "\n".join(["sum;id", *(f"{cell};x" for cell in cells)]))["sum"].dtype.kind in "if"


def test_commas_between_cells_leave_quoted_ones_as_they_are(tmp_path):
    assert read(tmp_path, 'a,b\n"3,14",1\n"2,5",2\n')["a"].tolist() == ["3,14", "2,5"]


def test_commas_that_may_separate_thousands_stay(tmp_path):
    assert read(tmp_path, "a;b\n1,234;1\n22,345;2\n950;3\n")["a"].tolist() == ["1,234", "22,345", "950"]


def test_one_certain_comma_tells_how_to_read_the_whole_table(tmp_path):
    frame = read(tmp_path, "a;b;c\n1,234;0,125;1,234,567\n950;1,000;2\n")
    assert frame["a"].tolist() == [1.234, 950.0] and frame["b"].tolist() == [0.125, 1.0]
    assert frame["c"].tolist() == ["1,234,567", "2"]


@pytest.mark.parametrize("cell", ["x", "1,2,3", "1.5", "12.34,5", "3,x", "٣,١٤", "1 234,5", "12,5%", "31.12.2024"])
@pytest.mark.parametrize("others", ["3,14", "1.234,5"])
def test_one_other_cell_leaves_a_column_as_it_is(tmp_path, cell, others):
    column = read(tmp_path, "\n".join(["a;b", *[f"{others};0,5"] * 1500, f"{cell};2"]))
    assert column["a"].tolist()[-2:] == [others, cell] and column["b"].tolist()[-2:] == [0.5, 2.0]


def test_other_columns_do_not_matter():
    frame = pd.DataFrame({"a": [True, None, False], "b": ["2,5", " 3 ", None], "c": [None] * 3, "d": [1, "2,5", 3]})
    assert decimal_comma_columns(frame.astype(object)) == [1, 3]


def test_points_separate_thousands_in_a_table_with_decimal_commas(tmp_path):
    frame = read(tmp_path, "a;b;c;d\n1.500;0,5;1.234.567;1.5\n999;1,5;12;2.250\nNA;2,5;?;3\n")
    np.testing.assert_array_equal(frame["a"], [1500, 999, np.nan])
    np.testing.assert_array_equal(frame["c"], [1234567, 12, np.nan])
    assert frame["d"].tolist() == [1.5, 2.25, 3.0]  # 1.5 has no thousands
    assert "decimal" not in frame.attrs  # so later tables are not expected to have commas
    assert read(tmp_path, "a;b\n1.500;1\n2.250;2\n")["a"].tolist() == [1.5, 2.25]  # nothing tells what commas mean


def schema_with_commas(tmp_path):
    path = tmp_path / "training.csv"
    path.write_text("name;price;size\n" + "".join(f"n{i};{i},5;{i + 1}.000\n" for i in range(20)))
    frame = read_table(path)
    target = frame.pop("name")
    return canonical_rows(to_frame(frame), target.factorize()[0], None).schema()


def test_a_model_remembers_decimal_commas(tmp_path):
    schema = schema_with_commas(tmp_path)
    assert schema.decimal == ","
    restored = TableSchema.from_json(json.loads(json.dumps(schema.to_json())))
    assert restored == schema
    with pytest.raises(ValueError, match="decimal"):
        TableSchema.from_json({**schema.to_json(), "decimal": ";"})


@pytest.mark.parametrize(
    ("rows", "price", "size"),
    [
        ("1,125;1.500\n2,250;2.000\n", [1.125, 2.25], [1500, 2000]),  # nothing tells what a comma means
        ("7;1.500\n8;9\n", [7, 8], [1500, 9]),  # there is none
        ("1.125;1.5\n2.250;2\n", [1.125, 2.25], [1.5, 2]),  # a point that cannot separate thousands
        (";1.500\n8;\n", [np.nan, 8], [1500, np.nan]),
        ("7;15\n8;9\n", [7, 8], [15, 9]),
    ],
)
def test_new_rows_are_read_as_those_of_the_model(tmp_path, rows, price, size):
    schema = schema_with_commas(tmp_path)
    path = tmp_path / "new.csv"
    path.write_text("price;size\n" + rows)
    frame = read_table(path, schema=schema)
    np.testing.assert_array_equal(frame["price"], price)
    np.testing.assert_array_equal(frame["size"], size)


def test_commas_between_cells_leave_points_to_decimals(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("price,size\n7,1.500\n")
    assert read_table(path, schema=schema_with_commas(tmp_path))["size"].tolist() == [1.5]


NUMBERS = [i / 4 + 0.5 for i in range(60)]


def table(mark: str, *others: str, size: str = "1500") -> str:
    cells = [*(f"{number:.2f}".replace(".", mark) for number in NUMBERS), *others]
    return "\n".join(["troponin;size", *(f"{cell};{size}" for cell in cells)])


@pytest.mark.parametrize(
    "others",
    [("<0#50",), ("<0#50", "> 99#25"), ("k.A.",), ("unknown",) * 20, ("-", "k.A.", "<0#50")],
)
def test_limits_and_words_for_missing_are_read_as_beside_decimal_points(tmp_path, others):
    coded = {}
    for mark in ",.":
        frame = read(tmp_path, table(mark, *(each.replace("#", mark) for each in others)))
        schema = infer_schema(frame)
        assert schema.columns[0].kind is ColumnKind.NUMERIC and "'troponin' holds" in kind_hint(frame, schema)
        assert schema.decimal == mark
        coded[mark] = schema.code(frame).values
        again = read_table(tmp_path / "t.csv", schema=schema)
        np.testing.assert_array_equal(schema.code(again).values, coded[mark])
    np.testing.assert_array_equal(coded[","], coded["."])


def test_a_few_new_rows_are_read_with_their_limits(tmp_path):
    schema = infer_schema(read(tmp_path, table(",", "<0,50", "k.A.")))
    path = tmp_path / "new.csv"
    for rows, expected in (("<0,500;1", 0.49995), (">1,125;1", 1.1251125), ("1.234,5;1", 1234.5), ("k.A.;1", np.nan)):
        path.write_text(f"troponin;size\n{rows}\n")
        np.testing.assert_allclose(schema.code(read_table(path, schema=schema)).values[0, 0], expected)
    path.write_text("troponin;size\n0,25;1\n0.25;2\n")
    with pytest.raises(SchemaError, match="'troponin' must hold numbers as in training"):
        schema.code(read_table(path, schema=schema))


def test_points_between_thousands_may_have_words_beside_them(tmp_path):
    rows = "\n".join(f"{i},5;{i + 1}.000" for i in range(20))
    frame = read(tmp_path, f"price;size\n{rows}\n1,5;k.A.\n1,5;<1.000\n")
    assert frame["size"].tolist()[-3:] == ["20000", "k.A.", "<1000"]
    assert infer_schema(frame).columns[1].kind is ColumnKind.NUMERIC


@pytest.mark.parametrize("others", [("a", "b", "c", "d", "e", "f"), ("1.5",), ("<1.5",), tuple("ab" * 5)])
def test_columns_that_are_no_numbers_keep_their_commas(tmp_path, others):
    frame = read(tmp_path, table(",", *others, size="1,5"))
    assert frame["troponin"].tolist()[:2] == ["0,50", "0,75"] and frame["size"].tolist()[0] == 1.5


def test_earlier_models_keep_their_categories(tmp_path):
    frame = read(tmp_path, table(",", "k.A.", size="1,5"))
    written = pd.DataFrame({"troponin": [*(f"{number:.2f}".replace(".", ",") for number in NUMBERS), "k.A."]})
    schema = infer_schema(pd.concat([written, written]).astype("category"))
    assert frame["troponin"].tolist()[:2] == ["0.50", "0.75"]
    frame = read_table(tmp_path / "t.csv", schema=schema)
    assert frame["troponin"].tolist() == written["troponin"].tolist()
