"""Trials under errors of logarithms: every learner learns log(1 + target), and predicts values again."""

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
from cashmere.evaluation.metrics import METRICS
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.model.archives import load_fold_models
from cashmere.records.trial import Trial
from cashmere.space import make_space

TASK, N_ROWS = TaskType.REGRESSION, 300
PROFILE = TaskProfile(task_type=TASK, n_rows=N_ROWS, n_columns=2)
SPACE, SPACE_OF_LOGARITHMS = (
    make_space("default", replace(PROFILE, learns_logarithms=logarithms)) for logarithms in (False, True)
)


class Rows:
    """Targets between 0 and thousands, whose logarithm is linear."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(N_ROWS, 2))
        self.y = np.floor(np.exp(2 * X[:, 0] + X[:, 1] + rng.normal(scale=0.2, size=N_ROWS)))
        self.folds, _ = prepare_folds(
            folder, infer_schema(to_frame(X)).code(to_frame(X)), self.y, make_folds(self.y, TASK, "3fold", seed=0),
            sorted(SPACE.encodings), task_type=TASK, seed=0,
        )  # fmt: skip
        self.folder = folder

    def outcome(self, algorithm, metric):
        space = SPACE_OF_LOGARITHMS if metric == "rmsle" else SPACE
        objective = CrossValidationObjective(folder=self.folder, space=space, metric=METRICS[metric])
        return objective(Trial(number=0, configuration=space.completed({"algorithm": algorithm}), seed=1))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return Rows(tmp_path_factory.mktemp("logarithms") / "folds")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("algorithm", [each.name for each in SPACE.algorithms])
def test_models_predict_values_of_learned_logarithms(rows, algorithm):
    outcome = rows.outcome(algorithm, "rmsle")
    of_values = METRICS["rmsle"].loss(rows.y, rows.outcome(algorithm, "rmse").predictions)
    assert METRICS["rmsle"].loss(rows.y, outcome.predictions) < 1.02 * of_values  # neighbours do not care
    assert outcome.predictions.min() >= 0 and outcome.predictions.max() <= np.e * (rows.y.max() + 1)
    rows.folder.with_name("model.skops").write_bytes(outcome.model)
    for k, model in enumerate(load_fold_models(rows.folder.with_name("model.skops"))):
        unseen, fold = rows.folds.load(k, model.encoding, 1.0)[1], rows.folds.folds[k]
        largest = np.log1p(rows.y[fold.train].max())
        assert model.log_limit == pytest.approx(largest + 1)
        np.testing.assert_allclose(model.predict(unseen), outcome.predictions[fold.validation], rtol=1e-3, atol=1e-4)


def test_medians_are_those_of_logarithms(rows):
    profile = replace(PROFILE, quantile=0.5)
    losses = []
    for logarithms in (False, True):
        space = make_space("default", replace(profile, learns_logarithms=logarithms))
        objective = CrossValidationObjective(folder=rows.folder, space=space, metric=METRICS["mae"])
        trial = Trial(number=0, configuration=space.completed({"algorithm": "ridge"}), seed=1)
        losses.append(objective(trial).loss)
    assert losses[1] < 0.8 * losses[0]


def test_constant_predictor_predicts_the_value_of_the_mean_logarithm(rows):
    models, loss = fit_baseline(rows.folds, sorted(SPACE.encodings)[0], METRICS["rmsle"])
    train = rows.y[rows.folds.folds[0].train]
    assert models[0].predict(np.zeros((2, 2)))[0] == pytest.approx(np.expm1(np.log1p(train).mean()), rel=1e-6)
    of_means = [
        METRICS["rmsle"].loss(rows.y[fold.validation], np.full(len(fold.validation), rows.y[fold.train].mean()))
        for fold in rows.folds.folds
    ]
    assert loss < np.mean(of_means)
