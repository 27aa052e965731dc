"""Trials under deviances: boosters learn logarithms of means, and every learner's predictions are judged."""

from __future__ import annotations

import numpy as np
import pytest

from cashmere.data.frames import to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.model.archives import load_fold_models
from cashmere.records.trial import Trial
from cashmere.space import make_space

TASK, N_ROWS = TaskType.REGRESSION, 400
BOOSTERS = ("lightgbm", "xgboost", "hist_gradient_boosting")


class Rows:
    """Rows whose mean is the exponential of a sum: a few rows have most of the target."""

    def __init__(self, folder, metric):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(N_ROWS, 2))
        mean = np.exp(1.2 * X[:, 0] + X[:, 1] - 1)
        counts = rng.poisson(mean)
        self.y = {
            "poisson": counts,
            "tweedie": counts * rng.gamma(2.0, size=N_ROWS),
            "gamma": rng.gamma(2.0, mean / 2),
        }[metric.name.partition("@")[0]].astype(float)
        frame = to_frame(X)
        self.folds, _ = prepare_folds(
            folder, infer_schema(frame).code(frame), self.y, make_folds(self.y, TASK, "3fold", seed=0),
            ["onehot", "ordinal"], task_type=TASK, seed=0,
        )  # fmt: skip
        self.folder, self.metric = folder, metric

    def outcome(self, algorithm, power, space="default"):
        profile = TaskProfile(task_type=TASK, n_rows=N_ROWS, n_columns=2, power=power)
        made = make_space(space, profile)
        objective = CrossValidationObjective(folder=self.folder, space=made, metric=self.metric)
        return objective(Trial(number=0, configuration=made.completed({"algorithm": algorithm}), seed=1))


@pytest.fixture(scope="module", params=["poisson", "gamma", "tweedie@1.4"])
def rows(request, tmp_path_factory):
    return Rows(tmp_path_factory.mktemp("deviance") / "folds", get_metric(request.param, TASK))


@pytest.mark.parametrize("space", ["default", pytest.param("classic", marks=pytest.mark.slow)])
@pytest.mark.parametrize("algorithm", BOOSTERS)
def test_boosters_learn_by_the_deviance(rows, algorithm, space):
    if algorithm == "hist_gradient_boosting" and rows.metric.power == 1.4:
        pytest.skip("the library knows no such loss")
    own, squared = (rows.outcome(algorithm, power, space) for power in (rows.metric.power, None))
    assert own.loss < squared.loss
    assert (own.predictions > 0).all()
    rows.folder.with_name("model.skops").write_bytes(own.model)
    for k, model in enumerate(load_fold_models(rows.folder.with_name("model.skops"))):
        unseen, fold = rows.folds.load(k, model.encoding, 1.0)[1], rows.folds.folds[k]
        np.testing.assert_allclose(model.predict(unseen), own.predictions[fold.validation], rtol=1e-4)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("algorithm", ["catboost", "ridge", "random_forest", "knn"])
def test_other_learners_learn_the_mean_and_are_judged_by_it(rows, algorithm):
    outcome, squared = (rows.outcome(algorithm, power) for power in (rows.metric.power, None))
    assert outcome.loss == squared.loss and np.isfinite(outcome.loss)
    np.testing.assert_array_equal(outcome.predictions, squared.predictions)
