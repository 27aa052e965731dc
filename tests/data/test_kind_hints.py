from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.data.column import ColumnKind
from cashmere.data.inference import infer_schema
from cashmere.data.kind_hints import kind_hint
from cashmere.data.schema import TableSchema
from cashmere.data.structure_hints import structure_hint
from cashmere.exceptions import SchemaError


def hint(values) -> str | None:
    frame = pd.DataFrame({"size": [1, 2] * (len(values) // 2), "column": values})
    return kind_hint(frame, infer_schema(frame))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["3,14", "2,5", None, "7"], "numbers with commas, such as '3,14'.*decimal=','"),
        (
            ["1.234,50", "-", None, "7,25", "1234,5", "7"],
            r"numbers with commas, and points between thousands, such as '1.234,50'.*thousands='\.'",
        ),
        (
            ["1.234.567", "12"],
            r"numbers with commas, and points between thousands, such as '1.234.567'.*decimal=',', thousands='\.'",
        ),
        (["1,234", "950", "2,345.5", "1"], "numbers with commas.*thousands=','"),
        ([f"{i},5" for i in range(100)], "numbers with commas"),  # an identifier, by its values alone
        (["12%", "7.5 %"], "numbers with % or a currency sign, such as '12%'.*remove"),
        (["€5", "12,50"], "numbers with %"),
        (
            ["12 500", "950", None, "1 234 567,5"],
            "numbers with blanks or apostrophes between thousands, such as '12 500'",
        ),
        (["12\u202f500", "950.5"], r"numbers with blanks or apostrophes.*, such as '12\\u202f500', .*remove them"),
        (
            ["950", None, "12'500.20", "8’100"],
            'numbers with blanks or apostrophes between thousands, such as "12\'500.20"',
        ),
        (["EUR 1200", "EUR 7.50"], "numbers with % or a currency sign, such as 'EUR 1200'.*remove the signs"),
        (["€ 12 500", "€ 7"], "numbers with % or a currency sign, such as '€ 12 500'"),
        (
            ["1200", "(45.5)"],
            r"negative numbers in brackets or with the minus behind, such as '\(45.5\)'.*minus before",
        ),
        (["1200", "45-", None, "7.5-"], "negative numbers in brackets or with the minus behind, such as '45-'"),
        ([f"{i / 2} kg" for i in range(40)], "numbers with the unit kg, such as '0.0 kg'.*remove the unit"),
        ([f"{i % 30},5mm" for i in range(200)], "numbers with the unit mm"),  # were repeated identifiers
        ([*(f"{i}.5 kΩ" for i in range(60)), "err", "err 2"], "numbers with the unit kΩ, such as '0.5 kΩ'"),
        ([f"{i}.5 m/s^2" for i in range(60)], r"numbers with the unit m/s\^2"),
        ([f"{i}.5% RH" for i in range(60)], "numbers with the unit % RH"),
        ([f"{i} bar(g)" for i in range(60)], r"numbers with the unit bar\(g\)"),
        (
            [f"2024-01-{1 + i // 4:02d} 0{i % 4}:00:00 CET" for i in range(80)],
            "dates, such as '2024-01-01 00:00:00 CET'",
        ),
        ([f"2024-01-{1 + i // 4:02d} 0{i % 4}:00:00,125" for i in range(80)], "dates, .*pandas.to_datetime, to one"),
        ([f"202401{1 + i // 4:02d}T0{i % 4}0000Z" for i in range(80)], "dates, such as '20240101T000000Z'"),
        (["12/11/2024", "1/2/2023"], "dates, such as '12/11/2024'.*to_datetime"),
        (["12/11/2024 10:30", "1/2/2023 9:05"], "dates"),
        ([f"{year}.01.{1 + year % 28:02}" for year in range(40, 80)], "dates, such as '40.01.13'.*their format"),
        (["01/02/23", "3/4/24"], "dates, such as '01/02/23'.*their format"),
        (
            [*map(str, range(40)), "unknown", "-"],
            "numbers and a few other texts, such as '-', which are read as missing values: convert",
        ),
        ([*range(40), "7", "n.a."], "numbers and a few other texts, such as 'n.a.'"),
        (
            [*map(str, range(30)), *"kr" * 5],  # too many to lose the difference
            "numbers and a few other texts, such as 'k', which are not read as numbers: remove these texts",
        ),
        ([*(f"{i},5" for i in range(30)), *"kr" * 5], "numbers and a few other texts, such as 'k', which are not read"),
    ],
)
def test_other_notations_are_named_with_an_example_and_a_remedy(values, words):
    assert pd.Series([hint(values)]).str.contains(rf"^Column 'column' holds {words}").all()


def test_late_years_of_two_digits_are_counted():
    days = pd.date_range("1945-01-01", periods=60, freq="300D")
    frame = pd.DataFrame({"born": days.strftime("%d.%m.%y"), "seen": days.strftime("%d-%b-%y"), "size": range(60)})
    frame.loc[0, "born"] = "24.12.2045"
    n_late = 2 * int((days.year < 1969).sum()) - 1
    found = kind_hint(frame, infer_schema(frame))
    assert found.startswith("Columns 'born', 'seen' hold years of two digits, such as '28.10.45': ")
    assert f"{n_late} dates are read as 2030 or later. Write years with four digits" in found


def test_columns_in_the_same_notation_share_a_sentence():
    frame = pd.DataFrame({"a": ["1,5", "2"], "day": ["1/2/2023", "2/2/2023"], "b": ["x", "y"], "c": ["3,5", "4"]})
    found = kind_hint(frame, infer_schema(frame))
    assert found.startswith("Columns 'a', 'c' hold numbers with commas, such as '1,5',") and found.count("hold") == 2


@pytest.mark.parametrize(
    "values",
    [
        ["red", "3,14"],
        ["1;2", "3;4"],
        ["1,2,3", "4,5,6"],
        ["v1.2.2023", "1.2.2024"],
        ["1.12.20", "1.10.31"],  # versions
        ["24.12.05", "25.12.29"],
        ["24.12.2045", "25.12.2045"],
        [3.14, 2.5],
        ["3.14", "2.5"],
        ["2024-12-31", "2023-02-01"],
        ["31.12.2024", "1.2.2023"],
        pd.Categorical(["3,14", "2,5"]),
        ["3,14", "3,14"],  # constant
        [True, "3,14"],
        [" ", None],
        ["1", "2", "3+", "2"],  # too few numbers to be measurements
        [f"{i}{letter}" for i in range(30) for letter in "ABCDEF"],  # seats
        [*map(str, range(30)), "13a", "V2", "x", "y", "z", "w"],  # codes
    ],
)
def test_other_columns_get_no_hint(values):
    assert hint(values) is None


def test_numbers_with_a_few_other_texts_are_no_identifiers_of_groups():
    age = [str(i % 60) for i in range(240)] + ["unknown", "unknown"]
    schema = infer_schema(pd.DataFrame({"age": age}))
    assert structure_hint(schema.code(pd.DataFrame({"age": age}))) is None


def test_numbers_with_a_few_other_texts_are_numbers_with_gaps():
    texts = [f"{i / 7:.3f}" for i in range(98)] + ["unknown ", "-"]
    schema = infer_schema(pd.DataFrame({"income": texts}))
    (column,) = schema.columns
    assert column.kind is ColumnKind.NUMERIC and column.dropped is None
    assert column.missing_texts == ("-", "unknown")
    schema = TableSchema.from_json(json.loads(json.dumps(schema.to_json())))
    coded = schema.code(pd.DataFrame({"income": ["1.5", " unknown", 2, None]}))
    assert np.array_equal(coded.values[:, 0], [1.5, np.nan, 2, np.nan], equal_nan=True) and not coded.unseen
    with pytest.raises(SchemaError, match=r"Column 'income' must hold numbers.*'often'"):
        schema.code(pd.DataFrame({"income": ["1.5", "often"]}))


@given(st.permutations([*map(str, range(30)), *["unknown"] * 20]))
def test_one_other_text_may_be_frequent_and_come_first(texts):
    (column,) = infer_schema(pd.DataFrame({"age": texts})).columns
    assert column.kind is ColumnKind.NUMERIC and column.missing_texts == ("unknown",)


def test_texts_for_missing_numbers_are_refused_in_other_columns():
    stored = infer_schema(pd.DataFrame({"a": ["x", "y"]})).to_json()
    stored["columns"][0]["missing_texts"] = ["x"]
    with pytest.raises(ValueError, match="'a' has texts for missing numbers, but is not numeric"):
        TableSchema.from_json(stored)
