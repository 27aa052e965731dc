"""Trials that are stopped early: when, what remains of them, and that they never count as scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from cashmere import AutoClassifier
from cashmere.data.frames import to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.exceptions import InvalidParameterError
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.records.trial import History, Trial, TrialStatus
from cashmere.space.named.registry import make_space
from cashmere.storage.store import RunStore
from cashmere.study import Study, run_digest

METRIC = get_metric("log_loss", TaskType.BINARY)


@pytest.fixture(scope="module")
def objective(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared") / "folds"
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200, :5], y[:200].astype(np.int64)
    frame = to_frame(X)
    schema = infer_schema(frame)
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=200, n_columns=5, n_classes=2)
    space = make_space("classic", profile).restricted_to(["logistic_regression", "knn", "svm"])
    folds = make_folds(y, TaskType.BINARY, "4fold", seed=0)
    prepare_folds(folder, schema.code(frame), y, folds, sorted(space.encodings), task_type=TaskType.BINARY, seed=0)
    return CrossValidationObjective(folder=folder, space=space, metric=METRIC, keep_model=False)


def make_study(objective, racing, **options):
    return Study(
        objective.space.configuration_space,
        "random",
        seed=1,
        lookahead=4,
        worst_loss=None,
        fold_racing=racing,
        **options,
    )


def test_trial_ends_after_the_first_fold_that_settles_it(objective):
    configuration = objective.space.default_configurations()[0]
    whole = objective(Trial(number=0, configuration=configuration, seed=0))
    means = np.cumsum(whole.fold_losses) / np.arange(1, 5)
    assert objective(Trial(number=0, configuration=configuration, seed=0, stop_above=means.max())).loss == whole.loss
    for k in range(3):  # a bar just below the mean of k + 1 folds that all earlier means have passed
        if means[k] > max(means[:k], default=-1):
            bar = (means[k] + max(means[:k], default=0)) / 2
            stopped = objective(Trial(number=0, configuration=configuration, seed=0, stop_above=bar))
            assert stopped.status is TrialStatus.STOPPED and stopped.fold_losses == whole.fold_losses[: k + 1]
            assert stopped.loss is None and stopped.predictions is None and f"after {k + 1} of 4" in str(stopped.error)
    bar = min(means[:3].max(), means[3]) - 1e-9  # there is nothing to save after the last fold
    assert len(objective(Trial(number=0, configuration=configuration, seed=0, stop_above=bar)).fold_losses) in (1, 2, 3)


@pytest.mark.long
def test_racing_saves_folds_and_loses_no_incumbent(objective):
    plain = make_study(objective, "none").optimize(objective, "24trials")
    raced = make_study(objective, "forgiving").optimize(objective, "24trials")
    assert [o.trial.key for o in plain] == [o.trial.key for o in raced]  # random search does not look at losses
    stopped = [o for o in raced if o.status is TrialStatus.STOPPED]
    assert 3 <= len(stopped) < 24
    assert sum(len(o.fold_losses) for o in raced) < sum(len(o.fold_losses) for o in plain)
    assert raced.incumbent.trial.key == plain.incumbent.trial.key and raced.incumbent.loss == plain.incumbent.loss
    for each in stopped:
        known = [o for o in raced[: max(0, each.trial.number - 3)] if o.succeeded]  # lookahead 4
        best = min(known, key=lambda o: o.loss)
        assert np.mean(each.fold_losses) > max(best.fold_losses)


def test_stopped_trial_is_neither_score_nor_failure(objective):
    raced = make_study(objective, "forgiving").optimize(objective, "24trials")
    assert not raced.failures and len(raced.successes) < 24
    numbers = [o.trial.number for o in raced if o.status is TrialStatus.STOPPED]
    assert set(raced.losses[numbers]) == {max(o.loss for o in raced.successes)}
    alone = History(observations=tuple(o for o in raced if not o.succeeded), baseline_loss=0.7)
    assert set(alone.losses) == {0.7} and alone.incumbent is None


def test_racing_gives_the_same_run_with_workers_and_after_a_resume(objective, tmp_path):
    digests = {run_digest(make_study(objective, "forgiving").optimize(objective, "12trials"))}
    executor = WorkerProcessExecutor(2, n_threads=1)
    try:
        digests.add(run_digest(make_study(objective, "forgiving").optimize(objective, "12trials", executor=executor)))
    finally:
        executor.shutdown()
    for trials in (7, 12):
        with RunStore(tmp_path) as store:
            history = make_study(objective, "forgiving", store=store).optimize(objective, f"{trials}trials")
    digests.add(run_digest(history))
    assert len(digests) == 1


def test_unknown_racing_is_refused(objective):
    with pytest.raises(InvalidParameterError, match="forgiving"):
        make_study(objective, "always")


@pytest.mark.long
def test_racing_run_counts_stopped_trials_apart_from_failures(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    model = AutoClassifier(
        budget="16trials", strategy="random", space=_two_algorithms, resampling="4fold", fold_racing="forgiving",
        isolation="none", run_directory=tmp_path / "run",
    ).fit(X[:200, :5], y[:200])  # fmt: skip
    stopped = [o.trial.number for o in model.study_.history if o.status is TrialStatus.STOPPED]
    assert stopped and len(model.failures_) == 0 and len(model.leaderboard_) == 16 - len(stopped)
    assert not set(stopped) & set(model.leaderboard_["trial"])
    report = (tmp_path / "run" / "report.html").read_text()
    assert f"{len(stopped)} stopped early" in report
    with pytest.raises(InvalidParameterError, match="fold_racing"):
        AutoClassifier(fold_racing="always").fit(X, y)


def _two_algorithms(profile):
    return make_space("classic", profile).restricted_to(["logistic_regression", "knn"])
