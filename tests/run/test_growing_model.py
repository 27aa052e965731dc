"""The model folder of a run while trials arrive."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace

import pytest

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import ModelFileError
from cashmere.model.files import read_manifest
from cashmere.model.predictor import Predictor
from cashmere.records.budget import Budget, Deadline
from cashmere.run import RunDirectory, RunSettings, fit_run
from cashmere.run.session import Session

BUDGET = Budget(trials=4)
FRAME = demo_table().head(120)
X, Y = FRAME.drop(columns=DEMO_TARGET), FRAME[DEMO_TARGET]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    settings = RunSettings(budget=BUDGET, resampling="holdout", isolation="none", target_name=DEMO_TARGET)
    return fit_run(tmp_path_factory.mktemp("finished") / "run", X, Y, settings, load=False)


@pytest.fixture
def session(finished, tmp_path):
    with RunDirectory.open(shutil.copytree(finished.folder, tmp_path / "run")) as run:
        yield Session(run, BUDGET, Deadline(None))


@pytest.mark.long
def test_a_choice_that_nothing_has_saved_is_saved_by_the_next_refresh(finished, session):
    assert len(finished.weights) > 1
    history, model = session.study.history, session.model
    first = next(o for o in history if o.trial.number in finished.weights)
    model.refresh(replace(history, observations=(first,)), at_seconds=0.0)
    assert read_manifest(model.folder)["ensemble"]["members"] == [first.trial.number]
    model.choose(history)  # as before the repeats
    model.refresh(history, at_seconds=1.0)
    assert read_manifest(model.folder)["ensemble"] == model.builder.ensemble.to_json()
    assert set(model.builder.ensemble.members) > {first.trial.number}


def test_time_of_cross_fitting_is_bounded_by_how_long_it_took(tmp_path):
    table, settings = demo_table().head(240), RunSettings(budget=Budget(trials=2), isolation="none")
    fit_run(tmp_path / "run", table.drop(columns=DEMO_TARGET), table[DEMO_TARGET], settings, load=False)
    with RunDirectory.open(tmp_path / "run") as run:
        session = Session(run, BUDGET, Deadline(None))
        history, model = session.study.history, session.model
        model.choose(history)
        assert model.cross_fitting_seconds() == 5 * model.choosing_seconds()
        clock = time.perf_counter()
        assert model.cross_fit(history) is not None
        assert model.cross_fitting_seconds() <= 1.5 * (time.perf_counter() - clock)


def test_saving_replaces_damaged_files_of_the_same_members(session):
    model = session.model
    for path in model.folder.glob("member-*.skops"):
        path.unlink()  # a link to the file of the run
        path.write_bytes(b"damaged")
    with pytest.raises(ModelFileError, match="checksum"):
        Predictor.load(model.folder)
    session.finish(session.search())
    assert len(Predictor.load(model.folder).predict(X)) == len(X)
