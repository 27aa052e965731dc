"""The recorded predictions of a run, fold by fold."""

from __future__ import annotations

import numpy as np
import pytest

from cashmere import AutoRegressor
from cashmere.analysis import read_predictions


@pytest.mark.long
def test_losses_of_folds_are_those_of_their_rows(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    model = AutoRegressor(
        budget="2trials", include="ridge", resampling="3fold", isolation="none", run_directory=tmp_path / "run"
    )
    model.fit(X, X[:, 0] + rng.normal(size=90))
    for max_rows in (1000, 40):
        read = read_predictions(tmp_path / "run", max_rows=max_rows)
        assert sorted(np.concatenate(read.folds)) == list(range(len(read.y)))
    read = read_predictions(tmp_path / "run")
    for predictions, trial in zip(read.predictions, model.study_.history, strict=True):
        losses = [np.sqrt(np.mean((predictions[fold] - read.y[fold]) ** 2)) for fold in read.folds]
        np.testing.assert_allclose(losses, trial.fold_losses, rtol=1e-6)
