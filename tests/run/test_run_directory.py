"""Which process may remove a run directory that it was going to begin."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
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


WEIGHT = np.linspace(1.0, 2.0, len(Y))


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("before", [None, WEIGHT])
def test_other_weights_are_refused(tmp_path, before, class_weight):
    settings = replace(SETTINGS, class_weight=class_weight, exclude=("knn",))  # it cannot learn from weights
    create(tmp_path / "run", settings, weight=before).store.close()
    with RunDirectory.open(tmp_path / "run") as run:
        for other in (1 / WEIGHT, WEIGHT[::-1], np.where(Y == 0, 2.0, 1.0), None if before is not None else WEIGHT):
            with pytest.raises(RunDirectoryError, match="other weights of the rows"):
                run.check_same(X, Y, settings, weight=other)


def test_only_ratios_of_weights_count_whatever_the_order_of_the_rows(tmp_path):
    create(tmp_path / "run", weight=WEIGHT).store.close()
    create(tmp_path / "equal", weight=np.full(len(Y), 3.0)).store.close()
    order = np.random.default_rng(0).permutation(len(Y))
    with RunDirectory.open(tmp_path / "run") as run:
        run.check_same(X.iloc[order], Y.iloc[order], SETTINGS, weight=WEIGHT[order] / 7)
    with RunDirectory.open(tmp_path / "equal") as run:
        run.check_same(X, Y, SETTINGS)
