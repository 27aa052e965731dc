"""Every algorithm that declares it keeps predictions monotone, whatever else its configuration says."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Configuration

from cashmere.data.inference import infer_schema
from cashmere.data.monotone import directions
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.metrics import default_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.exceptions import SpaceError
from cashmere.model.archives import load_fold_models
from cashmere.records.trial import Trial
from cashmere.space import SPACES, make_space
from cashmere.space.space import ALGORITHM, NOT_MONOTONE

TASKS = (TaskType.BINARY, TaskType.REGRESSION)
TREES = ("lightgbm", "xgboost", "catboost", "hist_gradient_boosting", "random_forest", "extra_trees")
N_ROWS = 150


@functools.cache
def table():
    """Return a table whose target is nowhere monotone, so that a model that fits it is not monotone either."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "city": pd.Series(rng.choice(["a", "b", "c", "d"], N_ROWS), dtype="category"),
            "age": rng.normal(size=N_ROWS),
            "gaps": np.where(rng.random(N_ROWS) < 0.2, np.nan, rng.normal(size=N_ROWS)),
            "price": rng.exponential(size=N_ROWS),
            "member": rng.random(N_ROWS) < 0.5,
        }
    )
    waves = np.sin(4 * frame["age"]) + np.cos(3 * frame["price"]) + (frame["city"] == "a") * frame["age"]
    return frame, (waves + rng.normal(scale=0.3, size=N_ROWS)).to_numpy()


def target(task):
    values = table()[1]
    return values if task is TaskType.REGRESSION else (values > 0).astype(np.int64)


def make_profile(task, monotone=("age+", "price-"), **facts):
    n_classes = 1 if task is TaskType.REGRESSION else 2
    signs = directions(monotone, infer_schema(table()[0]))
    return TaskProfile(
        task_type=task, n_rows=N_ROWS, n_columns=5, n_classes=n_classes, has_categories=True, monotone=signs, **facts
    )


class Trials:
    """Trials on one split of the table."""

    def __init__(self, folder, task, monotone, space="default"):
        frame, _ = table()
        self.schema, self.task, self.file = infer_schema(frame), task, folder.with_name("model.skops")
        self.space = make_space(space, make_profile(task, monotone))
        y = target(task)
        self.encoders = prepare_folds(
            folder, self.schema.code(frame), y, make_folds(y, task, "holdout", seed=0), sorted(self.space.encodings),
            task_type=task, seed=0,
        )[1]  # fmt: skip
        self.objective = CrossValidationObjective(folder=folder, space=self.space, metric=default_metric(task))

    def configurations(self, algorithm, n, seed):
        """Return the default and random configurations of one algorithm."""
        space = self.space.restricted_to([algorithm]).configuration_space
        space.seed(seed)
        drawn = [self.space.completed({ALGORITHM: algorithm}), *(space.sample_configuration() for _ in range(n))]
        return [Configuration(self.space.configuration_space, values=dict(each)) for each in drawn]

    def falls(self, configuration):
        """Return how far predictions of the fitted model go in the wrong direction: along age, and along price."""
        outcome = self.objective(Trial(number=0, configuration=configuration, seed=3))
        assert outcome.model is not None, outcome.error
        self.file.write_bytes(outcome.model)
        (model,) = load_fold_models(self.file)
        return [self._fall(model, "age", 1), self._fall(model, "price", -1)]

    def _fall(self, model, column, sign):
        frame, _ = table()
        values = np.unique(np.r_[frame[column], np.linspace(-4, 8, 60)])
        rows = frame.sample(12, random_state=1)
        grid = rows.loc[rows.index.repeat(len(values))].assign(**{column: np.tile(values, len(rows))})
        predicted = model.predict(self.encoders[0][model.encoding].transform(self.schema.code(grid)))
        if self.task.is_classification:
            predicted = predicted[:, 1]
        steps = sign * np.diff(predicted.astype(np.float64).reshape(len(rows), -1), axis=1)
        return max(0.0, -steps.min())


@pytest.fixture(scope="module", params=TASKS)
def trials(request, tmp_path_factory):
    return Trials(tmp_path_factory.mktemp("monotone") / "folds", request.param, ("age+", "price-"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("algorithm", TREES)
def test_predictions_never_go_the_other_way(trials, algorithm):
    for configuration in trials.configurations(algorithm, 1, seed=0):
        assert max(trials.falls(configuration)) <= 1e-6, dict(configuration)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", TREES)
@pytest.mark.parametrize("seed", range(1, 6))
def test_predictions_of_many_configurations_never_go_the_other_way(trials, algorithm, seed):
    for configuration in trials.configurations(algorithm, 6, seed=seed):
        assert max(trials.falls(configuration)) <= 1e-6, dict(configuration)


def test_catboost_continues_a_path_without_a_word(trials, capfd):
    (configuration,) = trials.configurations("catboost", 0, seed=0)
    trials.falls(configuration)
    assert "".join(capfd.readouterr()) == ""


def test_predictions_do_go_the_other_way_without_constraints(tmp_path):
    free = Trials(tmp_path / "folds", TaskType.REGRESSION, ())
    for algorithm in ("lightgbm", "random_forest"):
        (configuration,) = free.configurations(algorithm, 0, seed=0)
        assert min(free.falls(configuration)) > 0.1


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["default", "classic"])
def test_only_trees_are_offered(name, task):
    space = make_space(name, make_profile(task))
    assert {algorithm.name for algorithm in space.algorithms} == set(TREES)
    assert {name for name, why in space.left_out.items() if why == NOT_MONOTONE} >= {"mlp", "svm", "knn"}
    with pytest.raises(SpaceError, match="'mlp' cannot be used here: it cannot keep predictions monotone"):
        space.restricted_to(["mlp"])


def test_nothing_mixes_a_monotone_column_with_others():
    offered = make_space("default", make_profile(TaskType.BINARY)).configuration_space
    free = make_space("default", make_profile(TaskType.BINARY, ())).configuration_space
    gone = {name for name in free if name.partition(":")[0] in TREES} - set(offered)
    assert gone == {*(f"{name}:features" for name in TREES[:3]), "catboost:max_ctr_complexity", "lightgbm:path_smooth"}


@pytest.mark.parametrize("name", sorted(SPACES))
def test_every_space_whose_algorithms_declare_it_is_tested_here(name):
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=100, n_columns=5, n_classes=2)
    declared = {a.name for a in make_space(name, profile).algorithms if a.monotone_encodings}
    assert declared <= set(TREES)
