"""A run only continues with the custom objects that it was started with."""

from __future__ import annotations

import numpy as np
import pytest

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.evaluation.metrics import metric_from_callable
from cashmere.exceptions import RunDirectoryError
from cashmere.records.budget import Budget
from cashmere.run import RunDirectory, RunSettings, fit_run
from cashmere.run.own_objects import checked_objects
from cashmere.strategies import RandomSearch

FRAME = demo_table().head(60)
X, Y = FRAME.drop(columns=DEMO_TARGET), FRAME[DEMO_TARGET]


def hits(truth, predicted):
    return float(np.mean(truth == predicted))


def other(truth, predicted):
    return hits(truth, predicted)


def settings(**changed):
    return RunSettings(budget=Budget(trials=1), resampling="holdout", isolation="none", **changed)


BUILT_IN_AND_CUSTOM = [({"metric": "log_loss"}, {"metric": hits}), ({"strategy": "bo"}, {"strategy": RandomSearch})]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        *((before, now, rf"started with {next(iter(before))}='.*' and cannot") for before, now in BUILT_IN_AND_CUSTOM),
        *((before, now, f"started with a custom {next(iter(before))}") for now, before in BUILT_IN_AND_CUSTOM),
        ({}, {"metric": hits}, "started with metric=None and cannot continue"),
        ({"metric": hits}, {"metric": other}, r"the custom metric 'hits' .* cannot continue with 'other'"),
    ],
)
def test_resume_with_another_object_is_refused(tmp_path, before, now, expected):
    RunDirectory.create(tmp_path / "run", X, Y, settings(**before)).store.close()
    with pytest.raises(RunDirectoryError, match=expected):
        fit_run(tmp_path / "run", X, Y, settings(**now), resume=True)


def test_objects_of_the_start_are_accepted(tmp_path):
    given = {"metric": hits, "strategy": RandomSearch}
    RunDirectory.create(tmp_path / "run", X, Y, settings(**given)).store.close()
    with RunDirectory.open(tmp_path / "run", given) as run:
        assert (run.metric.name, run.settings.strategy) == ("hits", RandomSearch)


def test_custom_object_of_a_run_without_one_is_refused_by_name_before_refining(tmp_path):
    stored = settings(metric="log_loss").to_json()
    with pytest.raises(RunDirectoryError, match=r"started with metric='log_loss' .* leave it out of own_objects"):
        checked_objects(tmp_path, stored, {"metric": hits}, searches=False)
    with pytest.raises(RunDirectoryError, match="started with seed=0"):
        checked_objects(tmp_path, stored, {"seed": 5}, searches=False)
    assert checked_objects(tmp_path, stored, {"metric": "log_loss"}, searches=False) == {"metric": "log_loss"}


def test_name_in_place_of_a_custom_metric_is_refused(tmp_path):
    stored = settings(metric=hits).to_json()
    with pytest.raises(RunDirectoryError, match="cannot continue with 'accuracy'"):
        checked_objects(tmp_path, stored, {"metric": "accuracy"}, searches=False)
    with pytest.raises(RunDirectoryError, match="started with a custom metric"):
        checked_objects(tmp_path, stored, {"metric": None}, searches=False)


def test_direction_of_a_custom_metric_must_be_the_same(tmp_path):
    stored = settings(metric=hits).to_json()
    reversed_metric = metric_from_callable(hits, greater_is_better=False)
    with pytest.raises(RunDirectoryError, match=r"'hits' \(greater is better\) .* 'hits' \(smaller is better\)"):
        checked_objects(tmp_path, stored, {"metric": reversed_metric}, searches=True)
    del stored["metric_name"], stored["metric_greater_is_better"]  # as in runs of early versions
    assert checked_objects(tmp_path, stored, {"metric": reversed_metric}, searches=True) == {"metric": reversed_metric}
