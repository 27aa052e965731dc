from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from fake_runs import make_run, predictions_of, weighted
from typer.testing import CliRunner

from cashmere import AutoRegressor
from cashmere.analysis import out_of_fold, read_out_of_fold, read_predictions
from cashmere.cli import app
from cashmere.ensembles.calibration import Calibration
from cashmere.exceptions import CorruptStoreError, RunDirectoryError

Y = np.repeat([0, 1], [300, 700])


def test_predictions_are_the_weighted_mean_of_the_members(tmp_path):
    run = make_run(tmp_path / "run", predictions=True, facts=weighted(3, 8))
    found = read_out_of_fold(run)
    expected = (predictions_of(Y, "binary", 3).astype(float) + predictions_of(Y, "binary", 8)) / 2
    np.testing.assert_array_equal(found.y, Y)
    np.testing.assert_allclose(found.predictions, expected, rtol=1e-6)
    assert (found.n_validation_rows, found.weight, found.thresholds, found.rows) == (1000, None, None, None)
    np.testing.assert_array_equal(found.decided, expected.argmax(axis=1))


@pytest.mark.long
def test_rows_are_those_of_the_table_in_its_order(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.permutation(90).astype(float)
    run, model = tmp_path / "run", AutoRegressor(budget="2trials", isolation="none", run_directory=tmp_path / "run")
    model.fit(x[:, None], 2 * x, sample_weight=rng.random(90) < 0.9)
    found = read_out_of_fold(run)
    np.testing.assert_array_equal(found.y, 2 * x[found.rows])
    assert len(found.rows) > 60 and (np.diff(found.rows) > 0).all()
    assert np.all(np.diff(read_out_of_fold(run, max_rows=20).rows) > 0)
    recorded = read_predictions(run)
    np.testing.assert_array_equal(recorded.y, 2 * x[recorded.rows])
    assert len(read_predictions(run, max_rows=20).rows) == 20


def test_predictions_under_a_deviance_keep_the_lower_bound_of_the_model(tmp_path):
    def predicted(metric):
        settings = {"task": "regression", "classes": (), "settings": {"metric": metric}, "facts": weighted(3, 8)}
        return read_out_of_fold(make_run(tmp_path / metric, predictions=True, **settings)).predictions

    free = predicted("rmse")
    assert free.min() < 0
    np.testing.assert_array_equal(predicted("poisson"), np.maximum(free, 0.0005))  # the mean target is 0.5


def test_all_rows_are_read_in_blocks(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", predictions=True, facts=weighted(3, 8))
    whole = read_out_of_fold(run)
    monkeypatch.setattr(out_of_fold, "_BLOCK_VALUES", 100)
    np.testing.assert_array_equal(read_out_of_fold(run).predictions, whole.predictions)


@pytest.mark.long
def test_rows_without_a_target_keep_the_numbers_of_the_others(tmp_path):
    x = np.random.default_rng(0).permutation(90).astype(float)
    table = pd.DataFrame({"x": x, "y": 2 * x})
    table.loc[[0, 1, 50], "y"] = np.nan
    table.to_csv(tmp_path / "table.csv", index=False)
    command = ["fit", tmp_path / "table.csv", "--target", "y", "--drop-missing-target", "--budget", "1trials"]
    done = CliRunner().invoke(app, [*map(str, command), "--include", "ridge", "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    found = read_out_of_fold(tmp_path / "run")
    assert len(found.rows) == 87 and not {0, 1, 50} & set(found.rows)
    np.testing.assert_array_equal(found.y, 2 * x[found.rows])


def test_calibration_and_thresholds_of_the_model_are_used(tmp_path):
    calibration = Calibration(scales=(0.5, 0.5), offsets=(0.3, 0.0), gain=0.01)
    decision = {"metric": "g_mean", "thresholds": [0.3, 0.7], "gain": 0.1, "tuned": True}
    facts = {**weighted(3), "calibration": calibration.to_json(), "decision": decision}
    found = read_out_of_fold(make_run(tmp_path / "run", predictions=True, facts=facts))
    expected = calibration.apply(predictions_of(Y, "binary", 3))
    np.testing.assert_allclose(found.predictions, expected, rtol=1e-6)
    np.testing.assert_array_equal(found.decided, expected[:, 1] >= 0.7)


def test_rows_are_limited_and_values_have_one_column(tmp_path):
    run = make_run(tmp_path / "run", predictions=True, task="regression", classes=(), facts=weighted(3, 8))
    found = read_out_of_fold(run, max_rows=100)
    assert found.predictions.shape == found.y.shape == (100,)
    assert found.n_validation_rows == 1000
    assert np.corrcoef(found.y, found.predictions)[0, 1] > 0.8


def test_unfinished_constant_and_damaged_runs_are_refused(tmp_path):
    with pytest.raises(RunDirectoryError, match="no final ensemble yet"):
        read_out_of_fold(make_run(tmp_path / "open", n_trials=4, finished=False, predictions=True))
    with pytest.raises(RunDirectoryError, match="predicts a constant"):
        read_out_of_fold(make_run(tmp_path / "none", n_trials=2, predictions=True))
    run = make_run(tmp_path / "run", predictions=True, facts=weighted(3, 8))
    np.save(run / "predictions" / "000008.npy", np.full((1000, 2), np.nan, dtype=np.float32))
    with pytest.raises(CorruptStoreError, match="finite"):
        read_out_of_fold(run)
    (run / "predictions" / "000008.npy").unlink()
    with pytest.raises(CorruptStoreError, match="000008"):
        read_out_of_fold(run)
