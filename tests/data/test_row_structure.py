from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from cashmere.data.row_structure import RowStructure, StructureKind, shown_name, take_structure
from cashmere.data.rows import canonical_rows
from cashmere.exceptions import ColumnTypeError, DataError, UnknownNameError

GROUPS, TIME = StructureKind.GROUPS, StructureKind.TIME


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a", "b", "c"],
        [2, 1, 2, 3],
        [2.0, 1.0, 2.0, 3.5],
        np.array([20, 10, 20, 30]),
        pd.Categorical(["b", "a", "b", "c"], categories=["c", "b", "a", "unused"]),
        pd.Series(["b", "a", "b", "c"], index=[7, 7, 7, 7]),
    ],
)
def test_groups_are_equal_values_of_any_kind(values):
    codes = RowStructure.from_values(values, GROUPS).codes
    assert codes[0] == codes[2] and len(set(codes.tolist())) == 3 and set(codes.tolist()) == {0, 1, 2}


def test_numbers_and_their_texts_are_the_same_group():
    values = pd.Series([1, "1", 1.0, "2"], dtype=object)
    assert RowStructure.from_values(values, GROUPS).codes.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    "values",
    [
        [3.5, -1, 3.5, 10],
        ["3", "-1", "3", "10"],
        ["2024-01-03", "2023-12-31", "2024-01-03", "2024-01-10"],
        ["2024-01-03 10:00", "2024-01-03 09:59", "2024-01-03 10:00", "2024-01-04 00:00"],
        pd.to_datetime(["2024-01-03", "2023-12-31", "2024-01-03", "2024-01-10"]),
        pd.Series(pd.to_datetime(["2024-01-03", "2023-12-31", "2024-01-03", "2024-01-10"])).dt.tz_localize(
            "US/Pacific"
        ),
        pd.Series(pd.PeriodIndex(["2024-03", "2023-12", "2024-03", "2024-10"], freq="M")),
        [dt.date(2024, 1, 3), dt.date(2023, 12, 31), dt.date(2024, 1, 3), dt.date(2024, 10, 1)],
    ],
)
def test_moments_are_numbered_in_ascending_order(values):
    assert RowStructure.from_values(values, TIME).codes.tolist() == [1, 0, 1, 2]


def test_an_hour_that_is_repeated_in_autumn_keeps_its_order():
    hours = pd.date_range("2024-10-26 23:00", periods=4, freq="h", tz="UTC").tz_convert("Europe/Berlin")
    assert RowStructure.from_values(pd.Series(hours), TIME).codes.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("values", "kind", "error", "text"),
    [
        (["a", None, "b"], GROUPS, DataError, r"groups in 'ward' are missing in 1 row, first in row 1"),
        (["a", " ", "b"], GROUPS, DataError, "missing in 1 row"),
        ([1.0, np.nan, 2.0], TIME, DataError, "times in 'ward' are missing"),
        (["2024-01-01"] * 30 + ["soon"], TIME, ColumnTypeError, "1 value did not fit, for example 'soon'"),
        (["a", "a"], GROUPS, DataError, "same in all rows"),
        ([3, 3], TIME, DataError, "same in all rows"),
        (["spring", "summer"], TIME, ColumnTypeError, r"cannot order rows in time.*'spring'.*to_datetime"),
        ([True, False], TIME, ColumnTypeError, "cannot order rows in time"),
        (["8:15", "23:05"], TIME, ColumnTypeError, "cannot order rows in time"),  # every day has them
        ([1, "summer"], TIME, ColumnTypeError, "cannot order rows in time"),
        ([[1], [2]], GROUPS, DataError, "one value per row"),
        ([{"a": 1}, {"b": 1}], GROUPS, ColumnTypeError, "dict"),
    ],
)
def test_unusable_values_are_explained(values, kind, error, text):
    with pytest.raises(error, match=text):
        RowStructure.from_values(values, kind, name="ward")


def test_a_named_column_is_taken_out_of_the_table():
    frame = pd.DataFrame({"a": [1, 2, 3], "ward": ["x", "y", "x"]})
    rest, structure = take_structure(frame, groups="ward", time=None)
    assert list(rest) == ["a"] and structure.codes.tolist() == [0, 1, 0] and structure.name == "ward"
    assert list(frame) == ["a", "ward"]
    rest, structure = take_structure(frame, groups=None, time=[5, 4, 6])
    assert rest is frame and structure.codes.tolist() == [1, 0, 2]
    assert take_structure(frame, groups=None, time=None) == (frame, None)


def test_unknown_columns_are_named():
    frame = pd.DataFrame({"a": [1, 2], "ward": ["x", "y"]})
    with pytest.raises(UnknownNameError, match="Did you mean 'ward'"):
        take_structure(frame, groups="wards", time=None)
    with pytest.raises(DataError, match="one value for each of 2 rows; got 3"):
        take_structure(frame, groups=[1, 2, 3], time=None)
    with pytest.raises(DataError, match="no column beside 'ward'"):
        take_structure(frame[["ward"]], groups="ward", time=None)


def test_names_are_those_of_the_column_or_of_the_kind():
    assert [shown_name(given, GROUPS) for given in ("ward", pd.Series([1], name="w"), [1])] == ["ward", "w", "groups"]


def test_structure_of_some_rows_has_no_gaps():
    structure = RowStructure.from_values(list("abcd"), GROUPS)
    assert structure.take(np.array([3, 1, 3])).codes.tolist() == [1, 0, 1]
    assert structure.most_folds == 4 and structure.take(np.array([2])).most_folds == 0
    moments = RowStructure.from_values([1, 2, 2], TIME)
    assert moments.most_folds == 1 and moments.take(np.array([1, 2])).most_folds == 0


def test_groups_travel_with_rows_in_any_order():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 2, 40)})
    y, wards = rng.integers(0, 2, 40), rng.choice(["u", "v", "w"], 40)
    weight = rng.integers(0, 3, 40)
    order = rng.permutation(40)
    for given in (None, weight):
        here = canonical_rows(frame, y, given, structure=RowStructure.from_values(wards, GROUPS))
        there = canonical_rows(
            frame.iloc[order],
            y[order],
            None if given is None else given[order],
            structure=RowStructure.from_values(wards[order], GROUPS),
        )
        np.testing.assert_array_equal(here.structure.codes, there.structure.codes)
        np.testing.assert_array_equal(np.unique(wards)[here.structure.codes], wards[here.source])
