from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from benchmarks.runs import search as search_loop
from benchmarks.runs.held_out_rows import HeldOutRows
from benchmarks.runs.search import run_search
from benchmarks.runs.search_cost import TimedStrategy
from benchmarks.runs.search_task import SearchTask
from benchmarks.runs.trial_limit import CpuLimit, WallLimit
from benchmarks.tables.manifest import BenchmarkTable
from benchmarks.tables.search_table import SearchTable
from benchmarks.tables.three_parts import ThreeParts
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import InvalidParameterError
from cashmere.execution.in_process import InProcessExecutor
from cashmere.records.budget import Budget
from cashmere.records.cause import CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.storage.store import RunStore


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    path = tmp_path_factory.mktemp("data") / "made.parquet"
    labels = np.where(X[:, 0] + 0.3 * rng.normal(size=120) > 0.4, "yes", "no")
    pd.DataFrame(X, columns=list("abc")).assign(target=labels).to_parquet(path)
    return SearchTable.read(BenchmarkTable(name="made", path=path, task_type=TaskType.BINARY))


@pytest.fixture
def task(data):
    parts = ThreeParts.of(data, n_rows=1000)
    space = data.make_space("volcano", len(parts.train))
    return SearchTask(
        table=data, y=parts.y, folds=[parts.fold], held_out=parts.test, space=space,
        metric=get_metric("accuracy", TaskType.BINARY), seed=0,
    )  # fmt: skip


@pytest.fixture
def in_process(monkeypatch):
    """Run trials in this process, which starts faster than a worker."""
    monkeypatch.setattr(search_loop, "one_thread_executor", lambda n, **_: InProcessExecutor())


def test_search_sees_nothing_of_the_held_out_rows(task, in_process):
    found = run_search(task, "random", Budget(trials=3), limit=WallLimit(20.0))
    assert [o.succeeded for o in found.history] == [p is not None for p in found.held_out]
    for observation, held_out in zip(found.history, found.held_out, strict=True):
        if observation.predictions is not None:
            assert len(observation.predictions) == len(task.targets) == 24 and len(held_out) == len(task.held_out) == 24
            assert observation.loss == task.metric.loss(task.targets.astype(int), observation.predictions, None)
    assert len(found.history.successes) >= 1
    assert found.final_loss is None and len(found.suggest_seconds) == 3
    assert found.deciding_cpu_seconds > 0 and found.memory_mib["deciding"] > 20


def test_search_with_a_store_is_continued(task, in_process, tmp_path):
    announced = []
    for n_trials in (2, 3):
        with RunStore(tmp_path) as store:
            found = run_search(
                task, "random", Budget(trials=n_trials), limit=CpuLimit(20.0), store=store, announce=announced.append
            )
    assert announced == [0, 2] and len(found.history) == 3


def test_error_beside_held_out_rows_reaches_the_search(task):
    wrong_shape = Outcome(status=TrialStatus.SUCCESS, loss=0.1, predictions=np.zeros((3, 2)))
    configuration = task.space.configuration_space.get_default_configuration()
    future = HeldOutRows(InProcessExecutor(), task).submit(
        lambda trial: wrong_shape, Trial(number=0, configuration=configuration, seed=0)
    )
    with pytest.raises(IndexError):
        future.result()


def test_trial_beyond_its_cpu_seconds_is_a_timeout(task):
    def busy(trial):
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        return Outcome(status=TrialStatus.SUCCESS, loss=0.1)

    trial = Trial(number=0, configuration=task.space.configuration_space.get_default_configuration(), seed=0)
    outcome = CpuLimit(0.01).measure(busy)(trial)
    assert outcome.status is TrialStatus.TIMEOUT and outcome.loss is None
    assert outcome.error.kind is CauseKind.CPU_LIMIT and outcome.fit_seconds > 0.01
    outcome = CpuLimit(10.0).measure(busy)(trial)
    assert outcome.status is TrialStatus.SUCCESS and 0.02 <= outcome.fit_seconds < 10


def test_timed_strategy_refuses_metrics_like_the_strategy():
    class Picky:
        def suggest(self, history, rng):
            raise NotImplementedError

        def check_metric(self, metric):
            raise InvalidParameterError("metric", metric.name, "another one")

    with pytest.raises(InvalidParameterError):
        TimedStrategy(Picky()).check_metric(get_metric("accuracy", TaskType.BINARY))
