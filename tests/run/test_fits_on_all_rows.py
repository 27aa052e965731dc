"""Members of the final ensemble that are fitted again on all rows."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier, AutoRegressor, Predictor
from cashmere.base.pace import Pace
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.exceptions import IncompatibleParametersError, InvalidParameterError, ModelFileError
from cashmere.execution.in_process import InProcessExecutor
from cashmere.model.description import describe_model
from cashmere.model.files import read_manifest
from cashmere.records.budget import Budget
from cashmere.run import RunDirectory, RunSettings, continue_run, refine_run, retrain_run
from cashmere.run.members import Members
from cashmere.run.repeats import Repeats
from cashmere.storage.store import RunStore

FRAME = demo_table()
TABLE = FRAME.head(300)
X, Y = TABLE.drop(columns=DEMO_TARGET), TABLE[DEMO_TARGET]
UNSEEN = FRAME.drop(columns=DEMO_TARGET).iloc[300:400]


def fitted(folder, *, refit=True, **settings):
    defaults = {"budget": "6trials", "resampling": "3fold", "isolation": "none"}
    return AutoClassifier(refit=refit, run_directory=folder, **{**defaults, **settings}).fit(X, Y)


def splits_of(folder):
    with RunStore(folder, read_only=True) as store:
        return store.facts().splits or {}


@pytest.fixture(scope="module")
def refitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refitted") / "run"
    return folder, fitted(folder)


@pytest.fixture(scope="module")
def of_folds(tmp_path_factory):
    return fitted(tmp_path_factory.mktemp("folds") / "run", refit=False)


def test_members_predict_with_two_fits_on_all_rows_as_well(refitted):
    predictor = Predictor.load(refitted[0])
    assert predictor.first_refit == 3
    assert len(predictor.encoders) == 5
    assert {len(models) for models in predictor.models.values()} == {5}
    assert {tuple(predictor.averaged_models(n)) for n in predictor.models} == {(0, 1, 2, 3, 4)}
    assert {tuple(predictor.averaged_models(n, of_folds=True)) for n in predictor.models} == {(0, 1, 2)}
    coded = predictor.schema.code(UNSEEN)
    for number, alone in predictor.predict_members(UNSEEN).items():
        each = [
            model.predict(predictor.encoders[k][model.encoding].transform(coded))
            for k, model in enumerate(predictor.models[number])
        ]
        of_folds, of_fits = np.mean(each[:3], axis=0), np.mean(each[3:], axis=0)
        np.testing.assert_allclose(alone, (of_folds + 2 * of_fits) / 3, rtol=1e-5)


def test_trials_weights_and_scores_are_those_without(refitted, of_folds):
    model = refitted[1]
    trials = ["trial", "algorithm", "loss"]
    pd.testing.assert_frame_equal(model.leaderboard_[trials], of_folds.leaderboard_[trials])
    pd.testing.assert_frame_equal(model.ensemble_, of_folds.ensemble_)
    assert not np.allclose(model.predict_proba(UNSEEN), of_folds.predict_proba(UNSEEN))
    assert np.abs(model.predict_proba(UNSEEN) - of_folds.predict_proba(UNSEEN)).mean() < 0.1


def test_sets_are_those_of_the_folds_that_their_scores_come_from(refitted, of_folds):
    np.testing.assert_array_equal(refitted[1].predict_set(UNSEEN, 0.8), of_folds.predict_set(UNSEEN, 0.8))


def test_the_saved_model_predicts_the_same_and_says_so(refitted):
    folder, model = refitted
    np.testing.assert_array_equal(Predictor.load(folder).predict_proba(UNSEEN), model.predict_proba(UNSEEN))
    assert describe_model(folder).facts["folds"] == "3, and fits on all rows"
    n = len(model.ensemble_)
    report = (folder / "report.html").read_text()
    assert f"{n} of {n} members predict with fits on all rows, with different seeds; the scores are those of" in report


def test_the_two_fits_have_different_seeds(refitted):
    predictor = Predictor.load(refitted[0])
    algorithms = predictor.information["algorithms"]
    random = [n for n in predictor.models if algorithms[str(n)] not in ("logistic_regression", "knn")]
    assert random
    for number in random:
        first, second = (predictor.models[number][k] for k in (3, 4))
        prepared = predictor.encoders[3][first.encoding].transform(predictor.schema.code(UNSEEN))
        assert not np.array_equal(first.predict(prepared), second.predict(prepared))


@pytest.mark.long
def test_same_seed_same_model_in_worker_processes(refitted, tmp_path):
    again = fitted(tmp_path / "run", isolation="process", n_workers=2)
    np.testing.assert_allclose(again.predict_proba(UNSEEN), refitted[1].predict_proba(UNSEEN), atol=1e-6)


def test_a_resumed_run_keeps_its_fits(refitted, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(refitted[0], folder)
    before = refitted[1].predict_proba(UNSEEN)
    finished = continue_run(folder)
    assert finished.predictor is not None
    np.testing.assert_array_equal(finished.predictor.predict_proba(UNSEEN), before)
    assert "Refit: " in finished.summary()
    assert "members predict with fits on all rows" in finished.summary()
    number = finished.predictor.ensemble.members[0]
    (folder / "members" / f"{number:06d}-3.skops").unlink()
    predictor = continue_run(folder).predictor
    assert {n: len(each) for n, each in predictor.models.items()} == {
        n: 3 if n == number else 5 for n in predictor.models
    }
    assert tuple(predictor.averaged_models(number)) == (0, 1, 2)


@pytest.mark.long
def test_a_refined_model_predicts_with_them_too(refitted, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(refitted[0], folder)
    refined = refine_run(folder, max_size="1GB")
    predictor = Predictor.load(refined.model_folder)
    assert predictor.first_refit == 3
    assert any(tuple(predictor.averaged_models(n)) == (0, 1, 2, 3, 4) for n in predictor.models)
    alone = refine_run(folder, refit=True)
    assert {len(models) for models in Predictor.load(alone.model_folder).models.values()} == {1}


@pytest.mark.long
def test_a_retrained_run_is_refitted_as_the_earlier_one(refitted, tmp_path):
    retrain_run(refitted[0], X, Y, out=tmp_path / "run")
    assert all(fact.get("all_rows") for fact in splits_of(tmp_path / "run").values())
    assert splits_of(tmp_path / "run")


@pytest.mark.long
def test_rows_in_time(tmp_path):
    table = X.assign(day=np.arange(len(X)))
    model = AutoClassifier(
        budget="4trials", refit=True, isolation="none", resampling="3fold", run_directory=tmp_path / "run"
    ).fit(table, Y, time="day")
    predictor = Predictor.load(tmp_path / "run")
    assert {tuple(predictor.averaged_models(n)) for n in predictor.models} == {(3, 4)}
    assert {tuple(predictor.averaged_models(n, of_folds=True)) for n in predictor.models} == {(2,)}
    assert model.predict_set(table[:5], 0.8).shape == (5, 2)
    assert describe_model(tmp_path / "run").facts["folds"] == "the newest of 3, and fits on all rows"
    assert "no model has seen" not in continue_run(tmp_path / "run").summary()


@pytest.mark.long
def test_intervals_in_time_are_around_the_predictions_of_the_fits(tmp_path):
    numbers = X.select_dtypes("number").fillna(0)
    table, y = numbers.iloc[:, 1:], numbers.iloc[:, 0]
    settings = {"budget": "2trials", "isolation": "none", "resampling": "3fold"}
    model = AutoRegressor(refit=True, run_directory=tmp_path / "run", **settings).fit(table, y, time=np.arange(len(y)))
    predictor = Predictor.load(tmp_path / "run")
    assert {tuple(predictor.averaged_models(n)) for n in predictor.models} == {(3, 4)}
    low, high = model.predict_interval(table[:20], 0.8).T
    predicted = model.predict(table[:20])
    assert ((low <= predicted) & (predicted <= high)).all()


@pytest.mark.long
def test_they_predict_alone_under_a_limit_of_the_latency(tmp_path):
    fitted(tmp_path / "run", max_latency="10s")
    predictor = Predictor.load(tmp_path / "run")
    assert {tuple(predictor.averaged_models(n)) for n in predictor.models} == {(3, 4)}


def test_they_predict_alone_in_models_that_do_not_say_how_they_predict(refitted, tmp_path):
    shutil.copytree(refitted[0] / "model", folder := tmp_path / "model")
    manifest = read_manifest(folder)
    del manifest["refits_alone"]
    predictor = Predictor.from_manifest(folder, manifest)
    assert {tuple(predictor.averaged_models(n)) for n in predictor.models} == {(3, 4)}


@pytest.mark.long
def test_regression(tmp_path):
    y = X.select_dtypes("number").iloc[:, 0].fillna(0)
    features = X.drop(columns=y.name)
    model = AutoRegressor(
        budget="3trials", refit=True, isolation="none", resampling="holdout", run_directory=tmp_path / "run"
    ).fit(features, y)
    assert {len(models) for models in Predictor.load(tmp_path / "run").models.values()} == {3}
    intervals = model.predict_interval(features, 0.8)
    assert ((intervals[:, 0] <= y) & (y <= intervals[:, 1])).mean() > 0.7


@pytest.mark.parametrize(
    ("n_rows", "settings", "budget", "expected"),
    [
        (1001, {}, Budget(seconds=60), (True, 2)),
        (1000, {}, Budget(seconds=60), (False, 2)),
        (1001, {"refit": False}, Budget(seconds=60), (False, 0)),
        (1001, {"repeats": 0}, Budget(seconds=60), (True, 2)),
        (1001, {"repeats": 1}, Budget(seconds=60), (False, 1)),
        (1001, {"resampling": "holdout"}, Budget(seconds=60), (True, 2)),
        (1001, {}, Budget(trials=9), (True, 0)),
        (1001, {}, Budget(seconds=60, trials=9), (True, 0)),
        (1001, {}, None, (True, 0)),
        (300, {"refit": True}, Budget(trials=9), (True, 2)),
    ],
)
def test_which_members_are_fitted_on_all_rows(tmp_path, n_rows, settings, budget, expected):
    table = pd.concat([FRAME] * 5, ignore_index=True).head(n_rows)
    X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]
    with RunDirectory.create(tmp_path / "run", X, y, RunSettings(**settings)) as run:
        repeats = Repeats(run, budget, members=None, encoders=[])
        assert (repeats.on_all_rows, repeats.most) == expected


@pytest.mark.parametrize(("settings", "expected"), [({}, (True, 2)), ({"refit": False}, (False, 0))])
def test_in_time_members_are_fitted_on_all_rows_of_any_number(tmp_path, settings, expected):
    structure = RowStructure(kind=StructureKind.TIME, codes=np.arange(len(X)))
    with RunDirectory.create(tmp_path / "run", X, Y, RunSettings(**settings), structure=structure) as run:
        repeats = Repeats(run, Budget(seconds=60), members=None, encoders=[])
        assert (repeats.on_all_rows, repeats.most) == expected


class Ordered(InProcessExecutor):
    """Notes what it fits."""

    def __init__(self):
        super().__init__()
        self.fitted = []

    def submit(self, objective, trial):
        self.fitted.append(trial.number)
        return super().submit(objective, trial)


def fit_again(folder, choices, executor, n_busy=lambda: 0):
    with RunDirectory.open(folder) as run:
        run.store.set_fact("splits", {})
        members = Members(run.store, None, pace=Pace())
        Repeats(run, Budget(seconds=1e6), members, Predictor.load(folder).encoders[:3]).fit(
            next(choices),
            executor,
            late=lambda: next(choices, None),
            n_busy=n_busy,
            seconds_left=lambda: 1e6,
            stop=lambda: False,
            on_tick=lambda: None,
        )


def test_all_members_are_fitted_once_before_any_is_fitted_twice(refitted, tmp_path):
    shutil.copytree(refitted[0], folder := tmp_path / "run")
    first, second = refitted[1].study_.history.successes[:2]
    weights, executor = {first.trial.number: 0.4, second.trial.number: 0.6}, Ordered()
    fit_again(folder, iter([(refitted[1].study_.history, weights)]), executor)
    assert executor.fitted == 2 * [second.trial.number, first.trial.number]
    assert {number: fact["count"] for number, fact in splits_of(folder).items()} == {str(n): 3 for n in weights}


def test_members_from_trials_that_end_meanwhile_are_fitted_too(refitted, tmp_path):
    shutil.copytree(refitted[0], folder := tmp_path / "run")
    history = refitted[1].study_.history
    first, second = (o.trial.number for o in history.successes[:2])
    late, executor = [(history, {first: 1.0}), None, (history, {first: 0.3, second: 0.7})], Ordered()
    executor.n_workers = 2
    choices = (late.pop(0) for _ in range(len(late)))
    fit_again(folder, choices, executor, n_busy=lambda: min(1, len(late)))
    assert executor.fitted == [first, second, first, second]
    assert {number: fact["count"] for number, fact in splits_of(folder).items()} == {str(first): 3, str(second): 3}


class Unsound(InProcessExecutor):
    """Returns models that are worse on rows they have seen than those of all folds on rows they have not."""

    def submit(self, objective, trial):
        future = super().submit(objective, trial)
        outcome = future.result()
        future = type(future)()
        future.set_result(replace(outcome, loss=outcome.loss + 10.0))
        return future


@pytest.mark.parametrize(("executor", "n_kept"), [(InProcessExecutor, 1), (Unsound, 0)])
def test_models_that_are_worse_than_those_of_the_folds_are_dropped(refitted, tmp_path, executor, n_kept):
    folder, member = tmp_path / "run", int(refitted[1].ensemble_["trial"].max())
    shutil.copytree(refitted[0], folder)
    fit_again(folder, iter([(refitted[1].study_.history, {member: 1.0})]), executor())
    assert len(splits_of(folder)) == n_kept


class Known:
    """Members that this machine has trained; adding a fit to them takes 3 seconds."""

    def is_own(self, number):
        return True

    def splits(self, number):
        return 1

    def adding_seconds(self, number):
        return 3.0


def test_time_is_reserved_for_a_share_of_the_trials(refitted, tmp_path):
    history = refitted[1].study_.history
    number = history.successes[0].trial.number
    table = pd.concat([FRAME] * 5, ignore_index=True).head(1001)
    settings = RunSettings(n_workers=2)
    with RunDirectory.create(tmp_path / "run", table.drop(columns=DEMO_TARGET), table[DEMO_TARGET], settings) as run:
        repeats = Repeats(run, Budget(seconds=1e6), members=Known(), encoders=[], preparing_seconds=8.0)
        assert repeats.reserved_seconds(history, {number: 1.0}) == 0  # after few trials, the search goes on
        enough = replace(history, observations=history.observations * 5)
        found = repeats.reserved_seconds(enough, {number: 1.0})
    # A fit on all rows takes a quarter of a trial that fits five folds; there are two workers, busy with late trials.
    late = np.mean([observation.duration_seconds for observation in enough.observations[-20:]]) / 2
    assert found == pytest.approx(2.0 + late + (history[number].duration_seconds / 4 + 3.0) / 2, rel=0.02)


def test_in_time_it_is_reserved_after_any_number_of_trials(refitted, tmp_path):
    history, structure = refitted[1].study_.history, RowStructure(kind=StructureKind.TIME, codes=np.arange(len(X)))
    with RunDirectory.create(tmp_path / "run", X, Y, RunSettings(), structure=structure) as run:
        repeats = Repeats(run, Budget(seconds=1e6), members=Known(), encoders=[])
        assert repeats.reserved_seconds(history, {history.successes[0].trial.number: 1.0}) > 0


def test_a_model_that_hides_its_fits_is_refused(refitted, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(refitted[0] / "model", folder)
    manifest = read_manifest(folder)
    with pytest.raises(ModelFileError, match="has 5 folds"):
        Predictor.from_manifest(folder, {**manifest, "refitted": False})


@pytest.mark.parametrize("value", ["often", 1, 0.5, None])
def test_other_values_are_refused(value):
    with pytest.raises(InvalidParameterError, match="refit"):
        AutoClassifier(refit=value).fit(X, Y)


def test_repeats_and_refit_exclude_each_other():
    with pytest.raises(IncompatibleParametersError, match="refit and repeats=2"):
        AutoClassifier(refit=True, repeats=2).fit(X, Y)
