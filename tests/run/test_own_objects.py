"""A run only continues with the custom objects that it was started with."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedShuffleSplit

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.evaluation.metrics import metric_from_callable
from cashmere.exceptions import RunDirectoryError
from cashmere.records.budget import Budget
from cashmere.run import RunDirectory, RunSettings, fit_run, refine_run
from cashmere.run.own_objects import checked_objects
from cashmere.strategies import RandomSearch

FRAME = demo_table().head(60)
X, Y = FRAME.drop(columns=DEMO_TARGET), FRAME[DEMO_TARGET]


def hits(truth, predicted):
    return float(np.mean(truth == predicted))


def other(truth, predicted):
    return hits(truth, predicted)


def settings(**changed):
    return RunSettings(**{"budget": Budget(trials=1), "resampling": "holdout", "isolation": "none", **changed})


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


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (StratifiedShuffleSplit(1, test_size=0.3), StratifiedShuffleSplit(1, test_size=0.3)),
        (KFold(3, shuffle=True), KFold(3, shuffle=True)),
        (KFold(3), KFold(5)),
        (list(KFold(3).split(X)), list(KFold(3).split(X))[::-1]),
    ],
)
def test_splitter_that_gives_other_folds_is_refused(tmp_path, before, now):
    RunDirectory.create(tmp_path / "run", X, Y, settings(resampling=before)).store.close()
    with pytest.raises(RunDirectoryError, match=r"started with other folds .* start a new run"):
        fit_run(tmp_path / "run", X, Y, settings(resampling=now), resume=True)
    with pytest.raises(RunDirectoryError, match="started with other folds"):
        refine_run(tmp_path / "run", own_objects={"resampling": now})


def test_splitter_that_gives_the_same_folds_is_accepted(tmp_path):
    seeded = KFold(3, shuffle=True, random_state=1)
    RunDirectory.create(tmp_path / "run", X, Y, settings(resampling=seeded)).store.close()
    for again in (KFold(3, shuffle=True, random_state=1), list(seeded.split(X))):
        with RunDirectory.open(tmp_path / "run", {"resampling": again}) as run:
            run.check_same(X, Y, settings(resampling=again))


def test_run_of_an_earlier_version_is_resumed_with_any_splitter(tmp_path):
    with RunDirectory.create(tmp_path / "run", X, Y, settings(resampling=KFold(3))) as run:
        run.store.set_fact("fold_digest", None)  # as earlier versions left it
    with RunDirectory.open(tmp_path / "run", {"resampling": KFold(5)}) as run:
        assert len(run.splits) == 5


def test_a_class_is_not_to_be_named_by_its_description(tmp_path):
    stored = {"strategy": "<class 'mine.HillClimb'>", "own_objects": ["strategy"]}
    with pytest.raises(RunDirectoryError, match=r"with a custom strategy\. Resume it from Python with the same object"):
        checked_objects(tmp_path, stored, {}, searches=True)
