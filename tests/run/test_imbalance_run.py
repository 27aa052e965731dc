"""A whole search in the space `imbalance`, and its model where imbalanced-learn is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier
from cashmere.evaluation.metrics import METRICS
from cashmere.exceptions import IncompatibleParametersError

pytest.importorskip("imblearn")

TABLE = Path(__file__).parents[1] / "tables" / "glass-0-1-6_vs_2.parquet"

PREDICT = """
import importlib.machinery, sys
class Hidden(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] == "imblearn" else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Hidden
import pandas as pd
from cashmere.model.predictor import Predictor
frame = pd.read_parquet(sys.argv[2]).drop(columns="target")
print(*Predictor.load(sys.argv[1]).predict(frame))
"""


def read():
    frame = pd.read_parquet(TABLE)
    return frame.drop(columns="target"), frame["target"]


@pytest.mark.long
def test_search_report_and_prediction_without_the_library(tmp_path):
    X, y = read()
    auto = AutoClassifier(
        space="imbalance",
        metric="g_mean",
        budget="15 trials",
        strategy="random",
        resampling="3fold",
        isolation="none",
        run_directory=tmp_path / "run",
        random_state=1,
    ).fit(X, y)
    assert len(auto.study_.history) == 15
    assert len(auto.study_.history.successes) >= 8
    assert {str(trial.configuration["resampler"]) for trial in auto.study_.history.trials} - {"none"}
    assert auto.failures_["cause"].str.len().gt(0).all()
    predicted = auto.predict(X)
    codes = np.unique(y, return_inverse=True)[1]
    loss = METRICS["g_mean"].loss(codes, np.eye(2)[(predicted == "positive").astype(int)])
    assert loss < 0.5  # the constant predictor has 1
    page = (tmp_path / "run" / "report.html").read_text()
    assert "resampler" in page
    printed = subprocess.run(
        [sys.executable, "-c", PREDICT, str(tmp_path / "run" / "model"), str(TABLE)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.split() == list(predicted)


def test_weights_are_refused_before_the_search(tmp_path):
    X, y = read()
    with pytest.raises(IncompatibleParametersError, match="resampled rows carry no weights"):
        AutoClassifier(space="imbalance", budget="1 trials", run_directory=tmp_path / "run").fit(
            X, y, sample_weight=np.linspace(0.5, 1.5, len(y))
        )
    assert not (tmp_path / "run").exists()
