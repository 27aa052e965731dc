"""Rows of another table that a run has learned from are counted, unless such rows repeat each other anyway."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere.data.rows import canonical_rows
from cashmere.data.target import TargetCoding
from cashmere.data.task import TaskType
from cashmere.run.learned_rows import count_learned_rows
from cashmere.storage.directory import TrainingRows, write_json

N_ROWS, N_LEARNED = 400, 300


@pytest.fixture(params=[False, True], ids=["float64", "float32"])
def compact(request):
    return request.param


@pytest.fixture
def count(tmp_path, compact):
    """Return what counts the rows of a table, given the table that a run has learned from."""

    def count(learned, other):
        X, y = learned.drop(columns="y"), learned["y"]
        target, codes = TargetCoding.with_codes(y, TaskType.BINARY, n_rows=len(X))
        canonical = canonical_rows(X, codes)
        schema = canonical.schema(named=True)
        coded = schema.code(X, rows=canonical.source, compact=compact)
        rows = TrainingRows(values=coded.values, texts=coded.texts, y=canonical.y, weight=None)
        rows.save(tmp_path / "table.npz")
        write_json(tmp_path / "schema.json", {"columns": schema.to_json(), "target": target.to_json()})
        return count_learned_rows(tmp_path, other.drop(columns="y"), other["y"])

    return count


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    words = np.array(["roof", "wall", "door", "lock"])
    return pd.DataFrame(
        {
            "size": np.where(rng.random(N_ROWS) < 0.1, np.nan, rng.normal(size=N_ROWS)),
            "zero": np.where(rng.random(N_ROWS) < 0.5, 0.0, -0.0),
            "kind": rng.choice(["a", "b", "c"], size=N_ROWS),
            "note": [" ".join(rng.choice(words, size=12)) for _ in range(N_ROWS)],
            "y": rng.choice(["no", "yes"], size=N_ROWS),
        }
    )


def test_rows_in_both_tables_are_counted_in_any_order_of_rows_and_columns(frame, count):
    other = frame.iloc[::-1][["y", "note", "zero", "kind", "size"]].assign(zero=-frame["zero"])
    assert count(frame[:N_LEARNED], other) == N_LEARNED
    assert count(frame[:N_LEARNED], frame[N_LEARNED - 20 :]) == 20
    assert count(frame[:N_LEARNED], frame[N_LEARNED:]) == 0


def test_a_row_with_another_target_is_another_row(frame, count):
    other = frame.assign(y=frame["y"].map({"no": "yes", "yes": "no"}))
    assert count(frame[:N_LEARNED], other) == 0


def test_rows_that_repeat_each_other_are_no_sign(frame, count):
    few_values = frame[["kind", "y"]].assign(one=1.0)
    assert count(few_values[:N_LEARNED], few_values[N_LEARNED:]) == 0


def test_few_rows_of_many_may_be_the_same_by_chance(frame, count):
    rare = pd.concat([frame[N_LEARNED:], frame[:1]])
    assert count(frame[:N_LEARNED], rare) == 0
