"""Fitted built-in pipelines survive the model file with the fixed list of trusted types."""

from __future__ import annotations

import numpy as np
import pytest
import skops.io as sio
from ConfigSpace import Configuration
from threadpoolctl import threadpool_limits

from cashmere.data.task import Encoding, TaskProfile, TaskType
from cashmere.model import TRUSTED_TYPES
from cashmere.space import BuildContext, Space, make_space

N_CLASSES = {TaskType.BINARY: 2, TaskType.MULTICLASS: 3, TaskType.REGRESSION: 1}
N_ROWS = 60


def round_trip(space, configuration):
    task = space.profile.task_type
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 5)).astype(np.float32)
    X[:, 1] = rng.integers(0, 3, N_ROWS)
    y = X[:, 0] + (X[:, 1] == 1)
    categorical = np.zeros(5, dtype=bool)
    categorical[1] = space.encoding_of(configuration) is Encoding.ORDINAL
    if task.is_classification:
        y = np.digitize(y, np.quantile(y, np.arange(1, N_CLASSES[task]) / N_CLASSES[task]))
    context = BuildContext(
        task_type=task, n_classes=N_CLASSES[task], n_rows=N_ROWS, n_features=5, categorical=categorical
    )
    with threadpool_limits(1):
        pipeline = space.build(configuration, context).fit(X, y)
        data = sio.dumps(pipeline)
        untrusted = sio.get_untrusted_types(data=data)
        assert set(untrusted) <= set(TRUSTED_TYPES), set(untrusted) - set(TRUSTED_TYPES)
        loaded = sio.loads(data, trusted=list(TRUSTED_TYPES))
        method = "predict_proba" if task.is_classification else "predict"
        assert np.array_equal(getattr(loaded, method)(X), getattr(pipeline, method)(X))


def make(name, task):
    profile = TaskProfile(task_type=task, n_rows=N_ROWS, n_columns=5, n_classes=N_CLASSES[task], has_categories=True)
    return make_space(name, profile)


@pytest.mark.parametrize("name", ["default", "volcano", "sklearn12"])
@pytest.mark.parametrize("task", [TaskType.MULTICLASS, TaskType.REGRESSION])
def test_every_algorithm(name, task):
    if name == "sklearn12" and task is TaskType.REGRESSION:
        pytest.skip("sklearn12 has classifiers only")
    space = make(name, task)
    for configuration in space.default_configurations():
        round_trip(space, configuration)


@pytest.mark.parametrize("task", [TaskType.MULTICLASS, TaskType.REGRESSION])
@pytest.mark.filterwarnings("ignore:FastICA did not converge")
def test_every_operator(task):
    volcano = make("volcano", task)
    knn = tuple(algorithm for algorithm in volcano.algorithms if algorithm.name == "knn")
    for step, operators in volcano.operators.items():
        for operator in operators:
            space = Space(name="one", algorithms=knn, operators={step: (operator,)}, profile=volcano.profile)
            round_trip(space, space.default_configurations()[0])


def test_every_choice_that_stores_another_type():
    choices = [
        {"preprocessor": "select_percentile", "select_percentile:score": score} for score in ("chi2", "mutual_info")
    ]
    choices += [
        {"preprocessor": "feature_agglomeration", "feature_agglomeration:pooling": p} for p in ("median", "max")
    ]
    choices += [{"preprocessor": "nystroem", "nystroem:kernel": kernel} for kernel in ("chi2", "cosine")]
    space = make("volcano", TaskType.MULTICLASS).restricted_to(["knn"])
    for choice in choices:
        round_trip(space, completed(space, choice))
    default = make("default", TaskType.MULTICLASS)
    for choice in ({"knn:p": 1}, {"knn:scaling": "quantile"}, {"knn:scaling": "robust"}):
        round_trip(default.restricted_to(["knn"]), completed(default.restricted_to(["knn"]), choice))


def completed(space, chosen):
    """Return the configuration with the chosen values, everything else at its default."""
    from cashmere.space.space import _default_configuration

    configuration = _default_configuration(space.configuration_space, {"algorithm": "knn", **chosen})
    assert isinstance(configuration, Configuration)
    return configuration


def test_no_trusted_type_can_run_code_of_the_file():
    dangerous = ("operator", "builtins", "os", "subprocess", "functools", "pickle", "joblib", "importlib", "types")
    assert not [name for name in TRUSTED_TYPES if name.split(".")[0] in dangerous]
    assert sorted(set(TRUSTED_TYPES)) == sorted(TRUSTED_TYPES)
