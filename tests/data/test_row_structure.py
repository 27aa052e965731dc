from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.data.row_structure import RowStructure, StructureKind, shown_name, take_structure
from cashmere.data.rows import canonical_rows
from cashmere.exceptions import ColumnTypeError, DataError, InvalidParameterError, UnknownNameError

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
    moments = [hour.to_pydatetime() for hour in hours]
    in_zone = [moment.astimezone(ZoneInfo("Europe/Berlin")) for moment in moments]
    for values in (pd.Series(hours), list(hours), in_zone, [hour.isoformat() for hour in hours]):
        assert RowStructure.from_values(values, TIME).codes.tolist() == [0, 1, 2, 3]


OFFSETS = ["2024-01-01T00:30:00+01:00", "2024-01-01T00:00:00Z", "2023-12-31 18:59:59 -0500", "2024-01-01 00:00"]


@pytest.mark.parametrize(
    "values", [OFFSETS, [pd.Timestamp(text) for text in OFFSETS], [*map(pd.Timestamp, OFFSETS[:2]), *OFFSETS[2:]]]
)
def test_moments_of_several_offsets_are_ordered_in_utc(values):
    assert RowStructure.from_values(values, TIME).codes.tolist() == [0, 2, 1, 2]
    assert RowStructure.from_values(values, TIME, gap="20m").known.tolist() == [0, 1, 1, 1]


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


@pytest.mark.parametrize("unit", [1, 0.5])
def test_what_is_known_is_older_than_the_gap(unit):
    times = unit * np.array([10, 4, 1, 4, 6, 7])
    structure = RowStructure.from_values(times, TIME, gap=3 * unit)
    for row, time in enumerate(times):
        known = times[structure.codes < structure.known[row]]
        assert set(known) == set(times[times <= time - 3 * unit])
    assert structure.known_moments.tolist() == [0, 1, 1, 2, 4] and structure.most_folds == 4


@pytest.mark.parametrize("gap", ["2d", "48h", "0.5d1d12h"])
def test_gaps_between_dates_are_durations(gap):
    days = pd.to_datetime(["2024-02-27", "2024-02-28", "2024-03-01", "2024-03-02"])
    assert RowStructure.from_values(days, TIME, gap=gap).known.tolist() == [0, 0, 2, 2]
    assert RowStructure.from_values(days, TIME, gap="1h").known.tolist() == [0, 1, 2, 3]
    assert RowStructure.from_values(days, TIME).known is None
    assert RowStructure.from_values(days, TIME, gap="4d").known.tolist() == [0, 0, 0, 1]


def test_rounding_does_not_hide_a_row():
    assert RowStructure.from_values([0.1, 0.2, 0.3], TIME, gap=0.2).known.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("values", "gap", "text"),
    [
        (["2024-01-01", "2024-01-09"], 7.0, r"gap must be a time such as '28d'.*'day' are dates; got 7\.0"),
        ([1, 2], "7d", r"gap must be a number in their unit.*because the times in 'day' are numbers; got '7d'"),
        (
            ["2024-01-01", "2024-01-09"],
            "9d",
            "gap must be at most 8 days, the time from the first to the last",
        ),
        (["2024-01-01", "2024-01-09"], "soon", "gap must be a positive time"),
    ],
)
def test_gaps_that_do_not_fit_are_refused(values, gap, text):
    with pytest.raises(InvalidParameterError, match=text):
        RowStructure.from_values(values, TIME, name="day", gap=gap)


@settings(max_examples=100, deadline=None)
@given(
    times=st.lists(st.integers(0, 12), min_size=3, max_size=30).filter(lambda values: max(values) - min(values) > 4),
    gap=st.integers(1, 4),
    data=st.data(),
)
def test_some_rows_know_what_they_knew_among_all(times, gap, data):
    times = np.array(times)
    rows = np.array(data.draw(st.lists(st.integers(0, len(times) - 1), min_size=1, unique=True)))
    part = RowStructure.from_values(times, TIME, gap=gap).take(rows)
    for row, time in zip(range(len(rows)), times[rows], strict=True):
        assert set(rows[part.codes < part.known[row]]) == {other for other in rows if times[other] <= time - gap}


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
    for weights in (None, weight):
        here = canonical_rows(frame, y, weights, structure=RowStructure.from_values(wards, GROUPS))
        there = canonical_rows(
            frame.iloc[order],
            y[order],
            None if weights is None else weights[order],
            structure=RowStructure.from_values(wards[order], GROUPS),
        )
        np.testing.assert_array_equal(here.structure.codes, there.structure.codes)
        np.testing.assert_array_equal(np.unique(wards)[here.structure.codes], wards[here.source])
