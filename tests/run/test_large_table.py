"""Runs on tables with several rungs of rows: kept compactly, encoded late, the same for any number of workers."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier
from cashmere.data.prepared import PreparedFolds
from cashmere.data.rungs import rungs
from cashmere.exceptions import RunDirectoryError
from cashmere.records.budget import Budget, Deadline
from cashmere.run.refit import _fitted
from cashmere.run.run_directory import RunDirectory
from cashmere.run.session import Session
from cashmere.run.settings import RunSettings
from cashmere.space import make_space
from cashmere.storage.directory import TrainingRows

pytestmark = pytest.mark.long

N_ROWS = 44_000


def linear(profile):
    return make_space("default", profile).restricted_to(["logistic_regression"])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=N_ROWS), "c": rng.choice([f"l{i}" for i in range(30)], N_ROWS)})
    frame.loc[::50, "x"] = np.nan
    return frame, np.where(frame["x"].fillna(1) + rng.normal(size=N_ROWS) > 0, "yes", "no")


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("large") / "run"
    settings = {"space": linear, "run_directory": folder, "random_state": 1, "resampling": "holdout"}
    return AutoClassifier(budget="3trials", isolation="none", **settings).fit(*table), folder, settings


def test_values_are_kept_in_32_bit_and_late_rows_are_encoded(run):
    _, folder, _ = run
    rows = TrainingRows.read(folder / "table.npz")
    assert rows.are_compact and rows.values.shape == (N_ROWS, 2)
    prepared = PreparedFolds(folder / "prepared")
    n_train = len(prepared.train_rows(0))
    assert prepared.rungs == rungs(n_train) and len(prepared.rungs) == 2
    assert len(prepared.validation_rows) == N_ROWS - n_train
    stored = [json.loads(path.read_bytes())["rows"] for path in (folder / "prepared").glob("fold0-*-train.json")]
    assert stored and set(stored) <= {len(prepared.train_rows(0, share)) for share in prepared.rungs}


def test_run_is_the_same_with_two_workers(run, table, tmp_path):
    model, _, settings = run
    other = AutoClassifier(budget="3trials", n_workers=2, **settings | {"run_directory": tmp_path / "run"}).fit(*table)
    assert [o.loss for o in other.study_.history] == [o.loss for o in model.study_.history]
    np.testing.assert_array_equal(other.predict_proba(table[0][:100]), model.predict_proba(table[0][:100]))


def test_run_goes_on_with_the_same_table_only(run, table):
    model, _, settings = run
    with pytest.raises(RunDirectoryError, match="other rows"):
        AutoClassifier(budget="3trials", resume=True, isolation="none", **settings).fit(
            table[0].assign(x=0.0), table[1]
        )
    again = AutoClassifier(budget="4trials", resume=True, isolation="none", **settings).fit(*table)
    assert [o.loss for o in again.study_.history][:3] == [o.loss for o in model.study_.history]


def test_a_refit_orders_the_rows_as_the_run_does(run):
    with RunDirectory.open(run[1], {"space": linear}) as opened:
        member = opened.store.load(opened.space.configuration_space)[0]
        expected = PreparedFolds(run[1] / "prepared").train_rows(0)
        with _fitted(opened, [member], opened.splits[:1]) as (prepared, _, _):
            np.testing.assert_array_equal(prepared.train_rows(0), expected)


@pytest.mark.parametrize(("first", "then", "smallest"), [("300s", "2trials", 1 / 3), ("2trials", "300s", 1.0)])
def test_first_budget_decides_for_all_calls_whether_costs_and_rungs_count(table, tmp_path, first, then, smallest):
    budgets = [Budget.parse(first), Budget.parse(then)]
    settings = RunSettings(space=linear, budget=budgets[0], resampling="holdout", isolation="none")
    for budget in budgets:
        run = (
            RunDirectory.create(tmp_path / "run", *table, settings)
            if budget is budgets[0]
            else RunDirectory.open(tmp_path / "run", {"space": linear})
        )
        with run:
            study = Session(run, budget, Deadline(budget.seconds)).study
            assert study.ask().fidelity == smallest
            assert (study.history.time_left is None) == (smallest == 1.0)
