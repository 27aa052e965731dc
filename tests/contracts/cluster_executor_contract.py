"""What every executor on a cluster must do, besides what every executor must."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

import cashmere.execution.dask_executor
import cashmere.execution.ray_executor
from cashmere.base.versions import versions
from cashmere.exceptions import ClusterVersionError, UsageError
from cashmere.execution.file_bundle import FileBundle
from cashmere.execution.limits import Limits
from cashmere.records.cause import CauseKind
from cashmere.records.trial import Outcome, TrialStatus
from contracts.executor_contract import Checkpointing, ExecutorContract, square, talking, trial


def wait_until(holds, seconds=60):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


class ReadingFiles:
    """An objective whose trials read a file: they return its inode, which tells copies apart."""

    def __init__(self, folder):
        self._folder = folder

    def files(self):
        return {"below/value.txt": self._folder / "below" / "value.txt"}

    def in_folder(self, folder):
        return ReadingFiles(folder)

    def __call__(self, trial):
        path = self._folder / "below" / "value.txt"
        assert path.read_text() == "content"
        return Outcome(status=TrialStatus.SUCCESS, loss=float(path.stat().st_ino))


class ClusterExecutorContract(ExecutorContract):
    """Inherit and override the fixture `make_on_cluster`."""

    most_copies: int
    """How often files may be written on this machine for two workers."""

    @pytest.fixture(scope="class")
    @classmethod
    def make_on_cluster(cls):
        """Return a function that makes an executor, given its `Limits`, for two trials on a cluster with two cores."""
        raise NotImplementedError("override make_on_cluster")

    @pytest.fixture(scope="class")
    @classmethod
    def executor(cls, make_on_cluster):
        executor = make_on_cluster(Limits(seconds=20))
        yield executor
        executor.shutdown()

    @pytest.fixture
    def new_executor(self, make_on_cluster):
        executor = make_on_cluster(Limits(seconds=3))
        yield executor
        executor.shutdown()

    def test_noise_of_a_trial_reaches_nobody(self, executor, capfd):
        assert executor.submit(talking, trial(0)).result(timeout=60).status is TrialStatus.SUCCESS
        assert capfd.readouterr() == ("", "")

    def test_files_are_copied_once_to_each_worker_that_sees_them(self, new_executor, tmp_path, bundled):
        self.run_trials_with_a_file(new_executor, tmp_path, tmp_path)
        assert not bundled

    @pytest.mark.skipif(sys.platform != "linux", reason="needs a path that other processes do not have")
    def test_files_are_sent_once_to_each_worker_that_does_not_see_them(self, new_executor, tmp_path, bundled):
        descriptor = os.open(tmp_path, os.O_RDONLY)
        try:
            self.run_trials_with_a_file(new_executor, tmp_path, Path(f"/proc/self/fd/{descriptor}"))
        finally:
            os.close(descriptor)
        assert bundled

    @pytest.fixture
    def bundled(self, monkeypatch):
        """Return a list that grows with each bundle that is made of files here."""
        made, read = [], FileBundle.read
        monkeypatch.setattr(FileBundle, "read", lambda paths: (made.append(paths), read(paths))[1])
        return made

    def run_trials_with_a_file(self, executor, folder, seen_as):
        (folder / "below").mkdir()
        (folder / "below" / "value.txt").write_text("content")
        objective = ReadingFiles(seen_as)
        futures = [executor.submit(objective, trial(i)) for i in range(10)]
        inodes = {future.result(timeout=60).loss for future in futures}
        assert len(inodes) <= self.most_copies
        assert (folder / "below" / "value.txt").stat().st_ino not in inodes

    def test_files_that_are_gone_fail_the_trial(self, new_executor, tmp_path):
        error = new_executor.submit(ReadingFiles(tmp_path), trial(0)).result(timeout=60).error
        assert "value.txt" in str(error)

    def test_objective_that_cannot_be_pickled_is_an_error(self, executor):
        lock = threading.Lock()
        outcome = executor.submit(lambda trial: lock, trial(0)).result(timeout=60)
        assert outcome.status is TrialStatus.ERROR
        assert "pickle" in str(outcome.error)

    def test_trial_at_its_time_limit_is_killed_and_has_its_last_checkpoint(self, new_executor):
        def sleep(trial):
            time.sleep(60)

        outcome = new_executor.submit(Checkpointing(square, sleep), trial(0)).result(timeout=30)
        assert (outcome.loss, outcome.cut_short.kind) == (0.25, CauseKind.TIME_LIMIT)

    def test_shutdown_leaves_nothing_and_brings_back_checkpoints(self, make_on_cluster, tmp_path):
        def kept(trial):
            (tmp_path / str(os.getpid())).touch()
            time.sleep(1000)

        executor = make_on_cluster(Limits())
        futures = [executor.submit(Checkpointing(square, kept), trial(i)) for i in range(4)]
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        time.sleep(0.5)  # for the workers of the cluster to read the checkpoints
        executor.shutdown()
        assert not any(psutil.pid_exists(int(path.name)) for path in tmp_path.iterdir())
        outcomes = [future.result() for future in futures if not future.cancelled()]
        assert [(o.loss, o.cut_short.kind) for o in outcomes] == [(0.25, CauseKind.SEARCH_ENDED)] * 2

    def test_trial_submitted_after_shutdown_is_refused(self, new_executor):
        new_executor.shutdown()
        with pytest.raises(UsageError, match="new executor"):
            new_executor.submit(square, trial(0))

    def test_waiting_trial_can_be_cancelled(self, new_executor, tmp_path):
        def begin(trial):
            (tmp_path / str(trial.number)).touch()
            time.sleep(2)

        futures = [new_executor.submit(begin, trial(i)) for i in range(3)]
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        assert futures[2].cancel()
        assert not futures[0].cancel()

    def test_coordinator_of_another_version_is_refused(self, new_executor, monkeypatch):
        ours = {**versions(), "cashmere-automl": "9.9"}
        for module in (cashmere.execution.dask_executor, cashmere.execution.ray_executor):
            monkeypatch.setattr(module, "versions", lambda: ours)
        with pytest.raises(ClusterVersionError, match=r"has cashmere-automl .* \(here 9\.9\)\. Install"):
            new_executor.submit(square, trial(0)).result(timeout=60)
