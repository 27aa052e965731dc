"""The ablation study: runs by CPU time, their table, and that interrupted studies continue."""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.ablation import (
    LAST_STEPS,
    WHOLE,
    AblationRun,
    main,
    run,
    space_without_features,
    summarise,
)
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import find_tables
from cashmere.data import rungs
from cashmere.data.task import TaskProfile, TaskType
from cashmere.records.origin import OriginKind
from cashmere.space.named.registry import default_space


def make_run(variant, table, test, **changes):
    facts = {
        "seed": 0, "budget": 60.0, "rows": 8000, "last_step": WHOLE, "seconds": 61.0, "choosing": 0.2, "trials": 30,
        "checkpoints": 90, "families": 3, "validation": test, "cross_fitted": test, "best": test, "commit": "",
    }  # fmt: skip
    return AblationRun(variant=variant, table=table, test=test, **(facts | changes))


@pytest.mark.long
@pytest.mark.parametrize("variant", [pytest.param("without features", marks=pytest.mark.slow), "before"])
def test_run_is_judged_on_rows_it_has_not_seen(one_table, variant):
    (table,) = find_tables(one_table, ["small"])
    (found,) = run(table, RunKey("small", variant, 0, 4.0, 150))
    assert found.trials >= 1 and found.families >= 1 and np.isfinite([found.test, found.validation]).all()
    assert (found.checkpoints > 0) == (variant != "before")  # the space classic has no paths
    assert found.seconds < 8


@pytest.mark.long
def test_trials_are_judged_after_every_last_step(one_table):
    (table,) = find_tables(one_table, ["small"])
    found = {each.last_step: each for each in run(table, RunKey("small", "everything", 0, 6.0, 150))}
    assert tuple(found) == LAST_STEPS
    assert len({(each.trials, each.seconds) for each in found.values()}) == 1
    assert found["best trial alone"].families == 1
    assert found["best trial alone"].validation == pytest.approx(found[WHOLE].best)
    assert np.isfinite([each.test for each in found.values()]).all()


@pytest.mark.long
def test_search_can_begin_with_draws(one_table, monkeypatch):
    (table,), origins = find_tables(one_table, ["small"]), []

    def judge_on(session, X, y):
        origins.append({o.trial.origin.kind for o in session.study.history})
        return lambda history: 0.5

    monkeypatch.setattr("benchmarks.experiments.ablation.judge_on", judge_on)
    for variant in ("LightGBM alone", "without first configurations"):
        run(table, RunKey("small", variant, 0, 3.0, 150))
    assert OriginKind.WARM_START in origins[0] - origins[1]


@pytest.mark.long
def test_rungs_can_be_left_out(one_table, monkeypatch):
    monkeypatch.setattr(rungs, "LEAST_ROWS", 40)
    (table,), seen = find_tables(one_table, ["small"]), []

    def judge_on(session, X, y):
        seen.append(session.run.rungs)
        return lambda history: 0.5

    monkeypatch.setattr("benchmarks.experiments.ablation.judge_on", judge_on)
    for variant in ("everything", "without rungs"):
        run(table, RunKey("small", variant, 0, 2.0, 150))
    assert seen == [(1 / 3, 1.0), (1.0,)]


def test_space_without_features_lacks_nothing_else():
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=500, n_columns=9, n_classes=2)
    whole, without = default_space(profile).configuration_space, space_without_features(profile).configuration_space
    assert set(whole) - set(without) == {name for name in whole if name.endswith(":features")}
    assert set(without) < set(whole)


def test_space_without_features_starts_from_configurations_without_them():
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=500, n_columns=9, n_classes=2)
    first = space_without_features(profile).first_configurations()
    assert {each["algorithm"] for each in first} == {
        each["algorithm"] for each in default_space(profile).first_configurations()
    }
    assert not any(name.endswith(":features") for each in first for name in each)


def test_losses_are_relative_to_another_variant_per_table():
    runs = [
        *(make_run("before", table, loss) for table, loss in (("a", 1.0), ("b", 2.0), ("c", 4.0))),
        *(make_run("everything", table, loss) for table, loss in (("a", 0.9), ("b", 1.9), ("c", 4.4))),
        make_run("everything", "a", 0.1, seed=1),  # before has no such run
        make_run("everything, a third of the time", "a", 1.1, trials=10, seconds=22.5),
    ]
    found = summarise(pd.DataFrame(runs), "before").set_index("variant")
    assert found.loc["everything", "median %"] == pytest.approx(-5)
    assert found.loc["everything", "tables better"] == 2
    assert found.loc["everything", "trials/min"] == 30
    assert found.loc["everything, a third of the time", "trials/min"] == 30


def test_other_last_steps_are_rows_of_their_own():
    runs = [
        *(make_run("everything", table, 1.0) for table in "ab"),
        *(make_run("everything", table, 1.1, last_step="one selection", choosing=0.1) for table in "ab"),
    ]
    found = summarise(pd.DataFrame(runs)).set_index("variant")
    assert list(found.index) == ["everything", "one selection"]
    assert found.loc["one selection", "mean %"] == pytest.approx(10)
    assert found.loc["one selection", "last step, s"] == 0.1


def test_finished_study_is_only_shown(one_table, tmp_path, capsys):
    file = RowFile(tmp_path / "rows.csv", AblationRun)
    file.add([make_run(variant, "small", 0.5) for variant in ("before", "everything")])
    arguments = argparse.Namespace(
        data=one_table, tables=["small"], variants=["before", "everything"], seeds=1, budget=60.0, rows=8000, jobs=1,
        out=file.path,
    )  # fmt: skip
    main(arguments)
    assert "everything" in capsys.readouterr().out
    assert len(file.read()) == 2
