"""Trials under losses that quantiles minimise: boosters learn the quantile itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cashmere.data.frames import to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.baseline import fit_baseline
from cashmere.evaluation.metrics import get_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.model.archives import load_fold_models
from cashmere.records.trial import Trial
from cashmere.space import make_space

TASK, N_ROWS = TaskType.REGRESSION, 400
METRIC = get_metric("pinball@0.9", TASK)


class Rows:
    """Rows whose spread grows with a column: their 0.9 quantile lies far above their mean."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        X = rng.random((N_ROWS, 2))
        self.y = X[:, 0] + 3 * X[:, 1] * rng.exponential(size=N_ROWS)
        frame = to_frame(X)
        schema = infer_schema(frame)
        self.folds, _ = prepare_folds(
            folder, schema.code(frame), self.y, make_folds(self.y, TASK, "3fold", seed=0), ["onehot", "ordinal"],
            task_type=TASK, seed=0,
        )  # fmt: skip
        self.folder = folder

    def outcome(self, algorithm, quantile, space="default", metric=METRIC):
        profile = TaskProfile(task_type=TASK, n_rows=N_ROWS, n_columns=2, quantile=quantile)
        made = make_space(space, profile)
        objective = CrossValidationObjective(folder=self.folder, space=made, metric=metric)
        return objective(Trial(number=0, configuration=made.completed({"algorithm": algorithm}), seed=1))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return Rows(tmp_path_factory.mktemp("quantile") / "folds")


@pytest.mark.long
@pytest.mark.parametrize("space", ["default", pytest.param("classic", marks=pytest.mark.slow)])
@pytest.mark.parametrize("algorithm", ["lightgbm", "xgboost", "catboost", "hist_gradient_boosting"])
def test_boosters_learn_the_quantile(rows, algorithm, space):
    of_quantile, of_mean = (rows.outcome(algorithm, quantile, space) for quantile in (0.9, None))
    assert of_quantile.loss < 0.9 * of_mean.loss
    below, below_mean = (np.mean(rows.y <= each.predictions) for each in (of_quantile, of_mean))
    assert below > below_mean + 0.1
    if space == "default":  # the rounds of the other are too many for so few rows
        assert below == pytest.approx(0.9, abs=0.1)
    rows.folder.with_name("model.skops").write_bytes(of_quantile.model)
    for k, model in enumerate(load_fold_models(rows.folder.with_name("model.skops"))):
        unseen, fold = rows.folds.load(k, model.encoding, 1.0)[1], rows.folds.folds[k]
        assert np.mean(rows.y[fold.validation] <= model.predict(unseen)) > 0.7  # so do the saved models


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["lightgbm", "xgboost", "catboost", "hist_gradient_boosting", "ridge"])
def test_learners_approach_percentage_errors(rows, algorithm):
    metric = get_metric("mape", TASK)
    weighted = rows.outcome(algorithm, metric.level, metric=metric)
    of_mean = rows.outcome(algorithm, None, metric=replace(metric, level=None))
    assert weighted.loss < 0.75 * of_mean.loss


def test_constant_predictor_is_best_of_all_constants_under_a_percentage_error(rows):
    metric = get_metric("mape", TASK)
    models, loss = fit_baseline(rows.folds, rows.folds.encodings[0], metric)
    train = rows.y[rows.folds.folds[0].train]
    found = models[0].predict(np.zeros((len(train), 2), dtype=np.float32))
    others = np.linspace(train.min(), train.max(), 500)
    assert metric.loss(train, found) <= min(metric.loss(train, np.full(len(train), c)) for c in others) + 1e-3
    assert loss < 1  # that of the median is larger


def test_constant_predictor_is_the_quantile(rows):
    models, loss = fit_baseline(rows.folds, rows.folds.encodings[0], METRIC)
    train = rows.y[rows.folds.folds[0].train]
    assert models[0].predict(np.zeros((1, 2), dtype=np.float32))[0] == pytest.approx(np.quantile(train, 0.9), rel=0.05)
    assert loss > 0
