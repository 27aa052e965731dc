"""A saved ensemble of every algorithm of a space passes all checks when it is loaded, and predicts the same."""

from __future__ import annotations

import numpy as np
import pytest

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.task import TaskType
from cashmere.ensembles import WeightedEnsemble
from cashmere.evaluation.metrics import get_metric
from cashmere.model import first_load
from cashmere.model.files import read_manifest, save_model
from cashmere.model.predictor import Predictor
from cashmere.records.budget import Budget
from cashmere.run import RunSettings, fit_run
from cashmere.space.named.registry import SPACES
from support.real_archives import ONLY_CLASSES


def speed(space: str, task: TaskType) -> list:
    if space != "default":
        return [pytest.mark.slow]
    return [] if task is TaskType.BINARY else [pytest.mark.long]


CASES = [
    pytest.param(name, task, marks=speed(name, task))
    for name in SPACES
    for task in TaskType
    if (task is TaskType.BINARY or name not in ONLY_CLASSES) and (task is not TaskType.MULTICLASS or name == "default")
]


@pytest.mark.parametrize(("space", "task"), CASES)
def test_every_algorithm_loads(space, task, tmp_path, monkeypatch):
    X = demo_table().sample(90, random_state=0)
    label = X.pop(DEMO_TARGET)
    targets = {TaskType.BINARY: label, TaskType.MULTICLASS: X["job"], TaskType.REGRESSION: X["credit_amount"] / 1e3}
    metric = get_metric("accuracy" if task.is_classification else "mse", task).name
    settings = RunSettings(
        budget=Budget(trials=12),  # the defaults of the algorithms come first
        isolation="none",
        resampling="holdout",
        space=space,
        metric=metric,
        strategy="random",
        n_workers=1,
    )
    finished = fit_run(tmp_path / "run", X, targets[task], settings, report=False)
    numbers = [observation.trial.number for observation in finished.study.history.successes]
    fitted = finished.predictor
    members = {number: tmp_path / "run" / "members" / f"{number:06d}.skops" for number in numbers}
    save_model(
        tmp_path / "model",
        schema=fitted.schema,
        target=fitted.target,
        encoders=fitted.encoders,
        ensemble=WeightedEnsemble(members=tuple(numbers), weights=(1 / len(numbers),) * len(numbers)),
        member_files=members,
        information={},
    )
    loaded = Predictor.load(tmp_path / "model")
    assert set(loaded.models) == set(numbers)
    assert np.isfinite(loaded.predict_raw(X)).all()
    if space == "default":
        # With only a GiB left, CatBoost takes all of it, and waits for threads that no longer fit.
        monkeypatch.setattr(first_load, "LIMIT_MIB", 1024.0)
        first_load.check_first_load(tmp_path / "model", read_manifest(tmp_path / "model"))
