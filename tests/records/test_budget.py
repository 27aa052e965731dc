from __future__ import annotations

import time
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.exceptions import InvalidParameterError
from cashmere.records.budget import Budget, Deadline, parse_memory_mib, parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds", "trials"),
    [
        ("10m", 600, None),
        ("90s", 90, None),
        ("1h30m", 5400, None),
        ("1.5h", 5400, None),
        ("2d", 172800, None),
        ("250trials", None, 250),
        ("1 trial", None, 1),
        ("10m,250trials", 600, 250),
        ("250 trials, 10 min", 600, 250),
        (42, 42, None),
        (0.5, 0.5, None),
        (np.int64(60), 60, None),
        (np.float32(0.5), 0.5, None),
        (timedelta(minutes=2), 120, None),
        (np.timedelta64(2, "m"), 120, None),
    ],
)
def test_budget_is_understood(text, seconds, trials):
    assert Budget.parse(text) == Budget(seconds=seconds, trials=trials)


@pytest.mark.parametrize(
    "text",
    [
        "",
        timedelta(0),
        np.timedelta64("NaT"),
        "-5m",
        "0s",
        "0trials",
        "-3trials",
        "soon",
        "10",
        "10 m 3",
        "trials",
        "m10",
        "nan",
        "inf",
        "10m,5m",
        "3trials,5trials",
        None,
        True,
        [],
        -1,
        0,
    ],
)
def test_bad_budget_is_refused_and_the_message_says_what_is_expected(text):
    with pytest.raises(InvalidParameterError, match="250trials") as caught:
        Budget.parse(text)
    assert caught.value.parameter == "budget"


@given(st.floats(0.01, 1e6), st.one_of(st.none(), st.integers(1, 10**6)))
def test_budget_text_reads_back(seconds, trials):
    budget = Budget(seconds=round(seconds, 6), trials=trials)
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize(
    ("text", "mib"), [("4GiB", 4096), ("512MiB", 512), ("1GB", 1e9 / 2**20), ("2g", 2048), (100, 100)]
)
def test_memory_is_understood(text, mib):
    assert parse_memory_mib(text) == pytest.approx(mib)


@pytest.mark.parametrize("text", ["", "lots", "-1GiB", "0MB", None, "GiB", "4i", "4iB", "4"])
def test_bad_memory_is_refused(text):
    with pytest.raises(InvalidParameterError, match="4GiB"):
        parse_memory_mib(text)


def test_bad_duration_names_the_parameter():
    with pytest.raises(InvalidParameterError, match="--trial-timeout must be"):
        parse_seconds("soon", "--trial-timeout")


def test_deadline_counts_the_time_already_spent():
    deadline = Deadline(10, already_spent=4)
    assert 4 <= deadline.elapsed < 5
    assert 5 < deadline.remaining <= 6
    assert Deadline(None).remaining == float("inf")
    start = deadline.elapsed
    time.sleep(0.01)
    assert deadline.elapsed > start
