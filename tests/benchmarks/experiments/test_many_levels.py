"""Categories of many levels: the form of before, and a run."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.many_levels import no_means, numbered_levels, run
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.tables.manifest import find_tables
from cashmere.data.inference import infer_schema
from cashmere.data.preparation import FoldEncoder
from cashmere.data.task import Encoding, TaskType


def test_the_form_of_before_numbers_the_levels():
    frame = pd.DataFrame({"many": [f"v{i:02}" for i in range(21)] * 2, "few": list("abc") * 14})
    schema = infer_schema(frame)
    encoder = FoldEncoder.for_schema(Encoding.ONEHOT, schema)
    with mock.patch.multiple(FoldEncoder, _table=numbered_levels(), _means_of_others=no_means):
        found = encoder.fit_transform(schema.code(frame), np.arange(42) % 2, TaskType.BINARY, 0)
    assert found.shape == (42, 4) and found[:, 0].tolist() == [*range(21)] * 2
    later = pd.DataFrame({"many": ["new", "v20"], "few": ["a", "b"]})
    assert encoder.transform(schema.code(later))[:, 0].tolist() == [-1, 20]


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["logistic_regression", "lightgbm"])
def test_a_run_judges_both_forms(tmp_path, learner):
    rng = np.random.default_rng(0)
    level = rng.integers(0, 40, 400)
    y = np.where(rng.random(400) < 0.1 + 0.8 * (level % 2), "yes", "no")
    pd.DataFrame({"x": rng.normal(size=400), "level": [f"v{i}" for i in level], "target": y}).to_parquet(
        tmp_path / "t.parquet"
    )
    (tmp_path / "manifest.json").write_text('[{"name": "t", "file": "t.parquet", "task": "binary"}]')
    (table,) = find_tables(tmp_path, ["t"])
    (found,) = run(table, RunKey("t", learner, 0, 0.0, 300))
    assert found.means < 0.6 and np.isfinite(found.levels)
    if learner == "logistic_regression":
        assert found.means < found.levels - 0.05
