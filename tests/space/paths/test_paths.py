"""Every path parameter: at each position, a fit predicts like a learner that was fitted that far."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import pickle

import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from cashmere.data.task import Encoding, TaskProfile, TaskType
from cashmere.model.archives import dump
from cashmere.space import BuildContext, make_space
from cashmere.space.path import PathData
from cashmere.space.paths.lightgbm import LightGBMPath
from cashmere.space.paths.positions import geometric

N_CLASSES = {TaskType.BINARY: 2, TaskType.MULTICLASS: 3, TaskType.REGRESSION: 1}
N_TRAIN, N_UNSEEN, N_COLUMNS = 160, 60, 5


@functools.cache
def default_space(task):
    profile = TaskProfile(task_type=task, n_rows=N_TRAIN, n_columns=N_COLUMNS, n_classes=N_CLASSES[task])
    return make_space("default", profile)


CASES = [
    (task, name)
    for task in TaskType
    for name in (a.name for a in default_space(task).algorithms)
    if default_space(task).path_of(default_space(task).completed({"algorithm": name})) is not None
]


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def make_rows(task, *, with_codes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_TRAIN + N_UNSEEN, N_COLUMNS)).astype(np.float32)
    X[:, 1] = rng.integers(0, 4, len(X))
    signal = X[:, 0] + (X[:, 1] == 2) + 0.3 * rng.normal(size=len(X))
    if with_codes:
        X[::9, 1] = np.nan
        X[::7, 2] = np.nan
    if task is TaskType.REGRESSION:
        return X, 1e6 + 1e4 * signal
    return X, np.digitize(signal, np.quantile(signal, np.arange(1, N_CLASSES[task]) / N_CLASSES[task]))


def begin(task, name, *, weighted=False, values=()):
    """Return the algorithm, its unfitted learner, the rows that reach it, and its path."""
    space = default_space(task)
    configuration = space.completed({"algorithm": name, **dict(values)})
    algorithm, with_codes = space.algorithm_of(configuration), space.encoding_of(configuration) is Encoding.ORDINAL
    X, y = make_rows(task, with_codes=with_codes)
    categorical = np.array([with_codes and k == 1 for k in range(N_COLUMNS)])
    context = BuildContext(
        task_type=task,
        n_classes=N_CLASSES[task],
        n_rows=N_TRAIN,
        n_features=N_COLUMNS,
        categorical=categorical,
        seed=3,
    )
    pipeline = space.build(configuration, context)
    train, unseen = X[:N_TRAIN], X[N_TRAIN:]
    for _, step in pipeline.steps[:-1]:
        train, unseen = step.fit_transform(train), step.transform(unseen)
    data = PathData(
        X=train,
        y=y[:N_TRAIN],
        weight=np.linspace(0.5, 1.5, N_TRAIN) if weighted and algorithm.accepts_weights else None,
        unseen=unseen,
        n_classes=N_CLASSES[task],
        categorical=categorical,
        n_threads=1,
    )
    return algorithm, pipeline[-1], data, algorithm.path.follow(pipeline[-1], data)


def predict(learner, data):
    return learner.predict_proba(data.unseen) if data.n_classes > 1 else learner.predict(data.unseen)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("task", "name"), CASES)
def test_learners_at_earlier_positions_predict_what_the_fit_did(task, name, weighted):
    algorithm, _, data, path = begin(task, name, weighted=weighted)
    positions, seen = algorithm.path.positions(N_TRAIN, data.n_classes)[:7], []
    for position in positions:
        path.advance(position)
        seen.append(path.predict())
    scale = np.abs(data.y).max() if data.n_classes == 1 else 1.0
    for position, predicted in zip(positions, seen, strict=True):
        again = predict(path.learner_at(position), data)
        assert np.abs(again - predicted).max() <= 1e-5 * scale
    assert len({np.asarray(p).tobytes() for p in seen}) > 1  # the parameter matters


def test_support_vectors_are_followed_for_classification_only():
    assert [task for task, name in CASES if name == "svm"] == [TaskType.BINARY, TaskType.MULTICLASS]


@pytest.mark.parametrize("basis", ["bins", "similarities"])
@pytest.mark.parametrize("task", TaskType)
def test_linear_models_on_bases_follow_their_penalty(task, basis):
    name = "logistic_regression" if task.is_classification else "ridge"
    algorithm, _, data, path = begin(task, name, values={f"{name}:basis": basis})
    assert data.X.shape[1] > N_COLUMNS
    positions, spread = algorithm.path.positions(N_TRAIN, data.n_classes), []
    for position in positions:
        path.advance(position)
        predicted = path.predict()
        assert np.abs(predict(path.learner_at(position), data) - predicted).max() <= 1e-5 * np.abs(predicted).max()
        spread.append(float(np.var(predicted, axis=0).sum()))
    assert spread[-1] > spread[0]  # weaker penalties differ more from the mean


DIRECTLY = {
    "lightgbm": ("n_estimators", 20),
    "xgboost": ("n_estimators", 20),
    "hist_gradient_boosting": ("max_iter", 20),
    "random_forest": ("n_estimators", 20),
    "extra_trees": ("n_estimators", 20),
    "logistic_regression": ("C", 0.1),
    "svm": ("sharpness", 4.0),
}


@pytest.mark.parametrize(("task", "name"), [case for case in CASES if case[1] in DIRECTLY])
def test_a_path_equals_a_direct_fit(task, name):
    _, _, data, path = begin(task, name, weighted=True)
    parameter, value = DIRECTLY[name]
    positions = [p for p in begin(task, name)[0].path.positions(N_TRAIN, data.n_classes) if p <= value + 1e-9]
    for position in positions:
        path.advance(position)
    assert positions[-1] == pytest.approx(value)
    learner = begin(task, name)[1].set_params(**{parameter: value})
    weighting = {} if data.weight is None else {"sample_weight": data.weight}
    if name == "xgboost":  # the number of the round determines the drawn rows and columns
        learner.set_params(seed_per_iteration=True)
    if name == "hist_gradient_boosting":  # columns are drawn again in every stretch
        learner.set_params(max_features=1.0)
        path = begin_with(task, name, data, max_features=1.0)
        for position in positions:
            path.advance(position)
    tolerance = {"logistic_regression": 2e-3, "xgboost": 1e-5}.get(name, 1e-9)
    expected = predict(learner.fit(data.X, data.y, **weighting), data)
    assert np.abs(path.predict() - expected).max() <= tolerance * max(1.0, np.abs(expected).max())


def test_lightgbm_splits_off_few_rows_if_it_may():
    _, learner, data, _ = begin(TaskType.BINARY, "lightgbm")
    X = np.random.default_rng(0).normal(size=(N_TRAIN, N_COLUMNS)).astype(np.float32)
    X[:, 0] = np.arange(N_TRAIN) < 10  # fewer rows than LightGBM asks for by default
    rare = dataclasses.replace(data, X=X, y=X[:, 0].astype(int), unseen=X)
    path = LightGBMPath(learner.set_params(min_child_samples=5, colsample_bytree=1.0, extra_trees=False), rare)
    path.advance(100)
    predicted = path.predict()[:, 1]
    assert predicted[:10].min() > 0.9
    direct = copy.deepcopy(learner).set_params(n_estimators=100).fit(rare.X, rare.y)
    assert np.abs(predicted - direct.predict_proba(rare.unseen)[:, 1]).max() < 1e-9


def begin_with(task, name, data, **parameters):
    algorithm, learner, _, _ = begin(task, name)
    return algorithm.path.follow(learner.set_params(**parameters), data)


@pytest.mark.parametrize("task", TaskType)
def test_stretches_of_catboost_equal_a_long_fit(task):
    """Long fits take more steps per leaf than short ones unless the number is set."""
    algorithm, learner, data, _ = begin(task, "catboost")
    without_draws = {"bootstrap_type": "No", "random_strength": 0, "rsm": 1.0}
    path = begin_with(task, "catboost", data, **without_draws)
    for position in [p for p in algorithm.path.positions(N_TRAIN, data.n_classes) if p <= 226]:
        path.advance(position)
    chosen_here = ("leaf_estimation_iterations", "iterations", "random_strength", "rsm")
    by_itself = {key: value for key, value in learner.get_params().items() if key not in chosen_here}
    direct = type(learner)(**by_itself, **without_draws, iterations=226).fit(data.X, data.y)
    expected = predict(direct, data)
    assert np.abs(path.predict() - expected).max() <= 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize("n_rows", [N_TRAIN, 4])  # fewer rows than columns: the other matrix of products
def test_ridge_solutions_are_those_of_scikit_learn(n_rows):
    _, learner, data, _ = begin(TaskType.REGRESSION, "ridge")
    few = PathData(
        X=data.X[:n_rows],
        y=data.y[:n_rows],
        weight=np.linspace(0.5, 1.5, n_rows),
        unseen=data.unseen,
        n_classes=1,
        categorical=data.categorical,
        n_threads=1,
    )
    algorithm = default_space(TaskType.REGRESSION).algorithm_of(
        default_space(TaskType.REGRESSION).completed({"algorithm": "ridge"})
    )
    path = algorithm.path.follow(learner, few)
    for alpha in algorithm.path.positions(n_rows, 1):
        path.advance(alpha)
        direct = begin(TaskType.REGRESSION, "ridge")[1]
        direct.regressor.set_params(alpha=alpha, solver="svd")
        direct.fit(few.X.astype(np.float64), few.y, sample_weight=few.weight)
        np.testing.assert_allclose(path.predict(), direct.predict(few.unseen), rtol=1e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("task", "name"), CASES)
def test_same_seed_same_path(task, name):
    both = []
    for _ in range(2):
        algorithm, _, data, path = begin(task, name)
        for position in algorithm.path.positions(N_TRAIN, data.n_classes)[:3]:
            path.advance(position)
        both.append(path.predict())
    assert np.array_equal(*both)


@pytest.mark.parametrize(("task", "name"), CASES)
def test_path_parameter_is_not_in_the_space(task, name):
    space = default_space(task)
    names = {key.partition(":")[2] for key in space.configuration_space if key.startswith(f"{name}:")}
    assert not names & {"n_estimators", "iterations", "max_iter"}
    if name in ("ridge", "logistic_regression"):
        assert not names & {"alpha", "C"}


@given(first=st.integers(1, 1000), growth=st.integers(0, 10_000), ratio=st.floats(1.01, 4.0))
def test_positions_grow_by_the_ratio(first, growth, ratio):
    positions = geometric(first, first + growth, ratio=ratio)
    assert positions[0] == first
    assert positions[-1] == first + growth
    steps = np.diff(positions)
    assert (steps >= 1).all()
    assert all(after <= (before + 1) * ratio + 1 for before, after in itertools.pairwise(positions))


@pytest.mark.parametrize("task", TaskType)
def test_text_of_lightgbm_is_written_once_for_the_model_file(task, monkeypatch):
    _, _, data, path = begin(task, "lightgbm")
    path.advance(8)
    path.advance(16)
    written, original = [], lightgbm.Booster.model_to_string

    def write(booster, *args, **kwargs):
        if booster.current_iteration() > 1:  # not that of the shell, whose one round is replaced
            written.append(booster)
        return original(booster, *args, **kwargs)

    monkeypatch.setattr(lightgbm.Booster, "model_to_string", write)
    learner = path.learner_at(8)
    dump([learner])
    assert len(written) == 1
    again = pickle.loads(pickle.dumps(learner))
    assert len(written) == 1
    assert again._Booster.num_trees() == learner._Booster.num_trees() < path._booster.num_trees()
    np.testing.assert_array_equal(predict(again, data), predict(learner, data))
    monkeypatch.undo()
    # What is kept is what LightGBM would write.
    fresh = copy.copy(learner)
    del fresh._text
    kept, now = learner.__getstate__(), fresh.__getstate__()
    np.testing.assert_array_equal(kept.pop("_booster_text"), now.pop("_booster_text"))
    assert kept.keys() == now.keys()


def test_fit_forgets_the_text_of_an_earlier_booster():
    _, _, data, path = begin(TaskType.REGRESSION, "lightgbm")
    path.advance(8)
    learner = path.learner_at(8)
    learner.set_params(n_estimators=3).fit(np.asarray(data.X), data.y)
    assert pickle.loads(pickle.dumps(learner))._Booster.num_trees() == 3
