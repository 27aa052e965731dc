from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.inference import infer_schema
from cashmere.data.structure_hints import feature_that_is_the_groups, structure_hint

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


def test_columns_called_identifiers_are_suggested_before_others():
    text = hint(subject=[f"c{i // 3}" for i in range(N)], customer_id=np.arange(N) // 4)
    assert text.startswith("Columns 'customer_id', 'subject' hold identifiers") and "groups='customer_id'" in text


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
        ("Age_of_patient", np.arange(N) // 4),  # of a patient
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


N_OWNERS = 150
OWNERS = np.repeat(np.arange(N_OWNERS), 4)


@pytest.mark.parametrize("highest", [10**6, 10**9])
@pytest.mark.parametrize("compact", [False, True])
def test_far_spread_numbers_in_a_few_rows_each_look_like_identifiers(highest, compact):
    rng = np.random.default_rng(1)
    numbers = rng.choice(highest, N_OWNERS, replace=False)[OWNERS]
    numbers[rng.random(len(numbers)) < 0.1] = rng.integers(0, highest)  # one in many rows, some in a single one
    frame = pd.DataFrame({"pat": numbers, "size": rng.normal(size=len(numbers))})
    text = structure_hint(infer_schema(frame).code(frame, compact=compact))
    assert text.startswith(
        "Column 'pat' holds numbers that look like identifiers, each in a few rows. If rows with new"
    )
    assert "groups='pat'" in text and "--categorical pat" in text
    frame["patient"] = [f"p{i}" for i in OWNERS]  # then it may be what is known of each
    text = structure_hint(infer_schema(frame).code(frame))
    assert text.startswith("Column 'patient' holds identifiers that several rows share.")


@pytest.mark.parametrize(
    "values",
    [
        RNG.integers(18, 95, 600),  # ages
        np.round(365.25 * RNG.integers(18, 95, 400)),  # ages in days
        np.exp(RNG.normal(10, 1, 600)).round(-2),  # rounded incomes
        RNG.choice([499, 999, 1999, 2499], 600) + 100 * RNG.integers(0, 20, 600),  # prices in cents
        RNG.negative_binomial(1, 0.005, 1500),  # counts
        RNG.integers(1950, 2024, 400),
        RNG.choice(10**6, N_OWNERS)[OWNERS] - 500_000,  # negative numbers identify nothing
        RNG.choice(10**6, N_OWNERS)[OWNERS] + 0.5,
        RNG.choice(10**6, 60)[np.arange(1200) % 60],  # each in many rows
    ],
)
def test_measurements_do_not_look_like_identifiers(values):
    frame = pd.DataFrame({"x": values, "size": RNG.normal(size=len(values))})
    assert structure_hint(infer_schema(frame).code(frame)) is None


@pytest.mark.parametrize("values", [[f"p{i // 2}" for i in range(N)], np.arange(N) // 2, np.arange(N) // 2 == 3])
def test_groups_among_the_features_are_found_by_their_values(values):
    frame = pd.DataFrame({"size": RNG.normal(size=N), "patient": values})
    for groups in (frame["patient"], frame["patient"].to_numpy(), list(values), frame["patient"].rename("x")):
        text = feature_that_is_the_groups(frame, groups)
        assert "column 'patient' has their values" in text and "groups='patient'" in text
    for other in (None, "patient", frame["patient"].iloc[::-1], frame["patient"][:9], frame):
        assert feature_that_is_the_groups(frame, other) is None
