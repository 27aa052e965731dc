"""The model folder of a run while trials arrive."""

from __future__ import annotations

from dataclasses import replace

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.model.files import read_manifest
from cashmere.records.budget import Budget, Deadline
from cashmere.run import RunDirectory, RunSettings, fit_run
from cashmere.run.session import Session


def test_a_choice_that_nothing_has_saved_is_saved_by_the_next_refresh(tmp_path):
    frame, budget = demo_table().head(120), Budget(trials=4)
    settings = RunSettings(budget=budget, resampling="holdout", isolation="none", target_name=DEMO_TARGET)
    X, y = frame.drop(columns=DEMO_TARGET), frame[DEMO_TARGET]
    members = fit_run(tmp_path / "run", X, y, settings, load=False).weights
    assert len(members) > 1
    with RunDirectory.open(tmp_path / "run") as run:
        session = Session.begin(run, budget, Deadline(None))
        history, model = session.study.history, session.model
        first = next(o for o in history if o.trial.number in members)
        model.refresh(replace(history, observations=(first,)), at_seconds=0.0)
        assert read_manifest(model.folder)["ensemble"]["members"] == [first.trial.number]
        model.choose(history)  # as before the repeats
        model.refresh(history, at_seconds=1.0)
        assert read_manifest(model.folder)["ensemble"] == model.builder.ensemble.to_json()
        assert set(model.builder.ensemble.members) > {first.trial.number}
