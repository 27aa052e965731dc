"""Measurements outside the range of a device are numbers just beyond its limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere.data.column import ColumnKind
from cashmere.data.inference import infer_schema
from cashmere.data.kind_hints import kind_hint
from cashmere.data.limits import numbers_beyond
from cashmere.exceptions import SchemaError

NUMBERS = [f"{value:.2f}" for value in np.linspace(0.5, 8, 60)]


def column_of(texts):
    frame = pd.DataFrame({"crp": pd.Series(texts, dtype=object), "age": np.arange(len(texts))})
    schema = infer_schema(frame)
    return frame, schema, schema.columns[0]


def values_of(schema, texts):
    return schema.code(pd.DataFrame({"crp": pd.Series(texts, dtype=object), "age": 1})).values[:, 0]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("<0.5", 0.49995),
        (" < 0.5 ", 0.49995),
        (">1e3", 1000.1),
        ("≤2", 2.0),
        (">=-2", -2.0),
        ("<-2", -2.0002),
        (">0", 1e-4),
    ],
)
def test_limits_are_numbers(text, number):
    assert numbers_beyond(pd.Series([text]))[0] == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize("text", ["0.5", "<", "<0.5 mg", "0.5<", "<<1", "<1-2", "", "a<1", "<٣"])
def test_other_texts_are_none(text):
    assert np.isnan(numbers_beyond(pd.Series([text])))[0]


def test_measurements_below_a_limit_are_read_as_numbers():
    frame, schema, column = column_of(["<0.5"] * 40 + NUMBERS + [">8"] * 3 + ["unknown"])
    assert column.kind is ColumnKind.NUMERIC and column.missing_texts == ("unknown",)
    values = schema.code(frame).values[:, 0]
    assert (values[:40] < 0.5).all() and (values[100:103] > 8).all() and np.isnan(values[103])
    np.testing.assert_array_equal(values[40:100], np.array(NUMBERS, dtype=np.float64))
    hint = kind_hint(frame, schema)
    assert "Column 'crp' holds limits, such as '<0.5', which are read as numbers just beyond them" in hint
    np.testing.assert_allclose(values_of(schema, ["<0.1", "7", None]), [0.09999, 7, np.nan])
    with pytest.raises(SchemaError, match="'low'"):
        values_of(schema, ["low"])


def test_ranges_are_categories():
    for texts in (
        ["<18", ">=18"] * 50,
        ["<1", "1", "2", ">2"] * 20,
        ["<1", "<2", "<3", "<4", "<5", "<6"] * 2 + NUMBERS[:11],
    ):
        assert column_of(texts)[2].kind is ColumnKind.CATEGORICAL


def test_plain_numbers_bring_no_warning():
    frame, schema, column = column_of(NUMBERS)
    assert column.kind is ColumnKind.NUMERIC and kind_hint(frame, schema) is None
    np.testing.assert_allclose(values_of(schema, ["<0.5"]), [0.49995])  # the first row that is below a limit


def test_a_text_that_only_begins_like_a_limit_is_none():
    frame, schema, column = column_of([*NUMBERS, "<unknown>"])
    assert column.missing_texts == ("<unknown>",) and "limits" not in kind_hint(frame, schema)


def test_texts_that_an_early_version_read_as_missing_stay_so():
    schema = column_of([*NUMBERS, "unknown"])[1]
    description = schema.to_json()
    description["columns"][0]["missing_texts"] = ["<0.5"]
    early = type(schema).from_json(description)
    np.testing.assert_array_equal(values_of(early, ["<0.5", "3"]), [np.nan, 3])
