"""Command line and estimators share one entry: they refuse, continue and end alike."""

from __future__ import annotations

import errno
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from cashmere import AutoClassifier, AutoRegressor
from cashmere.cli import app
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.exceptions import IncompatibleParametersError, MetricError, NoSuccessfulTrialError, RunDirectoryError
from cashmere.execution.in_process import InProcessExecutor
from cashmere.records.budget import Budget
from cashmere.records.order import NOT_REPEATABLE, Order
from cashmere.run import RunSettings, StopReason, continue_run, fit_run
from cashmere.run.ensemble_builder import BASELINE
from cashmere.run.progress import Silence
from cashmere.run.run_directory import RunDirectory
from cashmere.space.named.registry import make_space
from cashmere.storage import lease
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import run_leaderboard

HOPELESS = {"budget": "1trials", "resampling": "holdout", "trial_timeout": "0.01s"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "credit.csv"
    demo_table().sample(120, random_state=1).to_csv(path, index=False)
    return path


def by_estimator(folder, table, *, resume=False):
    frame = demo_table().sample(120, random_state=1)
    model = AutoClassifier(run_directory=folder, resume=resume, n_workers=1, **HOPELESS)
    with pytest.raises(NoSuccessfulTrialError) as caught:
        model.fit(frame.drop(columns=DEMO_TARGET), frame[DEMO_TARGET])
    return str(caught.value)


def by_command(folder, table, *, resume=False):
    options = [text for name, value in HOPELESS.items() for text in (f"--{name.replace('_', '-')}", value)]
    start = ["fit", str(table), "--target", DEMO_TARGET, "--out", str(folder), "--workers", "1", *options]
    result = CliRunner().invoke(app, ["resume", str(folder)] if resume else start)
    assert result.exit_code == 2, (result.output, result.exception)
    return result.output.partition("NoSuccessfulTrialError: ")[2].strip()


@pytest.mark.long
@pytest.mark.parametrize("door", [by_estimator, by_command])
def test_run_whose_trials_all_fail_leaves_a_report_and_ends_the_same_way_again(door, table, tmp_path):
    folder = tmp_path / "run"
    message = door(folder, table)
    assert "The only trial has not succeeded" in message and "--trial-timeout" in message
    page = (folder / "report.html").read_text()
    assert "over the time limit" in page
    with RunStore(folder, read_only=True) as store:
        assert store.facts().stop_reason == StopReason.TRIALS
    (folder / "report.html").unlink()
    assert door(folder, table, resume=True) == message
    assert (folder / "report.html").exists()


def test_display_is_made_once_the_run_exists_and_closed_after_an_error(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    events = []

    class Display(Silence):
        def __init__(self):
            events.append("made")

        def update(self, status):
            if status.phase == "searching":
                raise RuntimeError("killed")

        def close(self):
            events.append("closed")

    settings = RunSettings(budget=Budget(trials=2), resampling="holdout", isolation="none")
    with pytest.raises(RuntimeError, match="killed"):
        fit_run(tmp_path / "run", X, y, settings, progress=Display)
    assert events == ["made", "closed"]
    assert (tmp_path / "run" / "report.html").exists()
    finished = continue_run(tmp_path / "run")
    assert (len(finished.study.history), finished.stop_reason) == (2, StopReason.TRIALS)
    assert finished.facts.digest in finished.summary()
    again = continue_run(tmp_path / "run")
    assert (again.n_new, again.facts.digest) == (0, finished.facts.digest)
    more = continue_run(tmp_path / "run", Budget(trials=1))
    assert (more.n_new, len(more.rows)) == (1, 3)


def test_first_error_is_told_although_the_report_cannot_be_written_either(tmp_path, monkeypatch):
    X, y = load_iris(return_X_y=True, as_frame=True)
    settings = RunSettings(budget=Budget(trials=2), resampling="holdout", isolation="none")

    class Mover(Silence):
        def update(self, status):
            if status.phase == "searching" and (tmp_path / "run").exists():
                (tmp_path / "run").rename(tmp_path / "moved")

    with pytest.raises(RunDirectoryError, match="no longer there: it was moved or deleted"):
        fit_run(tmp_path / "run", X, y, settings, progress=Mover)

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    def refuse(folder):
        raise RunDirectoryError(folder / "report.html", "cannot be written")

    monkeypatch.setattr("cashmere.run.session.prepare", full)
    monkeypatch.setattr("cashmere.report.write_report", refuse)
    with pytest.raises(RunDirectoryError, match=r"its disk is full\. Free some space, then continue with"):
        continue_run(tmp_path / "moved")


def test_an_ensemble_that_is_no_better_than_a_constant_is_doubted(tmp_path):
    rng = np.random.default_rng(0)
    settings = RunSettings(
        task="regression", budget=Budget(trials=1), metric="mape", resampling="holdout", isolation="none"
    )
    X, skewed = pd.DataFrame({"a": rng.normal(size=200)}), np.exp(rng.normal(size=200))
    line = "Note: the ensemble is not better than the constant prediction. Do not rely on this model."
    assert line in fit_run(tmp_path / "run", X, skewed, settings).summary().splitlines()
    assert line not in fit_run(tmp_path / "other", X, X["a"] + 5.0, settings).summary()


@pytest.mark.long
def test_an_ensemble_that_is_no_better_on_rows_that_did_not_choose_it_is_doubted(tmp_path):
    rng = np.random.default_rng(1)
    X, y = pd.DataFrame(rng.normal(size=(120, 6))).add_prefix("x"), pd.Series(rng.integers(0, 2, 120))
    settings = RunSettings(budget=Budget(trials=12), isolation="none", resampling="3fold", seed=1)
    finished = fit_run(tmp_path / "run", X, y, settings)
    assert finished.facts.ensemble_loss < finished.study.history.baseline_loss < finished.facts.cross_fitted_loss
    assert "Note: on rows that did not choose it, the ensemble is not better than the constant" in finished.summary()


def test_the_constant_is_also_scored_on_later_rows(tmp_path):
    X = pd.DataFrame({"a": np.arange(200.0)})
    y = X["a"] + np.random.default_rng(0).normal(size=200)
    settings = RunSettings(budget=Budget(trials=2), isolation="none", resampling="3fold", include=("ridge",), time="t")
    order = RowStructure.from_values(np.arange(200), StructureKind.TIME, name="t")
    finished = fit_run(tmp_path / "run", X, y, settings, structure=order)
    joined = finished.facts.joined_losses
    shown = f"constant {joined['constant']:.5g} ({joined['constant_cross_fitted']:.5g} on later rows)"
    assert shown in finished.summary()


def test_custom_metric_that_is_the_same_for_every_trial_is_doubted(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    named = pd.Series(np.array(["a", "b", "c"])[y])

    def hits(truth, predicted):
        return float(np.sum((truth == 1) & (predicted == 1)))

    with pytest.warns(UserWarning, match="'hits' is 0 for every trial, and.*labels such as 'a' and 'c'"):
        AutoClassifier(metric=hits, budget="3trials", isolation="none", resampling="holdout").fit(X, named)


def test_custom_metric_by_which_the_constant_is_best_is_doubted():
    X, y = load_iris(return_X_y=True, as_frame=True)

    def distance(truth, predicted):
        return float(np.mean(np.abs(truth - predicted)))

    options = {"budget": "3trials", "isolation": "none", "resampling": "holdout", "include": "ridge"}
    with pytest.warns(UserWarning, match=r"'distance', the constant prediction is better.*greater_is_better=False"):
        AutoRegressor(metric=distance, **options).fit(X, y.astype(float))


def test_an_ensemble_that_has_not_seen_the_best_trial_is_not_shown(tmp_path, monkeypatch):
    class Recorded(Silence):
        def update(self, status):
            shown.append(status)

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 4))).add_prefix("x")
    y, shown = X["x0"] + X["x1"] * X["x2"] + 0.1 * rng.normal(size=200), []
    monkeypatch.setattr("cashmere.run.session._STATUS_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("cashmere.run.session._REFRESH_PAUSE_SECONDS", 1000.0)  # the first ensemble stays
    include = ("knn", "ridge", "extra_trees", "lightgbm")
    settings = RunSettings(budget=Budget(trials=8), isolation="none", resampling="holdout", include=include)
    fit_run(tmp_path / "run", X, y, settings, progress=Recorded)
    searching = [status for status in shown if status.phase == "searching" and status.ensemble_score is not None]
    assert searching and all(status.ensemble_score <= status.best_score + 1e-9 for status in searching)
    assert len({status.best_score for status in shown}) > 2 and shown[-1].ensemble_score is not None


def test_custom_metric_that_fails_for_some_predictions_is_named_with_the_algorithms(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 3))).add_prefix("x")

    def logarithmic(truth, predicted):
        if predicted.min() < 0:
            raise ValueError("negative predictions")
        return -float(np.mean((np.log1p(predicted) - np.log1p(truth)) ** 2))

    include = ["extra_trees", "ridge"]
    with pytest.warns(UserWarning, match="'logarithmic' failed for 1 trial of ridge") as told:
        AutoRegressor(
            metric=logarithmic, budget="2trials", isolation="none", resampling="holdout", include=include
        ).fit(X, np.exp(2 * X["x0"]))
    assert "(ValueError: negative predictions). Let the function" in str(told[-1].message)


def test_interrupt_while_workers_start_leaves_no_run(tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    class Display(Silence):
        def close(self):
            closed.append(self)

    X, y = load_iris(return_X_y=True, as_frame=True)
    settings, closed = RunSettings(budget=Budget(trials=2), isolation="none"), []
    monkeypatch.setattr("cashmere.run.front_door.make_executor", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit_run(tmp_path / "run", X, y, settings, progress=Display)
    assert not (tmp_path / "run").exists()
    assert len(closed) == 1


def test_resume_uses_the_workers_and_limits_that_it_is_given(tmp_path, monkeypatch):
    X, y = load_iris(return_X_y=True, as_frame=True)
    first = RunSettings(
        budget=Budget(trials=1), resampling="holdout", n_workers=2, memory_mib=800.0, isolation="process"
    )
    RunDirectory.create(tmp_path / "run", X, y, first).store.close()
    used = []

    def make_executor(settings, budget, **options):
        used.append(settings)
        return InProcessExecutor()

    monkeypatch.setattr("cashmere.run.front_door.make_executor", make_executor)
    again = {"resume": True, "report": False, "load": False}
    fit_run(tmp_path / "run", X, y, replace(first, n_workers=None, memory_mib=None, trial_seconds=60.0), **again)
    changed = replace(first, budget=Budget(trials=2), n_workers=5, memory_mib=900.0, isolation="none")
    fit_run(tmp_path / "run", X, y, changed, **again)
    limits = [(each.n_workers, each.memory_mib, each.trial_seconds, each.isolation) for each in used]
    assert limits == [(2, 800.0, 60.0, "process"), (5, 900.0, None, "none")]
    assert {each.lookahead_of_study for each in used} == {first.lookahead_of_study}
    with pytest.raises(RunDirectoryError, match=r"a lookahead of 8, .* more than 8 workers; got 9"):
        fit_run(tmp_path / "run", X, y, replace(first, n_workers=9), **again)
    with RunDirectory.open(tmp_path / "run") as run:
        assert run.settings == first  # those of the first call are kept


def test_what_learners_learn_stays_as_it_was_decided_at_the_start(tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    settings = RunSettings(
        budget=Budget(trials=1), isolation="none", resampling="holdout", include=("ridge",), metric="mae"
    )
    fit_run(tmp_path / "run", X, np.exp(2 * X["a"]), settings, report=False)
    with RunDirectory.open(tmp_path / "run") as run:
        assert run.profile.learns_logarithms
        run.store.set_fact("learns_logarithms", None)  # as earlier versions left it
    with RunDirectory.open(tmp_path / "run") as run:
        assert not run.profile.learns_logarithms


def test_interrupt_while_the_lock_is_taken_leaves_nothing(tmp_path, monkeypatch):
    take, interrupts = lease._lock, [KeyboardInterrupt]

    def interrupted(folder, epoch):
        lock = take(folder, epoch)
        if interrupts:
            raise interrupts.pop()
        return lock

    monkeypatch.setattr(lease, "_lock", interrupted)
    X, y = load_iris(return_X_y=True, as_frame=True)
    with pytest.raises(KeyboardInterrupt):
        RunDirectory.create(tmp_path / "run", X, y, RunSettings(budget=Budget(trials=1)))
    assert not (tmp_path / "run").exists()


def test_run_that_fails_while_it_is_prepared_leaves_nothing(tmp_path, monkeypatch):
    def picky(truth, predicted):
        raise ValueError("none of this")

    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    settings = RunSettings(budget=Budget(trials=1), isolation="none", resampling="holdout", include=("ridge",))
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "new", tmp_path / "empty"):
        with pytest.raises(MetricError, match="none of this"):
            fit_run(folder, X, X["a"], replace(settings, metric=picky))
    monkeypatch.setattr("cashmere.run.run_directory._save_sample", lambda path, sample: None)
    with pytest.raises(IncompatibleParametersError, match="max_latency cannot be used with this table"):
        fit_run(tmp_path / "new", X, X["a"], replace(settings, max_latency=0.005))
    assert not (tmp_path / "new").exists() and not list((tmp_path / "empty").iterdir())
    assert fit_run(tmp_path / "new", X, X["a"], settings, resume=True, report=False).n_new == 1


def test_full_disk_before_the_search_is_named_although_the_run_is_removed(tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    X, y = load_iris(return_X_y=True, as_frame=True)
    monkeypatch.setattr("cashmere.run.session.prepare", full)
    with pytest.raises(RunDirectoryError, match=r"its disk is full\. Free some space, then start the run again\."):
        fit_run(tmp_path / "run", X, y, RunSettings(budget=Budget(trials=1), isolation="none"))
    assert not (tmp_path / "run").exists()


def test_files_that_the_system_does_not_let_grow_are_explained(tmp_path):
    resource = pytest.importorskip("resource")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 8, size=(3000, 12)).astype(str)).add_prefix("level_").astype("category")
    settings = RunSettings(budget=Budget(trials=1), isolation="none", resampling="holdout", include=("ridge",))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limits[1]))  # less than the dummies of the categories take
    try:
        with pytest.raises(RunDirectoryError, match="its disk is full, or a limit on file sizes") as caught:
            fit_run(tmp_path / "run", X, pd.Series(rng.normal(size=3000)), settings)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(caught.value).endswith("Free some space or raise it, then start the run again.")


def test_a_call_without_time_for_trials_keeps_the_cross_fitted_loss(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    settings = RunSettings(budget=Budget(trials=2), isolation="none", resampling="3fold")
    first = fit_run(tmp_path / "run", X, y, settings, report=False)
    assert first.facts.cross_fitted_loss is not None
    again = continue_run(tmp_path / "run", Budget(seconds=0.001))
    assert again.n_new == 0
    assert again.facts.cross_fitted_loss == first.facts.cross_fitted_loss
    assert again.predictor.information["cross_fitted_loss"] == first.facts.cross_fitted_loss


def test_run_whose_time_is_spent_runs_no_trial_even_if_it_has_none(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    settings = RunSettings(budget=Budget(seconds=1.5), isolation="none", resampling="holdout")
    assert fit_run(tmp_path / "run", X, y, settings, report=False, already_spent=1.5).n_new == 0
    for _ in range(2):
        again = continue_run(tmp_path / "run")
        assert (len(again.rows), again.weights, again.stop_reason) == (0, {BASELINE: 1.0}, StopReason.SPENT)
    assert continue_run(tmp_path / "run", Budget(trials=1)).n_new == 1


def test_resume_says_that_the_time_is_spent(table, tmp_path):
    folder = str(tmp_path / "run")
    start = ["fit", str(table), "--target", DEMO_TARGET, "--out", folder, "--budget", "0.01s"]
    for command in (start, ["resume", folder]):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        assert "0 trials, 0 failed" in result.output
    assert "The budget was already spent; add more with --budget." in result.output


def test_time_before_the_search_counts_for_later_calls(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    settings = RunSettings(budget=Budget(trials=1, seconds=150.0), isolation="none", resampling="holdout")
    fit_run(tmp_path / "run", X, y, settings, report=False, already_spent=100.0)
    with RunDirectory.open(tmp_path / "run") as run:
        assert run.spent.seconds > 100


def test_run_by_arrival_says_that_another_one_differs_and_is_resumed(table, tmp_path):
    folder = tmp_path / "run"

    def linear(profile):
        return make_space("default", profile).restricted_to(["logistic_regression"])

    settings = RunSettings(
        budget=Budget(trials=2), space=linear, resampling="holdout", isolation="none", order=Order.ARRIVAL
    )
    frame = demo_table().sample(120, random_state=1)
    X, y = frame.drop(columns=DEMO_TARGET), frame[DEMO_TARGET]
    finished = fit_run(folder, X, y, settings)
    assert finished.summary().endswith(f"({NOT_REPEATABLE})")
    assert run_leaderboard(folder)[1].caption.endswith(NOT_REPEATABLE)
    assert "another run with this seed differs" in (folder / "report.html").read_text()
    with pytest.raises(RunDirectoryError, match="order"):
        fit_run(folder, X, y, replace(settings, order=Order.TRIALS), resume=True)
    finished = fit_run(folder, X, y, replace(settings, budget=Budget(trials=4)), resume=True)
    assert len(finished.study.history) == 4 and finished.n_new == 2


def test_the_summary_says_that_class_weights_shift_probabilities(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    told = []
    for weight in (None, "balanced"):
        settings = RunSettings(
            budget=Budget(trials=1),
            resampling="holdout",
            isolation="none",
            include=("logistic_regression",),
            class_weight=weight,
        )
        told.append(fit_run(tmp_path / str(weight), X, y, settings).summary().count("Note: Class weights shift the"))
    assert told == [0, 1]


def test_the_summary_names_algorithms_that_cannot_be_loaded(tmp_path):
    def without_openmp(values, context):
        raise OSError("libgomp.so.1: cannot open shared object file: No such file or directory")

    def without_sense(values, context):
        raise ValueError("no sense")

    def space(profile):
        whole = make_space("default", profile).restricted_to(["logistic_regression", "lightgbm", "mlp"])
        builds = {"lightgbm": without_openmp, "mlp": without_sense}
        broken = [replace(a, build=builds.get(a.name, a.build)) for a in whole.algorithms]
        return replace(whole, algorithms=tuple(broken))

    X, y = load_iris(return_X_y=True, as_frame=True)
    settings = RunSettings(budget=Budget(trials=9), space=space, resampling="holdout", isolation="none")
    finished = fit_run(tmp_path / "run", X, y, settings)
    failed = Counter(o.trial.configuration["algorithm"] for o in finished.study.history.failures)
    assert min(failed["lightgbm"], failed["mlp"]) > 1
    assert (
        f"Note: each of the {failed['lightgbm']} trials of lightgbm failed: OSError: libgomp.so.1: cannot open shared "
        "object file: No such file or directory. Install it with the package manager of the system: `apt-get install "
        "libgomp1`"
    ) in finished.summary()
    assert f"Note: each of the {failed['mlp']} trials of mlp failed: ValueError: no sense.\n" in finished.summary()
