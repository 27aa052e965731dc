from __future__ import annotations

import numpy as np
import pytest
from synthetic_recording import make_recording

from benchmarks.experiments.loss_tau import MODELS, judge
from cashmere.data.task import TaskType


@pytest.mark.parametrize("task_type", [TaskType.BINARY, TaskType.REGRESSION])
def test_all_models_are_judged_on_the_same_configurations(task_type):
    history = make_recording(task_type, n=80, n_rows=120, failures=tuple(range(0, 80, 9)))
    rows = judge(history, seed=1, n=40)
    assert [row.model for row in rows] == list(MODELS)
    assert all(row.tau > 0.1 and 0 <= row.within <= 1 for row in rows)
    assert np.isnan(rows[0].success_auc) and 0 <= rows[1].success_auc <= 1
    assert rows == judge(history, seed=1, n=40) or np.isnan(rows[0].success_auc)
    assert [row.tau for row in rows] == [row.tau for row in judge(history, seed=1, n=40)]
