from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.data.column import ColumnKind
from cashmere.data.dates import DateNotation, find_notation, read_dates, read_moments
from cashmere.data.inference import infer_schema
from cashmere.data.kind_hints import kind_hint
from cashmere.data.other_columns import read_times
from cashmere.data.schema import TableSchema
from cashmere.data.unknown_values import unknown_values_hint
from cashmere.exceptions import ColumnTypeError, SchemaError

DAY_FIRST, MONTH_FIRST, YEAR_FIRST = DateNotation.DAY_FIRST, DateNotation.MONTH_FIRST, DateNotation.YEAR_FIRST

CLEAR = ["%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d %Y", "%d %B %Y"]
YEAR_LAST = {"%d.%m.%Y": DAY_FIRST, "%d/%m/%y": DAY_FIRST, "%m/%d/%Y": MONTH_FIRST, "%m-%d-%y": MONTH_FIRST}
CLOCKS = {"": "D", " %H:%M": "m", " %H:%M:%S": "s", " %I:%M %p": "m", " %I:%M:%S %p": "s"}


def text(*values):
    return pd.Series(values, dtype=object)


def notation_of(*texts):
    return find_notation(text(*texts), np.full(len(texts), 1 / len(texts)))


@pytest.mark.long
@given(st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2068, 12, 31)), st.sampled_from(sorted(CLOCKS)))
@settings(deadline=None)
def test_every_notation_gives_back_the_moment(moment, clock):
    expected = np.datetime64(moment).astype(f"datetime64[{CLOCKS[clock]}]")
    written = [moment.strftime(day + clock) for day in CLEAR]
    np.testing.assert_array_equal(read_dates(text(*written)), expected)
    for order in (DAY_FIRST, MONTH_FIRST):
        written = [moment.strftime(day + clock) for day, of in YEAR_LAST.items() if of is order]
        np.testing.assert_array_equal(read_dates(text(*written), order), expected)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2024-12-31T23:05:09.250+02:00", "2024-12-31T23:05:09.25"),  # offsets are ignored
        ("2024-12-31 23:05Z", "2024-12-31T23:05"),
        ("2024-12-31T10:00:00.1234567890Z", "2024-12-31T10:00:00.123457"),
        ("2024-12-31 10:00:00-05:00", "2024-12-31T10:00"),
        ("9999-12-31", "9999-12-31"),
        ("2024/1/5", "2024-01-05"),
        ("2024-02", "2024-02-01"),
        ("Dec 2024", "2024-12-01"),
        ("SEPT. 3 2022", "2022-09-03"),
        ("3-may-69", "1969-05-03"),
        ("3-May-68", "2068-05-03"),
        ("5 May 2024 12:30 a.m.", "2024-05-05T00:30"),
        ("2024/1/5T9:30:15 PM +02:00", "2024-01-05T21:30:15"),
        ("2024/1/5Z", "2024-01-05"),
        ("2024-12-31+01:00", "2024-12-31"),
        ("31 Dec 2024 -05:00", "2024-12-31"),
        ("2024/1/5 -05:00", "2024-01-05"),
        ("31-Dec-24 12:30+01:00", "2024-12-31T12:30"),
    ],
)
def test_written_dates(written, expected):
    assert read_dates(text(written))[0] == np.datetime64(expected)


@pytest.mark.parametrize(
    "written",
    [
        *(
            "2024-02-30",
            "2024-13-01",
            "2024-13",
            "1234-05",
            "2024-1",
            "31 Febr 2024",
            "Feb 30, 2024",
            "2024-01-01 24:00",
        ),
        *(
            "2024-01-01 13:00 PM",
            "2024-01/01",
            "1.2",
            "1.2.3.4",
            "1/2/2024",
            "5 May 24",
            "2024",
            "May",
            "",
            "v2024-01-01",
            "10:30",
            ": 2024/1/5",
        ),
        *(
            "2024/1/110:30",
            "2024/1/1Z 10:30",
            "2024/1/1 ",
            "2024/1/1 10:3",
            "2024/1/1 10:30:",
            "2024-12 10:30",
            "2024/1/1\n",
            "2024/1/5 \n10:30",
            "31-12:30",
        ),
    ],
)
def test_other_texts_are_no_dates(written):
    assert np.isnat(read_dates(text(written)))[0]


def test_what_comes_first_is_what_makes_dates_of_the_texts():
    assert notation_of("5/1/2024", "12/1/2024", "1/31/2024") is MONTH_FIRST
    assert notation_of("5-1-2024", "12-1-2024", "31-1-2024") is DAY_FIRST
    assert notation_of("12/1/10 8:26", "12/13/10 9:00") is MONTH_FIRST
    assert notation_of("2024-01-05", "5 May 2024") is YEAR_FIRST
    assert notation_of("2024-12-31", "12/30/2024", "2024-12-29", "12/28/2024") is MONTH_FIRST  # mixed, but clear


def test_a_number_that_is_always_1_is_the_day():
    assert notation_of("01/01/2020", "01/02/2020", "01/12/2020") is DAY_FIRST
    assert notation_of("1/1/2020", "2/1/2020", "12/1/2020") is MONTH_FIRST


def test_points_mean_the_day_first_unless_the_dates_say_otherwise():
    assert notation_of("1.2.2023", "2.2.2023") is DAY_FIRST
    assert notation_of("1.2.2023", "2.22.2023") is MONTH_FIRST
    assert notation_of("1.2.23", "2.3.23") is None  # may be versions


def test_a_few_other_texts_do_not_decide_the_order():
    many = [f"{1 + i % 12}/{1 + i % 11}/2024" for i in range(60)]
    assert notation_of(*many, "13/1/2024", "1/13/2024") is None
    assert notation_of(*many, *(f"{day}/1/2024" for day in range(13, 29)), "1/13/2024") is DAY_FIRST


@pytest.mark.parametrize("written", ["１２.12.2024", "２024/12/31", "३१ Dec 2024"])
def test_other_digits_are_no_dates(written):
    assert np.isnat(read_dates(text(written), DAY_FIRST))[0]
    schema = infer_schema(pd.DataFrame({"sold": [f"{day}.12.2024" for day in range(1, 31)]}))
    assert schema.code(pd.DataFrame({"sold": [written, "5.12.2024"]})).unseen == {"sold": 1}


@pytest.mark.parametrize(
    "texts",
    [
        ("1/2/2024", "3/4/2024"),
        ("31/1/2024", "1/31/2024"),
        ("24/12/31", "24/12/30", "24/11/29"),  # years of two digits that come first
        ("v1.2.2023", "31.2.2024"),
        ("red", "31/1/2024"),
    ],
)
def test_dates_that_cannot_be_told_are_none(texts):
    assert notation_of(*texts) is None


@pytest.mark.long
@given(st.permutations(["31/01/2024", "05/02/2024", "06/02/2024", "x"] + [f"{day:02}/03/2024" for day in range(1, 26)]))
@settings(deadline=None)
def test_the_order_of_rows_does_not_matter(texts):
    (column,) = infer_schema(pd.DataFrame({"sold": texts})).columns
    assert column.kind is ColumnKind.DATE and column.notation is DAY_FIRST


def test_new_rows_are_read_in_the_notation_of_training():
    days = pd.date_range("2024-01-01", periods=80)
    schema = infer_schema(pd.DataFrame({"sold": days.strftime("%m/%d/%Y")}))
    schema = TableSchema.from_json(json.loads(json.dumps(schema.to_json())))
    assert schema.columns[0].notation is MONTH_FIRST
    # Alone, these could not be told; dates of other types and clear notations fit any column.
    table = pd.DataFrame({"sold": ["1/2/2024", "2024-01-02", "2 Jan 2024", pd.Timestamp("2024-01-02"), "13/1/2024"]})
    coded = schema.code(table)
    assert coded.unseen == {"sold": 1}
    assert (coded.values[:4] == [2024, 1, 2, 1, 19724]).all() and np.isnan(coded.values[4]).all()
    table = pd.DataFrame({"sold": days.strftime("%d.%m.%Y").where(days.day > 12)}).dropna()
    assert "it had dates such as 01/31/2024 and now has '13.01.2024'" in unknown_values_hint(table, schema.code(table))


def reloaded(schema):
    return TableSchema.from_json(json.loads(json.dumps(schema.to_json())))


BIRTHS = pd.date_range("1930-01-01", "1985-12-31", periods=300)


@pytest.mark.parametrize("form", ["%d.%m.%y", "%d-%b-%y"])
def test_the_training_rows_tell_the_century(form):
    schema = reloaded(infer_schema(pd.DataFrame({"born": BIRTHS.strftime("%d.%m.%Y")})))
    assert schema.columns[0].years == (1930, 1985)
    coded = schema.code(pd.DataFrame({"born": BIRTHS.strftime(form)}))
    np.testing.assert_array_equal(coded.values[:, 0], BIRTHS.year)
    np.testing.assert_array_equal(coded.values[:, 3], BIRTHS.day_of_week)
    later = pd.DataFrame({"born": ["29.02.04 10:30", "24.12.2045"]})
    assert schema.code(later).values[:, 0].tolist() == [2004, 2045]


def test_two_digits_are_read_as_in_training_even_beyond_a_century():
    dates = pd.Series(pd.date_range("1969-01-01", "2068-12-31", periods=400))
    table = pd.DataFrame({"born": dates.dt.strftime("%d/%m/%y")})
    schema = infer_schema(table)
    np.testing.assert_array_equal(schema.code(table).values[:, 0], dates.dt.year)


def test_earlier_models_read_two_digits_as_before():
    description = infer_schema(pd.DataFrame({"born": BIRTHS.strftime("%d.%m.%Y")})).to_json()
    del description["columns"][0]["years"]
    coded = TableSchema.from_json(description).code(pd.DataFrame({"born": ["24.12.45"]}))
    assert coded.values[0, 0] == 2045


def test_years_need_dates_and_order():
    description = infer_schema(pd.DataFrame({"born": BIRTHS, "size": range(300)})).to_json()
    for position, years in ((0, [1985, 1930]), (0, [1930]), (1, [1930, 1985])):
        broken = json.loads(json.dumps(description))
        broken["columns"][position]["years"] = years
        with pytest.raises(ValueError, match="years"):
            TableSchema.from_json(broken)


@pytest.mark.parametrize("form", ["%m/%d/%Y", "%m.%d.%Y", "%m-%d-%Y 10:30"])
def test_dates_whose_day_and_month_have_changed_places_are_refused(form):
    schema = infer_schema(pd.DataFrame({"born": BIRTHS.strftime("%d.%m.%Y")}))
    table = pd.DataFrame({"born": ["unknown", *BIRTHS.strftime(form)]})
    with pytest.raises(SchemaError, match=r"'born' had dates with the day first.*, such as 31\.01\.2024, but now day"):
        schema.code(table)


def test_a_few_errors_do_not_change_the_places_of_day_and_month():
    schema = infer_schema(pd.DataFrame({"born": BIRTHS.strftime("%d.%m.%Y")}))
    for texts in (
        ["02/19/1939", "02/03/1945"],  # perhaps an error
        ["02/19/1939", "02/20/1939", "19/03/1945", "02/03/1945"],  # the last but one is right
        ["02/19/1939", "02/20/1939", "03/03/1945", "1945-03-02"],  # none is misread
    ):
        n_unread = sum(text.startswith(("02/19", "02/20")) for text in texts)
        assert schema.code(pd.DataFrame({"born": texts})).unseen == {"born": n_unread}


def test_years_of_two_digits_beyond_31_are_no_days():
    assert notation_of(*(f"24.01.{year}" for year in range(30, 80))) is DAY_FIRST
    assert notation_of(*BIRTHS.strftime("%m/%d/%y")) is MONTH_FIRST
    assert notation_of(*BIRTHS.strftime("%y/%m/%d")) is None


def test_ambiguous_dates_are_named():
    table = pd.DataFrame({"sold": ["1/2/2024", "3/4/2024"] * 20})
    schema = infer_schema(table)
    assert schema.columns[0].kind is ColumnKind.CATEGORICAL
    assert "'sold' holds dates, such as '1/2/2024', which are not read as dates" in kind_hint(table, schema)


def test_a_notation_needs_dates():
    stored = infer_schema(pd.DataFrame({"a": ["x", "y"]})).to_json()
    stored["columns"][0]["notation"] = "day first"
    with pytest.raises(ValueError, match="'a' has a notation of dates, but no dates"):
        TableSchema.from_json(stored)
    stored["columns"][0]["notation"] = "of the moon"
    with pytest.raises(ValueError, match="of the moon"):
        TableSchema.from_json(stored)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2024-12-31T23:05:09.250+02:00", "2024-12-31T21:05:09.25"),
        ("2024-12-31 22:30 -0530", "2025-01-01T04:00"),
        ("2024-12-31 23:05Z", "2024-12-31T23:05"),
        ("2024-12-31+01:00", "2024-12-30T23:00"),
        ("31 Dec 2024 -05:00", "2024-12-31T05:00"),
        ("31-Dec-2024", "2024-12-31"),  # ends like an offset
        ("Dec-2024", "2024-12-01"),
        ("2024-02", "2024-02-01"),
        ("-0500", "NaT"),
    ],
)
def test_moments_heed_offsets(written, expected):
    np.testing.assert_array_equal(read_moments(text(written)), np.array([expected], dtype="datetime64[us]"))


def test_years_last_are_no_offsets():
    np.testing.assert_array_equal(
        read_moments(text("31-12-2024", "31-12-2024 10:00+01:00"), DAY_FIRST),
        np.array(["2024-12-31", "2024-12-31T09:00"], dtype="datetime64[us]"),
    )


def test_rows_are_ordered_by_dates_in_any_notation():
    assert np.argsort(read_times(text("31.1.2024", "1.2.2024", "30.1.2024"), "when")).tolist() == [2, 0, 1]
    assert np.argsort(read_times(text("2023-11", "2023-04", "2024-01"), "when")).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["2024-01-01"] * 40 + ["soon"], "1 value did not fit, for example 'soon'. Write"),
        (["1/2/2024", "3/4/2024"], "for example '1/2/2024', where it is not clear whether day or month comes first"),
    ],
)
def test_what_does_not_order_rows_is_shown(texts, words):
    with pytest.raises(ColumnTypeError, match=words):
        read_times(text(*texts), "when")
    with pytest.raises(ColumnTypeError, match="it holds categories"):
        read_times(text("2024-01-01", "2024-01-02").astype("category"), "when")
