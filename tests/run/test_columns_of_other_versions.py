"""Runs begun by versions that made other columns of the same table."""

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier
from cashmere.exceptions import RunDirectoryError
from cashmere.storage.store import RunStore

QUICK = {"isolation": "none", "resampling": "2fold", "include": ["lightgbm"]}


@pytest.mark.parametrize("known", [True, False])
def test_a_run_whose_models_read_other_columns_is_not_continued(tmp_path, monkeypatch, known):
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(50)])
    X, y = pd.DataFrame({"t": [" ".join(rng.choice(words, 8)) for _ in range(120)]}), np.arange(120) % 2
    folder = tmp_path / "run"
    monkeypatch.setattr("cashmere.data.preparation._MOST_SCORES", 0)
    AutoClassifier(budget="1trials", run_directory=folder, **QUICK).fit(X, y)
    if not known:
        with RunStore(folder) as store:
            store.set_fact("columns", None)
    AutoClassifier(budget="2trials", run_directory=folder, resume=True, **QUICK).fit(X, y)
    if not known:
        with RunStore(folder) as store:
            store.set_fact("columns", None)
    monkeypatch.undo()
    for _ in range(2):
        with pytest.raises(RunDirectoryError, match="another version of cashmere, whose models read other columns"):
            AutoClassifier(budget="3trials", run_directory=folder, resume=True, **QUICK).fit(X, y)
