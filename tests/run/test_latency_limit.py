"""Runs with a limit of the time that their model takes for one row."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sklearn.base import clone

from cashmere import AutoClassifier, Predictor
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import IncompatibleParametersError, InvalidParameterError, LatencyWarning
from cashmere.records.budget import Budget, Deadline
from cashmere.run import RunDirectory, RunSettings
from cashmere.run.latency_limit import LatencyLimit
from cashmere.run.session import Session
from cashmere.storage.store import RunStore

ALGORITHMS = ["hist_gradient_boosting", "logistic_regression", "extra_trees"]


@pytest.fixture(scope="module")
def credit():
    table = demo_table().sample(240, random_state=0)
    return table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]


def make_model(folder=None, **options):
    settings = {"budget": "3trials", "include": ALGORITHMS, "resampling": "holdout", "isolation": "none"}
    return AutoClassifier(**settings, run_directory=folder, **options)


def members(model):
    return set(model.ensemble_["trial"])


@pytest.mark.slow
def test_limit_that_all_keep_changes_nothing(credit):
    free, limited = (make_model(max_latency=limit).fit(*credit) for limit in (None, "1h"))
    assert limited.ensemble_.equals(free.ensemble_)


def test_only_the_fastest_is_left_if_none_keeps_the_limit(credit):
    with pytest.warns(LatencyWarning, match=r"takes .* ms, and max_latency is 0\.001 ms"):
        model = make_model(max_latency="0.001ms").fit(*credit)
    assert len(members(model)) == 1


def test_a_limit_that_could_not_be_applied_gives_a_warning(credit, monkeypatch):
    monkeypatch.setattr(LatencyLimit, "apply", lambda *given, **options: None)
    monkeypatch.setattr(Session, "_measure_latency", lambda *given: {})
    with pytest.warns(LatencyWarning, match="max_latency was not applied"):
        make_model(max_latency="5ms").fit(*credit)


@pytest.mark.long
def test_measuring_takes_a_small_share_of_a_small_run_unless_latency_is_limited(credit, monkeypatch):
    asked, measure = [], Predictor.measure_latency

    def note(self, frame, *, seconds):
        asked.append(seconds)
        return measure(self, frame, seconds=seconds)

    monkeypatch.setattr(Predictor, "measure_latency", note)
    free = make_model().fit(*credit)
    make_model(max_latency=100.0).fit(*credit)
    assert 0.02 <= asked[0] <= max(0.02, 0.02 * free.study_.elapsed)
    assert asked[1:] == [1.0]


@pytest.mark.long
def test_too_slow_trials_are_not_chosen(credit, tmp_path):
    """The stored seconds of the trials of a finished run are replaced, and the run is resumed."""
    model = make_model(tmp_path / "run", max_latency=100.0).fit(*credit)
    assert len(members(model)) > 1
    slow = model.ensemble_["trial"].iloc[0]
    with RunStore(tmp_path / "run") as store:
        fact = dict(store.facts().latencies)
        names = {number: store.member_path(number, 1).stem for number in range(3)}
        assert set(names.values()) <= fact["seconds"].keys()
        fact["seconds"] = dict.fromkeys(fact["seconds"], (1.0, 1.0)) | {names[slow]: (1000.0, 1000.0)}
        store.set_fact("latencies", fact)
    again = clone(model).set_params(resume=True).fit(*credit)
    assert members(again)
    assert slow not in members(again)
    assert set(Predictor.load(tmp_path / "run").ensemble.members) == members(again)


@pytest.mark.long
def test_time_is_reserved_only_for_trials_that_will_be_measured(credit, tmp_path):
    make_model(tmp_path / "run", max_latency=100.0).fit(*credit)
    with RunDirectory.open(tmp_path / "run") as run:
        session = Session(run, Budget(trials=3), Deadline(None))
        history, model = session.study.history, session.model
        run.store.member_path(0, 1).unlink()  # as for want of disk space
        model.refresh(history, at_seconds=0.0)
        assert model.latency_limit.seconds_to_measure(history) == 0.0
        longer = replace(history, observations=2 * history.observations)
        # What an earlier call has measured says nothing about the seconds of this one.
        assert model.latency_limit.seconds_to_measure(longer) == pytest.approx(3 * 0.5)


def test_limits_that_cannot_be_kept_are_refused():
    with pytest.raises(InvalidParameterError, match=r"^max_latency must be a positive number"):
        RunSettings(max_latency=-1.0)
    with pytest.raises(IncompatibleParametersError, match="only selection supports a limit"):
        RunSettings.from_options(max_latency="5ms", ensemble="stacking")
    assert RunSettings.from_options(max_latency="5ms").max_latency == 0.005
