"""A process that encodes rows of a large table is killed: nothing of what it has done is wrong, or done again."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd

from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.rungs import rungs
from cashmere.data.schema import infer_schema
from cashmere.data.task import Encoding, TaskType

_SLOWLY = """
import sys
import cashmere.data.prepared as prepared
prepared._STEP_CELLS = 1
prepared.PreparedFolds(sys.argv[1]).load(0, "target")
"""


def test_rows_that_a_killed_process_has_encoded_are_kept_and_the_others_follow(tmp_path):
    rng = np.random.default_rng(0)
    n = 60_000
    frame = pd.DataFrame({"n": rng.normal(size=n), "c": rng.choice([f"l{i}" for i in range(100)], n)})
    y = rng.integers(0, 2, n)
    coded = infer_schema(frame).code(frame, compact=True)
    np.savez(tmp_path / "table.npz", values=coded.values)
    folds = make_folds(y, TaskType.BINARY, "holdout", seed=0)
    expected, late = (
        prepare_folds(
            tmp_path / name, coded, y, folds, [Encoding.TARGET], task_type=TaskType.BINARY, seed=0,
            rungs=rungs(len(folds[0].train)), table=table,
        )[0]
        for name, table in (("at_once", None), ("late", tmp_path / "table.npz"))
    )  # fmt: skip
    before = _n_encoded(late.folder)
    process = subprocess.Popen([sys.executable, "-c", _SLOWLY, str(late.folder)])
    try:
        deadline = time.monotonic() + 60
        while _n_encoded(late.folder) < before + 5 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    done = _n_encoded(late.folder)
    assert before + 5 <= done < len(folds[0].train)
    with (late.folder / "fold0-target-train.npy").open("r+b") as file:  # as if killed in the middle of a step
        file.seek(-(len(folds[0].train) - done) * 2 * 4, 2)
        file.write(b"\xff" * 11)
    np.testing.assert_array_equal(late.load(0, Encoding.TARGET)[0], expected.load(0, Encoding.TARGET)[0])
    assert _n_encoded(late.folder) == len(folds[0].train)


def _n_encoded(folder):
    return json.loads((folder / "fold0-target-train.json").read_bytes())["rows"]
