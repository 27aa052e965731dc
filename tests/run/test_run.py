from __future__ import annotations

import sys

import pytest

from cashmere import AutoClassifier
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import RunDirectoryError
from cashmere.space import make_space
from cashmere.storage.store import RunStore


def logistic(profile):
    return make_space("default", profile).restricted_to(["logistic_regression"])


def facts_of(folder) -> dict[str, float]:
    with RunStore(folder, read_only=True) as store:
        facts = store.facts()
    return {name: getattr(facts, name) for name in ("suggest_seconds", "ensemble_seconds")}


@pytest.mark.long
def test_seconds_of_earlier_calls_are_kept(tmp_path):
    frame = demo_table().head(200)
    X, y = frame.drop(columns=DEMO_TARGET), frame[DEMO_TARGET]
    settings = {"space": logistic, "isolation": "none", "resampling": "holdout", "run_directory": tmp_path / "run"}
    AutoClassifier(budget="4trials", **settings).fit(X, y)
    before = facts_of(tmp_path / "run")
    assert min(before.values()) > 0
    AutoClassifier(budget="4trials", resume=True, **settings).fit(X, y)  # runs no trial
    after = facts_of(tmp_path / "run")
    assert after["suggest_seconds"] == pytest.approx(before["suggest_seconds"])
    assert after["ensemble_seconds"] > before["ensemble_seconds"]  # chosen and saved again
    AutoClassifier(budget="6trials", resume=True, **settings).fit(X, y)
    assert facts_of(tmp_path / "run")["suggest_seconds"] > before["suggest_seconds"]


def boosters_if_possible(profile):
    space = make_space("default", profile)
    return space.restricted_to([a.name for a in space.algorithms if a.name in ("logistic_regression", "xgboost")])


def test_resume_without_a_package_of_earlier_trials_names_it(tmp_path, monkeypatch):
    pytest.importorskip("xgboost")
    frame = demo_table().head(200)
    X, y = frame.drop(columns=DEMO_TARGET), frame[DEMO_TARGET]
    settings = {"isolation": "none", "resampling": "holdout", "run_directory": tmp_path / "run"}
    first = AutoClassifier(budget="2trials", space=boosters_if_possible, **settings).fit(X, y)
    assert set(first.leaderboard_["algorithm"]) == {"logistic_regression", "xgboost"}
    monkeypatch.setitem(sys.modules, "xgboost", None)  # as if it were not installed
    expected = r"'xgboost', which needs a package that is not installed: xgboost \(pip install .*\[boost\]'\)"
    with pytest.raises(RunDirectoryError, match=expected):
        AutoClassifier(budget="3trials", resume=True, space=boosters_if_possible, **settings).fit(X, y)
