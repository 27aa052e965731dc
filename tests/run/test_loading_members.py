"""The models of a run's trials on disk."""

from __future__ import annotations

import pytest

from cashmere import AutoClassifier
from cashmere.base.pace import Pace
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.model.archives import load_fold_models
from cashmere.run.members import Members, algorithm_of
from cashmere.space import make_space
from cashmere.storage.store import RunStore


def two_algorithms(profile):
    return make_space("classic", profile).restricted_to(["extra_trees", "logistic_regression"])


@pytest.mark.long
def test_how_long_models_take_to_load_is_learned_for_each_algorithm(tmp_path):
    frame, folder = demo_table().head(100), tmp_path / "run"
    model = AutoClassifier(budget="2trials", space=two_algorithms, isolation="none", run_directory=folder)
    model.fit(frame.drop(columns=DEMO_TARGET), frame[DEMO_TARGET])
    pace, history = Pace(), model.study_.history
    number = {algorithm_of(o): o.trial.number for o in history}
    forest, logistic = number["extra_trees"], number["logistic_regression"]
    with RunStore(folder) as store:
        members = Members(store, load_fold_models(store.baseline_path), pace=pace)
        unknown = members.loading_seconds(forest)
        members.look(history)
        expected = members.loading_seconds(forest)
        assert expected < unknown  # forests are arrays
        members.load(logistic)
        assert members.loading_seconds(logistic) == 0
        assert members.loading_seconds(forest) == expected
        pace.note("loading logistic_regression", seconds=1000.0)
        assert members.loading_seconds(forest) == expected
        members.load(forest)
        members.forget([])
        assert members.loading_seconds(logistic) > 1000
        assert 0 < members.loading_seconds(forest) < 10


def test_small_models_are_expected_to_take_no_longer_than_others(tmp_path):
    def boosting(profile):
        return make_space("classic", profile).restricted_to(["xgboost"])

    frame, folder = demo_table().head(100), tmp_path / "run"
    model = AutoClassifier(budget="1trials", space=boosting, isolation="none", run_directory=folder)
    model.fit(frame.drop(columns=DEMO_TARGET), frame[DEMO_TARGET])
    with RunStore(folder) as store:
        members = Members(store, load_fold_models(store.baseline_path), pace=Pace())
        of_others = members.loading_seconds(0)
        members.look(model.study_.history)
        assert of_others < members.loading_seconds(0) < 1.3 * of_others


@pytest.mark.long
def test_one_trial_of_each_algorithm_tells_how_long_the_others_take(tmp_path):
    frame, folder = demo_table().head(100), tmp_path / "run"
    model = AutoClassifier(budget="4trials", space=two_algorithms, isolation="none", run_directory=folder)
    model.fit(frame.drop(columns=DEMO_TARGET), frame[DEMO_TARGET])
    history = model.study_.history
    forests = [o.trial.number for o in history if algorithm_of(o) == "extra_trees"]
    with RunStore(folder) as store:
        members = Members(store, load_fold_models(store.baseline_path), pace=Pace())
        members.look(history)
        before = members.loading_seconds(forests[0])
        members.learn_loading(forests, lambda seconds: False)
        assert members.loading_seconds(forests[0]) == before
        members.learn_loading(forests, lambda seconds: True)
        assert members.loading_seconds(forests[0]) != before
        assert not members.loaded & set(forests)
        loaded = []
        members.learn_loading(forests, loaded.append)  # known by now
        assert not loaded
