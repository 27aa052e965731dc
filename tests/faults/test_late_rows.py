"""A process that encodes rows of a large table is killed: nothing of what it has done is wrong, or done again."""

from __future__ import annotations

import json
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from processes import running, wait_until

from cashmere.data import prepared
from cashmere.data.inference import infer_schema
from cashmere.data.prepared import PreparedFolds, prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.rungs import rungs
from cashmere.data.task import Encoding, TaskType
from cashmere.exceptions import CorruptStoreError

_SLOWLY = """
import sys
import cashmere.data.prepared as prepared
prepared._STEP_CELLS = 1
prepared.PreparedFolds(sys.argv[1]).load(0, "target")
"""


@pytest.fixture
def prepare(tmp_path):
    """Return a function that prepares the folds of a table, at once or late."""
    rng = np.random.default_rng(0)
    n = 60_000
    frame = pd.DataFrame({"n": rng.normal(size=n), "c": rng.choice([f"l{i}" for i in range(100)], n)})
    y = rng.integers(0, 2, n)
    coded = infer_schema(frame).code(frame, compact=True)
    np.savez(tmp_path / "table.npz", values=coded.values)
    folds = make_folds(y, TaskType.BINARY, "holdout", seed=0)

    def folds_in(name, table):
        return prepare_folds(
            tmp_path / name,
            coded,
            y,
            folds,
            [Encoding.TARGET],
            task_type=TaskType.BINARY,
            seed=0,
            rungs=rungs(len(folds[0].train)),
            table=table,
        )[0]

    return {"at once": lambda: folds_in("at_once", None), "late": lambda: folds_in("late", tmp_path / "table.npz")}


def test_rows_that_a_killed_process_has_encoded_are_kept_and_the_others_follow(prepare):
    expected, late = prepare["at once"](), prepare["late"]()
    n_train = len(expected.folds[0].train)
    before = _n_encoded(late.folder)
    with running([sys.executable, "-c", _SLOWLY, late.folder]) as process:
        wait_until(lambda: _n_encoded(late.folder) >= before + 5, by=process)
    done = _n_encoded(late.folder)
    assert before + 5 <= done < n_train
    with (late.folder / "fold0-target-train.npy").open("r+b") as file:  # as if killed in the middle of a step
        file.seek(-(n_train - done) * 2 * 4, 2)
        file.write(b"\xff" * 11)
    np.testing.assert_array_equal(late.load(0, Encoding.TARGET)[0], expected.load(0, Encoding.TARGET)[0])
    assert _n_encoded(late.folder) == n_train


def test_rows_of_a_run_that_was_taken_over_do_not_count_for_its_successor(prepare, monkeypatch):
    expected, late = prepare["at once"](), prepare["late"]()
    write_rows, successor = prepared.write_rows, threading.Thread(target=prepare["late"])

    def write_before_the_takeover(path, *others):
        monkeypatch.undo()
        begun = path.stat().st_ino
        write_rows(path, *others)
        successor.start()
        wait_until(lambda: path.stat().st_ino != begun)

    monkeypatch.setattr(prepared, "write_rows", write_before_the_takeover)
    with pytest.raises(CorruptStoreError, match="was replaced by a process that has taken over"):
        late.load(0, Encoding.TARGET)
    successor.join()
    found = PreparedFolds(late.folder).load(0, Encoding.TARGET)[0]
    np.testing.assert_array_equal(found, expected.load(0, Encoding.TARGET)[0])


def _n_encoded(folder):
    return json.loads((folder / "fold0-target-train.json").read_bytes())["rows"]
