from __future__ import annotations

import dataclasses
import json
import zipfile

import numpy as np
import pytest
from synthetic_recording import make_recording

from benchmarks.recordings.recorded_history import RECORDED, load_recorded, save_recorded
from benchmarks.recordings.replay_runs import Recording
from cashmere.data.task import TaskType
from cashmere.exceptions import CorruptStoreError
from cashmere.records.path import FollowedPath


@pytest.mark.parametrize("task_type", list(TaskType))
def test_everything_comes_back(tmp_path, task_type):
    path = FollowedPath(parameter="rounds", positions=(10.0, 14.0), losses=(0.5, 0.4), chosen=14.0)
    history = dataclasses.replace(
        make_recording(task_type, failures=(0, 7, 29)),
        searches=tuple(f"bo-{i % 2}" for i in range(30)),
        paths=tuple(path if i % 2 else None for i in range(30)),
        causes=tuple("over the time limit of 10 s" if i in (0, 7, 29) else "" for i in range(30)),
        training_rows=np.arange(80, 200),
        unseen_rows=np.arange(80)[::-1],
    )
    loaded = load_recorded(save_recorded(history, tmp_path))
    for field in dataclasses.fields(history):
        if not isinstance(getattr(history, field.name), np.ndarray):
            assert getattr(loaded, field.name) == getattr(history, field.name), field.name
    np.testing.assert_allclose(loaded.seconds, history.seconds, atol=1e-6)
    for name in ("y_validation", "y_test", "training_rows", "unseen_rows"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(history, name))
    for part in ("validation", "test"):
        np.testing.assert_allclose(getattr(loaded, part), getattr(history, part), rtol=0.04, atol=0.02)
        assert np.isnan(getattr(loaded, part)[[0, 7, 29]]).all()
        assert np.isfinite(getattr(loaded, part)[loaded.succeeded]).all()
        if task_type.is_classification:
            sums = getattr(loaded, part)[loaded.succeeded].sum(axis=-1)
            np.testing.assert_allclose(sums, 1, atol=1e-6)


def test_diverging_values_stay_finite(tmp_path):
    history = make_recording(TaskType.REGRESSION)
    validation = history.validation.copy()
    validation[5, :2] = 1e9, -1e9
    loaded = load_recorded(save_recorded(dataclasses.replace(history, validation=validation), tmp_path))
    np.testing.assert_allclose(loaded.validation[5, :2], [65504, -65504], rtol=5e-3)


@pytest.mark.parametrize("task_type", list(TaskType))
def test_file_is_smaller_than_its_arrays(tmp_path, task_type):
    history = make_recording(task_type, n=100, n_rows=200)
    assert save_recorded(history, tmp_path).stat().st_size < (history.validation.nbytes + history.test.nbytes) / 2


def test_same_recording_gives_the_same_bytes(tmp_path):
    first = save_recorded(make_recording(), tmp_path / "a")
    assert first.name == "made-small.zip"
    assert first.read_bytes() == save_recorded(make_recording(), tmp_path / "b").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("name", ["quake-volcano", "cmc-classic", "delta_elevators-classic"])
def test_files_of_version_2_become_files_of_today(tmp_path, name):
    history = load_recorded(RECORDED / f"{name}.zip")
    assert history.searches == () and len(history.unseen_rows) == 0
    path = save_recorded(history, tmp_path)
    again = load_recorded(path)
    assert path.stat().st_size < 0.8 * (RECORDED / f"{name}.zip").stat().st_size
    np.testing.assert_array_equal(again.succeeded, history.succeeded)
    for part in ("validation", "test"):
        now, before = (getattr(each, part)[history.succeeded] for each in (again, history))
        if history.task_type.is_classification:
            np.testing.assert_array_equal(now.argmax(axis=-1), before.argmax(axis=-1))
            np.testing.assert_allclose(now, before, atol=0.03)


def test_recordings_of_the_space_that_was_the_default_belong_to_the_classic_one():
    path = RECORDED / "cmc-classic.zip"
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("description.json"))["space"] == "default"
    history = load_recorded(path)
    assert (history.space_name, history.name, Recording.of(path).name) == ("classic", path.stem, path.stem)
    assert "lightgbm:n_estimators" in history.space


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = save_recorded(make_recording(), tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(CorruptStoreError, match="Record it again"):
        load_recorded(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("description.json", json.dumps({"format": "cashmere recorded history", "version": 99}))
    with pytest.raises(CorruptStoreError):
        load_recorded(path)
    with pytest.raises(CorruptStoreError):
        load_recorded(tmp_path / "absent.zip")


def test_flipped_bytes_are_noticed(tmp_path):
    path = save_recorded(make_recording(n=100), tmp_path)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 50] = bytes(255 - b for b in content[middle : middle + 50])
    path.write_bytes(content)
    with pytest.raises(CorruptStoreError):
        load_recorded(path)
