"""Trials on a real Ray cluster on this machine; `make test-ray` installs Ray and runs these tests."""

from __future__ import annotations

import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from processes import coordinator_of_trial, running
from ray_clusters import local_ray

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import ClusterError, MissingDependencyError
from cashmere.execution import ray_executor
from cashmere.execution.engines import open_cluster
from cashmere.execution.ray_actors import ActorPool
from cashmere.execution.ray_executor import RayExecutor
from cashmere.records.budget import Budget
from cashmere.records.cause import CauseKind
from cashmere.run import RunSettings, continue_run, fit_run
from contracts.cluster_executor_contract import ClusterExecutorContract, wait_until
from contracts.executor_contract import square, trial

ray = pytest.importorskip("ray", reason="Ray is not installed: make test-ray")
pytestmark = pytest.mark.slow

TABLE = demo_table().sample(150, random_state=1)
X, Y = TABLE.drop(columns=DEMO_TARGET), TABLE[DEMO_TARGET]
SETTINGS = RunSettings(budget=Budget(trials=3), resampling="holdout", target_name=DEMO_TARGET)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with local_ray(4):  # the executor shared by the tests of a class keeps two cores
        yield


@pytest.fixture
def executor(tmp_path):
    executor = RayExecutor("local", 2, log_folder=tmp_path)
    yield executor
    executor.shutdown()


def folders_of_sites():
    """Return the remains of executors on this machine."""
    return list(Path(ray.get_runtime_context().get_temp_dir()).glob("cashmere-*"))


def kill_actor():
    """Kill the actor from a trial."""
    coordinator_of_trial().kill()
    time.sleep(60)


class TestRayExecutor(ClusterExecutorContract):
    most_copies = 1  # actors on one machine share the files

    @pytest.fixture(scope="class")
    @classmethod
    def make_on_cluster(cls):
        return lambda limits: RayExecutor("local", 2, limits=limits)


def test_trial_whose_actor_is_killed_begins_again(executor, tmp_path):
    def kill_once(trial):
        if not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            kill_actor()
        return square(trial)

    assert executor.submit(kill_once, trial(7)).result(timeout=60).loss == 0.25
    (line,) = (tmp_path / "lost_workers.log").read_text().splitlines()
    assert "trial 7 lost the worker 127.0.0.1 (process " in line


def test_trial_that_ends_every_actor_fails_and_does_not_harm_others(executor):
    poisonous = executor.submit(lambda trial: kill_actor(), trial(0))
    others = [executor.submit(square, trial(i)) for i in range(1, 5)]
    error = poisonous.result(timeout=90).error
    assert (error.kind, str(error).count("process")) == (CauseKind.WORKER_LOST, 3)
    assert [other.result(timeout=60).loss for other in others] == [0.25] * 4


def test_actor_that_hangs_is_lost_and_its_late_outcome_is_ignored(executor, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_executor, "_BEAT_SECONDS", 1.0)
    monkeypatch.setattr(ray_executor, "_SILENT_SECONDS", 3.0)

    def stop_once(trial):
        if not (tmp_path / "pid").exists():
            actor = coordinator_of_trial()
            (tmp_path / "pid").write_text(str(actor.pid))
            actor.suspend()
        return square(trial)

    assert executor.submit(stop_once, trial(0)).result(timeout=60).loss == 0.25
    assert "number 1 of at most 3" in (tmp_path / "lost_workers.log").read_text()
    wait_until(lambda: not psutil.pid_exists(int((tmp_path / "pid").read_text())))


def test_actor_that_is_taken_while_the_pool_closes_is_killed(monkeypatch):
    pool, get = ActorPool(1, memory_mib=0.0), ray.get
    closing = threading.Thread(target=pool.close)

    def close_first(told):
        monkeypatch.undo()
        closing.start()
        closing.join(1.0)
        return get(told)

    monkeypatch.setattr(ray, "get", close_first)
    actor = pool.take(60.0)
    closing.join()
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(actor.handle.address.remote())


def test_killed_coordinator_leaves_no_process_and_no_file(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "value.txt").write_text("content")
    pids = tmp_path / "pids"
    pids.mkdir()
    program = f"""
        import os, subprocess, sys, time
        from pathlib import Path
        import ray
        sys.path[:0] = [{str(Path(__file__).parents[1])!r}, {str(Path(__file__).parents[1] / "support")!r}]
        from contracts.cluster_executor_contract import ReadingFiles
        from contracts.executor_contract import trial
        from cashmere.execution.ray_executor import RayExecutor

        class Endless(ReadingFiles):
            def in_folder(self, folder):
                return Endless(folder)

            def __call__(self, trial):
                child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
                for pid in (os.getpid(), child.pid):
                    Path({str(pids)!r}, str(pid)).touch()
                time.sleep(1000)

        ray.init({ray.get_runtime_context().gcs_address!r}, log_to_driver=False)
        executor = RayExecutor("local", 2)
        for number in range(2):
            executor.submit(Endless(Path({str(tmp_path)!r})), trial(number))
        time.sleep(1000)
    """
    with running([sys.executable, "-c", textwrap.dedent(program)]):
        wait_until(lambda: len(list(pids.iterdir())) == 4)
        assert folders_of_sites()
    wait_until(lambda: not any(psutil.pid_exists(int(path.name)) for path in pids.iterdir()))
    wait_until(lambda: not folders_of_sites())


def test_digest_is_that_of_one_machine_also_after_a_resume(tmp_path):
    local = fit_run(tmp_path / "local", X, Y, replace(SETTINGS, n_workers=1), load=False)
    shorter = replace(SETTINGS, budget=Budget(trials=2), n_workers=2)
    fit_run(tmp_path / "run", X, Y, shorter, executor="ray", load=False)
    finished = continue_run(tmp_path / "run", Budget(trials=1), executor="ray", load=False)
    assert finished.facts.digest == local.facts.digest
    assert ray.is_initialized()


def test_machines_are_known_and_the_connection_of_the_user_stays():
    with open_cluster("ray", n_threads=1) as opened:
        ((n_threads, memory),) = opened.workers
        assert (n_threads, memory > 100) == (4, True)
    assert ray.is_initialized()


def test_machines_that_lend_no_memory_do_not_count(monkeypatch):
    (node,) = ray.nodes()
    other = {**node, "Resources": {"CPU": 2.0}}  # as Ray describes one after `ray start --memory 0`
    monkeypatch.setattr(ray, "nodes", lambda: [node, other])
    with open_cluster("ray", n_threads=1) as opened:
        ((n_threads, _),) = opened.workers
        assert n_threads == 4
    monkeypatch.setattr(ray, "nodes", lambda: [other])
    with pytest.raises(ClusterError, match="no machine with cores and memory"), open_cluster("ray", n_threads=1):
        pass


def test_second_connection_is_refused():
    with (
        pytest.raises(ClusterError, match=r"at ray://127\.0\.0\.1:9 cannot be used: .* give 'ray'"),
        open_cluster("ray://127.0.0.1:9", n_threads=1),
    ):
        pass


def test_missing_ray_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"cashmere-automl\[ray\]"), open_cluster("ray", n_threads=1):
        pass


def test_all_cores_and_files_come_back():
    wait_until(lambda: ray.available_resources().get("CPU") == 4)
    wait_until(lambda: not folders_of_sites())
