"""Rows of another table that a run has learned from are counted, unless such rows repeat each other anyway."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.data.rows import canonical_rows
from cashmere.data.target import TargetCoding
from cashmere.data.task import TaskType
from cashmere.exceptions import CorruptStoreError
from cashmere.run.learned_rows import count_learned_groups, count_learned_rows
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


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_are_found_by_their_names(tmp_path, weighted):
    frame = pd.DataFrame({"size": range(9)})
    structure = RowStructure.from_values([7, 7, 1, 1, 2, 2, 3, 3, 4], StructureKind.GROUPS)
    weight = np.arange(9) % 8 > 1 if weighted else None  # 7 and 4 are left out
    canonical = canonical_rows(frame, np.arange(9), weight, structure=structure)
    coded = canonical.schema().code(frame, rows=canonical.source)
    rows = TrainingRows(values=coded.values, texts=(), y=canonical.y, weight=None, structure=canonical.structure)
    rows.save(tmp_path / "table.npz")
    given = pd.Series(["7", "1", "1 ", "8", None, "4"], name="patient")
    assert count_learned_groups(tmp_path, given) == (1 if weighted else 3, 4)
    assert count_learned_groups(tmp_path, pd.Series([7.0, 2.0, np.nan])) == (1 if weighted else 2, 2)


def test_digests_of_groups_that_do_not_fit_are_refused(tmp_path):
    structure = RowStructure(kind=StructureKind.GROUPS, codes=np.array([0, 1]), digests=np.array([5]))
    rows = TrainingRows(values=np.zeros((2, 1)), texts=(), y=np.arange(2), weight=None, structure=structure)
    rows.save(tmp_path / "table.npz")
    with pytest.raises(CorruptStoreError, match="its digests are not one for each group"):
        TrainingRows.read(tmp_path / "table.npz")
