from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace, Float, Integer
from processes import running

from benchmarks.faults.commands import stored_trials
from cashmere.exceptions import CorruptStoreError, RunDirectoryError, RunLockedError
from cashmere.execution.in_process import run_trial
from cashmere.execution.outcome_check import why_unusable
from cashmere.records.added_features import AddedFeatures
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.origin import Origin
from cashmere.records.path import FollowedPath
from cashmere.records.trial import Outcome, Trial, TrialStatus, configuration_key
from cashmere.storage.database import failures_explained, read
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import leaderboard_rows

SPACE = ConfigurationSpace()
SPACE.add(Float("x", (1e-6, 1.0), log=True), Integer("n", (1, 100)))
PATH = FollowedPath(parameter="rounds", positions=(10.0, 14.0), losses=(0.5, 0.25), chosen=14.0)


def trial(number: int, **values) -> Trial:
    configuration = Configuration(SPACE, values={"x": 0.1, "n": 3, **values})
    return Trial(number=number, configuration=configuration, seed=number + 7, origin=Origin.other("test"))


def outcome(seed: int = 0, **changes) -> Outcome:
    predictions = np.random.default_rng(seed).random((20, 2), dtype=np.float32)
    fields = {"status": TrialStatus.SUCCESS, "loss": 0.1 + 0.2, "fold_losses": (0.1, 0.2), "predictions": predictions}
    return Outcome(**{**fields, "model": b"model", "memory_mib": 12.5, **changes})


def test_what_is_stored_comes_back_bit_for_bit(tmp_path):
    with RunStore(tmp_path) as store:
        rng = np.random.default_rng(0)
        trials = [trial(i, x=float(rng.uniform(1e-6, 1)), n=int(rng.integers(1, 100))) for i in range(20)]
        added = [*store.add([(trials[0], outcome(0))], finished_at=0.5)]
        added += store.add([(trials[i], outcome(i)) for i in range(1, 20)], finished_at=1.5)
    with RunStore(tmp_path) as store:
        loaded = store.load(SPACE)
    assert list(loaded) == list(range(20))
    for before in added:
        after = loaded[before.trial.number]
        assert after == before
        assert after.trial.key == before.trial.key
        np.testing.assert_array_equal(after.predictions, before.predictions)


def test_trials_stored_together_count_all_or_none(tmp_path):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome(0))], finished_at=1)
        with pytest.raises(CorruptStoreError, match="UNIQUE"):
            store.add([(trial(1), outcome(1)), (trial(0), outcome(2))], finished_at=2)
        assert [row["number"] for row in store.rows()] == [0]
        store.add([(trial(n), outcome(n)) for n in (1, 2)], finished_at=3)
    assert len(RunStore(tmp_path, read_only=True).rows()) == 3


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.05])
def test_kill_loses_nothing_of_what_was_reported_as_stored(tmp_path, seconds):
    code = f"""
import itertools, sys
sys.path = {sys.path!r}
from storage.test_store import RunStore, outcome, trial

with RunStore({str(tmp_path)!r}) as store:
    for first in itertools.count(0, 5):
        store.add([(trial(n), outcome(n, model=bytes(10_000))) for n in range(first, first + 5)], finished_at=1)
        print(first + 5, flush=True)
"""
    with running([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "5\n"
        time.sleep(seconds)
        writer.kill()
        reported = int(f"5 {writer.stdout.read()}".split()[-1])
    with RunStore(tmp_path) as store:
        loaded = store.load(SPACE)  # checks the predictions
        assert all(store.member_path(n).stat().st_size == 10_000 for n in loaded)
    assert list(loaded) == list(range(len(loaded)))
    assert len(loaded) >= reported and len(loaded) % 5 == 0


def test_failure_is_stored_without_arrays(tmp_path):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), Outcome(status=TrialStatus.TIMEOUT, error="over the limit"))], finished_at=1)
        loaded = store.load(SPACE)[0]
    assert loaded.status is TrialStatus.TIMEOUT
    assert loaded.loss is None
    assert loaded.predictions is None
    assert str(loaded.error) == "over the limit"


def test_numbers_of_numpy_come_back_as_numbers(tmp_path):
    path = FollowedPath(
        parameter="C",
        positions=(np.float32(0.5), 1),
        losses=np.array([0.25, 0.5], dtype=np.float32),
        chosen=np.int64(1),
    )
    added = AddedFeatures(columns=3, seconds=np.float32(0.5))
    odd = outcome(
        loss=np.int64(2), fold_losses=(np.float32(0.5), 10**30), fit_seconds=np.float32(3), path=path, features=added
    )
    assert why_unusable(odd) is None
    with RunStore(tmp_path) as store:
        store.add([(trial(0), odd)], finished_at=1.0)
    with RunStore(tmp_path, read_only=True) as store:
        found = store.load(SPACE)[0].outcome
    assert (found.loss, found.fold_losses, found.fit_seconds) == (2.0, (0.5, 1e30), 3.0)
    assert (found.path.positions, found.path.losses, found.path.chosen) == ((0.5, 1.0), (0.25, 0.5), 1.0)
    assert found.features.seconds == 0.5


def test_long_texts_of_failures_leave_the_run_readable(tmp_path):
    def fail(trial):
        raise ValueError("Found unknown categories " + "é" * 2**23 + " in column 3")

    failed = run_trial(fail, trial(0))
    with RunStore(tmp_path) as store:
        store.add([(trial(0), failed)], finished_at=1.0)
    with RunStore(tmp_path, read_only=True) as store:
        text = store.load(SPACE)[0].outcome.error.text
    assert text.startswith("ValueError: Found unknown categories éé")
    assert text.rstrip().endswith("in column 3")
    assert len(text) < 30_000


def test_none_is_a_value_like_others(tmp_path):
    space = ConfigurationSpace({"max_features": [None, "sqrt"]})
    with RunStore(tmp_path) as store:
        configuration = Configuration(space, values={"max_features": None})
        store.add([(Trial(number=0, configuration=configuration, seed=0), outcome())], finished_at=1.0)
    with RunStore(tmp_path, read_only=True) as store:
        assert store.load(space)[0].trial.key == configuration_key(configuration)


def test_rows_need_no_space(tmp_path):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome())], finished_at=1)
    with RunStore(tmp_path, read_only=True) as store:
        (row,) = store.rows()
    assert row["configuration"] == {"n": 3, "x": 0.1}
    assert row["fold_losses"] == [0.1, 0.2]


def test_directory_in_use_by_another_process_is_refused(tmp_path):
    code = (
        f"from cashmere.storage.store import RunStore; import time; store = RunStore({str(tmp_path)!r}); "
        "print('in', flush=True); time.sleep(600)"
    )
    with running([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"in\n"
        with pytest.raises(RunLockedError, match="another process"):
            RunStore(tmp_path)
        other.kill()
    RunStore(tmp_path).close()  # the lock of a killed process is gone


@pytest.mark.skipif(os.name != "posix", reason="Windows has other rights")
def test_members_of_the_group_may_continue_a_run(tmp_path):
    usual = os.umask(0o002)
    try:
        with RunStore(tmp_path) as store:
            store.add([(trial(0), outcome(0))], finished_at=0.5)
            rights = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()}
    finally:
        os.umask(usual)
    assert {"run.sqlite", "run.sqlite-wal", "run.sqlite-shm", "lock"} <= set(rights)
    assert set(rights.values()) == {0o664}, rights


def test_reading_needs_no_lock(tmp_path):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome())], finished_at=1)
        with RunStore(tmp_path, read_only=True) as reader:
            assert len(reader.rows()) == 1


def test_a_reader_sees_one_state_while_the_run_stores_trials(tmp_path):
    def numbers_before_and_after(database):
        query = "SELECT number FROM {} ORDER BY number"
        before = [number for (number,) in database.execute(query.format("trials"))]
        store.add([(trial(1), outcome(path=PATH))], finished_at=2)
        return before, [number for (number,) in database.execute(query.format("paths"))]

    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome(path=PATH))], finished_at=1)
        assert read(tmp_path, numbers_before_and_after) == ([0], [0])
        assert sorted(store.load(SPACE)) == [0, 1]


def test_empty_log_that_a_reader_has_left_does_not_count(tmp_path):
    RunStore(tmp_path).close()
    (tmp_path / "run.sqlite-wal").touch()
    RunStore(tmp_path, read_only=True)
    assert not (tmp_path / "run.sqlite-shm").exists()  # which a reader of the log would make


@pytest.mark.parametrize("replaced", [False, True])
def test_trial_of_a_directory_that_was_moved_is_not_stored(tmp_path, replaced):
    """Its worker may have failed because the prepared folds were gone, which says nothing about the trial."""
    folder = tmp_path / "run"
    with RunStore(folder) as store:
        store.add([(trial(0), outcome())], finished_at=1)
        folder.rename(tmp_path / "moved")
        if replaced:
            folder.mkdir()
        with pytest.raises(RunDirectoryError, match="another directory" if replaced else "moved or deleted"):
            store.add([(trial(1), Outcome(status=TrialStatus.ERROR))], finished_at=2)
    with RunStore(tmp_path / "moved", read_only=True) as store:
        assert len(store.rows()) == 1


def test_missing_store_is_refused_when_reading(tmp_path):
    with pytest.raises(RunDirectoryError, match=r"run\.sqlite"):
        RunStore(tmp_path, read_only=True)


@pytest.mark.parametrize("damage", [b"not a database" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_damaged_database_is_a_typed_error(tmp_path, damage):
    RunStore(tmp_path).close()
    (tmp_path / "run.sqlite").write_bytes(damage)
    for name in ("run.sqlite-wal", "run.sqlite-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(CorruptStoreError, match="damaged"):
        RunStore(tmp_path)
    with pytest.raises(CorruptStoreError):
        RunStore(tmp_path)  # the lock was released


@pytest.mark.parametrize("position", [3, 60, 127, 140, -1])
def test_flipped_byte_in_predictions_is_found(tmp_path, position):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome())], finished_at=1)
        path = store.predictions_path(0)
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)
    with RunStore(tmp_path) as store, pytest.raises(CorruptStoreError, match=r"000000\.npy"):
        store.load(SPACE)


def test_missing_predictions_are_found(tmp_path):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome())], finished_at=1)
        store.predictions_path(0).unlink()
        with pytest.raises(CorruptStoreError, match="cannot be used"):
            store.load(SPACE)


def test_row_of_another_space_is_a_typed_error(tmp_path):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome())], finished_at=1)
        with pytest.raises(CorruptStoreError, match="search space"):
            store.load(ConfigurationSpace({"other": (0, 1)}))


def test_a_space_that_has_grown_since_is_named(tmp_path):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome())], finished_at=1)
        grown = ConfigurationSpace(name="default")
        grown.add(*SPACE.values(), Float("new", (0.0, 1.0)))
        with pytest.raises(CorruptStoreError, match=r"trial 0 .* space 'default' .* version of cashmere that run.json"):
            store.load(grown)


def test_newer_store_is_refused(tmp_path):
    RunStore(tmp_path).close()
    with sqlite3.connect(tmp_path / "run.sqlite") as database:
        database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(CorruptStoreError, match="newer"):
        RunStore(tmp_path)


def test_finished_trials_are_synchronised_in_full(tmp_path):
    with RunStore(tmp_path) as store:
        assert store._database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert store._database.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_pruning_drops_the_worst_and_keeps_the_members(tmp_path):
    with RunStore(tmp_path) as store:
        for i in range(6):
            store.add([(trial(i), outcome(model=b"x" * 2**20))], finished_at=i)
        deleted = store.prune_members([5], limit_mib=3, losses={i: float(i) for i in range(6)})
        assert deleted == [4, 3, 2]
        assert store.member_path(5).exists()


def test_facts_are_remembered(tmp_path):
    with RunStore(tmp_path) as store:
        curve = [{"trials": 1, "seconds": 2.5, "ensemble_loss": 0.1}]
        store.set_fact("curve", curve)
        assert store.facts().curve == curve
        assert store.facts().goal is None


def test_rows_end_before_an_unfinished_trial(tmp_path):
    with RunStore(tmp_path) as store:
        for i in (0, 1, 3, 4):
            store.add([(trial(i), outcome(i))], finished_at=i)
        assert [row["number"] for row in store.rows()] == [0, 1]
        assert sorted(store.load(SPACE)) == [0, 1, 3, 4]


def test_path_and_what_cut_it_short_come_back(tmp_path):
    cause = Cause(kind=CauseKind.TIME_LIMIT, limit=3.0)
    outcomes = [outcome(0, path=PATH, cut_short=cause), outcome(1), outcome(2, cut_short=cause)]
    with RunStore(tmp_path) as store:
        for number, each in enumerate(outcomes):
            store.add([(trial(number), each)], finished_at=1.0)
    with RunStore(tmp_path) as store:
        loaded = store.load(SPACE)
    assert [(o.outcome.path, o.outcome.cut_short) for o in loaded.values()] == [
        (PATH, cause),
        (None, None),
        (None, cause),
    ]


def test_store_of_the_first_version_is_read_and_continued(tmp_path):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome())], finished_at=1.0)
    with sqlite3.connect(tmp_path / "run.sqlite") as database:
        database.execute("DROP TABLE paths")
        database.execute("DROP TABLE features")
        database.execute("DROP TABLE epochs")
        database.execute("PRAGMA user_version = 1")
    database.close()
    assert RunStore(tmp_path, read_only=True).rows()[0]["path"] is None
    path = FollowedPath(parameter="trees", positions=(10.0,), losses=(0.5,), chosen=10.0)
    with RunStore(tmp_path) as store:
        store.add([(trial(1), outcome(path=path))], finished_at=2.0)
    assert [row["path"] for row in RunStore(tmp_path, read_only=True).rows()] == [None, path]


def test_what_features_cost_comes_back(tmp_path):
    added = AddedFeatures(columns=20, seconds=0.25)
    with RunStore(tmp_path) as store:
        for number, each in enumerate([outcome(features=added), outcome()]):
            store.add([(trial(number), each)], finished_at=1.0)
    with RunStore(tmp_path) as store:
        loaded = store.load(SPACE)
    assert [o.outcome.features for o in loaded.values()] == [added, None]
    rows = leaderboard_rows(RunStore(tmp_path, read_only=True).rows())
    assert [row["reached"] for row in rows] == ["20 more columns (0.25 s)", ""]


def test_store_of_the_second_version_is_read_and_continued(tmp_path):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome())], finished_at=1.0)
    with sqlite3.connect(tmp_path / "run.sqlite") as database:
        database.execute("DROP TABLE features")
        database.execute("DROP TABLE epochs")
        database.execute("PRAGMA user_version = 2")
    database.close()
    assert RunStore(tmp_path, read_only=True).rows()[0]["features"] is None
    added = AddedFeatures(columns=3, seconds=0.5)
    with RunStore(tmp_path) as store:
        store.add([(trial(1), outcome(features=added))], finished_at=2.0)
    assert [row["features"] for row in RunStore(tmp_path, read_only=True).rows()] == [None, added]


def test_store_of_the_third_version_is_read_and_continued(tmp_path):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome())], finished_at=1.0)
    with sqlite3.connect(tmp_path / "run.sqlite") as database:
        database.execute("DROP TABLE epochs")
        database.execute("PRAGMA user_version = 3")
    database.close()
    assert len(RunStore(tmp_path, read_only=True).rows()) == 1
    with RunStore(tmp_path) as store:
        store.add([(trial(1), outcome())], finished_at=2.0)
    assert len(RunStore(tmp_path, read_only=True).rows()) == 2


@pytest.mark.parametrize("row", [(7, 3, 0.5), (0, -1, 0.5), (0, "three", 0.5), (0, 3, -0.5), (0, 3, "soon")])
def test_features_that_no_trial_added_are_a_typed_error(tmp_path, row):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome())], finished_at=1.0)
    with sqlite3.connect(tmp_path / "run.sqlite") as database:
        database.execute("INSERT INTO features VALUES (?,?,?)", row)
    database.close()
    with pytest.raises(CorruptStoreError):
        RunStore(tmp_path, read_only=True)


@pytest.mark.parametrize(
    "row",
    [
        (7, "rounds", "[1]", "[1]", 1, None),  # no such trial
        (0, "rounds", "[1, 2]", "[1]", 1, None),
        (0, "rounds", "[1]", "[1]", 2, None),
        (0, "rounds", "1", "[1]", 1, None),
        (0, "rounds", None, None, None, None),
        (0, b"rounds", "[1]", "[1]", 1, None),
    ],
)
def test_path_that_no_trial_took_is_a_typed_error(tmp_path, row):
    with RunStore(tmp_path) as store:
        store.add([(trial(0), outcome())], finished_at=1.0)
    with sqlite3.connect(tmp_path / "run.sqlite") as database:
        database.execute("INSERT INTO paths VALUES (?,?,?,?,?,?)", row)
    database.close()
    with pytest.raises(CorruptStoreError):
        RunStore(tmp_path, read_only=True)


def half_made_database(folder):
    """Leave the files of a process whose directory was moved while it created the database."""
    folder.mkdir()
    other = folder.with_name("other")
    other.mkdir()
    with contextlib.closing(sqlite3.connect(other / "run.sqlite", isolation_level=None)) as database:
        database.execute("CREATE TABLE trials (number)")
        database.execute("PRAGMA cache_size=1")
        database.execute("BEGIN")
        for _ in range(100):
            database.execute("INSERT INTO trials VALUES (zeroblob(10000))")
        for name in ("run.sqlite", "run.sqlite-journal"):
            shutil.copy(other / name, folder / name)
        database.execute("ROLLBACK")


def test_a_run_begins_again_where_the_database_was_half_made(tmp_path):
    half_made_database(tmp_path / "run")
    assert stored_trials(tmp_path / "run") == {}
    with RunStore(tmp_path / "run", new=True) as store:
        assert store.add([(trial(0), outcome(0))], finished_at=1.0)[0].trial.number == 0
    assert not (tmp_path / "run" / "run.sqlite-journal").exists()


def test_errors_of_the_database_of_a_moved_directory_say_so(tmp_path):
    (tmp_path / "run").mkdir()
    with (
        pytest.raises(RunDirectoryError, match="no longer there: it was moved or deleted"),
        failures_explained(tmp_path / "run" / "run.sqlite"),
    ):
        (tmp_path / "run").rename(tmp_path / "moved")
        raise sqlite3.OperationalError("disk I/O error")


def test_a_database_that_this_user_may_only_read_is_explained(tmp_path):
    error = sqlite3.OperationalError("attempt to write a readonly database")
    error.sqlite_errorcode = sqlite3.SQLITE_READONLY
    with (
        pytest.raises(RunDirectoryError, match="lacks the right to read or write it, or to write next to it"),
        failures_explained(tmp_path / "a.sqlite"),
    ):
        raise error


def test_lack_of_memory_is_not_taken_for_damage(tmp_path):
    with (
        pytest.raises(RunDirectoryError, match="not enough memory") as caught,
        failures_explained(tmp_path / "a.sqlite"),
    ):
        raise MemoryError  # as sqlite3 reports SQLITE_NOMEM
    assert not isinstance(caught.value, CorruptStoreError)
