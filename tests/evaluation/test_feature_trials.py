"""Trials that add columns to their table learn nothing from noise, and lose as much on validation as on new rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere.data.inference import infer_schema
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.metrics import default_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.model.archives import load_fold_models
from cashmere.records.trial import Trial
from cashmere.space import make_space
from cashmere.space.estimators.combinations import OPERATIONS
from cashmere.space.named.features import ARITHMETIC, FEATURES, NONE

N_ROWS, N_NEW = 1500, 4000
N_CLASSES = {TaskType.BINARY: 2, TaskType.MULTICLASS: 3, TaskType.REGRESSION: 1}


def levels(rng, n, n_levels):
    return pd.Categorical([f"level{i}" for i in rng.integers(n_levels, size=n)])


def noise(task):
    """Return columns, some with many categories, and a target that depends on none of them."""
    rng = np.random.default_rng(0)
    n = N_ROWS + N_NEW
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    for name, n_levels in (("d", 400), ("e", 400), ("f", 40)):
        frame[name] = levels(rng, n, n_levels)
    return frame, rng.normal(size=n) if task is TaskType.REGRESSION else rng.integers(N_CLASSES[task], size=n)


def signal(task):
    """Return a table whose target depends on a ratio and on one of the categories."""
    frame, _ = noise(task)
    rng = np.random.default_rng(1)
    effect = rng.normal(size=40)[frame["f"].cat.codes]
    score = np.tanh(frame["a"] / frame["b"]) + 0.5 * effect + 0.2 * rng.normal(size=len(frame))
    if task is TaskType.REGRESSION:
        return frame, score.to_numpy()
    return frame, np.digitize(score, np.quantile(score, np.arange(1, N_CLASSES[task]) / N_CLASSES[task]))


def evaluate(frame, y, task, algorithm, kind, folder):
    """Return the outcome of a trial, the standard error of its loss, and the losses on new rows and of a constant."""
    schema = infer_schema(frame[:N_ROWS])
    profile = TaskProfile(
        task_type=task, n_rows=N_ROWS, n_columns=6, n_classes=N_CLASSES[task], has_categories=schema.has_categories
    )
    space = make_space("default", profile)
    coded, metric = schema.code(frame), default_metric(task)
    folds = make_folds(y[:N_ROWS], task, "3fold", seed=0)
    known = coded.take(np.arange(N_ROWS))
    _, encoders = prepare_folds(folder, known, y[:N_ROWS], folds, sorted(space.encodings), task_type=task, seed=0)
    values = {"algorithm": algorithm, f"{algorithm}:{FEATURES}": kind}
    configuration = space.completed(values)
    objective = CrossValidationObjective(folder=folder, space=space, metric=metric)
    outcome = objective(Trial(number=0, configuration=configuration, seed=3))
    (folder / "model.skops").write_bytes(outcome.model)
    new = coded.take(np.arange(N_ROWS, len(y)))
    encoding = space.encoding_of(configuration)
    models = load_fold_models(folder / "model.skops")
    predicted = [m.predict(e[encoding].transform(new)) for m, e in zip(models, encoders, strict=True)]
    on_new = np.mean([metric.loss(y[N_ROWS:], each, None) for each in predicted])
    parts = np.array_split(np.random.default_rng(0).permutation(N_ROWS), 20)
    of_parts = [metric.loss(y[rows], outcome.predictions[rows], None) for rows in parts]
    error = np.std(of_parts, ddof=1) / np.sqrt(len(of_parts))
    known_y = y[:N_ROWS]
    shares = np.bincount(known_y) / N_ROWS if task.is_classification else known_y.mean()
    constant = np.broadcast_to(shares, (N_ROWS, *np.shape(shares)))
    return outcome, error, on_new, metric.loss(known_y, constant, None)


CASES = [*((task, "lightgbm") for task in TaskType), *((TaskType.BINARY, name) for name in ("xgboost", "catboost"))]


@pytest.mark.long
@pytest.mark.parametrize(("task", "algorithm"), CASES)
def test_nothing_is_learned_from_noise(task, algorithm, tmp_path):
    pytest.importorskip(algorithm)
    outcome, error, on_new, constant = evaluate(*noise(task), task, algorithm, ARITHMETIC, tmp_path)
    assert outcome.loss > constant - 2 * error
    assert abs(outcome.loss - on_new) < 4 * error


@pytest.mark.long
@pytest.mark.parametrize(("task", "algorithm"), CASES)
def test_loss_on_validation_rows_is_that_on_new_ones(task, algorithm, tmp_path):
    pytest.importorskip(algorithm)
    outcome, error, on_new, constant = evaluate(*signal(task), task, algorithm, ARITHMETIC, tmp_path)
    assert outcome.loss < 0.9 * constant
    assert abs(outcome.loss - on_new) < 4 * error


@pytest.mark.long
def test_features_lower_a_loss_that_depends_on_them(tmp_path):
    table = signal(TaskType.BINARY)
    before, after = (
        evaluate(*table, TaskType.BINARY, "lightgbm", kind, tmp_path / kind)[0] for kind in (NONE, ARITHMETIC)
    )
    assert after.loss < 0.95 * before.loss
    assert before.features is None
    assert after.features.columns == 3 * len(OPERATIONS)  # of all pairs of three numbers
    assert 0 < after.features.seconds < after.fit_seconds
