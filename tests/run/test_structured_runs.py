"""Runs on tables whose rows belong together or follow one another."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, cross_validate
from typer.testing import CliRunner

from cashmere import AutoClassifier, AutoRegressor, Predictor
from cashmere.analysis import read_out_of_fold
from cashmere.cli import app
from cashmere.data.inference import infer_schema
from cashmere.data.prepared import PreparedFolds, prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.data.task import Encoding, TaskType
from cashmere.exceptions import (
    CorruptStoreError,
    DataError,
    IncompatibleParametersError,
    InvalidParameterError,
    RowStructureWarning,
    RunDirectoryError,
    SchemaError,
    UnknownNameError,
)
from cashmere.records.budget import Budget
from cashmere.run import RunDirectory, continue_run
from cashmere.space import make_space
from cashmere.storage.store import RunStore

N = 200
N_GROUPS = 40


def quick_space(profile):
    linear = "logistic_regression" if profile.task_type.is_classification else "ridge"
    return make_space("default", profile).restricted_to([linear, "extra_trees"])


def visits(n=N, seed=0):
    """Some visits of each patient, on consecutive days."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.choice(["u", "v", "w"], n),
            "patient": rng.permutation(np.arange(n) % N_GROUPS),
            "day": pd.date_range("2024-01-01", periods=n)[rng.permutation(n)],
        }
    )
    return frame, (frame["a"] + rng.normal(size=n) > 0).map({True: "ill", False: "well"}).rename("state")


def model(estimator=AutoClassifier, **settings):
    return estimator(**{"budget": "3trials", "space": quick_space, "isolation": "none", **settings})


def digest(folder):
    with RunStore(folder, read_only=True) as store:
        return store.facts().digest


def is_apart(structure, fold):
    train, validation = structure.codes[fold.train], structure.codes[fold.validation]
    if structure.kind is StructureKind.GROUPS:
        return not set(train) & set(validation)
    return train.max() < validation.min()


# ---------------------------------------------------------------- what it is for


def near_copies(n_groups, seed):
    """Rows of a group are near copies with the same label, which hardly depends on the features."""
    rng = np.random.default_rng(seed)
    centres, labels = rng.normal(size=(n_groups, 6)), rng.integers(0, 2, n_groups)
    centres[:, 0] += 0.8 * labels
    group = np.repeat(np.arange(n_groups), 5)
    X = pd.DataFrame(centres[group] + 0.01 * rng.normal(size=(len(group), 6)), columns=list("abcdef"))
    return X, labels[group], group


@pytest.mark.long
def test_copies_in_other_folds_flatter_and_groups_do_not(tmp_path):
    X, y, group = near_copies(120, seed=0)
    X_new, y_new, _ = near_copies(400, seed=1)
    gaps = {}
    for name, given in (("random", {}), ("groups", {"groups": group})):
        fitted = model(budget="6trials", resampling="3fold", run_directory=tmp_path / name).fit(X, y, **given)
        claimed = Predictor.load(tmp_path / name).information["cross_fitted_loss"]
        gaps[name] = log_loss(y_new, fitted.predict_proba(X_new)) - claimed
    assert gaps["random"] > 0.4  # it is confident about rows that it has memorised
    assert abs(gaps["groups"]) < 0.1


# ---------------------------------------------------------------- from the table to the folds, and back


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Column 'patient' holds identifiers")
@pytest.mark.parametrize("column", ["patient", "day"])
@pytest.mark.parametrize("resampling", ["3fold", "holdout"])
def test_folds_of_a_run_respect_the_column_also_when_it_is_resumed(column, resampling, tmp_path):
    X, y = visits()
    kind = {"patient": "groups", "day": "time"}[column]
    settings = {"resampling": resampling, "run_directory": tmp_path / "run", "metric": "g_mean"}
    model(**settings).fit(X, y, **{kind: column})
    prepared = PreparedFolds(tmp_path / "run" / "prepared")
    stored = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert stored[kind] == column
    columns = json.loads((tmp_path / "run" / "schema.json").read_text())["columns"]["columns"]
    kept = {each["name"]: each.get("parts") for each in columns}
    assert ("patient" not in kept) if column == "patient" else kept["day"] == ["day", "weekday"]
    own = {"space": quick_space}
    with RunDirectory.open(tmp_path / "run", own) as run:
        structure = run.rows.structure
        assert structure.kind == kind and len(np.unique(structure.codes)) == X[column].nunique()
        assert all(is_apart(structure, fold) for fold in run.splits)
        for fold, again in zip(prepared.folds, run.splits, strict=True):
            np.testing.assert_array_equal(fold.train, again.train)
            np.testing.assert_array_equal(fold.validation, again.validation)
    order = np.random.default_rng(0).permutation(N)
    more = model(**{**settings, "budget": "5trials"}, resume=True).fit(X.iloc[order], y.iloc[order], **{kind: column})
    assert len(more.leaderboard_) == 5
    whole = model(**{**settings, "budget": "5trials", "run_directory": tmp_path / "whole"}).fit(X, y, **{kind: column})
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
    without = X.drop(columns=column)
    if column == "day":
        assert more.n_features_in_ == 4
        with pytest.raises(SchemaError, match="lacks 1 column it had in training: 'day'"):
            whole.predict_proba(without)
    else:
        assert more.n_features_in_ == 3 and column not in whole.feature_names_in_
        np.testing.assert_array_equal(whole.predict_proba(X), whole.predict_proba(without))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Column 'patient' holds identifiers")
def test_folds_of_a_run_keep_the_gap_also_when_it_is_resumed(tmp_path):
    X, y = visits()
    given = {"resampling": "2fold", "run_directory": tmp_path / "run", "gap": timedelta(days=3)}
    model(**given, budget="1trials").fit(X, y, time="day")
    with RunDirectory.open(tmp_path / "run", {"space": quick_space}) as run:
        newest = run.rows.structure.codes.max()
        known = int(run.rows.structure.known.max())
        assert 0 < known < newest
        splits = run.splits
    days = pd.to_datetime(X["day"]).to_numpy()
    out_of_fold = read_out_of_fold(tmp_path / "run")
    for fold in splits:
        assert not set(run.rows.structure.codes[fold.train]) & set(run.rows.structure.codes[fold.validation])
        source = run.rows.source
        assert days[source[fold.train]].max() <= days[source[fold.validation]].min() - np.timedelta64(3, "D")
    assert set(out_of_fold.rows) == set(np.concatenate([run.rows.source[fold.validation] for fold in splits]))
    more = model(**{**given, "budget": "2trials"}, resume=True).fit(X, y, time="day")
    assert len(more.leaderboard_) == 2
    with pytest.raises(RunDirectoryError, match="gap='3d'"):
        model(**{**given, "gap": "2d", "budget": "3trials"}, resume=True).fit(X, y, time="day")
    numbered = {**given, "gap": 30, "run_directory": tmp_path / "numbered", "budget": "1trials", "resume": True}
    model(**numbered).fit(X[["a", "b"]], y, time=np.arange(N))
    with pytest.raises(RunDirectoryError, match="other time of the rows"):
        model(**numbered).fit(X[["a", "b"]], y, time=2 * np.arange(N))


@pytest.mark.long
def test_values_of_a_series_or_an_array_do_the_same(tmp_path):
    X, y = visits()
    rest = X.drop(columns=["patient", "day"])
    for name, given in (("column", "patient"), ("array", X["patient"].to_numpy()), ("texts", X["patient"].astype(str))):
        table = X.drop(columns="day") if name == "column" else rest
        model(run_directory=tmp_path / name).fit(table, y, groups=given)
    assert digest(tmp_path / "column") == digest(tmp_path / "array") == digest(tmp_path / "texts")


@pytest.mark.long
def test_rows_of_weight_zero_leave_their_group(tmp_path):
    X, y = visits()
    weight = 2 * (np.arange(N) % 3 > 0)
    model(run_directory=tmp_path / "weights").fit(X, y, weight, groups="patient")
    rows = np.flatnonzero(weight)
    model(run_directory=tmp_path / "rows").fit(X.iloc[rows], y.iloc[rows], groups="patient")
    assert digest(tmp_path / "weights") == digest(tmp_path / "rows")


@pytest.mark.long
def test_resume_refuses_another_structure(tmp_path):
    X, y = visits()
    settings = {"run_directory": tmp_path / "run", "resume": True}
    model(**settings).fit(X, y, groups="patient")
    for given, text in (
        ({}, "groups='patient' and cannot continue with None"),
        ({"time": "day"}, "groups='patient' and cannot continue"),
        ({"groups": X["patient"].replace(0, 1)}, "other groups of the rows|other rows"),
    ):
        table = X.drop(columns="patient") if not isinstance(given.get("groups", ""), str) else X
        with pytest.raises(RunDirectoryError, match=text):
            model(**settings).fit(table, y, **given)


@pytest.mark.long
@pytest.mark.parametrize("names", [["a", "t"], [0, 1]])
def test_a_run_that_left_out_dates_is_resumed(names, tmp_path):
    """As runs of earlier versions did: here, since its moments are numbers."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({names[0]: rng.normal(size=N), names[1]: np.arange(N)})
    y = np.where(X[names[0]] + rng.normal(size=N) > 0, "ill", "well")
    settings = {"run_directory": tmp_path / "run", "resampling": "3fold"}
    model(budget="1trials", **settings).fit(X, y, time=str(names[1]))
    dated = X.astype({names[1]: object})
    dated[names[1]] = pd.date_range("2024-01-01", periods=N).strftime("%d.%m.%Y")
    more = model(budget="2trials", resume=True, **settings).fit(dated, y, time=str(names[1]))
    assert len(more.leaderboard_) == 2


@pytest.mark.long
def test_a_run_that_lost_its_groups_is_damaged(tmp_path):
    X, y = visits()
    model(run_directory=tmp_path / "run").fit(X, y, groups="patient")
    run_json = tmp_path / "run" / "run.json"
    content = json.loads(run_json.read_text())
    content["settings"]["groups"] = None
    run_json.write_text(json.dumps(content))
    with pytest.raises(CorruptStoreError, match="groups, the time or the gap"):
        RunDirectory.open(tmp_path / "run", {"space": quick_space})


@pytest.mark.long
def test_repeats_deal_the_groups_anew(tmp_path):
    X, y = visits()
    folder = tmp_path / "run"
    model(run_directory=folder, resampling="3fold", repeats=1).fit(X, y, groups="patient")
    first, second = PreparedFolds(folder / "prepared"), PreparedFolds(folder / "prepared" / "split1")
    with RunDirectory.open(folder, {"space": quick_space}) as run:
        assert all(is_apart(run.rows.structure, fold) for fold in second.folds)
    assert not np.array_equal(first.folds[0].validation, second.folds[0].validation)
    with RunStore(folder, read_only=True) as store:
        assert {fact["count"] for fact in store.facts().splits.values()} == {2}


@pytest.mark.parametrize("kind", list(StructureKind))
def test_rungs_of_prepared_folds_respect_the_structure(kind, tmp_path):
    X, y = visits(600)
    coded = infer_schema(X[["a", "b"]]).code(X[["a", "b"]])
    codes = (y == "ill").to_numpy().astype(np.int64)
    structure = RowStructure.from_values(X["patient" if kind is StructureKind.GROUPS else "day"], kind)
    folds = make_folds(codes, TaskType.BINARY, "3fold", seed=0, structure=structure)
    prepared, _ = prepare_folds(
        tmp_path, coded, codes, folds, [Encoding.ORDINAL], task_type=TaskType.BINARY, seed=0, structure=structure,
        rungs=(1 / 9, 1 / 3, 1.0),
    )  # fmt: skip
    for k, fold in enumerate(folds):
        for share in prepared.rungs:
            rows = prepared.train_rows(k, share)
            left = np.setdiff1d(fold.train, rows)
            if kind is StructureKind.TIME:
                assert not len(left) or structure.codes[rows].min() >= structure.codes[left].max()
            else:  # at most one group is split
                assert len(set(structure.codes[rows]) & set(structure.codes[left])) <= 1
            np.testing.assert_array_equal(
                prepared.load(k, Encoding.ORDINAL, share)[0][:, 0], coded.values[rows, 0].astype("f4")
            )


def test_regression_in_time_validates_the_newer_half(tmp_path):
    X, _ = visits()
    days = X["day"].dt.strftime("%Y-%m-%d")
    model(AutoRegressor, run_directory=tmp_path / "run").fit(X[["a", "b"]], X["a"] * 2 + 1, time=days)
    with RunDirectory.open(tmp_path / "run", {"space": quick_space}) as run:
        rows = np.concatenate([fold.validation for fold in run.splits])
        assert sorted(run.rows.structure.codes[rows]) == list(range(N // 2, N))
        assert run.settings.time == "day" and len(run.splits) == 5


@pytest.mark.long
def test_scikit_learn_routes_groups_to_splitter_and_fit():
    X, y = visits()
    with sklearn.config_context(enable_metadata_routing=True):
        asking = model(budget="2trials", resampling="2fold").set_fit_request(groups=True)
        routed = cross_validate(
            asking, X[["a", "b"]], y, params={"groups": X["patient"]}, cv=GroupKFold(2), return_estimator=True
        )
    for fitted, rows in zip(
        routed["estimator"], (train for train, _ in GroupKFold(2).split(X, y, X["patient"])), strict=True
    ):
        inner = model(budget="2trials", resampling="2fold").fit(
            X[["a", "b"]].iloc[rows], y.iloc[rows], groups=X["patient"].iloc[rows]
        )
        pd.testing.assert_frame_equal(fitted.leaderboard_[["trial", "loss"]], inner.leaderboard_[["trial", "loss"]])


# ---------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    ("given", "settings", "error", "text"),
    [
        ({"groups": "patients"}, {}, UnknownNameError, "Did you mean 'patient'"),
        ({"groups": "patient", "time": "day"}, {}, IncompatibleParametersError, "cannot be used together"),
        ({"groups": "patient"}, {"resampling": GroupKFold(3)}, IncompatibleParametersError, "custom splitter"),
        ({"time": "day"}, {"repeats": 2}, IncompatibleParametersError, "repeats must be 'auto' or 0 with time"),
        ({"time": "b"}, {}, DataError, "cannot order rows in time"),
        ({"time": "day"}, {"gap": 3}, InvalidParameterError, "gap must be a time such as '28d'"),
        ({"groups": "patient"}, {"gap": "3d"}, IncompatibleParametersError, "gap needs time"),
        ({"groups": "patient", "time": "day"}, {"gap": "3d"}, IncompatibleParametersError, "cannot be used together"),
        ({"time": "day"}, {"gap": -1}, InvalidParameterError, "gap must be a positive number, or a time"),
        ({"groups": "b"}, {"resampling": "5fold"}, DataError, "5 folds need as many groups, but 'b' holds 3"),
        ({"groups": [1, 2, 3]}, {}, DataError, "one value for each of 200 rows"),
        ({"groups": np.ones(N)}, {}, DataError, "same in all rows"),
    ],
)
def test_what_cannot_be_used_is_refused_before_the_run(given, settings, error, text, tmp_path):
    X, y = visits()
    with pytest.raises(error, match=text):
        model(run_directory=tmp_path / "run", **settings).fit(X, y, **given)
    assert not (tmp_path / "run").exists()


def test_dates_and_identifiers_bring_a_warning_unless_their_role_is_told(tmp_path):
    X, y = visits()
    with pytest.warns(RowStructureWarning, match=r"'day' holds dates.*time='day'.*groups='patient'"):
        model(budget="1trials").fit(X, y)
    with pytest.warns(RowStructureWarning, match="'patient' holds identifiers.*instead of time") as told:
        model(budget="1trials").fit(X, y, time="day")
    assert "'day'" not in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(budget="1trials").fit(X.drop(columns="patient"), y, time="day")
        model(budget="1trials").fit(X, y, groups="patient")
        model(budget="1trials", resampling=GroupKFold(2).split(X, y, X["patient"])).fit(X, y)
        with pytest.raises(RowStructureWarning):
            model(run_directory=tmp_path / "run").fit(X, y)
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------- command line


def cashmere(*arguments):
    command = [sys.executable, "-m", "cashmere", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def invoked(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.mark.long
def test_command_line_takes_the_names_of_columns(tmp_path):
    X, y = visits()
    X.assign(state=y).to_csv(tmp_path / "table.csv", index=False)
    fit = (
        "fit",
        tmp_path / "table.csv",
        "--target",
        "state",
        "--budget",
        "1trials",
        "--resampling",
        "holdout",
        "--workers",
        1,
    )
    done = cashmere(*fit, "--groups", "patient", "--out", tmp_path / "run")
    assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr
    resumed = invoked("resume", tmp_path / "run", "--budget", "1trials")
    assert resumed.exit_code == 0, resumed.output
    with RunDirectory.open(tmp_path / "run") as run:
        assert run.settings.groups == "patient" and len(run.store.rows()) == 2
        assert all(is_apart(run.rows.structure, fold) for fold in run.splits)
    X.drop(columns="patient").to_csv(tmp_path / "new.csv", index=False)
    predicted = invoked("predict", tmp_path / "run", tmp_path / "new.csv", "-o", tmp_path / "predicted.csv")
    assert predicted.exit_code == 0, predicted.output
    expected = Predictor.load(tmp_path / "run").predict(X)
    assert pd.read_csv(tmp_path / "predicted.csv")["prediction"].tolist() == expected.tolist()
    refused = invoked(*fit, "--groups", "ward", "--out", tmp_path / "refused")
    assert refused.exit_code == 2 and "Unknown column 'ward'" in refused.output
    assert not (tmp_path / "refused").exists()


@pytest.mark.filterwarnings("ignore:Column 'patient' holds identifiers")
def test_a_finished_run_goes_on_without_its_table(tmp_path):
    X, y = visits()
    model(run_directory=tmp_path / "run", space="default", budget="1trials").fit(X, y, time="day")
    finished = continue_run(tmp_path / "run", Budget(trials=1))
    assert len(finished.rows) == 2


def test_groups_that_are_features_or_alike_bring_a_warning(tmp_path):
    X, y = visits()
    X["patient"] = [f"P-{name}" for name in X["patient"]]
    with pytest.warns(RowStructureWarning, match="features contain the groups: column 'patient' .*: groups='patient'"):
        model(budget="1trials").fit(X.drop(columns="day"), y, groups=X["patient"])
    name = X["patient"].iloc[0]
    X.loc[0, "patient"] = name.lower()
    with pytest.warns(
        RowStructureWarning, match=r"Column 'patient' has groups that differ only in case .*P-.*' and 'p-"
    ):
        model(budget="1trials").fit(X, y, groups="patient")
