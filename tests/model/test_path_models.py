"""Models cut from a path are saved and loaded like any other, and predict what the path did."""

from __future__ import annotations

import numpy as np
import pytest

from cashmere.data.task import Encoding, TaskProfile, TaskType
from cashmere.model.archives import dump_fold_models, load_fold_models
from cashmere.model.audit import audit
from cashmere.model.fold_path import FoldPath
from cashmere.space import BuildContext, make_space

N_CLASSES = {TaskType.BINARY: 2, TaskType.MULTICLASS: 3, TaskType.REGRESSION: 1}


def default_space(task):
    profile = TaskProfile(task_type=task, n_rows=120, n_columns=4, n_classes=N_CLASSES[task], has_categories=True)
    return make_space("default", profile)


CASES = [
    (task, name)
    for task in TaskType
    for name in (a.name for a in default_space(task).algorithms)
    if default_space(task).path_of(default_space(task).completed({"algorithm": name})) is not None
]


def begin(task, name, *, absent=()):
    """Follow an algorithm to its fourth position, on rows without some of the classes."""
    space = default_space(task)
    configuration = space.completed({"algorithm": name})
    algorithm, encoding = space.algorithm_of(configuration), space.encoding_of(configuration)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(160, 4)).astype(np.float32)
    X[:, 2] = rng.integers(0, 3, len(X))
    categorical = np.array([False, False, encoding is Encoding.ORDINAL, False])
    signal = X[:, 0] + X[:, 1] ** 2 + 0.1 * X[:, 2]
    y = signal if task is TaskType.REGRESSION else np.argsort(np.argsort(signal)) * N_CLASSES[task] // len(signal)
    kept = ~np.isin(y[:120], absent)
    context = BuildContext(
        task_type=task,
        n_classes=N_CLASSES[task] - len(absent),
        n_rows=int(kept.sum()),
        n_features=4,
        categorical=categorical,
    )
    path = FoldPath(
        space.build(configuration, context),
        algorithm.path,
        encoding,
        X[:120][kept],
        y[:120][kept],
        X[120:],
        categorical,
        n_classes=N_CLASSES[task],
    )
    seen = {}
    for position in algorithm.path.positions(120, N_CLASSES[task])[:4]:
        path.advance(position)
        seen[position] = path.predict()
    return path, seen, X[120:], algorithm


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("task", "name"), CASES)
def test_archives_of_cut_models_are_trusted_and_predict_the_same(task, name, tmp_path):
    path, seen, unseen, algorithm = begin(task, name)
    for position in (min(seen), max(seen)):
        data = dump_fold_models([path.model_at(position)])
        audit(data, name, trusted=algorithm.trusted_types)
        (tmp_path / "model.skops").write_bytes(data)
        (model,) = load_fold_models(tmp_path / "model.skops")
        np.testing.assert_allclose(model.predict(unseen), seen[position], rtol=2e-5, atol=2e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for task, name in CASES if task is TaskType.MULTICLASS])
@pytest.mark.parametrize("absent", [(1,), (0, 2)])
def test_classes_that_a_fold_lacks_have_probability_0(name, absent):
    path, seen, unseen, _ = begin(TaskType.MULTICLASS, name, absent=absent)
    for position, predicted in seen.items():
        assert predicted.shape == (40, 3)
        assert (predicted[:, list(absent)] == 0).all()
        np.testing.assert_allclose(predicted.sum(axis=1), 1, rtol=1e-5)
        np.testing.assert_allclose(path.model_at(position).predict(unseen), predicted, rtol=2e-5, atol=2e-6)
