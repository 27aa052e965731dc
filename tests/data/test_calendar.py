from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.data.calendar import DATE_PARTS, date_parts, recurring_parts
from cashmere.data.inference import infer_schema
from cashmere.data.row_structure import StructureKind, take_structure
from cashmere.data.rows import canonical_rows
from cashmere.data.schema import TableSchema


def moments(start, n, step):
    return np.datetime64(start, "us") + np.arange(n) * np.timedelta64(*step)


@pytest.mark.parametrize(
    ("n", "step", "parts"),
    [
        (20, (1, "D"), ()),  # each weekday of the newer half once or twice in the older, never in two weeks
        (40, (1, "D"), ("weekday",)),
        (365, (1, "D"), ("day", "weekday")),
        (3 * 365, (1, "D"), ("day", "weekday")),  # January came once in the older half
        (5 * 365, (1, "D"), ("month", "day", "weekday")),
        (60, (7, "D"), ()),  # always the same weekday, and days that have not been twice
        (200, (1, "h"), ("hour",)),
        (2000, (1, "h"), ("weekday", "hour")),
        (500, (1, "s"), ()),
    ],
)
def test_parts_recur_that_were_seen_in_two_periods(n, step, parts):
    dates = moments("2018-01-01", n, step)
    assert recurring_parts(dates) == parts
    shuffled = np.random.default_rng(0).permutation(np.append(dates, np.datetime64("NaT")))
    assert recurring_parts(shuffled) == parts


def test_no_dates_have_no_parts():
    assert recurring_parts(np.array(["NaT"], "datetime64[us]")) == ()


@given(st.lists(st.sampled_from(DATE_PARTS), unique=True, min_size=1))
@settings(deadline=None)
def test_parts_are_those_of_pandas(names):
    dates = moments("1960-02-20T23:00", 400, (37, "h"))
    index = pd.DatetimeIndex(dates)
    expected = {
        **{name: getattr(index, name) for name in ("year", "month", "day", "hour")},
        "weekday": index.day_of_week,
        "days_since_1970": (index - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1),
    }
    found = date_parts(np.append(dates, np.datetime64("NaT")), tuple(names))
    np.testing.assert_array_equal(found[:-1], np.column_stack([expected[name] for name in names]))
    assert np.isnan(found[-1]).all()


def table_of(n):
    days = pd.Series(moments("2024-01-01", n, (1, "D")))
    return pd.DataFrame({"a": np.arange(n) % 7, "sold": days.dt.strftime("%d.%m.%Y")})


def schema_in_time(table):
    frame, structure = take_structure(table, groups=None, time="sold")
    return canonical_rows(frame, np.arange(len(frame)), structure=structure).schema()


def test_only_parts_that_recur_are_features_of_the_column_that_orders_rows():
    schema = schema_in_time(table_of(60))
    schema = TableSchema.from_json(json.loads(json.dumps(schema.to_json())))
    assert schema.value_names == ("a", "sold.weekday")
    new = pd.DataFrame({"a": [1], "sold": ["31.12.2024"]})  # a Tuesday
    assert schema.code(new).values.tolist() == [[1.0, 1.0]]
    assert infer_schema(table_of(60)).value_names[1:] == tuple(f"sold.{part}" for part in DATE_PARTS[:-1])


def test_a_column_without_such_parts_is_left_out():
    schema = schema_in_time(table_of(12))
    assert schema.columns[1].dropped == "puts the rows in order, and no part of it recurs"
    assert schema.code(pd.DataFrame({"a": [1]})).values.tolist() == [[1.0]]


def test_a_copy_of_the_column_keeps_all_parts():
    schema = schema_in_time(table_of(60).assign(copy=lambda table: table["sold"]))
    assert [column.dropped for column in schema.columns] == [None, None, None]
    assert schema.value_names[1:] == ("sold.weekday", *(f"copy.{part}" for part in DATE_PARTS[:-1]))


def test_numbers_that_order_rows_are_taken_out_of_the_table():
    frame, structure = take_structure(table_of(60).assign(sold=range(60)), groups=None, time="sold")
    assert list(frame) == ["a"] and structure.kind is StructureKind.TIME and structure.calendar == ""


def test_the_order_of_rows_is_that_of_a_table_without_the_column():
    table = table_of(60)
    frame, structure = take_structure(table, groups=None, time="sold")
    rest, without = take_structure(table.drop(columns="sold"), groups=None, time=table["sold"])
    found, expected = (
        canonical_rows(X, np.zeros(60), structure=each).source for X, each in ((frame, structure), (rest, without))
    )
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(("kind", "parts"), [("numeric", ["hour"]), ("date", ["century"])])
def test_parts_need_dates(kind, parts):
    stored = {"named": True, "columns": [{"name": "a", "kind": kind, "parts": parts}]}
    with pytest.raises(ValueError, match="'a' has parts of dates, but no dates, or unknown parts"):
        TableSchema.from_json(stored)
