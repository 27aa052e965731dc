"""What a run begins with: the opening of the package, the user's own, or the defaults."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.frames import to_frame
from cashmere.exceptions import (
    ArtefactError,
    CorruptStoreError,
    IncompatibleParametersError,
    InvalidParameterError,
)
from cashmere.metalearning.opening import Opening, OpeningStep, shipped_opening
from cashmere.records.budget import Budget
from cashmere.run.run_directory import RunDirectory
from cashmere.run.settings import RunSettings

STEPS = (
    OpeningStep(values={"algorithm": "knn", "knn:n_neighbors": 7}, gain=0.3, seconds=0.5),
    OpeningStep(values={"algorithm": "lightgbm", "lightgbm:num_leaves": 9}, gain=0.2, seconds=1.0),
)
MINUTE = Budget(seconds=60)
MADE = Opening(space="default", first_gain=0.5, steps=STEPS)


def made_run(folder, *, budget=MINUTE, **settings):
    rows = demo_table().sample(60, random_state=0)
    frame = to_frame(rows.drop(columns=DEMO_TARGET))
    return RunDirectory.create(folder, frame, rows[DEMO_TARGET], RunSettings(budget=budget, **settings))


def test_learned_is_that_of_the_package(tmp_path):
    with made_run(tmp_path / "run", opening="learned") as run:
        found = run.first_configurations(in_time=True)
        assert found == shipped_opening("default").gains(run.space)
        assert tuple(found)[:5] == run.space.first_configurations()[:5]


def test_a_number_of_trials_begins_with_the_defaults(tmp_path):
    with made_run(tmp_path / "run", opening="learned") as run:
        assert tuple(run.first_configurations(in_time=False)) == run.space.first_configurations()


@pytest.mark.parametrize("settings", [{}, {"space": "classic"}, {"space": "volcano"}])
def test_without_an_opening_it_begins_with_the_defaults(tmp_path, settings):
    with made_run(tmp_path / "run", **settings) as run:
        found = run.first_configurations(in_time=True)
        assert tuple(found) == run.space.first_configurations()
        assert list(found.values()) == list(run.space.first_gains().values())
        if run.space.name != "default":
            assert set(found.values()) == {1.0}


def test_an_opening_of_the_user_goes_with_the_run(tmp_path):
    MADE.save(tmp_path / "opening.json")
    with made_run(tmp_path / "run", opening=str(tmp_path / "opening.json")) as run:
        first = list(run.first_configurations(in_time=True).items())
        assert [gain for _, gain in first[-2:]] == [0.3, 0.2]
        assert first[-2][0]["knn:n_neighbors"] == 7
        assert [gain for _, gain in first[:-2]] == [0.5 * gain for gain in run.space.first_gains().values()]
    (tmp_path / "opening.json").unlink()
    shutil.move(tmp_path / "run", tmp_path / "moved")
    with RunDirectory.open(tmp_path / "moved") as run:
        assert list(run.first_configurations(in_time=True).items()) == first


def test_a_run_that_has_lost_its_opening_is_refused(tmp_path):
    MADE.save(tmp_path / "opening.json")
    with made_run(tmp_path / "run", opening=str(tmp_path / "opening.json")) as run:
        run.store.set_fact("opening", {"format": "cashmere opening"})
    with pytest.raises(CorruptStoreError, match="settings that cannot be used"):
        RunDirectory.open(tmp_path / "run")


def test_an_opening_of_another_space_is_refused(tmp_path):
    replace(MADE, space="volcano").save(tmp_path / "opening.json")
    with pytest.raises(ArtefactError, match="'volcano', but the run searches 'default'"):
        made_run(tmp_path / "run", opening=str(tmp_path / "opening.json"))
    assert not (tmp_path / "run").exists()


def test_an_opening_that_would_not_be_used_is_refused(tmp_path):
    with pytest.raises(InvalidParameterError, match=r"'defaults' or a file .* 'classic'; got 'learned'.* for: default"):
        made_run(tmp_path / "run", opening="learned", space="classic")
    with pytest.raises(
        IncompatibleParametersError, match=r"no effect if the budget is a number .* only a time such as '10m'"
    ):
        made_run(tmp_path / "run", opening="learned", budget=Budget(trials=20))
    assert not (tmp_path / "run").exists()


def test_a_misspelt_opening_is_refused(tmp_path):
    with pytest.raises(ArtefactError, match="'defaults', 'learned', a file"):
        made_run(tmp_path / "run", opening="Learned")
