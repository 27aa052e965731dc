from __future__ import annotations

import contextlib
import importlib
import json
import linecache
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import cashmere
from cashmere import AutoClassifier, AutoRegressor
from cashmere.comparison import compare_strategies, summarise_runs
from cashmere.evaluation import metric_from_callable
from cashmere.exceptions import (
    CorruptStoreError,
    IncompatibleParametersError,
    InvalidParameterError,
    RunDirectoryError,
    UnknownNameError,
)
from cashmere.space import make_space
from cashmere.strategies import RandomSearch


def linear(profile):
    name = "logistic_regression" if profile.task_type.is_classification else "ridge"
    return make_space("default", profile).restricted_to([name])


def quick(estimator=AutoClassifier, **changes):
    settings = {"budget": "4trials", "space": linear, "isolation": "none", "resampling": "holdout"}
    return estimator(**{**settings, **changes})


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(160, 3)), columns=list("abc"), index=rng.permutation(160))
    X["ward"] = np.arange(160) % 8
    return X, np.where(X["a"] + rng.normal(size=160) > 0, "yes", "no")


@pytest.mark.long
def test_strategies_share_rows_and_finished_runs_are_kept(table, tmp_path):
    X, y = table
    lines: list[str] = []
    both = {"strategies": ["random", "bo:n_initial=3"], "folder": tmp_path / "both", "tell": lines.append}
    first = cashmere.compare_strategies(quick(), X, y, seeds=2, **both)
    assert len(lines) == 4 and "40 test rows" in lines[0] and "4 trials" in lines[0]
    assert list(first.runs["strategy"]) == ["random", "bo:n_initial=3"] * 2 and list(first.runs["seed"]) == [0, 0, 1, 1]
    assert (first.runs["decided"] > 0).all() and (first.runs["test"] == first.runs["test_loss"]).all()
    more = compare_strategies(quick(n_workers=1), X, y, seeds=3, **both)
    assert len(lines) == 6
    pd.testing.assert_frame_equal(more.runs[:4], first.runs)
    assert set(more.summary["strategy"]) == {"random", "bo:n_initial=3"} and more.metric == "log_loss"


@pytest.mark.long
def test_interrupted_run_starts_again(table, tmp_path):
    def stop(line):
        raise KeyboardInterrupt

    X, y = table
    both = {"strategies": ["random", "bo"], "folder": tmp_path / "both", "seeds": 2}
    with pytest.raises(KeyboardInterrupt):
        compare_strategies(quick(), X, y, tell=stop, **both)
    (run,) = (path for path in (tmp_path / "both").iterdir() if path.is_dir())
    pd.read_csv(tmp_path / "both" / "runs.csv")[:0].to_csv(tmp_path / "both" / "runs.csv", index=False)
    (run / "report.html").unlink()
    found = compare_strategies(quick(), X, y, **both)
    whole = compare_strategies(quick(), X, y, **{**both, "folder": tmp_path / "whole"})
    assert (run / "report.html").exists()
    pd.testing.assert_frame_equal(found.runs.drop(columns="seconds"), whole.runs.drop(columns="seconds"))


PRESSING_CTRL_C = """
import os, signal, sys
from pathlib import Path
import numpy as np, pandas as pd
from cashmere import AutoClassifier, compare_strategies

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell makes background processes ignore it
place, run = Path(sys.argv[1]), int(sys.argv[2])
calls = []

def accuracy(y, p):
    calls.extend(["call"] * (len(list(place.glob("*/run.json"))) == run))
    if len(calls) == 3:  # the second trial, after the constant
        os.kill(os.getpid(), signal.SIGINT)
    return float(np.mean(np.asarray(y) == np.asarray(p)))

x = np.random.default_rng(0).normal(size=(160, 3))
estimator = AutoClassifier(
    budget="4trials", metric=accuracy, include="logistic_regression", isolation="none", resampling="holdout"
)
found = compare_strategies(
    estimator, pd.DataFrame(x), x[:, 0] > 0, strategies=["random", "bo"], folder=place, seeds=2, reference="bo"
)
print(found.interrupted, list(found.runs["trials"]), list(found.summary["strategy"]))
"""


@pytest.mark.long
def test_ctrl_c_ends_the_comparison_without_a_row_of_the_interrupted_run(tmp_path):
    (tmp_path / "mine.py").write_text(PRESSING_CTRL_C)

    def ended(run):
        command = [sys.executable, tmp_path / "mine.py", tmp_path / "both", str(run)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert ended(1) == "True [] []"
    assert ended(2) == "True [4] ['random']"
    assert len(pd.read_csv(tmp_path / "both" / "runs.csv")) == 1
    assert ended(0) == "False [4, 4, 4, 4] ['random', 'bo']"


@pytest.mark.long
def test_values_groups_and_strategies_of_ones_own(table, tmp_path):
    X, _ = table
    found = compare_strategies(
        quick(AutoRegressor, metric="r2"),
        X,
        X["b"] * 2 + 1,
        strategies={"wide": "random", "narrow": RandomSearch},
        folder=tmp_path / "both",
        seeds=2,
        reference="narrow",
        groups="ward",
    )
    assert found.metric == "r2" and (found.runs["test"] > 0.9).all()
    np.testing.assert_allclose(found.runs["test_loss"], 1 - found.runs["test"])
    rows = found.summary.set_index("strategy")
    assert rows.loc["narrow", ["change", "lower", "upper", "better"]].tolist() == [0, 0, 0, 0]


@pytest.mark.long
def test_test_rows_in_time_keep_the_gap(table, tmp_path):
    X, y = table
    estimator = quick(AutoClassifier, budget="1trials", gap=20)
    compare_strategies(
        estimator, X, y, strategies=["random", "bo"], folder=tmp_path / "both", seeds=2, time=np.arange(160)
    )
    for run in (tmp_path / "both").glob("*/run.json"):
        assert json.loads(run.read_text())["table"]["rows"] == 101  # of 120 before the test rows
    settings_of = tmp_path / "both" / "comparison.json"
    stored = json.loads(settings_of.read_text())
    del stored["pos_label"]  # as if it had come later
    settings_of.write_text(json.dumps(stored))
    compare_strategies(
        estimator, X, y, strategies=["random", "bo"], folder=tmp_path / "both", seeds=2, time=np.arange(160)
    )
    with pytest.raises(IncompatibleParametersError, match="gap needs time"):
        compare_strategies(estimator, X, y, strategies=["random", "bo"], folder=tmp_path / "no", seeds=2)


@pytest.mark.long
def test_folder_of_another_comparison_is_refused(table, tmp_path):
    X, y = table
    both = {"strategies": ["random", "bo"], "folder": tmp_path / "both", "seeds": 2}
    compare_strategies(quick(), X, y, **both)
    with pytest.raises(RunDirectoryError, match="comparison with budget='4trials', not with '5trials'"):
        compare_strategies(quick(budget="5trials"), X, y, **both)
    with pytest.raises(RunDirectoryError, match="comparison with other rows"):
        compare_strategies(quick(), X[:-1], y[:-1], **both)
    with pytest.raises(RunDirectoryError, match="comparison with strategy 'bo'='bo', not with 'optdivbo'"):
        compare_strategies(quick(), X, y, **{**both, "strategies": {"random": "random", "bo": "optdivbo"}})
    more = compare_strategies(quick(), X, y, **{**both, "strategies": ["random", RandomSearch]})
    assert set(more.runs["strategy"]) == {"random", "bo", "RandomSearch"}
    with pytest.raises(RunDirectoryError, match=r"'RandomSearch'=cashmere.*RandomSearch, not with 'bo'"):
        compare_strategies(quick(), X, y, **{**both, "strategies": {"random": "random", "RandomSearch": "bo"}})
    (tmp_path / "both" / "runs.csv").write_text("strategy\nbo\n")
    with pytest.raises(CorruptStoreError, match=r"runs\.csv"):
        compare_strategies(quick(), X, y, **both)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("")
    with pytest.raises(RunDirectoryError, match=r"notes\.txt"):
        compare_strategies(quick(), X, y, **{**both, "folder": tmp_path / "mine"})


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The budget")  # on a slow machine
def test_runs_of_earlier_code_and_other_parallel_work_are_refused(table, tmp_path, monkeypatch):
    X, y = table
    both = {"folder": tmp_path / "both", "seeds": [5, 8]}
    source = "from cashmere.strategies import RandomSearch\n\n\nclass Mine(RandomSearch):\n    {}\n"
    (tmp_path / "drawn_by_me.py").write_text(source.format("pass"))
    monkeypatch.syspath_prepend(tmp_path)
    strategies = ["random", "drawn_by_me.Mine"]
    found = compare_strategies(quick(n_workers=1), X, y, strategies=strategies, **both)
    assert list(found.runs["seed"]) == [5, 5, 8, 8] and (found.runs["validation_loss"] > 0).all()
    assert found.notes == [
        "drawn_by_me.Mine and random have made the same trials with every seed: they have not begun to differ. Give a "
        "larger budget."
    ]
    for folder, digest in zip(found.runs["folder"], found.runs["digest"], strict=True):
        assert json.loads((tmp_path / "both" / folder / "run.json").read_text())["settings"]["seed"] in (5, 8)
        assert len(digest) == 16
    with pytest.raises(RunDirectoryError, match="comparison with lookahead=8, not with 12"):
        compare_strategies(quick(lookahead=12), X, y, strategies=strategies, **both)
    (tmp_path / "drawn_by_me.py").write_text(source.format("x = 1"))
    monkeypatch.delitem(sys.modules, "drawn_by_me")
    importlib.invalidate_caches()
    linecache.clearcache()
    with pytest.raises(RunDirectoryError, match=r"runs of strategy 'drawn_by_me\.Mine' from before its code changed"):
        compare_strategies(quick(), X, y, strategies=strategies, **both)
    timed = {"strategies": ["random", "bo"], "folder": tmp_path / "timed", "seeds": 2}
    with contextlib.suppress(KeyboardInterrupt):
        compare_strategies(quick(budget="1s", n_workers=1, isolation="process"), X, y, tell=press_ctrl_c, **timed)
    with pytest.raises(RunDirectoryError, match="comparison with n_workers=1, not with 2"):
        compare_strategies(quick(budget="1s", n_workers=2, isolation="process"), X, y, **timed)


def press_ctrl_c(line):
    raise KeyboardInterrupt


@pytest.mark.long
def test_labels_that_look_like_numbers_or_gaps_remain_text(table, tmp_path):
    X, y = table
    lines: list[str] = []
    both = {"strategies": {"1": "random", "NA": "bo"}, "folder": tmp_path / "both", "seeds": 2, "tell": lines.append}
    first = compare_strategies(quick(budget="1trials"), X, y, **both)
    again = compare_strategies(quick(budget="1trials"), X, y, **both)
    assert len(lines) == 4 and list(again.runs["strategy"]) == ["1", "NA"] * 2
    pd.testing.assert_frame_equal(again.summary, first.summary)


def hits():
    def accuracy(y, p):
        return float(np.mean(np.asarray(y) == np.asarray(p)))

    return accuracy


@pytest.mark.long
@pytest.mark.parametrize("wrapped", [lambda f: f, lambda f: metric_from_callable(f, greater_is_better=True)])
def test_comparison_by_a_function_continues_in_another_process(table, tmp_path, wrapped):
    X, y = table
    lines: list[str] = []
    both = {"strategies": ["random", "bo"], "folder": tmp_path / "both", "seeds": 2, "tell": lines.append}
    first, again = hits(), hits()  # two objects, as two processes have
    compare_strategies(quick(budget="1trials", metric=wrapped(first)), X, y, **both)
    compare_strategies(quick(budget="1trials", metric=wrapped(again)), X, y, **both)
    assert len(lines) == 4 and " at 0x" not in (tmp_path / "both" / "comparison.json").read_text()
    with pytest.raises(RunDirectoryError, match=r"hits\.<locals>\.accuracy.*, not with .*hits"):
        compare_strategies(quick(budget="1trials", metric=wrapped(hits)), X, y, **both)


def drawing():
    def draw(space):
        return RandomSearch(space)

    return draw


def test_wrong_wishes_are_refused_before_any_run(table, tmp_path):
    X, y = table
    wishes = [
        ({"strategies": ["bo"]}, InvalidParameterError, "strategies must be two or more"),
        ({"seeds": 1}, InvalidParameterError, "seeds must be a whole number of at least 2"),
        ({"reference": "tpe"}, InvalidParameterError, "reference must be one of the strategies: random, bo"),
        ({"strategies": "bo,random"}, InvalidParameterError, "strategies must be a list of strategies"),
        ({"strategies": ["random", "boo"]}, UnknownNameError, "Unknown strategy 'boo'"),
        ({"strategies": ["random", "bo:random_fraction=7"]}, InvalidParameterError, "random_fraction must be in"),
        ({"strategies": [drawing(), drawing(), "bo"]}, InvalidParameterError, "Two are called 'draw'"),
        (
            {"seeds": [3, 3]},
            InvalidParameterError,
            "seeds must be a whole number of at least 2, or a list of different seeds",
        ),
        ({"seeds": [[1], [2]]}, InvalidParameterError, "seeds must be a whole number of at least 2"),
    ]
    for change, kind, message in wishes:
        asked = {"strategies": ["random", "bo"], "folder": tmp_path / "never", **change}
        with pytest.raises(kind, match=message):
            compare_strategies(quick(), X, y, **asked)
    assert not (tmp_path / "never").exists()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_seeds=st.integers(2, 8))
def test_changes_are_paired_by_seed(seed, n_seeds):
    rng = np.random.default_rng(seed)
    losses = rng.lognormal(size=(n_seeds, 2))
    runs = pd.DataFrame(
        {
            "strategy": ["bo", "random"] * n_seeds,
            "seed": np.repeat(np.arange(n_seeds), 2),
            "test": losses.ravel(),
            "test_loss": losses.ravel(),
        }
    ).sample(frac=1, random_state=seed)
    found = summarise_runs(runs, reference="bo").set_index("strategy").loc["random"]
    changes = 100 * (losses[:, 1] / losses[:, 0] - 1)
    expected = stats.ttest_1samp(changes, 0).confidence_interval()
    assert found[["change", "lower", "upper"]].tolist() == pytest.approx([changes.mean(), *expected])
    assert found["better"] + found["worse"] == n_seeds
    assert found["rank"] == pytest.approx(1 + (losses[:, 1] > losses[:, 0]).mean())


def test_ranks_and_scores_are_of_the_seeds_that_all_have():
    runs = pd.DataFrame({"strategy": ["old"] * 3 + ["new"] * 2, "seed": [0, 1, 2, 0, 1], "test": [1.0, 2, 9, 1, 2]})
    found = summarise_runs(runs.assign(test_loss=runs["test"]), reference="old").set_index("strategy")
    assert found["test"].tolist() == [1.5, 1.5] and found["runs"].tolist() == [3, 2]


def test_negative_changes_are_better_where_losses_are_negative():
    scores = [5001.0, 6001.0, 5001.0, 5501.0]
    runs = pd.DataFrame({"strategy": ["old", "new"] * 2, "seed": [0, 0, 1, 1], "test": scores})
    found = summarise_runs(runs.assign(test_loss=1 - runs["test"]), reference="old").set_index("strategy")
    assert found.loc["new", ["change", "better"]].tolist() == [pytest.approx(-15), 2]


def test_change_against_a_loss_of_zero_is_undefined():
    runs = pd.DataFrame({"strategy": ["old", "new"] * 2, "seed": [0, 0, 1, 1], "test": [0.0, 0.0, 0.0, 1.0]})
    found = summarise_runs(runs.assign(test_loss=runs["test"]), reference="old").set_index("strategy")
    assert np.isnan(found.loc["new", ["change", "lower", "upper"]].to_numpy(dtype=float)).all()
    assert found.loc["new", ["better", "worse"]].tolist() == [0, 1] and found.loc["old", "change"] == 0


def test_without_a_run_of_the_reference_no_change_is_known():
    runs = pd.DataFrame({"strategy": ["new"], "seed": [0], "test": [1.0], "test_loss": [1.0]})
    (row,) = summarise_runs(runs, reference="old").to_dict("records")
    assert (row["runs"], row["rank"], row["better"], row["worse"]) == (1, 1, 0, 0) and np.isnan(row["change"])
    assert summarise_runs(runs[:0], reference="old").empty
