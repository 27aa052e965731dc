"""Which process may remove a run directory that it was going to begin."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from sklearn.datasets import load_iris

from cashmere.exceptions import LeaseLostError, RunDirectoryError, RunLockedError, UnknownNameError
from cashmere.records.budget import Budget
from cashmere.run import RunDirectory, RunSettings
from cashmere.storage.store import RunStore

X, Y = load_iris(return_X_y=True, as_frame=True)
SETTINGS = RunSettings(budget=Budget(trials=1), resampling="holdout", isolation="none")


def create(folder, settings=SETTINGS, **options):
    return RunDirectory.create(folder, X, Y, settings, **options)


@pytest.mark.parametrize("has_ended", [False, True])
def test_process_that_begins_second_keeps_the_run_of_the_first(tmp_path, monkeypatch, has_ended):
    folder, first = tmp_path / "run", []

    def opened_second(*arguments, **options):
        monkeypatch.undo()
        first.append(create(folder))  # after the second has seen that there is no folder
        if has_ended:
            first[0].store.close()
        return RunStore(*arguments, **options)

    monkeypatch.setattr("cashmere.run.run_directory.RunStore", opened_second)
    with pytest.raises(RunDirectoryError, match="holds a run already" if has_ended else "is in use by"):
        create(folder)
    first[0].store.close()
    with RunDirectory.open(folder) as run:
        assert len(run.rows.y) == len(Y)


def test_interrupt_while_the_store_is_opened_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(path, **options):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr("cashmere.storage.store.open_for_writing", interrupted)
    with pytest.raises(KeyboardInterrupt):
        create(tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("is_there", [False, True])
def test_run_that_cannot_begin_leaves_nothing(tmp_path, is_there):
    folder = tmp_path / "run"
    if is_there:
        folder.mkdir()
    with pytest.raises(UnknownNameError):
        create(folder, RunSettings(budget=Budget(trials=1), metric="nonsense"))
    assert list(tmp_path.rglob("*")) == ([folder] if is_there else [])


def test_no_process_can_begin_in_a_folder_that_is_being_removed(tmp_path, monkeypatch):
    refused = []

    def remove(folder, *, with_folder):
        with pytest.raises(RunLockedError) as caught:
            RunStore(folder, new=True)
        refused.append(caught.value)

    monkeypatch.setattr("cashmere.run.run_directory.remove_run", remove)
    with pytest.raises(UnknownNameError):
        create(tmp_path / "run", RunSettings(budget=Budget(trials=1), metric="nonsense"))
    assert len(refused) == 1


def test_error_counts_more_than_a_lost_lease(tmp_path, monkeypatch):
    @contextmanager
    def lost(store):
        raise LeaseLostError(store.folder, "was taken over.")
        yield

    def fail():
        if (tmp_path / "run" / "lease").exists():
            raise KeyboardInterrupt

    monkeypatch.setattr("cashmere.run.run_directory.RunStore.closed_to_remove", lost)
    with pytest.raises(KeyboardInterrupt):
        create(tmp_path / "run", check=fail)
    assert (tmp_path / "run").exists()
