"""Many rows are predicted like few ones, however that is made faster."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from ConfigSpace import Configuration

from cashmere import AutoClassifier
from cashmere.data.task import Encoding, TaskProfile, TaskType
from cashmere.model.fold_model import FoldModel, fit_fold_model
from cashmere.model.many_rows import LEAST_ROWS, for_many_rows, has_threads, predict_in_threads
from cashmere.space import BuildContext, make_space

N_CLASSES = {TaskType.BINARY: 2, TaskType.MULTICLASS: 3, TaskType.REGRESSION: 1}
ROUNDS = {
    "lightgbm": "lightgbm:n_estimators",
    "xgboost": "xgboost:n_estimators",
    "hist_gradient_boosting": "hist_gradient_boosting:max_iter",
    "random_forest": None,
    "mlp": None,
}


def fitted(name, task, n_rounds=130) -> FoldModel:
    """Fit an algorithm on 400 rows of two numbers with gaps and a category."""
    profile = TaskProfile(task_type=task, n_rows=400, n_columns=3, n_classes=N_CLASSES[task], has_categories=True)
    space = make_space("classic", profile).restricted_to([name])
    values = dict(space.default_configurations()[0])
    if (rounds := ROUNDS[name]) is not None:
        values[rounds] = n_rounds
    configuration = Configuration(space.configuration_space, values=values)
    encoding = space.encoding_of(configuration)
    X, y = table(400, task, gaps=encoding is Encoding.ORDINAL)
    context = BuildContext(
        task_type=task,
        n_classes=N_CLASSES[task],
        n_rows=400,
        n_features=3,
        categorical=np.array([False, False, encoding is Encoding.ORDINAL]),
    )
    return fit_fold_model(space.build(configuration, context), encoding, X, y, n_classes=N_CLASSES[task])


def table(n_rows, task, *, gaps=True):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 3)).astype(np.float32)
    X[:, 2] = rng.integers(0, 12, n_rows)
    signal = X[:, 0] + X[:, 1] ** 2 + np.sin(X[:, 2])
    if gaps:
        X[rng.random(n_rows) < 0.1, 0] = np.nan
    return X, signal if task is TaskType.REGRESSION else np.digitize(signal, [0.5, 2.0][: N_CLASSES[task] - 1])


@pytest.mark.parametrize("task", list(TaskType))
def test_lightgbm_predicts_the_same_some_trees_at_a_time(task):
    model = fitted("lightgbm", task)
    X, _ = table(LEAST_ROWS, task)
    faster = for_many_rows(model, LEAST_ROWS, n_threads=1)
    assert len(faster.pipeline.turns) > 2
    np.testing.assert_allclose(faster.predict(X), model.predict(X), rtol=2e-7)  # doubles are added in another order


@pytest.mark.parametrize("n_rows", [LEAST_ROWS, 100_000])
@pytest.mark.parametrize("task", list(TaskType))
def test_xgboost_predicts_the_same_bit_for_bit(task, n_rows):
    pytest.importorskip("xgboost")
    model = fitted("xgboost", task, n_rounds=230)
    X, _ = table(LEAST_ROWS, task)
    X[:3, 2] = np.nan, 12, 1000  # missing and unseen levels
    faster = for_many_rows(model, n_rows, n_threads=1)
    assert len(faster.pipeline.turns) > 2
    assert (faster.pipeline.indicators is not None) == (n_rows == 100_000)
    predicted = faster.predict(X)
    assert predicted.dtype == np.float32
    np.testing.assert_array_equal(predicted, model.predict(X))


def test_too_many_sets_of_categories_stay_splits(monkeypatch):
    pytest.importorskip("xgboost")
    monkeypatch.setattr("cashmere.model.category_indicators._MOST_SETS", 3)
    faster = for_many_rows(fitted("xgboost", TaskType.BINARY, n_rounds=230), 100_000, n_threads=1)
    assert faster.pipeline.indicators is None


@pytest.mark.parametrize(("n_rows", "n_rounds"), [(LEAST_ROWS - 1, 130), (LEAST_ROWS, 50)])
def test_few_rows_or_trees_are_not_worth_it(n_rows, n_rounds):
    model = fitted("lightgbm", TaskType.BINARY, n_rounds)
    assert for_many_rows(model, n_rows, n_threads=1) is model


def test_lightgbm_with_another_objective_is_left_alone():
    from lightgbm import LGBMRegressor
    from sklearn.pipeline import Pipeline

    X, _ = table(400, TaskType.REGRESSION)
    learner = LGBMRegressor(objective="poisson", n_estimators=130, verbose=-1).fit(X, np.exp(X[:, 1]))
    model = FoldModel(pipeline=Pipeline([("learner", learner)]), encoding=Encoding.ORDINAL, classes=None, n_classes=1)
    assert for_many_rows(model, LEAST_ROWS, n_threads=1) is model


@pytest.mark.parametrize(
    ("name", "task"),
    [("random_forest", TaskType.MULTICLASS), ("random_forest", TaskType.REGRESSION), ("mlp", TaskType.MULTICLASS)],
)
def test_rows_of_learners_without_threads_are_shared_among_threads(name, task):
    model = fitted(name, task)
    X, _ = table(3 * LEAST_ROWS, task, gaps=False)
    assert not has_threads(model.pipeline[-1])
    np.testing.assert_allclose(predict_in_threads(model, X, n_threads=3), model.predict(X), rtol=1e-6, atol=1e-7)


def test_threads_get_no_fewer_rows_than_they_are_worth(monkeypatch):
    model = fitted("random_forest", TaskType.BINARY)
    parts = []

    class Noting(type(model.pipeline)):
        def predict_proba(self, X):
            parts.append((len(X), threading.current_thread()))
            return super().predict_proba(X)

    model.pipeline.__class__ = Noting
    X, _ = table(LEAST_ROWS, TaskType.BINARY, gaps=False)
    predict_in_threads(model, X, n_threads=64)
    assert [n for n, _ in parts] == [LEAST_ROWS // 2] * 2
    parts.clear()
    predict_in_threads(model, X[:1999], n_threads=64)
    assert parts == [(1999, threading.main_thread())]


@pytest.mark.parametrize("task", list(TaskType))
def test_histogram_boosting_predicts_the_same_some_rows_at_a_time(task, monkeypatch):
    model = fitted("hist_gradient_boosting", task)
    parts, predict = [], FoldModel.predict
    X, _ = table(5 * LEAST_ROWS, task)
    whole = model.predict(X)
    monkeypatch.setattr(FoldModel, "predict", lambda self, X: (parts.append(len(X)), predict(self, X))[1])
    monkeypatch.setattr("cashmere.model.many_rows._CELLS_IN_CACHE", 2 * LEAST_ROWS * X.shape[1])
    np.testing.assert_array_equal(predict_in_threads(model, X, n_threads=1), whole)
    assert len(parts) == 3 and max(parts) <= 2 * LEAST_ROWS
    parts.clear()
    np.testing.assert_array_equal(predict_in_threads(model, X[:1], n_threads=2), whole[:1])
    assert parts == [1]


@pytest.mark.long
def test_a_long_table_is_predicted_like_its_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 2)), rng.integers(0, 4, 300)]).astype(object)
    X[:, 2] = np.array(["red", "green", "blue", "grey"])[X[:, 2].astype(int)]
    X[::17, 0] = None
    y = (rng.normal(size=300) + np.where(X[:, 2] == "red", 2, 0)) > 0.5

    def space(profile):
        return make_space("default", profile).restricted_to(["lightgbm", "extra_trees", "logistic_regression"])

    model = AutoClassifier(budget="4trials", isolation="none", space=space, ensemble="bagging").fit(X, y)
    assert len(model._predictor.ensemble.members) > 2
    few = model.predict_proba(X)
    rows = rng.integers(0, 300, 45_000)
    np.testing.assert_allclose(model.predict_proba(X[rows]), few[rows], rtol=1e-6, atol=1e-7)
