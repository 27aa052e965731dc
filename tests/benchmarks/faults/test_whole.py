"""The check of the stored trials of a run between faults, also after another process has taken it over."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

from benchmarks.faults.commands import stored_trials
from benchmarks.faults.whole import damaged_files
from cashmere.records.origin import Origin
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.storage.store import RunStore

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})
LEFT_BEHIND = {"token": "t", "machine": "another", "host": "another", "process": 1, "seconds": 60.0}


def store_trial(store, number):
    outcome = Outcome(
        status=TrialStatus.SUCCESS,
        loss=0.5,
        fold_losses=(0.5,),
        predictions=np.zeros((3, 2), dtype=np.float32),
        model=b"model",
    )
    configuration = SPACE.get_default_configuration()
    store.add(
        [(Trial(number=number, configuration=configuration, seed=0, origin=Origin.other("")), outcome)], finished_at=1
    )


@pytest.fixture
def taken_over(tmp_path):
    """Return the directory of a run with a trial of each of two epochs."""
    with RunStore(tmp_path, new=True) as store:
        store_trial(store, 0)
    (tmp_path / "run.json").write_text(json.dumps({"format": "cashmere run", "version": 2}))
    (tmp_path / "lease").write_text(json.dumps(LEFT_BEHIND))
    os.utime(tmp_path / "lease", (0, 0))
    with RunStore(tmp_path) as store:
        store_trial(store, 1)
    assert (tmp_path / "run-2.sqlite").exists()
    return tmp_path


def test_trials_of_all_epochs_are_found_and_whole(taken_over):
    assert list(stored_trials(taken_over)) == [0, 1]
    assert damaged_files(taken_over) == []


@pytest.mark.parametrize("name", ["predictions/000000.npy", "predictions/000001e2.npy", "members/000001e2.skops"])
def test_missing_or_damaged_file_is_named(taken_over, name):
    path = taken_over / name
    path.write_bytes(path.read_bytes() + b"more")
    assert damaged_files(taken_over) == [name]
    path.unlink()
    assert damaged_files(taken_over) == [name]
