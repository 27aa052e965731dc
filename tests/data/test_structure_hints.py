from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.schema import infer_schema
from cashmere.data.structure_hints import structure_hint

N = 200
RNG = np.random.default_rng(0)


def hint(**columns):
    frame = pd.DataFrame({"size": RNG.normal(size=N), **columns})
    return structure_hint(infer_schema(frame).code(frame))


def test_dates_are_named():
    dates = pd.date_range("2024-01-01", periods=N)
    text = hint(day=dates, other=dates.strftime("%Y-%m-%d")[::-1])
    assert text.startswith("Columns 'day', 'other' hold dates.") and "time='day'" in text and "groups" not in text


def test_dates_of_birth_do_not_order_rows():
    born = pd.date_range("1930-01-01", periods=N, freq="90D")
    text = hint(born=born, seen=pd.date_range("2024-01-01", periods=N), entered=pd.date_range("2010-01-01", periods=N))
    assert "Columns 'born', 'seen', 'entered' hold dates." in text
    assert "give the dates of the rows, perhaps time='seen' (--time)" in text
    assert "give time='born' (--time)" in hint(born=born)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("patient_id", np.arange(N) // 4),
        ("PatientID", np.arange(N) // 4),
        ("customer", [f"c{i // 3}" for i in range(N)]),
        ("user id", np.where(np.arange(N) % 10 == 0, np.nan, np.arange(N) // 5)),
        ("Speaker Number", [f"speaker {'abcdefghijkl'[i % 12]}" for i in range(N)]),
        ("customer_no", np.arange(N) // 4),
        ("ward", [f"W-{i // 3:04}" for i in range(N)]),  # texts with digits
    ],
)
def test_repeated_identifiers_are_named(name, values):
    text = hint(**{name: values})
    assert text.startswith(f"Column {name!r} holds identifiers") and f"groups={name!r}" in text
    are_numbers = np.asarray(values).dtype.kind in "if"
    assert ("let it be categories (--categorical" in text) == are_numbers


def test_in_time_only_identifiers_are_named():
    days = pd.date_range("2024-01-01", periods=N)
    codes = [f"K{i // 4}.1" for i in range(N)]  # of a diagnosis, perhaps
    frame = pd.DataFrame({"patient_id": np.arange(N) // 4, "day": days, "id": range(N), "icd": codes})
    coded = infer_schema(frame).code(frame)
    text = structure_hint(coded, in_time=True)
    assert text.startswith("Column 'patient_id' holds identifiers") and "instead of time" in text
    assert not any(name in text for name in ("'day'", "'id'", "'icd'"))
    rest = frame.drop(columns="patient_id")
    assert structure_hint(infer_schema(rest).code(rest), in_time=True) is None


@pytest.mark.parametrize("name", ["Unnamed: 0", "id", "row_no", "Index", "patient_id", "policy_id"])
def test_numbers_of_rows_are_named(name):
    text = hint(**{name: RNG.permutation(N) + 1})
    assert text.startswith(f"Column {name!r} holds the numbers of the rows.") and f"time={name!r}" in text


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("patient_id", 3 * np.arange(N)),  # each in one row, not consecutive
        ("price", np.arange(N)),
        ("index", np.arange(N) * 2),
        ("patient_id", np.arange(N) % 4),  # a few values
        ("patient_id", RNG.normal(size=N).round(3)),  # not whole numbers
        ("age", RNG.integers(20, 60, N)),
        ("width", np.arange(N) // 4),  # "id" is not a word of it
        ("account_length", np.arange(N) // 4),  # of an account, but not the account
        ("number_of_rooms", np.arange(N) // 4),
        ("street name", [f"street {'abcdefghijkl'[i % 12]}" for i in range(N)]),
        ("city", [f"{'abcdefghij'[i % 10]}{'klmnop'[i % 6]}" for i in range(N)]),
        ("street", [f"street {i // 20}" for i in range(N)]),
        ("share", [f"{i % 60},5 %" for i in range(N)]),
        ("day", [f"{1 + i % 12}/{1 + i % 7}/2024" for i in range(N)]),
        ("free", [f"some words {i} and more of them" for i in range(N)]),
    ],
)
def test_other_columns_are_not_named(name, values):
    assert hint(**{name: values}) is None


def test_dropped_columns_are_not_named():
    assert hint(day=pd.Timestamp("2024-01-01")) is None


def test_the_demonstration_table_has_no_structure():
    frame = demo_table().drop(columns=DEMO_TARGET)
    assert structure_hint(infer_schema(frame).code(frame)) is None
