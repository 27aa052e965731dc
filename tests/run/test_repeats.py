"""Members of the final ensemble that are fitted on other splits, too."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, ShuffleSplit

from cashmere import AutoClassifier, AutoRegressor, Predictor
from cashmere.base.pace import Pace
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import InvalidParameterError
from cashmere.execution.in_process import InProcessExecutor
from cashmere.records.budget import Budget
from cashmere.run import RunDirectory, RunSettings, continue_run
from cashmere.run.members import Members
from cashmere.run.repeats import Repeats, next_in_time
from cashmere.space import make_space
from cashmere.storage.facts import RunFacts, SplitsFact
from cashmere.storage.store import RunStore

FRAME = demo_table().head(240)
X, Y = FRAME.drop(columns=DEMO_TARGET), FRAME[DEMO_TARGET]


def fitted(folder, *, budget="6trials", repeats=2, **settings):
    model = AutoClassifier(
        budget=budget, repeats=repeats, resampling="3fold", run_directory=folder, **{"isolation": "none", **settings}
    )
    return model.fit(X, Y)


def facts_of(folder) -> RunFacts:
    with RunStore(folder, read_only=True) as store:
        return store.facts()


def splits_of(folder) -> dict[str, SplitsFact]:
    return facts_of(folder).splits or {}


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repeated") / "run"
    return folder, fitted(folder)


def test_every_member_has_models_of_every_split(repeated):
    folder, _ = repeated
    predictor = Predictor.load(folder)
    assert predictor.ensemble.members
    assert {str(n) for n in predictor.ensemble.members} <= set(splits_of(folder))
    assert {fact["count"] for fact in splits_of(folder).values()} == {3}
    assert {len(models) for models in predictor.models.values()} == {9}
    assert len(predictor.encoders) == 9


def test_the_saved_model_predicts_the_same(repeated):
    folder, model = repeated
    np.testing.assert_array_equal(Predictor.load(folder).predict_proba(X), model.predict_proba(X))


@pytest.mark.long
def test_trials_are_those_without_repeats(repeated, tmp_path):
    once = fitted(tmp_path / "run", repeats=0)
    assert not splits_of(tmp_path / "run")
    trials = ["trial", "algorithm", "loss"]
    pd.testing.assert_frame_equal(once.leaderboard_[trials], repeated[1].leaderboard_[trials])
    assert not np.array_equal(once.predict_proba(X), repeated[1].predict_proba(X))


def test_predictions_are_the_mean_over_splits(repeated):
    with RunStore(repeated[0], read_only=True) as store:
        number, (n_splits, mean) = next(iter(store.splits().items()))
        first = np.load(store.predictions_path(number))
    assert n_splits == 3
    assert mean.shape == first.shape
    assert not np.array_equal(mean, first)
    assert np.abs(mean - first).mean() < 0.1


@pytest.mark.long
def test_same_seed_same_model_in_worker_processes(repeated, tmp_path):
    again = fitted(tmp_path / "run", isolation="process", n_workers=2)
    np.testing.assert_allclose(again.predict_proba(X), repeated[1].predict_proba(X), atol=1e-6)


def test_a_resumed_run_keeps_its_splits(repeated, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(repeated[0], folder)
    before = repeated[1].predict_proba(X)
    finished = continue_run(folder)
    assert finished.predictor is not None
    np.testing.assert_array_equal(finished.predictor.predict_proba(X), before)
    assert "members were fitted on 3 splits" in finished.summary()
    number = finished.predictor.ensemble.members[0]
    (folder / "members" / f"{number:06d}-3.skops").unlink()
    models = continue_run(folder).predictor.models
    assert {n: len(each) for n, each in models.items()} == {n: 3 if n == number else 9 for n in models}


@pytest.mark.long
def test_a_file_without_a_fact_is_overwritten(tmp_path):
    folder = tmp_path / "run"
    fitted(folder, budget="3trials", repeats=1)
    for number in range(3, 6):
        (folder / "members" / f"{number:06d}-2.skops").write_bytes(b"cut short")
    fitted(folder, budget="6trials", repeats=1, resume=True)
    assert {len(models) for models in Predictor.load(folder).models.values()} == {6}


@pytest.mark.parametrize(
    ("settings", "budget", "expected"),
    [
        ({}, Budget(seconds=60), 2),
        ({}, Budget(seconds=60, trials=9), 0),
        ({}, Budget(trials=9), 0),
        ({}, None, 0),
        ({"resampling": "holdout"}, Budget(seconds=60), 0),
        ({"repeats": 3}, Budget(trials=9), 3),
        ({"resampling": "holdout", "repeats": 3}, Budget(trials=9), 0),  # means of predictions for different rows
        ({"resampling": ShuffleSplit(3, random_state=0), "repeats": 3}, Budget(trials=9), 0),
        ({"resampling": KFold(3), "repeats": 3}, Budget(trials=9), 3),
        ({"repeats": 0}, Budget(seconds=60), 0),
    ],
)
def test_how_often_members_are_repeated(tmp_path, settings, budget, expected):
    with RunDirectory.create(tmp_path / "run", X, Y, RunSettings(**settings)) as run:
        assert Repeats(run, budget, members=None, encoders=[]).most == expected


def test_members_that_have_overtaken_a_long_trial_do_not_break_the_search(tmp_path, repeated):
    """The ensemble has trials as they arrive, the history in their order."""

    class Members:
        def is_own(self, number):
            return True

        def splits(self, number):
            return 1

    history = repeated[1].study_.history
    behind = replace(history, observations=history.observations[:2])
    weights = dict.fromkeys(range(len(history)), 0.2)
    with RunDirectory.create(tmp_path / "run", X, Y, RunSettings()) as run:
        repeats = Repeats(run, Budget(seconds=1e6), members=Members(), encoders=[])
        assert 0 < repeats.reserved_seconds(behind, weights) < repeats.reserved_seconds(history, weights)


@pytest.mark.parametrize(("seconds", "chosen"), [(100.0, 0), (5.0, 1), (3.5, 2), (1.2, 3), (0.9, None)])
def test_the_last_repeat_is_one_that_may_still_end(seconds, chosen):
    assert next_in_time({0: 8.0, 1: 3.0, 2: 2.0, 3: 1.0}, seconds) == chosen


class Counting(InProcessExecutor):
    """Counts what it has run."""

    n_done = 0

    def submit(self, objective, trial):
        future = super().submit(objective, trial)
        self.n_done += 1
        return future


@pytest.mark.parametrize(("seconds_left", "n_kept"), [(0.01, 0), (100.0, 1)])
def test_a_repeat_that_there_is_no_time_to_keep_is_dropped(repeated, tmp_path, seconds_left, n_kept):
    folder, executor = tmp_path / "run", Counting()
    shutil.copytree(repeated[0], folder)
    encoders = Predictor.load(folder).encoders[:3]
    with RunDirectory.open(folder) as run:
        run.store.set_fact("splits", {})
        members = Members(run.store, None, pace=Pace())
        Repeats(run, Budget(seconds=1e6), members, encoders).fit(
            (repeated[1].study_.history, {int(repeated[1].ensemble_["trial"].max()): 1.0}),
            executor,
            late=lambda: None,
            n_busy=lambda: 0,
            seconds_left=lambda: seconds_left if executor.n_done else 1e6,
            stop=lambda: bool(members.averages),
            on_tick=lambda: None,
        )
    assert executor.n_done == 1
    assert len(splits_of(folder)) == n_kept


@pytest.mark.long
def test_regression(tmp_path):
    model = AutoRegressor(
        budget="3trials", repeats=1, isolation="none", resampling="2fold", run_directory=tmp_path / "r"
    )
    y = X.select_dtypes("number").iloc[:, 0].fillna(0)
    features = X.drop(columns=y.name)
    model.fit(features, y)
    assert {len(models) for models in Predictor.load(tmp_path / "r").models.values()} == {4}
    assert np.isfinite(model.predict(features)).all()


@pytest.mark.parametrize("value", ["often", -1, 1.5, True, 21])
def test_other_values_are_refused(value):
    with pytest.raises(InvalidParameterError, match="repeats"):
        AutoClassifier(repeats=value).fit(X, Y)


@pytest.mark.slow
def test_small_tables_are_repeated_in_time(tmp_path):
    def fast(profile):
        return make_space("default", profile).restricted_to(["logistic_regression", "svm"])

    clock = time.monotonic()
    AutoClassifier(budget="15s", space=fast, run_directory=tmp_path / "run", n_workers=2).fit(X, Y)
    assert time.monotonic() - clock < 16.5
    assert splits_of(tmp_path / "run")
