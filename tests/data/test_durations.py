from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.data.durations import seconds_of, seconds_of_texts

SPANS = st.timedeltas(min_value=dt.timedelta(days=-9000), max_value=dt.timedelta(days=9000))


@given(st.lists(SPANS, min_size=1, max_size=5))
def test_what_python_and_pandas_write_is_read(spans):
    expected = [span.total_seconds() for span in spans]
    for texts in (pd.Series([str(span) for span in spans]), pd.Series(pd.to_timedelta(spans)).astype(str)):
        np.testing.assert_allclose(seconds_of_texts(texts), expected, rtol=1e-12, atol=1e-6)


@given(st.times())
def test_times_of_day_are_read(time):
    expected = (dt.datetime.combine(dt.date(2024, 1, 1), time) - dt.datetime(2024, 1, 1)).total_seconds()
    assert seconds_of(time) == pytest.approx(expected, abs=1e-9)
    assert seconds_of_texts(pd.Series([time.isoformat()]))[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "12",
        "8:75",
        "8:5",
        "1:00:61",
        "days",
        "5 dayss",
        "2024-01-01 08:15:00",
        "13:15 pm",
        "0:15 am",
        "8:15 xm",
        "-",
        "+",
        "1 days x",
        "50m 2h",
        "2h 3h",
        "2 h x",
        "2h,",
        "h",
        "P",
        "PT",
        "P2H",
        "1.5h",
    ],
)
def test_other_texts_are_none(text):
    assert np.isnan(seconds_of_texts(pd.Series([text]))[0])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h 50m", 10200),
        ("2h50m", 10200),
        ("19h", 68400),
        ("1D 2H 3M 4.5S", 93784.5),
        ("1 day, 2 hours and 3 minutes", 93780),
        ("45 mins", 2700),
        ("PT4M13S", 253),
        ("P1DT12H", 129600),
        ("2:30 PM", 52200),
        ("12:05 a.m.", 300),
        ("12:05pm", 43500),
        ("8:15", 29700),
        ("-0:00:30", -30),
        ("+1:00", 3600),
        ("100:00", 360_000),
        ("1 day", 86400),
        ("-2 days", -172_800),
    ],
)
def test_hand_written_texts_are_read(text, seconds):
    assert seconds_of_texts(pd.Series([text]))[0] == seconds
