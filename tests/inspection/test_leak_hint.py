"""A column that leaks the target, found at the start of a run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier
from cashmere.data.inference import infer_schema
from cashmere.data.task import TaskType
from cashmere.exceptions import TargetWarning
from cashmere.inspection.leak_hint import leak_hint

N = 400


def coded(**columns):
    frame = pd.DataFrame(columns)
    return infer_schema(frame).code(frame)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_copies_of_the_target_are_named(rng):
    y = rng.integers(0, 3, N)
    table = coded(a=rng.normal(size=N), b=10.0 * y, c=rng.normal(size=N))
    assert "Column 'b' predicts the target nearly alone (skill 1.000)" in leak_hint(table, y, TaskType.MULTICLASS)
    words = coded(a=rng.normal(size=N), b=np.array(["x", "y", "z"])[y])
    assert "'b'" in leak_hint(words, y, TaskType.MULTICLASS)
    amounts = rng.normal(size=N)
    euros = coded(a=rng.normal(size=N), price=np.exp(amounts))
    assert "'price'" in leak_hint(euros, amounts, TaskType.REGRESSION)


def test_a_leak_of_a_rare_class_is_named(rng):
    y = (np.arange(20_000) % 100 == 0).astype(int)
    table = coded(a=rng.normal(size=len(y)), fee=np.where(y == 1, rng.uniform(5, 9, len(y)), np.nan))
    assert "'fee'" in leak_hint(table, y, TaskType.BINARY)


def test_a_flag_that_is_sometimes_wrong_is_named(rng):
    y = rng.integers(0, 2, 2000)
    flag = np.where(rng.random(2000) < 0.01, 1 - y, y)
    assert "predicts the target nearly alone" in leak_hint(coded(a=rng.normal(size=2000), b=flag), y, TaskType.BINARY)


def test_a_flag_of_most_of_a_rare_class_is_named(rng):
    y = (rng.random(4000) < 0.02).astype(int)
    dispute = y * (rng.random(4000) < 0.75)
    table = coded(a=rng.normal(size=4000), dispute=dispute)
    assert "'dispute' predicts much of a rare class alone" in leak_hint(table, y, TaskType.BINARY)


def test_honest_columns_are_not_named(rng):
    a, b = rng.normal(size=(2, N))
    y = (a + b > 0).astype(int)  # both together predict well, neither does alone
    assert leak_hint(coded(a=a, b=b), y, TaskType.BINARY) is None
    noisy = (a + 0.3 * rng.normal(size=N) > 0).astype(int)
    assert leak_hint(coded(a=a, b=b), noisy, TaskType.BINARY) is None


def test_dates_and_tiny_tables_are_left_out(rng):
    y = np.arange(N) // 200
    days = pd.date_range("2024-01-01", periods=N).astype(str)
    assert leak_hint(coded(a=rng.normal(size=N), day=days), y, TaskType.BINARY) is None
    assert leak_hint(coded(a=np.arange(20.0)), np.arange(20) % 2, TaskType.BINARY) is None


def test_wide_tables_are_looked_at_too(rng):
    y = rng.integers(0, 2, N)
    values = rng.normal(size=(N, 3000))
    values[:, 2500] = y
    table = coded(**{f"x{i}": column for i, column in enumerate(values.T)})
    assert "'x2500'" in leak_hint(table, y, TaskType.BINARY)


def test_fit_warns_of_a_leak_and_the_report_repeats_it(rng, tmp_path):
    y = rng.integers(0, 2, N)
    X = pd.DataFrame({"a": rng.normal(size=N), "paid": y * 80.5})
    model = AutoClassifier(budget="1trials", isolation="none", run_directory=tmp_path / "run", include="extra_trees")
    with pytest.warns(TargetWarning, match="'paid' predicts the target nearly alone"):
        model.fit(X, y)
    assert "&#39;paid&#39; predicts the target nearly alone" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.parametrize("rare", [False, True])
def test_texts_that_hold_the_target_are_named_and_honest_ones_are_not(rng, rare):
    words = np.array([f"word{i}" for i in range(60)])
    y = (np.arange(N) % (25 if rare else 2) == 0).astype(int)
    filler = [" ".join(rng.choice(words, 6)) for _ in range(N)]
    labels = np.array(["closed as none", "closed as refund"])[y]
    leaking = [f"{text} {label}" for text, label in zip(filler, labels, strict=True)]
    honest = [text if rng.random() < 0.2 else more for text, more in zip(filler, leaking, strict=True)]
    for columns in ({"note": leaking}, {"a": rng.normal(size=N), "note": leaking}):
        found = leak_hint(coded(**columns), y, TaskType.BINARY)
        assert "Column 'note' predicts the target nearly alone (skill 0.9" in found
    assert leak_hint(coded(note=honest, more=filler), y, TaskType.BINARY) is None
