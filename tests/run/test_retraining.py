"""Runs that begin with the members of an earlier one: retrained on newer rows, or searched on."""

from __future__ import annotations

import gc
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from cashmere import AutoClassifier, AutoRegressor, Predictor
from cashmere.data.task import TaskType
from cashmere.exceptions import (
    ArtefactError,
    DataError,
    IncompatibleParametersError,
    InvalidParameterError,
    LeftOutWarning,
    RunDirectoryError,
    SchemaError,
    UnknownValuesWarning,
)
from cashmere.records.budget import Budget
from cashmere.run import RunDirectory, continue_run, retrain_run
from cashmere.run.members_opening import opening_of_members
from cashmere.run.progress import Silence
from cashmere.storage.store import RunStore
from cashmere.strategies import RandomSearch

QUICK = {
    "include": ["logistic_regression", "knn"],
    "resampling": "3fold",
    "isolation": "none",
    "metric": "brier",
    "random_state": 3,
}


def months(seed, n=150):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "shop": rng.integers(0, 4, n)})
    X["shop"] = X["shop"].astype("category")
    X["day"] = np.arange(n)
    return X, pd.Series(np.where(X["a"] + 0.3 * rng.normal(size=n) > 0, "yes", "no"), name="bought")


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """Six trials, of which some are members."""
    folder = tmp_path_factory.mktemp("earlier") / "run"
    X, y = months(0)
    AutoClassifier(budget="6trials", run_directory=folder, **QUICK).fit(X.drop(columns="day"), y)
    return folder


def tried(folder):
    with RunStore(folder, read_only=True) as store:
        return [row["configuration"] for row in store.rows()]


def test_opening_of_a_run_is_its_members_then_the_defaults(earlier):
    opening = opening_of_members(earlier, space="default")
    with RunDirectory.open(earlier, searches=False) as run:
        ensemble, found = run.store.facts().ensemble, list(opening.gains(run.space))
    heaviest = ensemble["members"][int(np.argmax(ensemble["weights"]))]
    assert opening.steps_first and opening.space == "default"
    assert opening.steps[0].values == tried(earlier)[heaviest]
    assert [dict(each) for each in found[: len(opening.steps)]] == [dict(step.values) for step in opening.steps]
    assert {each["algorithm"] for each in found} == {"logistic_regression", "knn"}
    gains = list(opening.gains(run.space).values())
    assert min(gains[: len(opening.steps)]) > 1000 * max(gains[len(opening.steps) :])


def test_members_are_fitted_again_on_newer_rows(earlier, tmp_path):
    X, y = months(1, n=90)
    members = [dict(step.values) for step in opening_of_members(earlier, space="default").steps]
    finished = retrain_run(earlier, X.assign(new=1)[["new", "shop", "b", "a"]], y, out=tmp_path / "new")
    assert tried(tmp_path / "new") == members
    settings = json.loads((tmp_path / "new" / "run.json").read_text())["settings"]
    assert settings["metric"] == "brier" and settings["seed"] == 3 and settings["target_name"] == "bought"
    assert finished.predictor is not None
    np.testing.assert_array_equal(
        Predictor.load(tmp_path / "new").predict_proba(X), finished.predictor.predict_proba(X)
    )
    assert Predictor.load(tmp_path / "new").predict_set(X).shape == (90, 2)


def test_earlier_run_is_only_read(earlier, tmp_path):
    X, y = months(1, n=90)
    with RunDirectory.open(earlier, searches=False):  # as another process may have it open
        files = [path for path in earlier.rglob("*") if path.name != "lease"]  # which is renewed
        before = [path.stat().st_mtime_ns for path in files]
        assert retrain_run(earlier, X, y, out=tmp_path / "new").rows
        assert [path.stat().st_mtime_ns for path in files] == before


def test_same_rows_give_the_same_members_back(earlier, tmp_path):
    X, y = months(0)
    retrain_run(earlier, X, y, out=tmp_path / "new")
    losses = {}
    for folder in (earlier, tmp_path / "new"):
        with RunStore(folder, read_only=True) as store:
            losses[folder] = {json.dumps(row["configuration"]): row["loss"] for row in store.rows()}
    for configuration, loss in losses[tmp_path / "new"].items():
        assert loss == pytest.approx(losses[earlier][configuration], rel=1e-6)


def test_search_can_go_on_from_the_members_and_the_earlier_run_may_be_gone(earlier, tmp_path):
    X, y = months(1)
    n_members = len(opening_of_members(earlier, space="default").steps)
    copy = tmp_path / "copy"
    shutil.copytree(earlier, copy)
    retrain_run(copy, X, y, out=tmp_path / "new", budget=f"{n_members + 2}trials")
    shutil.rmtree(copy)
    continue_run(tmp_path / "new", Budget(trials=1), load=False)
    configurations = tried(tmp_path / "new")
    assert len(configurations) == n_members + 3
    assert configurations[:n_members] == tried_members(earlier)


def tried_members(folder):
    return [dict(step.values) for step in opening_of_members(folder, space="default").steps]


@pytest.mark.long
def test_time_budget_begins_with_the_members(earlier, tmp_path):
    X, y = months(1)
    model = AutoClassifier(budget="6s", opening=earlier, run_directory=tmp_path / "new", **QUICK)
    model.fit(X.drop(columns="day"), y)
    members = tried_members(earlier)
    begun = [{**each, "logistic_regression:C": None} for each in tried(tmp_path / "new")[: len(members)]]
    assert all({**each, "logistic_regression:C": None} in begun for each in members)


def test_numbers_are_categories_where_the_run_has_read_categories(earlier, tmp_path):
    X, y = months(1, n=90)
    retrain_run(earlier, X.assign(shop=X["shop"].astype(int)), y, out=tmp_path / "new")
    with RunDirectory.open(tmp_path / "new", searches=False) as run:
        assert {column.name: column.kind.value for column in run.schema.columns}["shop"] == "categorical"


def test_refusals_say_what_is_missing(earlier, tmp_path):
    X, y = months(1)
    with pytest.raises(SchemaError, match="has learned from 2 columns that the table lacks: 'a', 'shop'"):
        retrain_run(earlier, X[["b"]], y, out=tmp_path / "new")
    with pytest.raises(RunDirectoryError, match="does not exist"):
        retrain_run(tmp_path / "nothing", X, y, out=tmp_path / "new")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunDirectoryError):
        AutoClassifier(budget="2trials", opening=tmp_path / "empty", **QUICK).fit(X, y)
    with pytest.raises(ArtefactError, match="or a run directory"):
        AutoClassifier(budget="2s", opening=tmp_path / "no-file", **QUICK).fit(X, y)
    with pytest.raises(IncompatibleParametersError, match="unless it is a run"):
        AutoClassifier(budget="2trials", opening="learned", **QUICK).fit(X, y)
    settings = {**QUICK, "include": None}
    with pytest.raises(ArtefactError, match="'default', but the run searches 'classic'"):
        AutoClassifier(budget="2trials", opening=earlier, space="classic", **settings).fit(X, y)
    assert not (tmp_path / "new").exists()


def test_groups_are_those_of_the_earlier_run(tmp_path):
    X, y = months(0)
    X = X.drop(columns="day")
    frames = [X.assign(patient=np.arange(len(X)) % n) for n in (30, 20)]
    AutoClassifier(budget="3trials", run_directory=tmp_path / "run", **QUICK).fit(frames[0], y, groups="patient")
    retrain_run(tmp_path / "run", frames[1], y, out=tmp_path / "new")
    with RunDirectory.open(tmp_path / "new", searches=False) as run:
        assert run.rows.structure is not None and len(np.unique(run.rows.structure.codes)) == 20
        assert "patient" not in {column.name for column in run.schema.columns}
    with pytest.raises(SchemaError, match="'patient'"):
        retrain_run(tmp_path / "run", X, y, out=tmp_path / "newer")


@pytest.mark.long
def test_repeats_are_repeated(tmp_path):
    X, y = months(0, n=80)
    AutoClassifier(budget="6trials", repeats=1, run_directory=tmp_path / "run", **QUICK).fit(X, y)
    for given, expected in (("auto", 1), (0, 0)):
        path = tmp_path / "run" / "run.json"
        content = json.loads(path.read_text())
        content["settings"]["repeats"] = given
        path.write_text(json.dumps(content))
        retrain_run(tmp_path / "run", X, y, out=tmp_path / f"new-{given}")
        settings = json.loads((tmp_path / f"new-{given}" / "run.json").read_text())["settings"]
        assert settings["repeats"] == expected
        with RunStore(tmp_path / f"new-{given}", read_only=True) as store:
            assert bool(store.facts().splits) == bool(expected)


def test_task_stays_that_of_the_earlier_run(tmp_path):
    X, _ = months(0)
    X = X.drop(columns=["day", "shop"])
    settings = {**QUICK, "metric": "rmse", "include": ["ridge", "knn"]}
    AutoRegressor(budget="3trials", run_directory=tmp_path / "run", **settings).fit(X, X["a"] + X["b"])
    rooms = pd.Series(np.clip(np.round(X["a"] + 2), 0, 4).astype(int))  # few whole numbers, which would be classes
    finished = retrain_run(tmp_path / "run", X, rooms, out=tmp_path / "new")
    assert finished.predictor is not None and finished.predictor.target.task_type is TaskType.REGRESSION


def test_tables_without_names_are_matched_by_position(tmp_path):
    X, y = months(0)
    X = X[["a", "b"]].to_numpy()
    AutoClassifier(budget="3trials", run_directory=tmp_path / "run", **QUICK).fit(X, y)
    for newer in (X, pd.DataFrame(X, columns=["one", "two"])):
        folder = tmp_path / f"new-{type(newer).__name__}"
        finished = retrain_run(tmp_path / "run", newer, y, out=folder)
        assert finished.predictor is not None and not finished.predictor.schema.named
        assert len(Predictor.load(folder).predict(pd.DataFrame(X[:3], columns=["x", "y"]))) == 3


def test_infinities_matter_in_columns_of_the_run_only(earlier, tmp_path):
    X, y = months(1)
    retrain_run(earlier, X.assign(other=np.inf), y, out=tmp_path / "new")
    with pytest.raises(DataError, match="'b'"):
        retrain_run(earlier, X.assign(b=np.inf), y, out=tmp_path / "newer")


def test_custom_strategy_is_needed_to_search_on(tmp_path):
    X, y = months(0)
    settings = {**QUICK, "strategy": RandomSearch}
    AutoClassifier(budget="3trials", run_directory=tmp_path / "run", **settings).fit(X, y)
    retrain_run(tmp_path / "run", X, y, out=tmp_path / "new")
    with pytest.raises(RunDirectoryError, match="custom strategy"):
        retrain_run(tmp_path / "run", X, y, out=tmp_path / "newer", budget="9trials")


def test_members_that_cannot_be_fitted_are_told(earlier):
    X, y = months(1)
    lacking = {each["algorithm"] for each in tried_members(earlier)} - {"extra_trees"}
    settings = {**QUICK, "include": ["extra_trees"], "budget": "1trials", "opening": earlier}
    with pytest.warns(LeftOutWarning, match=f"members of the earlier run with {', '.join(sorted(lacking))}, which"):
        AutoClassifier(**settings).fit(X, y)


def test_classes_must_be_those_of_the_earlier_run(earlier, tmp_path):
    X, y = months(1)
    for labels, message in (
        (y.replace("yes", "Yes"), "not in training: 'Yes'"),
        (pd.Series(["yes"] * len(y)), "No row has the label 'no', one of the 2 classes"),
    ):
        with pytest.raises(DataError, match=message):
            retrain_run(earlier, X, labels, out=tmp_path / "new")


def test_budget_must_suffice_for_the_members(earlier, tmp_path):
    X, y = months(1)
    n_members = len(tried_members(earlier))
    with pytest.raises(InvalidParameterError, match=f"at least {n_members} trial"):
        retrain_run(earlier, X, y, out=tmp_path / "new", budget=f"{n_members - 1}trials")


def test_lost_weights_are_told(tmp_path):
    X, y = months(0)
    settings = {**QUICK, "include": ["logistic_regression"], "budget": "1trials"}
    weight = np.linspace(1, 2, len(X))
    AutoClassifier(run_directory=tmp_path / "run", **settings).fit(X, y, sample_weight=weight)
    with pytest.warns(LeftOutWarning, match="row weights, which the earlier run had"):
        retrain_run(tmp_path / "run", X, y, out=tmp_path / "new")
    retrain_run(tmp_path / "run", X, y, out=tmp_path / "newer", sample_weight=weight)


def test_weights_come_from_the_column_of_the_earlier_run(tmp_path):
    X, y = months(0)
    X["persons"] = np.linspace(1, 2, len(X))
    settings = {**QUICK, "include": ["logistic_regression"], "budget": "1trials"}
    AutoClassifier(run_directory=tmp_path / "run", **settings).fit(X, y, sample_weight="persons")
    found = retrain_run(tmp_path / "run", X, y, out=tmp_path / "newer")
    again = retrain_run(tmp_path / "newer", X, y, out=tmp_path / "newest")
    other = retrain_run(
        tmp_path / "run", X.rename(columns={"persons": "heads"}), y, out=tmp_path / "o", sample_weight="heads"
    )
    without = retrain_run(
        tmp_path / "run", X.drop(columns="persons"), y, out=tmp_path / "w", sample_weight=np.ones(150)
    )
    rows = X.drop(columns="persons")
    expected = Predictor.load(tmp_path / "run").predict_proba(rows)
    for each in (found, again, other):
        np.testing.assert_allclose(Predictor.load(each.folder).predict_proba(rows), expected)
        assert list(X) == ["a", "b", "shop", "day", "persons"]
    assert not np.allclose(Predictor.load(without.folder).predict_proba(rows), expected)
    assert json.loads((other.folder / "run.json").read_text())["settings"]["weight_name"] == "heads"


def test_table_is_free_during_the_search(earlier, tmp_path):
    X, y = months(1)
    alive = []

    class Table(pd.DataFrame):
        pass

    def progress():
        gc.collect()
        alive.extend(each for each in gc.get_objects() if type(each) is Table)
        return Silence()

    retrain_run(earlier, Table(X), y, out=tmp_path / "new", progress=progress)
    assert not alive


@pytest.mark.filterwarnings("ignore:Column 'day' holds dates")
def test_columns_of_numbers_and_dates_stay_what_they_were(tmp_path):
    X, y = months(0)
    X = X.assign(day=pd.Timestamp("2024-01-01") + pd.to_timedelta(X["day"], unit="D"))
    AutoClassifier(budget="1trials", run_directory=tmp_path / "run", **QUICK).fit(X, y)
    codes = X.assign(a=X["a"].round(3).astype(str).where(X.index % 9 > 0, [f"E{i % 6}" for i in X.index]))
    with pytest.raises(SchemaError, match=r"'a' is numeric in the run .*, but would be categorical in the new one"):
        retrain_run(tmp_path / "run", codes, y, out=tmp_path / "codes")
    with pytest.raises(SchemaError, match=r"'day' is date in the run .*, but would be categorical in the new one"):
        retrain_run(tmp_path / "run", X.assign(day="Monday"), y, out=tmp_path / "days")
    assert not (tmp_path / "codes").exists()
    texts = X.assign(a=X["a"].astype(str), day=X["day"].astype(str), b=np.nan)
    with pytest.warns(LeftOutWarning, match=r"'b' \(all missing\), which the earlier run has used"):
        retrain_run(tmp_path / "run", texts, y, out=tmp_path / "texts")


def test_columns_that_no_longer_tell_anything_are_named(earlier, tmp_path):
    X, y = months(1)
    ids = X.assign(a=35.0, shop=[f"customer {i}" for i in X.index])
    expected = (
        r"Left out: 'a' \(constant\), 'shop' \(identifier: every value differs\), which the earlier run has used\."
    )
    with pytest.warns(LeftOutWarning, match=expected):
        retrain_run(earlier, ids, y, out=tmp_path / "ids")
    recoded = X.assign(shop=X["shop"].map({0: "north", 1: "south", 2: "west", 3: "east"}))
    expected = r"'shop' is one of the earlier run: it had '0', '1', '2' and 1 more; now there are 'east', 'north', "
    with pytest.warns(UnknownValuesWarning, match=expected):
        retrain_run(earlier, recoded, y, out=tmp_path / "recoded")


def test_splitter_may_give_other_folds_to_the_new_run(tmp_path):
    X, y = months(0)
    own = {"resampling": KFold(3, shuffle=True)}
    quick = {**QUICK, **own, "include": ["logistic_regression"]}
    AutoClassifier(budget="1trials", run_directory=tmp_path / "run", **quick).fit(X, y)
    assert retrain_run(tmp_path / "run", X, y, out=tmp_path / "new", own_objects=own).rows
