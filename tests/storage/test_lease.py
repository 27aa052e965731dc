"""One writer at a time: a writer that was replaced does no harm. Processes are really stopped."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace, Float
from processes import running

from cashmere.exceptions import LeaseLostError, RunLockedError
from cashmere.records.origin import Origin
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.storage import database, lease
from cashmere.storage.store import RunStore

SPACE = ConfigurationSpace(seed=0)
SPACE.add(Float("x", (0.0, 1.0)))

LEASE = 1.0

WRITER = """
import sys
sys.path = {path!r}
from storage.test_lease import LEASE, stored
from cashmere.exceptions import LeaseLostError
from cashmere.storage.store import RunStore

with RunStore({folder!r}, lease_seconds=LEASE) as store:
    for line in sys.stdin:
        try:
            print(stored(store, *map(int, line.split())), flush=True)
        except LeaseLostError as error:
            print("lost:", error, flush=True)
"""


def stored(store: RunStore, number: int, seed: int) -> str:
    """Store a trial whose predictions and model depend on the seed."""
    rng = np.random.default_rng(seed)
    outcome = Outcome(
        status=TrialStatus.SUCCESS,
        loss=seed / 100,
        fold_losses=(seed / 100,),
        predictions=rng.random((5, 2), dtype=np.float32),
        model=rng.bytes(100),
    )
    configuration = Configuration(SPACE, values={"x": seed / 100})
    trial = Trial(number=number, configuration=configuration, seed=seed, origin=Origin.other("test"))
    store.add([(trial, outcome)], finished_at=float(number))
    return f"stored {number}"


@pytest.fixture
def run(tmp_path):
    """Return the directory of a run that has begun."""
    folder = tmp_path / "run"
    RunStore(folder, new=True).close()
    (folder / "run.json").write_text(json.dumps({"format": "cashmere run", "version": 2}))
    return folder


@contextmanager
def writer(folder: Path):
    """Start a process that stores a trial for each line of its input, and answers."""
    code = WRITER.format(path=sys.path, folder=str(folder))
    with running([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def tell(process: subprocess.Popen, number: int, seed: int) -> str:
    process.stdin.write(f"{number} {seed}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def stop_beyond_lease(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.5 * LEASE)


def contents(store: RunStore) -> list[tuple[int, float, bytes]]:
    """Return number, loss and model of all trials; loading checks the predictions."""
    found = store.load(SPACE)
    return [(n, o.loss, store.member_path(n).read_bytes()) for n, o in sorted(found.items())]


@pytest.mark.long
def test_what_a_replaced_writer_stores_is_refused_and_harms_nothing(run):
    with writer(run) as process:
        assert tell(process, 0, 1) == "stored 0"
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(RunLockedError, match=f"is in use by process {process.pid} on .* try again in"):
            RunStore(run)
        stop_beyond_lease(process)
        with RunStore(run, lease_seconds=LEASE) as store:
            stored(store, 1, 2)
            before = contents(store)
            process.send_signal(signal.SIGCONT)
            answer = tell(process, 1, 50)
            assert f"was taken over by process {os.getpid()} on " in answer
            assert "refused" in answer
            stored(store, 2, 3)
            assert contents(store)[:2] == before
            process.stdin.close()
            assert process.wait(20) == 0  # closes its store, which must not touch ours
            stored(store, 3, 4)
    with RunStore(run) as store:  # no process holds it now
        assert [(n, loss) for n, loss, _ in contents(store)] == [(0, 0.01), (1, 0.02), (2, 0.03), (3, 0.04)]
    with RunStore(run, read_only=True) as store:
        assert [row["loss"] for row in store.rows()] == [0.01, 0.02, 0.03, 0.04]
        assert [store.member_path(n).name for n in (0, 1)] == ["000000.skops", "000001e2.skops"]


def test_writer_replaced_between_its_check_and_its_write_harms_nothing(run, monkeypatch):
    """At the worst instant, the check has passed, and the process is stopped before it writes."""
    old = RunStore(run, lease_seconds=LEASE)
    stored(old, 0, 1)
    old._lease._released.set()  # it does not renew, as if it were stopped
    time.sleep(1.5 * LEASE)
    with RunStore(run, lease_seconds=LEASE) as store:
        stored(store, 1, 2)
        before = contents(store)
        checks = iter([None])  # the first check of `add` has passed
        check = old.check_lease
        monkeypatch.setattr(old, "check_lease", lambda: next(checks, check) and check())
        with pytest.raises(LeaseLostError):
            stored(old, 1, 50)
        assert contents(store) == before
        old._database.close()
        old._lease._lock.release()
        stored(store, 2, 3)
        assert contents(store)[:2] == before


@pytest.mark.slow
def test_stopped_writer_that_nobody_replaced_goes_on(run):
    with writer(run) as process:
        assert tell(process, 0, 1) == "stored 0"
        stop_beyond_lease(process)
        process.send_signal(signal.SIGCONT)
        assert tell(process, 1, 2) == "stored 1"
        with pytest.raises(RunLockedError):
            RunStore(run)


@pytest.mark.long
def test_killed_writer_is_followed_at_once_and_without_a_new_epoch(run):
    with writer(run) as process:
        assert tell(process, 0, 1) == "stored 0"
        process.kill()
        process.wait()
        with RunStore(run) as store:
            stored(store, 1, 2)
    assert not list(run.glob("*-2*"))


def elsewhere(folder: Path, monkeypatch) -> None:
    """Pretend that this process runs on another machine, where locks of the first are not seen."""
    monkeypatch.setattr(lease, "this_machine", lambda folder: "boot of another machine")
    (folder / "lock").unlink()


def test_free_lock_proves_nothing_behind_another_mount(run):
    """Two containers on one machine with separate mounts of a network file system do not see each other's locks."""
    here = lease.this_machine(run)
    record = {"token": "0" * 32, "host": "container", "process": os.getpid(), "seconds": 60.0}
    elsewhere = f"{here.rpartition(' ')[0]} ffffffff"
    (run / "lease").write_text(json.dumps({**record, "machine": elsewhere}))
    with pytest.raises(RunLockedError, match="on container"):
        RunStore(run)
    (run / "lease").write_text(json.dumps({**record, "machine": here}))
    RunStore(run).close()


@pytest.mark.slow
def test_writer_on_another_machine_is_waited_for(run, monkeypatch):
    with writer(run) as process:
        assert tell(process, 0, 1) == "stored 0"
        elsewhere(run, monkeypatch)
        with RunStore(run, read_only=True) as store:  # reading needs no lease, and includes the log
            assert len(store.rows()) == 1
        time.sleep(1.5 * LEASE)
        with pytest.raises(RunLockedError, match="another process"):  # it renews its lease
            RunStore(run)
        process.kill()
        process.wait()
        with pytest.raises(RunLockedError, match="another process"):  # this machine cannot know that it has ended
            RunStore(run)
        time.sleep(1.5 * LEASE)
        with RunStore(run) as store:
            stored(store, 1, 2)
            assert [n for n, *_ in contents(store)] == [0, 1]


def test_released_directory_needs_no_new_epoch_on_another_machine(run, monkeypatch):
    with RunStore(run) as store:
        stored(store, 0, 1)
    assert not (run / "lease").exists()
    elsewhere(run, monkeypatch)
    with RunStore(run) as store:
        stored(store, 1, 2)
    assert not list(run.glob("*-2*"))


@pytest.mark.slow
def test_directory_whose_run_has_not_begun_is_not_taken_over(tmp_path):
    with writer(tmp_path) as process:
        assert tell(process, 0, 1) == "stored 0"
        stop_beyond_lease(process)
        with pytest.raises(RunLockedError, match="Choose another directory"):
            RunStore(tmp_path, new=True)


@pytest.mark.slow
def test_second_taker_is_refused(run):
    with writer(run) as process:
        assert tell(process, 0, 1) == "stored 0"
        stop_beyond_lease(process)
        with RunStore(run, lease_seconds=LEASE), pytest.raises(RunLockedError, match="is in use by process"):
            RunStore(run)


def test_directory_that_was_taken_over_is_not_removed(run):
    old = RunStore(run, lease_seconds=LEASE)
    old._lease._released.set()
    time.sleep(1.5 * LEASE)
    with RunStore(run) as store:
        with pytest.raises(LeaseLostError), old.closed_to_remove():
            raise AssertionError("must not be removed")
        stored(store, 0, 1)


def test_reader_finds_the_database_of_an_epoch_that_has_just_begun(run, monkeypatch):
    old = RunStore(run)
    stored(old, 0, 1)
    old._lease._released.set()  # it does not renew, as if it were stopped
    os.utime(run / "lease", (0, 0))

    def look_just_before_the_takeover(folder):
        monkeypatch.undo()
        path = database.present_database(folder)
        RunStore(run).close()
        return path

    monkeypatch.setattr(database, "present_database", look_just_before_the_takeover)
    with RunStore(run, read_only=True) as store:
        assert len(store.rows()) == 1
    assert not (run / "run.sqlite").exists()
    old._database.close()
    old._lease._lock.release()


def test_lease_that_is_released_while_it_is_read_is_that_of_a_process_in_use(run, monkeypatch):
    other = RunStore(run)
    read = lease._read

    def read_just_before_the_end(path):
        monkeypatch.undo()
        found = read(path)
        other.close()
        return found

    monkeypatch.setattr(lease, "_read", read_just_before_the_end)
    with pytest.raises(RunLockedError, match="is in use by another process"):
        RunStore(run)
    RunStore(run).close()


@pytest.mark.parametrize("moved", [False, True])
def test_reader_on_another_machine_copies_a_database_that_grows_meanwhile(run, monkeypatch, moved):
    """Before each file that it opens, another trial is stored; once, the log is moved into the database as well."""
    numbers, really_open = itertools.count(1), database.open_regular

    def open_after_a_trial(path):
        number = next(numbers)
        if moved and number == 3:  # the copy of the database is from before
            store._database.execute("PRAGMA wal_checkpoint(RESTART)")
        stored(store, number, 1)
        return really_open(path)

    with RunStore(run) as store:
        stored(store, 0, 1)
        monkeypatch.setattr(database, "is_written_elsewhere", lambda folder: True)
        monkeypatch.setattr(database, "open_regular", open_after_a_trial)
        with RunStore(run, read_only=True) as reader:
            n_rows = len(reader.rows())
        assert n_rows == (8 if moved else 4)


def test_lease_of_a_stranger_ends(run):
    """Neither a time in the future nor a long duration prevents continuing a directory that somebody gave us."""
    RunStore(run).close()
    record = {"token": "t", "machine": "theirs", "host": "h", "process": 1, "seconds": 60.0}
    for content, age in [
        ({**record, "seconds": 1e9}, 100),
        (record, -1e6),
        (record, 100),
        ({**record, "process": "many"}, 100),
    ]:
        path = sorted(run.glob("run*.sqlite"))[-1]
        held = run / path.name.replace("run", "lease").removesuffix(".sqlite")
        held.write_text(json.dumps(content))
        os.utime(held, (time.time() - age, time.time() - age))
        RunStore(run).close()


@pytest.mark.parametrize("begins", [True, False])
def test_interrupt_while_the_lease_is_taken_leaves_no_lock(tmp_path, monkeypatch, begins):
    start, before = threading.Thread.start, set(threading.enumerate())

    def interrupted(thread):
        if begins:
            start(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lease.Lease.take(tmp_path)
    assert not set(threading.enumerate()) - before
    lease.Lease.take(tmp_path).release()
